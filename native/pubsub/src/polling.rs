//! `RepQueries`: the baseline that polls.
//!
//! Only publications are stored. A subscriber receives the past ones, and is then polled for: each
//! poll reads what arrived since the last one. So notifications are delayed, publications that live
//! for less than the time between two polls may never be reported, and neither are those dated back
//! to before the last poll. There are no stored subscriptions, so publications cannot find them,
//! and nothing can be joined with them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use rillbase_engine::{Db, DbSnapshot, KeyspaceOptions, Millis, Sequence, WriteBatch};

use crate::condition::Conditions;
use crate::error::{Error, Result};
use crate::instant::check;
use crate::keys::{self, PUBLICATIONS};
use crate::lookup::{Cost, ListLookup, LookupWindows, TimeWindow};
use crate::name::SubscriptionLocator;
use crate::place::TopicPlace;
use crate::record::{
    self, MatchSide, PublicationRecord, StoredRecord, SubscriptionRecord, TimedRecord,
};
use crate::record_collector::RecordCollector;
use crate::rule::{MatchRule, is_alive};
use crate::store::{StoreAnswer, StoreOptions, TopicOperation, TopicSpec, TopicStore};

/// Publications, and the subscriptions that poll for them.
#[derive(Debug)]
pub struct RepQueries {
    db: Arc<Db>,
    keyspace: rillbase_engine::Keyspace,
    options: StoreOptions,
    /// The time between two polls of a subscription (TR).
    interval: Millis,
    conditions: Conditions,
    polls: Mutex<Polls>,
    cost: Mutex<Cost>,
}

/// Decides whether a poll takes a publication.
type Keep<'a> = dyn Fn(&StoredRecord<PublicationRecord>) -> bool + 'a;

/// The result of a poll.
#[derive(Debug, Clone)]
pub struct PollResult {
    /// The name of the subscription.
    pub name: SubscriptionLocator,
    /// What arrived since the last poll.
    pub publications: Vec<StoredRecord<PublicationRecord>>,
}

/// The polled subscriptions, in memory.
#[derive(Debug, Default)]
struct Polls {
    next: Sequence,
    due: BTreeSet<(Millis, Sequence)>,
    polled: HashMap<Sequence, Polling>,
}

#[derive(Debug, Clone)]
struct Polling {
    about: Arc<PolledQuery>,
    /// What the last poll saw.
    seen: (Sequence, Millis),
}

/// The query of a polled subscription.
#[derive(Debug)]
struct PolledQuery {
    topic: TopicSpec,
    place: TopicPlace,
    subscription: StoredRecord<SubscriptionRecord>,
}

impl Polls {
    fn add(&mut self, about: PolledQuery, at: &DbSnapshot) -> Sequence {
        self.next += 1;
        let polling = Polling {
            about: Arc::new(about),
            seen: (at.sequence(), at.time()),
        };
        self.polled.insert(self.next, polling);
        self.next
    }

    fn plan(&mut self, number: Sequence, after: Millis, interval: Millis) {
        let Some(polling) = self.polled.get(&number) else {
            return;
        };
        let until = polling.about.subscription.record.until;
        if after >= until {
            self.polled.remove(&number);
        } else {
            self.due
                .insert((after.saturating_add(interval).min(until), number));
        }
    }

    /// The next subscription whose poll is due.
    fn take(&mut self, now: Millis) -> Option<(Sequence, Polling)> {
        loop {
            let (at, number) = *self.due.first()?;
            if at > now {
                return None;
            }
            self.due.pop_first();
            if let Some(polling) = self.polled.get(&number) {
                return Some((number, polling.clone()));
            }
        }
    }
}

impl RepQueries {
    /// Opens the store with a name in a database.
    pub fn open(
        db: &Arc<Db>,
        name: &str,
        keyspace: KeyspaceOptions,
        (options, interval): (StoreOptions, Millis),
    ) -> Result<Self> {
        Ok(Self {
            db: Arc::clone(db),
            keyspace: db.create_keyspace(name, keyspace)?,
            options,
            interval: interval.max(1),
            conditions: Conditions::default(),
            polls: Mutex::default(),
            cost: Mutex::default(),
        })
    }

