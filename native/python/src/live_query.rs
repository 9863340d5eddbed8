//! A live query as registered with the grid.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use rillbase_live::message::{
    Foreign, LookupSide, NodeRequest, QueryDefinition, QueryHash, ResultRow, StreamId,
};
use rillbase_live::snapshot::PgSnapshot;
use rillbase_live::wire::request;
use rillbase_live::{groups, lookups, registered_rows};
use rillbase_query::bson::{Document, DocumentWriter};
use rillbase_query::error::ParseLocation;
use rillbase_query::filter;
use rillbase_query::sort;

use crate::errors::refused;
use crate::filters::{PyFilter, PyGroup, PyLookups, PySort};
use crate::selections::py_keys;
use crate::values::PyValue;

/// Key, version, created and updated in milliseconds, BSON.
pub(crate) type PyRow = (PyBackedBytes, i64, i64, i64, PyBackedBytes);
/// The same, for Python.
type PyShown<'py> = (Bound<'py, PyBytes>, u64, i64, i64, Bound<'py, PyBytes>);
/// A collection that is looked up: id, version of the access rules, access rule.
type PySide = ([u8; 16], u64, Option<PyFilter>);
/// The rows read of a collection that is looked up, and whether these are all.
type PyForeign = (Vec<PyRow>, bool);
/// `xmin`, `xmax` and the transactions between that were running.
pub(crate) type PySnapshot = (u64, u64, Vec<u64>);

/// A query of a collection, its access rule included, and its window.
#[pyclass(
    frozen,
    name = "LiveQuery",
    module = "rillbase_native",
    skip_from_py_object
)]
pub(crate) struct PyLiveQuery {
    pub(crate) definition: Arc<QueryDefinition>,
}

