//! The one place where native errors become Python exceptions.

use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use rillbase_documents::refusal::DocumentRefusal;
use rillbase_json::{Error, ReadFailure};

pyo3::create_exception!(
    rillbase_native,
    JsonError,
    PyValueError,
    "Why and where a JSON document was rejected; `str()` of it is for people."
);

pyo3::create_exception!(
    rillbase_native,
    QueryError,
    PyValueError,
    "Why and where a query, a document or an operation was rejected."
);

pyo3::create_exception!(
    rillbase_native,
    EngineError,
    PyException,
    "Why the storage engine failed: `code` for programs, `str()` for people."
);

pyo3::create_exception!(
    rillbase_native,
    NodeError,
    PyException,
    "Why the storage node rejected a command: `code` for programs, `str()` for people."
);

/// A node's error: a code for programs, and a text.
pub(crate) fn node_error(py: Python<'_>, text: &str) -> PyErr {
    let raised = NodeError::new_err(text.to_owned());
    let code = text.split(' ').next().unwrap_or_default();
    let set = raised.value(py).setattr("code", code);
    set.map_or_else(|raised| raised, |()| raised)
}

/// The engine's failure as an `EngineError`.
pub(crate) fn engine_error(py: Python<'_>, error: &rillbase_engine::Error) -> PyErr {
    let raised = EngineError::new_err(error.to_string());
    let (file, offset) = match error {
        rillbase_engine::Error::Corruption { file, offset, .. } => (Some(file), Some(*offset)),
        rillbase_engine::Error::Io { path, offset, .. } => (Some(path), *offset),
        _ => (None, None),
    };
    let value = raised.value(py);
    let set = (|| {
        value.setattr("code", error.code())?;
        value.setattr("file", file.map(|file| file.display().to_string()))?;
        value.setattr("offset", offset)
    })();
    set.map_or_else(|raised| raised, |()| raised)
}

/// An error as a `QueryError`.
pub(crate) fn refused(py: Python<'_>, refusal: DocumentRefusal) -> PyErr {
    match query_error(py, refusal) {
        Ok(raised) => PyErr::from_value(raised),
        Err(raised) => raised,
    }
}

/// A refusal as the exception's value, not raised.
pub(crate) fn query_error(py: Python<'_>, refusal: DocumentRefusal) -> PyResult<Bound<'_, PyAny>> {
    let raised = QueryError::new_err(refusal.detail.clone());
    let value = raised.value(py);
    value.setattr("code", refusal.code.as_ref())?;
    value.setattr("pointer", refusal.pointer)?;
    value.setattr("detail", refusal.detail)?;
    value.setattr("violations", refusal.violations)?;
    Ok(value.clone().into_any())
}

/// A rejected document becomes a `JsonError`; exceptions raised while values were created stay.
pub(crate) fn from_json_failure(py: Python<'_>, failure: ReadFailure<PyErr>) -> PyErr {
    match failure {
        ReadFailure::Sink { error, .. } => error,
        ReadFailure::Json(error) => json_error(py, &error).unwrap_or_else(|raised| raised),
    }
}

fn json_error(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let raised = JsonError::new_err(error.to_string());
    let value = raised.value(py);
    value.setattr("code", error.code.as_str())?;
    value.setattr("offset", error.location.offset)?;
    value.setattr("line", error.location.line)?;
    value.setattr("column", error.location.column)?;
    value.setattr("pointer", &error.location.pointer)?;
    Ok(raised)
}
