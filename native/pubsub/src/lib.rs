//! Publish and subscribe in the store: publications and subscriptions are both records, under ids
//! that tell who may meet whom, and whichever comes later finds the other.
//!
//! In the order in which an operation flows:
//!
//! - [`DeweyId`], [`TopicArea`], [`CellGrid`], [`TopicPlace`] — where something is published or subscribed to.
//! - [`PublicationRecord`], [`SubscriptionRecord`] — what is kept; `keys.rs` and `record.rs` have the bytes.
//! - [`TopicStore`] — what all stores do. [`DualDb`] and [`TwoDb`] answer at once, [`RepQueries`] polls;
//!   the last two are what the first is measured against.
//! - `instant.rs` — the life of an operation: write blindly, see that moment, look.
//! - `look.rs` — one scan through the lists that meet an id, bounded in time.
//! - `rule.rs`, `condition.rs`, `memory.rs` — when records meet, and what a user has seen.
//! - `once.rs` — what is published once, though it be sent twice.
//! - [`DeliverySink`] — who is told of later publications, in their order.
#![allow(
    clippy::missing_errors_doc,
    reason = "every fallible function fails with an Error that names its code; saying so each time adds nothing"
)]
#![allow(
    clippy::must_use_candidate,
    reason = "the attribute is given where dropping the result is a mistake"
)]

mod area;
mod coding;
mod condition;
mod error;
mod gather;
mod grid;
mod id;
mod instant;
mod instant_stores;
mod keys;
mod look;
mod name;
mod once;
mod place;
mod polling;
mod record;
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
pub use look::{Cost, TimeWindow};
pub use name::SubscriptionLocator;
pub use place::{Ids, TopicExtent, TopicPlace};
pub use polling::{PollResult, RepQueries};
pub use record::{PublicationRecord, StoredRecord, SubscriptionRecord};
pub use staged::StagedOperations;
pub use store::{REMEMBERED, StoreAnswer, StoreOptions, TopicOperation, TopicSpec, TopicStore};
pub use turns::{Delivery, DeliverySink};
