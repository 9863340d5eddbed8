//! The storage engine for Python.
//!
//! Everything that may access the disk or wait for another thread runs with the interpreter
//! released; locks are taken only then.

mod batch;
mod files;
mod options;
mod scan;
mod stats;
mod transaction;

use std::ops::Bound as Edge;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};
use rillbase_engine as engine;
use rillbase_engine::vfs::{DirectVfs, Vfs};
use rillbase_engine::{Db, Error, Keyspace};

use crate::errors::engine_error;

pub(crate) use batch::EngineBatch;
pub(crate) use files::{dump_file, restore_database, truncate_damaged_log, verify_database};
pub(crate) use options::PyKeyspaceOptions;
pub(crate) use scan::EngineScan;
pub(crate) use transaction::EngineTransaction;

/// A database of keyspaces in a directory.
#[pyclass(frozen, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct Engine {
    /// `None` once it is closed.
    db: RwLock<Option<Db>>,
    /// The file system, if tables bypass the system's cache.
    direct: Option<Arc<DirectVfs>>,
}

/// A snapshot of the database.
#[pyclass(frozen, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct EngineSnapshot {
    inner: RwLock<Option<engine::DbSnapshot>>,
}

impl Engine {
    /// Runs `work` with the open database and the interpreter released.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&Db) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| {
            let db = self.db.read().unwrap_or_else(PoisonError::into_inner);
            act(db.as_ref().ok_or(Error::Stopped)?)
        });
        done.map_err(|error| engine_error(py, &error))
    }

    /// Runs `work` with a keyspace, and a snapshot if one is given.
    fn with_keyspace<T: Send>(
        &self,
        py: Python<'_>,
        name: &str,
        snapshot: Option<&Bound<'_, EngineSnapshot>>,
        act: impl FnOnce(&Db, &Keyspace, Option<&engine::DbSnapshot>) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let snapshot = snapshot.map(Bound::get);
        self.with(py, |db| {
            let keyspace = keyspace(db, name)?;
            let Some(snapshot) = snapshot else {
                return act(db, &keyspace, None);
            };
            let held = snapshot
                .inner
                .read()
                .unwrap_or_else(PoisonError::into_inner);
            act(db, &keyspace, Some(held.as_ref().ok_or_else(released)?))
        })
    }
}

fn keyspace(db: &Db, name: &str) -> Result<Keyspace, Error> {
    let unknown = || Error::InvalidArgument {
        what: format!("the keyspace {name:?} does not exist"),
    };
    db.keyspace(name).ok_or_else(unknown)
}

fn released() -> Error {
    Error::InvalidArgument {
        what: "the snapshot was released".into(),
    }
}

