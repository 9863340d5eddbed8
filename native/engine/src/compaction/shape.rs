//! The shape of a keyspace: its tables, as a layout sees them.

use std::sync::Arc;

use crate::extract::ZoneMap;
use crate::key::Millis;
use crate::options::KeyspaceOptions;
use crate::version::file::TableFile;
use crate::version::{KeyspaceVersion, LEVELS, SortedRun};

/// How the tables of a level are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Separation {
    /// By key. All entries of a key are newer in a lower level, and in a newer run of a level: a
    /// lookup stops at the first entry. A plan that would violate this order is rejected.
    Keys,
    /// By zone: compactions divide entries by [`TableLayout::part_of`], and each part is a separate
    /// run. A key may have newer entries below older ones, if its zone changed. So a lookup
    /// searches all tables that may have the key, any table may contain what a delete hides, and
    /// merge operands, which need their neighbours, are rejected.
    Zones,
}

/// The tables of a keyspace, as a layout sees them.
#[derive(Debug, Clone, Copy)]
pub struct KeyspaceShape<'a> {
    pub(crate) version: &'a KeyspaceVersion,
    pub(crate) options: &'a KeyspaceOptions,
    now: Millis,
}

impl<'a> KeyspaceShape<'a> {
    pub(crate) fn new(
        version: &'a KeyspaceVersion,
        options: &'a KeyspaceOptions,
        now: Millis,
    ) -> Self {
        Self {
            version,
            options,
            now,
        }
    }

    /// The maximum number of levels. Flushes go to level 0.
    pub fn levels(&self) -> usize {
        LEVELS
    }

    /// The runs of a level, newest first.
    pub fn runs(&self, level: usize) -> impl Iterator<Item = RunShape<'a>> + use<'a> {
        let runs = self.version.level(level).iter();
        runs.map(move |run| RunShape { level, run })
    }

    /// The keyspace's options.
    pub fn options(&self) -> &'a KeyspaceOptions {
        self.options
    }

    /// The time of the oldest snapshot, or now.
    pub fn now(&self) -> Millis {
        self.now
    }

    /// The cursor that the last plan of this layout set; empty before the first.
    pub fn cursor(&self) -> &'a [u8] {
        let (layout, cursor) = &*self.version.cursor;
        if layout == self.options.layout().name() {
            cursor
        } else {
            &[]
        }
    }
}

/// A run: tables in key order that do not overlap.
#[derive(Debug, Clone, Copy)]
pub struct RunShape<'a> {
    level: usize,
    run: &'a Arc<SortedRun>,
}

impl<'a> RunShape<'a> {
    /// Larger is newer.
    pub fn id(&self) -> u64 {
        self.run.id
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.run.size()
    }

    /// The part that its tables belong to, if parts are separated by zone.
    pub fn part(&self) -> Option<u8> {
        self.tables().next()?.part()
    }

    /// Its tables, in key order.
    pub fn tables(&self) -> impl Iterator<Item = TableShape<'a>> + use<'a> {
        let (level, run) = (self.level, self.run);
        let files = run.files.iter();
        files.map(move |file| TableShape { level, run, file })
    }
}

/// A table.
#[derive(Debug, Clone, Copy)]
pub struct TableShape<'a> {
    pub(crate) level: usize,
    pub(crate) run: &'a Arc<SortedRun>,
    pub(crate) file: &'a Arc<TableFile>,
}

impl<'a> TableShape<'a> {
    /// Its number, which is part of its name.
    pub fn number(&self) -> u64 {
        self.file.meta.number
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.file.meta.size
    }

    /// A lower bound of its keys.
    pub fn smallest(&self) -> &'a [u8] {
        &self.file.meta.smallest
    }

    /// An upper bound of its keys.
    pub fn largest(&self) -> &'a [u8] {
        &self.file.meta.largest.key
    }

    /// The number of entries, and how many of them are deletes.
    pub fn entries(&self) -> (u64, u64) {
        (self.file.meta.entries, self.file.meta.deletes)
    }

    /// The engine's time when its newest entries were written, at the latest.
    pub fn written_until(&self) -> Millis {
        self.file.meta.written_until
    }

    /// Its part, if parts are separated by zone and a compaction wrote it.
    pub fn part(&self) -> Option<u8> {
        Some(self.file.meta.about.as_ref()?.0)
    }

    /// The zone of its entries, if parts are separated by zone and a compaction wrote it.
    pub fn zone(&self) -> Option<&'a ZoneMap> {
        Some(&self.file.meta.about.as_ref()?.1)
    }
}
