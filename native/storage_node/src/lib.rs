//! The storage node: topics, aggregates and key-value pairs over the protocol of Redis and Valkey
//! clients.
//!
//! In the order in which a request flows:
//!
//! - `server` — connections, event loops, groups of writes; the metrics page.
//! - [`resp`] — requests and replies as bytes.
//! - `session.rs`, `clients.rs`, `outbox.rs` — the state of a connection; `in_flight.rs` — the
//!   memory used by all.
//! - `command` — the commands; `words.rs`, `time.rs`, `document.rs` parse their arguments.
//! - `catalog.rs`, `topic.rs`, `mercator.rs` — namespaces, topics and their places.
//! - `snapshots.rs`, `transactions.rs` — open snapshots and transactions; `answers.rs` — results of
//!   queries at the shared snapshot.
//! - `group.rs` — writes that become durable together.
//! - `live.rs`, `acks.rs`, `sid.rs` — who is notified of what, from which position on.
//! - `watches.rs` — queries whose changed rows are pushed.
//! - `health.rs` — whether it can write.
//! - `show.rs`, `copy_row.rs`, `refusal.rs` — replies and errors.
//! - `run.rs` — names the time between an opening and a closing.
//! - `node.rs` — all of it over one database; `embedded.rs` — the node without connections.
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
mod copy_row;
mod document;
mod embedded;
mod group;
mod health;
mod in_flight;
mod live;
mod log;
mod mercator;
mod metrics;
mod name;
mod node;
mod options;
mod outbox;
mod prometheus;
mod refusal;
pub mod resp;
mod run;
mod server;
mod session;
mod show;
mod sid;
mod snapshots;
mod time;
mod topic;
mod transactions;
mod watch_updates;
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
