//! The write-ahead log, a module of its own: it knows records and blocks, not what they mean.
//!
//! A record has an index, one higher than that of the record before. Records are appended, read by
//! ranges of indexes, and dropped at both ends. They may refer to blocks, payloads in files of
//! their own, which are durable before the records are. In the order in which data flows:
//!
//! - `log` — the open log. Threads encode into `queue` under a short lock; whoever comes first
//!   writes what has gathered, through `files`, to a `segment`; one of those that wait for
//!   durability syncs for all.
//! - `blocks` — the block files.
//! - `format` and `record` — the bytes, which `docs/formats/wal.md` explains.
//! - `open` — going on with what was found; `checkpoint` — a copy of the open log.
//! - `space` — what happens when there is no room on the disk.
//! - `recover` — what a directory holds, `scan` — reading a segment front to back.
//! - `spans` and `read` — finding and reading records by index.
//! - `verify` — checking every checksum of a log that is not open; `dump` — a segment as text.
//!
//! What always holds:
//!
//! - A segment's header and name are durable before its first record is written.
//! - An acknowledged record is durable with all records before it.
//! - A failed sync is the last thing that an open log does. So is a failed write, except one that
//!   found no room: that one is rolled back (`space`).

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
mod verify;
mod wal_records;

pub use dump::{Dumped, dump};
pub use format::{BlockReference, MAX_BODY_BYTES, WalVersion};
pub use log::Wal;
pub use options::{AppendedRecords, Durability, Recovery, WalOptions};
pub use recover::TornTail;
pub use verify::{LogReport, verify};
pub use wal_records::{WalRecord, WalRecords};
