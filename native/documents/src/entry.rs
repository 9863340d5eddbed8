//! The entries of a document in an index.
//!
//! `rillbase_query::index` determines the keys. Here they become rows: long
//! keys are truncated, and a document with several keys gets a mark, the empty key,
//! so that bounds may intersect two conditions on one field.

use rillbase_query::bson::Document;
use rillbase_query::fuel::Fuel;
use rillbase_query::index::{FieldOrder, IndexField, index_keys};
use rillbase_query::path::FieldPath;

use crate::refusal::DocumentRefusal;

/// The maximum length of a key; longer ones are truncated. Truncation keeps the order, except that
/// truncated keys may become equal; readers in key order must sort such entries again.
pub const ENTRY_BYTES: usize = 1_024;
/// The key that marks a document with several keys; no value has this key.
pub const MARK: &[u8] = &[];

/// A declared index.
#[derive(Debug, Clone)]
pub struct IndexDefinition {
    /// Its number in the store.
    pub number: i64,
    /// Its fields in order.
    pub fields: Vec<IndexField>,
    /// Whether its keys are unique across documents.
    pub unique: bool,
}

/// A row of an index.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexEntry {
    /// The index.
    pub index: i64,
    /// The values in order-preserving bytes.
    pub key: Vec<u8>,
    /// Whether it takes part in sorting.
    pub ordering: bool,
    /// Whether no other document may have it.
    pub enforced: bool,
}

/// The fields of an index by path and order.
#[must_use]
pub fn fields(pairs: &[(String, FieldOrder)]) -> Vec<IndexField> {
    pairs
        .iter()
        .map(|(path, order)| IndexField {
            path: FieldPath::new(path),
            order: *order,
        })
        .collect()
}

/// The entries of a document in one index.
pub fn entries(
    document: Document<'_>,
    index: &IndexDefinition,
) -> Result<Vec<IndexEntry>, DocumentRefusal> {
    let keys = index_keys(document, &index.fields, &Fuel::default())?;
    let several = keys.len() > 1;
    let mut entries: Vec<IndexEntry> = Vec::with_capacity(keys.len() + usize::from(several));
    if several {
        entries.push(IndexEntry {
            index: index.number,
            key: MARK.to_vec(),
            ordering: false,
            enforced: false,
        });
    }
    for mut index_key in keys {
        let enforced = index.unique && index_key.ordering;
        if index_key.key.len() > ENTRY_BYTES {
            if enforced {
                let detail = format!("a key of a unique index has at most {ENTRY_BYTES} bytes");
                return Err(DocumentRefusal::new("index_key_too_long", detail));
            }
            index_key.key.truncate(ENTRY_BYTES);
        }
        // Keys are ascending, so those that truncation made equal are adjacent.
        match entries.last_mut() {
            Some(last) if last.key == index_key.key && !last.key.is_empty() => {
                last.ordering |= index_key.ordering;
            }
            _ => entries.push(IndexEntry {
                index: index.number,
                key: index_key.key,
                ordering: index_key.ordering,
                enforced,
            }),
        }
    }
    Ok(entries)
}
