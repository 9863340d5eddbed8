//! What the log says of an unsorted query and is not shown yet, in order.
//!
//! A write waits for the other parts of its atomic batch; a node's whole state waits until the other
//! nodes have come as far, and for theirs, as batches may have their parts in several. Whatever is
//! complete at the front is shown as one group, so that no place in the log lies between two halves
//! of it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::message::{Gone, News, Row, Source, StreamId};
use crate::snapshot::Snapshot;

use super::answers::Answers;
use super::change::bytes_of;
use super::memory::{KEY_BYTES, of_news};
use super::sources::Log;

/// A batch whose end does not come is not waited for longer, while everybody is there.
const BATCH_US: u64 = 2_000_000;

/// So much of the log is kept while a registration is on its way, and so many changes wait for the
/// rest of their batch; then the query is read again.
const MOST_WAITING: usize = 20_000;
const MOST_WAITING_BYTES: usize = 64 * 1024 * 1024;

/// One write's effect.
#[derive(Debug)]
pub(super) enum Step {
    Put(Row),
    Take(Arc<[u8]>, u64, Gone),
}

/// What waits.
#[derive(Debug)]
pub(super) enum Item {
    /// A write or an atomic batch.
    Writes {
        xid: u64,
        parts: Arc<[u16]>,
        steps: Vec<Step>,
        /// Where each node has told of it last: what it said before that is no end of it.
        said: Said,
    },
    /// A filter node's members.
    State {
        partition: u16,
        rows: Vec<Row>,
        snapshot: Snapshot,
    },
}

impl Step {
    fn bytes(&self) -> usize {
        match self {
            Self::Put(row) => bytes_of(row),
            Self::Take(key, ..) => KEY_BYTES + key.len(),
        }
    }
}

impl Item {
    const fn is_state(&self) -> bool {
        matches!(self, Self::State { .. })
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Writes { steps, .. } => steps.iter().map(Step::bytes).sum(),
            Self::State { rows, .. } => rows.iter().map(bytes_of).sum(),
        }
    }
}

/// By write partition, a place in the log.
pub(super) type Said = HashMap<u16, StreamId>;

#[derive(Debug)]
struct Waiting {
    item: Item,
    since_us: u64,
    /// The place in the log in front of its first entry.
    before: StreamId,
    /// Its last entry.
    last: StreamId,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
}

/// The place of an entry: behind which one it stands, its own, and when it was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) before: StreamId,
    pub(super) at: StreamId,
    pub(super) now_us: u64,
}

/// An entry of the log, for a query.
pub(super) type Entry = (Place, Source, News);

/// What the log says of a query while its registration is on its way.
#[derive(Debug, Default)]
pub(super) struct HeldBack {
    entries: Vec<Entry>,
    bytes: usize,
}

impl HeldBack {
    /// Keeps an entry; returns whether there was room for all of them.
    pub(super) fn keep(&mut self, entry: Entry) -> bool {
        let bytes = of_news(&entry.2);
        let fits = self.entries.len() < MOST_WAITING && self.bytes + bytes <= MOST_WAITING_BYTES;
        if !fits {
            self.take();
        }
        self.bytes += bytes;
        self.entries.push(entry);
        fits
    }

