//! Operations on documents, and the definition of a collection.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rillbase_documents::definition;
use rillbase_documents::elements::DocumentLimits;
use rillbase_documents::entry::{self, IndexDefinition};
use rillbase_documents::id::new_object_id;
use rillbase_documents::operation;
use rillbase_documents::refusal::DocumentRefusal;
use rillbase_query::bson::{Document, Value as Bson, ValueRef};
use rillbase_query::error::ParseLocation;
use rillbase_query::update::Update;

use crate::errors::refused;
use crate::filters::PyFilter;
use crate::index_fields::{DeclaredFields, index_fields};
use crate::values::PyValue;

/// Number, key, whether it sorts, whether it is enforced.
type PyEntry<'py> = (i64, Bound<'py, PyBytes>, bool, bool);
type PyIndex = (i64, DeclaredFields, bool);

/// A collection's schema and indexes, compiled.
#[pyclass(
    frozen,
    name = "Definition",
    module = "rillbase_native",
    skip_from_py_object
)]
pub(crate) struct PyDefinition {
    pub(crate) inner: Arc<definition::CollectionDefinition>,
}

#[pymethods]
impl PyDefinition {
    #[new]
    #[pyo3(signature = (schema, indexes, *, max_array_elements = usize::MAX, max_values = usize::MAX))]
    fn new(
        py: Python<'_>,
        schema: Option<&PyValue>,
        indexes: Vec<PyIndex>,
        max_array_elements: usize,
        max_values: usize,
    ) -> PyResult<Self> {
        let indexes = indexes
            .into_iter()
            .map(|(number, declared, unique)| {
                Ok(IndexDefinition {
                    number,
                    fields: index_fields(declared)?,
                    unique,
                })
            })
            .collect::<PyResult<_>>()?;
        let inner = definition::CollectionDefinition::new(schema.map(PyValue::view), indexes)
            .map_err(|refusal| refused(py, refusal))?;
        let limits = DocumentLimits {
            array_elements: max_array_elements,
            values: max_values,
        };
        Ok(Self {
            inner: Arc::new(inner.limited(limits)),
        })
    }

    /// Return a document's entries in all indexes.
    fn entries<'py>(&self, py: Python<'py>, body: &[u8]) -> PyResult<Vec<PyEntry<'py>>> {
        let entries = self
            .inner
            .entries(Document::trusted(body))
            .map_err(|refusal| refused(py, refusal))?;
        Ok(py_entries(py, &entries))
    }
}

fn py_entries<'py>(py: Python<'py>, entries: &[entry::IndexEntry]) -> Vec<PyEntry<'py>> {
    entries
        .iter()
        .map(|entry| {
            (
                entry.index,
                PyBytes::new(py, &entry.key),
                entry.ordering,
                entry.enforced,
            )
        })
        .collect()
}

/// Update operators, parsed once for many documents.
#[pyclass(frozen, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct UpdateOperators {
    inner: Arc<Update>,
}

#[pymethods]
impl UpdateOperators {
    #[staticmethod]
    fn parse(py: Python<'_>, update: &PyValue, array_filters: Option<&PyValue>) -> PyResult<Self> {
        let filters = read_array_filters(py, array_filters)?;
        let root = ParseLocation::root();
        let location = root.key("update");
        let ValueRef::Document(operators) = update.view() else {
            let refusal = DocumentRefusal::at("invalid_update", &location, "an object is expected");
            return Err(refused(py, refusal));
        };
        let inner = Update::parse(operators, filters, &location)
            .map_err(|error| refused(py, error.into()))?;
        Ok(Self {
            inner: Arc::new(inner),
        })
    }
}

/// Parses array filters, whose type callers choose.
fn read_array_filters<'a>(
    py: Python<'_>,
    parsed: Option<&'a PyValue>,
) -> PyResult<Option<rillbase_query::bson::Array<'a>>> {
    match parsed.map(PyValue::view) {
        None | Some(ValueRef::Null) => Ok(None),
        Some(ValueRef::Array(array)) => Ok(Some(array)),
        Some(_) => {
            let root = ParseLocation::root();
            let location = root.key("array_filters");
            let refusal = DocumentRefusal::at("invalid_update", &location, "an array is expected");
            Err(refused(py, refusal))
        }
    }
}