fn durability(sync: bool) -> engine::Durability {
    if sync {
        return engine::Durability::Sync;
    }
    engine::Durability::Buffered
}

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (
        directory, keyspaces = None, *, memory_bytes = None, cache_bytes = None,
        table_cache_bytes = None, memtables_bytes = None, log_bytes = 512 << 20,
        background_threads = 2, sub_compactions = 1, write_rate = 0, direct_io = false,
        unknown_merges = false
    ))]
    #[allow(clippy::too_many_arguments, reason = "all of them are given by name")]
    fn new(
        py: Python<'_>,
        directory: PathBuf,
        keyspaces: Option<&Bound<'_, PyDict>>,
        memory_bytes: Option<usize>,
        cache_bytes: Option<usize>,
        table_cache_bytes: Option<usize>,
        memtables_bytes: Option<usize>,
        log_bytes: u64,
        background_threads: usize,
        sub_compactions: usize,
        write_rate: u64,
        direct_io: bool,
        unknown_merges: bool,
    ) -> PyResult<Self> {
        let direct = direct_io.then(|| Arc::new(DirectVfs::new()));
        let usual = engine::DbOptions::default();
        let usual = match memory_bytes {
            Some(bytes) => usual.within(bytes),
            None => usual,
        };
        let mut options = engine::DbOptions {
            cache_bytes: cache_bytes.unwrap_or(usual.cache_bytes),
            table_cache_bytes: table_cache_bytes.unwrap_or(usual.table_cache_bytes),
            memtables_bytes: memtables_bytes.unwrap_or(usual.memtables_bytes),
            log_bytes,
            background_threads,
            sub_compactions,
            write_rate,
            unknown_merges,
            ..usual
        };
        if let Some(direct) = &direct {
            options.vfs = Arc::clone(direct) as Arc<dyn Vfs>;
        }
        for (name, keyspace) in keyspaces.into_iter().flatten() {
            let keyspace = keyspace.cast::<PyKeyspaceOptions>()?.get().inner.clone();
            options = options.keyspace(name.extract::<String>()?, keyspace);
        }
        let opened = py.detach(|| Db::open(directory, options));
        let db = opened.map_err(|error| engine_error(py, &error))?;
        Ok(Self {
            db: RwLock::new(Some(db)),
            direct,
        })
    }

    /// Return the names of the keyspaces.
    fn keyspaces(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.with(py, |db| {
            let keyspaces = db.keyspaces().into_iter();
            Ok(keyspaces
                .map(|keyspace| keyspace.name().to_owned())
                .collect())
        })
    }

    /// Create a keyspace, unless one with that name exists.
    #[pyo3(signature = (name, options = None))]
    fn create_keyspace(
        &self,
        py: Python<'_>,
        name: &str,
        options: Option<&PyKeyspaceOptions>,
    ) -> PyResult<()> {
        let options = options.map_or_else(Default::default, |options| options.inner.clone());
        self.with(py, |db| db.create_keyspace(name, options).map(drop))
    }

    /// Drop a keyspace with all its data.
    fn drop_keyspace(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.with(py, |db| db.drop_keyspace(&keyspace(db, name)?))
    }

    /// Return an empty batch of writes.
    fn batch(slf: Py<Self>) -> EngineBatch {
        EngineBatch::new(slf)
    }

    /// Start and return a transaction.
    fn transaction(slf: Py<Self>, py: Python<'_>) -> PyResult<EngineTransaction> {
        let begun = slf.get().with(py, Db::begin)?;
        Ok(EngineTransaction::new(slf, begun))
    }

    /// Return the value of a key, or None.
    #[pyo3(signature = (keyspace, key, *, snapshot = None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        keyspace: &str,
        key: PyBackedBytes,
        snapshot: Option<&Bound<'_, EngineSnapshot>>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let value = self.with_keyspace(py, keyspace, snapshot, |db, keyspace, snapshot| {
            snapshot.map_or_else(
                || db.get(keyspace, &key),
                |snapshot| db.get_at(keyspace, &key, snapshot),
            )
        })?;
        Ok(value.map(|value| PyBytes::new(py, &value)))
    }

    /// Return the values of many keys in one snapshot, in the order of the keys.
    #[pyo3(signature = (keyspace, keys, *, snapshot = None))]
    fn multi_get<'py>(
        &self,
        py: Python<'py>,
        keyspace: &str,
        keys: Vec<PyBackedBytes>,
        snapshot: Option<&Bound<'_, EngineSnapshot>>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let values = self.with_keyspace(py, keyspace, snapshot, |db, keyspace, snapshot| {
            db.multi_get(keyspace, keys.iter().map(|key| &**key), snapshot)
        })?;
        let shown = |value: engine::ValueBytes| PyBytes::new(py, &value);
        Ok(values.into_iter().map(|value| value.map(shown)).collect())
    }

    /// Return an iterator over keys from `start` up to `end`, exclusive, with their values.
    #[pyo3(signature = (keyspace, start = None, end = None, *, reverse = false, snapshot = None))]
    fn scan(
        &self,
        py: Python<'_>,
        keyspace: &str,
        start: Option<PyBackedBytes>,
        end: Option<PyBackedBytes>,
        reverse: bool,
        snapshot: Option<&Bound<'_, EngineSnapshot>>,
    ) -> PyResult<EngineScan> {
        let scan = self.with_keyspace(py, keyspace, snapshot, |db, keyspace, snapshot| {
            let lower = start.as_deref().map_or(Edge::Unbounded, Edge::Included);
            let upper = end.as_deref().map_or(Edge::Unbounded, Edge::Excluded);
            db.scan(keyspace, lower, upper, snapshot)
        })?;
        Ok(EngineScan::new(scan, reverse))
    }

    /// Return an iterator over keys that consist of `head` and the keyspace's `tail_bytes`, with
    /// their values; tables whose filters exclude the head are not read.
    #[pyo3(signature = (keyspace, head, *, reverse = false, snapshot = None))]
    fn scan_head(
        &self,
        py: Python<'_>,
        keyspace: &str,
        head: PyBackedBytes,
        reverse: bool,
        snapshot: Option<&Bound<'_, EngineSnapshot>>,
    ) -> PyResult<EngineScan> {
        let scan = self.with_keyspace(py, keyspace, snapshot, |db, keyspace, snapshot| {
            let end = engine::prefix_end(&head);
            let upper = end.as_deref().map_or(Edge::Unbounded, Edge::Excluded);
            db.scan_head(keyspace, &head, Edge::Included(&head), upper, snapshot)
        })?;
        Ok(EngineScan::new(scan, reverse))
    }

    /// Return a snapshot of the current state.
    fn snapshot(&self, py: Python<'_>) -> PyResult<EngineSnapshot> {
        let snapshot = self.with(py, |db| Ok(db.snapshot()))?;
        Ok(EngineSnapshot {
            inner: RwLock::new(Some(snapshot)),
        })
    }

    /// Make all writes durable.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Db::sync)
    }

    /// Flush all memtables to tables.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Db::flush)
    }

    /// Merge all tables of a keyspace into one run.
    fn compact(&self, py: Python<'_>, keyspace: &str) -> PyResult<()> {
        self.with_keyspace(py, keyspace, None, |db, keyspace, _| db.compact(keyspace))
    }

    /// Create a checkpoint in a directory that is empty or missing: an independent database whose
    /// tables are hard links.
    fn checkpoint(&self, py: Python<'_>, directory: PathBuf) -> PyResult<()> {
        self.with(py, |db| db.checkpoint(directory))
    }

    /// Copy the database into a directory that is empty or missing, and verify the copy.
    #[pyo3(signature = (directory, progress = None))]
    fn backup<'py>(
        &self,
        py: Python<'py>,
        directory: PathBuf,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut callback = files::Callback::default();
        let verified = self.with(py, |db| {
            db.backup(directory, &mut |done, total| {
                if let Some(progress) = &progress {
                    callback.call(|py| progress.call1(py, (done, total)));
                }
            })
        });
        callback
            .first(verified)
            .and_then(|verified| files::counts(py, &verified))
    }

    /// Return the counters since the database was opened.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.with(py, |db| Ok(db.stats()))?;
        let dict = stats::dict(py, &stats)?;
        let direct = self.direct.as_ref();
        dict.set_item("direct_io", direct.is_some_and(|vfs| !vfs.fell_back()))?;
        Ok(dict)
    }

    /// Make all writes durable and close; snapshots, scans and transactions must be released first.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let closed = py.detach(|| {
            let mut db = self.db.write().unwrap_or_else(PoisonError::into_inner);
            db.take().map_or(Ok(()), Db::close)
        });
        closed.map_err(|error| engine_error(py, &error))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(py)
    }
}

#[pymethods]
impl EngineSnapshot {
    /// The sequence of the last write that it sees.
    #[getter]
    fn sequence(&self, py: Python<'_>) -> PyResult<u64> {
        let held = self.inner.read().unwrap_or_else(PoisonError::into_inner);
        let sequence = held.as_ref().map(engine::DbSnapshot::sequence);
        sequence.ok_or_else(|| engine_error(py, &released()))
    }

    /// Release the snapshot, so that the versions that only it needs can be dropped.
    fn release(&self, py: Python<'_>) {
        py.detach(|| {
            drop(
                self.inner
                    .write()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take(),
            );
        });
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyAny>) {
        self.release(py);
    }
}
