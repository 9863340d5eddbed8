//! Publish and subscribe in the store: publications and subscriptions are both records, under ids
//! that determine which of them match, and whichever comes later finds the other.
//!
//! In the order in which an operation flows:
//!
//! - [`DeweyId`], [`TopicArea`], [`CellGrid`], [`TopicPlace`] — the places of publications and
//!   subscriptions.
//! - [`PublicationRecord`], [`SubscriptionRecord`] — the stored records; `keys.rs` and `record.rs`
//!   have the bytes.
//! - [`TopicStore`] — the interface of all stores. [`DualDb`] and [`TwoDb`] match immediately,
//!   [`RepQueries`] polls; the last two are baselines for measuring the first.
//! - `instant.rs` — the steps of an operation: write without reading, take a snapshot, search.
//! - `lookup.rs` — one scan through the lists that match an id, bounded in time.
//! - `rule.rs`, `condition.rs`, `subscription_history.rs` — when records match, and what a
//!   user has seen.
//! - `once.rs` — publications that are applied once even if sent twice.
//! - [`DeliverySink`] — receives later publications for subscriptions, in order.
#![allow(
    clippy::missing_errors_doc,
    reason = "every fallible function fails with an Error that names its code; saying so each time adds nothing"
)]
#![allow(
    clippy::must_use_candidate,
    reason = "the attribute is given where dropping the result is a mistake"
)]

mod area;
mod condition;
mod error;
mod grid;
mod id;
mod instant;
mod instant_stores;
mod keys;
mod lookup;
mod name;
mod once;
mod place;
mod polling;
mod record;
mod record_collector;
mod rule;
mod staged;
mod store;
mod subscription_history;
mod turns;

pub use area::{Rectangle, TopicArea};
pub use error::{Error, Result};
pub use grid::{CellGrid, Granularity};
pub use id::DeweyId;
pub use instant_stores::{DualDb, TwoDb, keyspace_options};
pub use lookup::{Cost, TimeWindow};
pub use name::SubscriptionLocator;
pub use place::{Ids, TopicExtent, TopicPlace};
pub use polling::{PollResult, RepQueries};
pub use record::{PublicationRecord, StoredRecord, SubscriptionRecord};
pub use staged::StagedOperations;
pub use store::{REMEMBERED, StoreAnswer, StoreOptions, TopicOperation, TopicSpec, TopicStore};
pub use turns::{Delivery, DeliverySink};
