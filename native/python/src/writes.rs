//! Groups of writes: they are planned, applied to rows, and converted to columns and results.

use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::PyBytes;
use rillbase_documents::after_image::{ImageTransaction, ParcelLimits, parcels};
use rillbase_documents::bulk::{self, BulkOptions};
use rillbase_documents::changes::{self, EntryColumns};
use rillbase_documents::columns::byteas;
use rillbase_documents::operations;
use rillbase_documents::outcome::{self, results};
use rillbase_documents::partition::covering_hashes;
use rillbase_documents::plan::{self, AccessFilters, NamedTarget, WriteCollection};
use rillbase_documents::precondition;
use rillbase_documents::refusal::DocumentRefusal;
use rillbase_documents::stage::{LockedRow, LockedRows};
use rillbase_documents::unique::{OwnedKey, OwnedKeys};
use rillbase_documents::write_format;

use crate::errors::{query_error, refused};
use crate::filters::PyFilter;
use crate::operations::{PyDefinition, PyOperation};
use crate::values::{PyValue, form};

/// The filters of read, create, update and delete, where a caller has rules.
type PyAccess<'py> = (
    Option<PyRef<'py, PyFilter>>,
    Option<PyRef<'py, PyFilter>>,
    Option<PyRef<'py, PyFilter>>,
    Option<PyRef<'py, PyFilter>>,
);
/// Name, number of the collection, access.
type PyTarget<'py> = (String, usize, Option<PyAccess<'py>>);
/// Operations, targets, whether they are atomic, precondition.
type PyWrite<'py> = (
    PyRef<'py, PyOperations>,
    Vec<PyTarget<'py>>,
    bool,
    Option<PyRef<'py, PyExpected>>,
);
/// Key, version, creation time, body: as in the database's result.
type PyRow = (
    PyBackedBytes,
    PyBackedBytes,
    PyBackedBytes,
    Option<PyBackedBytes>,
);
/// The index, the key, the number of the collection, the document's key, and the writes whose
/// callers may not read it.
type PyOwnedKey = (i64, PyBackedBytes, usize, PyBackedBytes, Vec<usize>);
/// The names of unique indexes by number, and keys.
type PyOwnedKeys = (HashMap<i64, String>, Vec<PyOwnedKey>);
type Columns<'py, const N: usize> = [Bound<'py, PyBytes>; N];

/// The precondition that If-Match and If-None-Match state.
#[pyclass(
    frozen,
    name = "Expected",
    module = "rillbase_native",
    skip_from_py_object
)]
pub(crate) struct PyExpected {
    inner: precondition::Precondition,
}

#[pymethods]
impl PyExpected {
    #[new]
    #[pyo3(signature = (versions = None, *, present = false, absent = false))]
    fn new(versions: Option<Vec<i64>>, present: bool, absent: bool) -> Self {
        let inner = precondition::Precondition {
            versions,
            present,
            absent,
        };
        Self { inner }
    }
}

/// The operations of one write, in their order.
#[pyclass(
    frozen,
    name = "Operations",
    module = "rillbase_native",
    skip_from_py_object
)]
pub(crate) struct PyOperations {
    inner: operations::DocumentOperations,
}

#[pymethods]
impl PyOperations {
    #[new]
    fn new(operations: Vec<PyRef<'_, PyOperation>>) -> Self {
        let all = operations
            .iter()
            .map(|operation| Ok(operation.inner.clone()))
            .collect();
        Self {
            inner: operations::DocumentOperations::new(all),
        }
    }

    /// Return the operations of a bulk body or a transaction, and whether they are atomic.
    #[staticmethod]
    #[pyo3(signature = (body, *, ndjson, max_operations, transaction = false))]
    fn parse(
        py: Python<'_>,
        body: &[u8],
        ndjson: bool,
        max_operations: usize,
        transaction: bool,
    ) -> PyResult<(Self, bool)> {
        let reading = BulkOptions {
            lines: ndjson,
            transaction,
            max_operations,
        };
        let parsed = py
            .detach(|| bulk::parse(body, reading))
            .map_err(|refusal| refused(py, refusal))?;
        let operations = Self {
            inner: parsed.operations,
        };
        Ok((operations, parsed.ordered))
    }

    fn __len__(&self) -> usize {
        self.inner.as_slice().len()
    }

