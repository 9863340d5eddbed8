//! One system, one database, all operations.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rillbase_engine::{Clock, Db, Durability, KeyspaceOptions, ManualClock, Options};
use rillbase_pubsub::{
    Answer, Cost, DualDb, Granularity, Ids, Publication, RepQueries, Result, Store, StoreOptions,
    Subscription, Topic, TwoDb, keyspace_options,
};

use crate::workload::{self, Places, START, Setup, Step};

/// How long subscriptions reach back and ahead, and publications live.
const REACH: u64 = 10_000;
const LIFE: u64 = 20_000;
/// The time between two polls.
const INTERVAL: u64 = 1000;

/// The course of a run has so many parts.
const PARTS: u64 = 40;

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    Dual,
    Two,
    Rep,
    Variable,
    Fixed,
    Single,
}

const SYSTEMS: [(System, &str); 6] = [
    (System::Dual, "dual"),
    (System::Two, "two"),
    (System::Rep, "rep"),
    (System::Variable, "variable"),
    (System::Fixed, "fixed"),
    (System::Single, "single"),
];

impl System {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        SYSTEMS
            .iter()
            .find(|(_, name)| *name == text)
            .map(|(system, _)| *system)
    }

    pub(crate) fn name(self) -> &'static str {
        SYSTEMS
            .iter()
            .find(|(system, _)| *system == self)
            .map_or("", |(_, name)| name)
    }

    fn granularity(self) -> Granularity {
        match self {
            Self::Fixed => Granularity::Fixed,
            Self::Single => Granularity::Single,
            _ => Granularity::Variable,
        }
    }
}

/// What a run took and found.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    publishing: Duration,
    published: u64,
    subscribing: Duration,
    subscribed: u64,
    pub(crate) pairs: u64,
    pub(crate) cost: Cost,
    /// Bytes of records that were alive at the end, about.
    pub(crate) live_bytes: u64,
    /// Runs that a look-up had to ask at the end.
    pub(crate) runs: usize,
    /// How long writers were slowed or stopped.
    pub(crate) stalled_ms: u64,
    /// How long after they could be told publications were told, on average.
    pub(crate) delay_ms: f64,
    /// The mean time of an operation in each part of the run, in µs.
    pub(crate) course_us: Vec<f64>,
}

fn micros(took: Duration, count: u64) -> f64 {
    took.as_secs_f64() * 1e6 / count.max(1) as f64
}

impl Measured {
    /// Polls count as time of subscriptions.
    pub(crate) fn mean_us(&self) -> f64 {
        micros(
            self.publishing + self.subscribing,
            self.published + self.subscribed,
        )
    }

    pub(crate) fn publish_us(&self) -> f64 {
        micros(self.publishing, self.published)
    }

    pub(crate) fn subscribe_us(&self) -> f64 {
        micros(self.subscribing, self.subscribed)
    }
}

/// A system over an empty database.
struct Tested<'a> {
    setup: &'a Setup,
    clock: Arc<ManualClock>,
    topic: Topic,
    store: Arc<dyn Store>,
    polls: Option<Arc<RepQueries>>,
    /// The time of publications, for the delay of polls.
    published: HashMap<u64, u64>,
    delay: u64,
    polled: u64,
    measured: Measured,
}

/// Two keyspaces share what one has.
fn keyspace(setup: &Setup, share: usize) -> KeyspaceOptions {
    KeyspaceOptions {
        memtable_bytes: setup.memory / share,
        table_bytes: setup.memory as u64,
        base_bytes: (setup.memory / share) as u64 * 4,
        ..keyspace_options()
    }
}

fn open<'a>(system: System, setup: &'a Setup, dir: &str) -> Result<(Arc<Db>, Tested<'a>)> {
    let clock = Arc::new(ManualClock::new(START));
    let options = Options {
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        cache_bytes: setup.memory,
        ..Options::default()
    };
    let db = Arc::new(Db::open(dir, options)?);
    let buffered = StoreOptions {
        durability: Durability::Buffered,
        sink: None,
    };
    let mut polls = None;
    let store: Arc<dyn Store> = match system {
        System::Two => Arc::new(TwoDb::open(&db, "topics", keyspace(setup, 2), buffered)?),
        System::Rep => {
            let store = RepQueries::open(&db, "topics", keyspace(setup, 1), (buffered, INTERVAL))?;
            let store = Arc::new(store);
            polls = Some(Arc::clone(&store));
            store
        }
        _ => Arc::new(DualDb::open(&db, "topics", keyspace(setup, 1), buffered)?),
    };
    let flat = setup.places == Places::Flat || system == System::Fixed;
    let tested = Tested {
        setup,
        clock,
        topic: Topic {
            number: 1,
            ids: if flat { Ids::Flat } else { Ids::Hierarchy },
            retention: LIFE,
        },
        store,
        polls,
        published: HashMap::new(),
        delay: 0,
        polled: 0,
        measured: Measured::default(),
    };
    Ok((db, tested))
}

