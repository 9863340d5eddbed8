//! The storage engine: bytes, keys, sequence numbers and snapshots.
//!
//! It knows nothing of documents, topics or tenants. In the order in which data flows:
//!
//! - [`Db`], [`WriteBatch`], [`DbTransaction`] — the interface: reads, writes, snapshots, scans.
//! - [`wal`] — the write-ahead log: records with consecutive indexes, durable in groups.
//! - `memtable` — the newest entries, in memory, until they are flushed.
//! - `block`, `cache`, `table` — immutable files of sorted entries, read through a shared cache.
//! - `version` — which tables a keyspace has, as recorded in the manifest.
//! - `iterate` — one ordered view of several sources; `list.rs` — value lists over it.
//! - `compaction` — which tables are rewritten, and which entries are kept.
//! - [`vfs`] — the only access to files: real, in memory, and one that injects faults.
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

mod block;
mod cache;
mod checksum;
mod clock;
mod coding;
mod compaction;
mod db;
mod dump;
pub mod error;
mod extract;
mod head;
mod horizon;
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

pub use clock::{Clock, ManualClock, SystemClock};
pub use compaction::layout::TableLayout;
pub use compaction::plan::CompactionPlan;
pub use compaction::shape::{KeyspaceShape, RunShape, Separation, TableShape};
pub use db::{
    ChangeBatch, ChangeFeed, DatabaseReport, Db, DbSnapshot, DbTransaction, GroupResults,
    GroupTicket, GroupWrite, Keyspace, KeyspaceStats, LevelStats, LoggedWrite, Ranked, RankedEntry,
    Scan, SearchResult, Stats, Visited, WriteBatch, WriteGroup, restore, truncate_damaged_log,
    verify,
};
pub use dump::dump;
pub use error::{Error, Result};
pub use extract::{Extractor, Rectangle, ZoneMap};
pub use head::{HeadFunction, KeyHead};
pub use key::{EntryKind, Millis, Sequence, prefix_end};
pub use lifetime::Lifetime;
pub use list::{ElementTimes, ListCost, ListElement, ListFilter, ListScan};
pub use merge::Merge;
pub use options::{DbOptions, Expiry, KeyspaceOptions, Strategy, TableVersion};
pub use table::codec::Compression;
pub use value::ValueBytes;
pub use wal::Durability;
