//! The changes of documents, in the order in which they became visible, read from the log.
//!
//! The log contains the writes of all keyspaces. A batch that puts documents is a transaction: its
//! id is the sequence of its first write, which is that of
//! [`DocumentRecord::batch`](crate::DocumentRecord::batch). Entries of indexes, counters and claims
//! are skipped, and so are batches without documents. The removal of a collection is not among the
//! changes: it is a range delete.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use rillbase_engine::{ChangeBatch, ChangeFeed, EntryKind, LoggedWrite, Millis, Sequence};

use crate::error::{Error, Result};
use crate::format::{DocumentHead, decode_document, split_document_key};
use crate::store::Collections;

/// Counts the groups that were written, so that readers can wait for the next.
#[derive(Debug, Default)]
pub(crate) struct WrittenGroups {
    count: Mutex<u64>,
    changed: Condvar,
}

impl WrittenGroups {
    /// Counts a group whose batches are visible.
    pub(crate) fn add(&self) {
        let mut count = self.count.lock();
        *count = count.wrapping_add(1);
        drop(count);
        self.changed.notify_all();
    }

    fn count(&self) -> u64 {
        *self.count.lock()
    }

    /// Waits until the count differs, at most until a time. Returns whether it does.
    fn wait(&self, before: u64, until: Instant) -> bool {
        let mut count = self.count.lock();
        while *count == before {
            if self.changed.wait_until(&mut count, until).timed_out() {
                break;
            }
        }
        *count != before
    }
}

/// A document as a transaction wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedDocument<'t> {
    /// The collection's number.
    pub collection: u64,
    /// The document's key.
    pub key: &'t [u8],
    /// Version and times.
    pub head: DocumentHead,
    /// BSON; of a tombstone its `_id` alone.
    pub body: &'t [u8],
}

/// A batch of the log that puts documents.
#[derive(Debug, Clone)]
pub struct LoggedTransaction {
    batch: ChangeBatch,
    /// The keyspace of documents.
    entries: u64,
    is_atomic: bool,
}

impl LoggedTransaction {
    /// The transaction of a batch; `None` if it puts no documents.
    fn of(batch: ChangeBatch, entries: u64) -> Result<Option<Self>> {
        let mut transaction = Self {
            batch,
            entries,
            is_atomic: false,
        };
        let first = transaction.documents().next().transpose()?;
        let Some(first) = first else {
            return Ok(None);
        };
        transaction.is_atomic = first.head.is_atomic;
        Ok(Some(transaction))
    }

    /// Its id: the sequence of its first write.
    pub fn xid(&self) -> u64 {
        self.batch.first_sequence()
    }

    /// The time at which it was written.
    pub fn time(&self) -> Millis {
        self.batch.time()
    }

    /// Whether all its documents changed as one.
    pub fn is_atomic(&self) -> bool {
        self.is_atomic
    }

    /// Its documents in the order in which they were written.
    pub fn documents(&self) -> impl Iterator<Item = Result<LoggedDocument<'_>>> {
        let writes = self.batch.writes();
        writes.filter_map(|write| match write {
            Ok(write) => self.document(&write).transpose(),
            Err(error) => Some(Err(error.into())),
        })
    }

    fn document<'t>(&self, write: &LoggedWrite<'t>) -> Result<Option<LoggedDocument<'t>>> {
        let is_put = matches!(write.kind, EntryKind::Put | EntryKind::PutExpiring);
        if !is_put || write.keyspace != self.entries {
            return Ok(None);
        }
        let Some((collection, key)) = split_document_key(write.key) else {
            return Ok(None);
        };
        let (head, body) = decode_document(write.value)?;
        if write.sequence.checked_sub(u64::from(head.ordinal)) != Some(self.xid()) {
            return Err(Error::Malformed("the position of a document in its batch"));
        }
        Ok(Some(LoggedDocument {
            collection,
            key,
            head,
            body,
        }))
    }
}

/// Reads the changes of documents from a position on.
#[derive(Debug)]
pub struct CollectionFeed {
    changes: ChangeFeed,
    entries: u64,
    written: Arc<WrittenGroups>,
    /// The count when the last read began.
    count: u64,
    /// The time of the last batch that was read.
    time: Millis,
}

impl CollectionFeed {
    /// Everything up to here was read.
    pub fn position(&self) -> Sequence {
        self.changes.position()
    }

    /// The time at which the last batch that was read was written, whatever it changed.
    pub fn time(&self) -> Millis {
        self.time
    }

    /// Reads the next part of the log, of about this size, up to the visible sequence, and returns
    /// its transactions. After an error, changes have to be read by another feed.
    pub fn read(&mut self, bytes: usize) -> Result<Vec<LoggedTransaction>> {
        // Before reading, so that a group that is written meanwhile ends the next wait.
        self.count = self.written.count();
        let batches = self.changes.read(bytes)?;
        self.time = batches.last().map_or(self.time, ChangeBatch::time);
        let transactions = batches
            .into_iter()
            .map(|batch| LoggedTransaction::of(batch, self.entries));
        transactions.filter_map(Result::transpose).collect()
    }

    /// Waits until documents may have been written since the last read began, at most for this
    /// long. Returns whether they may have been.
    pub fn wait(&self, longest: Duration) -> bool {
        self.written.wait(self.count, Instant::now() + longest)
    }

    /// Lets the log drop what was read up to a position of this feed.
    pub fn release(&mut self, position: Sequence) {
        self.changes.release(position);
    }
}

impl Collections {
    /// The changes of documents after a sequence. Fails with
    /// [`ChangesTruncated`](rillbase_engine::Error::ChangesTruncated) if the log no longer has all
    /// of them.
    pub fn feed(&self, after: Sequence) -> Result<CollectionFeed> {
        Ok(CollectionFeed {
            count: self.written.count(),
            changes: self.db.changes(after)?,
            entries: self.entries.id(),
            time: self.db.now(),
            written: Arc::clone(&self.written),
        })
    }
}
