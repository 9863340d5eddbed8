//! A relay that follows the rules of `documents/outbox/machine.py`, one request at a time. It may
//! stop between any two requests, and several relays may believe that they lead.

use std::collections::{BTreeSet, VecDeque};

use rillbase_live::message::AfterImage;
use rillbase_live::snapshot::PgSnapshot;

use super::database::Database;
use super::outbox::Outbox;
use super::valkey::{Incarnation, Sender, Valkey};

/// For this long a write is left to its publisher, and no tick is sent for a snapshot.
const GRACE_US: u64 = 250_000;
/// Older snapshots are not used for ticks.
const SNAPSHOT_US: u64 = 6_000_000;

/// A snapshot, and the transactions that must be published before its tick.
#[derive(Debug)]
struct TakenWrite {
    snapshot: PgSnapshot,
    at_us: u64,
    outstanding: BTreeSet<u64>,
    /// Whether a mark settles a transaction: not while everything is published again.
    marks_count: bool,
}

/// What the relay knows of one run of the event layer and the database.
#[derive(Debug)]
struct Life {
    incarnation: Incarnation,
    complete: bool,
    taken: VecDeque<TakenWrite>,
    sent: BTreeSet<u64>,
}

#[derive(Debug)]
enum Stage {
    Rest,
    Looked,
    Listed(VecDeque<u64>),
    Fetched(u64, Vec<AfterImage>, VecDeque<u64>),
    Marking(VecDeque<u64>),
    Ticking(PgSnapshot),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Relay {
    number: u64,
    token: Option<u64>,
    life: Option<Life>,
    stage: Stage,
    /// Valkey's time when it last answered: the time stamp of whatever is read next.
    time_us: u64,
    /// The run of the event layer at that time, and the incarnation in which everything was
    /// published to it.
    looked: (u8, Option<Incarnation>),
    /// Transactions that are published before others in this round, because they wrote the same
    /// documents later.
    led: BTreeSet<u64>,
    pub(crate) stopped_until_us: u64,
}

impl Relay {
    pub(crate) const fn new(number: u64) -> Self {
        Self {
            number,
            token: None,
            life: None,
            stage: Stage::Rest,
            time_us: 0,
            looked: (0, None),
            led: BTreeSet::new(),
            stopped_until_us: 0,
        }
    }

    /// One request and its reply.
    pub(crate) fn step(&mut self, database: &Database, outbox: &mut Outbox, valkey: &mut Valkey) {
        if valkey.now_us < self.stopped_until_us {
            return;
        }
        self.stage = match std::mem::replace(&mut self.stage, Stage::Rest) {
            Stage::Rest => self.look(outbox, valkey),
            Stage::Looked if !database.is_away(valkey.now_us) => self.list(database, outbox),
            Stage::Listed(backlog) if !database.is_away(valkey.now_us) => {
                self.fetch(backlog, database, outbox)
            }
            Stage::Fetched(xid, images, backlog) => self.append(xid, &images, backlog, valkey),
            Stage::Marking(backlog) if !database.is_away(valkey.now_us) => {
                self.mark(outbox, valkey.now_us);
                Stage::Listed(backlog)
            }
            Stage::Ticking(snapshot) => self.tick(&snapshot, valkey),
            Stage::Looked | Stage::Listed(_) | Stage::Marking(_) => Stage::Rest,
        };
    }

    fn look(&mut self, outbox: &mut Outbox, valkey: &mut Valkey) -> Stage {
        let claimed = outbox.claim(self.number, valkey.now_us);
        if claimed != self.token {
            self.life = None;
        }
        self.token = claimed;
        if self.token.is_none() {
            return Stage::Rest;
        }
        self.time_us = valkey.now_us;
        self.led.clear();
        self.looked = (valkey.life, valkey.complete);
        valkey.has_epochs = true;
        Stage::Looked
    }