/// Runs all operations through a system.
pub(crate) fn run(
    system: System,
    setup: &Setup,
    operations: &[Step],
    dir: &str,
) -> Result<Measured> {
    let _ = std::fs::remove_dir_all(dir);
    let (db, mut tested) = open(system, setup, dir)?;
    let grid = workload::grid()?;
    let part = (setup.operations / PARTS).max(1);
    let mut before = Duration::ZERO;
    for (number, step) in (0_u64..).zip(operations) {
        let now = START + number * 1000 / setup.rate;
        tested.clock.set(now);
        let place = workload::place(&step.spot, &grid, system.granularity())?;
        if step.publishes {
            tested.publish(number, place, now)?;
        } else {
            tested.subscribe(number, place, now)?;
        }
        if (number + 1).is_multiple_of(part) {
            let all = tested.measured.publishing + tested.measured.subscribing;
            tested
                .measured
                .course_us
                .push(micros(all.saturating_sub(before), part));
            before = all;
        }
    }
    tested.measured.cost = tested.store.cost();
    tested.measured.delay_ms = tested.delay as f64 / tested.polled.max(1) as f64;
    let stats = db.stats();
    tested.measured.live_bytes = tested.alive() * stats.batch_bytes / stats.entries.max(1);
    let runs = stats
        .keyspaces
        .iter()
        .flat_map(|space| &space.levels)
        .map(|level| level.runs);
    tested.measured.runs = runs.sum();
    tested.measured.stalled_ms = (stats.slowed_micros + stats.stopped_micros) / 1000;
    let measured = tested.measured;
    drop((tested.store, tested.polls, db));
    let _ = std::fs::remove_dir_all(dir);
    Ok(measured)
}

impl Tested<'_> {
    /// How many stored records are alive at a time: publications for 20 seconds, subscriptions, where
    /// they are stored, for ten.
    fn alive(&self) -> u64 {
        let subscribed = match self.polls {
            Some(_) => 0,
            None => self.measured.subscribed * REACH,
        };
        let lives = self.measured.published * LIFE + subscribed;
        lives * self.setup.rate / 1000 / self.setup.operations.max(1)
    }

    fn publish(&mut self, number: u64, place: rillbase_pubsub::Place, now: u64) -> Result<()> {
        let publication = Publication {
            at: now,
            until: now + LIFE,
            id: number.to_le_bytes().to_vec(),
            data: vec![b'x'; self.setup.description],
        };
        let started = Instant::now();
        let answer = self
            .store
            .publish(&self.topic, place, publication, self.setup.self_join)?;
        self.measured.publishing += started.elapsed();
        self.measured.published += 1;
        self.measured.pairs += answer.subscriptions.len() as u64;
        if self.polls.is_some() {
            self.published.insert(answer.sequence, now);
        }
        self.poll(now)
    }

    fn subscribe(&mut self, number: u64, place: rillbase_pubsub::Place, now: u64) -> Result<()> {
        let subscription = Subscription {
            from: now - REACH,
            until: now + REACH,
            at: now,
            id: number.to_le_bytes().to_vec(),
            user: (number % 100_000).to_le_bytes().to_vec(),
            ..Subscription::default()
        };
        let started = Instant::now();
        let answer: Answer =
            self.store
                .subscribe(&self.topic, place, subscription, self.setup.self_join)?;
        self.measured.subscribing += started.elapsed();
        self.measured.subscribed += 1;
        self.measured.pairs += answer.publications.len() as u64;
        self.poll(now)
    }

    /// Does the polls that are due.
    fn poll(&mut self, now: u64) -> Result<()> {
        let Some(polls) = &self.polls else {
            return Ok(());
        };
        let started = Instant::now();
        let polled = polls.poll()?;
        self.measured.subscribing += started.elapsed();
        for news in polled.iter().flat_map(|polled| &polled.publications) {
            self.measured.pairs += 1;
            self.polled += 1;
            self.delay += now - self.published.get(&news.sequence).copied().unwrap_or(now);
        }
        Ok(())
    }
}
