//! Works on databases that are not open, and on single files of a database.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use rillbase_engine as engine;
use rillbase_engine::DatabaseReport;
use rillbase_engine::vfs::{RealVfs, Vfs};

use crate::errors::engine_error;

/// Lines are passed on in portions of about this many bytes.
const PORTION_BYTES: usize = 64 << 10;

fn vfs() -> Arc<dyn Vfs> {
    Arc::new(RealVfs)
}

/// The exception of a callback; work continues, but the callback is not called again.
#[derive(Default)]
pub(super) struct Callback {
    raised: Option<PyErr>,
}

impl Callback {
    pub(super) fn call(&mut self, call: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>) {
        if self.raised.is_none() {
            self.raised = Python::attach(call).err();
        }
    }

    /// The exception of the callback, if there was one, otherwise the result.
    pub(super) fn first<T>(self, done: PyResult<T>) -> PyResult<T> {
        self.raised.map_or(done, Err)
    }

    fn then<T>(self, py: Python<'_>, done: engine::Result<T>) -> PyResult<T> {
        self.first(done.map_err(|error| engine_error(py, &error)))
    }
}

/// The contents of a verified database.
pub(super) fn counts<'py>(
    py: Python<'py>,
    verified: &DatabaseReport,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("tables", verified.tables)?;
    dict.set_item("entries", verified.entries)?;
    dict.set_item("table_bytes", verified.table_bytes)?;
    let log = verified.log.as_ref();
    dict.set_item("log_records", log.map_or(0, |log| log.records))?;
    dict.set_item("log_segments", log.map_or(0, |log| log.segments))?;
    let cut = log.and_then(|log| log.cut.as_ref());
    let cut = cut.map(|cut| (cut.file.display().to_string(), cut.offset, cut.records));
    dict.set_item("log_cut", cut)?;
    Ok(dict)
}

/// Verify a database that is not open; return counts of its contents.
#[pyfunction]
#[pyo3(signature = (directory, progress = None))]
pub(crate) fn verify_database(
    py: Python<'_>,
    directory: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let mut callback = Callback::default();
    let done = py.detach(|| {
        engine::verify(&vfs(), &directory, &mut |done, total| {
            if let Some(progress) = &progress {
                callback.call(|py| progress.call1(py, (done, total)));
            }
        })
    });
    counts(py, &callback.then(py, done)?)
}

/// End the log of a database that is not open before damage; return what was done, or `None` if it
/// is not damaged.
#[pyfunction]
pub(crate) fn truncate_damaged_log(
    py: Python<'_>,
    directory: PathBuf,
) -> PyResult<Option<Bound<'_, PyDict>>> {
    let done = py.detach(|| engine::truncate_damaged_log(&RealVfs, &directory));
    let Some(truncated) = done.map_err(|error| engine_error(py, &error))? else {
        return Ok(None);
    };
    let dict = PyDict::new(py);
    dict.set_item("file", truncated.damage.file.display().to_string())?;
    dict.set_item("offset", truncated.damage.offset)?;
    dict.set_item("dropped", truncated.damage.records)?;
    dict.set_item("records", truncated.records)?;
    let copies = truncated
        .copies
        .iter()
        .map(|path| path.display().to_string());
    dict.set_item("copies", copies.collect::<Vec<_>>())?;
    Ok(Some(dict))
}

/// Restore a backup into a directory that is empty or missing; return counts of its contents.
#[pyfunction]
#[pyo3(signature = (backup, directory, progress = None))]
pub(crate) fn restore_database(
    py: Python<'_>,
    backup: PathBuf,
    directory: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'_, PyDict>> {
    let mut callback = Callback::default();
    let done = py.detach(|| {
        engine::restore(&vfs(), &backup, &directory, &mut |copied| {
            if let Some(progress) = &progress {
                callback.call(|py| progress.call1(py, (copied,)));
            }
        })
    });
    counts(py, &callback.then(py, done)?)
}

/// Pass the contents of a file of a database to `write` as text, in portions of whole lines.
#[pyfunction]
pub(crate) fn dump_file(py: Python<'_>, path: PathBuf, write: Py<PyAny>) -> PyResult<()> {
    let mut callback = Callback::default();
    let mut portion = String::new();
    let done = py.detach(|| {
        let dumped = engine::dump(&RealVfs, &path, &mut |line| {
            portion.push_str(&line);
            portion.push('\n');
            if portion.len() >= PORTION_BYTES {
                let full = std::mem::take(&mut portion);
                callback.call(|py| write.call1(py, (full,)));
            }
        });
        // The valid part is passed on before the error.
        callback.call(|py| write.call1(py, (portion,)));
        dumped
    });
    callback.then(py, done)
}
