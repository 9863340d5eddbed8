//! The result of a group of writes, as the columns of its statements.

use std::sync::Arc;

use rillbase_query::bson::{Document, DocumentBuf};

use crate::columns::{bools, byteas, int4s, int8s, timestamps, unix_ms};
use crate::entry::IndexEntry;
use crate::outcome::WriteResult;
use crate::unique::RequestedKey;

/// A document as the group leaves it.
#[derive(Debug, Clone)]
pub struct ChangedDocument {
    /// Its key.
    pub key: Vec<u8>,
    /// The hash of its key.
    pub key_hash: i32,
    /// Its version.
    pub version: i64,
    /// The document; `None` if it was deleted.
    pub body: Option<Arc<DocumentBuf>>,
    /// BSON of its `_id` alone, once it is deleted.
    pub deleted_id: Option<Vec<u8>>,
    /// When it was created, in microseconds since 2000; `None` for now.
    pub created_us: Option<i64>,
    /// Whether it had a row, possibly a tombstone.
    pub has_row: bool,
    /// The entries that the group found, sorted.
    pub old: Vec<IndexEntry>,
    /// The entries that it leaves, sorted.
    pub entries: Vec<IndexEntry>,
}

impl ChangedDocument {
    pub(crate) fn document(&self) -> Option<Document<'_>> {
        self.body.as_ref().map(|body| body.as_ref().as_ref())
    }

    fn body(&self) -> Option<&[u8]> {
        self.body.as_ref().map(|body| body.as_bytes())
    }

    /// The entries that the group adds.
    #[must_use]
    pub fn added(&self) -> Vec<&IndexEntry> {
        without(&self.entries, &self.old)
    }

    /// The entries that the group removes.
    #[must_use]
    pub fn removed(&self) -> Vec<&IndexEntry> {
        without(&self.old, &self.entries)
    }
}

/// All changes of a group, and the outcomes of its writes.
#[derive(Debug)]
pub struct GroupChanges {
    /// The collections' ids, in the order of the plan.
    pub collections: Vec<[u8; 16]>,
    /// By collection, the documents that changed, by key.
    pub documents: Vec<Vec<ChangedDocument>>,
    /// By write; `None` if it was skipped.
    pub results: Vec<Option<WriteResult>>,
    /// The keys of unique indexes that documents were to get.
    pub requested: Vec<RequestedKey>,
    /// The transaction's time, in milliseconds since 1970.
    pub now_ms: i64,
}

/// Entries of indexes with their documents' keys.
#[derive(Debug, Default)]
pub struct EntryColumns {
    /// Numbers of indexes.
    pub numbers: Vec<u8>,
    /// Keys.
    pub keys: Vec<u8>,
    /// Keys of documents.
    pub places: Vec<u8>,
    /// Whether they take part in sorting.
    pub ordering: Vec<u8>,
    /// Whether they are enforced.
    pub enforced: Vec<u8>,
}

impl GroupChanges {
    /// How many documents changed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.documents.iter().map(Vec::len).sum()
    }

    /// Whether nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.documents.iter().all(Vec::is_empty)
    }

    /// When a document was created, in milliseconds since 1970.
    #[must_use]
    pub fn created_ms(&self, changed: &ChangedDocument) -> i64 {
        changed.created_us.map_or(self.now_ms, unix_ms)
    }

    fn of(&self, collection: usize) -> &[ChangedDocument] {
        self.documents
            .get(collection)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// Documents to insert: keys, hashes, versions, bodies.
    #[must_use]
    pub fn inserted(&self, collection: usize) -> Option<[Vec<u8>; 4]> {
        let rows = self.of(collection).iter().filter(|each| !each.has_row);
        rows.clone().next()?;
        Some([
            byteas(rows.clone().map(|each| Some(each.key.as_slice()))),
            int4s(rows.clone().map(|each| each.key_hash)),
            int8s(rows.clone().map(|each| each.version)),
            byteas(rows.map(ChangedDocument::body)),
        ])
    }

    /// Rows to update: keys, versions, bodies, creation times.
    #[must_use]
    pub fn updated(&self, collection: usize) -> Option<[Vec<u8>; 4]> {
        let rows = self.of(collection).iter().filter(|each| each.has_row);
        rows.clone().next()?;
        Some([
            byteas(rows.clone().map(|each| Some(each.key.as_slice()))),
            int8s(rows.clone().map(|each| each.version)),
            byteas(rows.clone().map(ChangedDocument::body)),
            timestamps(rows.map(|each| each.created_us)),
        ])
    }

    /// Rows of the outbox: keys, hashes, versions, ids of deleted documents.
    #[must_use]
    pub fn announced(&self, collection: usize) -> Option<[Vec<u8>; 4]> {
        let rows = self.of(collection).iter();
        rows.clone().next()?;
        Some([
            byteas(rows.clone().map(|each| Some(each.key.as_slice()))),
            int4s(rows.clone().map(|each| each.key_hash)),
            int8s(rows.clone().map(|each| each.version)),
            byteas(rows.map(|each| each.deleted_id.as_deref())),
        ])
    }

    /// New entries.
    #[must_use]
    pub fn added(&self) -> Option<EntryColumns> {
        self.entries(ChangedDocument::added)
    }

    /// Removed entries.
    #[must_use]
    pub fn removed(&self) -> Option<EntryColumns> {
        self.entries(ChangedDocument::removed)
    }

    /// The new entries that no other document may have.
    #[must_use]
    pub fn enforced(&self) -> Option<EntryColumns> {
        self.entries(|each| {
            let mut added = each.added();
            added.retain(|entry| entry.enforced);
            added
        })
    }

    fn entries<'a>(
        &'a self,
        pick: impl Fn(&'a ChangedDocument) -> Vec<&'a IndexEntry>,
    ) -> Option<EntryColumns> {
        let mut rows = Vec::new();
        for document in self.documents.iter().flatten() {
            let entries = pick(document).into_iter();
            rows.extend(entries.map(|entry| (entry, document.key.as_slice())));
        }
        if rows.is_empty() {
            return None;
        }
        let all = rows.iter();
        Some(EntryColumns {
            numbers: int8s(all.clone().map(|(entry, _)| entry.index)),
            keys: byteas(all.clone().map(|(entry, _)| Some(entry.key.as_slice()))),
            places: byteas(all.clone().map(|(_, key)| Some(*key))),
            ordering: bools(all.clone().map(|(entry, _)| entry.ordering)),
            enforced: bools(all.map(|(entry, _)| entry.enforced)),
        })
    }

    /// The hashes of all keys, without duplicates, in ascending order.
    #[must_use]
    pub fn key_hashes(&self) -> Vec<i32> {
        let all = self.documents.iter().flatten();
        let mut hashes: Vec<i32> = all.map(|each| each.key_hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        hashes
    }
}

/// The elements of one sorted list that are not in the other.
fn without<'a>(kept: &'a [IndexEntry], dropped: &[IndexEntry]) -> Vec<&'a IndexEntry> {
    kept.iter()
        .filter(|entry| dropped.binary_search(entry).is_err())
        .collect()
}
