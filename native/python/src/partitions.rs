//! The partitions of documents and queries.

use pyo3::prelude::*;
use rillbase_live::message::QueryHash;
use rillbase_live::partition;

/// Return the write partition of a document.
#[pyfunction]
pub(crate) fn write_partition(key: &[u8], partitions: u16) -> u16 {
    partition::write_partition(key, partitions)
}

/// Return the query partition of a query, by its hash.
#[pyfunction]
pub(crate) fn query_partition(query: [u8; 16], partitions: u16) -> u16 {
    partition::query_partition(&QueryHash(query), partitions)
}
