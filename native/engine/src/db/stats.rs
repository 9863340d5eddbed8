//! Counters of the database.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::DbCore;

/// Counters since the database was opened.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    batches: AtomicU64,
    entries: AtomicU64,
    batch_bytes: AtomicU64,
    pub(crate) flushes: AtomicU64,
    pub(crate) flushed_bytes: AtomicU64,
    pub(crate) compactions: AtomicU64,
    pub(crate) moves: AtomicU64,
    pub(crate) dropped_files: AtomicU64,
    pub(crate) compaction_read_bytes: AtomicU64,
    pub(crate) compaction_written_bytes: AtomicU64,
    pub(crate) unremoved_files: AtomicU64,
    slowed_micros: AtomicU64,
    stopped_micros: AtomicU64,
    waited_micros: AtomicU64,
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

impl Counters {
    #[inline]
    pub(crate) fn written(&self, record: &[u8], entries: u64) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.entries.fetch_add(entries, Ordering::Relaxed);
        self.batch_bytes
            .fetch_add(record.len() as u64, Ordering::Relaxed);
    }

    pub(crate) fn slowed(&self, by: Duration) {
        self.slowed_micros.fetch_add(micros(by), Ordering::Relaxed);
    }

    pub(crate) fn waited(&self, time: Duration) {
        self.waited_micros
            .fetch_add(micros(time), Ordering::Relaxed);
    }

    pub(crate) fn stopped<T>(&self, wait: impl FnOnce() -> T) -> T {
        let started = Instant::now();
        let result = wait();
        self.stopped_micros
            .fetch_add(micros(started.elapsed()), Ordering::Relaxed);
        result
    }
}

/// Increments a counter.
pub(crate) fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

/// One level of a keyspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelStats {
    /// How many runs it has.
    pub runs: usize,
    /// How many files.
    pub files: usize,
    /// Their size.
    pub bytes: u64,
    /// Their entries.
    pub entries: u64,
    /// The deletes among them.
    pub deletes: u64,
}

/// A keyspace.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyspaceStats {
    /// Its name.
    pub name: String,
    /// Bytes in memtables.
    pub memtable_bytes: usize,
    /// Full memtables that wait for their flush.
    pub waiting_memtables: usize,
    /// Newest first.
    pub levels: Vec<LevelStats>,
    /// The maximum number of memtables and runs that a lookup searches in turn.
    pub read_amplification: usize,
    /// Bytes of all tables divided by those of the oldest run, which has each key once: an upper
    /// bound for the space used relative to live entries. 1 without tables.
    pub space_amplification: f64,
}

/// Counters of the database since it was opened.
#[derive(Debug, Clone, PartialEq)]
pub struct Stats {
    /// Keyspaces, by name.
    pub keyspaces: Vec<KeyspaceStats>,
    /// The newest visible sequence.
    pub sequence: u64,
    /// Batches written.
    pub batches: u64,
    /// Entries written.
    pub entries: u64,
    /// Bytes of batches.
    pub batch_bytes: u64,
    /// Flushes done.
    pub flushes: u64,
    /// Bytes that flushes wrote.
    pub flushed_bytes: u64,
    /// Compactions done, without moves.
    pub compactions: u64,
    /// Compactions that only moved files down.
    pub moves: u64,
    /// Files dropped unread because everything in them had expired.
    pub dropped_files: u64,
    /// Files that could not be removed; the next opening tries again.
    pub unremoved_files: u64,
    /// Bytes that compactions read.
    pub compaction_read_bytes: u64,
    /// Bytes that compactions wrote.
    pub compaction_written_bytes: u64,
    /// All bytes written to tables and log, divided by the bytes of batches.
    pub write_amplification: f64,
    /// How long writers were slowed altogether, in microseconds.
    pub slowed_micros: u64,
    /// How long writers were stopped because of too many runs, in microseconds.
    pub stopped_micros: u64,
    /// How long writers waited for a flush, in microseconds.
    pub waited_micros: u64,
    /// Bytes in the block cache.
    pub cache_bytes: usize,
    /// Blocks found in the cache.
    pub cache_hits: u64,
    /// Blocks that had to be read.
    pub cache_misses: u64,
    /// Bytes of open tables.
    pub open_table_bytes: usize,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Syncs of the log, each for all writes that waited for one.
    pub log_syncs: u64,
    /// Open snapshots.
    pub snapshots: usize,
}

impl DbCore {
    pub(crate) fn collect_stats(&self) -> Stats {
        let keyspaces = self.keyspaces.read();
        let mut keyspaces: Vec<KeyspaceStats> = keyspaces.iter().map(KeyspaceStats::of).collect();
        keyspaces.sort_by(|left, right| left.name.cmp(&right.name));
        let counters = &self.stats;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let batch_bytes = read(&counters.batch_bytes);
        let flushed_bytes = read(&counters.flushed_bytes);
        let compaction_written_bytes = read(&counters.compaction_written_bytes);
        let written = batch_bytes + flushed_bytes + compaction_written_bytes;
        Stats {
            keyspaces,
            sequence: self.publisher.visible(),
            batches: read(&counters.batches),
            entries: read(&counters.entries),
            batch_bytes,
            flushes: read(&counters.flushes),
            flushed_bytes,
            compactions: read(&counters.compactions),
            moves: read(&counters.moves),
            dropped_files: read(&counters.dropped_files),
            unremoved_files: read(&counters.unremoved_files),
            compaction_read_bytes: read(&counters.compaction_read_bytes),
            compaction_written_bytes,
            write_amplification: written as f64 / batch_bytes.max(1) as f64,
            slowed_micros: read(&counters.slowed_micros),
            stopped_micros: read(&counters.stopped_micros),
            waited_micros: read(&counters.waited_micros),
            cache_bytes: self.cache.bytes(),
            cache_hits: self.cache.hits(),
            cache_misses: self.cache.misses(),
            open_table_bytes: self.tables.bytes() + self.cache.pins.used(),
            log_bytes: self.wal.size_bytes(),
            log_syncs: self.wal.syncs(),
            snapshots: self.snapshots.len(),
        }
    }
}

impl KeyspaceStats {
    fn of(keyspace: &super::Keyspace) -> Self {
        let view = keyspace.view();
        let levels = view.version.levels.iter().map(|runs| {
            let files = || {
                runs.iter()
                    .flat_map(|run| run.files.iter())
                    .map(|file| &file.meta)
            };
            LevelStats {
                runs: runs.len(),
                files: files().count(),
                bytes: files().map(|file| file.size).sum(),
                entries: files().map(|file| file.entries).sum(),
                deletes: files().map(|file| file.deletes).sum(),
            }
        });
        let oldest = view.version.runs().next_back().map(|run| run.size());
        let space_amplification = oldest.map_or(1.0, |oldest| {
            view.version.size() as f64 / oldest.max(1) as f64
        });
        Self {
            name: keyspace.name().to_owned(),
            memtable_bytes: view.memtables().map(|memtable| memtable.bytes()).sum(),
            waiting_memtables: view.waiting.len(),
            levels: levels.collect(),
            read_amplification: view.memtables().count() + view.version.runs().count(),
            space_amplification,
        }
    }
}
