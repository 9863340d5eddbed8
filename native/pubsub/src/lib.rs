//! Publish and subscribe in the store: publications and subscriptions are both records, under ids
//! that tell who may meet whom, and whichever comes later finds the other.
//!
//! In the order in which an operation flows:
//!
//! - [`Id`], [`Area`], [`Grid`], [`Place`] — where something is published or subscribed to.
//! - [`Publication`], [`Subscription`] — what is kept; `keys.rs` and `record.rs` have the bytes.
//! - [`Store`] — what all stores do. [`DualDb`] and [`TwoDb`] answer at once, [`RepQueries`] polls;
//!   the last two are what the first is measured against.
//! - `instant.rs` — the life of an operation: write blindly, see that moment, look.
//! - `look.rs` — one scan through the lists that meet an id, bounded in time.
//! - `rule.rs`, `condition.rs`, `memory.rs` — when records meet, and what a user has seen.
//! - `once.rs` — what is published once, though it be sent twice.
//! - [`Sink`] — who is told of later publications, in their order.
#![allow(
    clippy::missing_errors_doc,
    reason = "every fallible function fails with an Error that names its code; saying so each time adds nothing"
)]
#![allow(
    clippy::must_use_candidate,
    reason = "the attribute is given where dropping the result is a mistake"
)]

mod answering;
mod area;
mod coding;
mod condition;
mod error;
mod gather;
mod grid;
mod id;
mod instant;
mod keys;
mod look;
mod memory;
mod name;
mod once;
mod place;
mod polling;
mod record;
mod rule;
mod store;
mod turns;

pub use answering::{DualDb, TwoDb, keyspace_options};
pub use area::{Area, Rectangle};
pub use error::{Error, Result};
pub use grid::{Granularity, Grid};
pub use id::Id;
pub use look::{Cost, Window};
pub use name::Name;
pub use place::{Extent, Ids, Place};
pub use polling::{Polled, RepQueries};
pub use record::{Publication, Stored, Subscription};
pub use store::{Answer, Operation, REMEMBERED, Store, StoreOptions, Topic};
pub use turns::{Delivery, Sink};
