//! The storage engine: bytes, keys, sequence numbers and snapshots.
//!
//! It knows nothing of documents, topics or tenants. In the order in which data flows:
//!
//! - [`vfs`] — the only way to files: real, in memory, and one that injects faults.
//! - [`wal`] — the write-ahead log: records with consecutive indexes, durable in groups.
//! - [`error`] — what can go wrong, grouped by what the caller does about it.
#![allow(
    clippy::missing_errors_doc,
    reason = "every fallible function fails with an Error that names its code; saying so each time adds nothing"
)]
#![allow(
    clippy::must_use_candidate,
    reason = "the attribute is given where dropping the result is a mistake"
)]

pub mod error;
pub mod vfs;
pub mod wal;

pub use error::{Error, Result};
