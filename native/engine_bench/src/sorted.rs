//! Peers that keep their keys in order, for benchmarks that implement an application on them.

use std::path::Path;

use crate::rocks::Rocks;
use crate::store::{BenchStore as _, Result, StoreSetup};

/// `RocksDB` or `LevelDB`.
pub struct Sorted(Rocks);

impl Sorted {
    /// Opens one of them by its name; `None` if its library is not installed.
    pub fn open(name: &str, dir: &Path, setup: &StoreSetup) -> Result<Option<Self>> {
        Ok(crate::rocks::open(name, dir, setup)?.map(Self))
    }

    /// Writes one key without a sync.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.0.put(key, value, false)
    }

    /// The value of a key.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut copy = None;
        self.0.get(key, &mut |value| copy = Some(value.to_vec()))?;
        Ok(copy)
    }

    /// Removes one key.
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        self.0.delete(key)
    }

    /// Passes the entries from a key on to `visit` until it returns false.
    pub fn range(&self, from: &[u8], visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        self.0.range(from, visit)
    }

    /// Whether compactions drop expired entries; otherwise they must be deleted.
    #[must_use]
    pub fn forgets(&self) -> bool {
        self.0.forgets()
    }
}

impl std::fmt::Debug for Sorted {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Sorted")
    }
}
