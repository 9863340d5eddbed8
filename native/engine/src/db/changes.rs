//! The changes of the database in the order in which they became visible, read from the log.
//!
//! The log has every batch once, in the order of sequences, and a batch becomes visible only after
//! all batches before it. So the records up to the visible sequence have no gaps, and a sequence is
//! a complete position: what a reader has seen is the state at that sequence.
//!
//! The log is truncated as memtables are flushed. [`DbOptions::retained_log_bytes`] keeps more of
//! it, up to a limit, until a reader releases it. A reader that falls behind further gets
//! [`Error::ChangesTruncated`] and starts again from a snapshot. Bulk loads bypass the log and are
//! not among the changes.
//!
//! [`DbOptions::retained_log_bytes`]: crate::DbOptions::retained_log_bytes

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::batch::{BatchEntry, Logged};
use super::description::log_dir;
use super::{Db, DbCore};
use crate::error::{Error, Result};
use crate::key::{EntryKind, Millis, Sequence, split_expiry};
use crate::version::edit::Edit;
use crate::wal::{WalRecord, WalVersion};

/// The index of the first record of a database.
const FIRST_RECORD: u64 = 1;
/// The number of records that are located at once.
const READ_AHEAD: u64 = 16_384;

/// Which records of the log readers of changes need.
#[derive(Debug)]
pub(crate) struct Retention {
    /// Records from here on are not released.
    first: AtomicU64,
    /// The most bytes that are retained.
    bytes: u64,
    /// Recovery reads the log from here: all records before are in tables.
    replay_from: AtomicU64,
}

impl Retention {
    /// At opening, everything in the log may be needed.
    pub(crate) fn new(bytes: u64, replay_from: u64) -> Self {
        Self {
            first: AtomicU64::new(if bytes == 0 { u64::MAX } else { 0 }),
            bytes,
            replay_from: AtomicU64::new(replay_from),
        }
    }

    /// Whether the log may have records that recovery does not need.
    pub(crate) fn is_enabled(&self) -> bool {
        self.bytes > 0
    }

    /// All records before this one are durable, and in tables.
    pub(crate) fn raise_replay(&self, record: u64) {
        self.replay_from.fetch_max(record, Ordering::AcqRel);
    }

    /// The record from which recovery reads the log.
    pub(crate) fn replay_from(&self) -> u64 {
        self.replay_from.load(Ordering::Acquire)
    }
}

/// A write of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedWrite<'a> {
    /// Its sequence.
    pub sequence: Sequence,
    /// What it does.
    pub kind: EntryKind,
    /// The [`Keyspace::id`](super::Keyspace::id) of its keyspace, which may have been dropped
    /// since.
    pub keyspace: u64,
    /// Its key; for a range delete, the start.
    pub key: &'a [u8],
    /// The value or operand, or the end of a range delete; empty for deletes.
    pub value: &'a [u8],
    /// When the value expires, if it does.
    pub expiry: Option<Millis>,
}

/// A batch as it was logged.
#[derive(Debug, Clone)]
pub struct ChangeBatch {
    record: Vec<u8>,
    version: WalVersion,
    first: Sequence,
    last: Sequence,
    time: Millis,
}

impl ChangeBatch {
    /// The sequence of its first write, which no other batch has.
    pub fn first_sequence(&self) -> Sequence {
        self.first
    }

    /// The sequence of its last write.
    pub fn last_sequence(&self) -> Sequence {
        self.last
    }

    /// The time at which it was written.
    pub fn time(&self) -> Millis {
        self.time
    }

    /// Its size in the log.
    pub fn bytes(&self) -> usize {
        self.record.len()
    }

    /// Its writes, in order.
    pub fn writes(&self) -> impl Iterator<Item = Result<LoggedWrite<'_>>> {
        // It was parsed before.
        let logged = Logged::parse(&self.record, self.version).into_iter();
        let entries = logged.flat_map(|logged| logged.entries());
        let numbered = (self.first..).zip(entries);
        numbered.map(|(sequence, entry)| logged_write(sequence, &entry.map_err(|_| malformed())?))
    }
}

fn logged_write<'a>(sequence: Sequence, entry: &BatchEntry<'a>) -> Result<LoggedWrite<'a>> {
    let (expiry, value) = split_expiry(entry.kind, entry.value).ok_or_else(malformed)?;
    Ok(LoggedWrite {
        sequence,
        kind: entry.kind,
        keyspace: entry.keyspace,
        key: entry.key,
        value,
        expiry,
    })
}

fn malformed() -> Error {
    Error::InvalidArgument {
        what: "a record of the log is not a batch".into(),
    }
}

/// Reads changes from a position on.
#[derive(Debug)]
pub struct ChangeFeed {
    core: Arc<DbCore>,
    /// The next record to read.
    next: u64,
    position: Sequence,
    /// For each read: its position, and the record after it.
    reads: VecDeque<(Sequence, u64)>,
}

impl ChangeFeed {
    /// Everything up to here was read.
    pub fn position(&self) -> Sequence {
        self.position
    }

