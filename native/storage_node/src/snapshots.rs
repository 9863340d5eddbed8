//! Snapshots that can be queried again: one per second is shared by queries that do not need the
//! newest, others belong to a namespace. Each is kept for a minute; then what it sees may be
//! compacted away.
//!
//! A row that keeps changing keeps an entry for each open snapshot, so their number must be
//! bounded. Snapshots that a namespace opens explicitly are rejected beyond a bound. Those that
//! came with results at the newest state are evicted by newer ones: few are ever queried again, and
//! a query must not fail because a name is no longer used.
//!
//! The administrator opens snapshots for copies of collections, and each part of a copy renews its
//! snapshot. They do not count among those of all namespaces, which therefore cannot prevent a copy.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rillbase_engine::{Db, DbSnapshot, Millis};

use crate::refusal::{CommandRefusal, Result};

/// The maximum age of a shared snapshot, in milliseconds.
pub(crate) const SHARING_PERIOD: Millis = 1000;
/// How long a snapshot is kept.
const LIFETIME: Millis = 60_000;
/// The maximum number of snapshots that a namespace, or the administrator, may open, and all
/// namespaces together.
const MAX_OPENED: (usize, usize) = (250, 1000);
/// The maximum number of a namespace's newest snapshots kept besides these, and of all together.
const MAX_FRESH: (usize, usize) = (250, 1000);

/// The owner of the administrator's snapshots. Numbers of namespaces begin at 1.
pub(crate) const ADMIN: u64 = 0;

/// An open snapshot.
#[derive(Debug, Clone)]
pub(crate) struct NamedSnapshot {
    /// Newer ones have greater numbers.
    pub(crate) number: u64,
    /// The name by which it is requested.
    pub(crate) name: String,
    pub(crate) snapshot: Arc<DbSnapshot>,
    kind: SnapshotKind,
    until: Millis,
}

/// The owner of a snapshot, by the namespace's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SnapshotKind {
    /// Shared by all.
    Shared,
    /// The newest when this namespace queried it.
    Fresh(u64),
    /// Opened by this namespace.
    Opened(u64),
}

impl NamedSnapshot {
    /// Whether all namespaces share it.
    pub(crate) fn is_shared(&self) -> bool {
        self.kind == SnapshotKind::Shared
    }
}

#[derive(Debug, Default)]
struct SnapshotTable {
    held: BTreeMap<u64, NamedSnapshot>,
    shared: Option<NamedSnapshot>,
    /// The evictable snapshots of each namespace, oldest first.
    fresh: HashMap<u64, VecDeque<u64>>,
    next: u64,
}

impl SnapshotTable {
    /// The newest that a namespace may read at, among those not older than a second.
    fn newest(&self, namespace: u64, now: Millis) -> Option<&NamedSnapshot> {
        let own = self.fresh.get(&namespace).and_then(VecDeque::back);
        let own = own.and_then(|number| self.held.get(number));
        let is_young =
            |moment: &&NamedSnapshot| moment.snapshot.time().saturating_add(SHARING_PERIOD) > now;
        let young = self.shared.iter().chain(own).filter(is_young);
        young.max_by_key(|moment| moment.snapshot.sequence())
    }

    /// Evicts the oldest if there are too many.
    fn evict_oldest(&mut self, namespace: u64) {
        let (of_one, of_all) = MAX_FRESH;
        let all: usize = self.fresh.values().map(VecDeque::len).sum();
        let own = self.fresh.get_mut(&namespace);
        let from = match own.filter(|numbers| numbers.len() > of_one) {
            Some(own) => Some(own),
            None if all > of_all => self.fresh.values_mut().max_by_key(|numbers| numbers.len()),
            None => None,
        };
        if let Some(number) = from.and_then(VecDeque::pop_front) {
            self.held.remove(&number);
        }
    }
}

/// All open snapshots.
#[derive(Debug)]
pub(crate) struct NamedSnapshots {
    /// Names contain it, since another process does not have the same snapshots.
    process: String,
    /// Random keys of this process, unknown outside.
    keys: (RandomState, RandomState),
    state: Mutex<SnapshotTable>,
}

