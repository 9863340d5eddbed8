//! Reads CSV and JSON files as records, and writes documents as CSV.

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use rillbase_csv::column::{ColumnType, read_column};
use rillbase_csv::dialect::{guess_delimiter, guess_type};
use rillbase_csv::mapping::{DocumentMapping, MappedColumn, MappingProblem};
use rillbase_csv::reader::{CsvFailure, CsvReader, DELIMITERS};
use rillbase_csv::records::{CsvRecord, CsvRecords, RecordProblem};
use rillbase_csv::typed::CsvType;
use rillbase_csv::writer::CsvWriter;
use rillbase_documents::refusal::DocumentRefusal;
use rillbase_json::{FileItem, ItemReader, ItemsFailure};
use rillbase_query::bson::{Document, Value as Bson};
use rillbase_query::error::ParseLocation;

use crate::errors::refused;
use crate::values::PyValue;

const INVALID_DOCUMENT: &str = "invalid_document";

/// The rows of a column, its validity bits, ends and values, and the line and detail of each problem.
type PyColumn<'py> = (
    usize,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    Vec<(u64, String)>,
);

/// Reads a CSV file part by part.
#[pyclass(name = "CsvReader", module = "rillbase_native", skip_from_py_object)]
pub(crate) struct PyCsvReader {
    inner: CsvReader,
}

#[pymethods]
impl PyCsvReader {
    #[new]
    #[pyo3(signature = (*, delimiter = ","))]
    fn new(delimiter: &str) -> PyResult<Self> {
        let inner = CsvReader::new(delimiter_of(delimiter)?);
        Ok(Self { inner })
    }

    fn push(&mut self, py: Python<'_>, part: PyBackedBytes) -> PyResult<PyCsvRecords> {
        let inner = py.detach(|| self.inner.push(&part));
        records(py, inner)
    }

    fn finish(&mut self, py: Python<'_>) -> PyResult<PyCsvRecords> {
        records(py, self.inner.finish())
    }
}

fn records(py: Python<'_>, read: Result<CsvRecords, CsvFailure>) -> PyResult<PyCsvRecords> {
    match read {
        Ok(inner) => Ok(PyCsvRecords { inner }),
        Err(failure) => Err(refused(
            py,
            DocumentRefusal::new("invalid_body", failure.to_string()),
        )),
    }
}

/// Complete records of a CSV file.
#[pyclass(
    frozen,
    name = "CsvRecords",
    module = "rillbase_native",
    skip_from_py_object
)]
pub(crate) struct PyCsvRecords {
    inner: CsvRecords,
}

impl PyCsvRecords {
    fn at(&self, index: usize) -> PyResult<CsvRecord<'_>> {
        let record = self.inner.get(index);
        record.ok_or_else(|| PyIndexError::new_err("there is no such record"))
    }
}

#[pymethods]
impl PyCsvRecords {
    fn __len__(&self) -> usize {
        self.inner.len()
    }

    fn line(&self, index: usize) -> PyResult<u64> {
        Ok(self.at(index)?.line)
    }

    fn size(&self, index: usize) -> PyResult<usize> {
        Ok(self.at(index)?.size)
    }

    /// Return why a record cannot be used, if it cannot.
    fn problem(&self, index: usize) -> PyResult<Option<String>> {
        Ok(self.at(index)?.problem.map(RecordProblem::detail))
    }

    /// Return the texts of a record's fields; None for an empty field without quotes.
    fn fields(&self, index: usize) -> PyResult<Vec<Option<String>>> {
        let fields = self.at(index)?.iter();
        Ok(fields.map(|field| field.map(str::to_owned)).collect())
    }

    /// Convert a record to a document, or raise `QueryError`.
    fn document(
        &self,
        py: Python<'_>,
        index: usize,
        mapping: &PyDocumentMapping,
    ) -> PyResult<PyValue> {
        let record = self.at(index)?;
        if let Some(problem) = record.problem {
            let refusal = DocumentRefusal::new(INVALID_DOCUMENT, problem.detail());
            return Err(refused(py, refusal));
        }
        let document = mapping.inner.record(record);
        let document = document.map_err(|problem| of_mapping(py, INVALID_DOCUMENT, problem))?;
        Ok(PyValue {
            inner: Bson::Document(document),
        })
    }

    /// Return the line and detail of the first records that cannot be used.
    fn problems(&self, most: usize) -> Vec<(u64, String)> {
        let with_problem = |record: CsvRecord<'_>| Some((record.line, record.problem?.detail()));
        self.inner
            .iter()
            .filter_map(with_problem)
            .take(most)
            .collect()
    }

    /// Return a column of the usable records from `first` on in Arrow's layout.
    #[pyo3(signature = (first, column, kind, *, max_problems))]
    fn column<'py>(
        &self,
        py: Python<'py>,
        first: usize,
        column: usize,
        kind: &str,
        max_problems: usize,
    ) -> PyResult<PyColumn<'py>> {
        let kind = ColumnType::from_name(kind)
            .ok_or_else(|| PyValueError::new_err("there is no such type"))?;
        let read = py.detach(|| read_column(&self.inner, first, column, kind, max_problems));
        let problems = read.problems.into_iter();
        Ok((
            read.rows,
            PyBytes::new(py, &read.validity),
            PyBytes::new(py, &read.ends),
            PyBytes::new(py, &read.values),
            problems
                .map(|problem| (problem.line, problem.detail))
                .collect(),
        ))
    }

    /// Guess the type of a column from the records from `first` on.
    fn guess_type(&self, first: usize, column: usize) -> &'static str {
        guess_type(&self.inner, first, column).name()
    }
}

