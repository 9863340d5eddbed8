//! Online aggregates: rows of measures that are changed by deltas, without reads and without
//! conflicts, and read at one snapshot, without waiting for writers.
//!
//! In the order in which data flows:
//!
//! - [`AggregateDefinition`] — dimensions, buckets, measures, rollups.
//! - [`Contribution`] — what one event or document adds; `fields.rs`, `scaled.rs` and `value.rs` read its fields.
//! - [`Deltas`] — what many contributions change: one delta for each row.
//! - [`RowState`], [`SlotValue`] — what a row keeps, and how deltas fold; `exact.rs`, `distinct.rs` and
//!   `sketch.rs` are what measures keep. All of it is associative and commutative.
//! - `keys.rs` — the order of rows: by dimensions, then by time.
//! - [`Aggregates`] — definitions, events and views over a database: `catalog.rs` stores
//!   definitions, `add.rs` adds events, `item_counts.rs` rejects those that would give a row too many
//!   items, `staged.rs` adds those of transactions, `apply.rs` follows documents, `fill.rs` builds
//!   a new generation from stored events.
//! - [`AggregateQuery`], [`AggregateResult`] — queries and results: `plan.rs` chooses, `row_scan.rs`
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
mod contribution;
mod definition;
mod definition_parser;
mod deltas;
mod distinct;
mod error;
mod exact;
mod fields;
mod fill;
mod group;
mod groups;
mod hash;
mod item_counts;
mod keys;
mod plan;
mod query;
mod row_scan;
mod scaled;
mod show;
mod sketch;
mod staged;
mod state;
mod store;
mod value;

pub use add::{Add, Fact};
pub use answer::{AnswerRow, answer};
pub use apply::{Apply, ViewChange};
pub use catalog::{AggregateEntry, AggregateState, GenerationBuild};
pub use contribution::{Contribution, MeasureInput};
pub use definition::{AggregateDefinition, AggregateMeasure, ContributionSource, MeasureOperator};
pub use deltas::{AggregateGeneration, Deltas};
pub use error::{AggregateErrorCode, AggregateRefusal, Error, Result};
pub use fields::{Fields, Flat, NestedEvent};
pub use group::{AggregateOutcomes, AggregateWrites, StagedWrites};
pub use query::{AggregateQuery, Compare, SnapshotSelector};
pub use row_scan::ReadSnapshot;
pub use staged::Staged;
pub use state::{Fold, RowState, SlotValue};
pub use store::{AggregateResult, Aggregates, Lifetimes, Period, keyspaces};
pub use value::DimensionValue;
