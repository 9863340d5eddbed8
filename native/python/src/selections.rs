//! Evaluates queries, and renders documents.

use std::collections::BTreeSet;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use rillbase_documents::envelope::{Meta, write};
use rillbase_documents::grouping;
use rillbase_documents::lookups::{self, ReferencedDocuments};
use rillbase_documents::page::ResultPage;
use rillbase_documents::row_format;
use rillbase_documents::selection::{self, CandidateRow, SelectionProgress};
use rillbase_documents::selection_request::{CandidateOrder, IndexOrder, SelectionRequest};
use rillbase_documents::version_format;
use rillbase_query::bson::{Document, ValueRef};
use rillbase_query::environment::EvaluationContext;
use rillbase_query::projection::Matched;

use crate::errors::refused;
use crate::filters::{PyBounds, PyFilter, PyGroup, PyLookups, PyProjection, PySort};
use crate::index_fields::{DeclaredFields, index_fields};
use crate::values::form;

/// Key, version, created and updated in milliseconds, BSON, index entry.
type Row = (
    PyBackedBytes,
    i64,
    i64,
    i64,
    PyBackedBytes,
    Option<PyBackedBytes>,
);

/// The same, to Python.
type CandidateTuple<'py> = (
    Bound<'py, PyBytes>,
    i64,
    i64,
    i64,
    Bound<'py, PyBytes>,
    Option<Bound<'py, PyBytes>>,
);

/// Version, xid, BSON.
type VersionTuple<'py> = (i64, u64, Option<Bound<'py, PyBytes>>);

/// Sort position, index entry, key.
type PyNext<'py> = (
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
);

/// Key, version, created and updated in milliseconds, BSON.
type PyRow<'py> = (Bound<'py, PyBytes>, i64, i64, i64, Bound<'py, PyBytes>);

/// The evaluation of a query: it takes candidates and returns a page.
#[pyclass(module = "rillbase_native", name = "Selection", skip_from_py_object)]
pub(crate) struct PySelection {
    inner: selection::Selection,
    /// The page, once its references were requested.
    page: Option<ResultPage>,
    projection: Option<PyProjection>,
}

