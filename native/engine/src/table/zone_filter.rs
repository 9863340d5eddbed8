//! Skipping blocks and tables by their zones.
//!
//! A filtered cursor returns at least all entries whose zone may match; what it skips must not hide
//! anything that it returns. So it is used in keyspaces in which all entries of a key have the same
//! zone, deletes included, as for lists.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::extract::{ExtractorVersion, ZoneMap};
use crate::table::reader::TableReader;

/// Decides which zones may match, and counts.
pub(crate) struct ZoneFilter {
    /// Zones that another extractor made are ignored; those of any version are used.
    extractor: &'static str,
    may_match: Box<dyn Fn(&ZoneMap) -> bool + Send + Sync>,
    tables_skipped: AtomicU64,
    blocks: AtomicU64,
    blocks_skipped: AtomicU64,
}

impl ZoneFilter {
    pub(crate) fn new(
        extractor: &'static str,
        may_match: Box<dyn Fn(&ZoneMap) -> bool + Send + Sync>,
    ) -> Self {
        Self {
            extractor,
            may_match,
            tables_skipped: AtomicU64::new(0),
            blocks: AtomicU64::new(0),
            blocks_skipped: AtomicU64::new(0),
        }
    }

    /// Whether a whole table can be skipped.
    pub(crate) fn skips_table(&self, table: &TableReader) -> bool {
        let skips = table
            .zone(ExtractorVersion::any(self.extractor))
            .is_some_and(|zone| !(self.may_match)(zone));
        if skips {
            self.tables_skipped.fetch_add(1, Ordering::Relaxed);
        }
        skips
    }

    /// Whether a whole partition of a table can be skipped.
    pub(crate) fn skips_partition(&self, table: &TableReader, number: usize) -> bool {
        let skips = table
            .partition_zone(number, ExtractorVersion::any(self.extractor))
            .is_some_and(|zone| !(self.may_match)(zone));
        if skips {
            let blocks = table.partition_blocks(number);
            self.blocks_skipped.fetch_add(blocks, Ordering::Relaxed);
        }
        skips
    }

    /// Whether a block of a table can be skipped; `zone` is encoded.
    pub(crate) fn skips_block(&self, table: &TableReader, zone: Option<&[u8]>) -> bool {
        let known = table
            .zone(ExtractorVersion::any(self.extractor))
            .and(zone)
            .and_then(|bytes| ZoneMap::decode(bytes).ok());
        let skips = known.is_some_and(|zone| !(self.may_match)(&zone));
        let counter = if skips {
            &self.blocks_skipped
        } else {
            &self.blocks
        };
        counter.fetch_add(1, Ordering::Relaxed);
        skips
    }

    /// Tables skipped, blocks read, blocks skipped.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (
            read(&self.tables_skipped),
            read(&self.blocks),
            read(&self.blocks_skipped),
        )
    }
}

impl fmt::Debug for ZoneFilter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ZoneFilter({})", self.extractor)
    }
}
