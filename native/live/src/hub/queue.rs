//! The log entries of an unsorted query that are not shown yet, in order.
//!
//! A write waits for the other parts of its atomic batch. A node's whole state waits until the
//! other nodes have progressed as far, and for their states, since the parts of a batch may be in
//! several. Complete items at the front are shown as one group, so that no position in the log lies
//! between two halves of it.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::message::{NodeEvent, NotificationSource, RemovalReason, ResultRow, StreamId};
use crate::snapshot::PgSnapshot;

use super::answers::RegistrationAnswers;
use super::positions::{Ends, EntryPosition, ReportedPositions};
use super::sizes::{KEY_BYTES, event_bytes, row_bytes};
use super::sources::NotificationLog;

/// How long to wait for the end of a batch while all nodes are present; then its query is read
/// again.
const BATCH_US: u64 = 2_000_000;

/// The maximum number of log entries kept during a registration, and of changes that wait for the
/// rest of their batch; beyond it the query is read again.
const MAX_WAITING: usize = 20_000;
const MAX_WAITING_BYTES: usize = 64 * 1024 * 1024;

/// One write's effect.
#[derive(Debug)]
pub(super) enum QueuedWrite {
    Put(ResultRow),
    Take(Arc<[u8]>, u64, RemovalReason),
}

/// An item of the queue.
#[derive(Debug)]
pub(super) enum QueuedItem {
    /// A write or an atomic batch.
    Writes {
        xid: u64,
        parts: Arc<[u16]>,
        writes: Vec<QueuedWrite>,
        /// The positions of each node's reports: what it said before the last of them does not end
        /// the item.
        reported_at: ReportedPositions,
    },
    /// A filter node's members.
    State {
        partition: u16,
        rows: Vec<ResultRow>,
        snapshot: PgSnapshot,
    },
}

impl QueuedWrite {
    fn bytes(&self) -> usize {
        match self {
            Self::Put(row) => row_bytes(row),
            Self::Take(key, ..) => KEY_BYTES + key.len(),
        }
    }
}

impl QueuedItem {
    const fn is_state(&self) -> bool {
        matches!(self, Self::State { .. })
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Writes { writes, .. } => writes.iter().map(QueuedWrite::bytes).sum(),
            Self::State { rows, .. } => rows.iter().map(row_bytes).sum(),
        }
    }
}

#[derive(Debug)]
struct QueuedEntry {
    item: QueuedItem,
    since_us: u64,
    /// The position in the log before its first entry.
    before: StreamId,
    /// Its last entry.
    last: StreamId,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct ChangeQueue {
    waiting: VecDeque<QueuedEntry>,
    bytes: usize,
}

/// An entry of the log, for a query.
pub(super) type LogEntry = (EntryPosition, NotificationSource, NodeEvent);

/// Log entries of a query while its registration is in progress.
#[derive(Debug, Default)]
pub(super) struct DeferredEntries {
    entries: Vec<LogEntry>,
    bytes: usize,
}

impl DeferredEntries {
    /// Keeps an entry; returns whether there was room for all of them.
    pub(super) fn keep(&mut self, entry: LogEntry) -> bool {
        let bytes = event_bytes(&entry.2);
        let fits = self.entries.len() < MAX_WAITING && self.bytes + bytes <= MAX_WAITING_BYTES;
        if !fits {
            self.take();
        }
        self.bytes += bytes;
        self.entries.push(entry);
        fits
    }