impl NamedSnapshots {
    pub(crate) fn new(now: Millis) -> Self {
        Self {
            process: format!("{now:x}{:x}", std::process::id()),
            keys: (RandomState::new(), RandomState::new()),
            state: Mutex::default(),
        }
    }

    fn hold(
        &self,
        state: &mut SnapshotTable,
        snapshot: DbSnapshot,
        kind: SnapshotKind,
    ) -> NamedSnapshot {
        state.next += 1;
        let moment = NamedSnapshot {
            number: state.next,
            name: self.name(state.next),
            until: snapshot.time().saturating_add(LIFETIME),
            snapshot: Arc::new(snapshot),
            kind,
        };
        state.held.insert(state.next, moment.clone());
        moment
    }

    /// Returns a snapshot that is at most a second old, and not older than the newest that the
    /// namespace has seen.
    pub(crate) fn shared(&self, db: &Db, namespace: u64) -> NamedSnapshot {
        let mut state = self.state.lock();
        if let Some(young) = state.newest(namespace, db.now()) {
            return young.clone();
        }
        let moment = self.hold(&mut state, db.snapshot(), SnapshotKind::Shared);
        state.shared = Some(moment.clone());
        moment
    }

    /// The current state.
    pub(crate) fn fresh(&self, db: &Db, namespace: u64) -> NamedSnapshot {
        let state = self.state.lock();
        self.of_namespace(state, db.snapshot(), namespace)
    }

    /// Gives a snapshot at which a namespace has read a name, so that it can be read again.
    pub(crate) fn register(&self, snapshot: DbSnapshot, namespace: u64) -> NamedSnapshot {
        self.of_namespace(self.state.lock(), snapshot, namespace)
    }

    fn of_namespace(
        &self,
        mut state: MutexGuard<'_, SnapshotTable>,
        snapshot: DbSnapshot,
        namespace: u64,
    ) -> NamedSnapshot {
        if let Some(young) = state.newest(namespace, snapshot.time())
            && young.snapshot.sequence() == snapshot.sequence()
        {
            return young.clone();
        }
        let moment = self.hold(&mut state, snapshot, SnapshotKind::Fresh(namespace));
        let number = state.next;
        state.fresh.entry(namespace).or_default().push_back(number);
        state.evict_oldest(namespace);
        moment
    }

    /// Opens a snapshot for a namespace or the administrator.
    pub(crate) fn open(&self, db: &Db, namespace: u64) -> Result<NamedSnapshot> {
        let mut state = self.state.lock();
        let (of_one, of_all) = MAX_OPENED;
        let count = |is: &dyn Fn(u64) -> bool| {
            let kinds = state.held.values().map(|opened| opened.kind);
            let opened =
                kinds.filter(|kind| matches!(kind, SnapshotKind::Opened(opener) if is(*opener)));
            opened.count()
        };
        if count(&|opener| opener == namespace) >= of_one {
            let text = match namespace {
                ADMIN => "the admin has 250 open snapshots: close some",
                _ => "this namespace has 250 open snapshots: close some",
            };
            return Err(CommandRefusal::new("TOO_MANY", text));
        }
        if namespace != ADMIN && count(&|opener| opener != ADMIN) >= of_all {
            let text = "there are 1,000 open snapshots: retry later";
            return Err(CommandRefusal::new("TOO_MANY", text));
        }
        Ok(self.hold(&mut state, db.snapshot(), SnapshotKind::Opened(namespace)))
    }

    /// An opaque name: numbers and sequences would reveal the activity of all namespaces.
    fn name(&self, number: u64) -> String {
        let (first, second) = &self.keys;
        let mask = first.hash_one(number);
        format!(
            "{}-{mask:016x}{:016x}",
            self.process,
            number ^ second.hash_one(mask)
        )
    }

    fn number(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(&self.process)?.strip_prefix('-')?;
        let (mask, masked) = digits.split_at_checked(16)?;
        let mask = u64::from_str_radix(mask, 16).ok()?;
        let masked = u64::from_str_radix(masked, 16).ok()?;
        Some(masked ^ self.keys.1.hash_one(mask))
    }

