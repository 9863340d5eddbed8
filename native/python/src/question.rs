//! A sort node's question for single documents, and its answer.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use rillbase_live::message::{FetchId, FetchedDocument, NodeRequest};
use rillbase_live::wire::request;

/// Key, version, writing transaction, and the visible document as BSON.
type PyFetched = (PyBackedBytes, u64, u64, Option<PyBackedBytes>);

/// Documents of the collections that a query looks up, by their keys.
#[pyclass(
    frozen,
    name = "Question",
    module = "rillbase_native",
    skip_from_py_object
)]
pub(crate) struct PyQuestion {
    fetch: FetchId,
    keys: Vec<Vec<Arc<[u8]>>>,
}

#[pymethods]
impl PyQuestion {
    /// Parse a question from `FetchDocuments`.
    #[staticmethod]
    fn read(bytes: &[u8]) -> PyResult<Self> {
        let (fetch, keys) = request::decode_question(bytes)
            .map_err(|malformed| PyValueError::new_err(malformed.to_string()))?;
        Ok(Self { fetch, keys })
    }

    /// Return the question's unique id.
    #[getter]
    fn name(&self) -> String {
        format!("{}-{}", self.fetch.token.0, self.fetch.number)
    }

    /// Return the keys, of each collection that is looked up.
    #[getter]
    fn keys<'py>(&self, py: Python<'py>) -> Vec<Vec<Bound<'py, PyBytes>>> {
        let side = |keys: &Vec<Arc<[u8]>>| keys.iter().map(|key| PyBytes::new(py, key)).collect();
        self.keys.iter().map(side).collect()
    }

    /// Return the answer to the sort node: the documents of each collection in one snapshot.
    fn answer<'py>(&self, py: Python<'py>, documents: Vec<Vec<PyFetched>>) -> Bound<'py, PyBytes> {
        let read = |side: Vec<PyFetched>| side.into_iter().map(as_fetched).collect();
        let request = NodeRequest::Fetched {
            fetch: self.fetch,
            documents: documents.into_iter().map(read).collect(),
        };
        PyBytes::new(py, &request::encode(&request))
    }
}

fn as_fetched((key, version, xid, body): PyFetched) -> FetchedDocument {
    FetchedDocument {
        key: Arc::from(&*key),
        version,
        xid,
        body: body.map(|body| Arc::from(&*body)),
    }
}
