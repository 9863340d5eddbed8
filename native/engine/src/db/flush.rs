//! The steps of a flush: full memtables become a run of level 0. Small memtables of several
//! keyspaces are flushed together, which saves syncs.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::drafts::Drafts;
use super::stats::add;
use super::{DbCore, Keyspace};
use crate::compaction::output::{CompactionOutput, TableFactory};
use crate::compaction::rules::{CompactionRules, kept_ranges};
use crate::error::Result;
use crate::iterate::merging::MergingCursor;
use crate::iterate::source::EntrySource;
use crate::key::Sequence;
use crate::memtable::{Memtable, MemtableCursor};
use crate::range_delete::{RangeDelete, RangeDeletes};
use crate::table::builder::TableSettings;
use crate::version::edit::Edit;
use crate::version::file::{FileMeta, TableFile};

/// The flush of a keyspace.
struct Flush<'a> {
    keyspace: &'a Keyspace,
    /// Its full memtables, newest first.
    waiting: Vec<Arc<Memtable>>,
    /// Everything up to here is in them, or in tables.
    sealed: Sequence,
    /// The tables that were written.
    metas: Vec<FileMeta>,
}

impl DbCore {
    /// Flushes the full memtables of some keyspaces. Returns whether there were any.
    pub(crate) fn flush(&self, keyspaces: &[Keyspace]) -> Result<bool> {
        let Some(durable) = self.flush_waiting(keyspaces)? else {
            return Ok(false);
        };
        self.work.wake();
        match self.truncate_log(durable) {
            // The next flush truncates the log.
            Err(error) if error.is_full() => {}
            truncated => truncated?,
        }
        Ok(true)
    }

    /// Flushes without truncating the log: while it is replayed, what follows in it is needed.
    /// Returns before which record everything in the log is durable, if something was flushed.
    pub(crate) fn flush_waiting(&self, keyspaces: &[Keyspace]) -> Result<Option<u64>> {
        let mut keyspaces: Vec<&Keyspace> = keyspaces.iter().collect();
        // All threads lock them in this order. A keyspace whose memtable becomes full while a group
        // is formed may be in it twice.
        keyspaces.sort_unstable_by_key(|keyspace| keyspace.id());
        keyspaces.dedup_by_key(|keyspace| keyspace.id());
        let locks = keyspaces.iter().map(|keyspace| keyspace.0.flushing.lock());
        let guards: Vec<_> = locks.collect();
        let mut flushes = Vec::new();
        for keyspace in keyspaces {
            let waiting = keyspace.view().waiting.clone();
            if let Some(newest) = waiting.first().filter(|_| !keyspace.is_dropped()) {
                let sealed = newest.sealed_at();
                flushes.push(Flush {
                    keyspace,
                    waiting,
                    sealed,
                    metas: Vec::new(),
                });
            }
        }
        let Some(sealed) = flushes.iter().map(|flush| flush.sealed).max() else {
            return Ok(None);
        };
        if self.publisher.wait_for(sealed).is_err() {
            return Err(self.poisoned());
        }
        // A batch may span keyspaces: none of it may be in a table before all of it is durable in
        // the log.
        let durable = self.wal.indexes().end;
        self.wal.sync()?;
        let drafts = Drafts::new(self);
        for flush in &mut flushes {
            flush.metas = self.write_memtables(flush.keyspace, &flush.waiting, &drafts)?;
        }
        let metas = flushes.iter().flat_map(|flush| &flush.metas);
        let (count, bytes) = (flushes.len() as u64, metas.map(|meta| meta.size).sum());
        self.install_flushes(flushes)?;
        drafts.keep();
        add(&self.stats.flushes, count);
        add(&self.stats.flushed_bytes, bytes);
        drop(guards);
        Ok(Some(durable))
    }

    fn write_memtables(
        &self,
        keyspace: &Keyspace,
        memtables: &[Arc<Memtable>],
        drafts: &Drafts<'_>,
    ) -> Result<Vec<FileMeta>> {
        let options = keyspace.options();
        let horizon = self.snapshots.horizon(self);
        let cursors = memtables
            .iter()
            .map(|memtable| MemtableCursor::new(Arc::clone(memtable)));
        let mut cursor = MergingCursor::new(cursors.map(EntrySource::Memory).collect());
        let ranges = ranges_of(memtables);
        let oldest = memtables
            .iter()
            .map(|memtable| memtable.oldest_sequence())
            .min();
        let factory = TableFactory {
            vfs: &self.vfs,
            tables: &self.tables,
            settings: TableSettings::new(
                options,
                0,
                oldest.unwrap_or(0),
                self.time.now(),
                self.options.table_version,
            ),
            table_bytes: u64::MAX,
            number: &|| drafts.number(),
            progress: &|bytes| {
                self.limit_rate(bytes);
                Ok(())
            },
            cuts: Vec::new(),
            part: None,
        };
        let kept = kept_ranges(&ranges, &horizon, &|_, _| false);
        let mut output = CompactionOutput::new(factory, kept);
        let is_bottom = |_: &[u8]| false;
        let mut rules = CompactionRules::new(options, &horizon, &ranges, &is_bottom);
        cursor.first()?;
        while cursor.is_valid() {
            rules.take(cursor.key(), cursor.tag(), cursor.value(), &mut output)?;
            cursor.next()?;
        }
        rules.finish(&mut output)?;
        output.finish()
    }

