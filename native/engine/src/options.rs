//! The options of a database and its keyspaces.

use std::sync::Arc;

use crate::clock::{Clock, SystemClock};
use crate::compaction::layout::TableLayout;
use crate::extract::Extractor;
use crate::head::KeyHead;
use crate::key::Millis;
use crate::lifetime::Lifetime;
use crate::merge::Merge;
use crate::table::codec::Compression;
use crate::vfs::{RealVfs, Vfs};
use crate::wal;

/// How runs are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// One run per level, each `fanout` times the one above: reads are cheap.
    Leveled {
        /// The size ratio of a level to the one above.
        fanout: u64,
    },
    /// Up to `runs` runs per level, merged together into the next: writes are cheap.
    SizeTiered {
        /// How many runs a level collects.
        runs: usize,
    },
    /// Size-tiered, but the last level is one run.
    LazyLeveled {
        /// How many runs a level collects.
        runs: usize,
    },
    /// Runs are merged within time windows, for entries that expire together.
    TimeWindow {
        /// The length of a window.
        window: Millis,
        /// How many runs the newest window collects before they are merged.
        runs: usize,
    },
}

/// The version of the format in which tables are written. All versions up to the newest are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TableVersion {
    /// Read by all releases since entries have shapes.
    #[default]
    Three,
    /// With zones of partitions and with attribute maps. Releases before this version cannot read
    /// such tables, so that a program switches to it once no such release may open the database
    /// again.
    Four,
}

impl TableVersion {
    /// The number in the footer of tables.
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Three => 3,
            Self::Four => 4,
        }
    }
}

/// The effect of expiring puts on older entries of their key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// Each put expires independently; an expired one hides older ones, as a delete does.
    ByEntry,
    /// All versions of a key expire at the same time, as guaranteed by the caller.
    ByKey,
}

/// The options of a keyspace. The merge must never change; everything else may.
#[derive(Debug, Clone)]
pub struct KeyspaceOptions {
    /// Folds merge operands; without it, merge writes are rejected.
    pub merge: Option<Arc<dyn Merge>>,
    /// Operands are folded in memory as soon as no snapshot is between them: for rows that change
    /// constantly.
    pub accumulates: bool,
    /// Determines when keys expire, if the keys themselves do.
    pub lifetime: Option<Arc<dyn Lifetime>>,
    /// Extracts zones.
    pub extractor: Option<Arc<dyn Extractor>>,
    /// The effect of expiry.
    pub expiry: Expiry,
    /// How runs are merged.
    pub strategy: Strategy,
    /// Arranges tables instead of the strategy.
    pub layout: Option<Arc<dyn TableLayout>>,
    /// The size from which a memtable is flushed.
    pub memtable_bytes: usize,
    /// The target size of data blocks before compression.
    pub block_bytes: usize,
    /// The number of entries between restarts, which share prefixes.
    pub restart_interval: usize,
    /// Filter bits per key; 0 for no filters.
    pub filter_bits: usize,
    /// The part of a key that filters contain. If it is less than the key,
    /// [`crate::Db::scan_head`] skips tables without the head of the requested keys.
    pub head: KeyHead,
    /// The target size of tables.
    pub table_bytes: u64,
    /// The target size of the first level below the flushed runs.
    pub base_bytes: u64,
    /// Compression of levels: the first for flushed runs, the last for all following ones.
    pub compression: Vec<Compression>,
    /// The number of flushed runs that start a compaction.
    pub compact_at_runs: usize,
    /// The number of flushed runs that slow writers down.
    pub slow_at_runs: usize,
    /// The number of flushed runs that stop writers until there are fewer.
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
            head: KeyHead::Whole,
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
    /// The layout of tables.
    pub(crate) fn layout(&self) -> &dyn TableLayout {
        self.layout.as_deref().unwrap_or(&self.strategy)
    }

    /// The compression of a level.
    pub(crate) fn compression_of(&self, level: usize) -> Compression {
        let chosen = self.compression.get(level).or(self.compression.last());
        chosen.copied().unwrap_or(Compression::None)
    }
}

/// The options of a database.
#[derive(Debug, Clone)]
pub struct DbOptions {
    /// The file system.
    pub vfs: Arc<dyn Vfs>,
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// The options of keyspaces by name; others are opened with `default_keyspace`.
    pub keyspaces: Vec<(String, KeyspaceOptions)>,
    /// The options of keyspaces that are not named.
    pub default_keyspace: KeyspaceOptions,
    /// The version in which tables are written. Existing tables remain as they are until a
    /// compaction rewrites them.
    pub table_version: TableVersion,
    /// Also opens keyspaces whose merge is not given, for programs that maintain any database:
    /// operands then stay unfolded, and reading a key with operands fails.
    pub unknown_merges: bool,
    /// The budget of the block cache.
    pub cache_bytes: usize,
    /// The budget of open tables: half for their top index, properties and range deletes, half for
    /// index blocks and filters; those that do not fit use the block cache.
    pub table_cache_bytes: usize,
    /// The budget of all memtables together; when it is reached, the largest is flushed. As much
    /// again may wait for its flush; beyond that writers wait too.
    pub memtables_bytes: usize,
    /// The maximum number of full memtables that wait for their flush in each keyspace.
    pub waiting_memtables: usize,
    /// The size of the log since the oldest entry that was not flushed, beyond which memtables are
    /// flushed.
    pub log_bytes: u64,
    /// The size up to which the log is retained for readers of [`crate::Db::changes`] until they
    /// release it; 0 to retain only what opening needs. Manifests written with more than 0 cannot be
    /// read by releases without this option.
    pub retained_log_bytes: u64,
    /// Sizes of the log's files.
    pub log: wal::WalOptions,
    /// Space that is reserved in a file while there is any, and released if the database could not
    /// be opened otherwise: opening writes a manifest, and copies the unsynced end of the log. 0
    /// for none.
    pub reserve_bytes: u64,
    /// Threads for flushes and compactions. With 0 both run in the writer that makes them
    /// necessary, in a deterministic order for tests.
    pub background_threads: usize,
    /// The number of threads that rewrite one large compaction in parallel.
    pub sub_compactions: usize,
    /// The rate limit of flushes and compactions in bytes per second; 0 for no limit.
    pub write_rate: u64,
}

impl Default for DbOptions {
    fn default() -> Self {
        Self {
            vfs: Arc::new(RealVfs),
            clock: Arc::new(SystemClock),
            keyspaces: Vec::new(),
            default_keyspace: KeyspaceOptions::default(),
            table_version: TableVersion::default(),
            unknown_merges: false,
            cache_bytes: 64 << 20,
            table_cache_bytes: 64 << 20,
            memtables_bytes: 256 << 20,
            waiting_memtables: 2,
            log_bytes: 512 << 20,
            retained_log_bytes: 0,
            log: wal::WalOptions::default(),
            reserve_bytes: 0,
            background_threads: 2,
            sub_compactions: 1,
            write_rate: 0,
        }
    }
}

impl DbOptions {
    /// These options with one budget for all memory: half of it for memtables, including those
    /// waiting for their flush, three eighths for the block cache, an eighth for open tables.
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

    /// The options of a keyspace.
    pub(crate) fn keyspace_options(&self, name: &str) -> KeyspaceOptions {
        let named = self.keyspaces.iter().find(|(known, _)| known == name);
        named.map_or_else(
            || self.default_keyspace.clone(),
            |(_, options)| options.clone(),
        )
    }
}