/// A change of one document.
#[pyclass(
    frozen,
    name = "Operation",
    module = "rillbase_native",
    skip_from_py_object
)]
pub(crate) struct PyOperation {
    pub(crate) inner: operation::DocumentOperation,
}

impl PyOperation {
    fn of(
        py: Python<'_>,
        made: Result<operation::DocumentOperation, DocumentRefusal>,
    ) -> PyResult<Self> {
        let inner = made.map_err(|refusal| refused(py, refusal))?;
        Ok(Self { inner })
    }
}

#[pymethods]
impl PyOperation {
    #[staticmethod]
    fn insert(py: Python<'_>, document: &PyValue) -> PyResult<Self> {
        let fresh = ValueRef::ObjectId(new_object_id());
        Self::of(
            py,
            operation::DocumentOperation::insert(document.document()?, fresh),
        )
    }

    #[staticmethod]
    #[pyo3(signature = (id, document, *, upsert = true))]
    fn replace(py: Python<'_>, id: &PyValue, document: &PyValue, upsert: bool) -> PyResult<Self> {
        let id = id.inner.clone();
        Self::of(
            py,
            operation::DocumentOperation::replace(id, document.document()?, upsert),
        )
    }

    #[staticmethod]
    #[pyo3(signature = (id, update, *, array_filters = None, upsert = false))]
    fn update(
        py: Python<'_>,
        id: &PyValue,
        update: &PyValue,
        array_filters: Option<&PyValue>,
        upsert: bool,
    ) -> PyResult<Self> {
        let filters = read_array_filters(py, array_filters)?;
        let id = id.inner.clone();
        Self::of(
            py,
            operation::DocumentOperation::update(
                id,
                (update.document()?, &ParseLocation::root()),
                filters,
                upsert,
            ),
        )
    }

    /// Update a document that was found by a filter, while it still matches.
    #[staticmethod]
    fn update_found(
        py: Python<'_>,
        id: &PyValue,
        update: &UpdateOperators,
        filter: &PyFilter,
    ) -> PyResult<Self> {
        let (update, filter) = (update.inner.clone(), filter.inner.clone());
        Self::of(
            py,
            operation::DocumentOperation::update_found(id.inner.clone(), update, filter),
        )
    }

    #[staticmethod]
    #[pyo3(signature = (id, patch, *, upsert = false))]
    fn merge(py: Python<'_>, id: &PyValue, patch: &PyValue, upsert: bool) -> PyResult<Self> {
        Self::of(
            py,
            operation::DocumentOperation::merge(id.inner.clone(), patch.document()?, upsert),
        )
    }

    #[staticmethod]
    fn delete(py: Python<'_>, id: &PyValue) -> PyResult<Self> {
        Self::of(py, operation::DocumentOperation::delete(id.inner.clone()))
    }

    /// Delete a document that was found by a filter, while it still matches.
    #[staticmethod]
    fn delete_found(py: Python<'_>, id: &PyValue, filter: &PyFilter) -> PyResult<Self> {
        let filter = filter.inner.clone();
        Self::of(
            py,
            operation::DocumentOperation::delete_found(id.inner.clone(), filter),
        )
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.inner.kind()
    }

    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.key)
    }

    #[getter]
    fn id(&self) -> PyValue {
        PyValue {
            inner: self.inner.id.clone(),
        }
    }

    #[getter]
    fn collection(&self) -> Option<&str> {
        self.inner.collection.as_deref()
    }

    #[getter]
    fn if_version(&self) -> Option<i64> {
        self.inner.if_version
    }

    #[getter]
    fn upsert(&self) -> bool {
        self.inner.upsert
    }

    #[getter]
    fn size(&self) -> usize {
        self.inner.size
    }
}

/// Return the `_id` of a document.
#[pyfunction]
pub(crate) fn id_of(body: &[u8]) -> PyValue {
    let id = Document::trusted(body).get("_id");
    PyValue {
        inner: id.map_or(Bson::Null, Bson::from),
    }
}