    /// Return the operations of a range.
    fn part(&self, start: usize, end: usize) -> Self {
        Self {
            inner: self.inner.part(start..end),
        }
    }

    /// Return the collections that operations name; "" if one names none.
    fn collections(&self) -> Vec<&str> {
        self.inner.collections().into_iter().collect()
    }

    #[getter]
    fn size(&self) -> usize {
        self.inner.size()
    }
}

/// A group of writes.
#[pyclass(frozen, name = "Plan", module = "rillbase_native", skip_from_py_object)]
pub(crate) struct PyPlan {
    inner: plan::WritePlan,
}

#[pymethods]
impl PyPlan {
    #[new]
    fn new(
        collections: Vec<([u8; 16], PyRef<'_, PyDefinition>)>,
        writes: Vec<PyWrite<'_>>,
    ) -> Self {
        let collections = collections
            .into_iter()
            .map(|(id, definition)| WriteCollection {
                id,
                definition: definition.inner.clone(),
            })
            .collect();
        let writes = writes.into_iter().map(planned).collect();
        Self {
            inner: plan::WritePlan {
                collections,
                writes,
            },
        }
    }

    /// Return the keys of documents that may exist, as an array for the database.
    fn keys<'py>(
        &self,
        py: Python<'py>,
        collection: usize,
        also_new: bool,
    ) -> Option<Bound<'py, PyBytes>> {
        let keys = self.inner.keys(collection, also_new);
        let packed = (!keys.is_empty()).then(|| byteas(keys.iter().map(|key| Some(*key))));
        packed.map(|packed| PyBytes::new(py, &packed))
    }

    /// Apply the writes, except those that are skipped, to the rows of each collection. `owned` are
    /// the names of unique indexes, and keys that documents have.
    #[pyo3(signature = (rows, floors, now_ms, skipped, owned = None))]
    fn apply(
        &self,
        py: Python<'_>,
        rows: Vec<Vec<PyRow>>,
        floors: Vec<i64>,
        now_ms: i64,
        skipped: Vec<usize>,
        owned: Option<PyOwnedKeys>,
    ) -> PyResult<PyChanges> {
        let rows = rows
            .iter()
            .map(|rows| rows.iter().map(row).collect())
            .collect::<PyResult<Vec<HashMap<_, _>>>>()?;
        let locked = LockedRows {
            rows,
            floors,
            now_ms,
        };
        let owned = owned.map(owned_keys);
        let inner = py.detach(|| self.inner.apply(&locked, &skipped, owned.as_ref()));
        Ok(PyChanges { inner })
    }
}

fn owned_keys((names, keys): PyOwnedKeys) -> OwnedKeys {
    let keys = keys
        .into_iter()
        .map(|(index, key, collection, document, hidden_from)| OwnedKey {
            index,
            key: key.to_vec(),
            collection,
            document: document.to_vec(),
            hidden_from,
        });
    OwnedKeys {
        names,
        keys: keys.collect(),
    }
}

/// Return a write as a storage node reads it: operations, targets, whether they are atomic, and a
/// precondition.
#[pyfunction]
#[pyo3(signature = (operations, targets, *, atomic, expected = None))]
pub(crate) fn encode_write<'py>(
    py: Python<'py>,
    operations: PyRef<'py, PyOperations>,
    targets: Vec<PyTarget<'py>>,
    atomic: bool,
    expected: Option<PyRef<'py, PyExpected>>,
) -> Bound<'py, PyBytes> {
    let request = planned((operations, targets, atomic, expected));
    PyBytes::new(py, &py.detach(|| request.encode()))
}

fn planned((operations, targets, atomic, expected): PyWrite<'_>) -> plan::WriteRequest {
    let targets = targets
        .into_iter()
        .map(|(name, collection, access)| NamedTarget {
            name,
            collection,
            access: access.map(|(read, create, update, delete)| AccessFilters {
                read: filter(read),
                create: filter(create),
                update: filter(update),
                delete: filter(delete),
            }),
        })
        .collect();
    plan::WriteRequest {
        operations: operations.inner.clone(),
        targets,
        atomic,
        expected: expected.map_or_else(precondition::Precondition::default, |given| {
            given.inner.clone()
        }),
    }
}

fn filter(given: Option<PyRef<'_, PyFilter>>) -> Option<Arc<rillbase_query::filter::Filter>> {
    given.map(|filter| filter.inner.clone())
}

