//! The interface of the compared systems: the operations of the workload, which the caller times.

use std::path::Path;

use crate::ours;
use crate::peers::{self, ListFormat};
use crate::workload::{Spot, WorkloadSetup};

pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How far subscriptions reach into the past and the future, and how long publications live.
pub(crate) const REACH: u64 = 10_000;
pub(crate) const LIFE: u64 = 20_000;

/// The compared systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    Dual,
    Two,
    Rep,
    Variable,
    Fixed,
    Single,
    RocksDb,
    LevelDb,
    RocksDbRewriting,
    LevelDbRewriting,
}

const SYSTEMS: [(System, &str); 10] = [
    (System::Dual, "dual"),
    (System::Two, "two"),
    (System::Rep, "rep"),
    (System::Variable, "variable"),
    (System::Fixed, "fixed"),
    (System::Single, "single"),
    (System::RocksDb, "rocksdb"),
    (System::LevelDb, "leveldb"),
    (System::RocksDbRewriting, "rocksdb-rewriting"),
    (System::LevelDbRewriting, "leveldb-rewriting"),
];

impl System {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let known = SYSTEMS.iter().find(|(_, name)| *name == text);
        known.map(|(system, _)| *system)
    }

    pub(crate) fn name(self) -> &'static str {
        let known = SYSTEMS.iter().find(|(system, _)| *system == self);
        known.map_or("", |(_, name)| name)
    }
}

/// The statistics that a system reports at the end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SystemStatistics {
    /// Entries that were examined.
    pub(crate) entries: u64,
    /// Lists in which the search stopped at an entry that was too old.
    pub(crate) early_stops: u64,
    /// Seeks in the store.
    pub(crate) seeks: u64,
    /// Blocks that were not in the cache.
    pub(crate) blocks_read: u64,
    /// The approximate size of a record in a batch.
    pub(crate) record_bytes: u64,
    /// Bytes written to the log and tables, divided by the bytes of records.
    pub(crate) write_amplification: f64,
    /// Runs that a lookup has to search.
    pub(crate) runs: usize,
    /// How long writers were throttled, stopped, or waited for a flush.
    pub(crate) stalled_ms: u64,
    /// The average delay of notifications.
    pub(crate) delay_ms: f64,
}

/// A system over an empty database.
pub(crate) trait BenchmarkJob {
    /// Prepares the next operation at this location and time. Not timed.
    fn prepare(&mut self, number: u64, spot: &Spot, now: u64) -> Outcome<()>;

    /// Publishes; returns the number of matching subscriptions.
    fn publish(&mut self) -> Outcome<u64>;

    /// Subscribes; returns the number of matching publications.
    fn subscribe(&mut self) -> Outcome<u64>;

    /// Runs polls that are due; returns how many publications they delivered.
    fn due(&mut self) -> Outcome<u64> {
        Ok(0)
    }

    /// Whether subscriptions are stored.
    fn stores_subscriptions(&self) -> bool {
        true
    }

    fn statistics(&self) -> SystemStatistics;
}

/// Opens a system; `None` if its library is not installed.
pub(crate) fn open(
    system: System,
    setup: &WorkloadSetup,
    dir: &Path,
) -> Outcome<Option<Box<dyn BenchmarkJob>>> {
    let _ = std::fs::remove_dir_all(dir);
    let peer = match system {
        System::RocksDb => ("rocksdb", ListFormat::Composite),
        System::LevelDb => ("leveldb", ListFormat::Composite),
        System::RocksDbRewriting => ("rocksdb", ListFormat::Rewriting),
        System::LevelDbRewriting => ("leveldb", ListFormat::Rewriting),
        _ => {
            return Ok(Some(Box::new(ours::TopicStoreJob::open(
                system, setup, dir,
            )?)));
        }
    };
    peers::open(peer, setup, dir)
}
