//! Bulk load: sorted entries become tables, bypassing the log and the memtables.
//!
//! The tables are written first, with sequences relative to a base that is not known yet. Then one
//! sequence is taken for all of them, everything older is flushed, and the tables become the newest
//! run. All entries become visible and durable at once.

use std::collections::HashSet;
use std::sync::Arc;

use super::drafts::Drafts;
use super::{Db, DbCore, Keyspace};
use crate::error::{Error, Result};
use crate::key::{EntryKind, Sequence, Tag};
use crate::table::builder::{TableBuilder, TableSettings};
use crate::version::edit::Edit;
use crate::version::file::{FileMeta, Largest, TableFile};

/// A table that is not finished.
struct PartialTable {
    number: u64,
    builder: TableBuilder,
}

impl DbCore {
    /// Puts entries with ascending keys. Returns their sequence, or `None` if there are none.
    pub(crate) fn bulk_load(
        &self,
        keyspace: &Keyspace,
        entries: &mut dyn Iterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<Option<Sequence>> {
        self.check()?;
        self.find_room()?;
        let drafts = Drafts::new(self);
        let tables = self.write_unfinished(keyspace, entries, &drafts)?;
        if tables.is_empty() {
            return Ok(None);
        }
        // There are no other flushes from here on, so the new run is newer than all others, and
        // older than what is written after it.
        let active = Arc::clone(&keyspace.view().active);
        self.rotate(keyspace, &active)?;
        loop {
            self.flush(std::slice::from_ref(keyspace))?;
            let _flushing = keyspace.0.flushing.lock();
            if !keyspace.view().waiting.is_empty() {
                continue;
            }
            let (sequence, number) = {
                let mut commit = self.commit.lock();
                let view = keyspace.view();
                if !view.waiting.is_empty() || !view.active.is_empty() {
                    drop(commit);
                    self.seal_active(keyspace);
                    continue;
                }
                self.check()?;
                if let Some(why) = self.wal.why_full() {
                    return Err(Error::Full { why });
                }
                let sequence = commit.next_sequence;
                commit.next_sequence += 1;
                (sequence, self.publisher.register(sequence, None))
            };
            let installed = self.finish_tables(keyspace, tables, sequence);
            if let Err(error) = installed {
                if error.is_full() {
                    // Nothing has this sequence.
                    return self
                        .publisher
                        .finish(number, sequence)
                        .map_or_else(|_| Err(self.poisoned()), |()| Err(error));
                }
                self.poison(&error);
                self.publisher.fail();
                return Err(error);
            }
            drafts.keep();
            if self.publisher.finish(number, sequence).is_err() {
                return Err(self.poisoned());
            }
            self.work.wake();
            return Ok(Some(sequence));
        }
    }

    fn seal_active(&self, keyspace: &Keyspace) {
        let active = Arc::clone(&keyspace.view().active);
        if !active.is_empty() {
            let mut commit = self.commit.lock();
            let last = commit.next_sequence - 1;
            self.replace_memtable(&mut commit, keyspace, &active, last);
        }
    }

    fn write_unfinished(
        &self,
        keyspace: &Keyspace,
        entries: &mut dyn Iterator<Item = (Vec<u8>, Vec<u8>)>,
        drafts: &Drafts<'_>,
    ) -> Result<Vec<PartialTable>> {
        let options = keyspace.options();
        let settings =
            TableSettings::new(options, 0, 0, self.time.now(), self.options.table_version);
        let mut tables: Vec<PartialTable> = Vec::new();
        let mut last: Option<Vec<u8>> = None;
        for (key, value) in entries {
            if last.as_ref().is_some_and(|last| *last >= key) {
                return Err(Error::InvalidArgument {
                    what: "the keys of a bulk load do not ascend".into(),
                });
            }
            let full = |table: &PartialTable| table.builder.size() >= options.table_bytes;
            if tables.last().is_none_or(full) {
                let number = drafts.number();
                let file = self.vfs.create(&self.tables.path_of(number))?;
                let builder = TableBuilder::new(file, settings.clone());
                tables.push(PartialTable { number, builder });
            }
            if let Some(table) = tables.last_mut() {
                table
                    .builder
                    .add(&key, Tag::new(0, EntryKind::Put), &value)?;
            }
            last = Some(key);
        }
        Ok(tables)
    }

    fn finish_tables(
        &self,
        keyspace: &Keyspace,
        tables: Vec<PartialTable>,
        sequence: Sequence,
    ) -> Result<()> {
        let run = self.next_file();
        let mut added = Vec::new();
        let mut edits = Vec::new();
        for table in tables {
            let written = table.builder.finish_at(sequence)?;
            let Some((smallest, key)) = written.keys.clone() else {
                continue;
            };
            let exclusive = false;
            let meta = FileMeta::new(
                table.number,
                (smallest, Largest { key, exclusive }),
                &written,
            );
            edits.push(Edit::FileAdded {
                keyspace: keyspace.id(),
                level: 0,
                run,
                meta: meta.clone(),
            });
            let path = self.tables.path_of(meta.number);
            added.push((0, run, TableFile::new(meta, path, &self.graveyard)));
        }
        self.vfs.sync_dir(&self.dir)?;
        // What has a lower sequence must not be lost while this survives.
        self.wal.sync()?;
        let mut state = self.state.lock();
        self.append_edits(&mut state, edits)?;
        let version = keyspace
            .view()
            .version
            .changed(&HashSet::new(), &added, None);
        self.install(keyspace, version, &[]);
        Ok(())
    }
}

impl Db {
    /// Puts many entries with ascending keys, bypassing the log. They become visible and durable at
    /// once. Returns their sequence, or `None` if there are none.
    pub fn bulk_load(
        &self,
        keyspace: &Keyspace,
        entries: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>,
    ) -> Result<Option<Sequence>> {
        self.core.bulk_load(keyspace, &mut entries.into_iter())
    }
}