fn row((key, version, created, body): &PyRow) -> PyResult<(Vec<u8>, LockedRow)> {
    let row = LockedRow {
        version: number(version)?,
        body: body.as_deref().map(<[u8]>::to_vec),
        created_us: number(created)?,
    };
    Ok((key.to_vec(), row))
}

fn number(cell: &[u8]) -> PyResult<i64> {
    let bytes = cell
        .try_into()
        .map_err(|_| PyValueError::new_err("a number of eight bytes is expected"))?;
    Ok(i64::from_be_bytes(bytes))
}

/// The result of a group of writes.
#[pyclass(
    frozen,
    name = "Changes",
    module = "rillbase_native",
    skip_from_py_object
)]
pub(crate) struct PyChanges {
    inner: changes::GroupChanges,
}

#[pymethods]
impl PyChanges {
    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// Return the outcomes of a write with these operations; raise its error if it was rejected as
    /// a whole.
    fn outcomes(
        &self,
        py: Python<'_>,
        write: usize,
        operations: &PyOperations,
    ) -> PyResult<Outcomes> {
        match self.inner.results.get(write) {
            Some(Some(result)) => Outcomes::placed(py, operations, result.clone()),
            _ => Err(PyIndexError::new_err("the write was skipped")),
        }
    }

    /// Return the columns of documents to insert: keys, hashes, versions, bodies.
    fn inserted<'py>(&self, py: Python<'py>, collection: usize) -> Option<Columns<'py, 4>> {
        packed(py, self.inner.inserted(collection))
    }

    /// Return the columns of rows to update: keys, versions, bodies, creation times.
    fn updated<'py>(&self, py: Python<'py>, collection: usize) -> Option<Columns<'py, 4>> {
        packed(py, self.inner.updated(collection))
    }

    /// Return the columns of outbox rows: keys, hashes, versions, ids of deleted documents.
    fn announced<'py>(&self, py: Python<'py>, collection: usize) -> Option<Columns<'py, 4>> {
        packed(py, self.inner.announced(collection))
    }

    /// Return entries to add: indexes, keys, documents' keys, whether they sort, whether they are
    /// enforced.
    fn added<'py>(&self, py: Python<'py>) -> Option<Columns<'py, 5>> {
        packed(py, self.inner.added().map(five))
    }

    /// Return entries to remove: indexes, keys, documents' keys.
    fn removed<'py>(&self, py: Python<'py>) -> Option<Columns<'py, 3>> {
        packed(py, self.inner.removed().map(three))
    }

    /// Return, of the entries to add, those that no other document may have.
    fn enforced<'py>(&self, py: Python<'py>) -> Option<Columns<'py, 3>> {
        packed(py, self.inner.enforced().map(three))
    }

    /// Return hashes of keys that cover the write partitions of all these documents.
    fn covering_hashes(&self) -> Vec<i32> {
        covering_hashes(self.inner.key_hashes())
    }

    /// Return after-images as arguments of a command, with their number, in parts of at most so
    /// many images and about so many bytes; None for a single part.
    fn after_images<'py>(
        &self,
        py: Python<'py>,
        xid: u64,
        tenant: [u8; 16],
        rules_versions: Vec<i64>,
        limits: Option<(usize, usize)>,
    ) -> Vec<(usize, Bound<'py, PyBytes>)> {
        let transaction = ImageTransaction {
            xid,
            tenant,
            rules_versions: &rules_versions,
        };
        let limits = limits.map(|(images, bytes)| ParcelLimits { images, bytes });
        let made = py.detach(|| parcels(&self.inner, transaction, limits));
        made.into_iter()
            .map(|parcel| (parcel.images, PyBytes::new(py, &parcel.arguments)))
            .collect()
    }
}

fn packed<const N: usize>(py: Python<'_>, columns: Option<[Vec<u8>; N]>) -> Option<Columns<'_, N>> {
    columns.map(|columns| columns.map(|column| PyBytes::new(py, &column)))
}

fn three(columns: EntryColumns) -> [Vec<u8>; 3] {
    [columns.numbers, columns.keys, columns.places]
}

fn five(columns: EntryColumns) -> [Vec<u8>; 5] {
    [
        columns.numbers,
        columns.keys,
        columns.places,
        columns.ordering,
        columns.enforced,
    ]
}

/// The outcomes of a write's operations, in order.
#[pyclass(frozen, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct Outcomes {
    inner: outcome::Outcomes,
}

