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
    clippy::cast_precision_loss,
    reason = "floating-point numbers are scores, rates and ratios here, never sizes or offsets"
)]
#![allow(
    clippy::must_use_candidate,
    reason = "the attribute is given where dropping the result is a mistake"
)]

mod batch;
mod cache;
mod checksum;
mod clock;
mod coding;
mod compaction;
mod db;
mod dump;
pub mod error;
mod extract;
mod iterate;
mod key;
mod lifetime;
mod list;
mod memtable;
mod merge;
mod options;
mod range_delete;
mod table;
mod value;
mod version;
pub mod vfs;
pub mod wal;

pub use batch::Batch;
pub use clock::{Clock, ManualClock, SystemClock};
pub use compaction::layout::{Apart, Layout, RunShape, Shape, TableShape};
pub use compaction::plan::Plan;
pub use db::{
    Db, Found, Keyspace, KeyspaceStats, LevelStats, Scan, Snapshot, Stats, Transaction, Verified,
    Visited, restore, verify,
};
pub use dump::dump;
pub use error::{Error, Result};
pub use extract::{Extractor, Rectangle, Zone};
pub use key::{Kind, Millis, Sequence, prefix_end};
pub use lifetime::Lifetime;
pub use list::{Element, ElementTimes, ListCost, ListScan, Wanted};
pub use merge::Merge;
pub use options::{Compression, Expiry, KeyspaceOptions, Options, Strategy};
pub use value::Value;
pub use wal::Durability;
