//! The documents that were changed since a move to another backend began.
//!
//! While a collection moves, each write records the versions of its documents in its batch. What was
//! recorded is read, copied, and then removed, unless the document was changed again.

use rillbase_documents::changes::ChangedDocument;
use rillbase_engine::{Durability, WriteBatch};

use crate::candidate_scan::DocumentRecord;
use crate::error::{Error, Result};
use crate::format::{CHANGES, PREFIX_BYTES, change_key, prefix};
use crate::store::Collections;

/// A document that has to be copied, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedCopy {
    /// Its key.
    pub key: Vec<u8>,
    /// Its version.
    pub version: i64,
    /// What is stored; `None` if it was deleted.
    pub document: Option<DocumentRecord>,
}

impl Collections {
    pub(crate) fn put_change(
        &self,
        batch: &mut WriteBatch,
        collection: u64,
        changed: &ChangedDocument,
    ) {
        let key = change_key(collection, &changed.key);
        batch.put(&self.entries, &key, &changed.version.to_be_bytes());
    }

    /// Some of the documents that were changed and not copied since, up to a number of documents and
    /// of bytes, all at one moment.
    pub fn changed_documents(
        &self,
        (collection, write_version): (u64, u64),
        (documents, bytes): (usize, usize),
    ) -> Result<Vec<ChangedCopy>> {
        self.check_version(collection, write_version)?;
        let snapshot = self.db.snapshot();
        let start = prefix(collection, CHANGES);
        let mut scan = self
            .db
            .scan_prefix(&self.entries, &start, Some(&snapshot))?;
        scan.first()?;
        let (mut changed, mut size) = (Vec::new(), 0);
        while scan.is_valid() && changed.len() < documents && size < bytes {
            let key = scan.key().get(PREFIX_BYTES..).unwrap_or_default().to_vec();
            let version = recorded_version(scan.value())?;
            let document = self.get(collection, &key, Some(&snapshot))?;
            size += document.as_ref().map_or(0, |document| document.body.len());
            changed.push(ChangedCopy {
                key,
                version,
                document,
            });
            scan.advance()?;
        }
        Ok(changed)
    }

    /// Removes what was recorded of documents that were copied in these versions, durably.
    pub fn forget_changes(
        &self,
        (collection, write_version): (u64, u64),
        copied: &[(&[u8], i64)],
    ) -> Result<()> {
        let _queues = self.lock_queues(std::iter::once(collection));
        self.check_version(collection, write_version)?;
        let mut batch = WriteBatch::new();
        for (document, version) in copied {
            let key = change_key(collection, document);
            let Some(recorded) = self.db.get(&self.entries, &key)? else {
                continue;
            };
            if recorded_version(&recorded)? == *version {
                batch.delete(&self.entries, &key);
            }
        }
        if !batch.is_empty() {
            self.db.write(batch, Durability::Sync)?;
        }
        Ok(())
    }
}

fn recorded_version(value: &[u8]) -> Result<i64> {
    let version = value.try_into().map(i64::from_be_bytes);
    version.map_err(|_| Error::Malformed("the change of a document"))
}