    /// Does all polls that are due.
    pub fn poll(&self) -> Result<Vec<PollResult>> {
        let mut results = Vec::new();
        while self.next_poll().is_some_and(|due| due <= self.db.now()) {
            let snapshot = self.db.snapshot();
            let taken = self.polls.lock().take(snapshot.time());
            let Some((number, polling)) = taken else {
                break;
            };
            let publications = self.read(&polling, &snapshot)?;
            let mut polls = self.polls.lock();
            if let Some(polled) = polls.polled.get_mut(&number) {
                polled.seen = (snapshot.sequence(), snapshot.time());
            }
            polls.plan(number, snapshot.time(), self.interval);
            drop(polls);
            results.push(PollResult {
                name: name_of(number, &polling.about),
                publications,
            });
        }
        Ok(results)
    }

    /// When the next poll is due.
    pub fn next_poll(&self) -> Option<Millis> {
        let polls = self.polls.lock();
        polls.due.first().map(|(at, _)| *at)
    }

    /// What arrived since the last poll. Its last millisecond may have had more than it saw.
    fn read(
        &self,
        polling: &Polling,
        snapshot: &DbSnapshot,
    ) -> Result<Vec<StoredRecord<PublicationRecord>>> {
        let (sequence, time) = polling.seen;
        let PolledQuery {
            topic,
            place,
            subscription,
        } = &*polling.about;
        let subscription = subscription.side();
        let window = TimeWindow {
            from: subscription.record.from.max(time),
            to: subscription.record.until.min(snapshot.time()),
        };
        let is_new = |publication: &StoredRecord<PublicationRecord>| {
            publication.record.at > time || publication.sequence > sequence
        };
        let at = (topic, snapshot);
        let answer = self.find(at, place, window, (subscription, &is_new))?;
        Ok(answer.publications)
    }

    fn find(
        &self,
        (topic, snapshot): (&TopicSpec, &DbSnapshot),
        place: &TopicPlace,
        window: TimeWindow,
        (subscription, keep): (MatchSide<'_, SubscriptionRecord>, &Keep<'_>),
    ) -> Result<StoreAnswer> {
        let (now, rule) = (
            snapshot.time(),
            MatchRule {
                ids: topic.ids,
                conditions: &self.conditions,
            },
        );
        let bytes = keys::topic(topic.number);
        let oldest = now.saturating_sub(topic.retention);
        let lookup = ListLookup {
            db: &self.db,
            keyspace: &self.keyspace,
            topic: &bytes,
            windows: LookupWindows {
                publications: Some(TimeWindow {
                    from: window.from.max(oldest),
                    to: window.to,
                }),
                subscriptions: None,
            },
            snapshot,
        };
        let matches = |publication: &StoredRecord<PublicationRecord>| {
            // The subscription's last poll may be slightly late.
            keep(publication)
                && rule.matches(
                    subscription,
                    publication.side(),
                    now.min(subscription.record.until),
                )
                && is_alive(publication.record.until, now)
        };
        let mut record_collector = RecordCollector::new(
            (Sequence::MAX, (place.extent(), topic.ids)),
            &matches,
            &|_| false,
        );
        let cost = lookup.run(place.ids(), topic.ids, &mut |entry| {
            record_collector.take(entry)
        })?;
        self.cost.lock().add(&cost);
        let mut answer = record_collector.finish();
        answer.cost = cost;
        Ok(answer)
    }

    fn publish_all(
        &self,
        topic: &TopicSpec,
        (place, publication): (&TopicPlace, &PublicationRecord),
    ) -> Result<StoreAnswer> {
        let mut batch = WriteBatch::new();
        let (bytes, now) = (keys::topic(topic.number), self.db.now());
        let several = place.ids().len() > 1;
        for (part, id) in record::parts(place) {
            let under = (!several).then_some(id);
            let value = record::encode(publication, part, now, (place.extent(), under));
            let key = keys::at(&bytes, id.as_bytes(), PUBLICATIONS, publication.at);
            batch.put_sequenced(&self.keyspace, &key, &value, Some(publication.expiry()));
        }
        let writes = batch.len() as u64;
        let last = self.db.write(batch, self.options.durability)?;
        Ok(StoreAnswer {
            sequence: last + 1 - writes,
            ..StoreAnswer::default()
        })
    }

