//! Filling memtables from the log when a database is opened.
//!
//! Entries are inserted in portions that are sorted first: an entry then goes near the one before,
//! by a way that is still in the processor's caches, which makes opening after a crash several
//! times faster where keys were written in random order.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::recovery::{Description, log_dir};
use super::{Core, Keyspace};
use crate::batch::Logged;
use crate::error::{Error, Result};
use crate::key::{Sequence, Tag, compare};
use crate::wal::Record;

/// A portion is inserted when it has this many bytes, or as many as the smallest memtable may have.
const PORTION_BYTES: usize = 16 << 20;

/// An entry that is not in its memtable yet.
struct Waiting {
    keyspace: u64,
    batch: Arc<[u8]>,
    key: Range<u32>,
    value: Range<u32>,
    tag: Tag,
}

impl Waiting {
    fn key(&self) -> &[u8] {
        let range = self.key.start as usize..self.key.end as usize;
        self.batch.get(range).unwrap_or_default()
    }
}

struct Replay<'a> {
    core: &'a Arc<Core>,
    keyspaces: HashMap<u64, Keyspace>,
    /// Up to where each keyspace is in tables.
    flushed: HashMap<u64, Sequence>,
    portion: Vec<Waiting>,
    portion_bytes: usize,
    portion_limit: usize,
    /// The last sequence and the record behind the last one that were taken.
    sequence: Sequence,
    next_record: u64,
}

/// Fills memtables from the log. What is larger than a memtable may be is flushed on the way.
pub(super) fn replay(core: &Arc<Core>, found: &Description) -> Result<()> {
    let keyspaces = core.keyspaces.read().clone();
    let smallest = keyspaces
        .values()
        .map(|keyspace| keyspace.options().memtable_bytes);
    let mut replay = Replay {
        core,
        portion_limit: smallest.min().unwrap_or(0).min(PORTION_BYTES),
        keyspaces: keyspaces.into_iter().collect(),
        flushed: found.flushed().collect(),
        portion: Vec::new(),
        portion_bytes: 0,
        sequence: 0,
        next_record: 0,
    };
    for record in core.wal.read(core.wal.indexes())? {
        replay.take(record?)?;
    }
    replay.insert_portion()?;
    core.replayed.store(u64::MAX, Ordering::Release);
    let newest = found.sequence().max(replay.sequence);
    core.commit.lock().next_sequence = newest + 1;
    core.publisher.start(newest);
    Ok(())
}

impl Replay<'_> {
    fn take(&mut self, record: Record) -> Result<()> {
        let batch: Arc<[u8]> = record.body.into();
        let detail = "a record of the log is no batch";
        let malformed = || Error::corruption(&log_dir(&self.core.dir), record.index, detail);
        let logged = Logged::parse(&batch, record.version).ok_or_else(malformed)?;
        self.core.time.seen(logged.time);
        let mut sequence = logged.sequence;
        for entry in logged.entries() {
            let entry = entry.map_err(|_| malformed())?;
            let tag = Tag::new(sequence, entry.kind);
            let flushed = self.flushed.get(&entry.keyspace);
            let in_tables = flushed.is_some_and(|&until| sequence <= until);
            sequence += 1;
            // Keyspaces that are not there were dropped after this was logged.
            let Some(keyspace) = self.keyspaces.get(&entry.keyspace).filter(|_| !in_tables) else {
                continue;
            };
            keyspace.view().active.keep_log_from(record.index);
            self.portion.push(Waiting {
                keyspace: entry.keyspace,
                batch: Arc::clone(&batch),
                key: entry.key,
                value: entry.value,
                tag,
            });
        }
        self.sequence = sequence.saturating_sub(1);
        self.next_record = record.index + 1;
        self.portion_bytes += batch.len();
        if self.portion_bytes >= self.portion_limit {
            self.insert_portion()?;
        }
        Ok(())
    }

    fn insert_portion(&mut self) -> Result<()> {
        let mut portion = std::mem::take(&mut self.portion);
        self.portion_bytes = 0;
        portion.sort_unstable_by(|left, right| {
            let keys = || compare((left.key(), left.tag), (right.key(), right.tag));
            left.keyspace.cmp(&right.keyspace).then_with(keys)
        });
        for entries in portion.chunk_by(|left, right| left.keyspace == right.keyspace) {
            let keyspace = entries.first().map(|entry| entry.keyspace);
            let Some(keyspace) = keyspace.and_then(|id| self.keyspaces.get(&id)) else {
                continue;
            };
            let memtable = Arc::clone(&keyspace.view().active);
            for entry in entries {
                if !memtable.insert(&entry.batch, &entry.key, &entry.value, entry.tag) {
                    let what = "a memtable holds no more entries".to_owned();
                    return Err(Error::InvalidArgument { what });
                }
            }
        }
        self.core
            .replayed
            .store(self.next_record, Ordering::Release);
        self.flush_while_large()
    }

    /// A long log must not become more memory than the memtables may have. What is flushed counts
    /// as flushed up to the last sequence replayed, not up to the newest that was ever visible.
    fn flush_while_large(&self) -> Result<()> {
        for keyspace in self.keyspaces.values() {
            let memtable = Arc::clone(&keyspace.view().active);
            if memtable.bytes() < keyspace.options().memtable_bytes {
                continue;
            }
            self.core.commit.lock().next_sequence = self.sequence + 1;
            self.core.publisher.start(self.sequence);
            self.core.rotate_idle(keyspace, &memtable);
            self.core.flush_waiting(keyspace)?;
        }
        Ok(())
    }
}
