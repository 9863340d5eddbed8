//! Adds the entries of an index for documents that were written before it was declared.
//!
//! A part of the documents at a time, in the order of their keys, under the commit queue. Writes in
//! between maintain the entries of the documents that they change, whether these were built or not;
//! an entry follows from its document alone, so a part can be repeated.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rillbase_documents::entry::{IndexDefinition, entries};
use rillbase_documents::refusal::DocumentRefusal;
use rillbase_engine::{Durability, WriteBatch};
use rillbase_query::bson::{Document, ValueRef};
use rillbase_query::ejson::{Form, value_to_string};

use crate::candidate_scan::{Candidate, CandidatePosition};
use crate::definition::NativeIndex;
use crate::entry_changes::{ListChanges, StoredEntry};
use crate::error::{Error, Result};
use crate::format::{DOCUMENTS, EntryForm, prefix};
use crate::plan::ScanPlan;
use crate::store::{Collections, InstalledCollection};

/// A part ends after this many bytes of documents and entries, or after this time.
const PART_BYTES: usize = 8 << 20;
const PART_TIME: Duration = Duration::from_millis(20);
/// An `_id` in an error is shortened to this many characters.
const ID_CHARS: usize = 200;

/// A part of an index to build.
#[derive(Debug, Clone)]
pub struct IndexBuild {
    /// The collection's number.
    pub collection: u64,
    /// The version of the definition that has the index.
    pub write_version: u64,
    /// The index's number in the collection.
    pub index: u32,
    /// The key of the last document of the part before.
    pub after: Option<Vec<u8>>,
    /// The maximum number of documents.
    pub documents: usize,
}

/// A part that was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltPart {
    /// How many documents were examined.
    pub documents: usize,
    /// The key of the last one; `None` if there are no more.
    pub after: Option<Vec<u8>>,
}

/// The entries of a part.
struct IndexPart<'a> {
    collection: &'a InstalledCollection,
    index: &'a NativeIndex,
    compiled: IndexDefinition,
    batch: WriteBatch,
    lists: ListChanges,
    /// The documents of the part by the unique entries that they get.
    owners: HashMap<Vec<u8>, Vec<u8>>,
    documents: usize,
    bytes: usize,
}

impl Collections {
    /// Adds the entries of an index for the next documents, durably. Fails without adding any if one
    /// of them has a unique entry of another document, or cannot be indexed.
    pub fn build_index(&self, build: &IndexBuild) -> Result<BuiltPart> {
        let queues = self.lock_queues(std::iter::once(build.collection));
        let collection = self.current(build.collection, build.write_version)?;
        let index = collection.definition.index(build.index);
        let index = index.ok_or(Error::NoIndex)?;
        if !index.technique.is_stored() {
            drop(queues);
            return self.build_embedded(collection.number, index, build);
        }
        let mut part = IndexPart {
            collection: &collection,
            index,
            compiled: index.compiled(collection.number),
            batch: WriteBatch::new(),
            lists: ListChanges::default(),
            owners: HashMap::new(),
            documents: 0,
            bytes: 0,
        };
        let after = self.add_documents(&mut part, build)?;
        let documents = part.documents;
        self.put_lists(&mut part.batch, std::mem::take(&mut part.lists))?;
        if !part.batch.is_empty() {
            self.db.write(part.batch, Durability::Sync)?;
        }
        Ok(BuiltPart { documents, after })
    }

    /// Rewrites a table whose documents may lack values of an embedded index. Writes go on meanwhile.
    fn build_embedded(
        &self,
        collection: u64,
        index: &NativeIndex,
        build: &IndexBuild,
    ) -> Result<BuiltPart> {
        if build.after.is_none() {
            // What was written before the index was declared is in memory otherwise.
            self.db.flush_keyspace(&self.entries)?;
        }
        let (start, end) = (
            prefix(collection, DOCUMENTS),
            prefix(collection, DOCUMENTS + 1),
        );
        let since = index.embedded_since;
        let rewritten = self
            .db
            .rewrite_outdated(&self.entries, (&start, &end), since)?;
        Ok(BuiltPart {
            documents: rewritten.map_or(0, |entries| usize::try_from(entries).unwrap_or(0)),
            // Not a key: each part looks for the next table.
            after: rewritten.map(|_| vec![0]),
        })
    }

    /// Returns the key of the last document, unless it is that of the collection.
    fn add_documents(
        &self,
        part: &mut IndexPart<'_>,
        build: &IndexBuild,
    ) -> Result<Option<Vec<u8>>> {
        let started = Instant::now();
        let snapshot = self.db.snapshot();
        let after = build.after.clone().map(|document| CandidatePosition {
            document,
            ..CandidatePosition::default()
        });
        let plan = ScanPlan::everything();
        let mut last = None;
        for candidate in self.candidates(build.collection, &plan, after, &snapshot)? {
            let candidate = candidate?;
            let is_full = part.documents >= build.documents || part.bytes >= PART_BYTES;
            if last.is_some() && (is_full || started.elapsed() > PART_TIME) {
                return Ok(last);
            }
            self.add_document(part, &candidate)?;
            last = Some(candidate.key);
        }
        Ok(None)
    }

    fn add_document(&self, part: &mut IndexPart<'_>, candidate: &Candidate) -> Result<()> {
        let body = Document::trusted(&candidate.document.body);
        let entries = entries(body, &part.compiled);
        let entries = entries.map_err(|refusal| unindexed(body, refusal))?;
        part.documents += 1;
        part.bytes += candidate.document.body.len();
        for entry in &entries {
            let updated_ms = candidate.document.head.updated_ms;
            let added = part
                .collection
                .stored_entry(entry, &candidate.key, updated_ms);
            let (key, value) = match added {
                Some(StoredEntry::Single { key, value }) => (key, value),
                Some(StoredEntry::Listed(listed)) => {
                    part.lists.add(listed);
                    continue;
                }
                None => continue,
            };
            if part.index.form(entry.enforced) == EntryForm::Unique {
                let owner = match part.owners.get(&key) {
                    Some(owner) => Some(owner.clone()),
                    None => self
                        .db
                        .get(&self.entries, &key)?
                        .map(|owner| owner.to_vec()),
                };
                if let Some(owner) = owner.filter(|owner| *owner != candidate.key) {
                    let other = self.get(part.collection.number, &owner, None)?;
                    let other = other.ok_or(Error::Malformed("an entry of a unique index"))?;
                    let ids = [Document::trusted(&other.body), body].map(short_id);
                    return Err(Error::DuplicateKey { ids });
                }
                part.owners.insert(key.clone(), candidate.key.clone());
            }
            part.bytes += key.len() + value.len();
            part.batch.put(&self.entries, &key, &value);
        }
        Ok(())
    }
}

/// The error for a document that cannot be in an index.
pub(crate) fn unindexed(body: Document<'_>, refusal: DocumentRefusal) -> Error {
    Error::Unindexed {
        id: short_id(body),
        refusal: Box::new(refusal),
    }
}

/// The document's `_id` as Extended JSON, shortened.
fn short_id(body: Document<'_>) -> String {
    let id = body.get("_id").unwrap_or(ValueRef::Null);
    let text = value_to_string(id, Form::Relaxed);
    text.chars().take(ID_CHARS).collect()
}
