//! Writes compaction output, split into tables.
//!
//! Tables are split between keys, when they reach their size or when they would overlap too much of
//! the next level. A range delete across a split is written to both tables, each as far as the
//! table reaches, so that a table always covers its range deletes.

use std::sync::Arc;

use super::rules::EntrySink;
use crate::coding::to_usize;
use crate::error::Result;
use crate::key::Tag;
use crate::range_delete::RangeDelete;
use crate::table::builder::{TableBuilder, TableSettings};
use crate::version::file::{FileMeta, Largest};
use crate::version::table_cache::TableCache;
use crate::vfs::Vfs;

/// How and where tables are created.
pub(crate) struct TableFactory<'a> {
    pub(crate) vfs: &'a Arc<dyn Vfs>,
    pub(crate) tables: &'a TableCache,
    pub(crate) settings: TableSettings,
    pub(crate) table_bytes: u64,
    /// Allocates a file number.
    pub(crate) number: &'a dyn Fn() -> u64,
    /// Called with the bytes written since the last call: limits the rate, and fails when the work
    /// was cancelled.
    pub(crate) progress: &'a dyn Fn(u64) -> Result<()>,
    /// Keys at which files of the level below the output start; splitting there is cheap.
    pub(crate) cuts: Vec<Vec<u8>>,
    /// The part that the tables belong to, if parts are separated by zone.
    pub(crate) part: Option<u8>,
}

/// A table being written.
struct PendingTable {
    number: u64,
    builder: TableBuilder,
    reported: u64,
}

/// Writes tables in order.
pub(crate) struct CompactionOutput<'a> {
    factory: TableFactory<'a>,
    /// Range deletes not written yet, by start.
    ranges: Vec<RangeDelete>,
    open: Option<PendingTable>,
    /// Keys below this are in finished tables.
    from: Vec<u8>,
    last_key: Vec<u8>,
    next_cut: usize,
    finished: Vec<FileMeta>,
}

impl<'a> CompactionOutput<'a> {
    pub(crate) fn new(factory: TableFactory<'a>, ranges: Vec<RangeDelete>) -> Self {
        Self {
            factory,
            ranges,
            open: None,
            from: Vec::new(),
            last_key: Vec::new(),
            next_cut: 0,
            finished: Vec::new(),
        }
    }

    /// Finishes the last table and returns all that were written.
    pub(crate) fn finish(mut self) -> Result<Vec<FileMeta>> {
        if self.open.is_some() || !self.ranges.is_empty() {
            self.end_table(None)?;
        }
        Ok(self.finished)
    }

    fn open(&mut self) -> Result<&mut PendingTable> {
        let open = if let Some(open) = self.open.take() {
            open
        } else {
            let number = (self.factory.number)();
            let file = self
                .factory
                .vfs
                .create(&self.factory.tables.path_of(number))?;
            PendingTable {
                number,
                builder: TableBuilder::new(file, self.factory.settings.clone()),
                reported: 0,
            }
        };
        Ok(self.open.insert(open))
    }

    /// Whether the table should end before `key`.
    fn is_full(&mut self, key: &[u8]) -> bool {
        let Some(open) = &self.open else {
            return false;
        };
        let size = open.builder.size();
        if size >= self.factory.table_bytes {
            return true;
        }
        let mut crossed = false;
        while self
            .factory
            .cuts
            .get(self.next_cut)
            .is_some_and(|cut| cut.as_slice() <= key)
        {
            self.next_cut += 1;
            crossed = true;
        }
        // Half a table is enough if it ends where one of the next level does.
        crossed && size >= self.factory.table_bytes / 2
    }

    /// Finishes the open table before the key `next`, with its share of range deletes.
    fn end_table(&mut self, next: Option<&[u8]>) -> Result<()> {
        let from = std::mem::take(&mut self.from);
        let mut later = Vec::new();
        let mut own = Vec::new();
        for mut delete in std::mem::take(&mut self.ranges) {
            if let Some(next) = next
                && delete.end.as_slice() > next
            {
                later.push(RangeDelete {
                    start: delete.start.clone().max(next.to_vec()),
                    ..delete.clone()
                });
                delete.end = next.to_vec();
            }
            delete.start = delete.start.max(from.clone());
            if delete.start < delete.end {
                own.push(delete);
            }
        }
        self.ranges = later;
        self.from = next.map(<[u8]>::to_vec).unwrap_or_default();
        if self.open.is_none() && own.is_empty() {
            return Ok(());
        }
        let open = self.open()?;
        for delete in &own {
            open.builder.add_range_delete(delete);
        }
        let (number, reported) = (open.number, open.reported);
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let written = open.builder.finish()?;
        (self.factory.progress)(written.size.saturating_sub(reported))?;
        if let Some(bounds) = bounds(written.keys.clone(), &own) {
            let mut meta = FileMeta::new(number, bounds, &written);
            meta.about = self.factory.part.zip(written.properties.zone).map(Box::new);
            self.finished.push(meta);
        }
        Ok(())
    }
}

impl EntrySink for CompactionOutput<'_> {
    fn keep(&mut self, key: &[u8], tag: Tag, value: &[u8]) -> Result<()> {
        if self.open.is_some() && self.last_key != key && self.is_full(key) {
            self.end_table(Some(key))?;
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        let open = self.open()?;
        open.builder.add(key, tag, value)?;
        let size = open.builder.size();
        let fresh = size - open.reported.min(size);
        if to_usize(fresh) >= REPORT_BYTES {
            open.reported = size;
            (self.factory.progress)(fresh)?;
        }
        Ok(())
    }
}

/// How often progress is reported, in bytes.
const REPORT_BYTES: usize = 256 << 10;

/// First and last key of a table, range deletes included.
fn bounds(keys: Option<(Vec<u8>, Vec<u8>)>, ranges: &[RangeDelete]) -> Option<(Vec<u8>, Largest)> {
    let mut bounds = keys.map(|(smallest, key)| {
        let exclusive = false;
        (smallest, Largest { key, exclusive })
    });
    for delete in ranges {
        let end = Largest {
            key: delete.end.clone(),
            exclusive: true,
        };
        bounds = Some(match bounds {
            None => (delete.start.clone(), end),
            Some((smallest, largest)) => (smallest.min(delete.start.clone()), largest.max(end)),
        });
    }
    bounds
}
