//! The engine as a benchmarked store.

use std::ops::Bound::{Included, Unbounded};
use std::path::Path;
use std::sync::Arc;

use rillbase_engine::vfs::{DirectVfs, RealVfs, Vfs};
use rillbase_engine::{
    Compression, Db, DbOptions, Durability, Keyspace, KeyspaceOptions, Merge, WriteBatch,
};

use crate::slow::SlowVfs;
use crate::store::{BenchStore, Result, StoreSetup, number};

/// Adds eight-byte numbers.
#[derive(Debug)]
struct CounterMerge;

impl Merge for CounterMerge {
    fn name(&self) -> &'static str {
        "sum"
    }

    fn full(&self, _key: &[u8], below: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
        let start = below.map_or(0, number);
        let sum = operands
            .iter()
            .fold(start, |sum, bytes| sum.wrapping_add(number(bytes)));
        sum.to_le_bytes().to_vec()
    }

    fn partial(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(self.full(key, None, operands))
    }
}

pub(crate) struct EngineStore {
    db: Db,
    space: Keyspace,
}

impl EngineStore {
    pub(crate) fn open(dir: &Path, setup: &StoreSetup) -> Result<Self> {
        let compression = if setup.lz4 {
            Compression::Lz4
        } else {
            Compression::None
        };
        let space = KeyspaceOptions {
            merge: Some(Arc::new(CounterMerge)),
            compression: vec![compression],
            memtable_bytes: setup.memtable_bytes,
            table_bytes: setup.memtable_bytes as u64,
            base_bytes: 4 * setup.memtable_bytes as u64,
            ..KeyspaceOptions::default()
        };
        let vfs: Arc<dyn Vfs> = if setup.direct {
            Arc::new(DirectVfs::new())
        } else if !setup.sync_delay.is_zero() {
            let by = setup.sync_delay;
            Arc::new(SlowVfs { by })
        } else {
            Arc::new(RealVfs)
        };
        let options = DbOptions {
            vfs,
            cache_bytes: setup.cache_bytes,
            ..DbOptions::default()
        };
        let db = Db::open(dir, options.keyspace("bench", space.clone()))?;
        let space = match db.keyspace("bench") {
            Some(space) => space,
            None => db.create_keyspace("bench", space)?,
        };
        Ok(Self { db, space })
    }
}

impl BenchStore for EngineStore {
    fn put(&self, key: &[u8], value: &[u8], durable: bool) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.put(&self.space, key, value);
        let durability = if durable {
            Durability::Sync
        } else {
            Durability::Buffered
        };
        self.db.write(batch, durability)?;
        Ok(())
    }

    fn get(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let value = self.db.get(&self.space, key)?;
        if let Some(value) = &value {
            seen(value);
        }
        Ok(value.is_some())
    }

    fn walk(&self, from: &[u8], most: u64) -> Result<u64> {
        let mut scan = self.db.scan(&self.space, Included(from), Unbounded, None)?;
        scan.first()?;
        let (mut bytes, mut count) = (0, 0);
        while count < most && scan.is_valid() {
            bytes += scan.key().len() + scan.value().len();
            count += 1;
            scan.advance()?;
        }
        std::hint::black_box(bytes);
        Ok(count)
    }

    fn add(&self, key: &[u8]) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.merge(&self.space, key, &1_u64.to_le_bytes());
        self.db.write(batch, Durability::Buffered)?;
        Ok(())
    }

    fn runs(&self) -> Result<Option<u64>> {
        let stats = self.db.stats();
        let levels = stats.keyspaces.iter().flat_map(|space| &space.levels);
        let runs: usize = levels.map(|level| level.runs).sum();
        Ok(Some(runs as u64))
    }

    fn flush(&self) -> Result<()> {
        Ok(self.db.flush()?)
    }
}
