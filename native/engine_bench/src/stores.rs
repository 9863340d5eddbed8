//! Opens stores by their names.

use std::path::Path;

use crate::engine_store::EngineStore;
use crate::store::{BenchStore, Result, StoreSetup};
use crate::{lmdb, rocks};

/// Opens a store by its name; `None` if its library is not installed.
pub(crate) fn open(
    name: &str,
    dir: &Path,
    setup: &StoreSetup,
) -> Result<Option<Box<dyn BenchStore>>> {
    std::fs::create_dir_all(dir)?;
    match name {
        "rillbase" => Ok(Some(Box::new(EngineStore::open(dir, setup)?))),
        "rocksdb" | "leveldb" => {
            let store = rocks::open(name, dir, setup)?;
            Ok(store.map(|store| Box::new(store) as Box<dyn BenchStore>))
        }
        "lmdb" => lmdb::open(dir),
        _ => Err(format!("unknown store {name:?}").into()),
    }
}
