//! Filters, rules, sorts and projections.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rillbase_documents::bounds::{self, EncodedRange};
use rillbase_documents::rule;
use rillbase_json::{Integer, JsonLimits, JsonSink};
use rillbase_query::bson::{Array, ArrayWriter, Document, DocumentWriter, ValueRef};
use rillbase_query::environment::EvaluationContext;
use rillbase_query::error::{Error, ParseLocation};
use rillbase_query::{filter, group, lookup, projection, sort};

use crate::errors::refused;
use crate::index_fields::{DeclaredFields, index_fields};
use crate::values::PyValue;

/// A parsed, normalized filter.
#[pyclass(frozen, name = "Filter", module = "rillbase_native", from_py_object)]
#[derive(Clone)]
pub(crate) struct PyFilter {
    pub(crate) inner: Arc<filter::Filter>,
}

#[pymethods]
impl PyFilter {
    #[staticmethod]
    #[pyo3(signature = (value, *, pointer = "/filter"))]
    fn parse(py: Python<'_>, value: Option<&PyValue>, pointer: &str) -> PyResult<Self> {
        let inner = match value {
            None => filter::Filter::everything(),
            Some(value) if matches!(value.view(), ValueRef::Null) => filter::Filter::everything(),
            Some(value) => within(pointer, |location| match value.view() {
                ValueRef::Document(document) => filter::Filter::parse_at(document, location),
                _ => Err(Error::new(
                    rillbase_query::error::ErrorCode::InvalidFilter,
                    location,
                    "a filter is an object",
                )),
            })
            .map_err(|error| refused(py, error.into()))?,
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Return whether the document matches. One that cannot be evaluated does not.
    fn matches(&self, body: &[u8], now_ms: i64) -> bool {
        let environment = EvaluationContext::at(now_ms);
        let answer = self.inner.matches_in(Document::trusted(body), &environment);
        answer == Ok(true)
    }

    /// Return whether the document matches, or raise why it cannot be evaluated.
    fn evaluate(&self, py: Python<'_>, body: &[u8], now_ms: i64) -> PyResult<bool> {
        let environment = EvaluationContext::at(now_ms);
        let answer = self.inner.matches_in(Document::trusted(body), &environment);
        answer.map_err(|failure| refused(py, failure.into()))
    }

    /// Return why the document matches or does not: a JSON object.
    fn explain(&self, body: &[u8], now_ms: i64) -> String {
        self.inner.explain(Document::trusted(body), now_ms).json()
    }

    /// Return the kind of predicate by which the index finds live queries with this filter, the
    /// paths of its entries, and whether the document reaches them.
    fn reach(&self, body: &[u8]) -> (&'static str, Vec<String>, bool) {
        let reach = rillbase_matching::reach(&self.inner, Document::trusted(body));
        let placement = reach.placement;
        (placement.class.name(), placement.paths, reach.reached)
    }

    #[pyo3(name = "and_")]
    fn and(&self, other: &Self) -> Self {
        Self {
            inner: Arc::new(self.inner.and(&other.inner)),
        }
    }

    fn canonical<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.inner.canonical().as_bytes())
    }

    fn hash<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.inner.hash().0)
    }

    fn check_live(&self, py: Python<'_>) -> PyResult<()> {
        self.inner
            .check_live()
            .map_err(|error| refused(py, error.into()))
    }

    fn bounds(&self, fields: DeclaredFields) -> PyResult<Option<PyBounds>> {
        let inner = bounds::bounds(&self.inner, &index_fields(fields)?);
        Ok(inner.map(|inner| PyBounds { inner }))
    }

    fn id_bounds<'py>(&self, py: Python<'py>) -> Option<Vec<PyRange<'py>>> {
        Some(py_ranges(py, &bounds::id_bounds(&self.inner)?))
    }

    /// Return the predicates of which at least one must hold for a document to match.
    fn access(&self) -> Option<Vec<(String, &'static str)>> {
        rillbase_documents::access::access(&self.inner)
    }

    #[getter]
    fn ranks(&self) -> bool {
        self.inner.near().is_some()
    }

    /// Return the path of `$near`, the order of an index for it, and distances: the first to read,
    /// the greatest up to which a part of the index is read, and that within which all matches are.
    fn near(&self) -> Option<(String, &'static str, f64, f64, f64)> {
        let (path, near) = self.inner.near()?;
        let span = near.span();
        Some((
            path.text(),
            span.order.spatial_name()?,
            span.first,
            span.widest,
            span.farthest,
        ))
    }

    fn within(&self, distance: f64) -> Self {
        Self {
            inner: Arc::new(self.inner.within(distance)),
        }
    }
}

pub(crate) type PyRange<'py> = (Bound<'py, PyBytes>, Option<Bound<'py, PyBytes>>);

fn py_ranges<'py>(py: Python<'py>, ranges: &[EncodedRange]) -> Vec<PyRange<'py>> {
    ranges
        .iter()
        .map(|range| {
            let high = range.high.as_ref().map(|high| PyBytes::new(py, high));
            (PyBytes::new(py, &range.low), high)
        })
        .collect()
}

