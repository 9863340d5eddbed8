//! The native parts of Rillbase as one Python module.
//!
//! The only crate that depends on Python. It is thin: it converts arguments and results.
//! `rillbase_native.pyi` declares the module's interface; the lint step checks it against the built
//! module.

#![allow(
    clippy::needless_pass_by_value,
    reason = "arguments are extracted from Python's objects, so there is nothing to borrow"
)]

mod csv;
mod engine;
mod errors;
mod filters;
mod hub;
mod hub_requests;
mod index_fields;
mod json;
mod live_query;
mod nodes;
mod operations;
mod partitions;
mod question;
mod selections;
mod storage_node;
mod values;
mod writes;

/// The native parts of Rillbase.
#[pyo3::pymodule]
mod rillbase_native {
    #[pymodule_export]
    use crate::csv::{
        PyCsvReader, PyCsvRecords, PyCsvWriter, PyDocumentMapping, PyJsonItemReader,
        guess_csv_delimiter,
    };
    #[pymodule_export]
    use crate::engine::{
        Engine, EngineBatch, EngineScan, EngineSnapshot, EngineTransaction, PyKeyspaceOptions,
        dump_file, restore_database, truncate_damaged_log, verify_database,
    };
    #[pymodule_export]
    use crate::errors::{EngineError, JsonError, NodeError, QueryError};
    #[pymodule_export]
    use crate::filters::{PyBounds, PyFilter, PyGroup, PyLookups, PyProjection, PyRule, PySort};
    #[pymodule_export]
    use crate::hub::{HubFrame, HubMemory, PyHub, SubscriptionFigures};
    #[pymodule_export]
    use crate::hub_requests::{
        FailQuery, FetchDocuments, LogUnevaluated, RecheckAccess, RegisterQuery, RenewQuery,
        ReplayLog, UnregisterQuery,
    };
    #[pymodule_export]
    use crate::json::parse_json;
    #[pymodule_export]
    use crate::live_query::PyLiveQuery;
    #[pymodule_export]
    use crate::nodes::GridNode;
    #[pymodule_export]
    use crate::operations::{PyDefinition, PyOperation, UpdateOperators, id_of};
    #[pymodule_export]
    use crate::partitions::{query_partition, write_partition};
    #[pymodule_export]
    use crate::question::PyQuestion;
    #[pymodule_export]
    use crate::selections::{
        PyGrouping, PySelection, candidate_rows, document_versions, envelope, leading_double,
    };
    #[pymodule_export]
    use crate::storage_node::{NodeSpeaker, PyNode};
    #[pymodule_export]
    use crate::values::{PyValue, format_id, id_key, key_hash, parse_id};
    #[pymodule_export]
    use crate::writes::{
        Outcomes, PyChange, PyChanges, PyExpected, PyOperations, PyPlan, encode_write,
    };
}
