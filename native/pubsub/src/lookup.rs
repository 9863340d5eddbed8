//! Searching lists: where to start, when to stop, and the cost.
//!
//! A lookup is one forward scan of a snapshot: through the lists of the ancestors of an id, the
//! root's first, then through those of the id and all below it. Of each list it reads the entries
//! within a time window. It starts at the newest of them and leaves the list at the first that is
//! too old; older ones are never read, however many there are.

use std::collections::BTreeMap;
use std::ops::Bound;

use rillbase_engine::{Db, DbSnapshot, Keyspace, Millis, Scan, Sequence, prefix_end};

use crate::error::{Error, Result};
use crate::id::DeweyId;
use crate::keys::{self, AFTER_LISTS, PUBLICATIONS, SUBSCRIPTIONS, TopicKeyspaces};
use crate::place::Ids;

/// How many entries are skipped one by one before a seek is cheaper.
const STEPS: usize = 4;

/// Times, inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeWindow {
    /// The first.
    pub from: Millis,
    /// The last.
    pub to: Millis,
}

impl TimeWindow {
    /// All times from `from` on.
    pub fn since(from: Millis) -> Self {
        Self {
            from,
            to: Millis::MAX,
        }
    }
}

/// The time window for each kind of list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LookupWindows {
    pub(crate) subscriptions: Option<TimeWindow>,
    pub(crate) publications: Option<TimeWindow>,
}

impl LookupWindows {
    fn window(&self, kind: u8) -> Option<TimeWindow> {
        match kind {
            SUBSCRIPTIONS => self.subscriptions,
            PUBLICATIONS => self.publications,
            _ => None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.next(0).is_none()
    }

    fn kinds(&self) -> impl Iterator<Item = u8> {
        (SUBSCRIPTIONS..AFTER_LISTS).filter(|kind| self.window(*kind).is_some())
    }

    /// The first requested kind after another one.
    fn next(&self, kind: u8) -> Option<(u8, TimeWindow)> {
        let mut later = kind + 1..AFTER_LISTS;
        later.find_map(|kind| Some((kind, self.window(kind)?)))
    }
}

impl TopicKeyspaces {
    /// The scans that find the requested kinds: one, if one keyspace has both.
    pub(crate) fn lookups(
        &self,
        windows: LookupWindows,
    ) -> impl Iterator<Item = (&Keyspace, LookupWindows)> {
        let shared = self.publications.name() == self.subscriptions.name();
        let subscriptions = LookupWindows {
            publications: windows.publications.filter(|_| shared),
            ..windows
        };
        let publications = LookupWindows {
            subscriptions: None,
            publications: windows.publications.filter(|_| !shared),
        };
        let lookups = [
            (&self.subscriptions, subscriptions),
            (&self.publications, publications),
        ];
        lookups
            .into_iter()
            .filter(|(_, windows)| !windows.is_empty())
    }
}

/// The cost of lookups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Lists with entries within the window.
    pub lists: u64,
    /// Entries that were examined, including those that ended a list.
    pub entries: u64,
    /// Lists in which the search stopped at an entry that was too old.
    pub early_stops: u64,
    /// Seeks in the store.
    pub seeks: u64,
}

impl Cost {
    pub(crate) fn add(&mut self, other: &Self) {
        self.lists += other.lists;
        self.entries += other.entries;
        self.early_stops += other.early_stops;
        self.seeks += other.seeks;
    }
}

/// An entry found by a lookup.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListEntry<'a> {
    pub(crate) id: &'a [u8],
    pub(crate) kind: u8,
    pub(crate) time: Millis,
    pub(crate) sequence: Sequence,
    pub(crate) value: &'a [u8],
}

/// Processes the entries of a lookup.
pub(crate) type Visit<'a> = dyn FnMut(ListEntry<'_>) -> Result<()> + 'a;

/// Whether a lookup covers an id alone, or also everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdScope {
    Own,
    Below,
}

/// The ids whose lists are searched, in order.
fn plan(ids: &[DeweyId], how: Ids) -> BTreeMap<&[u8], IdScope> {
    let mut plan = BTreeMap::new();
    if how == Ids::Hierarchy {
        let ancestors = ids.iter().flat_map(DeweyId::ancestors);
        plan.extend(ancestors.map(|ancestor| (ancestor, IdScope::Own)));
    }
    let reach = match how {
        Ids::Flat => IdScope::Own,
        Ids::Hierarchy => IdScope::Below,
    };
    plan.extend(ids.iter().map(|id| (id.as_bytes(), reach)));
    plan
}

/// Searches the lists of a keyspace that match ids.
pub(crate) struct ListLookup<'a> {
    pub(crate) db: &'a Db,
    pub(crate) keyspace: &'a Keyspace,
    pub(crate) topic: &'a [u8],
    pub(crate) windows: LookupWindows,
    pub(crate) snapshot: &'a DbSnapshot,
}

impl ListLookup<'_> {
    /// Visits the entries within the windows.
    pub(crate) fn run(&self, ids: &[DeweyId], how: Ids, visit: &mut Visit<'_>) -> Result<Cost> {
        let end = prefix_end(self.topic);
        let upper = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let lower = Bound::Included(self.topic);
        let scan = self
            .db
            .scan(self.keyspace, lower, upper, Some(self.snapshot))?;
        // Liveness is determined from the record itself, so skipping expired entries would read
        // them as well.
        let scan = scan.show_expired();
        let mut walk = ListWalk {
            lookup: self,
            scan,
            at: ScanScope::Nowhere,
            cost: Cost::default(),
        };
        let mut passed: Option<&[u8]> = None;
        for (id, reach) in plan(ids, how) {
            if passed.is_some_and(|above| id.starts_with(above)) {
                continue;
            }
            walk.id(id, reach, visit)?;
            if reach == IdScope::Below {
                passed = Some(id);
            }
        }
        Ok(walk.cost)
    }
}

