//! Scans, read ahead in portions so that the interpreter is released once for many entries.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rillbase_engine::{Error, Scan};

use crate::errors::engine_error;

/// The maximum read-ahead, in entries and in bytes.
const PORTION_ENTRIES: usize = 1000;
const PORTION_BYTES: usize = 1 << 20;

/// Key and value.
type Entry = (Vec<u8>, Vec<u8>);

/// The keys and values of a keyspace in one snapshot.
#[pyclass(frozen, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct EngineScan(Mutex<ScanBuffer>);

struct ScanBuffer {
    /// `None` once it has reached its end.
    scan: Option<Scan>,
    reverse: bool,
    begun: bool,
    ahead: VecDeque<Entry>,
}

impl EngineScan {
    pub(super) fn new(scan: Scan, reverse: bool) -> Self {
        Self(Mutex::new(ScanBuffer {
            scan: Some(scan),
            reverse,
            begun: false,
            ahead: VecDeque::new(),
        }))
    }
}

impl ScanBuffer {
    fn next(&mut self) -> Result<Option<Entry>, Error> {
        if self.ahead.is_empty() {
            self.read_ahead()?;
        }
        Ok(self.ahead.pop_front())
    }

    fn read_ahead(&mut self) -> Result<(), Error> {
        let Some(scan) = &mut self.scan else {
            return Ok(());
        };
        let mut bytes = 0;
        while self.ahead.len() < PORTION_ENTRIES && bytes < PORTION_BYTES {
            match (self.begun, self.reverse) {
                (false, false) => scan.first()?,
                (false, true) => scan.last()?,
                (true, false) => scan.advance()?,
                (true, true) => scan.retreat()?,
            }
            self.begun = true;
            if !scan.is_valid() {
                self.scan = None;
                return Ok(());
            }
            bytes += scan.key().len() + scan.value().len();
            self.ahead
                .push_back((scan.key().to_vec(), scan.value().to_vec()));
        }
        Ok(())
    }
}

#[pymethods]
impl EngineScan {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
        let next = py.detach(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).next());
        let next = next.map_err(|error| engine_error(py, &error))?;
        Ok(next.map(|(key, value)| (PyBytes::new(py, &key), PyBytes::new(py, &value))))
    }
}