    /// The snapshot with a name.
    pub(crate) fn find(&self, name: &str, namespace: u64, now: Millis) -> Result<NamedSnapshot> {
        let state = self.state.lock();
        let moment = self.number(name).and_then(|number| state.held.get(&number));
        let is_own = |moment: &&NamedSnapshot| {
            let may_see = match moment.kind {
                SnapshotKind::Shared => true,
                SnapshotKind::Fresh(opener) | SnapshotKind::Opened(opener) => opener == namespace,
            };
            may_see && moment.name == name && moment.until > now
        };
        moment.filter(is_own).cloned().ok_or_else(expired)
    }

    /// A snapshot that the administrator has opened. Its lifetime starts again.
    pub(crate) fn renewed(&self, name: &str, now: Millis) -> Result<NamedSnapshot> {
        let mut state = self.state.lock();
        let number = self.number(name).ok_or_else(expired)?;
        let is_own = |opened: &&mut NamedSnapshot| {
            let is_named = opened.kind == SnapshotKind::Opened(ADMIN) && opened.name == name;
            is_named && opened.until > now
        };
        let opened = state.held.get_mut(&number).filter(is_own);
        let opened = opened.ok_or_else(expired)?;
        opened.until = now.saturating_add(LIFETIME);
        Ok(opened.clone())
    }

    /// Closes a snapshot that a namespace, or the administrator, has opened; returns whether it existed.
    pub(crate) fn close(&self, name: &str, namespace: u64) -> bool {
        let mut state = self.state.lock();
        let Some(number) = self.number(name) else {
            return false;
        };
        let is_own = |moment: &NamedSnapshot| {
            moment.kind == SnapshotKind::Opened(namespace) && moment.name == name
        };
        let is_open = state.held.get(&number).is_some_and(is_own);
        if is_open {
            state.held.remove(&number);
        }
        is_open
    }

    /// Closes expired ones.
    pub(crate) fn expire(&self, now: Millis) {
        let mut state = self.state.lock();
        let SnapshotTable { held, fresh, .. } = &mut *state;
        held.retain(|_, moment| moment.until > now);
        fresh.retain(|_, numbers| {
            numbers.retain(|number| held.contains_key(number));
            !numbers.is_empty()
        });
        if state
            .shared
            .as_ref()
            .is_some_and(|shared| shared.until <= now)
        {
            state.shared = None;
        }
    }
}

