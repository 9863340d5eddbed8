//! The queries that a filter node watches.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use rillbase_matching::QueryId;
use rillbase_query::bson::Document;
use rillbase_query::environment::EvaluationContext;
use rillbase_query::filter::Filter;

use crate::message::{LookupSide, QueryDefinition, QueryHash, StreamId};
use crate::snapshot::PgSnapshot;

/// A query and its generation: numbers are reused, generations are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueryHandle {
    pub(super) id: QueryId,
    pub(super) generation: u32,
}

/// What a query's rows already contain.
///
/// Writes that the snapshot sees are in the rows that the query was registered with. They may still
/// arrive: those in transit until a tick covers the snapshot, and their repetitions for as long as
/// a publication may be delayed. A node that never handled a write cannot recognize a repetition by
/// its version, so both periods must have passed before the guard is released.
#[derive(Debug)]
pub(super) struct Guard {
    pub(super) snapshot: Arc<PgSnapshot>,
    /// Set by a rebuild: readers with an earlier snapshot find the `Rebase` in the log.
    pub(super) rebuilt: bool,
}

#[derive(Debug)]
pub(super) struct WatchedQuery {
    pub(super) hash: QueryHash,
    pub(super) activation: u64,
    pub(super) collection: [u8; 16],
    pub(super) sorted: bool,
    /// The collections that it looks up.
    pub(super) sides: Arc<[LookupSide]>,
    rule: Arc<[u8]>,
    pub(super) guard: Option<Guard>,
    /// A reader that noted a later end of the write stream has a snapshot later than that of the
    /// released guard.
    guard_released_at: StreamId,
}

impl WatchedQuery {
    /// Whether the query's rows contain this transaction already.
    pub(super) fn has_seen(&self, xid: u64) -> bool {
        self.guard
            .as_ref()
            .is_some_and(|guard| guard.snapshot.sees(xid))
    }

    /// Whether the query's users may read the document. This is rarely needed, so the rule is kept
    /// only in its encoded form.
    pub(super) fn may_read(&self, document: Document<'_>, now_ms: i64) -> bool {
        if self.rule.is_empty() {
            return true;
        }
        let rule = Filter::parse(Document::trusted(&self.rule));
        rule.is_ok_and(|rule| rule.matches_in(document, &EvaluationContext::at(now_ms)) == Ok(true))
    }

    /// Whether a subscriber with this position and snapshot can join: everything that the snapshot
    /// does not see has been or will be reported.
    pub(super) fn can_be_joined(&self, position: StreamId, snapshot: &PgSnapshot) -> bool {
        match &self.guard {
            Some(guard) => guard.rebuilt || snapshot.covers(&guard.snapshot),
            None => position >= self.guard_released_at,
        }
    }
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    query: Option<WatchedQuery>,
}

/// All queries, by number and by hash.
#[derive(Debug, Default)]
pub(super) struct WatchedQueries {
    slots: Vec<Slot>,
    by_hash: HashMap<QueryHash, QueryId>,
    sorted: BTreeSet<QueryId>,
    /// Guards by the earliest time at which they may be released.
    guards: VecDeque<(u64, QueryHandle)>,
    /// The last guard's snapshot: queries that are registered together share one.
    last: Option<Arc<PgSnapshot>>,
}

impl WatchedQueries {
    pub(super) fn find(&self, hash: &QueryHash) -> Option<(QueryId, &WatchedQuery)> {
        let id = *self.by_hash.get(hash)?;
        Some((id, self.get(id)?))
    }

    pub(super) fn get(&self, id: QueryId) -> Option<&WatchedQuery> {
        self.slots.get(id.0 as usize)?.query.as_ref()
    }

    pub(super) fn is_alive(&self, member: QueryHandle) -> bool {
        self.slots
            .get(member.id.0 as usize)
            .is_some_and(|slot| slot.generation == member.generation && slot.query.is_some())
    }

    pub(super) fn member(&self, id: QueryId) -> QueryHandle {
        let slot = self.slots.get(id.0 as usize);
        QueryHandle {
            id,
            generation: slot.map_or(0, |slot| slot.generation),
        }
    }