#[pymethods]
impl PyLiveQuery {
    #[new]
    #[pyo3(signature = (
        tenant, collection, filter, sort, ordered_by, *, offset, limit, rules_version, slack,
        group = None, lookups = None, projection = None, sides = Vec::new(), rule = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "a query has as many parts")]
    fn new(
        tenant: [u8; 16],
        collection: [u8; 16],
        filter: &PyFilter,
        sort: &PySort,
        ordered_by: Option<&PyValue>,
        offset: u32,
        limit: Option<u32>,
        rules_version: u64,
        slack: u32,
        group: Option<&PyGroup>,
        lookups: Option<&PyLookups>,
        projection: Option<&PyValue>,
        sides: Vec<PySide>,
        rule: Option<&PyFilter>,
    ) -> Self {
        let windowed = sort.inner != sort::Sort::default() || offset > 0 || limit.is_some();
        let group = group.map(|group| group.inner.canonical().into_bytes());
        let (canonical, by) = (filter.inner.hash(), sort.inner.canonical());
        let window = [
            offset.to_be_bytes(),
            limit.map_or([0xff; 4], u32::to_be_bytes),
        ];
        let rules = rules_version.to_be_bytes();
        let [tenant_id, collection_id]: [&[u8]; 2] = [&tenant, &collection];
        let mut parts = vec![tenant_id, collection_id, &canonical.0, by.as_bytes()];
        parts.extend([&window[0][..], &window[1], &rules]);
        parts.extend(group.as_deref());
        let lookups = lookups.map(|lookups| {
            lookups::definition(&lookups.inner, projection.map(|shown| shown.view()))
        });
        let sides: Vec<LookupSide> = sides
            .into_iter()
            .map(|(collection, rules_version, rule)| {
                let filter = rule.map_or_else(filter::Filter::everything, |rule| {
                    rule.inner.as_ref().clone()
                });
                let filter = filter.canonical().as_bytes().into();
                LookupSide::new(tenant, collection, rules_version, filter)
            })
            .collect();
        parts.extend(lookups.as_deref());
        parts.extend(sides.iter().map(|side| &side.hash.0[..]));
        // Equal filters may result from different rules.
        let rule_hash = rule.map(|rule| rule.inner.hash());
        parts.extend(rule_hash.iter().map(|hash| &hash.0[..]));
        let hash = QueryHash::of(&parts);
        let sort = ordered_by.map_or_else(Vec::new, |value| {
            let mut writer = DocumentWriter::new();
            writer.append("sort", value.view());
            writer.finish()
        });
        let definition = QueryDefinition {
            hash,
            activation: 0,
            tenant,
            collection,
            rules_version,
            filter: filter.inner.canonical().as_bytes().into(),
            sort: sort.into(),
            offset,
            limit,
            sorted: windowed || group.is_some() || lookups.is_some(),
            slack,
            group: group.unwrap_or_default().into(),
            lookups: lookups.unwrap_or_default().into(),
            sides: sides.into(),
            rule: rule.map_or_else(
                || [].into(),
                |rule| rule.inner.canonical().as_bytes().into(),
            ),
        };
        Self {
            definition: Arc::new(definition),
        }
    }

    /// Parse a definition that `definition` wrote.
    #[staticmethod]
    fn read(bytes: &[u8]) -> PyResult<Self> {
        let definition = request::decode_definition(bytes)
            .map_err(|malformed| PyValueError::new_err(malformed.to_string()))?;
        Ok(Self {
            definition: Arc::new(definition),
        })
    }

    #[getter]
    fn hash<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.definition.hash.0)
    }

    #[getter]
    fn tenant<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.definition.tenant)
    }

    #[getter]
    fn collection<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.definition.collection)
    }

    #[getter]
    fn rules_version(&self) -> u64 {
        self.definition.rules_version
    }

    #[getter]
    fn sorted(&self) -> bool {
        self.definition.sorted
    }

    #[getter]
    fn grouped(&self) -> bool {
        self.definition.is_grouped()
    }

    #[getter]
    fn offset(&self) -> u32 {
        self.definition.offset
    }

    #[getter]
    fn limit(&self) -> Option<u32> {
        self.definition.limit
    }

    #[getter]
    fn slack(&self) -> u32 {
        self.definition.slack
    }

    /// Return the filter, the access rule included.
    fn filter(&self, py: Python<'_>) -> PyResult<PyFilter> {
        let parsed = filter::Filter::parse(Document::trusted(&self.definition.filter));
        let inner = parsed.map_err(|error| refused(py, error.into()))?;
        Ok(PyFilter {
            inner: Arc::new(inner),
        })
    }

    /// Return what the subscribers may read; None for everything.
    fn readable(&self, py: Python<'_>) -> PyResult<Option<PyFilter>> {
        if self.definition.rule.is_empty() {
            return Ok(None);
        }
        let parsed = filter::Filter::parse(Document::trusted(&self.definition.rule));
        let inner = Arc::new(parsed.map_err(|error| refused(py, error.into()))?);
        Ok(Some(PyFilter { inner }))
    }

    /// Return the order of the rows.
    fn sort(&self, py: Python<'_>) -> PyResult<PySort> {
        let document = Document::trusted(&self.definition.sort);
        let value = (!self.definition.sort.is_empty())
            .then(|| document.get("sort"))
            .flatten();
        let inner = match value {
            None => self.filter(py)?.inner.default_sort(),
            Some(value) => sort::Sort::parse(value, &ParseLocation::root())
                .map_err(|error| refused(py, error.into()))?,
        };
        Ok(PySort { inner })
    }

    /// Return how documents are grouped, if they are.
    fn group(&self, py: Python<'_>) -> PyResult<Option<PyGroup>> {
        let group = groups::group_of(&self.definition).map_err(|refusal| refused(py, refusal))?;
        Ok(group.map(|inner| PyGroup { inner }))
    }

    #[getter]
    fn looks_up(&self) -> bool {
        self.definition.looks_up()
    }

    /// Return the lookups of each document, if any.
    fn lookups(&self, py: Python<'_>) -> PyResult<Option<PyLookups>> {
        let join = lookups::join_of(&self.definition).map_err(|refusal| refused(py, refusal))?;
        Ok(join.map(|join| PyLookups {
            inner: Arc::new(join.lookups().clone()),
        }))
    }

    /// Return the collections that are looked up: id, version of the access rules, access rule.
    fn sides<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyBytes>, u64, PyFilter)>> {
        let sides = self.definition.sides.iter().map(|side| {
            let filter = filter::Filter::parse(Document::trusted(&side.filter));
            let inner = Arc::new(filter.map_err(|error| refused(py, error.into()))?);
            let collection = PyBytes::new(py, &side.collection);
            Ok((collection, side.rules_version, PyFilter { inner }))
        });
        sides.collect()
    }

    /// Return the names of the collections that are looked up.
    fn side_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let join = lookups::join_of(&self.definition);
        let join = join.map_err(|refusal| refused(py, refusal))?;
        let names = join.iter().flat_map(|join| join.collections());
        Ok(names.map(str::to_owned).collect())
    }

    /// Return the keys to which documents refer, of each collection that is looked up.
    fn references<'py>(
        &self,
        py: Python<'py>,
        rows: Vec<PyRow>,
    ) -> PyResult<Vec<Vec<Bound<'py, PyBytes>>>> {
        let keys = lookups::references(&self.definition, &as_rows(&rows, true));
        Ok(py_keys(py, &keys.map_err(|refusal| refused(py, refusal))?))
    }

    /// Return the rows of the result: one for each document, with the documents that it refers to,
    /// or one for each group.
    #[pyo3(signature = (rows, foreign = Vec::new()))]
    fn shown<'py>(
        &self,
        py: Python<'py>,
        rows: Vec<PyRow>,
        foreign: Vec<PyForeign>,
    ) -> PyResult<Vec<PyShown<'py>>> {
        let foreign = as_foreign(&foreign);
        let shown =
            py.detach(|| registered_rows::rows(&self.definition, as_rows(&rows, true), &foreign));
        let shown = shown.map_err(|refusal| refused(py, refusal))?;
        let rows = shown.iter().map(|row| {
            (
                PyBytes::new(py, &row.key),
                row.version,
                row.created_ms,
                row.updated_ms,
                PyBytes::new(py, &row.body),
            )
        });
        Ok(rows.collect())
    }

    /// Return the same query with another number of rows beyond the window.
    fn with_slack(&self, slack: u32) -> Self {
        let definition = QueryDefinition {
            slack,
            ..(*self.definition).clone()
        };
        Self {
            definition: Arc::new(definition),
        }
    }

    /// Return the query's entry in the registry, without an activation number.
    fn definition<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &request::encode_definition(&self.definition))
    }

    /// Return the request to the nodes, without an activation number.
    #[pyo3(signature = (positions, snapshot, rows, *, complete, renewal, foreign = Vec::new()))]
    #[allow(clippy::too_many_arguments, reason = "a request has as many parts")]
    fn request<'py>(
        &self,
        py: Python<'py>,
        positions: Vec<String>,
        snapshot: PySnapshot,
        rows: Vec<PyRow>,
        complete: bool,
        renewal: bool,
        foreign: Vec<PyForeign>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let positions: Option<Vec<_>> = positions.iter().map(|text| stream_id(text)).collect();
        let request = NodeRequest::Register {
            query: (*self.definition).clone(),
            positions: positions.ok_or_else(|| PyValueError::new_err("not stream ids"))?,
            snapshot: as_snapshot(snapshot),
            rows: as_rows(&rows, self.definition.sorted),
            complete,
            foreign: as_foreign(&foreign),
            renewal,
        };
        Ok(PyBytes::new(py, &request::encode(&request)))
    }
}

/// A position in a stream, in Valkey's notation.
pub(crate) fn stream_id(text: &str) -> Option<StreamId> {
    let (ms, number) = text.split_once('-')?;
    Some(StreamId {
        ms: ms.parse().ok()?,
        number: number.parse().ok()?,
    })
}

pub(crate) fn as_snapshot((xmin, xmax, running): PySnapshot) -> PgSnapshot {
    PgSnapshot {
        xmin,
        xmax,
        running,
    }
}

/// Converts rows, without bodies if only membership is reported.
pub(crate) fn as_rows(rows: &[PyRow], bodies: bool) -> Vec<ResultRow> {
    let rows = rows
        .iter()
        .map(|(key, version, created, updated, body)| ResultRow {
            key: Arc::from(&**key),
            version: u64::try_from(*version).unwrap_or(0),
            created_ms: *created,
            updated_ms: *updated,
            body: if bodies {
                Arc::from(&**body)
            } else {
                Arc::from([])
            },
        });
    rows.collect()
}

fn as_foreign(foreign: &[PyForeign]) -> Vec<Foreign> {
    let sides = foreign.iter().map(|(rows, complete)| Foreign {
        rows: as_rows(rows, true),
        complete: *complete,
    });
    sides.collect()
}
