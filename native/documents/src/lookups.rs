//! Documents that others refer to: which ones, and how they are embedded.

use std::collections::{BTreeSet, HashMap};

use rillbase_query::bson::{Document, DocumentBuf};
use rillbase_query::lookup::LookupFields;

use crate::id;
use crate::refusal::DocumentRefusal;

/// Bodies by key, of one collection, as one caller may see them.
pub type ReferencedDocuments<B> = HashMap<Vec<u8>, B>;

/// The keys to which documents refer, for each of the lookups' collections.
pub fn keys<'b>(
    lookups: &LookupFields,
    bodies: impl Iterator<Item = &'b [u8]>,
) -> Result<Vec<BTreeSet<Vec<u8>>>, DocumentRefusal> {
    let numbers = lookups.collection_numbers();
    let mut keys = vec![BTreeSet::new(); lookups.collections().len()];
    for body in bodies {
        let document = Document::trusted(body);
        for (lookup, number) in lookups.iter().zip(&numbers) {
            let ids = lookup.references(document)?.ids;
            if let Some(keys) = keys.get_mut(*number) {
                keys.extend(ids.into_iter().filter_map(|id| id::key(id).ok()));
            }
        }
    }
    Ok(keys)
}

/// A document with those that it refers to. `referenced` has those of each of the lookups' collections.
pub fn embed<B: AsRef<[u8]>>(
    lookups: &LookupFields,
    body: &[u8],
    referenced: &[ReferencedDocuments<B>],
) -> Result<DocumentBuf, DocumentRefusal> {
    let numbers = lookups.collection_numbers();
    let document = Document::trusted(body);
    Ok(lookups.embed(document, &|number, referred| {
        let referenced = referenced.get(*numbers.get(number)?)?;
        let body = referenced.get(&id::key(referred).ok()?)?;
        Some(Document::trusted(body.as_ref()))
    })?)
}
