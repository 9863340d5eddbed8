//! The write-ahead log, an independent module: it stores records and blocks without interpreting
//! them.
//!
//! A record has an index, one higher than that of the previous record. Records are appended, read
//! by ranges of indexes, and dropped at both ends. They may refer to blocks in separate files,
//! which become durable before the records. In the order in which data flows:
//!
//! - `log` — the open log. Threads encode into `queue` under a short lock; the first one writes
//!   what has accumulated, through `files`, to a `segment`; one of those that wait for durability
//!   syncs for all.
//! - `blocks` — the block files.
//! - `format` and `record` — the bytes, which `docs/formats/wal.md` explains.
//! - `open` — opening and continuing a log; `checkpoint` — a copy of the open log.
//! - `space` — handling a full disk.
//! - `recover` — the contents of a directory, `scan` — reading a segment sequentially.
//! - `spans` and `read` — finding and reading records by index.
//! - `verify` — verifying every checksum of a log that is not open; `truncate` — ending a damaged
//!   log before the damage; `dump` — a segment as text.
//!
//! Invariants:
//!
//! - A segment's header and name are durable before its first record is written.
//! - An acknowledged record is durable with all records before it.
//! - A failed sync is the last operation of an open log. So is a failed write, except for lack of
//!   space: that one is rolled back (`space`).

mod blocks;
mod checkpoint;
mod dump;
mod files;
mod format;
mod log;
mod open;
mod options;
mod queue;
mod record;
mod recover;
mod scan;
mod segment;
mod space;
mod spans;
mod truncate;
mod verify;
mod wal_records;

pub use dump::{Dumped, dump};
pub use format::{BlockReference, MAX_BODY_BYTES, WalVersion};
pub use log::Wal;
pub use options::{AppendedRecords, Durability, Recovery, WalOptions};
pub use recover::TornTail;
pub use truncate::{TruncatedLog, truncate_damaged};
pub use verify::{LogReport, verify};
pub use wal_records::{WalRecord, WalRecords};