impl Outcomes {
    fn placed(
        py: Python<'_>,
        operations: &PyOperations,
        result: outcome::WriteResult,
    ) -> PyResult<Self> {
        match operations.inner.placed(result) {
            Ok(inner) => Ok(Self { inner }),
            Err(refusal) => Err(refused(py, refusal)),
        }
    }
}

#[pymethods]
impl Outcomes {
    /// Join the outcomes of a write's parts.
    #[new]
    #[pyo3(signature = (*parts))]
    fn new(parts: Vec<PyRef<'_, Outcomes>>) -> Self {
        let all = parts.iter().flat_map(|part| part.inner.iter().cloned());
        Self {
            inner: all.collect(),
        }
    }

    /// One operation that the database rejected.
    #[staticmethod]
    fn refused(code: &str, detail: &str, violations: Vec<(String, String)>) -> Self {
        let refusal = DocumentRefusal {
            code: code.to_owned().into(),
            pointer: String::new(),
            detail: detail.to_owned(),
            violations,
        };
        Self {
            inner: Arc::new([Err(refusal)]),
        }
    }

    /// Return what a storage node answered to a write; raise its error if it was rejected as a
    /// whole. `operations`: those of the write, in whose body errors are located.
    #[staticmethod]
    #[pyo3(signature = (result, operations = None))]
    fn decode(py: Python<'_>, result: &[u8], operations: Option<&PyOperations>) -> PyResult<Self> {
        let result = write_format::decode_result(result)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        if let Some(operations) = operations {
            return Self::placed(py, operations, result);
        }
        let inner = result.map_err(|refusal| refused(py, refusal))?;
        Ok(Self { inner })
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// Return the rejected operations, by their index.
    fn refusals<'py>(&self, py: Python<'py>) -> PyResult<Vec<(usize, Bound<'py, PyAny>)>> {
        let numbered = self.inner.iter().enumerate();
        numbered
            .filter_map(|(number, outcome)| Some((number, outcome.as_ref().err()?)))
            .map(|(number, refusal)| Ok((number, query_error(py, refusal.clone())?)))
            .collect()
    }

    /// Return the change that one operation made, or raise its error.
    fn change(&self, py: Python<'_>, number: usize) -> PyResult<PyChange> {
        match self.inner.get(number) {
            Some(Ok(change)) => Ok(PyChange {
                inner: change.clone(),
            }),
            Some(Err(refusal)) => Err(refused(py, refusal.clone())),
            None => Err(PyIndexError::new_err(
                "the index is beyond the last operation",
            )),
        }
    }

    /// Return ids and versions as a JSON array; `refusals` are the items of rejected operations.
    #[pyo3(signature = (refusals, *, canonical = false))]
    fn results<'py>(
        &self,
        py: Python<'py>,
        refusals: Vec<PyBackedStr>,
        canonical: bool,
    ) -> Bound<'py, PyBytes> {
        let texts: Vec<&str> = refusals.iter().map(|item| &**item).collect();
        let json = py.detach(|| results(&self.inner, &texts, form(canonical)));
        PyBytes::new(py, json.as_bytes())
    }
}

/// A document that was changed.
#[pyclass(
    frozen,
    name = "Change",
    module = "rillbase_native",
    skip_from_py_object
)]
pub(crate) struct PyChange {
    inner: outcome::DocumentChange,
}

#[pymethods]
impl PyChange {
    #[getter]
    fn id(&self) -> PyValue {
        PyValue {
            inner: self.inner.id.clone(),
        }
    }

    #[getter]
    fn version(&self) -> i64 {
        self.inner.version
    }

    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let body = self.inner.body.as_ref();
        body.map(|body| PyBytes::new(py, body.as_bytes()))
    }

    #[getter]
    fn created(&self) -> bool {
        self.inner.created
    }

    /// Return the envelope of an existing document, as JSON.
    #[pyo3(signature = (*, canonical = false))]
    fn envelope<'py>(&self, py: Python<'py>, canonical: bool) -> Option<Bound<'py, PyBytes>> {
        let text = self.inner.envelope(form(canonical))?;
        Some(PyBytes::new(py, text.as_bytes()))
    }
}
