//! The three stores.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use rillbase_engine::vfs::{DirectVfs, RealVfs, Vfs};
use rillbase_engine::{Clock, Db, DbOptions, Durability, KeyspaceOptions, ManualClock};
use rillbase_pubsub::{
    CellGrid, DualDb, Granularity, Ids, PublicationRecord, RepQueries, StoreOptions,
    SubscriptionRecord, TopicPlace, TopicSpec, TopicStore, TwoDb, keyspace_options,
};

use crate::job::{BenchmarkJob, LIFE, Outcome, REACH, System, SystemStatistics};
use crate::workload::{self, Places, START, Spot, WorkloadSetup};

/// The time between two polls.
const INTERVAL: u64 = 1000;

/// One of the stores.
pub(crate) struct TopicStoreJob {
    db: Arc<Db>,
    clock: Arc<ManualClock>,
    grid: CellGrid,
    granularity: Granularity,
    topic: TopicSpec,
    store: Arc<dyn TopicStore>,
    polls: Option<Arc<RepQueries>>,
    self_join: bool,
    description: usize,
    next: Option<NextOperation>,
    /// The time of publications, for the delay of polls.
    published: HashMap<u64, u64>,
    delay: u64,
    polled: u64,
    now: u64,
}

/// The next operation.
struct NextOperation {
    place: TopicPlace,
    name: Vec<u8>,
    user: Vec<u8>,
    data: Vec<u8>,
}

/// The options of a keyspace; two keyspaces share the memory of one.
fn keyspace(setup: &WorkloadSetup, share: usize) -> KeyspaceOptions {
    let usual = keyspace_options();
    KeyspaceOptions {
        block_bytes: match setup.block_bytes {
            0 => usual.block_bytes,
            bytes => bytes,
        },
        memtable_bytes: setup.memory / share,
        table_bytes: setup.memory as u64,
        base_bytes: (setup.memory / share) as u64 * 4,
        ..usual
    }
}

fn granularity(system: System) -> Granularity {
    match system {
        System::Fixed => Granularity::Fixed,
        System::Single => Granularity::Single,
        _ => Granularity::Variable,
    }
}

impl TopicStoreJob {
    pub(crate) fn open(system: System, setup: &WorkloadSetup, dir: &Path) -> Outcome<Self> {
        let clock = Arc::new(ManualClock::new(START));
        let vfs: Arc<dyn Vfs> = if setup.direct {
            Arc::new(DirectVfs::new())
        } else {
            Arc::new(RealVfs)
        };
        let options = DbOptions {
            vfs,
            clock: Arc::clone(&clock) as Arc<dyn Clock>,
            cache_bytes: setup.memory,
            ..DbOptions::default()
        };
        let db = Arc::new(Db::open(dir, options)?);
        let buffered = StoreOptions {
            durability: Durability::Buffered,
            sink: None,
        };
        let mut polls = None;
        let store: Arc<dyn TopicStore> = match system {
            System::Two => Arc::new(TwoDb::open(&db, "topics", keyspace(setup, 2), buffered)?),
            System::Rep => {
                let polling = (buffered, INTERVAL);
                let store = RepQueries::open(&db, "topics", keyspace(setup, 1), polling)?;
                let store = Arc::new(store);
                polls = Some(Arc::clone(&store));
                store
            }
            _ => Arc::new(DualDb::open(&db, "topics", keyspace(setup, 1), buffered)?),
        };
        let flat = setup.places == Places::Flat || system == System::Fixed;
        Ok(Self {
            db,
            clock,
            grid: workload::grid()?,
            granularity: granularity(system),
            topic: TopicSpec {
                number: 1,
                ids: if flat { Ids::Flat } else { Ids::Hierarchy },
                retention: LIFE,
            },
            store,
            polls,
            self_join: setup.self_join,
            description: setup.description,
            next: None,
            published: HashMap::new(),
            delay: 0,
            polled: 0,
            now: START,
        })
    }

    fn next(&mut self) -> Outcome<NextOperation> {
        self.next
            .take()
            .ok_or_else(|| "no operation was prepared".into())
    }
}

impl BenchmarkJob for TopicStoreJob {
    fn prepare(&mut self, number: u64, spot: &Spot, now: u64) -> Outcome<()> {
        self.now = now;
        self.clock.set(now);
        self.next = Some(NextOperation {
            place: workload::place(spot, &self.grid, self.granularity)?,
            name: number.to_le_bytes().to_vec(),
            user: (number % 100_000).to_le_bytes().to_vec(),
            data: vec![b'x'; self.description],
        });
        Ok(())
    }

    fn publish(&mut self) -> Outcome<u64> {
        let next = self.next()?;
        let publication = PublicationRecord {
            at: self.now,
            until: self.now + LIFE,
            id: next.name,
            data: next.data,
        };
        let answer = (self.store).publish(&self.topic, next.place, publication, self.self_join)?;
        if self.polls.is_some() {
            self.published.insert(answer.sequence, self.now);
        }
        Ok(answer.subscriptions.len() as u64)
    }

    fn subscribe(&mut self) -> Outcome<u64> {
        let next = self.next()?;
        let wish = SubscriptionRecord {
            from: self.now - REACH,
            until: self.now + REACH,
            at: self.now,
            id: next.name,
            user: next.user,
            ..SubscriptionRecord::default()
        };
        let answer = (self.store).subscribe(&self.topic, next.place, wish, self.self_join)?;
        Ok(answer.publications.len() as u64)
    }

    fn due(&mut self) -> Outcome<u64> {
        let Some(polls) = &self.polls else {
            return Ok(0);
        };
        let mut delivered = 0;
        for polled in polls.poll()? {
            for publication in &polled.publications {
                let published = self.published.get(&publication.sequence);
                self.delay += self.now - published.copied().unwrap_or(self.now);
                delivered += 1;
            }
        }
        self.polled += delivered;
        Ok(delivered)
    }

    fn stores_subscriptions(&self) -> bool {
        self.polls.is_none()
    }

    fn statistics(&self) -> SystemStatistics {
        let (cost, stats) = (self.store.cost(), self.db.stats());
        let spaces = stats.keyspaces.iter();
        let runs = spaces
            .flat_map(|space| &space.levels)
            .map(|level| level.runs);
        SystemStatistics {
            entries: cost.entries,
            early_stops: cost.early_stops,
            seeks: cost.seeks,
            blocks_read: stats.cache_misses,
            record_bytes: stats.batch_bytes / stats.entries.max(1),
            write_amplification: stats.write_amplification,
            runs: runs.sum(),
            stalled_ms: (stats.slowed_micros + stats.stopped_micros + stats.waited_micros) / 1000,
            delay_ms: self.delay as f64 / self.polled.max(1) as f64,
        }
    }
}
