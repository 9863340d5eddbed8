//! Online aggregates: rows of measures that are changed by deltas, without reading and without
//! conflicts, and read at one moment, without waiting for writers.
//!
//! In the order in which data flows:
//!
//! - [`Definition`] — dimensions, buckets, measures, rollups.
//! - [`Contribution`] — what one event or document adds; `fields.rs`, `scaled.rs` and `value.rs` read its fields.
//! - [`Deltas`] — what many contributions change: one delta for each row.
//! - [`Row`], [`State`] — what a row keeps, and how deltas fold; `exact.rs`, `distinct.rs` and
//!   `sketch.rs` are what measures keep. All of it is associative and commutative.
//! - `keys.rs` — where rows lie: by dimensions, then by time.
//! - [`Aggregates`] — definitions, events, views, over a database: `catalog.rs` keeps definitions,
//!   `add.rs` takes events, `crowds.rs` refuses those that would give a row too many items, `staged.rs` takes those of
//!   transactions, `apply.rs` follows documents, `fill.rs` builds a new generation from kept events.
//! - [`Query`], [`Answer`] — what is asked, and how it is answered: `plan.rs` chooses, `walk.rs`
//!   reads, `answer.rs` groups (`groups.rs`) and sorts, `show.rs` writes.
#![allow(
    clippy::missing_errors_doc,
    reason = "every fallible function fails with an Error that names its code; saying so each time adds nothing"
)]
#![allow(
    clippy::must_use_candidate,
    reason = "the attribute is given where dropping the result is a mistake"
)]
#![allow(
    clippy::needless_for_each,
    reason = "one effect for each element reads well in one line"
)]
#![allow(
    clippy::doc_markdown,
    reason = "ObjectId, HyperLogLog and DDSketch are names, not code"
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "digits, hashes and registers are cut on purpose; sizes are converted with checks"
)]
#![cfg_attr(
    test,
    allow(
        clippy::float_cmp,
        clippy::cast_precision_loss,
        reason = "tests compare what is exact, with numbers that are small"
    )
)]

mod add;
mod answer;
mod apply;
mod catalog;
mod claims;
mod coding;
mod contribution;
mod crowds;
mod definition;
mod deltas;
mod distinct;
mod error;
mod exact;
mod fields;
mod fill;
mod groups;
mod hash;
mod keys;
mod plan;
mod query;
mod scaled;
mod show;
mod sketch;
mod staged;
mod state;
mod store;
mod value;
mod walk;

pub use add::{Add, Fact};
pub use answer::{Shown, answer};
pub use apply::{Apply, Change};
pub use catalog::{Aggregate, Building, Shape};
pub use contribution::{Contribution, Input};
pub use definition::{Definition, Measure, Op, Source};
pub use deltas::{Deltas, Generation};
pub use error::{Code, Error, Refused, Result};
pub use fields::{Fields, Flat, Nested};
pub use query::{Compare, Moment, Query};
pub use staged::Staged;
pub use state::{Fold, Row, State};
pub use store::{Aggregates, Answer, Lifetimes, Period, keyspaces};
pub use value::Value;
pub use walk::Sight;
