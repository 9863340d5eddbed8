//! Batches of writes.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use rillbase_engine::{Db, Error, Keyspace, WriteBatch};

use super::{Engine, durability, keyspace};

/// Writes that become visible and durable together.
#[pyclass(frozen, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct EngineBatch {
    engine: Py<Engine>,
    inner: Mutex<WriteBatch>,
}

impl EngineBatch {
    pub(super) fn new(engine: Py<Engine>) -> Self {
        Self {
            engine,
            inner: Mutex::new(WriteBatch::new()),
        }
    }

    fn add(
        &self,
        py: Python<'_>,
        name: &str,
        add: impl FnOnce(&mut WriteBatch, &Keyspace) + Send,
    ) -> PyResult<()> {
        self.with(py, |db, batch| {
            add(batch, &keyspace(db, name)?);
            Ok(())
        })
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&Db, &mut WriteBatch) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        self.engine.get().with(py, |db| {
            act(
                db,
                &mut self.inner.lock().unwrap_or_else(PoisonError::into_inner),
            )
        })
    }
}

#[pymethods]
impl EngineBatch {
    /// Set a key to a value; with `expiry_ms`, until that time since 1970.
    #[pyo3(signature = (keyspace, key, value, *, expiry_ms = None))]
    fn put(
        &self,
        py: Python<'_>,
        keyspace: &str,
        key: PyBackedBytes,
        value: PyBackedBytes,
        expiry_ms: Option<u64>,
    ) -> PyResult<()> {
        self.add(py, keyspace, |batch, keyspace| match expiry_ms {
            None => batch.put(keyspace, &key, &value),
            Some(expiry) => batch.put_expiring(keyspace, &key, &value, expiry),
        })
    }

    /// Remove a key.
    fn delete(&self, py: Python<'_>, keyspace: &str, key: PyBackedBytes) -> PyResult<()> {
        self.add(py, keyspace, |batch, keyspace| batch.delete(keyspace, &key))
    }

    /// Remove all keys from `start` up to `end`, exclusive.
    fn delete_range(
        &self,
        py: Python<'_>,
        keyspace: &str,
        start: PyBackedBytes,
        end: PyBackedBytes,
    ) -> PyResult<()> {
        self.add(py, keyspace, |batch, keyspace| {
            batch.delete_range(keyspace, &start, &end);
        })
    }

    /// Write everything; return the sequence of the last write. The batch is empty afterwards.
    #[pyo3(signature = (*, sync = true))]
    fn write(&self, py: Python<'_>, sync: bool) -> PyResult<u64> {
        self.with(py, |db, batch| {
            db.write(std::mem::take(batch), durability(sync))
        })
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        py.detach(|| {
            self.inner
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .len()
        })
    }
}
