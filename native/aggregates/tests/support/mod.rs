//! A database of aggregates that can be flushed, compacted, closed and reopened.

use std::sync::Arc;

use rillbase_aggregates::{
    Add, AggregateEntry, AggregateOutcomes, AggregateQuery, AggregateWrites, Aggregates, Apply,
    Lifetimes, Result, Staged, keyspaces,
};
use rillbase_engine::vfs::{FaultVfs, SeededRandom};
use rillbase_engine::{
    Clock, Db, DbOptions, DbSnapshot, DbTransaction, Durability, GroupWrite as _, ManualClock,
    Sequence,
};

pub(crate) const NAMESPACE: u64 = 1;
/// 2026-01-01, the start of a bucket of any length.
pub(crate) const NOW: u64 = 1_767_225_600_000;

pub(crate) struct World {
    pub(crate) vfs: FaultVfs,
    pub(crate) clock: Arc<ManualClock>,
    open: Option<(Arc<Db>, Aggregates)>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut world = Self {
            vfs: FaultVfs::new(seed),
            clock: Arc::new(ManualClock::new(NOW)),
            open: None,
        };
        world.open().unwrap();
        world
    }

    pub(crate) fn open(&mut self) -> Result<()> {
        let lifetimes = Arc::<Lifetimes>::default();
        let options = DbOptions {
            vfs: Arc::new(self.vfs.clone()),
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            keyspaces: keyspaces(&lifetimes).into(),
            background_threads: 0,
            ..DbOptions::default()
        };
        let db = Arc::new(Db::open("/db", options)?);
        let aggregates = Aggregates::open(&db, Durability::Sync, &lifetimes)?;
        self.open = Some((db, aggregates));
        Ok(())
    }

    /// Simulates a crash of the process, or a loss of power, and a restart.
    pub(crate) fn crash(&mut self, power: bool) {
        if power {
            self.vfs.crash();
        } else {
            self.vfs.kill();
        }
        self.open = None;
        self.open().unwrap();
    }

    pub(crate) fn db(&self) -> &Arc<Db> {
        &self.open.as_ref().unwrap().0
    }

    pub(crate) fn aggregates(&self) -> &Aggregates {
        &self.open.as_ref().unwrap().1
    }

    pub(crate) fn find(&self, name: &str) -> Arc<AggregateEntry> {
        self.aggregates().find(NAMESPACE, name).unwrap()
    }

    pub(crate) fn define(&self, name: &str, definition: &str) -> u64 {
        self.aggregates()
            .define((NAMESPACE, name), definition, false)
            .unwrap()
    }

    pub(crate) fn read(&self, name: &str, events: &[String]) -> Result<Add> {
        let events = events.iter().map(String::as_bytes);
        Add::read(&self.find(name), events, self.clock.now())
    }

    /// Adds events in one transaction; returns which were new.
    pub(crate) fn add(&self, name: &str, events: &[String]) -> Result<Vec<bool>> {
        let add = self.read(name, events)?;
        let adds = vec![&add];
        let writes = AggregateWrites {
            adds,
            ..AggregateWrites::default()
        };
        write(self.db(), self.aggregates(), writes).added.remove(0)
    }

    pub(crate) fn apply(
        &self,
        name: &str,
        generation: u64,
        place: (&str, &str),
        changes: &[String],
    ) -> Result<bool> {
        let changes = changes.iter().map(String::as_bytes);
        let apply = Apply::read(&self.find(name), generation, place, changes)?;
        let applies = vec![&apply];
        let writes = AggregateWrites {
            applies,
            ..AggregateWrites::default()
        };
        write(self.db(), self.aggregates(), writes)
            .applied
            .remove(0)
    }

    /// The current rows of a query's result.
    pub(crate) fn rows(&self, name: &str, query: &str) -> String {
        self.rows_at(name, query, &self.db().snapshot())
    }

    pub(crate) fn rows_at(&self, name: &str, query: &str, snapshot: &DbSnapshot) -> String {
        let query = self.query(query);
        let answer = self
            .aggregates()
            .query(&self.find(name), &query, snapshot, None);
        answer.unwrap().json()
    }

    pub(crate) fn query(&self, query: &str) -> AggregateQuery {
        let now = i64::try_from(self.clock.now()).unwrap();
        AggregateQuery::parse(query.as_bytes(), now).unwrap()
    }

    pub(crate) fn refusal(&self, name: &str, query: &str) -> String {
        let snapshot = self.db().snapshot();
        let now = i64::try_from(self.clock.now()).unwrap();
        let answer = AggregateQuery::parse(query.as_bytes(), now).and_then(|query| {
            self.aggregates()
                .query(&self.find(name), &query, &snapshot, None)
        });
        answer.unwrap_err().to_string()
    }

    /// The number of visible keys of a keyspace.
    pub(crate) fn count(&self, keyspace: &str) -> usize {
        let keyspace = self.db().keyspace(keyspace).unwrap();
        let now = self.db().snapshot();
        let mut scan = self.db().scan_prefix(&keyspace, &[], Some(&now)).unwrap();
        scan.first().unwrap();
        let mut count = 0;
        while scan.is_valid() {
            count += 1;
            scan.advance().unwrap();
        }
        count
    }

    /// The same, after everything that may be dropped has been compacted away.
    pub(crate) fn count_compacted(&self, keyspace: &str) -> usize {
        let space = self.db().keyspace(keyspace).unwrap();
        self.db().flush().unwrap();
        self.db().compact(&space).unwrap();
        self.count(keyspace)
    }

    /// Runs random maintenance, which must not change any result.
    pub(crate) fn disturb(&mut self, random: &mut SeededRandom) {
        match random.below(6) {
            0 => self.db().flush().unwrap(),
            1 => {
                for keyspace in self.db().keyspaces() {
                    self.db().compact(&keyspace).unwrap();
                }
            }
            2 => self.crash(true),
            3 => self.crash(false),
            _ => {}
        }
    }
}

/// Commits writes together and durably.
pub(crate) fn write(db: &Db, store: &Aggregates, writes: AggregateWrites<'_>) -> AggregateOutcomes {
    let mut staged = store.stage_writes(writes);
    let mut results = db.write_group(&mut [&mut staged], Durability::Sync);
    staged.complete(&mut results)
}

/// Commits a transaction with its events.
pub(crate) fn commit(
    db: &Db,
    store: &Aggregates,
    (staged, transaction): (Staged, DbTransaction),
) -> Result<Sequence> {
    let writes = AggregateWrites {
        commits: vec![(staged, transaction)],
        ..AggregateWrites::default()
    };
    write(db, store, writes).committed.remove(0)
}
