//! The storage node within the process, for Python.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use rillbase_storage_node::{Embedded, NodeOptions, Speaker};

use crate::errors::node_error;

/// A storage node without a socket.
#[pyclass(frozen, name = "Node", module = "rillbase_native", skip_from_py_object)]
pub(crate) struct PyNode {
    node: Arc<Embedded>,
    own: NodeSpeaker,
}

/// A client that executes commands, as a connection does.
#[pyclass(frozen, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct NodeSpeaker {
    /// `None`: the node was closed before.
    speaker: Mutex<Option<Speaker>>,
}

/// A word of a command.
#[derive(FromPyObject)]
enum Word {
    Bytes(PyBackedBytes),
    Text(PyBackedStr),
    Number(i64),
}

impl Word {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes.to_vec(),
            Self::Text(text) => text.as_bytes().to_vec(),
            Self::Number(number) => number.to_string().into_bytes(),
        }
    }
}

impl NodeSpeaker {
    fn of(node: &Arc<Embedded>) -> Self {
        Self {
            speaker: Mutex::new(node.speaker()),
        }
    }

    /// Runs `work` with the speaker and the interpreter released.
    fn with_speaker(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Speaker) -> Option<Vec<u8>> + Send,
    ) -> PyResult<Vec<u8>> {
        let reply = py.detach(|| {
            let mut speaker = self.speaker.lock().unwrap_or_else(PoisonError::into_inner);
            speaker.as_mut().and_then(work)
        });
        reply.ok_or_else(|| node_error(py, "STOPPED the node or this client is closed"))
    }

    fn call(&self, py: Python<'_>, words: Vec<Word>) -> PyResult<Py<PyAny>> {
        let words: Vec<Vec<u8>> = words.iter().map(Word::bytes).collect();
        let reply = self.with_speaker(py, |speaker| {
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            speaker.execute(&words)
        })?;
        ReplyReader(&reply).value(py)
    }
}

#[pymethods]
impl PyNode {
    #[new]
    #[pyo3(signature = (
        directory, token, *, durability = "sync", cache_bytes = 64 << 20, memtables_bytes = 64 << 20
    ))]
    fn new(
        py: Python<'_>,
        directory: PathBuf,
        token: String,
        durability: &str,
        cache_bytes: usize,
        memtables_bytes: usize,
    ) -> PyResult<Self> {
        let mut options = NodeOptions::new(directory, token);
        options.durability = match durability {
            "sync" => rillbase_engine::Durability::Sync,
            "buffered" => rillbase_engine::Durability::Buffered,
            _ => return Err(PyValueError::new_err("durability is sync or buffered")),
        };
        options.cache_bytes = cache_bytes;
        options.memtables_bytes = memtables_bytes;
        let opened = py.detach(|| {
            let node = Embedded::open(options)?;
            let own = NodeSpeaker::of(&node);
            Ok(Self { node, own })
        });
        opened.map_err(|error: rillbase_storage_node::NodeFailure| {
            node_error(py, &format!("FAILED {error}"))
        })
    }

    /// Execute a command as the node's own speaker, and return the reply.
    #[pyo3(signature = (*words))]
    fn execute(&self, py: Python<'_>, words: Vec<Word>) -> PyResult<Py<PyAny>> {
        self.own.call(py, words)
    }

    /// Return what was pushed to the node's own speaker since the last call.
    fn pushed(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        self.own.pushed(py)
    }

    /// Return another client, which must authenticate.
    fn speaker(&self, py: Python<'_>) -> NodeSpeaker {
        py.detach(|| NodeSpeaker::of(&self.node))
    }

    /// Close the node; all acknowledged writes are durable.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let closed = py.detach(|| self.node.close());
        closed.map_err(|error| node_error(py, &format!("FAILED {error}")))
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }
}

#[pymethods]
impl NodeSpeaker {
    /// Execute a command, and return the reply.
    #[pyo3(signature = (*words))]
    fn execute(&self, py: Python<'_>, words: Vec<Word>) -> PyResult<Py<PyAny>> {
        self.call(py, words)
    }

    /// Return what was pushed since the last call.
    fn pushed(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        let reply = self.with_speaker(py, Speaker::pushed)?;
        let mut reading = ReplyReader(&reply);
        let mut pushed = Vec::new();
        while !reading.0.is_empty() {
            pushed.push(reading.value(py)?);
        }
        Ok(pushed)
    }
}

/// The replies that are not read yet.
struct ReplyReader<'a>(&'a [u8]);

impl ReplyReader<'_> {
    fn take(&mut self, length: usize) -> PyResult<&[u8]> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    /// The rest of the line, without its end.
    fn line(&mut self) -> PyResult<&str> {
        let end = self.0.windows(2).position(|two| two == b"\r\n");
        let end = end.ok_or_else(malformed)?;
        let (line, rest) = self.0.split_at_checked(end).ok_or_else(malformed)?;
        self.0 = rest.get(2..).unwrap_or_default();
        std::str::from_utf8(line).map_err(|_| malformed())
    }

    fn number<T: std::str::FromStr>(&mut self) -> PyResult<T> {
        self.line()?.parse().map_err(|_| malformed())
    }

    fn values(&mut self, py: Python<'_>, length: usize) -> PyResult<Vec<Py<PyAny>>> {
        (0..length).map(|_| self.value(py)).collect()
    }

    /// The next value. An error is raised.
    fn value(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let sign = self.take(1)?.first().copied().unwrap_or_default();
        Ok(match sign {
            b'+' => PyBytes::new(py, self.line()?.as_bytes())
                .into_any()
                .unbind(),
            b'-' => return Err(node_error(py, self.line()?)),
            b':' => self.number::<i64>()?.into_pyobject(py)?.into_any().unbind(),
            b',' => self.number::<f64>()?.into_pyobject(py)?.into_any().unbind(),
            b'#' => (self.line()? == "t")
                .into_pyobject(py)?
                .to_owned()
                .into_any()
                .unbind(),
            b'_' => {
                self.line()?;
                py.None()
            }
            b'$' => self.bulk(py)?,
            b'*' | b'>' => {
                let length = self.number()?;
                PyList::new(py, self.values(py, length)?)?
                    .into_any()
                    .unbind()
            }
            b'%' => {
                let length: usize = self.number()?;
                let dict = PyDict::new(py);
                for _ in 0..length {
                    dict.set_item(self.value(py)?, self.value(py)?)?;
                }
                dict.into_any().unbind()
            }
            _ => return Err(malformed()),
        })
    }

    fn bulk(&mut self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let length: i64 = self.number()?;
        // Version 2 encodes null like this.
        let Ok(length) = usize::try_from(length) else {
            return Ok(py.None());
        };
        let bytes = PyBytes::new(py, self.take(length)?).into_any().unbind();
        self.take(2)?;
        Ok(bytes)
    }
}

fn malformed() -> PyErr {
    PyValueError::new_err("the node's reply is malformed")
}