#[pymethods]
impl PySelection {
    #[new]
    #[pyo3(signature = (
        filter, sort, *, offset, limit, after, now_ms, max_bytes, page_bytes, projection = None,
        ordered = false, group = None, lookups = None, readable = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "a query has as many parts")]
    fn new(
        filter: &PyFilter,
        sort: &PySort,
        offset: usize,
        limit: usize,
        after: Option<Vec<u8>>,
        now_ms: i64,
        max_bytes: usize,
        page_bytes: usize,
        projection: Option<&PyProjection>,
        ordered: bool,
        group: Option<&PyGroup>,
        lookups: Option<&PyLookups>,
        readable: Option<&PyFilter>,
    ) -> Self {
        let request = SelectionRequest {
            filter: filter.inner.clone(),
            sort: sort.inner.clone(),
            offset,
            limit,
            after,
            now_ms,
            max_bytes,
            page_bytes,
            group: group.map(|group| group.inner.clone()),
            lookups: lookups.map(|lookups| lookups.inner.clone()),
            readable: readable.map(|readable| readable.inner.clone()),
        };
        let arrival = if ordered {
            CandidateOrder::Ordered
        } else {
            CandidateOrder::Unordered
        };
        Self {
            inner: selection::Selection::new(request, arrival),
            page: None,
            projection: projection.cloned(),
        }
    }

    /// Return the same selection for candidates in the order of an index.
    fn by_index(
        &self,
        index: DeclaredFields,
        bounds: Option<&PyBounds>,
        backward: bool,
    ) -> PyResult<Self> {
        let bounds = bounds.map(|bounds| &bounds.inner);
        let order = IndexOrder::new(index_fields(index)?, bounds, backward);
        let request = self.inner.request().clone();
        Ok(Self {
            inner: selection::Selection::new(request, CandidateOrder::ByIndex(order)),
            page: None,
            projection: self.projection.clone(),
        })
    }

    /// Process candidates. Return `more`, `enough` or `misplaced`.
    fn feed(&mut self, py: Python<'_>, rows: Vec<Row>) -> PyResult<&'static str> {
        let inner = &mut self.inner;
        let progress = py.detach(|| inner.feed(rows.iter().map(candidate)));
        match progress.map_err(|refusal| refused(py, refusal))? {
            SelectionProgress::More => Ok("more"),
            SelectionProgress::Enough => Ok("enough"),
            SelectionProgress::Misplaced => Ok("misplaced"),
        }
    }

    /// Return how many documents that the caller may read were omitted because they could not be
    /// evaluated, and the error of the first.
    #[getter]
    fn unevaluated(&self) -> (usize, Option<&str>) {
        let unevaluated = &self.inner.unevaluated;
        (unevaluated.count(), unevaluated.detail())
    }

    #[getter]
    fn examined(&self) -> usize {
        self.inner.examined
    }

    /// Return how many documents are in the result, one more than requested at most.
    #[getter]
    fn row_count(&self) -> usize {
        self.inner.row_count()
    }

    #[getter]
    fn matched(&self) -> usize {
        self.inner.matched
    }

    /// Return the bytes of the held documents.
    #[getter]
    fn held_bytes(&self) -> usize {
        self.inner.held_bytes()
    }

    /// Return the page as JSON, the position after it if more may follow, and its length.
    #[pyo3(signature = (*, canonical = false))]
    fn finish<'py>(
        &mut self,
        py: Python<'py>,
        canonical: bool,
    ) -> (Bound<'py, PyBytes>, Option<PyNext<'py>>, usize) {
        let Self {
            inner,
            page,
            projection,
        } = self;
        let rows = page.take().unwrap_or_else(|| py.detach(|| inner.finish()));
        let projection = projection
            .as_ref()
            .map(|projection| projection.inner.as_ref());
        let mut unevaluated = std::mem::take(&mut inner.unevaluated);
        let text = py.detach(|| {
            let request = inner.request();
            rows.render(request, projection, form(canonical), &mut unevaluated)
        });
        inner.unevaluated = unevaluated;
        let next = rows.next.as_ref().map(|next| {
            let [position, entry, key] =
                [&next.sort_position, &next.entry, &next.key].map(|bytes| PyBytes::new(py, bytes));
            (position, entry, key)
        });
        (PyBytes::new(py, text.as_bytes()), next, rows.len())
    }

    /// Return the keys to which the page's documents refer, for each of the lookups' collections.
    /// No more candidates are accepted.
    fn references<'py>(
        &mut self,
        py: Python<'py>,
        lookups: &PyLookups,
    ) -> PyResult<Vec<Vec<Bound<'py, PyBytes>>>> {
        let page = self.page.insert(self.inner.finish());
        let keys = lookups::keys(&lookups.inner, page.bodies());
        let keys = keys.map_err(|refusal| refused(py, refusal))?;
        Ok(py_keys(py, &keys))
    }

    /// Embed into each document those that it refers to; `found` has their keys and BSON, for each
    /// of the lookups' collections.
    fn embed(
        &mut self,
        py: Python<'_>,
        lookups: &PyLookups,
        found: Vec<Vec<(Vec<u8>, PyBackedBytes)>>,
        max_bytes: usize,
    ) -> PyResult<()> {
        let page = self.page.get_or_insert_with(|| self.inner.finish());
        let found: Vec<ReferencedDocuments<PyBackedBytes>> = found
            .into_iter()
            .map(|documents| documents.into_iter().collect())
            .collect();
        py.detach(|| page.embed(&lookups.inner, &found, max_bytes))
            .map_err(|refusal| refused(py, refusal))
    }

    /// Return the bodies of the page in order, and the position after it if more may follow.
    fn bodies<'py>(
        &mut self,
        py: Python<'py>,
    ) -> (Vec<Bound<'py, PyBytes>>, Option<Bound<'py, PyBytes>>) {
        let rows = self.inner.finish();
        let next = rows
            .next
            .as_ref()
            .map(|next| PyBytes::new(py, &next.sort_position));
        let bodies = rows.bodies().map(|body| PyBytes::new(py, body));
        (bodies.collect(), next)
    }

    /// Return the page's rows in order, and whether more may follow.
    fn rows<'py>(&mut self, py: Python<'py>) -> (Vec<PyRow<'py>>, bool) {
        let rows = self.inner.finish();
        let documents = rows.documents().map(|(key, meta, body)| {
            (
                PyBytes::new(py, key),
                meta.version,
                meta.created_ms,
                meta.updated_ms,
                PyBytes::new(py, body),
            )
        });
        (documents.collect(), rows.next.is_some())
    }
}

pub(crate) fn py_keys<'py>(
    py: Python<'py>,
    keys: &[BTreeSet<Vec<u8>>],
) -> Vec<Vec<Bound<'py, PyBytes>>> {
    let keys = keys.iter().map(|keys| {
        let keys = keys.iter().map(|key| PyBytes::new(py, key));
        keys.collect()
    });
    keys.collect()
}

/// The evaluation of a grouped query: it takes candidates and returns rows.
#[pyclass(module = "rillbase_native", name = "Grouping", skip_from_py_object)]
pub(crate) struct PyGrouping {
    inner: grouping::Grouping,
}