    /// Adds a query. It needs a guard before any write is handled.
    pub(super) fn insert(&mut self, id: QueryId, definition: &QueryDefinition) {
        let index = id.0 as usize;
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, Slot::default);
        }
        let Some(slot) = self.slots.get_mut(index) else {
            return;
        };
        slot.generation = slot.generation.wrapping_add(1);
        slot.query = Some(WatchedQuery {
            hash: definition.hash,
            activation: definition.activation,
            collection: definition.collection,
            sorted: definition.sorted,
            sides: Arc::clone(&definition.sides),
            rule: Arc::clone(&definition.rule),
            guard: None,
            guard_released_at: StreamId::default(),
        });
        self.by_hash.insert(definition.hash, id);
        if definition.sorted {
            self.sorted.insert(id);
        }
    }

    /// Guards a query whose rows have seen `snapshot`, at least until `until_us`.
    pub(super) fn guard(&mut self, id: QueryId, snapshot: &PgSnapshot, until_us: u64) {
        let guard = Guard {
            snapshot: self.share(snapshot),
            rebuilt: false,
        };
        let slot = self.slots.get_mut(id.0 as usize);
        if let Some(query) = slot.and_then(|slot| slot.query.as_mut()) {
            query.guard = Some(guard);
            self.guards.push_back((until_us, self.member(id)));
        }
    }

    /// Guards all queries: their rows have seen the snapshot of a rebuild.
    pub(super) fn guard_all(&mut self, snapshot: &PgSnapshot, until_us: u64) {
        let snapshot = self.share(snapshot);
        self.guards.clear();
        for (id, slot) in (0..).map(QueryId).zip(&mut self.slots) {
            if let Some(query) = &mut slot.query {
                query.guard = Some(Guard {
                    snapshot: Arc::clone(&snapshot),
                    rebuilt: true,
                });
                let generation = slot.generation;
                self.guards
                    .push_back((until_us, QueryHandle { id, generation }));
            }
        }
    }

    fn share(&mut self, snapshot: &PgSnapshot) -> Arc<PgSnapshot> {
        match &self.last {
            Some(last) if **last == *snapshot => Arc::clone(last),
            _ => Arc::clone(self.last.insert(Arc::new(snapshot.clone()))),
        }
    }

    pub(super) fn remove(&mut self, id: QueryId) -> Option<WatchedQuery> {
        let query = self.slots.get_mut(id.0 as usize)?.query.take()?;
        self.by_hash.remove(&query.hash);
        self.sorted.remove(&id);
        Some(query)
    }

    /// Releases guards that have expired and whose snapshot is covered by `complete`, a tick's
    /// snapshot.
    pub(super) fn release(&mut self, now_us: u64, complete: &PgSnapshot, end: StreamId) {
        while let Some((until_us, member)) = self.guards.front().copied() {
            let alive = self.is_alive(member);
            let query = self.slots.get_mut(member.id.0 as usize);
            let query = query.and_then(|slot| slot.query.as_mut()).filter(|_| alive);
            if let Some(query) = query {
                let guard = query.guard.as_ref();
                let covered = guard.is_none_or(|guard| complete.covers(&guard.snapshot));
                if until_us > now_us || !covered {
                    return;
                }
                query.guard = None;
                query.guard_released_at = end;
            }
            self.guards.pop_front();
        }
        self.last = None;
    }

    /// Numbers of all queries, ascending.
    pub(super) fn ids(&self) -> Vec<QueryId> {
        let mut ids: Vec<_> = self.by_hash.values().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Numbers of a collection's sorted queries, ascending.
    pub(super) fn sorted(&self, collection: &[u8; 16]) -> Vec<QueryId> {
        let sorted = self.sorted.iter().copied();
        let own = sorted.filter(|id| {
            self.get(*id)
                .is_some_and(|query| query.collection == *collection)
        });
        own.collect()
    }

    pub(super) fn len(&self) -> usize {
        self.by_hash.len()
    }
}
