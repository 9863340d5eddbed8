//! The world of one history, and what happens in it.

use rillbase_live::message::Request;

use crate::database::Database;
use crate::nodes::{Driver, Kind};
use crate::outbox::Outbox;
use crate::queries::QUERIES;
use crate::random::Random;
use crate::valkey::{Stream, Valkey};
use crate::watcher::Watcher;

const PARTITIONS: u16 = 2;
const KEYS: u64 = 9;
const BEGIN_US: u64 = 1_000_000_000;
/// For how long everything may take to heal once the faults have stopped.
const HEAL_US: u64 = 90_000_000;

/// What happens. Numbers choose among what there is at the time, so that leaving out operations
/// leaves a history that can happen.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operation {
    Pass {
        us: u64,
    },
    Begin {
        batch: bool,
    },
    Write {
        transaction: u64,
        key: u64,
        n: i64,
    },
    Delete {
        transaction: u64,
        key: u64,
    },
    Commit {
        transaction: u64,
        publish: bool,
    },
    Abort {
        transaction: u64,
    },
    /// A publisher does its part late, or once more.
    Publish {
        which: u64,
        again: bool,
    },
    Relay,
    Step {
        driver: u64,
        seed: u64,
    },
    Watch {
        watcher: u64,
        most: u64,
    },
    /// Somebody answers a renewal: reads, and registers some time later.
    Renew {
        watcher: u64,
    },
    Register {
        which: u64,
    },
    Kill {
        driver: u64,
    },
    Pause {
        driver: u64,
        us: u64,
    },
    Skew {
        driver: u64,
        us: u64,
    },
    Restart {
        watcher: u64,
    },
    Expire {
        query: u64,
    },
    Empty,
}

/// The operations that follow from a seed.
pub(crate) fn history(seed: u64, length: usize) -> Vec<Operation> {
    let mut random = Random(seed);
    // Some histories are calm, so that everybody comes to be live at all.
    let calm = random.below(4);
    (0..length).map(|_| operation(&mut random, calm)).collect()
}

fn operation(random: &mut Random, calm: u64) -> Operation {
    let transaction = random.next();
    let key = random.below(KEYS);
    match random.below(100) {
        0..10 => Operation::Pass {
            us: 1_000 << random.below(10),
        },
        10..14 => Operation::Begin {
            batch: random.once_in(3),
        },
        14..23 => Operation::Write {
            transaction,
            key,
            n: i64::try_from(random.below(13)).unwrap_or(0) - 3,
        },
        23..25 => Operation::Delete { transaction, key },
        25..32 => Operation::Commit {
            transaction,
            publish: random.below(4) > 0,
        },
        32 => Operation::Abort { transaction },
        33..36 => Operation::Publish {
            which: random.next(),
            again: random.once_in(3),
        },
        36..45 => Operation::Relay,
        45..73 => Operation::Step {
            driver: random.next(),
            seed: random.next(),
        },
        73..91 => Operation::Watch {
            watcher: random.next(),
            most: 1 + random.below(30),
        },
        91..94 => Operation::Renew {
            watcher: random.next(),
        },
        94..96 => Operation::Register {
            which: random.next(),
        },
        _ if random.below(4) < calm => Operation::Relay,
        _ => fault(random),
    }
}

fn fault(random: &mut Random) -> Operation {
    let driver = random.next();
    match random.below(16) {
        0..4 => Operation::Kill { driver },
        4..8 => Operation::Pause {
            driver,
            us: 100_000 << random.below(9),
        },
        8 => Operation::Skew {
            driver,
            us: 1_000_000 << random.below(6),
        },
        9..12 => Operation::Restart {
            watcher: random.next(),
        },
        12 => Operation::Expire {
            query: random.next(),
        },
        13 => Operation::Empty,
        _ => Operation::Pass {
            us: 3_000_000 << random.below(5),
        },
    }
}

struct World {
    database: Database,
    outbox: Outbox,
    valkey: Valkey,
    drivers: Vec<Driver>,
    watchers: Vec<Watcher>,
    /// Renewals that were read and are on their way.
    renewals: Vec<Request>,
}

/// Runs a history to its end, and heals it.
pub(crate) fn run(operations: &[Operation]) -> Result<(), String> {
    let mut world = World::new();
    for operation in operations {
        world.act(*operation)?;
        world.check()?;
    }
    world.heal()
}

fn among(number: u64, count: usize) -> usize {
    usize::try_from(number % count.max(1) as u64).unwrap_or(0)
}

impl World {
    fn new() -> Self {
        let mut drivers = Vec::new();
        for holder in 0..2 {
            for partition in 0..PARTITIONS {
                drivers.push(Driver::new(Kind::Filter(partition), PARTITIONS, holder));
            }
            drivers.push(Driver::new(Kind::Sort, PARTITIONS, holder));
        }
        // Two watch each query.
        let watchers = QUERIES.iter().chain(&QUERIES);
        Self {
            database: Database::new(),
            outbox: Outbox::default(),
            valkey: Valkey::new(PARTITIONS, BEGIN_US),
            drivers,
            watchers: watchers
                .map(|query| Watcher::new(*query, PARTITIONS))
                .collect(),
            renewals: Vec::new(),
        }
    }

