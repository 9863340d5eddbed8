//! Layouts: how the tables of a keyspace are arranged, and what is compacted next to keep them so.
//!
//! A [`TableLayout`] receives the [`KeyspaceShape`] of a keyspace and returns a [`CompactionPlan`].
//! It sees tables by number, size, keys and zone, and never reads or writes; [`Strategy`] contains
//! the engine's own. State from one plan to the next, such as where to continue, is its *cursor*:
//! the manifest updates it atomically with the tables of the plan.

use std::fmt::Debug;
use std::sync::Arc;

use super::plan::CompactionPlan;
use crate::error::{Error, Result};
use crate::extract::ZoneMap;
use crate::key::Millis;
use crate::options::{KeyspaceOptions, Strategy};
use crate::version::file::TableFile;
use crate::version::{KeyspaceVersion, LEVELS, SortedRun};

/// How the tables of a level are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Apart {
    /// By key. All entries of a key are newer in a lower level, and in a newer run of a level: a
    /// lookup stops at the first entry. A plan that would violate this order is rejected.
    Keys,
    /// By zone: compactions divide entries by [`TableLayout::part_of`], and each part is a separate
    /// run. A key may have newer entries below older ones, if its zone changed. So a lookup
    /// searches all tables that may have the key, any table may contain what a delete hides, and
    /// merge operands, which need their neighbours, are rejected.
    Zones,
}

/// Arranges tables. Must be pure: the same plan for the same shape.
pub trait TableLayout: Debug + Send + Sync {
    /// A stable name. The cursor of a layout with another name is not passed to it.
    fn name(&self) -> &'static str;

    /// How the tables below level 0 are separated. Must never change.
    fn apart(&self) -> Apart {
        Apart::Keys
    }

    /// Whether deletes must describe what they delete, so that they reach the part of their target.
    /// Then [`crate::WriteBatch::delete`] is rejected in favour of
    /// [`crate::WriteBatch::delete_with`].
    fn asks_for_attributes(&self) -> bool {
        false
    }

    /// The most urgent compaction, if one is needed.
    fn choose(&self, shape: &KeyspaceShape<'_>) -> Option<CompactionPlan>;

    /// The target level of a full compaction.
    fn bottom(&self, shape: &KeyspaceShape<'_>) -> usize {
        shape.version.deepest().max(1)
    }

    /// The part of a level to which an entry with this zone belongs, if parts are separated by
    /// zone. All parts are written at once: a few dozen are fine, and each needs up to 1 MiB
    /// meanwhile.
    fn part_of(&self, _zone: &ZoneMap, _level: usize) -> u8 {
        0
    }
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

impl TableLayout for Strategy {
    fn name(&self) -> &'static str {
        match self {
            Self::Leveled { .. } => "leveled",
            Self::SizeTiered { .. } => "size-tiered",
            Self::LazyLeveled { .. } => "lazy-leveled",
            Self::TimeWindow { .. } => "time-window",
        }
    }

    fn choose(&self, shape: &KeyspaceShape<'_>) -> Option<CompactionPlan> {
        let (version, options) = (shape.version, shape.options);
        match *self {
            Self::Leveled { fanout } => super::leveled::choose(version, options, fanout),
            Self::SizeTiered { runs } => super::tiered::choose(version, options, runs, false),
            Self::LazyLeveled { runs } => super::tiered::choose(version, options, runs, true),
            Self::TimeWindow { window, runs } => super::window::choose(version, window, runs),
        }
    }

    fn bottom(&self, shape: &KeyspaceShape<'_>) -> usize {
        let (version, options) = (shape.version, shape.options);
        match *self {
            Self::TimeWindow { .. } => 0,
            Self::Leveled { fanout } => {
                super::leveled::level_for(version.size(), options, fanout).max(version.deepest())
            }
            _ => version.deepest().max(1),
        }
    }
}

/// Rejects incompatible options.
pub(crate) fn check(options: &KeyspaceOptions) -> Result<()> {
    let what = match options.layout().apart() {
        Apart::Zones if options.merge.is_some() => {
            "tables separated by zone cannot hold merge operands"
        }
        Apart::Zones if options.extractor.is_none() => {
            "tables separated by zone need an extractor, which returns the zones"
        }
        _ => return Ok(()),
    };
    Err(Error::InvalidArgument { what: what.into() })
}