    fn install_flushes(&self, flushes: Vec<Flush<'_>>) -> Result<()> {
        self.vfs.sync_dir(&self.dir)?;
        let mut state = self.state.lock();
        let mut edits = Vec::new();
        if self.retention.is_enabled() {
            let record = self.retention.replay_from();
            edits.push(Edit::ReplayFrom { record });
        }
        let mut installs = Vec::with_capacity(flushes.len());
        for flush in flushes {
            let id = flush.keyspace.id();
            let run = self.next_file();
            edits.push(Edit::Flushed {
                keyspace: id,
                sequence: flush.sealed,
            });
            let mut added = Vec::new();
            for meta in flush.metas {
                let path = self.tables.path_of(meta.number);
                edits.push(Edit::FileAdded {
                    keyspace: id,
                    level: 0,
                    run,
                    meta: meta.clone(),
                });
                added.push((0, run, TableFile::new(meta, path, &self.graveyard)));
            }
            installs.push((flush.keyspace, flush.waiting, flush.sealed, added));
        }
        self.append_edits(&mut state, edits)?;
        for (keyspace, flushed, sealed, added) in installs {
            let version = Arc::clone(&keyspace.view().version);
            let version = version.changed(&HashSet::new(), &added, Some(sealed));
            self.install(keyspace, version, &flushed);
        }
        Ok(())
    }

    /// Drops the part of the log that neither memtables nor readers of changes need any longer.
    /// Everything before the record `durable` is durable.
    fn truncate_log(&self, durable: u64) -> Result<()> {
        let unflushed = self.oldest_unflushed();
        self.retention.raise_replay(unflushed.min(durable));
        self.wal.truncate_front(unflushed.min(self.retained_from()))
    }

    /// The first record that may have entries that are not in tables.
    fn oldest_unflushed(&self) -> u64 {
        let end = {
            // Memtables need all records that have an index now, or none of them.
            let _commit = self.commit.lock();
            self.wal.indexes().end
        };
        let keyspaces = self.keyspaces.read();
        let oldest = keyspaces.iter().filter_map(|keyspace| {
            let view = keyspace.glance();
            view.memtables().map(|one| one.first_record()).min()
        });
        let replayed = self.replayed.load(Ordering::Acquire);
        oldest.fold(end.min(replayed), u64::min)
    }
}

fn ranges_of(memtables: &[Arc<Memtable>]) -> RangeDeletes {
    let mut deletes = Vec::new();
    for ranges in memtables
        .iter()
        .filter_map(|memtable| memtable.range_deletes())
    {
        for (start, end, sequences) in ranges.iter() {
            deletes.extend(sequences.iter().map(|&sequence| RangeDelete {
                start: start.to_vec(),
                end: end.to_vec(),
                sequence,
            }));
        }
    }
    RangeDeletes::new(&deletes)
}

#[cfg(test)]
mod tests {
    use crate::vfs::MemoryVfs;
    use crate::{Db, DbOptions, Durability, KeyspaceOptions, WriteBatch};
    use std::sync::Arc;

    #[test]
    fn a_keyspace_that_is_in_a_group_twice_is_flushed_once() {
        let options = DbOptions {
            vfs: Arc::new(MemoryVfs::new()),
            ..DbOptions::default()
        };
        let db = Db::open("/db", options).unwrap();
        let space = db.create_keyspace("k", KeyspaceOptions::default());
        let space = space.unwrap();
        let mut batch = WriteBatch::new();
        batch.put(&space, b"key", b"value");
        db.write(batch, Durability::Buffered).unwrap();
        let active = Arc::clone(&space.view().active);
        db.core.rotate(&space, &active).unwrap();
        db.core.flush(&[space.clone(), space]).unwrap();
        assert_eq!(db.stats().flushes, 1);
    }
}
