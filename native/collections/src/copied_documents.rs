//! Stores documents that are copied from another backend, as they are there.
//!
//! A collection that moves here is copied while it is written to in the other backend: part by part,
//! and again what was changed meanwhile. A part reflects one moment, but what is stored of the other
//! parts may be older or newer. So two documents may have the same unique entry for a while. While
//! an index is not ready, the document that was stored last gets the entry, and another one that
//! gives it up does not remove it. Once the last changes are stored, each entry belongs to the
//! document that has its values: it was stored after the one that had them before.

use rillbase_documents::entry::IndexEntry;
use rillbase_documents::operation::id_document;
use rillbase_engine::{Durability, Millis, WriteBatch};
use rillbase_query::bson::{Document, ValueRef};

use crate::candidate_scan::DocumentRecord;
use crate::counters::encode_pair;
use crate::decision::TOMBSTONE_MS;
use crate::entry_changes::{ListChanges, StoredEntry};
use crate::error::Result;
use crate::format::{DocumentHead, document_key, encode_document};
use crate::index_build::unindexed;
use crate::store::{Collections, InstalledCollection};

/// A document of another backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopiedDocument<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its version there.
    pub version: i64,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it was changed.
    pub updated_ms: i64,
    /// Its BSON; `None` if it was deleted.
    pub body: Option<&'a [u8]>,
}

/// The changes of a part.
#[derive(Default)]
struct CopyBatch {
    batch: WriteBatch,
    lists: ListChanges,
    /// By how many documents and bytes the collection grows.
    size: (i64, i64),
}

impl Collections {
    /// Stores documents of another backend, durably, unless the same version or a newer one is
    /// stored. Each key occurs once. Returns how many were stored.
    pub fn store_copies(
        &self,
        (collection, write_version): (u64, u64),
        documents: &[CopiedDocument<'_>],
    ) -> Result<usize> {
        let _queues = self.lock_queues(std::iter::once(collection));
        let installed = self.current(collection, write_version)?;
        let mut newer = Vec::new();
        for document in documents {
            let stored = self.get_or_tombstone(collection, document.key, None)?;
            let version = stored.as_ref().map_or(0, |stored| stored.head.version);
            if version < document.version {
                newer.push((document, stored.filter(|stored| !stored.head.is_tombstone)));
            }
        }
        let mut part = CopyBatch::default();
        let mut added = Vec::new();
        for (document, stored) in &newer {
            let old = entries(&installed, stored.as_ref().map(|stored| &*stored.body))?;
            let new = entries(&installed, document.body)?;
            self.remove_entries(&mut part, &installed, (document.key, stored), &old)?;
            added.push(new);
        }
        for ((document, stored), new) in newer.iter().zip(&added) {
            self.put_copied_entries(&mut part, &installed, document, new);
            self.put_copy(&mut part, &installed, document, stored.as_ref());
        }
        self.put_lists(&mut part.batch, part.lists)?;
        if part.size != (0, 0) {
            let size = encode_pair(part.size);
            part.batch
                .merge(&self.counts, &collection.to_be_bytes(), &size);
        }
        if !part.batch.is_empty() {
            self.db.write(part.batch, Durability::Sync)?;
        }
        Ok(newer.len())
    }

    fn remove_entries(
        &self,
        part: &mut CopyBatch,
        installed: &InstalledCollection,
        (document, stored): (&[u8], &Option<DocumentRecord>),
        entries: &[IndexEntry],
    ) -> Result<()> {
        let updated_ms = stored.as_ref().map_or(0, |stored| stored.head.updated_ms);
        for entry in entries {
            match installed.stored_entry(entry, document, updated_ms) {
                Some(StoredEntry::Single { key, value })
                    if !self.is_of_other(installed, entry, (&key, &value))? =>
                {
                    part.batch.delete(&self.entries, &key);
                }
                Some(StoredEntry::Listed(listed)) => part.lists.remove(listed),
                Some(StoredEntry::Single { .. }) | None => {}
            }
        }
        Ok(())
    }

    fn put_copied_entries(
        &self,
        part: &mut CopyBatch,
        installed: &InstalledCollection,
        document: &CopiedDocument<'_>,
        entries: &[IndexEntry],
    ) {
        for entry in entries {
            match installed.stored_entry(entry, document.key, document.updated_ms) {
                Some(StoredEntry::Single { key, value }) => {
                    part.batch.put(&self.entries, &key, &value);
                }
                Some(StoredEntry::Listed(listed)) => part.lists.add(listed),
                None => {}
            }
        }
    }

    fn put_copy(
        &self,
        part: &mut CopyBatch,
        installed: &InstalledCollection,
        document: &CopiedDocument<'_>,
        stored: Option<&DocumentRecord>,
    ) {
        let before = stored.map(|stored| stored.body.len());
        part.size.0 += i64::from(document.body.is_some()) - i64::from(before.is_some());
        part.size.1 += length(document.body.map(<[u8]>::len)) - length(before);
        let head = DocumentHead {
            is_tombstone: document.body.is_none(),
            version: document.version,
            rules_version: installed.definition.rules_version,
            created_ms: document.created_ms,
            updated_ms: document.updated_ms,
            ordinal: u32::try_from(part.batch.len()).unwrap_or(u32::MAX),
            ..DocumentHead::default()
        };
        let key = document_key(installed.number, document.key);
        if let Some(body) = document.body {
            let value = encode_document(&head, body);
            part.batch.put(&self.entries, &key, &value);
            return;
        }
        let now: Millis = self.db.now();
        // Its version is in the floor at once, so a tombstone is needed only to replace a document.
        if let Some(stored) = stored {
            let id = Document::trusted(&stored.body).get("_id");
            let id = id_document(id.unwrap_or(ValueRef::Null));
            let value = encode_document(&head, id.as_bytes());
            let expiry = now.saturating_add(TOMBSTONE_MS);
            part.batch.put_expiring(&self.entries, &key, &value, expiry);
        }
        self.raise_floor(&mut part.batch, installed.number, (document.version, now));
    }
}

fn entries(installed: &InstalledCollection, body: Option<&[u8]>) -> Result<Vec<IndexEntry>> {
    let Some(body) = body else {
        return Ok(Vec::new());
    };
    let body = Document::trusted(body);
    let entries = installed.compiled.entries(body);
    entries.map_err(|refusal| unindexed(body, refusal))
}

fn length(body: Option<usize>) -> i64 {
    body.map_or(0, |length| i64::try_from(length).unwrap_or(i64::MAX))
}
