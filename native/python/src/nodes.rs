//! Grid nodes: started, observed and stopped from Python, but running without the interpreter.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator};
use rillbase_grid_nodes::control::Control;
use rillbase_grid_nodes::layer::NodeSettings;
use rillbase_grid_nodes::rows::{
    DocumentReadError, DocumentSource, RebuildScope, RebuildSnapshot, parse_opened,
};
use rillbase_grid_nodes::runner::{NodeIdentity, run};
use rillbase_grid_nodes::server::ValkeyServer;
use rillbase_live::filter_node::FilterNode;
use rillbase_live::sort_node::SortNode;

/// A filter node, or, without a write partition, a sort node.
#[pyclass(frozen, module = "rillbase_native", skip_from_py_object)]
pub(crate) struct GridNode {
    identity: NodeIdentity,
    sorts: bool,
    documents: Py<PyAny>,
    control: Arc<Control>,
}

#[pymethods]
impl GridNode {
    #[new]
    #[pyo3(signature = (
        *, url, prefix, epoch, query_partition, write_partition, write_partitions, node, holder,
        function, documents
    ))]
    #[allow(clippy::too_many_arguments, reason = "all of them are given by name")]
    fn new(
        url: &str,
        prefix: String,
        epoch: u32,
        query_partition: u16,
        write_partition: Option<u16>,
        write_partitions: u16,
        node: String,
        holder: String,
        function: &[u8],
        documents: Py<PyAny>,
    ) -> PyResult<Self> {
        let server =
            ValkeyServer::parse(url).map_err(|error| PyValueError::new_err(error.to_string()))?;
        if write_partitions == 0 || write_partition.is_some_and(|one| one >= write_partitions) {
            return Err(PyValueError::new_err("the write partition does not exist"));
        }
        let settings = NodeSettings {
            server,
            prefix,
            epoch,
            query_partition,
            write_partitions,
            node,
            function: function.into(),
        };
        Ok(Self {
            identity: NodeIdentity {
                settings,
                write_partition: write_partition.unwrap_or(0),
                holder,
            },
            sorts: write_partition.is_none(),
            documents,
            control: Arc::default(),
        })
    }

    /// Run until `stop`, or until the process `parent`, which started this one, has ended. The
    /// interpreter is released meanwhile.
    fn run(&self, py: Python<'_>, parent: u32) {
        let mut documents = PythonDocuments {
            open: self.documents.clone_ref(py),
            blocks: None,
        };
        py.detach(|| {
            if self.sorts {
                run::<SortNode>(&self.identity, parent, &mut documents, &self.control);
            } else {
                run::<FilterNode>(&self.identity, parent, &mut documents, &self.control);
            }
        });
    }

    fn stop(&self) {
        self.control.stop();
    }

    /// Return the node's figures as a JSON object.
    fn report(&self) -> String {
        self.control.json()
    }
}

/// Documents from a Python generator: the snapshot and rules' versions as text first, then blocks.
struct PythonDocuments {
    open: Py<PyAny>,
    blocks: Option<Py<PyIterator>>,
}

impl DocumentSource for PythonDocuments {
    fn open(&mut self, scope: &RebuildScope) -> Result<RebuildSnapshot, DocumentReadError> {
        Python::attach(|py| {
            // Closing the generator of an abandoned rebuild ends its transaction.
            self.blocks = None;
            let collections: Vec<_> = scope
                .collections
                .iter()
                .map(|id| PyBytes::new(py, id))
                .collect();
            let arguments = (collections, scope.partition, scope.partitions);
            let mut blocks = self.open.bind(py).call1(arguments)?.try_iter()?;
            let first = blocks.next().transpose()?;
            let text: String = match first {
                Some(first) => first.extract()?,
                None => String::new(),
            };
            self.blocks = Some(blocks.unbind());
            Ok(text)
        })
        .map_err(|error: PyErr| unread(&error))
        .and_then(|text| {
            parse_opened(&text).ok_or_else(|| DocumentReadError("a snapshot was expected".into()))
        })
    }

    fn next_block(&mut self) -> Result<Option<Vec<u8>>, DocumentReadError> {
        Python::attach(|py| {
            let Some(blocks) = &self.blocks else {
                return Ok(None);
            };
            let block = blocks.bind(py).clone().next().transpose()?;
            let Some(block) = block else {
                self.blocks = None;
                return Ok(None);
            };
            Ok(Some(block.extract::<Vec<u8>>()?))
        })
        .map_err(|error: PyErr| unread(&error))
    }
}

fn unread(error: &PyErr) -> DocumentReadError {
    DocumentReadError(error.to_string())
}