/// The bounds of a filter in an index.
#[pyclass(
    frozen,
    name = "Bounds",
    module = "rillbase_native",
    skip_from_py_object
)]
pub(crate) struct PyBounds {
    pub(crate) inner: bounds::IndexBounds,
}

#[pymethods]
impl PyBounds {
    #[getter]
    fn ranges<'py>(&self, py: Python<'py>) -> Vec<PyRange<'py>> {
        py_ranges(py, &self.inner.ranges)
    }

    #[getter]
    fn equalities(&self) -> usize {
        self.inner.equalities
    }
}

/// An access rule.
#[pyclass(frozen, name = "Rule", module = "rillbase_native", skip_from_py_object)]
pub(crate) struct PyRule {
    inner: rule::AccessRule,
}

#[pymethods]
impl PyRule {
    #[staticmethod]
    #[pyo3(signature = (value, *, pointer = ""))]
    fn parse(py: Python<'_>, value: &PyValue, pointer: &str) -> PyResult<Self> {
        let inner = within(pointer, |location| {
            rule::AccessRule::parse(value.view(), location)
        })
        .map_err(|refusal| refused(py, refusal))?;
        Ok(Self { inner })
    }

    fn bind(&self, claims: Option<&[u8]>) -> Option<PyFilter> {
        let claims = match claims {
            Some(text) => Some(plain_json(text)?),
            None => None,
        };
        let view = claims.as_deref().map(Document::trusted);
        let inner = Arc::new(self.inner.bind(view)?);
        Some(PyFilter { inner })
    }
}

/// A sort, `_id` last.
#[pyclass(frozen, name = "Sort", module = "rillbase_native", skip_from_py_object)]
#[derive(Clone)]
pub(crate) struct PySort {
    pub(crate) inner: sort::Sort,
}

#[pymethods]
impl PySort {
    #[staticmethod]
    #[pyo3(signature = (value, filter = None, *, pointer = "/sort"))]
    fn parse(
        py: Python<'_>,
        value: Option<&PyValue>,
        filter: Option<&PyFilter>,
        pointer: &str,
    ) -> PyResult<Self> {
        let inner = match value.map(PyValue::view) {
            None | Some(ValueRef::Null) => {
                filter.map_or_else(sort::Sort::default, |filter| filter.inner.default_sort())
            }
            Some(view) => within(pointer, |location| sort::Sort::parse(view, location))
                .map_err(|error| refused(py, error.into()))?,
        };
        Ok(Self { inner })
    }

    /// Whether it is the order of the documents' keys.
    #[getter]
    fn by_id(&self) -> bool {
        self.inner == sort::Sort::default()
    }

    fn canonical(&self) -> String {
        self.inner.canonical()
    }

    fn direction(&self, fields: DeclaredFields, equalities: usize) -> PyResult<Option<i32>> {
        let fields = index_fields(fields)?;
        let rest = fields.get(equalities..).unwrap_or_default();
        let direction = self.inner.direction(rest);
        Ok(direction.map(|forward| if forward { 1 } else { -1 }))
    }
}

/// How documents are grouped.
#[pyclass(
    frozen,
    name = "Group",
    module = "rillbase_native",
    skip_from_py_object
)]
#[derive(Clone)]
pub(crate) struct PyGroup {
    pub(crate) inner: Arc<group::GroupDefinition>,
}

#[pymethods]
impl PyGroup {
    #[staticmethod]
    #[pyo3(signature = (value, *, pointer = "/group"))]
    fn parse(py: Python<'_>, value: &PyValue, pointer: &str) -> PyResult<Self> {
        let parsed = within(pointer, |location| {
            group::GroupDefinition::parse(value.view(), location)
        });
        let inner = Arc::new(parsed.map_err(|error| refused(py, error.into()))?);
        Ok(Self { inner })
    }

    /// Reject a sort by fields that no row has.
    #[pyo3(signature = (sort, *, pointer = "/sort"))]
    fn check_sort(&self, py: Python<'_>, sort: &PySort, pointer: &str) -> PyResult<()> {
        within(pointer, |location| {
            self.inner.check_sort(&sort.inner, location)
        })
        .map_err(|error| refused(py, error.into()))
    }
}

/// What is looked up for each document.
#[pyclass(
    frozen,
    name = "Lookups",
    module = "rillbase_native",
    skip_from_py_object
)]
#[derive(Clone)]
pub(crate) struct PyLookups {
    pub(crate) inner: Arc<lookup::LookupFields>,
}

#[pymethods]
impl PyLookups {
    #[staticmethod]
    #[pyo3(signature = (value, *, pointer = "/lookup"))]
    fn parse(py: Python<'_>, value: &PyValue, pointer: &str) -> PyResult<Self> {
        let parsed = within(pointer, |location| {
            lookup::LookupFields::parse(value.view(), location)
        });
        let inner = Arc::new(parsed.map_err(|error| refused(py, error.into()))?);
        Ok(Self { inner })
    }

