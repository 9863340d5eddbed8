//! The steps of a flush: full memtables become a run of level 0.

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
use crate::memtable::{Memtable, MemtableCursor};
use crate::range_delete::{RangeDelete, RangeDeletes};
use crate::table::builder::TableSettings;
use crate::version::edit::Edit;
use crate::version::file::{FileMeta, TableFile};

impl DbCore {
    /// Flushes the full memtables of a keyspace. Returns whether there were any.
    pub(crate) fn flush(&self, keyspace: &Keyspace) -> Result<bool> {
        let flushed = self.flush_waiting(keyspace)?;
        if flushed {
            self.work.wake();
            match self.truncate_log() {
                // The next flush truncates the log.
                Err(error) if error.is_full() => {}
                truncated => truncated?,
            }
        }
        Ok(flushed)
    }

    /// Flushes without truncating the log: while it is replayed, what follows in it is needed.
    pub(crate) fn flush_waiting(&self, keyspace: &Keyspace) -> Result<bool> {
        let guard = keyspace.0.flushing.lock();
        let waiting = keyspace.view().waiting.clone();
        let Some(newest) = waiting.first() else {
            return Ok(false);
        };
        let sealed = newest.sealed_at();
        if self.publisher.wait_for(sealed).is_err() {
            return Err(self.poisoned());
        }
        // A batch may span keyspaces: none of it may be in a table before all of it is durable in
        // the log.
        self.wal.sync()?;
        let drafts = Drafts::new(self);
        let metas = self.write_memtables(keyspace, &waiting, &drafts)?;
        let bytes = metas.iter().map(|meta| meta.size).sum();
        self.install_flush(keyspace, &waiting, metas, sealed)?;
        drafts.keep();
        add(&self.stats.flushes, 1);
        add(&self.stats.flushed_bytes, bytes);
        drop(guard);
        Ok(true)
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
            settings: TableSettings::new(options, 0, oldest.unwrap_or(0), self.time.now()),
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

    fn install_flush(
        &self,
        keyspace: &Keyspace,
        memtables: &[Arc<Memtable>],
        metas: Vec<FileMeta>,
        sealed: u64,
    ) -> Result<()> {
        self.vfs.sync_dir(&self.dir)?;
        let mut state = self.state.lock();
        let run = self.next_file();
        let mut edits = vec![Edit::Flushed {
            keyspace: keyspace.id(),
            sequence: sealed,
        }];
        let mut added = Vec::new();
        for meta in metas {
            let path = self.tables.path_of(meta.number);
            edits.push(Edit::FileAdded {
                keyspace: keyspace.id(),
                level: 0,
                run,
                meta: meta.clone(),
            });
            added.push((0, run, TableFile::new(meta, path, &self.graveyard)));
        }
        self.append_edits(&mut state, edits)?;
        let version = keyspace
            .view()
            .version
            .changed(&HashSet::new(), &added, Some(sealed));
        keyspace.install(version, memtables);
        Ok(())
    }

    /// Drops the part of the log that nothing in memory needs any longer.
    fn truncate_log(&self) -> Result<()> {
        let needed = {
            let commit = self.commit.lock();
            let end = self.wal.indexes().end;
            let memtables = commit.active.iter().flat_map(|(keyspace, _)| {
                let view = keyspace.view();
                view.memtables()
                    .map(|memtable| memtable.first_record())
                    .collect::<Vec<u64>>()
            });
            let replayed = self.replayed.load(Ordering::Acquire);
            memtables.min().unwrap_or(end).min(end).min(replayed)
        };
        self.wal.truncate_front(needed)
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
