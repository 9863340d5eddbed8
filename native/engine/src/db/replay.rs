//! Filling memtables from the log when a database is opened.
//!
//! Entries are inserted in sorted portions: each is then inserted near the previous one, along a
//! path that is still in the processor's caches, which makes opening after a crash several times
//! faster if keys were written in random order.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::description::{Description, log_dir};
use super::{DbCore, Keyspace};
use crate::db::batch::{BatchEntry, Logged};
use crate::error::{Error, Result};
use crate::key::{Sequence, Tag, compare};
use crate::wal::WalRecord;

/// A portion is inserted at this size, or at that of the smallest memtable.
const PORTION_BYTES: usize = 16 << 20;

/// An entry that is not in its memtable yet.
struct ReplayedEntry<'a> {
    entry: BatchEntry<'a>,
    tag: Tag,
}

struct Replay<'a> {
    core: &'a Arc<DbCore>,
    keyspaces: HashMap<u64, Keyspace>,
    /// The sequence up to which each keyspace is in tables.
    flushed: HashMap<u64, Sequence>,
    portion: Vec<WalRecord>,
    portion_bytes: usize,
    portion_limit: usize,
    /// The last sequence, and the record after the last one read.
    sequence: Sequence,
    next_record: u64,
}

/// Fills memtables from the log. Memtables that become too large are flushed on the way.
pub(super) fn replay(core: &Arc<DbCore>, description: &Description) -> Result<()> {
    let keyspaces = core.all_keyspaces();
    let smallest = keyspaces
        .iter()
        .map(|keyspace| keyspace.options().memtable_bytes);
    let mut replay = Replay {
        core,
        portion_limit: smallest.min().unwrap_or(0).min(PORTION_BYTES),
        keyspaces: keyspaces.into_iter().map(|one| (one.id(), one)).collect(),
        flushed: description.flushed().collect(),
        portion: Vec::new(),
        portion_bytes: 0,
        sequence: 0,
        next_record: 0,
    };
    let all = core.wal.indexes();
    // The last record in tables has their last sequence, which may never have been visible.
    let first = core.retention.replay_from().saturating_sub(1);
    for record in core.wal.read(first.max(all.start)..all.end)? {
        replay.take(record?)?;
    }
    replay.insert_portion()?;
    core.replayed.store(u64::MAX, Ordering::Release);
    let newest = description.sequence().max(replay.sequence);
    core.commit.lock().next_sequence = newest + 1;
    core.publisher.start(newest);
    Ok(())
}

impl Replay<'_> {
    fn take(&mut self, record: WalRecord) -> Result<()> {
        self.portion_bytes += record.body.len();
        self.portion.push(record);
        if self.portion_bytes >= self.portion_limit {
            self.insert_portion()?;
        }
        Ok(())
    }

    /// Adds the entries of a record that are not in tables yet.
    fn unpack<'a>(
        &mut self,
        record: &'a WalRecord,
        waiting: &mut Vec<ReplayedEntry<'a>>,
    ) -> Result<()> {
        let detail = "a record of the log is not a batch";
        let malformed = || Error::corruption(&log_dir(&self.core.dir), record.index, detail);
        let logged = Logged::parse(&record.body, record.version).map_err(|_| malformed())?;
        self.core.time.observe(logged.time);
        for (sequence, entry) in (logged.sequence..).zip(logged.entries()) {
            let entry = entry.map_err(|_| malformed())?;
            let flushed = self.flushed.get(&entry.keyspace);
            if flushed.is_some_and(|&until| sequence <= until) {
                continue;
            }
            // Missing keyspaces were dropped after this was logged.
            let Some(keyspace) = self.keyspaces.get(&entry.keyspace) else {
                continue;
            };
            keyspace.view().active.keep_log_from(record.index);
            let tag = Tag::new(sequence, entry.kind);
            waiting.push(ReplayedEntry { entry, tag });
        }
        let behind = logged.sequence.saturating_add(u64::from(logged.count));
        self.sequence = behind.saturating_sub(1);
        self.next_record = record.index + 1;
        Ok(())
    }

    fn insert_portion(&mut self) -> Result<()> {
        let records = std::mem::take(&mut self.portion);
        self.portion_bytes = 0;
        let mut portion = Vec::new();
        for record in &records {
            self.unpack(record, &mut portion)?;
        }
        self.fill(portion)?;
        self.core
            .replayed
            .store(self.next_record, Ordering::Release);
        self.flush_while_large()
    }

    fn fill(&self, mut portion: Vec<ReplayedEntry<'_>>) -> Result<()> {
        portion.sort_unstable_by(|left, right| {
            let keys = || compare((left.entry.key, left.tag), (right.entry.key, right.tag));
            left.entry
                .keyspace
                .cmp(&right.entry.keyspace)
                .then_with(keys)
        });
        for alike in portion.chunk_by(|left, right| left.entry.keyspace == right.entry.keyspace) {
            let keyspace = alike.first().map(|waiting| waiting.entry.keyspace);
            let Some(keyspace) = keyspace.and_then(|id| self.keyspaces.get(&id)) else {
                continue;
            };
            let memtable = Arc::clone(&keyspace.view().active);
            for ReplayedEntry { entry, tag } in alike {
                if !memtable.insert(entry.key, entry.value, *tag) {
                    let what = "the memtable is full".to_owned();
                    return Err(Error::InvalidArgument { what });
                }
            }
        }
        Ok(())
    }

    /// A long log must not exceed the memory of the memtables. What is flushed counts as flushed up
    /// to the last sequence replayed, not up to the newest that was ever visible.
    fn flush_while_large(&self) -> Result<()> {
        for keyspace in self.keyspaces.values() {
            let memtable = Arc::clone(&keyspace.view().active);
            if memtable.bytes() < keyspace.options().memtable_bytes {
                continue;
            }
            self.core.publisher.start(self.sequence);
            {
                let mut commit = self.core.commit.lock();
                commit.next_sequence = self.sequence + 1;
                let sequence = self.sequence;
                self.core
                    .replace_memtable(&mut commit, keyspace, &memtable, sequence);
            }
            match self.core.flush_waiting(std::slice::from_ref(keyspace)) {
                // It stays in memory and in the log until there is space.
                Err(error) if error.is_full() => {}
                flushed => drop(flushed?),
            }
        }
        Ok(())
    }
}
