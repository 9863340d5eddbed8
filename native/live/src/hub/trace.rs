//! Traces of recent changes, which explain why a client received a change or did not.
//!
//! What filter, document and rules say can be evaluated again at any time. What cannot is kept
//! here: which changes a query showed, and how they were delivered to each client. Every query and
//! every client has its own ring with an equal share of the budget, so that a busy one only
//! overwrites its own history. Shares follow the number of rings in steps of two, and shrink as
//! soon as there are more, so that all rings together never exceed the budget.
//!
//! ```text
//! group of changes ─▶ query's ring: Shown 7 (keys, versions)
//!                  ─▶ client's ring: Events 7..=7, events 3..=3, 12th of its outbox
//! coalesced        ─▶ client's ring: Coalesced 8..=11, events 4..=5, 13th and 14th
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use crate::message::StreamId;
use crate::snapshot::PgSnapshot;

use super::Hub;
use super::change::ResultChange;

/// The least number of rings that the budget is divided by.
const MIN_RINGS: usize = 16;

/// How a document's part in a result changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeType {
    Added,
    Changed,
    Moved,
    Removed,
}

impl ChangeType {
    /// Its name in events.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Added => "add",
            Self::Changed => "change",
            Self::Moved => "changeIndex",
            Self::Removed => "remove",
        }
    }
}

/// One document of a group of changes.
#[derive(Debug)]
pub(super) struct TracedRowChange {
    pub(super) key: Arc<[u8]>,
    pub(super) version: u64,
    pub(super) is: ChangeType,
}

impl From<&ResultChange> for TracedRowChange {
    fn from(change: &ResultChange) -> Self {
        let (row, version, is) = match change {
            ResultChange::Add { row, .. } => (row, row.document_version(), ChangeType::Added),
            ResultChange::Stay { row, .. } => (row, row.document_version(), ChangeType::Changed),
            ResultChange::Move { row, .. } => (row, row.document_version(), ChangeType::Moved),
            ResultChange::Remove { row, version, .. } => (row, *version, ChangeType::Removed),
        };
        Self {
            key: Arc::clone(&row.key),
            version,
            is,
        }
    }
}

/// An event in a query's history.
#[derive(Debug)]
pub(super) enum TraceEvent {
    /// A group of changes became part of the result.
    Shown {
        at_us: u64,
        /// The end of the log at that time.
        position: StreamId,
        /// The number of the group within the query.
        group: u64,
        changes: Box<[TracedRowChange]>,
    },
    /// Its rows were read.
    Registered { at_us: u64, snapshot: PgSnapshot },
}

/// How groups were delivered to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeliveryMode {
    /// By events, one for each change.
    Events,
    /// By events that coalesce several groups.
    Coalesced,
    /// By events, after it had resumed.
    Resumed,
    /// By the whole result.
    Result,
    /// Not at all: it has muted such changes.
    Muted,
    /// Its pending frames were dropped, and it restarts, for this reason.
    Reset(&'static str),
}

impl DeliveryMode {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::Coalesced => "together",
            Self::Resumed => "resumed",
            Self::Result => "result",
            Self::Muted => "muted",
            Self::Reset(_) => "anew",
        }
    }
}

/// What was sent to a client at one time.
#[derive(Debug)]
pub(super) struct TracedDelivery {
    pub(super) at_us: u64,
    /// The first and the last group of its query that this covers.
    pub(super) groups: (u64, u64),
    pub(super) how: DeliveryMode,
    /// The `seq` of the first and the last event; for none, the first is greater than the last.
    pub(super) events: (u64, u64),
    /// The number in the client's outbox of the delivery, or of its last part; for `Reset`, the
    /// number up to which the outbox had been handed out.
    pub(super) number: u64,
}

/// An entry that uses memory beyond its own size.
pub(super) trait HeapSize {
    fn heap_bytes(&self) -> usize;
}

impl HeapSize for TracedDelivery {
    fn heap_bytes(&self) -> usize {
        0
    }
}

impl HeapSize for TraceEvent {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Shown { changes, .. } => {
                let keys = changes.iter().map(|one| one.key.len());
                size_of_val::<[TracedRowChange]>(changes) + keys.sum::<usize>()
            }
            Self::Registered { snapshot, .. } => size_of_val(snapshot.running.as_slice()),
        }
    }
}

/// The latest entries, within a number of bytes.
#[derive(Debug)]
pub(super) struct TraceRing<T> {
    entries: VecDeque<T>,
    heap_bytes: usize,
    max_bytes: usize,
    /// How many entries were ever forgotten.
    pub(super) forgotten: u64,
}

impl<T: HeapSize> TraceRing<T> {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            heap_bytes: 0,
            max_bytes,
            forgotten: 0,
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<T>() + self.heap_bytes
    }

    /// The memory with one more entry: a full deque doubles.
    fn bytes_with(&self, more: usize) -> usize {
        let (held, room) = (self.entries.len(), self.entries.capacity());
        let slots = if held < room { room } else { (2 * room).max(1) };
        slots * size_of::<T>() + self.heap_bytes + more
    }

    /// Records an entry, and forgets the oldest ones to make room. An entry that is too large by
    /// itself is not recorded.
    pub(super) fn push(&mut self, entry: T) {
        let more = entry.heap_bytes();
        while self.bytes_with(more) > self.max_bytes {
            if !self.evict_oldest() {
                self.forgotten += 1;
                return;
            }
        }
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(self.entries.len().max(1));
        }
        self.heap_bytes += more;
        self.entries.push_back(entry);
    }

    fn evict_oldest(&mut self) -> bool {
        let Some(oldest) = self.entries.pop_front() else {
            return false;
        };
        self.heap_bytes -= oldest.heap_bytes();
        self.forgotten += 1;
        true
    }

    /// Sets the maximum size from here on.
    fn set_max_bytes(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
        while self.entries.len() * size_of::<T>() + self.heap_bytes > max_bytes
            && self.evict_oldest()
        {}
        if self.bytes() > max_bytes {
            self.entries.shrink_to_fit();
        }
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.entries.iter()
    }
}

