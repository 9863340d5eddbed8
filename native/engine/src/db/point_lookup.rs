//! The steps of a read: memtables, then runs, newest first, until the result is determined.

use std::sync::Arc;

use super::keyspace::SuperVersion;
use super::snapshots::DbSnapshot;
use super::{DbCore, Keyspace};
use crate::compaction::shape::Separation;
use crate::error::{Error, Result};
use crate::head::HashedKey;
use crate::key::{EntryKind, Millis, Sequence, Tag, split_expiry};
use crate::memtable::Memtable;
use crate::options::KeyspaceOptions;
use crate::table::lookup::Visit;
use crate::table::reader::TableReader;
use crate::value::ValueBytes;
use crate::version::KeyspaceVersion;
use crate::version::file::TableFile;

/// What a read sees: entries up to a sequence, not expired at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visibility {
    pub(crate) sequence: Sequence,
    /// `None` for now, which is only read if an entry expires.
    time: Option<Millis>,
}

impl Visibility {
    /// Must be created after the view: a newer visibility does not see what a compaction dropped.
    pub(crate) fn new(core: &DbCore, snapshot: Option<&DbSnapshot>) -> Self {
        Self {
            sequence: snapshot.map_or_else(|| core.publisher.visible(), DbSnapshot::sequence),
            time: snapshot.map(DbSnapshot::time),
        }
    }

    /// A visibility in which nothing has expired.
    pub(crate) fn timeless(self) -> Self {
        Self {
            time: Some(0),
            ..self
        }
    }

    pub(crate) fn is_expired(&self, core: &DbCore, expiry: Millis) -> bool {
        expiry <= self.time.unwrap_or_else(|| core.time.now())
    }
}

/// What hides all older entries of a key.
enum End {
    Value(ValueBytes),
    Nothing,
}

/// A point lookup in progress.
struct PointLookup<'a> {
    core: &'a DbCore,
    key: HashedKey<'a>,
    visibility: Visibility,
    /// The newest range delete that covers the key.
    covered: Sequence,
    /// The newest entry that no range delete covers; 0 before the first.
    newest: Sequence,
    /// Newest first.
    operands: Vec<ValueBytes>,
    /// Set once all older entries are hidden: the value, if there is one.
    end: Option<End>,
    malformed: bool,
}

impl PointLookup<'_> {
    /// Processes an entry; older ones of the key follow.
    fn take(&mut self, tag: Tag, value: impl FnOnce() -> ValueBytes) -> Visit {
        if tag.sequence() <= self.covered {
            self.end = Some(End::Nothing);
            return Visit::Enough;
        }
        self.newest = self.newest.max(tag.sequence());
        match tag.kind() {
            Some(EntryKind::Merge) => {
                self.operands.push(value());
                return Visit::Older;
            }
            Some(EntryKind::Put) => self.end = Some(End::Value(value())),
            Some(EntryKind::PutExpiring) => self.end = Some(self.unless_expired(value())),
            Some(EntryKind::Delete | EntryKind::DeleteWith) => self.end = Some(End::Nothing),
            Some(EntryKind::RangeDelete) | None => {
                self.malformed = true;
                self.end = Some(End::Nothing);
            }
        }
        Visit::Enough
    }

    fn unless_expired(&mut self, value: ValueBytes) -> End {
        let Some((Some(expiry), _)) = split_expiry(EntryKind::PutExpiring, &value) else {
            self.malformed = true;
            return End::Nothing;
        };
        let expired = self.visibility.is_expired(self.core, expiry);
        if expired {
            End::Nothing
        } else {
            End::Value(value.skip(crate::key::EXPIRY_BYTES))
        }
    }

    fn in_memtable(&mut self, memtable: &Memtable) {
        if let Some(ranges) = memtable.range_deletes() {
            let covering = ranges.covering(self.key.key, self.visibility.sequence);
            self.covered = self.covered.max(covering);
        }
        let HashedKey { key, hash, .. } = self.key;
        for entry in memtable.versions(key, hash, Tag::seek(self.visibility.sequence)) {
            if self.take(entry.tag, || entry.value()) == Visit::Enough {
                return;
            }
        }
        self.end_if_covered();
    }

    fn in_file(&mut self, file: &Arc<TableFile>) -> Result<()> {
        let core = self.core;
        core.tables.with(file, |table| self.in_table(table))
    }

    fn in_table(&mut self, table: &Arc<TableReader>) -> Result<()> {
        if let Some(ranges) = table.range_deletes() {
            let covering = ranges.covering(self.key.key, self.visibility.sequence);
            self.covered = self.covered.max(covering);
        }
        let (key, tag) = (self.key, Tag::seek(self.visibility.sequence));
        table.get(&key, tag, &mut |tag, value| self.take(tag, || value))?;
        if self.malformed {
            let detail = "an entry is malformed although its checksum matches";
            return Err(Error::corruption(table.path(), 0, detail));
        }
        self.end_if_covered();
        Ok(())
    }

    /// If the position of a table does not imply its age: takes the newest entry of all.
    fn in_all_files(&mut self, version: &KeyspaceVersion) -> Result<()> {
        let (key, seek) = (self.key, Tag::seek(self.visibility.sequence));
        let mut newest: Option<(Tag, ValueBytes)> = None;
        for file in version.runs().flat_map(|run| run.files_of(key.key)) {
            let sequence = newest.as_ref().map_or(0, |(tag, _)| tag.sequence());
            if file.meta.last_sequence < sequence.max(self.covered) {
                continue;
            }
            let table = self.core.tables.table(file)?;
            if let Some(ranges) = table.range_deletes() {
                let covering = ranges.covering(key.key, self.visibility.sequence);
                self.covered = self.covered.max(covering);
            }
            table.get(&key, seek, &mut |tag, value| {
                if newest
                    .as_ref()
                    .is_none_or(|(newer, _)| newer.sequence() < tag.sequence())
                {
                    newest = Some((tag, value));
                }
                Visit::Enough
            })?;
        }
        if let Some((tag, value)) = newest {
            self.take(tag, || value);
        }
        if self.malformed {
            let what = "an entry is malformed although its checksum matches".into();
            return Err(Error::InvalidArgument { what });
        }
        Ok(())
    }

    /// A range delete of one source is newer than all that older sources have of the key.
    fn end_if_covered(&mut self) {
        if self.covered > 0 && self.end.is_none() {
            self.end = Some(End::Nothing);
        }
    }

    /// The value, and the sequence of its newest entry.
    fn fold(self, options: &KeyspaceOptions) -> Result<Option<(Sequence, ValueBytes)>> {
        let sequence = self.newest;
        let below = match self.end {
            Some(End::Value(value)) => Some(value),
            Some(End::Nothing) | None => None,
        };
        if self.operands.is_empty() {
            return Ok(below.map(|value| (sequence, value)));
        }
        let merge = merge_of(options)?;
        let operands: Vec<&[u8]> = self.operands.iter().rev().map(AsRef::as_ref).collect();
        let value = merge.full(self.key.key, below.as_deref(), &operands);
        Ok(Some((sequence, value.into())))
    }
}

