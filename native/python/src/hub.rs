//! The hub of a process, for its event loop.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use rillbase_live::hub::{
    self, Attach, ClientOptions, GridShape, HubConfig, OutboxBounds, Sealer, TraceRequest,
};
use rillbase_live::message::{Notification, QueryHash, StreamId};
use rillbase_live::wire::notification;

use crate::filters::PyProjection;
use crate::hub_requests::as_python;
use crate::live_query::{PyLiveQuery, PyRow, PySnapshot, as_rows, as_snapshot, stream_id};
use crate::values::form;

/// A position in a log, and its entry.
type PyEntry = (String, PyBackedBytes);

/// A frame for one subscription.
#[pyclass(
    frozen,
    get_all,
    freelist = 64,
    module = "rillbase_native",
    skip_from_py_object
)]
pub(crate) struct HubFrame {
    subscription: u64,
    /// JSON.
    text: Py<PyBytes>,
    is_last: bool,
}

/// The state of one subscription.
#[pyclass(frozen, get_all, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct SubscriptionFigures {
    state: &'static str,
    events: u64,
    waiting: usize,
    lag_us: Option<u64>,
    waiting_bytes: usize,
    result_bytes: usize,
}

/// The memory of a hub in bytes, and how often it was reduced.
#[pyclass(frozen, get_all, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct HubMemory {
    results: usize,
    waiting: usize,
    outboxes: usize,
    let_go: u64,
    cut_off: u64,
    refused: u64,
}

/// The hub of one process.
#[pyclass(frozen, name = "Hub", module = "rillbase_native", skip_from_py_object)]
pub(crate) struct PyHub {
    inner: Mutex<hub::Hub>,
}

