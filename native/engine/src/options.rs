//! How a database and its keyspaces behave.

use std::sync::Arc;

use crate::clock::{Clock, SystemClock};
use crate::compaction::layout::TableLayout;
use crate::extract::Extractor;
use crate::key::Millis;
use crate::lifetime::Lifetime;
use crate::merge::Merge;
use crate::vfs::{RealVfs, Vfs};
use crate::wal;

/// How blocks of a level are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// Fast, for what is soon rewritten.
    Lz4,
    /// Small, for what stays; with its level, 1 to 19.
    Zstd(i32),
}

/// How runs are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// One run a level, each `fanout` times the one above: reads are cheap.
    Leveled {
        /// How many times larger a level is than the one above.
        fanout: u64,
    },
    /// Up to `runs` runs a level, merged together into the next: writes are cheap.
    SizeTiered {
        /// How many runs a level collects.
        runs: usize,
    },
    /// Size-tiered, but the last level is one run.
    LazyLeveled {
        /// How many runs a level collects.
        runs: usize,
    },
    /// Runs are merged within windows of time, for entries that expire together.
    TimeWindow {
        /// The length of a window.
        window: Millis,
        /// How many runs the newest window collects before they are merged.
        runs: usize,
    },
}

/// What expiring puts of a keyspace mean for older entries of their key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// Each put expires by itself; an expired one hides older ones, as a delete does.
    ByEntry,
    /// All versions of a key expire at the same time: the caller's promise.
    ByKey,
}

/// How a keyspace behaves. The merge must stay the same for ever; all else may change.
#[derive(Debug, Clone)]
pub struct KeyspaceOptions {
    /// Folds merge operands; without it, merging is refused.
    pub merge: Option<Arc<dyn Merge>>,
    /// Operands are folded in memory as soon as no snapshot lies between them: for rows that change
    /// all the time.
    pub accumulates: bool,
    /// When keys expire, where a key itself says so.
    pub lifetime: Option<Arc<dyn Lifetime>>,
    /// Feeds zones.
    pub extractor: Option<Arc<dyn Extractor>>,
    /// What expiry means.
    pub expiry: Expiry,
    /// How runs are merged.
    pub strategy: Strategy,
    /// Arranges tables in place of the strategy.
    pub layout: Option<Arc<dyn TableLayout>>,
    /// A memtable larger than this is flushed.
    pub memtable_bytes: usize,
    /// Aimed size of data blocks before compression.
    pub block_bytes: usize,
    /// How many entries share prefixes with one another.
    pub restart_interval: usize,
    /// Bits of filter for each key; 0 for no filters.
    pub filter_bits: usize,
    /// So many last bytes of a key are left out of filters, where keys end with the time or the
    /// sequence of their write. Filters then say whether there are keys with the same head, which
    /// spares [`crate::Db::scan_head`] tables without them.
    pub tail_bytes: usize,
    /// Aimed size of tables.
    pub table_bytes: u64,
    /// Aimed size of the first level below the flushed runs.
    pub base_bytes: u64,
    /// Compression of levels, the first for flushed runs, the last for all that follow.
    pub compression: Vec<Compression>,
    /// How many flushed runs start a compaction.
    pub compact_at_runs: usize,
    /// How many flushed runs slow writers down.
    pub slow_at_runs: usize,
    /// How many flushed runs stop writers until there are fewer.
    pub stop_at_runs: usize,
}

impl Default for KeyspaceOptions {
    fn default() -> Self {
        Self {
            merge: None,
            accumulates: false,
            lifetime: None,
            extractor: None,
            expiry: Expiry::ByEntry,
            strategy: Strategy::Leveled { fanout: 10 },
            layout: None,
            memtable_bytes: 64 << 20,
            block_bytes: 4 << 10,
            restart_interval: 16,
            filter_bits: 10,
            tail_bytes: 0,
            table_bytes: 64 << 20,
            base_bytes: 256 << 20,
            compression: vec![Compression::Lz4, Compression::Lz4, Compression::Zstd(3)],
            compact_at_runs: 4,
            slow_at_runs: 20,
            stop_at_runs: 36,
        }
    }
}