/// The keyspace's merge; operands were written when it had one.
pub(crate) fn merge_of(options: &KeyspaceOptions) -> Result<&dyn crate::merge::Merge> {
    options
        .merge
        .as_deref()
        .ok_or_else(|| Error::InvalidArgument {
            what: "the keyspace holds merge operands and was opened without its merge".into(),
        })
}

impl DbCore {
    pub(crate) fn get(
        &self,
        keyspace: &Keyspace,
        key: &[u8],
        snapshot: Option<&DbSnapshot>,
    ) -> Result<Option<ValueBytes>> {
        let view = keyspace.glance();
        let visibility = Visibility::new(self, snapshot);
        self.get_in(&view, keyspace.options(), key, visibility)
    }

    pub(crate) fn get_in(
        &self,
        view: &SuperVersion,
        options: &KeyspaceOptions,
        key: &[u8],
        visibility: Visibility,
    ) -> Result<Option<ValueBytes>> {
        let newest = self.get_with_sequence(view, options, key, visibility)?;
        Ok(newest.map(|(_, value)| value))
    }

    /// The value of a key, and the sequence of its newest visible entry.
    pub(crate) fn get_with_sequence(
        &self,
        view: &SuperVersion,
        options: &KeyspaceOptions,
        key: &[u8],
        visibility: Visibility,
    ) -> Result<Option<(Sequence, ValueBytes)>> {
        let mut lookup = PointLookup {
            core: self,
            key: HashedKey::new(key, &options.head),
            visibility,
            covered: 0,
            newest: 0,
            operands: Vec::new(),
            end: None,
            malformed: false,
        };
        for memtable in view.memtables() {
            lookup.in_memtable(memtable);
            if lookup.end.is_some() {
                return lookup.fold(options);
            }
        }
        if options.layout().separation() == Separation::Zones {
            lookup.in_all_files(&view.version)?;
            return lookup.fold(options);
        }
        for run in view.version.runs() {
            for file in run.files_of(key) {
                lookup.in_file(file)?;
                if lookup.end.is_some() {
                    return lookup.fold(options);
                }
            }
        }
        lookup.fold(options)
    }

    /// Whether a key was written, or covered by a range delete, after `since`.
    pub(crate) fn newer_than(
        &self,
        keyspace: &Keyspace,
        key: &[u8],
        since: Sequence,
    ) -> Result<bool> {
        let view = keyspace.view();
        let newest = Visibility::new(self, None).sequence;
        let lookup = HashedKey::new(key, &keyspace.options().head);
        for memtable in view.memtables() {
            let ranges = memtable.range_deletes();
            if ranges.is_some_and(|ranges| ranges.covering(key, newest) > since) {
                return Ok(true);
            }
            let first = memtable
                .versions(key, lookup.hash, Tag::seek(newest))
                .next();
            if first.is_some_and(|entry| entry.tag.sequence() > since) {
                return Ok(true);
            }
        }
        let runs = view.version.runs();
        for file in runs.flat_map(|run| run.files_of(key)) {
            if file.meta.last_sequence <= since {
                continue;
            }
            let table = self.tables.table(file)?;
            let ranges = table.range_deletes();
            let mut newer = ranges.is_some_and(|ranges| ranges.covering(key, newest) > since);
            table.get(&lookup, Tag::seek(newest), &mut |tag, _| {
                newer |= tag.sequence() > since;
                Visit::Enough
            })?;
            if newer {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