impl PyHub {
    fn locked(&self) -> MutexGuard<'_, hub::Hub> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyHub {
    #[new]
    #[pyo3(signature = (
        secret, *, installation, epoch, write_partitions, outbox_frames, outbox_bytes, memory_bytes,
        trace_bytes
    ))]
    #[allow(clippy::too_many_arguments, reason = "all of them are given by name")]
    fn new(
        secret: &[u8],
        installation: u64,
        epoch: u32,
        write_partitions: u16,
        outbox_frames: usize,
        outbox_bytes: usize,
        memory_bytes: usize,
        trace_bytes: usize,
    ) -> Self {
        let config = HubConfig {
            sealer: Sealer::new(secret),
            installation,
            epoch,
            write_partitions,
            bounds: OutboxBounds {
                frames: outbox_frames,
                bytes: outbox_bytes,
                ..OutboxBounds::default()
            },
            memory_bytes,
            trace_bytes,
        };
        Self {
            inner: Mutex::new(hub::Hub::new(config)),
        }
    }

    /// Start a subscription.
    #[pyo3(signature = (
        subscription, name, query, partition, *, holder, projection = None,
        whole_results = false, throttle_ms = 0, muted = [false; 4], canonical = false,
        resume = None, reset = None, connection
    ))]
    #[allow(
        clippy::too_many_arguments,
        clippy::fn_params_excessive_bools,
        reason = "a subscription has as many parts"
    )]
    fn attach(
        &self,
        subscription: u64,
        name: String,
        query: &PyLiveQuery,
        partition: u16,
        holder: [u8; 16],
        projection: Option<&PyProjection>,
        whole_results: bool,
        throttle_ms: u64,
        muted: [bool; 4],
        canonical: bool,
        resume: Option<String>,
        reset: Option<String>,
        connection: u64,
    ) {
        let attach = Attach {
            name,
            definition: query.definition.clone(),
            partition,
            projection: projection.map(|projection| projection.inner.clone()),
            options: ClientOptions {
                whole_results,
                throttle_us: throttle_ms.saturating_mul(1000),
                muted,
                form: form(canonical),
            },
            holder,
            resume,
            reset,
            connection,
        };
        self.locked().attach(subscription, attach);
    }

    /// End a subscription without a message.
    fn detach(&self, subscription: u64) {
        self.locked().detach(subscription);
    }

    /// Return the id of a query's pending registration.
    fn asked(&self, query: [u8; 16]) -> Option<u64> {
        self.locked().registration_id(&QueryHash(query))
    }

    /// Set the rows of a query that a request registered after the log's end.
    #[allow(
        clippy::too_many_arguments,
        reason = "a registration has as many parts"
    )]
    fn registered(
        &self,
        query: [u8; 16],
        asked: u64,
        activation: u64,
        request: &str,
        log_end: &str,
        snapshot: PySnapshot,
        rows: Vec<PyRow>,
    ) -> PyResult<()> {
        let (request, log_end) = (place(request)?, place(log_end)?);
        self.locked().registered(
            &QueryHash(query),
            asked,
            (activation, request),
            log_end,
            as_snapshot(snapshot),
            as_rows(&rows, true),
        );
        Ok(())
    }

    /// End all subscriptions of a query with a problem, JSON text.
    fn refused(&self, query: [u8; 16], problem: &str) {
        self.locked().refused(&QueryHash(query), problem);
    }

    /// Register all queries of a log again, because entries of the log are missing.
    fn lost(&self, partition: u16) {
        self.locked().lost(partition);
    }

    /// Register again those queries of a log that the event layer has lost.
    fn forgotten(&self, partition: u16, held: Vec<[u8; 16]>) {
        let held = held.into_iter().map(QueryHash).collect();
        self.locked().forgotten(partition, &held);
    }

    /// Switch to another grid, to which all logs read from now on belong.
    #[pyo3(signature = (*, installation, epoch, write_partitions, query_partitions))]
    fn moved(&self, installation: u64, epoch: u32, write_partitions: u16, query_partitions: u16) {
        self.locked().moved(GridShape {
            installation,
            epoch,
            write_partitions,
            query_partitions,
        });
    }

    /// Read entries of a log; return how many of them could be read.
    fn read(&self, py: Python<'_>, partition: u16, entries: Vec<PyEntry>) -> PyResult<usize> {
        let entries = decoded(py, &entries)?;
        let mut hub = self.locked();
        for (position, notification) in &entries {
            hub.read(partition, *position, notification);
        }
        Ok(entries.len())
    }

    /// Process the entries that a subscription missed; None if the log no longer has them.
    fn replay(
        &self,
        py: Python<'_>,
        subscription: u64,
        entries: Option<Vec<PyEntry>>,
    ) -> PyResult<()> {
        let entries = entries.map(|entries| decoded(py, &entries)).transpose()?;
        self.locked().replay(subscription, entries.as_deref());
        Ok(())
    }

    /// Advance the time to Valkey's, in microseconds.
    fn tick(&self, now_us: u64) {
        self.locked().tick(now_us);
    }

    /// Set the time of what is traced from here on to Valkey's, in microseconds.
    fn set_trace_time(&self, now_us: u64) {
        self.locked().set_trace_time(now_us);
    }

    /// Whether there are frames to send at once.
    fn has_frames(&self) -> bool {
        self.locked().has_frames()
    }

    /// Take frames to send.
    fn poll(&self, py: Python<'_>, most: usize) -> Vec<HubFrame> {
        let frames = py.detach(|| self.locked().poll(most));
        frames
            .into_iter()
            .map(|frame| HubFrame {
                subscription: frame.client,
                text: PyBytes::new(py, frame.text.as_bytes()).unbind(),
                is_last: frame.over,
            })
            .collect()
    }

    /// Record that a client has read some of its frames.
    fn drained(&self, subscription: u64, frames: usize, size_bytes: usize) {
        self.locked().drained(subscription, frames, size_bytes);
    }

    /// Set how many documents were omitted from the rows that were registered.
    fn unevaluated(&self, query: [u8; 16], count: u32) {
        self.locked().unevaluated(&QueryHash(query), count);
    }

    /// Take the requests to the app server.
    fn take_requests<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let requests = self.locked().take_requests();
        requests
            .into_iter()
            .map(|request| as_python(py, request))
            .collect()
    }

    /// Return a query that has subscriptions.
    fn query(&self, query: [u8; 16]) -> Option<PyLiveQuery> {
        let hub = self.locked();
        let definition = hub.definition(&QueryHash(query))?;
        Some(PyLiveQuery {
            definition: definition.clone(),
        })
    }

    /// Return the subscriptions of a query.
    fn subscriptions(&self, query: [u8; 16]) -> Vec<u64> {
        self.locked().clients(&QueryHash(query))
    }

    /// Return the state of a subscription; None if it does not exist.
    fn figures(&self, subscription: u64) -> Option<SubscriptionFigures> {
        let figures = self.locked().figures(subscription)?;
        Some(SubscriptionFigures {
            state: figures.state,
            events: figures.events,
            waiting: figures.waiting,
            lag_us: figures.lag_us,
            waiting_bytes: figures.waiting_bytes,
            result_bytes: figures.result_bytes,
        })
    }

    /// Return the trace of a document's version for a subscription, as a JSON object.
    #[pyo3(signature = (subscription, key, version, *, xid = None, body = None, times_ms = None))]
    fn trace(
        &self,
        subscription: u64,
        key: &[u8],
        version: u64,
        xid: Option<u64>,
        body: Option<&[u8]>,
        times_ms: Option<(i64, i64)>,
    ) -> Option<String> {
        let question = TraceRequest {
            client: subscription,
            key,
            version,
            xid,
            body,
            times_ms,
        };
        self.locked().trace(&question)
    }

    /// Return the bytes of the traces.
    fn trace_bytes(&self) -> usize {
        self.locked().trace_bytes()
    }

    /// Whether new subscriptions may be accepted.
    fn has_room(&self) -> bool {
        self.locked().has_room()
    }

    /// Return the hub's memory, and how often it was reduced.
    fn memory(&self) -> HubMemory {
        let memory = self.locked().memory();
        HubMemory {
            results: memory.results,
            waiting: memory.waiting,
            outboxes: memory.outboxes,
            let_go: memory.let_go,
            cut_off: memory.cut_off,
            refused: memory.refused,
        }
    }
}

fn place(text: &str) -> PyResult<StreamId> {
    stream_id(text).ok_or_else(|| PyValueError::new_err("not a stream id"))
}

fn decoded(py: Python<'_>, entries: &[PyEntry]) -> PyResult<Vec<(StreamId, Notification)>> {
    py.detach(|| {
        entries
            .iter()
            .map(|(position, bytes)| {
                let entry = notification::decode(bytes)
                    .map_err(|malformed| PyValueError::new_err(malformed.to_string()))?;
                Ok((place(position)?, entry))
            })
            .collect()
    })
}
