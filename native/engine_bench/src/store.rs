//! The interface of a benchmarked store, and its setup.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// The result of a store's operation.
pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// The setup of a store; the same for all.
#[derive(Debug, Clone)]
pub struct StoreSetup {
    /// The size of the block cache.
    pub cache_bytes: usize,
    /// The first level is four times as large, tables as large as this: the proportions of all
    /// stores' defaults.
    pub memtable_bytes: usize,
    /// Whether tables are compressed.
    pub lz4: bool,
    /// Whether tables bypass the system's cache, if the store supports that.
    pub direct: bool,
    /// What a sync takes beside what it takes, for stores that can do without a disk of their own.
    pub sync_delay: Duration,
    /// Values begin with the time at which they end (little-endian): compactions drop those that
    /// have ended by this clock, in stores that can.
    pub clock: Option<Arc<AtomicU64>>,
}

/// A key-value store. All methods are safe to call concurrently.
pub(crate) trait BenchStore: Sync {
    /// Writes one key; `durable`: returns when it would survive a loss of power.
    fn put(&self, key: &[u8], value: &[u8], durable: bool) -> Result<()>;

    /// Passes the value of a key to `seen`; returns whether it exists.
    fn get(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// Iterates over at most `most` entries from a key on; returns how many there were.
    fn walk(&self, from: &[u8], most: u64) -> Result<u64>;

    /// Adds one to a counter. By reading and writing, unless the store knows better; then only one
    /// thread may do it.
    fn add(&self, key: &[u8]) -> Result<()> {
        let mut count = 0;
        self.get(key, &mut |value| count = number(value))?;
        self.put(key, &(count + 1).to_le_bytes(), false)
    }

    /// How many runs it keeps, each of which a scan has to look into; `None`: it has none, or does
    /// not say.
    fn runs(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Writes what is in memory into tables, where the store lets one ask for it.
    fn flush(&self) -> Result<()> {
        Ok(())
    }
}

/// Decodes an eight-byte number.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk::<8>()
        .map_or(0, |raw| u64::from_le_bytes(*raw))
}

/// Opens a store by its name; `None` if its library is not installed.
pub(crate) fn open(
    name: &str,
    dir: &Path,
    setup: &StoreSetup,
) -> Result<Option<Box<dyn BenchStore>>> {
    std::fs::create_dir_all(dir)?;
    match name {
        "rillbase" => Ok(Some(Box::new(crate::engine_store::EngineStore::open(
            dir, setup,
        )?))),
        "rocksdb" | "leveldb" => {
            let store = crate::rocks::open(name, dir, setup)?;
            Ok(store.map(|store| Box::new(store) as Box<dyn BenchStore>))
        }
        "lmdb" => crate::lmdb::open(dir),
        _ => Err(format!("there is no store {name:?}").into()),
    }
}