    pub(super) fn take(&mut self) -> Vec<Entry> {
        self.bytes = 0;
        std::mem::take(&mut self.entries)
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Queue {
    /// Whether more waits than may.
    pub(super) fn is_flooded(&self) -> bool {
        self.waiting.len() > MOST_WAITING || self.bytes > MOST_WAITING_BYTES
    }

    /// Whether a version of a document waits.
    pub(super) fn has(&self, key: &[u8], version: u64) -> bool {
        let is = |step: &Step| match step {
            Step::Put(row) => *row.key == *key && row.version == version,
            Step::Take(of, gone, _) => **of == *key && *gone == version,
        };
        self.waiting.iter().any(|one| match &one.item {
            Item::Writes { steps, .. } => steps.iter().any(is),
            Item::State { .. } => false,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// What waits, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.bytes = 0;
    }

    /// Whether a node's state waits: until it is shown, ticks prove more than was told.
    pub(super) fn has_state(&self) -> bool {
        self.waiting.iter().any(|one| one.item.is_state())
    }

    /// The place in front of everything that waits.
    pub(super) fn front(&self) -> Option<StreamId> {
        self.waiting.front().map(|first| first.before)
    }

    pub(super) fn write(
        &mut self,
        (xid, parts): (u64, &Arc<[u16]>),
        step: Step,
        (place, source): (Place, Source),
    ) {
        let part = match source {
            Source::Filter(part) => part,
            Source::Sort => return,
        };
        let batch = |one: &Waiting| matches!(one.item, Item::Writes { xid: of, .. } if of == xid);
        if !parts.is_empty()
            && let Some(at) = self.waiting.iter().rposition(batch)
            && let Some(waiting) = self.waiting.get_mut(at)
            && let Item::Writes { steps, said, .. } = &mut waiting.item
        {
            said.insert(part, place.at);
            self.bytes += step.bytes();
            steps.push(step);
            waiting.last = place.at;
            self.put_behind_state(at, part, xid);
            return;
        }
        let item = Item::Writes {
            xid,
            parts: Arc::clone(parts),
            steps: vec![step],
            said: Said::from([(part, place.at)]),
        };
        self.push(item, place);
    }

    /// A node that told of a batch behind its whole state, which does not hold it, means what is
    /// there then; others may have told of it before.
    fn put_behind_state(&mut self, at: usize, part: u16, xid: u64) {
        let lacks = |one: &Waiting| {
            matches!(&one.item, Item::State { partition, snapshot, .. }
                if *partition == part && !snapshot.sees(xid))
        };
        let state = self.waiting.iter().rposition(lacks);
        if let Some(state) = state.filter(|state| *state > at)
            && let Some(batch) = self.waiting.remove(at)
        {
            // Places in front of items never fall along the queue.
            for passed in self.waiting.iter_mut().take(state).skip(at) {
                passed.before = batch.before;
            }
            self.waiting.insert(state, batch);
        }
    }

    pub(super) fn push(&mut self, item: Item, place: Place) {
        self.bytes += item.bytes();
        self.waiting.push_back(Waiting {
            item,
            since_us: place.now_us,
            before: place.before,
            last: place.at,
        });
    }

    /// Takes what is complete at the front, and whether a part of it may be missing. States are taken
    /// all or none: of a batch that some of them hold, each may hold a part. `live_us` is since when
    /// nothing stands in the way of completion, if so.
    pub(super) fn ready(
        &mut self,
        log: &Log,
        (sources, answers): (&[Source], &Answers),
        now_us: u64,
        live_us: Option<u64>,
    ) -> (Vec<Item>, bool) {
        let late = |one: &Waiting| {
            live_us.is_some_and(|live| now_us.saturating_sub(one.since_us.max(live)) > BATCH_US)
        };
        let last = self.waiting.iter().rposition(|one| one.item.is_state());
        let states = last.map_or(0, |at| at + 1);
        let nodes = (sources, answers);
        let (mut count, mut broken) = self.complete(log, nodes, true, late);
        if count < states {
            (count, broken) = self.complete(log, nodes, false, late);
        }
        let items = self.waiting.drain(..count).map(|one| one.item);
        let items: Vec<Item> = items.collect();
        self.bytes -= items.iter().map(Item::bytes).sum::<usize>();
        (items, broken && count > 0)
    }

    /// How many items at the front are complete, or late, and whether some are late; with the states
    /// among them, or in front of these.
    fn complete(
        &self,
        log: &Log,
        nodes: (&[Source], &Answers),
        with_states: bool,
        late: impl Fn(&Waiting) -> bool,
    ) -> (usize, bool) {
        let mut broken = false;
        let mut count = 0;
        for (at, one) in self.waiting.iter().enumerate() {
            let complete = match &one.item {
                Item::Writes {
                    xid, parts, said, ..
                } => {
                    let told = (said, nodes.1);
                    let past = || with_states || !self.is_in_state_behind(at, *xid);
                    parts.is_empty()
                        || log.is_done(*xid, parts, told)
                        || (log.is_past(*xid, parts, told) && past())
                }
                Item::State { snapshot, .. } => with_states && reached(log, nodes, snapshot),
            };
            if !complete {
                if !late(one) {
                    break;
                }
                broken = true;
            }
            count = at + 1;
        }
        (self.without_overlap(count), broken)
    }

    /// Whether a state that waits behind a batch may hold the rest of it.
    fn is_in_state_behind(&self, at: usize, xid: u64) -> bool {
        let mut behind = self.waiting.iter().skip(at + 1);
        behind.any(|one| matches!(&one.item, Item::State { snapshot, .. } if snapshot.sees(xid)))
    }

    /// The largest number of items, at most `count`, that the next one does not begin within.
    fn without_overlap(&self, mut count: usize) -> usize {
        while let Some(next) = self.waiting.get(count)
            && count > 0
        {
            let taken = self.waiting.iter().take(count);
            let last = taken.map(|one| one.last).max();
            if last.is_none_or(|last| last <= next.before) {
                break;
            }
            count -= 1;
        }
        count
    }
}

/// Whether all filter nodes have told the query whatever a snapshot sees.
fn reached(log: &Log, (sources, answers): (&[Source], &Answers), snapshot: &Snapshot) -> bool {
    let mut filters = sources.iter().filter(|source| **source != Source::Sort);
    filters.all(|source| log.has_told(*source, snapshot, answers))
}
