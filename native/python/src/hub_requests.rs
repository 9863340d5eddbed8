//! The requests of a hub to the app server: one frozen class for each kind.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rillbase_live::hub::HubRequest;
use rillbase_live::message::{QueryHash, StreamId};
use rillbase_live::wire::request;

/// Read a query's rows and register it with the grid's nodes.
#[pyclass(frozen, get_all, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct RegisterQuery {
    query: Py<PyBytes>,
}

/// Release a query whose last subscription has ended.
#[pyclass(frozen, get_all, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct UnregisterQuery {
    query: Py<PyBytes>,
}

/// Read a query's rows again, with more of them beyond its window.
#[pyclass(frozen, get_all, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct RenewQuery {
    query: Py<PyBytes>,
    slack: u32,
}

/// Read single documents that a query looks up, for the sort node.
#[pyclass(frozen, get_all, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct FetchDocuments {
    query: Py<PyBytes>,
    question: Py<PyBytes>,
}

/// Check the access of a query's subscribers again.
#[pyclass(frozen, get_all, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct RecheckAccess {
    query: Py<PyBytes>,
}

/// End the subscriptions of a query that a node cannot watch.
#[pyclass(frozen, get_all, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct FailQuery {
    query: Py<PyBytes>,
    code: String,
    detail: String,
}

/// Add to the error log that documents cannot be evaluated for a query.
#[pyclass(frozen, get_all, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct LogUnevaluated {
    query: Py<PyBytes>,
    count: u32,
}

/// Read the part of a notification log that a subscription missed.
#[pyclass(frozen, get_all, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct ReplayLog {
    subscription: u64,
    partition: u16,
    after: String,
    upto: String,
}

pub(crate) fn as_python(py: Python<'_>, request: HubRequest) -> PyResult<Bound<'_, PyAny>> {
    let bytes = |hash: QueryHash| PyBytes::new(py, &hash.0).unbind();
    Ok(match request {
        HubRequest::Register(hash) => object(py, RegisterQuery { query: bytes(hash) })?,
        HubRequest::Unregister(hash) => object(py, UnregisterQuery { query: bytes(hash) })?,
        HubRequest::Renew(hash, slack) => {
            let query = bytes(hash);
            object(py, RenewQuery { query, slack })?
        }
        HubRequest::Fetch(fetch, keys) => {
            let query = bytes(fetch.query);
            let question = PyBytes::new(py, &request::encode_question(&fetch, &keys)).unbind();
            object(py, FetchDocuments { query, question })?
        }
        HubRequest::RecheckAccess(hash) => object(py, RecheckAccess { query: bytes(hash) })?,
        HubRequest::Fail(hash, code, detail) => {
            let query = bytes(hash);
            object(
                py,
                FailQuery {
                    query,
                    code,
                    detail,
                },
            )?
        }
        HubRequest::LogUnevaluated(hash, count) => {
            let query = bytes(hash);
            object(py, LogUnevaluated { query, count })?
        }
        HubRequest::Replay {
            client,
            partition,
            after,
            upto,
        } => {
            let replay = ReplayLog {
                subscription: client,
                partition,
                after: stream_text(after),
                upto: stream_text(upto),
            };
            object(py, replay)?
        }
    })
}

fn object<T>(py: Python<'_>, value: T) -> PyResult<Bound<'_, PyAny>>
where
    T: pyo3::PyClass + Into<PyClassInitializer<T>>,
{
    Ok(Bound::new(py, value)?.into_any())
}

fn stream_text(id: StreamId) -> String {
    format!("{}-{}", id.ms, id.number)
}