    /// Return the collections that are looked up, each once.
    #[getter]
    fn collections(&self) -> Vec<String> {
        let names = self.inner.collections().into_iter();
        names.map(str::to_owned).collect()
    }
}

/// A projection.
#[pyclass(
    frozen,
    name = "Projection",
    module = "rillbase_native",
    skip_from_py_object
)]
#[derive(Clone)]
pub(crate) struct PyProjection {
    pub(crate) inner: Arc<projection::Projection>,
}

#[pymethods]
impl PyProjection {
    #[staticmethod]
    #[pyo3(signature = (value, *, pointer = "/projection"))]
    fn parse(py: Python<'_>, value: &PyValue, pointer: &str) -> PyResult<Self> {
        let parsed = within(pointer, |location| match value.view() {
            ValueRef::Document(document) => projection::Projection::parse(document, location),
            _ => Err(Error::new(
                rillbase_query::error::ErrorCode::InvalidProjection,
                location,
                "a projection is an object",
            )),
        });
        let inner = Arc::new(parsed.map_err(|error| refused(py, error.into()))?);
        Ok(Self { inner })
    }
}

/// Runs a parser at the location of a JSON pointer without escapes.
pub(crate) fn within<T>(pointer: &str, parse: impl FnOnce(&ParseLocation<'_>) -> T) -> T {
    fn descend<'p, T>(
        location: &ParseLocation<'p>,
        mut names: std::str::Split<'p, char>,
        parse: impl FnOnce(&ParseLocation<'_>) -> T,
    ) -> T
where {
        match names.next() {
            Some(first) => {
                let here = location.key(first);
                match names.next() {
                    Some(second) => parse(&here.key(second)),
                    None => parse(&here),
                }
            }
            None => parse(location),
        }
    }
    match pointer.strip_prefix('/') {
        Some(names) => descend(&ParseLocation::root(), names.split('/'), parse),
        None => parse(&ParseLocation::root()),
    }
}

/// Claims as a document. Claims are plain JSON: an object of a token that looks like Extended JSON
/// is not interpreted.
fn plain_json(text: &[u8]) -> Option<Vec<u8>> {
    let mut builder = PlainBuilder {
        open: Vec::new(),
        root: None,
    };
    rillbase_json::read(text, &JsonLimits::default(), &mut builder).ok()?;
    builder.root
}

enum PlainFrame {
    Object(DocumentWriter, String),
    Array(ArrayWriter),
}

struct PlainBuilder {
    open: Vec<PlainFrame>,
    root: Option<Vec<u8>>,
}

impl PlainBuilder {
    fn put(&mut self, value: ValueRef<'_>) {
        match self.open.last_mut() {
            Some(PlainFrame::Object(writer, key)) => writer.append(key, value),
            Some(PlainFrame::Array(writer)) => writer.push(value),
            None => {}
        }
    }
}

impl JsonSink for PlainBuilder {
    type Error = ();

    fn null(&mut self) -> Result<(), ()> {
        self.put(ValueRef::Null);
        Ok(())
    }

    fn boolean(&mut self, value: bool) -> Result<(), ()> {
        self.put(ValueRef::Bool(value));
        Ok(())
    }

    fn integer(&mut self, value: Integer<'_>) -> Result<(), ()> {
        match value {
            Integer::Small(value) => match i32::try_from(value) {
                Ok(small) => self.put(ValueRef::Int32(small)),
                Err(_) => self.put(ValueRef::Int64(value)),
            },
            Integer::Large(digits) => self.put(ValueRef::Double(digits.parse().map_err(|_| ())?)),
        }
        Ok(())
    }

    fn double(&mut self, value: f64) -> Result<(), ()> {
        self.put(ValueRef::Double(value));
        Ok(())
    }

    fn string(&mut self, value: &str) -> Result<(), ()> {
        self.put(ValueRef::String(value));
        Ok(())
    }

    fn begin_object(&mut self) -> Result<(), ()> {
        self.open
            .push(PlainFrame::Object(DocumentWriter::new(), String::new()));
        Ok(())
    }

    fn key(&mut self, key: &str) -> Result<(), ()> {
        if let Some(PlainFrame::Object(_, current)) = self.open.last_mut() {
            key.clone_into(current);
        }
        Ok(())
    }

    fn end_object(&mut self) -> Result<(), ()> {
        if let Some(PlainFrame::Object(writer, _)) = self.open.pop() {
            let bytes = writer.finish();
            if self.open.is_empty() {
                self.root = Some(bytes);
            } else {
                self.put(ValueRef::Document(Document::trusted(&bytes)));
            }
        }
        Ok(())
    }

    fn begin_array(&mut self) -> Result<(), ()> {
        self.open.push(PlainFrame::Array(ArrayWriter::new()));
        Ok(())
    }

    fn end_array(&mut self) -> Result<(), ()> {
        if let Some(PlainFrame::Array(writer)) = self.open.pop() {
            let bytes = writer.finish();
            self.put(ValueRef::Array(Array::trusted(&bytes)));
        }
        Ok(())
    }
}