    fn list(&mut self, database: &Database, outbox: &mut Outbox) -> Stage {
        if !self.token.is_some_and(|token| outbox.is_held(token)) {
            self.token = None;
            return Stage::Rest;
        }
        outbox.forget(self.time_us);
        let (valkey, complete) = self.looked;
        let incarnation = Incarnation {
            valkey,
            database: database.life,
        };
        let mut life = self
            .life
            .take()
            .filter(|life| life.incarnation == incarnation)
            .unwrap_or(Life {
                incarnation,
                complete: complete == Some(incarnation),
                taken: VecDeque::new(),
                sent: BTreeSet::new(),
            });
        let backlog = life.learn(database, outbox, self.time_us);
        self.life = Some(life);
        Stage::Listed(backlog)
    }

    fn fetch(&mut self, mut backlog: VecDeque<u64>, database: &Database, outbox: &Outbox) -> Stage {
        if let Some(xid) = backlog.pop_front() {
            let mut newer = outbox.newer(xid, database);
            newer.retain(|other| self.led.insert(*other));
            if newer.is_empty() {
                return Stage::Fetched(xid, outbox.as_read(xid, database), backlog);
            }
            backlog.push_front(xid);
            for other in newer {
                backlog.push_front(other);
            }
            return Stage::Listed(backlog);
        }
        let now_us = self.time_us;
        let provable = self.life.as_mut().and_then(|life| life.provable(now_us));
        provable.map_or(Stage::Rest, Stage::Ticking)
    }

    fn append(
        &mut self,
        xid: u64,
        images: &[AfterImage],
        backlog: VecDeque<u64>,
        valkey: &mut Valkey,
    ) -> Stage {
        let sender = Sender {
            stamp_us: self.time_us,
            token: self.token,
        };
        if !valkey.publish(sender, images) {
            return Stage::Rest;
        }
        self.time_us = valkey.now_us;
        if let Some(life) = &mut self.life {
            life.sent.insert(xid);
            for taken in &mut life.taken {
                taken.outstanding.remove(&xid);
            }
        }
        Stage::Marking(backlog)
    }

    fn mark(&mut self, outbox: &mut Outbox, now_us: u64) {
        if let Some(life) = &mut self.life {
            for xid in std::mem::take(&mut life.sent) {
                outbox.mark(xid, now_us);
            }
        }
    }

    fn tick(&mut self, snapshot: &PgSnapshot, valkey: &mut Valkey) -> Stage {
        if let (Some(life), Some(token)) = (&mut self.life, self.token)
            && valkey.tick(life.incarnation, (token, self.time_us), snapshot)
        {
            life.complete = true;
            life.taken.retain(|taken| taken.snapshot != *snapshot);
        }
        Stage::Rest
    }
}

impl Life {
    /// Takes a snapshot with the unmarked transactions that it sees, or with all that are kept if
    /// everything must be published again. Returns those whose writers have had enough time to
    /// publish.
    fn learn(&mut self, database: &Database, outbox: &Outbox, now_us: u64) -> VecDeque<u64> {
        let again = !self.complete && self.taken.is_empty();
        let unmarked: BTreeSet<u64> = outbox.unmarked().into_iter().collect();
        for taken in self.taken.iter_mut().filter(|taken| taken.marks_count) {
            taken.outstanding.retain(|xid| unmarked.contains(xid));
        }
        self.taken.push_back(TakenWrite {
            snapshot: database.snapshot(),
            at_us: now_us,
            outstanding: if again {
                outbox.all().into_iter().collect()
            } else {
                unmarked
            },
            marks_count: !again,
        });
        let due = self.taken.iter();
        let due = due.filter(|taken| !taken.marks_count || taken.at_us + GRACE_US <= now_us);
        let due: BTreeSet<u64> = due.flat_map(|taken| taken.outstanding.clone()).collect();
        due.into_iter().collect()
    }

    /// The newest snapshot up to which nothing is outstanding. Snapshots that are too old are
    /// skipped.
    fn provable(&mut self, now_us: u64) -> Option<PgSnapshot> {
        let proven =
            |taken: &&TakenWrite| taken.outstanding.is_empty() && taken.at_us + GRACE_US <= now_us;
        let count = self.taken.iter().take_while(proven).count();
        let newest = self.taken.get(count.checked_sub(1)?)?;
        if newest.at_us + SNAPSHOT_US >= now_us {
            return Some(newest.snapshot.clone());
        }
        self.taken.drain(..count);
        self.complete = true;
        None
    }
}
