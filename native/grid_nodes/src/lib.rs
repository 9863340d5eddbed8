//! The production loops around filter nodes and sort nodes.
//!
//! A node is a pure state machine (`rillbase_live`). This crate surrounds it: a connection to the
//! event layer, the lease of its partition, reading streams, appending to the log, rebuilding from
//! the database, and recovering from panics on an entry.
//!
//! - [`resp`] — a blocking connection to Valkey, optionally over TLS; [`server`] — its address
//! - [`layer`] — the grid's streams and function as a node uses them
//! - [`machine`] — what both kinds of node have in common, and their adapters
//! - [`rows`] — documents for a rebuild, from `PostgreSQL`'s binary copies
//! - [`lease_term`] — one term of the lease; [`runner`] — term after term, until stopped
//! - `pending` — notifications to append, in bounded batches; `prefetch` — what is read in a rebuild
//! - `heartbeat` — heartbeats independent of the loop
//! - [`report`] — figures
#![allow(
    clippy::must_use_candidate,
    reason = "the attribute is given where dropping the result is a mistake"
)]
#![allow(
    clippy::missing_errors_doc,
    reason = "all errors are alike: a broken connection or an unexpected reply"
)]

pub mod control;
pub mod error;
mod heartbeat;
pub mod layer;
pub mod lease_term;
pub mod machine;
mod pending;
mod prefetch;
pub mod report;
pub mod resp;
pub mod rows;
pub mod runner;
pub mod server;
mod tls;
