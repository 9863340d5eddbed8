//! The interface of a benchmarked store, and its setup.

use std::error::Error;
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
    /// The additional time of each sync, for stores with a replaceable file system.
    pub sync_delay: Duration,
    /// Values begin with their expiry (little-endian); compactions drop those that have expired by
    /// this clock, in stores that support it.
    pub clock: Option<Arc<AtomicU64>>,
}

/// A key-value store. All methods are safe to call concurrently.
pub(crate) trait BenchStore: Sync {
    /// Writes one key; with `durable` it returns once the write would survive a loss of power.
    fn put(&self, key: &[u8], value: &[u8], durable: bool) -> Result<()>;

    /// Passes the value of a key to `seen`; returns whether it exists.
    fn get(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// Iterates over at most `most` entries from a key on; returns how many there were.
    fn walk(&self, from: &[u8], most: u64) -> Result<u64>;

    /// Increments a counter. By default it reads and writes, which only one thread may do at a
    /// time.
    fn add(&self, key: &[u8]) -> Result<()> {
        let mut count = 0;
        self.get(key, &mut |value| count = number(value))?;
        self.put(key, &(count + 1).to_le_bytes(), false)
    }

    /// The number of runs, each of which a scan has to read; `None` if the store has none or does
    /// not report it.
    fn runs(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Flushes memtables to tables, if the store supports it.
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