/// Where a lookup continues.
struct NextSeek {
    place: Vec<u8>,
    /// No list of this id follows.
    is_last: bool,
}

impl NextSeek {
    fn within(place: Vec<u8>) -> Self {
        Self {
            place,
            is_last: false,
        }
    }
}

/// What the scan returns from its position on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanScope {
    Nowhere,
    /// All lists.
    All,
    /// The lists of one id, and others in the same tables.
    One,
}

struct ListWalk<'a> {
    lookup: &'a ListLookup<'a>,
    scan: Scan,
    at: ScanScope,
    cost: Cost,
}

impl ListWalk<'_> {
    /// Moves to the first entry at or after a key, which is not before the current position.
    fn seek_to(&mut self, target: &[u8]) -> Result<()> {
        for _ in 0..STEPS {
            if !self.scan.is_valid() || self.scan.key() >= target {
                return Ok(());
            }
            self.scan.advance()?;
        }
        if !self.scan.is_valid() || self.scan.key() >= target {
            return Ok(());
        }
        self.cost.seeks += 1;
        Ok(self.scan.seek(target)?)
    }

    /// Moves to the first entry at or after a key of an id, from any position. For the lists of an
    /// id alone, tables without entries of the requested lists are not read.
    fn enter(&mut self, id: &[u8], reach: IdScope, target: &[u8]) -> Result<()> {
        if reach == IdScope::Own {
            let topic = self.lookup.topic;
            let windows = self.lookup.windows.kinds();
            let lists: Vec<Vec<u8>> = windows.map(|kind| keys::list(topic, id, kind)).collect();
            let heads: Vec<&[u8]> = lists.iter().map(Vec::as_slice).collect();
            self.at = ScanScope::One;
            self.cost.seeks += 1;
            return Ok(self.scan.seek_heads(target, &heads)?);
        }
        if self.at == ScanScope::All {
            return self.seek_to(target);
        }
        self.at = ScanScope::All;
        self.cost.seeks += 1;
        Ok(self.scan.seek(target)?)
    }

    /// Reads the lists of an id, and of everything below it if that is in scope.
    fn id(&mut self, id: &[u8], reach: IdScope, visit: &mut Visit<'_>) -> Result<()> {
        let Some((kind, window)) = self.lookup.windows.next(0) else {
            return Ok(());
        };
        let topic = self.lookup.topic;
        let mut place = [topic, id].concat();
        if reach == IdScope::Own {
            place.push(0);
        }
        self.enter(id, reach, &keys::at(topic, id, kind, window.to))?;
        while self.scan.is_valid() && self.scan.key().starts_with(&place) {
            let Some(next) = self.list(visit)? else {
                continue;
            };
            if reach == IdScope::Own && next.is_last {
                return Ok(());
            }
            self.seek_to(&next.place)?;
        }
        Ok(())
    }

    /// Reads the current list. Returns where to continue, unless the scan is there.
    fn list(&mut self, visit: &mut Visit<'_>) -> Result<Option<NextSeek>> {
        let topic = self.lookup.topic;
        let (head, kind, time, _) = keys::tail(self.scan.key()).ok_or(MALFORMED)?;
        let id = head.strip_suffix(&[0]);
        let id = id
            .and_then(|head| head.get(topic.len()..))
            .ok_or(MALFORMED)?;
        let (id, with_kind) = (id.to_vec(), head.len() + 1);
        if let Some(window) = self.lookup.windows.window(kind) {
            if time > window.to {
                let place = keys::at(topic, &id, kind, window.to);
                return Ok(Some(NextSeek::within(place)));
            }
            let list = self
                .scan
                .key()
                .get(..with_kind)
                .unwrap_or_default()
                .to_vec();
            self.entries(&list, &id, window, visit)?;
            if !self.scan.is_valid() || !self.scan.key().starts_with(&list) {
                return Ok(None);
            }
        }
        Ok(Some(match self.lookup.windows.next(kind) {
            Some((kind, window)) => NextSeek::within(keys::at(topic, &id, kind, window.to)),
            None => NextSeek {
                place: keys::at(topic, &id, AFTER_LISTS, Millis::MAX),
                is_last: true,
            },
        }))
    }

    /// Visits the entries of a list until one is too old.
    fn entries(
        &mut self,
        list: &[u8],
        id: &[u8],
        window: TimeWindow,
        visit: &mut Visit<'_>,
    ) -> Result<()> {
        self.cost.lists += 1;
        while self.scan.is_valid() && self.scan.key().starts_with(list) {
            self.cost.entries += 1;
            let (_, kind, time, sequence) = keys::tail(self.scan.key()).ok_or(MALFORMED)?;
            if time < window.from {
                self.cost.early_stops += 1;
                return Ok(());
            }
            visit(ListEntry {
                id,
                kind,
                time,
                sequence,
                value: self.scan.value(),
            })?;
            self.scan.advance()?;
        }
        Ok(())
    }
}

const MALFORMED: Error = Error::Malformed {
    what: "a key of a topic is malformed although its checksum matches",
};