impl KeyspaceOptions {
    /// Who arranges tables.
    pub(crate) fn layout(&self) -> &dyn TableLayout {
        self.layout.as_deref().unwrap_or(&self.strategy)
    }

    /// The compression of a level.
    pub(crate) fn compression_of(&self, level: usize) -> Compression {
        let chosen = self.compression.get(level).or(self.compression.last());
        chosen.copied().unwrap_or(Compression::None)
    }
}

/// How a database behaves.
#[derive(Debug, Clone)]
pub struct DbOptions {
    /// The file system.
    pub vfs: Arc<dyn Vfs>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// How its keyspaces behave, by name; those not named are opened with `default_keyspace`.
    pub keyspaces: Vec<(String, KeyspaceOptions)>,
    /// How keyspaces behave that were not named.
    pub default_keyspace: KeyspaceOptions,
    /// Also opens keyspaces whose merge is not given, for programs that look after any database:
    /// operands then stay as they are, and reading a key that has some fails.
    pub unknown_merges: bool,
    /// The budget of the block cache.
    pub cache_bytes: usize,
    /// The budget of open tables: half for their top index, properties and range deletes, half for
    /// index blocks and filters, of which those that do not fit come by way of the block cache.
    pub table_cache_bytes: usize,
    /// The budget of all memtables together; reaching it flushes the largest. As much again may wait
    /// for its flush, then writers wait too.
    pub memtables_bytes: usize,
    /// How many full memtables may wait for their flush in each keyspace.
    pub waiting_memtables: usize,
    /// A log longer than this flushes what it is kept for.
    pub log_bytes: u64,
    /// Sizes of the log's files.
    pub log: wal::WalOptions,
    /// Room that is kept in a file of its own while there is any, and given up when the database could
    /// not be opened otherwise: opening writes a manifest, and copies the unsynced end of the log. 0
    /// for none.
    pub reserve_bytes: u64,
    /// Threads for flushes and compactions. With 0 both are done by the writer that makes them
    /// necessary, in an order that tests can rely on.
    pub background_threads: usize,
    /// Threads that rewrite one large compaction side by side.
    pub sub_compactions: usize,
    /// Bytes a second that flushes and compactions write; 0 for no limit.
    pub write_rate: u64,
}

impl Default for DbOptions {
    fn default() -> Self {
        Self {
            vfs: Arc::new(RealVfs),
            clock: Arc::new(SystemClock),
            keyspaces: Vec::new(),
            default_keyspace: KeyspaceOptions::default(),
            unknown_merges: false,
            cache_bytes: 64 << 20,
            table_cache_bytes: 64 << 20,
            memtables_bytes: 256 << 20,
            waiting_memtables: 2,
            log_bytes: 512 << 20,
            log: wal::WalOptions::default(),
            reserve_bytes: 0,
            background_threads: 2,
            sub_compactions: 1,
            write_rate: 0,
        }
    }
}

impl DbOptions {
    /// These options with one budget for all memory: half of it for memtables, those that wait for
    /// their flush included, three eighths for the block cache, an eighth for open tables.
    #[must_use]
    pub fn within(self, memory_bytes: usize) -> Self {
        Self {
            memtables_bytes: memory_bytes / 4,
            cache_bytes: memory_bytes / 8 * 3,
            table_cache_bytes: memory_bytes / 8,
            ..self
        }
    }

    /// These options with one more keyspace.
    #[must_use]
    pub fn keyspace(mut self, name: impl Into<String>, options: KeyspaceOptions) -> Self {
        self.keyspaces.push((name.into(), options));
        self
    }

    /// How a keyspace behaves.
    pub(crate) fn keyspace_options(&self, name: &str) -> KeyspaceOptions {
        let named = self.keyspaces.iter().find(|(known, _)| known == name);
        named.map_or_else(
            || self.default_keyspace.clone(),
            |(_, options)| options.clone(),
        )
    }
}
