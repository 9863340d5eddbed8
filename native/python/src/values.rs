//! Extended JSON values, and the names of documents.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rillbase_documents::id;
use rillbase_query::bson::{Document, DocumentBuf, Value as Bson, ValueRef};
use rillbase_query::ejson::{
    Form, parse_body, parse_document_body, parse_message, parse_request, value_to_string,
};

use crate::errors::refused;

/// A value of a document or of a request's body.
#[pyclass(
    frozen,
    name = "Value",
    module = "rillbase_native",
    skip_from_py_object
)]
#[derive(Debug)]
pub(crate) struct PyValue {
    pub(crate) inner: Bson,
}

impl PyValue {
    pub(crate) fn of(value: ValueRef<'_>) -> Self {
        Self {
            inner: value.into(),
        }
    }

    pub(crate) fn view(&self) -> ValueRef<'_> {
        self.inner.as_ref()
    }

    pub(crate) fn document(&self) -> PyResult<Document<'_>> {
        match &self.inner {
            Bson::Document(document) => Ok(document.as_ref()),
            _ => Err(PyTypeError::new_err("the value is not an object")),
        }
    }
}

#[pymethods]
impl PyValue {
    /// Read one Extended JSON text.
    #[staticmethod]
    fn parse(py: Python<'_>, ejson: &[u8]) -> PyResult<Self> {
        let inner = parse_body(ejson).map_err(|error| refused(py, error.into()))?;
        Ok(Self { inner })
    }

    /// Read a request's body, in which a filter, a sort and the like have bounds.
    #[staticmethod]
    fn parse_request(py: Python<'_>, ejson: &[u8]) -> PyResult<Self> {
        let inner = parse_request(ejson).map_err(|error| refused(py, error.into()))?;
        Ok(Self { inner })
    }

    /// Parse a request, skipping members beyond their bounds; return the error of the first one
    /// skipped.
    #[staticmethod]
    fn parse_message<'py>(
        py: Python<'py>,
        ejson: &[u8],
    ) -> PyResult<(Self, Option<Bound<'py, PyAny>>)> {
        let parsed = parse_message(ejson).map_err(|error| refused(py, error.into()))?;
        let (inner, refusal) = parsed;
        let refusal = refusal.map(|error| refused(py, error.into()).into_value(py));
        Ok((
            Self { inner },
            refusal.map(|raised| raised.into_bound(py).into_any()),
        ))
    }

    /// Read a request's body that is a document, or a change to one.
    #[staticmethod]
    fn parse_document(py: Python<'_>, ejson: &[u8]) -> PyResult<Self> {
        let inner = parse_document_body(ejson).map_err(|error| refused(py, error.into()))?;
        Ok(Self { inner })
    }

    /// View the bytes of a document.
    #[staticmethod]
    fn from_bson(py: Python<'_>, body: Vec<u8>) -> PyResult<Self> {
        let document = DocumentBuf::parse(body).map_err(|error| refused(py, error.into()))?;
        Ok(Self {
            inner: Bson::Document(document),
        })
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.view().kind().alias()
    }

    #[getter]
    fn is_null(&self) -> bool {
        matches!(self.inner, Bson::Null)
    }

    fn names(&self) -> PyResult<Vec<String>> {
        Ok(self
            .document()?
            .iter()
            .map(|(name, _)| name.into())
            .collect())
    }

    fn get(&self, name: &str) -> PyResult<Option<Self>> {
        Ok(self.document()?.get(name).map(Self::of))
    }

    fn items(&self) -> PyResult<Vec<Self>> {
        match &self.inner {
            Bson::Array(array) => Ok(array.as_ref().iter().map(Self::of).collect()),
            _ => Err(PyTypeError::new_err("the value is not an array")),
        }
    }

    fn text(&self) -> PyResult<&str> {
        match &self.inner {
            Bson::String(text) => Ok(text),
            _ => Err(PyTypeError::new_err("the value is not a string")),
        }
    }

    fn integer(&self) -> PyResult<i64> {
        let number = self.view().as_exact_i64();
        number.ok_or_else(|| PyTypeError::new_err("the value is not an integer"))
    }

    fn boolean(&self) -> PyResult<bool> {
        match self.inner {
            Bson::Bool(value) => Ok(value),
            _ => Err(PyTypeError::new_err("the value is neither true nor false")),
        }
    }

    fn bson<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.document()?.as_bytes()))
    }

    #[pyo3(signature = (*, canonical = false))]
    fn ejson<'py>(&self, py: Python<'py>, canonical: bool) -> Bound<'py, PyBytes> {
        PyBytes::new(py, value_to_string(self.view(), form(canonical)).as_bytes())
    }

    fn sort_key<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &rillbase_query::key::encode_key(self.view()))
    }
}

pub(crate) const fn form(canonical: bool) -> Form {
    if canonical {
        Form::Canonical
    } else {
        Form::Relaxed
    }
}

/// Return the `_id` that a path's segment names, percent-decoded already.
#[pyfunction]
pub(crate) fn parse_id(py: Python<'_>, segment: &str) -> PyResult<PyValue> {
    let inner = id::parse(segment).map_err(|refusal| refused(py, refusal))?;
    Ok(PyValue { inner })
}

/// Return the segment of a path that names an `_id`.
#[pyfunction]
pub(crate) fn format_id(id: &PyValue) -> String {
    id::format(id.view())
}

/// Return the hash of a document's key, which decides the write partition.
#[pyfunction]
pub(crate) fn key_hash(key: &[u8]) -> i32 {
    id::key_hash(key)
}

/// Return the key of the document with this `_id`.
#[pyfunction]
pub(crate) fn id_key<'py>(py: Python<'py>, id: &PyValue) -> PyResult<Bound<'py, PyBytes>> {
    let key = id::key(id.view()).map_err(|refusal| refused(py, refusal))?;
    Ok(PyBytes::new(py, &key))
}
