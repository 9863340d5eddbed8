//! The storage engine: bytes, keys, sequence numbers and snapshots.
//!
//! It knows nothing of documents, topics or tenants. In the order in which data flows:
//!
//! - [`vfs`] — the only access to files: real, in memory, and one that injects faults.
//! - [`wal`] — the write-ahead log: records with consecutive indexes, durable in groups.
//! - [`error`] — errors, grouped by what the caller does about them.
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

pub use batch::WriteBatch;
pub use clock::{Clock, ManualClock, SystemClock};
pub use compaction::layout::{Apart, KeyspaceShape, RunShape, TableLayout, TableShape};
pub use compaction::plan::CompactionPlan;
pub use db::{
    DatabaseReport, Db, DbSnapshot, DbTransaction, GroupResults, GroupTicket, GroupWrite, Keyspace,
    KeyspaceStats, LevelStats, Scan, SearchResult, Stats, Visited, WriteGroup, restore, verify,
};
pub use dump::dump;
pub use error::{Error, Result};
pub use extract::{Extractor, Rectangle, ZoneMap};
pub use key::{EntryKind, Millis, Sequence, prefix_end};
pub use lifetime::Lifetime;
pub use list::{ElementTimes, ListCost, ListElement, ListFilter, ListScan};
pub use merge::Merge;
pub use options::{Compression, DbOptions, Expiry, KeyspaceOptions, Strategy};
pub use value::ValueBytes;
pub use wal::Durability;
