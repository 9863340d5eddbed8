//! Transactions: the first to commit wins.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use rillbase_engine::{Db, DbTransaction, Error, ValueBytes};

use super::{Engine, durability, keyspace};

/// Reads and writes that are committed together, or not at all.
#[pyclass(frozen, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct EngineTransaction {
    engine: Py<Engine>,
    /// `None` once it has ended.
    inner: Mutex<Option<DbTransaction>>,
}

impl EngineTransaction {
    pub(super) fn new(engine: Py<Engine>, begun: DbTransaction) -> Self {
        Self {
            engine,
            inner: Mutex::new(Some(begun)),
        }
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&Db, &mut DbTransaction) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.engine.get().with(py, |db| {
            let mut held = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            act(db, held.as_mut().ok_or_else(ended)?)
        })
    }
}

fn ended() -> Error {
    Error::InvalidArgument {
        what: "the transaction has ended".into(),
    }
}

fn shown(py: Python<'_>, value: Option<ValueBytes>) -> Option<Bound<'_, PyBytes>> {
    value.map(|value| PyBytes::new(py, &value))
}

#[pymethods]
impl EngineTransaction {
    /// Return the value of a key, including this transaction's changes.
    fn get<'py>(
        &self,
        py: Python<'py>,
        keyspace: &str,
        key: PyBackedBytes,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let value = self.with(py, |db, held| {
            held.get(&self::keyspace(db, keyspace)?, &key)
        })?;
        Ok(shown(py, value))
    }

    /// Return the value of a key. The commit fails if another writer changes it before.
    fn get_for_update<'py>(
        &self,
        py: Python<'py>,
        keyspace: &str,
        key: PyBackedBytes,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let value = self.with(py, |db, held| {
            held.get_for_update(&self::keyspace(db, keyspace)?, &key)
        })?;
        Ok(shown(py, value))
    }

    /// Set a key to a value.
    fn put(
        &self,
        py: Python<'_>,
        keyspace: &str,
        key: PyBackedBytes,
        value: PyBackedBytes,
    ) -> PyResult<()> {
        self.with(py, |db, held| {
            held.put(&self::keyspace(db, keyspace)?, &key, &value);
            Ok(())
        })
    }

    /// Remove a key.
    fn delete(&self, py: Python<'_>, keyspace: &str, key: PyBackedBytes) -> PyResult<()> {
        self.with(py, |db, held| {
            held.delete(&self::keyspace(db, keyspace)?, &key);
            Ok(())
        })
    }

    /// Write all changes, unless there is a conflict (`conflict`); return the last sequence.
    #[pyo3(signature = (*, sync = true))]
    fn commit(&self, py: Python<'_>, sync: bool) -> PyResult<u64> {
        self.engine.get().with(py, |_| {
            let mut held = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            held.take().ok_or_else(ended)?.commit(durability(sync))
        })
    }

    /// End the transaction without changes.
    fn rollback(&self, py: Python<'_>) {
        py.detach(|| {
            drop(
                self.inner
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take(),
            );
        });
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Commit, unless an exception was raised or the transaction has ended.
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyAny>>,
        _exception: Option<&Bound<'_, PyAny>>,
        _traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let open = py.detach(|| {
            let held = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            held.is_some()
        });
        if kind.is_none() && open {
            return self.commit(py, true).map(drop);
        }
        self.rollback(py);
        Ok(())
    }
}