    fn begin(
        &self,
        topic: &TopicSpec,
        place: &TopicPlace,
        subscription: &SubscriptionRecord,
    ) -> Result<StoreAnswer> {
        let snapshot = self.db.snapshot();
        let now = snapshot.time();
        if !is_alive(subscription.until, now) {
            return Ok(StoreAnswer::default());
        }
        let side = MatchSide {
            sequence: snapshot.sequence(),
            received: now,
            extent: place.extent(),
            record: subscription,
        };
        let window = TimeWindow {
            from: subscription.from,
            to: subscription.until.min(now),
        };
        let mut answer = self.find((topic, &snapshot), place, window, (side, &|_| true))?;
        let mut polls = self.polls.lock();
        let about = PolledQuery {
            topic: *topic,
            place: place.clone(),
            subscription: side.stored(),
        };
        let number = polls.add(about, &snapshot);
        let polling = polls.polled.get(&number);
        answer.name = polling.map(|polling| name_of(number, &polling.about));
        polls.plan(number, now, self.interval);
        answer.sequence = number;
        Ok(answer)
    }
}

fn name_of(number: Sequence, about: &PolledQuery) -> SubscriptionLocator {
    SubscriptionLocator {
        sequence: number,
        until: about.subscription.record.until,
        user: None,
        ids: about.place.ids().to_vec(),
    }
}

fn unsupported<T>() -> Result<T> {
    let what = "polled subscriptions are not stored, so they cannot be found";
    Err(Error::Unsupported { what })
}

impl TopicStore for RepQueries {
    fn run_each(&self, operations: &[(&TopicSpec, &TopicOperation)]) -> Result<Vec<StoreAnswer>> {
        let mut answers = Vec::with_capacity(operations.len());
        for (topic, operation) in operations {
            check(topic, operation, &self.conditions)?;
            answers.push(match operation {
                TopicOperation::Publish {
                    self_join: true, ..
                }
                | TopicOperation::Publish { once: true, .. }
                | TopicOperation::Subscribe {
                    self_join: true, ..
                } => {
                    return unsupported();
                }
                TopicOperation::Subscribe { subscription, .. } if subscription.unseen_only => {
                    return unsupported();
                }
                TopicOperation::Publish {
                    place, publication, ..
                } => self.publish_all(topic, (place, publication))?,
                TopicOperation::Subscribe {
                    place,
                    subscription,
                    ..
                } => self.begin(topic, place, subscription)?,
            });
        }
        Ok(answers)
    }

    fn check(&self, topic: &TopicSpec, operation: &TopicOperation) -> Result<()> {
        check(topic, operation, &self.conditions)
    }

    fn forget(&self, topic: &TopicSpec) -> Result<()> {
        let mut batch = WriteBatch::new();
        keys::forget(&mut batch, &self.keyspace, topic.number);
        self.db.write(batch, self.options.durability)?;
        self.polls
            .lock()
            .polled
            .retain(|_, polling| polling.about.topic.number != topic.number);
        Ok(())
    }

    fn get_data(
        &self,
        topic: &TopicSpec,
        place: &TopicPlace,
        window: TimeWindow,
    ) -> Result<StoreAnswer> {
        let snapshot = self.db.snapshot();
        let everything = SubscriptionRecord {
            until: Millis::MAX,
            ..SubscriptionRecord::default()
        };
        let all = MatchSide {
            sequence: 0,
            received: 0,
            extent: place.extent(),
            record: &everything,
        };
        self.find((topic, &snapshot), place, window, (all, &|_| true))
    }

    fn get_subscribers(&self, _: &TopicSpec, _: &TopicPlace, _: Millis) -> Result<StoreAnswer> {
        unsupported()
    }

    fn get_data_and_subscribers(
        &self,
        _: &TopicSpec,
        _: &TopicPlace,
        _: (TimeWindow, Millis),
    ) -> Result<StoreAnswer> {
        unsupported()
    }

    fn list(&self, _: &TopicSpec, _: &TopicPlace) -> Result<StoreAnswer> {
        unsupported()
    }

    fn get_subscription(
        &self,
        _: &TopicSpec,
        _: &SubscriptionLocator,
    ) -> Result<Option<StoredRecord<SubscriptionRecord>>> {
        unsupported()
    }

    fn unsubscribe(&self, _: &TopicSpec, name: &SubscriptionLocator) -> Result<bool> {
        Ok(self.polls.lock().polled.remove(&name.sequence).is_some())
    }

    fn resume(
        &self,
        _: &TopicSpec,
        _: &SubscriptionLocator,
        _: Sequence,
    ) -> Result<Option<Vec<StoredRecord<PublicationRecord>>>> {
        unsupported()
    }

    fn cost(&self) -> Cost {
        *self.cost.lock()
    }
}
