//! What the filter nodes reported: whether anything is missing, and how far all of them are.

use std::collections::HashMap;

use crate::message::{
    AfterImage, FencingToken, NodeEvent, Notification, NotificationSource, StreamId, StreamTick,
};
use crate::snapshot::PgSnapshot;

use super::query_write::QueryWrite;

/// A log is trimmed after 60 s: a reader that finds its first entry this much later than where it
/// started may have missed some.
const TRIMMED_MS: u64 = 50_000;
/// How many unfinished batches are remembered. Ticks finish those that are forgotten.
const BATCHES: usize = 100_000;

#[derive(Debug, Default)]
struct FilterSource {
    token: FencingToken,
    count: u64,
    /// It was rebuilt, or is being rebuilt, and its earlier reports may be lost.
    stale: bool,
    tick: Option<StreamTick>,
    /// Everything that this sees was reported, up to a position in the log.
    reported: Option<(PgSnapshot, StreamId)>,
    /// It reports nothing that this sees, because it was rebuilt with it.
    base: Option<PgSnapshot>,
}

/// How to treat an entry of the log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EntryVerdict {
    /// Ignored: the node's own, repeated, or from a node that was replaced.
    Nothing,
    News,
    /// Entries before it are missing.
    Lost,
}

/// All filter nodes of the query partition.
#[derive(Debug)]
pub(super) struct Sources {
    filters: Vec<FilterSource>,
    /// The last positions at which partitions reported that they handled their part, by
    /// transaction.
    handled: HashMap<u64, HashMap<u16, StreamId>>,
    /// The position at which reading the log started, until its first entry arrives.
    begin: Option<StreamId>,
    last_tick_us: u64,
}

impl Sources {
    pub(super) fn new(partitions: u16, begin: StreamId) -> Self {
        let mut filters = Vec::new();
        filters.resize_with(partitions.into(), FilterSource::default);
        Self {
            filters,
            handled: HashMap::new(),
            begin: Some(begin).filter(|begin| *begin > StreamId::default()),
            last_tick_us: 0,
        }
    }

    pub(super) fn check_entry(
        &mut self,
        id: StreamId,
        notification: &Notification,
    ) -> EntryVerdict {
        let begin = self.begin.take();
        if begin.is_some_and(|begin| id.ms > begin.ms.saturating_add(TRIMMED_MS)) {
            return EntryVerdict::Lost;
        }
        let NotificationSource::Filter(partition) = notification.source else {
            return EntryVerdict::Nothing;
        };
        let Some(filter) = self.filters.get_mut(usize::from(partition)) else {
            return EntryVerdict::Nothing;
        };
        let known = filter.token;
        if notification.token < known {
            return EntryVerdict::Nothing;
        }
        if notification.token > known {
            // A new holder's notifications start at 1, unless the log is read from the middle.
            if known != FencingToken::default() && notification.count != 1 {
                return EntryVerdict::Lost;
            }
            *filter = FilterSource {
                token: notification.token,
                count: notification.count,
                stale: known != FencingToken::default(),
                ..FilterSource::default()
            };
        } else if notification.count <= filter.count {
            return EntryVerdict::Nothing;
        } else if notification.count != filter.count + 1 {
            return EntryVerdict::Lost;
        }
        filter.count = notification.count;
        if notification.event == NodeEvent::Start {
            filter.stale = true;
            filter.tick = None;
        }
        EntryVerdict::News
    }

    /// A filter node has reported everything, and this node's state is not older.
    pub(super) fn rebased(&mut self, partition: u16, snapshot: PgSnapshot, at: StreamId) {
        if let Some(filter) = self.filters.get_mut(usize::from(partition)) {
            filter.stale = false;
            filter.reported = Some((snapshot.clone(), at));
            filter.base = Some(snapshot);
        }
    }

    /// Whether rows of this snapshot contain whatever filter nodes do not report since they were
    /// rebuilt.
    pub(super) fn are_behind(&self, snapshot: &PgSnapshot) -> bool {
        let mut bases = self
            .filters
            .iter()
            .filter_map(|filter| filter.base.as_ref());
        bases.all(|base| snapshot.covers(base))
    }

    pub(super) fn handled(&mut self, partition: u16, xid: u64, at: StreamId) {
        if self.handled.len() >= BATCHES {
            self.handled.clear();
        }
        self.handled.entry(xid).or_default().insert(partition, at);
    }

    /// The positions at which each partition reported all images of a batch; `None` if one has not.
    /// Only a report after its steps, which are repeated for queries that are registered later, is
    /// an end.
    pub(super) fn ends<'s>(
        &self,
        image: &AfterImage,
        writes: &(impl Iterator<Item = &'s QueryWrite> + Clone),
    ) -> Option<Vec<(u16, StreamId)>> {
        let ends = image.parts.iter().map(|part| {
            let own_writes = writes.clone().filter(|write| write.partition == *part);
            let last = own_writes.map(|write| write.at).max();
            let at = self.end(image.xid, *part, |at| last.is_none_or(|last| at > last))?;
            Some((*part, at))
        });
        ends.collect()
    }

    /// The position at which a partition reported that it handled a batch, if that position counts.
    fn end(&self, xid: u64, part: u16, counts: impl Fn(StreamId) -> bool) -> Option<StreamId> {
        let Some(filter) = self.filters.get(usize::from(part)) else {
            // No node exists to report it.
            return Some(StreamId::default());
        };
        let handled = self
            .handled
            .get(&xid)
            .and_then(|handled| handled.get(&part));
        let reported = filter
            .reported
            .as_ref()
            .filter(|(reported, _)| reported.sees(xid));
        let mut said = handled
            .into_iter()
            .chain(reported.map(|(_, at)| at))
            .copied();
        said.find(|at| counts(*at))
    }

    /// A position in the log after the ticks of all filter nodes, if these have reached a snapshot.
    /// What nodes report after a rebuild is no such proof: a query registered since has older rows.
    pub(super) fn reached(&self, snapshot: &PgSnapshot) -> Option<StreamId> {
        let reached = self.filters.iter().map(|filter| {
            let tick = filter.tick.as_ref();
            tick.filter(|tick| tick.snapshot.covers(snapshot))?;
            filter.reported.as_ref().map(|(_, at)| *at)
        });
        let places: Option<Vec<StreamId>> = reached.collect();
        Some(places?.into_iter().max().unwrap_or_default())
    }

    pub(super) fn tick(&mut self, partition: u16, tick: &StreamTick, at: StreamId) {
        if let Some(filter) = self.filters.get_mut(usize::from(partition)) {
            filter.reported = Some((tick.snapshot.clone(), at));
            filter.tick = Some(tick.clone());
        }
        let filters = &self.filters;
        self.handled.retain(|xid, _| {
            let has_reported = |filter: &FilterSource| {
                filter
                    .reported
                    .as_ref()
                    .is_some_and(|has_reported| has_reported.0.sees(*xid))
            };
            !filters.iter().all(has_reported)
        });
    }

    /// The oldest of all filter nodes' ticks, if all are known and it was not sent yet.
    pub(super) fn common_tick(&mut self) -> Option<StreamTick> {
        if self.filters.iter().any(|filter| filter.stale) {
            return None;
        }
        let ticks: Option<Vec<&StreamTick>> =
            self.filters.iter().map(|f| f.tick.as_ref()).collect();
        let oldest = ticks?.into_iter().min_by_key(|tick| tick.time_us)?.clone();
        if oldest.time_us <= self.last_tick_us {
            return None;
        }
        self.last_tick_us = oldest.time_us;
        Some(oldest)
    }
}