/// What was sent to a client recently.
#[derive(Debug)]
pub(super) struct ClientTrace {
    pub(super) ring: TraceRing<TracedDelivery>,
    now_us: u64,
    /// The last group of the query.
    group: u64,
    /// The first group that has not been sent to it.
    pub(super) since: Option<u64>,
    resumes: bool,
}

impl ClientTrace {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            ring: TraceRing::new(max_bytes),
            now_us: 0,
            group: 0,
            since: None,
            resumes: false,
        }
    }

    /// Sets the current time and the number of groups that the query has shown.
    pub(super) fn at(&mut self, now_us: u64, group: u64) {
        (self.now_us, self.group) = (now_us, group);
    }

    /// Sets the current time.
    pub(super) fn set_time(&mut self, now_us: u64) {
        self.now_us = now_us;
    }

    /// Sets whether what is sent from here on was missed while the client was away.
    pub(super) fn resumes(&mut self, resumes: bool) {
        self.resumes = resumes;
    }

    /// The current group is sent later.
    pub(super) fn defer(&mut self) {
        self.since.get_or_insert(self.group);
    }

    /// Records that the client was sent everything up to the present group.
    pub(super) fn record_delivery(&mut self, how: DeliveryMode, events: (u64, u64), number: u64) {
        let since = self.since.take();
        let (how, first) = match how {
            DeliveryMode::Events if self.resumes => (DeliveryMode::Resumed, 0),
            DeliveryMode::Events => match since {
                Some(first) => (DeliveryMode::Coalesced, first),
                None => (DeliveryMode::Events, self.group),
            },
            // Anything that was not sent, and more, is in a result.
            DeliveryMode::Result | DeliveryMode::Reset(_) => (how, 0),
            other => (other, since.unwrap_or(self.group)),
        };
        self.ring.push(TracedDelivery {
            at_us: self.now_us,
            groups: (first, self.group),
            how,
            events,
            number,
        });
    }
}

/// What a query showed recently.
#[derive(Debug)]
pub(super) struct QueryTrace {
    pub(super) ring: TraceRing<TraceEvent>,
    /// How many groups it has shown.
    pub(super) groups: u64,
}

impl QueryTrace {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            ring: TraceRing::new(max_bytes),
            groups: 0,
        }
    }

    pub(super) fn shown(&mut self, at_us: u64, position: StreamId, changes: &[ResultChange]) {
        self.groups += 1;
        self.ring.push(TraceEvent::Shown {
            at_us,
            position,
            group: self.groups,
            changes: changes.iter().map(TracedRowChange::from).collect(),
        });
    }

    pub(super) fn registered(&mut self, at_us: u64, snapshot: &PgSnapshot) {
        let snapshot = snapshot.clone();
        self.ring.push(TraceEvent::Registered { at_us, snapshot });
    }
}

/// How the budget is divided.
#[derive(Debug)]
pub(super) struct Shares {
    budget: usize,
    /// The number of rings that the budget has room for.
    rings: usize,
}

impl Shares {
    pub(super) fn new(budget: usize) -> Self {
        Self {
            budget,
            rings: MIN_RINGS,
        }
    }

    /// The maximum size of a ring.
    pub(super) fn ring_bytes(&self) -> usize {
        self.budget / self.rings
    }

    /// Sets the number of rings; returns whether their shares have changed.
    fn count(&mut self, rings: usize) -> bool {
        let before = self.rings;
        if rings > self.rings || rings < self.rings / 4 {
            self.rings = rings.next_power_of_two().max(MIN_RINGS);
        }
        self.rings != before
    }
}

impl Hub {
    /// Sets the time of what is traced from here on: Valkey's. A trace would otherwise have the time
    /// of the last tick, which may be before the write that it is about.
    pub fn set_trace_time(&mut self, now_us: u64) {
        self.trace_time_us = now_us;
    }

    /// Redistributes the budget if there are more queries and clients, or far fewer.
    pub(super) fn redistribute_trace_budget(&mut self) {
        if !self.shares.count(self.queries.len() + self.clients.len()) {
            return;
        }
        let ring_bytes = self.shares.ring_bytes();
        for query in self.queries.values_mut() {
            query.trace.ring.set_max_bytes(ring_bytes);
        }
        for client in self.clients.values_mut() {
            client.trace.ring.set_max_bytes(ring_bytes);
        }
    }

    /// The memory of all traces, in bytes.
    pub fn trace_bytes(&self) -> usize {
        let queries = self.queries.values().map(|query| query.trace.ring.bytes());
        let clients = self
            .clients
            .values()
            .map(|client| client.trace.ring.bytes());
        queries.sum::<usize>() + clients.sum::<usize>()
    }
}
