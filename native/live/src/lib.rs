//! Real-time queries: who subscribes to what, and what they must be sent.
//!
//! Filter node, sort node and hub are pure state machines: (state, message, time) → (state,
//! messages). They do no I/O, read no clock and draw no random numbers, so production loops and the
//! simulation run the same code.
//!
//! In the order in which data flows:
//!
//! - [`message`] — the messages between the parties; [`wire`] — their bytes; [`snapshot`] — which
//!   transactions a reader has seen.
//! - [`partition`] — which node sees a document or a query.
//! - [`filter_node`] — which results a write changes; [`sort_node`] — the windows of sorted
//!   queries; [`node`] — the input and output of both; [`groups`] — rows that stand for many
//!   documents, [`lookups`] — documents with others that they refer to, [`registered_rows`] — the
//!   first rows of either.
//! - [`hub`] — what subscribers are sent.
#![allow(
    clippy::must_use_candidate,
    reason = "the attribute is given where dropping the result is a mistake"
)]
#![allow(
    clippy::doc_markdown,
    reason = "PostgreSQL and so on are names, not code"
)]
#![allow(
    clippy::missing_errors_doc,
    reason = "what reads bytes refuses with Malformed, which names the cause"
)]

pub mod filter_node;
pub mod groups;
pub mod hub;
pub mod lookups;
pub mod message;
pub mod node;
pub mod partition;
pub mod registered_rows;
pub mod snapshot;
pub mod sort_node;
mod sort_order;
pub mod wire;