#[pymethods]
impl PyGrouping {
    #[new]
    #[pyo3(signature = (filter, group, *, now_ms, most, readable = None))]
    fn new(
        filter: &PyFilter,
        group: &PyGroup,
        now_ms: i64,
        most: usize,
        readable: Option<&PyFilter>,
    ) -> Self {
        let readable = readable.map(|readable| readable.inner.clone());
        let filters = (filter.inner.clone(), readable);
        Self {
            inner: grouping::Grouping::new(filters, group.inner.clone(), now_ms, most),
        }
    }

    /// Return how many documents that the caller may read are in no group because they could not be
    /// evaluated, and the error of the first.
    #[getter]
    fn unevaluated(&self) -> (usize, Option<&str>) {
        let unevaluated = &self.inner.unevaluated;
        (unevaluated.count(), unevaluated.detail())
    }

    /// Return the maximum bytes of the groups.
    #[getter]
    fn held_bytes(&self) -> usize {
        self.inner.held_bytes()
    }

    /// Process candidates. Always return `more`, because a group depends on all of them.
    fn feed(&mut self, py: Python<'_>, rows: Vec<Row>) -> PyResult<&'static str> {
        let inner = &mut self.inner;
        py.detach(|| inner.feed(rows.iter().map(candidate)))
            .map_err(|refusal| refused(py, refusal))?;
        Ok("more")
    }

    /// Return some of the rows in order as JSON.
    #[pyo3(signature = (sort, *, offset, limit, canonical = false))]
    fn render<'py>(
        &self,
        py: Python<'py>,
        sort: Option<&PySort>,
        offset: usize,
        limit: usize,
        canonical: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let sort = sort.map(|sort| &sort.inner);
        let text = py
            .detach(|| self.inner.render(sort, (offset, limit), form(canonical)))
            .map_err(|refusal| refused(py, refusal))?;
        Ok(PyBytes::new(py, text.as_bytes()))
    }
}

/// Return the number at the beginning of a sort position, if it is a double.
#[pyfunction]
pub(crate) fn leading_double(key: &[u8]) -> Option<f64> {
    rillbase_query::key::leading_double(key)
}

/// Return the candidates that a storage node sent: keys, versions, creation and update times in
/// milliseconds, bodies, entries.
#[pyfunction]
pub(crate) fn candidate_rows<'py>(
    py: Python<'py>,
    rows: &[u8],
) -> PyResult<Vec<CandidateTuple<'py>>> {
    let rows = row_format::rows(rows).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let tuples = rows.iter().map(|row| {
        (
            PyBytes::new(py, row.key),
            row.meta.version,
            row.meta.created_ms,
            row.meta.updated_ms,
            PyBytes::new(py, row.body),
            row.entry.map(|entry| PyBytes::new(py, entry)),
        )
    });
    Ok(tuples.collect())
}

/// Return the versions that a storage node sent: numbers, xids, bodies.
#[pyfunction]
pub(crate) fn document_versions<'py>(
    py: Python<'py>,
    versions: &[u8],
) -> PyResult<Vec<VersionTuple<'py>>> {
    let versions = version_format::versions(versions);
    let versions = versions.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let tuples = versions.iter().map(|version| {
        let body = version.body.map(|body| PyBytes::new(py, body));
        (version.number, version.xid, body)
    });
    Ok(tuples.collect())
}

fn candidate(row: &Row) -> CandidateRow<'_> {
    CandidateRow {
        key: &row.0,
        meta: Meta {
            version: row.1,
            created_ms: row.2,
            updated_ms: row.3,
        },
        body: &row.4,
        entry: row.5.as_deref(),
    }
}

/// Return a document's envelope as JSON.
#[pyfunction]
#[pyo3(signature = (version, created_ms, updated_ms, body, *, canonical = false, projection = None))]
pub(crate) fn envelope<'py>(
    py: Python<'py>,
    version: i64,
    created_ms: i64,
    updated_ms: i64,
    body: &[u8],
    canonical: bool,
    projection: Option<&PyProjection>,
) -> Bound<'py, PyBytes> {
    let document = Document::trusted(body);
    let meta = Meta {
        version,
        created_ms,
        updated_ms,
    };
    let id = document.get("_id").unwrap_or(ValueRef::Null);
    let mut text = String::with_capacity(body.len() * 2 + 128);
    match projection {
        None => write(&mut text, meta, id, document, form(canonical)),
        Some(projection) => {
            let environment = EvaluationContext::at(updated_ms);
            let projection = &projection.inner;
            let (shown, _) = projection.apply_or_id(document, Matched::default(), &environment);
            write(&mut text, meta, id, shown.as_ref(), form(canonical));
        }
    }
    PyBytes::new(py, text.as_bytes())
}