    pub(super) fn take(&mut self) -> Vec<LogEntry> {
        self.bytes = 0;
        std::mem::take(&mut self.entries)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl ChangeQueue {
    /// Whether more is queued than allowed.
    pub(super) fn is_flooded(&self) -> bool {
        self.waiting.len() > MAX_WAITING || self.bytes > MAX_WAITING_BYTES
    }

    /// Whether a version of a document is queued.
    pub(super) fn has(&self, key: &[u8], version: u64) -> bool {
        let is = |write: &QueuedWrite| match write {
            QueuedWrite::Put(row) => *row.key == *key && row.version == version,
            QueuedWrite::Take(of, gone, _) => **of == *key && *gone == version,
        };
        self.waiting.iter().any(|one| match &one.item {
            QueuedItem::Writes { writes, .. } => writes.iter().any(is),
            QueuedItem::State { .. } => false,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The queued bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.bytes = 0;
    }

    /// Whether a node's state is queued: until it is shown, ticks prove more than was reported.
    pub(super) fn has_state(&self) -> bool {
        self.waiting.iter().any(|one| one.item.is_state())
    }

    /// The position before all queued items.
    pub(super) fn front(&self) -> Option<StreamId> {
        self.waiting.front().map(|first| first.before)
    }

    pub(super) fn write(
        &mut self,
        (xid, parts): (u64, &Arc<[u16]>),
        write: QueuedWrite,
        (place, source): (EntryPosition, NotificationSource),
    ) {
        let part = match source {
            NotificationSource::Filter(part) => part,
            NotificationSource::Sort => return,
        };
        let batch =
            |one: &QueuedEntry| matches!(one.item, QueuedItem::Writes { xid: of, .. } if of == xid);
        if !parts.is_empty()
            && let Some(at) = self.waiting.iter().rposition(batch)
            && let Some(waiting) = self.waiting.get_mut(at)
            && let QueuedItem::Writes {
                writes,
                reported_at,
                ..
            } = &mut waiting.item
        {
            reported_at.again(part, place.at);
            self.bytes += write.bytes();
            writes.push(write);
            waiting.last = place.at;
            self.move_behind_state(at, part, xid);
            return;
        }
        let item = QueuedItem::Writes {
            xid,
            parts: Arc::clone(parts),
            writes: vec![write],
            reported_at: ReportedPositions::at(part, place.at),
        };
        self.push(item, place);
    }

    /// A node that reported a batch after its whole state, which does not contain the batch, refers
    /// to what exists then; other nodes may have reported the batch before it.
    fn move_behind_state(&mut self, at: usize, part: u16, xid: u64) {
        let lacks = |one: &QueuedEntry| {
            matches!(&one.item, QueuedItem::State { partition, snapshot, .. }
                if *partition == part && !snapshot.sees(xid))
        };
        let state = self.waiting.iter().rposition(lacks);
        if let Some(state) = state.filter(|state| *state > at)
            && let Some(batch) = self.waiting.remove(at)
        {
            // The positions before items never decrease along the queue.
            for passed in self.waiting.iter_mut().take(state).skip(at) {
                passed.before = batch.before;
            }
            self.waiting.insert(state, batch);
        }
    }

    pub(super) fn push(&mut self, item: QueuedItem, place: EntryPosition) {
        self.bytes += item.bytes();
        self.waiting.push_back(QueuedEntry {
            item,
            since_us: place.now_us,
            before: place.before,
            last: place.at,
        });
    }

    /// Takes the complete items at the front. States are taken all or none: each of them may
    /// contain a part of the same batch.
    pub(super) fn ready(
        &mut self,
        log: &NotificationLog,
        (sources, answers): (&[NotificationSource], &RegistrationAnswers),
    ) -> Vec<QueuedItem> {
        let last = self.waiting.iter().rposition(|one| one.item.is_state());
        let states = last.map_or(0, |at| at + 1);
        let nodes = (sources, answers);
        let mut count = self.complete_prefix(&self.complete(log, nodes, true));
        if count < states {
            count = self.complete_prefix(&self.complete(log, nodes, false));
        }
        let items = self.waiting.drain(..count).map(|one| one.item);
        let items: Vec<QueuedItem> = items.collect();
        self.bytes -= items.iter().map(QueuedItem::bytes).sum::<usize>();
        items
    }

    /// Whether the next item has been incomplete for too long. `live_us` is the time since which
    /// nothing prevents its completion, if so.
    pub(super) fn is_late(&self, now_us: u64, live_us: Option<u64>) -> bool {
        let since_us = self.waiting.front().map(|first| first.since_us);
        let since_us = since_us.zip(live_us).map(|(since, live)| since.max(live));
        since_us.is_some_and(|since| now_us.saturating_sub(since) > BATCH_US)
    }

    /// The complete items at the front, by their ends; with the states among them, or those before
    /// these.
    fn complete(
        &self,
        log: &NotificationLog,
        nodes: (&[NotificationSource], &RegistrationAnswers),
        with_states: bool,
    ) -> Vec<Ends> {
        let ends = |(at, one): (usize, &QueuedEntry)| match &one.item {
            QueuedItem::Writes {
                xid,
                parts,
                reported_at,
                ..
            } => {
                let reported = (reported_at, nodes.1);
                let may_be_past = || with_states || !self.is_in_state_behind(at, *xid);
                let past = || log.past(*xid, parts, reported).filter(|_| may_be_past());
                log.handled_positions(*xid, parts, reported).or_else(past)
            }
            QueuedItem::State { snapshot, .. } => {
                (with_states && reached(log, nodes, snapshot)).then(Ends::new)
            }
        };
        self.waiting.iter().enumerate().map_while(ends).collect()
    }

    /// Whether a state queued after a batch may contain the rest of it.
    fn is_in_state_behind(&self, at: usize, xid: u64) -> bool {
        let mut behind = self.waiting.iter().skip(at + 1);
        behind.any(
            |one| matches!(&one.item, QueuedItem::State { snapshot, .. } if snapshot.sees(xid)),
        )
    }

    /// How many of the complete items at the front can be taken without those that follow.
    fn complete_prefix(&self, ends: &[Ends]) -> usize {
        let mut count = ends.len();
        while self.overlaps(count) || self.may_be_replaced_after(count, ends) {
            count -= 1;
        }
        count
    }

    /// Whether the next item starts within those before it.
    fn overlaps(&self, count: usize) -> bool {
        let taken = self.waiting.iter().take(count);
        let last = taken.map(|one| one.last).max();
        let next = self.waiting.get(count);
        last.zip(next)
            .is_some_and(|(last, next)| last > next.before)
    }

    /// Whether later items may contain what replaces a part of a batch among these: a node that
    /// handled a higher version of a document before its own part reports only that version.
    fn may_be_replaced_after(&self, count: usize, ends: &[Ends]) -> bool {
        let ends = || ends.iter().take(count).flatten();
        let Some(last) = ends().map(|(_, at)| *at).max() else {
            return false;
        };
        let behind = self.waiting.iter().skip(count);
        let mut behind = behind.take_while(|one| one.before < last);
        behind.any(|one| ends().any(|(part, end)| one.is_reported_before(*part, *end)))
    }
}

impl QueuedEntry {
    /// Whether a node reported a part of it before a position.
    fn is_reported_before(&self, part: u16, end: StreamId) -> bool {
        match &self.item {
            QueuedItem::Writes { reported_at, .. } => {
                let first = reported_at.0.iter().find(|(of, ..)| *of == part);
                first.is_some_and(|(_, first, _)| *first < end)
            }
            QueuedItem::State { partition, .. } => *partition == part && self.last < end,
        }
    }
}

/// Whether all filter nodes have reported to the query whatever a snapshot sees.
fn reached(
    log: &NotificationLog,
    (sources, answers): (&[NotificationSource], &RegistrationAnswers),
    snapshot: &PgSnapshot,
) -> bool {
    let mut filters = sources
        .iter()
        .filter(|source| **source != NotificationSource::Sort);
    filters.all(|source| log.has_reported(*source, snapshot, answers))
}