/// Maps columns to fields of a document.
#[pyclass(
    frozen,
    name = "DocumentMapping",
    module = "rillbase_native",
    skip_from_py_object
)]
pub(crate) struct PyDocumentMapping {
    inner: DocumentMapping,
}

#[pymethods]
impl PyDocumentMapping {
    /// Columns, each with its name in the file, the path of its field, and its type.
    #[new]
    fn new(py: Python<'_>, columns: Vec<(String, String, Option<String>)>) -> PyResult<Self> {
        let mut mapped = Vec::with_capacity(columns.len());
        for (from, to, kind) in columns {
            let kind = match kind {
                None => None,
                Some(name) => Some(CsvType::from_name(&name).ok_or_else(|| {
                    let detail = format!("There is no type {name:?}.");
                    let problem = MappingProblem {
                        name: from.clone(),
                        detail,
                    };
                    of_mapping(py, "invalid_parameter", problem)
                })?),
            };
            mapped.push(MappedColumn { from, to, kind });
        }
        let inner = DocumentMapping::new(mapped)
            .map_err(|problem| of_mapping(py, "invalid_parameter", problem))?;
        Ok(Self { inner })
    }

    /// Return the mapping for a CSV file with this header.
    fn for_header(&self, py: Python<'_>, header: Vec<String>) -> PyResult<Self> {
        let inner = self.inner.clone().for_header(&header);
        let inner = inner.map_err(|problem| of_mapping(py, "invalid_parameter", problem))?;
        Ok(Self { inner })
    }

    /// Apply the mapping to a JSON document.
    fn document(&self, py: Python<'_>, value: &PyValue) -> PyResult<PyValue> {
        let document = self.inner.document(value.document()?);
        let document = document.map_err(|problem| of_mapping(py, INVALID_DOCUMENT, problem))?;
        Ok(PyValue {
            inner: Bson::Document(document),
        })
    }
}

fn of_mapping(py: Python<'_>, code: &'static str, problem: MappingProblem) -> PyErr {
    let root = ParseLocation::root();
    let refusal = DocumentRefusal::at(code, &root.key(&problem.name), problem.detail.clone());
    let detail = format!("{}: {}", problem.name, problem.detail);
    refused(py, DocumentRefusal { detail, ..refusal })
}

/// A document, with the line and the column at which it begins.
type PlacedText<'py> = (u64, u64, Bound<'py, PyBytes>);

/// Splits a JSON file into its documents, part by part.
#[pyclass(
    name = "JsonItemReader",
    module = "rillbase_native",
    skip_from_py_object
)]
pub(crate) struct PyJsonItemReader {
    inner: ItemReader,
}

#[pymethods]
impl PyJsonItemReader {
    #[new]
    #[pyo3(signature = (max_bytes, *, one_line = false))]
    fn new(max_bytes: usize, one_line: bool) -> Self {
        let reader = ItemReader::new(max_bytes);
        Self {
            inner: if one_line { reader.one_line() } else { reader },
        }
    }

    /// Return the complete documents, each with the line and the column at which it begins.
    fn push<'py>(
        &mut self,
        py: Python<'py>,
        part: PyBackedBytes,
    ) -> PyResult<Vec<PlacedText<'py>>> {
        let items = py.detach(|| self.inner.push(&part));
        let items = items.map_err(|failure| of_items(py, failure))?;
        let placed = |item: FileItem| (item.line, item.column, PyBytes::new(py, &item.text));
        Ok(items.into_iter().map(placed).collect())
    }

    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.inner.finish().map_err(|failure| of_items(py, failure))
    }
}

fn of_items(py: Python<'_>, failure: ItemsFailure) -> PyErr {
    let code = match failure {
        ItemsFailure::TooLarge { .. } => "body_too_large",
        _ => "invalid_body",
    };
    refused(py, DocumentRefusal::new(code, failure.to_string()))
}

/// Writes documents as CSV records with the same columns.
#[pyclass(
    frozen,
    name = "CsvWriter",
    module = "rillbase_native",
    skip_from_py_object
)]
pub(crate) struct PyCsvWriter {
    inner: CsvWriter,
}

#[pymethods]
impl PyCsvWriter {
    #[new]
    #[pyo3(signature = (columns, *, delimiter = ",", escape_formulas = true))]
    fn new(columns: Vec<String>, delimiter: &str, escape_formulas: bool) -> PyResult<Self> {
        let inner = CsvWriter::new(&columns, delimiter_of(delimiter)?, escape_formulas);
        Ok(Self { inner })
    }

    fn header<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut text = String::new();
        self.inner.header(&mut text);
        PyBytes::new(py, text.as_bytes())
    }

    /// Return the records of documents, given as BSON.
    fn rows<'py>(&self, py: Python<'py>, bodies: Vec<PyBackedBytes>) -> Bound<'py, PyBytes> {
        let text = py.detach(|| {
            let mut text = String::new();
            for body in &bodies {
                self.inner.row(&mut text, Document::trusted(body));
            }
            text
        });
        PyBytes::new(py, text.as_bytes())
    }
}

/// Guess the delimiter of a CSV file from a sample.
#[pyfunction]
pub(crate) fn guess_csv_delimiter(sample: &[u8]) -> char {
    char::from(guess_delimiter(sample))
}

fn delimiter_of(text: &str) -> PyResult<u8> {
    match text.as_bytes() {
        [delimiter] if DELIMITERS.contains(delimiter) => Ok(*delimiter),
        _ => Err(PyValueError::new_err("there is no such delimiter")),
    }
}