fn expired() -> CommandRefusal {
    CommandRefusal::new(
        "SNAPSHOTEXPIRED",
        "the snapshot does not exist (any more): snapshots live for 60 seconds",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rillbase_engine::vfs::FaultVfs;
    use rillbase_engine::{Clock, DbOptions, Durability, KeyspaceOptions, ManualClock, WriteBatch};

    struct World {
        db: Db,
        clock: Arc<ManualClock>,
        snapshots: NamedSnapshots,
    }

    impl World {
        fn new() -> Self {
            let clock = Arc::new(ManualClock::new(LIFETIME));
            let options = DbOptions {
                vfs: Arc::new(FaultVfs::new(1)),
                clock: Arc::clone(&clock) as Arc<dyn Clock>,
                background_threads: 0,
                ..DbOptions::default()
            };
            let db = Db::open("/db", options).unwrap();
            db.create_keyspace("some", KeyspaceOptions::default())
                .unwrap();
            Self {
                snapshots: NamedSnapshots::new(db.now()),
                db,
                clock,
            }
        }

        fn write(&self) {
            let mut batch = WriteBatch::new();
            batch.put(&self.db.keyspace("some").unwrap(), b"key", b"value");
            self.db.write(batch, Durability::Buffered).unwrap();
        }

        /// The names of this many snapshots, each of which was the newest.
        fn fresh(&self, namespace: u64, count: usize) -> Vec<String> {
            let one = |_| {
                self.write();
                self.snapshots.fresh(&self.db, namespace).name
            };
            (0..count).map(one).collect()
        }

        fn is_held(&self, name: &str, namespace: u64) -> bool {
            let now = self.db.now();
            self.snapshots.find(name, namespace, now).is_ok()
        }
    }

    #[test]
    fn snapshots_are_evicted_by_newer_ones_of_the_same_namespace() {
        let world = World::new();
        let other = world.fresh(2, 1);
        let names = world.fresh(1, MAX_FRESH.0 + 3);
        let (gone, held) = names.split_at(3);
        assert!(gone.iter().all(|name| !world.is_held(name, 1)));
        assert!(held.iter().all(|name| world.is_held(name, 1)));
        assert!(world.is_held(&other[0], 2));
    }

    #[test]
    fn the_namespace_with_most_snapshots_loses_some_when_there_are_too_many() {
        let world = World::new();
        let few = world.fresh(9, 3);
        (1..=5).for_each(|namespace| drop(world.fresh(namespace, MAX_FRESH.0)));
        assert!(few.iter().all(|name| world.is_held(name, 9)));
        let state = world.snapshots.state.lock();
        assert_eq!(state.held.len(), MAX_FRESH.1);
        assert_eq!(world.db.stats().snapshots, state.held.len());
    }

    #[test]
    fn a_namespace_never_reads_behind_the_newest_it_has_seen_and_others_share_theirs() {
        let world = World::new();
        let shared = world.snapshots.shared(&world.db, 1);
        let newest = world.fresh(1, 1);
        assert_eq!(world.snapshots.shared(&world.db, 1).name, newest[0]);
        assert_eq!(world.snapshots.shared(&world.db, 2).name, shared.name);
        assert!(!world.is_held(&newest[0], 2));
        world.clock.advance(SHARING_PERIOD);
        let next = world.snapshots.shared(&world.db, 2);
        assert_eq!(world.snapshots.shared(&world.db, 1).name, next.name);
    }

    #[test]
    fn a_snapshot_is_kept_for_a_minute_although_nothing_is_written() {
        let world = World::new();
        let first = world.fresh(1, 1);
        world.clock.advance(LIFETIME - 1);
        assert!(world.is_held(&first[0], 1));
        let second = world.snapshots.fresh(&world.db, 1).name;
        world.clock.advance(1);
        world.snapshots.expire(world.db.now());
        assert!(!world.is_held(&first[0], 1));
        world.clock.advance(LIFETIME - 2);
        assert!(world.is_held(&second, 1));
    }

    #[test]
    fn a_namespace_opens_so_many_that_others_can_open_some() {
        let world = World::new();
        let open = |namespace| {
            world
                .snapshots
                .open(&world.db, namespace)
                .map(|one| one.name)
        };
        let first = open(1).unwrap();
        (1..MAX_OPENED.0).for_each(|_| drop(open(1).unwrap()));
        assert_eq!(open(1).unwrap_err().code, "TOO_MANY");
        open(2).unwrap();
        assert!(world.snapshots.close(&first, 1));
        open(1).unwrap();
    }

    #[test]
    fn a_snapshot_of_the_administrator_expires_a_minute_after_its_last_use() {
        let world = World::new();
        let opened = world.snapshots.open(&world.db, ADMIN).unwrap();
        let others = world.snapshots.open(&world.db, 1).unwrap().name;
        let renewed = |name: &str| world.snapshots.renewed(name, world.db.now());
        for _ in 0..3 {
            world.clock.advance(LIFETIME - 1);
            world.snapshots.expire(world.db.now());
            let sequence = renewed(&opened.name).unwrap().snapshot.sequence();
            assert_eq!(sequence, opened.snapshot.sequence());
        }
        assert!(renewed(&others).is_err());
        assert!(!world.snapshots.close(&opened.name, 1));
        world.clock.advance(LIFETIME);
        assert_eq!(renewed(&opened.name).unwrap_err().code, "SNAPSHOTEXPIRED");
    }

    #[test]
    fn namespaces_do_not_prevent_the_administrator_from_opening_some() {
        let world = World::new();
        let open = |owner| {
            let opened = world.snapshots.open(&world.db, owner);
            opened.map(|opened| opened.name)
        };
        for namespace in 1..=4 {
            (0..MAX_OPENED.0).for_each(|_| drop(open(namespace).unwrap()));
        }
        assert_eq!(open(5).unwrap_err().code, "TOO_MANY");
        (0..MAX_OPENED.0).for_each(|_| drop(open(ADMIN).unwrap()));
        assert_eq!(open(ADMIN).unwrap_err().code, "TOO_MANY");
    }
}