    fn act(&mut self, operation: Operation) -> Result<(), String> {
        let Self {
            database,
            outbox,
            valkey,
            drivers,
            watchers,
            ..
        } = self;
        // Nothing takes no time at all.
        valkey.now_us += 200;
        let watchers_count = watchers.len();
        let drivers_count = drivers.len();
        match operation {
            Operation::Pass { us } => valkey.now_us += us,
            Operation::Begin { batch } => database.begin(batch),
            Operation::Write { .. }
            | Operation::Delete { .. }
            | Operation::Commit { .. }
            | Operation::Abort { .. } => self.transact(operation),
            Operation::Publish { which, again } => {
                let rows = if again {
                    outbox.any()
                } else {
                    outbox.unmarked()
                };
                if let Some(xid) = rows.get(among(which, rows.len())) {
                    outbox.publish(*xid, valkey);
                }
            }
            Operation::Relay => outbox.round(database, valkey),
            Operation::Step { driver, seed } => {
                let driver = &mut drivers[among(driver, drivers_count)];
                driver.step(valkey, database, &mut Random(seed));
            }
            Operation::Watch { watcher, most } => {
                let watcher = &mut watchers[among(watcher, watchers_count)];
                let most = usize::try_from(most).unwrap_or(1);
                watcher.step(valkey, database, most)?;
            }
            Operation::Renew { watcher } => self.read_renewal(among(watcher, watchers_count)),
            Operation::Register { which } => self.answer_renewal(which),
            Operation::Kill { driver } => drivers[among(driver, drivers_count)].kill(),
            Operation::Pause { driver, us } => {
                drivers[among(driver, drivers_count)].stopped_until_us = valkey.now_us + us;
            }
            Operation::Skew { driver, us } => {
                drivers[among(driver, drivers_count)].skew_us = us;
            }
            Operation::Restart { watcher } => watchers[among(watcher, watchers_count)].restart(),
            Operation::Expire { query } => {
                let query = QUERIES[among(query, QUERIES.len())];
                valkey.expire(query.hash());
                // Whoever still watches has been told nothing, as nobody alive watches.
                for watcher in watchers.iter_mut().filter(|watcher| watcher.query == query) {
                    watcher.restart();
                }
            }
            Operation::Empty => valkey.empty(),
        }
        Ok(())
    }

    fn transact(&mut self, operation: Operation) {
        let open = self.database.open();
        let chosen = |number| open.get(among(number, open.len())).copied();
        let key = |number: u64| u8::try_from(number).unwrap_or(0);
        match operation {
            Operation::Write {
                transaction,
                key: number,
                n,
            } => {
                if let Some(xid) = chosen(transaction) {
                    self.database.write(xid, key(number), Some(n));
                }
            }
            Operation::Delete {
                transaction,
                key: number,
            } => {
                if let Some(xid) = chosen(transaction) {
                    self.database.write(xid, key(number), None);
                }
            }
            Operation::Commit {
                transaction,
                publish,
            } => {
                if let Some(xid) = chosen(transaction) {
                    let now_us = self.valkey.now_us;
                    let images = self.database.commit(xid, PARTITIONS, now_us);
                    self.outbox.add(images, now_us);
                    if publish {
                        self.outbox.publish(xid, &mut self.valkey);
                    }
                }
            }
            Operation::Abort { transaction } => {
                if let Some(xid) = chosen(transaction) {
                    self.database.abort(xid);
                }
            }
            _ => {}
        }
    }

    fn read_renewal(&mut self, watcher: usize) {
        let watcher = &mut self.watchers[watcher];
        if let Some(slack) = watcher.wants_renewal.take() {
            let mut query = watcher.query;
            if let Some(window) = &mut query.window {
                window.2 = slack;
            }
            let (rows, complete) = query.rows(&self.database);
            self.renewals.push(Request::Register {
                query: query.definition(),
                positions: self.valkey.writes.iter().map(Stream::end).collect(),
                snapshot: self.database.snapshot(),
                rows,
                complete,
                renewal: true,
            });
        }
    }

    fn answer_renewal(&mut self, which: u64) {
        if !self.renewals.is_empty() {
            let index = among(which, self.renewals.len());
            self.valkey.register(self.renewals.remove(index));
        }
    }

    fn check(&self) -> Result<(), String> {
        let now_us = self.valkey.now_us;
        let check = |watcher: &Watcher| watcher.check(now_us, &self.database);
        self.watchers.iter().try_for_each(check)
    }

    /// The faults stop: everybody becomes live with the right answer.
    fn heal(&mut self) -> Result<(), String> {
        for xid in self.database.open() {
            self.database.abort(xid);
        }
        for driver in &mut self.drivers {
            driver.stopped_until_us = 0;
        }
        let mut random = Random(1);
        let until_us = self.valkey.now_us + HEAL_US;
        while self.valkey.now_us < until_us {
            self.valkey.now_us += 50_000;
            self.outbox.round(&self.database, &mut self.valkey);
            for _ in 0..3 {
                for driver in &mut self.drivers {
                    driver.step(&mut self.valkey, &self.database, &mut random);
                }
            }
            for watcher in 0..self.watchers.len() {
                self.read_renewal(watcher);
                self.watchers[watcher].step(&mut self.valkey, &self.database, 1_000)?;
            }
            self.answer_renewal(0);
            self.check()?;
            if self.is_healed() {
                return Ok(());
            }
        }
        let now_us = self.valkey.now_us;
        let stuck = self
            .watchers
            .iter()
            .find(|watcher| watcher.live(now_us).is_none());
        match stuck {
            Some(watcher) => Err(format!("never live again: {watcher:?}")),
            None => Err("never complete again".to_owned()),
        }
    }

    fn is_healed(&self) -> bool {
        let now_us = self.valkey.now_us;
        let latest = || self.database.all().map(|(_, version)| version);
        self.watchers.iter().all(|watcher| {
            let complete = watcher.live(now_us);
            complete.is_some_and(|complete| latest().all(|version| complete.sees(version.xid)))
                && watcher.shows() == watcher.query.answer(&self.database)
        })
    }
}
