//! The storage node: topics, aggregates, and keys with values, behind the protocol that clients of Redis and
//! Valkey speak.
//!
//! In the order in which a request flows:
//!
//! - `server` — connections, event loops, groups of writes; the page of metrics.
//! - [`resp`] — requests and replies as bytes.
//! - `session.rs`, `clients.rs`, `outbox.rs` — a connection while it lasts; `in_flight.rs` — what all have
//!   in memory.
//! - `command` — what can be asked; `words.rs`, `time.rs`, `document.rs` read what is asked.
//! - `catalog.rs`, `topic.rs`, `mercator.rs` — namespaces, topics, and what their places are.
//! - `moments.rs`, `transactions.rs` — snapshots that are held, and transactions under way;
//!   `answers.rs` — what queries were answered at the moment that they share.
//! - `group.rs` — writes that become durable together.
//! - `live.rs`, `acks.rs`, `sid.rs` — who is told of what, from which position on.
//! - `watches.rs` — queries whose rows are told of as they change.
//! - `health.rs` — whether it can write.
//! - `show.rs`, `refusal.rs` — what is answered.
//! - `node.rs` — all of it over one database; `embedded.rs` — all of it without a connection.
#![allow(
    clippy::missing_errors_doc,
    reason = "every fallible function fails with an error that says what happened; saying so each time adds nothing"
)]
#![allow(
    clippy::must_use_candidate,
    reason = "the attribute is given where dropping the result is a mistake"
)]
#![allow(
    clippy::needless_for_each,
    reason = "one effect for each element reads well in one line"
)]

mod acks;
mod answers;
mod catalog;
mod clients;
mod command;
mod document;
mod embedded;
mod group;
mod health;
mod in_flight;
mod live;
mod log;
mod mercator;
mod metrics;
mod moments;
mod name;
mod node;
mod options;
mod outbox;
mod refusal;
pub mod resp;
mod server;
mod session;
mod show;
mod sid;
mod time;
mod topic;
mod transactions;
mod watches;
mod words;

pub use embedded::{Embedded, Speaker};
pub use node::{NodeCore, NodeFailure};
pub use options::NodeOptions;
pub use server::NodeServer;

/// Reports a message to the operator.
pub fn report(message: &str) {
    log::info(message);
}