    /// Reads the next batches up to the visible sequence; stops after at least `bytes`. Returns
    /// none if there are no changes after the position, which then is the visible sequence.
    pub fn read(&mut self, bytes: usize) -> Result<Vec<ChangeBatch>> {
        let core = Arc::clone(&self.core);
        // In this order: everything up to here is in the log.
        let visible = core.publisher.visible();
        let end = core.wal.indexes().end;
        let (mut batches, mut size) = (Vec::new(), 0);
        let mut before = self.next.checked_sub(1);
        // A record that is not written, because the log failed, ends the loop.
        while self.next < end && before.is_none_or(|before| before < self.next) {
            before = Some(self.next);
            let range = self.next..end.min(self.next.saturating_add(READ_AHEAD));
            for record in core.read_log(range)? {
                let record = record?;
                let batch = batch_of(record, &core)?;
                if batch.last > visible {
                    self.add_read(visible);
                    return Ok(batches);
                }
                self.next += 1;
                if batch.last < batch.first {
                    // It marks unused sequences.
                    continue;
                }
                let last = batch.last;
                size += batch.bytes();
                batches.push(batch);
                if size >= bytes {
                    self.add_read(last);
                    return Ok(batches);
                }
            }
        }
        self.add_read(visible);
        Ok(batches)
    }

    fn add_read(&mut self, position: Sequence) {
        self.position = self.position.max(position);
        if !self.core.retention.is_enabled() {
            return;
        }
        if self
            .reads
            .back()
            .is_some_and(|(_, next)| *next == self.next)
        {
            self.reads.pop_back();
        }
        self.reads.push_back((self.position, self.next));
    }

    /// Waits until there may be changes after the position, at most for this long. Returns whether
    /// there may be.
    pub fn wait(&self, longest: Duration) -> bool {
        let publisher = &self.core.publisher;
        publisher.wait_beyond(self.position, longest)
    }

    /// Lets the log drop what was read up to a position of this feed: no reader starts before it
    /// again. Other feeds of the database must be beyond it, too.
    pub fn release(&mut self, position: Sequence) {
        let mut first = None;
        while let Some((_, next)) = self.reads.front().filter(|(read, _)| *read <= position) {
            first = Some(*next);
            self.reads.pop_front();
        }
        if let Some(first) = first {
            self.core.retention.first.fetch_max(first, Ordering::AcqRel);
        }
    }
}

/// The batch of a record. One that marks unused sequences has its last sequence before its first.
fn batch_of(record: WalRecord, core: &DbCore) -> Result<ChangeBatch> {
    let logged = Logged::parse(&record.body, record.version).map_err(|_| {
        let detail = "a record of the log is not a batch";
        Error::corruption(&log_dir(&core.dir), record.index, detail)
    })?;
    let (first, time) = (logged.sequence, logged.time);
    let behind = first.saturating_add(u64::from(logged.count));
    Ok(ChangeBatch {
        version: record.version,
        first,
        last: behind.saturating_sub(1),
        time,
        record: record.body,
    })
}

impl DbCore {
    /// If the log was truncated at a damaged record and ends before those that are in tables,
    /// records with their indexes follow, which are not in tables.
    pub(crate) fn lower_replay(&self, described: u64) -> Result<()> {
        let record = self.retention.replay_from();
        if record == described {
            return Ok(());
        }
        self.append_edits(&mut self.state.lock(), vec![Edit::ReplayFrom { record }])
    }

    /// The records of a range. Fails if the first of them was truncated.
    fn read_log(&self, range: Range<u64>) -> Result<crate::wal::WalRecords> {
        let first = range.start;
        self.wal.read(range).map_err(|error| {
            if first < self.wal.indexes().start {
                Error::ChangesTruncated
            } else {
                error
            }
        })
    }

    /// The record from which the log is retained for readers of changes.
    pub(crate) fn retained_from(&self) -> u64 {
        let released = self.retention.first.load(Ordering::Acquire);
        released.max(self.wal.index_within(self.retention.bytes))
    }

    fn batch_at(&self, index: u64) -> Result<Option<ChangeBatch>> {
        let record = self.read_log(index..index.saturating_add(1))?.next();
        let batch = |record: Result<WalRecord>| batch_of(record?, self);
        record.map(batch).transpose()
    }

    /// The first record after a sequence. Fails if it was truncated.
    fn record_after(&self, sequence: Sequence) -> Result<u64> {
        let visible = self.publisher.visible();
        if sequence > visible {
            let what = format!("the newest sequence is {visible}, so nothing follows {sequence}");
            return Err(Error::InvalidArgument { what });
        }
        loop {
            let range = self.wal.indexes();
            let start = range.start;
            match self.search_log(range, sequence) {
                // Its first records were truncated during the search.
                Err(Error::ChangesTruncated) if start < self.wal.indexes().start => {}
                searched => return searched,
            }
        }
    }

    /// The first record of a range, which was the whole log, after a sequence.
    fn search_log(
        &self,
        Range { mut start, mut end }: Range<u64>,
        sequence: Sequence,
    ) -> Result<u64> {
        let first = self.batch_at(start)?.map(|batch| batch.first);
        // All that was truncated before the range was determined is visible now.
        let complete_from = first.unwrap_or_else(|| self.publisher.visible() + 1);
        if start > FIRST_RECORD && sequence + 1 < complete_from {
            return Err(Error::ChangesTruncated);
        }
        while start < end {
            let middle = start + (end - start) / 2;
            match self.batch_at(middle)? {
                Some(batch) if batch.last <= sequence => start = middle + 1,
                _ => end = middle,
            }
        }
        Ok(start)
    }
}

impl Db {
    /// Lets the log drop everything that it has now: there is no reader of changes.
    pub fn release_changes(&self) {
        let end = self.core.wal.indexes().end;
        self.core.retention.first.fetch_max(end, Ordering::AcqRel);
    }

    /// The changes after a sequence. Fails with [`Error::ChangesTruncated`] if the log no longer
    /// has all of them.
    pub fn changes(&self, after: Sequence) -> Result<ChangeFeed> {
        Ok(ChangeFeed {
            next: self.core.record_after(after)?,
            position: after,
            core: Arc::clone(&self.core),
            reads: VecDeque::new(),
        })
    }
}
