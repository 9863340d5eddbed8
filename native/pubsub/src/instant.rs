//! Stores with immediate matching: `DualDb` and `TwoDb`.
//!
//! An operation writes its record without reading, takes a snapshot directly after that write, and
//! searches it for matches among everything that came before. Sequences are assigned under one lock
//! and become visible in order; so of two operations that should match, the later sees the earlier
//! and the earlier does not see the later: they match exactly once, without a lock on their ids.
//! Expiry is judged by the time at which the operation started, and a snapshot of that time is kept
//! until it has read, so nothing that it must see is compacted away.

use std::sync::Arc;

use parking_lot::Mutex;
use rillbase_engine::{Db, DbSnapshot, Millis, Sequence, WriteBatch};

use crate::condition::Conditions;
use crate::error::{Error, Result};
use crate::keys::{self, SUBSCRIPTIONS, TopicKeyspaces};
use crate::lookup::{Cost, ListLookup, LookupWindows, TimeWindow};
use crate::name::SubscriptionLocator;
use crate::once::Once;
use crate::place::TopicPlace;
use crate::record::{self, MatchSide, PublicationRecord, StoredRecord, SubscriptionRecord};
use crate::record_collector::RecordCollector;
use crate::rule::{MatchRule, is_alive};
use crate::store::{StoreAnswer, StoreOptions, TopicOperation, TopicSpec};
use crate::subscription_history::{self, SubscriptionHistory};
use crate::turns::OperationTurns;

/// A store with immediate matching.
#[derive(Debug)]
pub(crate) struct Instant {
    pub(crate) db: Arc<Db>,
    pub(crate) spaces: TopicKeyspaces,
    pub(crate) options: StoreOptions,
    pub(crate) turns: Option<OperationTurns>,
    conditions: Conditions,
    pub(crate) once: Once,
    cost: Mutex<Cost>,
}

/// What an operation or a lookup sees.
pub(crate) struct ReadMoment<'a> {
    pub(crate) topic: &'a TopicSpec,
    pub(crate) snapshot: &'a DbSnapshot,
    /// Sequences from here on are not visible.
    pub(crate) before: Sequence,
}

impl ReadMoment<'_> {
    fn now(&self) -> Millis {
        self.snapshot.time()
    }

    /// A record that arrives now.
    pub(crate) fn side<'a, T>(&self, place: &'a TopicPlace, record: &'a T) -> MatchSide<'a, T> {
        MatchSide {
            sequence: self.before,
            received: self.now(),
            extent: place.extent(),
            record,
        }
    }

    /// The lower bound of the time of live publications.
    fn oldest(&self) -> Millis {
        self.now().saturating_sub(self.topic.retention)
    }
}

impl Instant {
    pub(crate) fn new(db: Arc<Db>, spaces: TopicKeyspaces, options: StoreOptions) -> Self {
        Self {
            db,
            spaces,
            turns: options.sink.clone().map(OperationTurns::new),
            options,
            conditions: Conditions::default(),
            once: Once::default(),
            cost: Mutex::default(),
        }
    }

    pub(crate) fn cost(&self) -> Cost {
        *self.cost.lock()
    }

    fn rule(&self, topic: &TopicSpec) -> MatchRule<'_> {
        MatchRule {
            ids: topic.ids,
            conditions: &self.conditions,
        }
    }

    pub(crate) fn check(&self, topic: &TopicSpec, operation: &TopicOperation) -> Result<()> {
        check(topic, operation, &self.conditions)
    }

    pub(crate) fn forget(&self, topic: &TopicSpec) -> Result<()> {
        let mut batch = WriteBatch::new();
        for keyspace in [&self.spaces.subscriptions, &self.spaces.publications] {
            keys::forget(&mut batch, keyspace, topic.number);
        }
        self.db.write(batch, self.options.durability)?;
        Ok(())
    }

    /// The records that match an operation.
    pub(crate) fn answer(
        &self,
        moment: &ReadMoment<'_>,
        operation: &TopicOperation,
    ) -> Result<StoreAnswer> {
        let mut answer = match operation {
            TopicOperation::Publish {
                place,
                publication,
                self_join,
                ..
            } => {
                let side = moment.side(place, publication);
                self.matches_of_publication(moment, place, side, *self_join)?
            }
            TopicOperation::Subscribe {
                place,
                subscription,
                self_join,
            } => {
                let side = moment.side(place, subscription);
                let mut answer = self.matches_of_subscription(moment, place, side, *self_join)?;
                answer.name = Some(SubscriptionLocator {
                    sequence: moment.before,
                    until: subscription.until,
                    user: subscription.unseen_only.then(|| subscription.user.clone()),
                    ids: place.ids().to_vec(),
                });
                answer
            }
        };
        answer.sequence = moment.before;
        Ok(answer)
    }

    fn matches_of_publication(
        &self,
        moment: &ReadMoment<'_>,
        place: &TopicPlace,
        publication: MatchSide<'_, PublicationRecord>,
        self_join: bool,
    ) -> Result<StoreAnswer> {
        let (now, rule) = (moment.now(), self.rule(moment.topic));
        if !is_alive(publication.record.until, now) {
            return Ok(StoreAnswer::default());
        }
        let windows = LookupWindows {
            subscriptions: Some(TimeWindow::since(publication.record.at.max(now))),
            publications: self_join.then(|| TimeWindow::since(moment.oldest())),
        };
        let alike = |other: &StoredRecord<PublicationRecord>| is_alive(other.record.until, now);
        let matches = |subscription: &StoredRecord<SubscriptionRecord>| {
            rule.matches(subscription.side(), publication, now)
        };
        let mut answer = self.lookup(
            moment,
            place,
            windows,
            RecordCollector::new(
                (moment.before, (place.extent(), rule.ids)),
                &alike,
                &matches,
            ),
        )?;
        subscription_history::oldest_of_users(&mut answer.subscriptions);
        Ok(answer)
    }

    fn matches_of_subscription(
        &self,
        moment: &ReadMoment<'_>,
        place: &TopicPlace,
        subscription: MatchSide<'_, SubscriptionRecord>,
        self_join: bool,
    ) -> Result<StoreAnswer> {
        let (now, rule) = (moment.now(), self.rule(moment.topic));
        if !is_alive(subscription.record.until, now) {
            return Ok(StoreAnswer::default());
        }
        let windows = LookupWindows {
            publications: Some(TimeWindow {
                from: subscription.record.from.max(moment.oldest()),
                to: subscription.record.until,
            }),
            subscriptions: self_join.then(|| TimeWindow::since(subscription.record.from.max(now))),
        };
        let matches = |publication: &StoredRecord<PublicationRecord>| {
            rule.matches(subscription, publication.side(), now)
        };
        let alike = |other: &StoredRecord<SubscriptionRecord>| {
            is_alive(other.record.until, now) && other.record.from <= subscription.record.until
        };
        let mut answer = self.lookup(
            moment,
            place,
            windows,
            RecordCollector::new(
                (moment.before, (place.extent(), rule.ids)),
                &matches,
                &alike,
            ),
        )?;
        if subscription.record.unseen_only && !answer.publications.is_empty() {
            self.retain_unseen(moment, subscription, &mut answer.publications)?;
        }
        Ok(answer)
    }

    /// Removes what an older subscription of the user with `unseen_only` has already matched.
    fn retain_unseen(
        &self,
        moment: &ReadMoment<'_>,
        subscription: MatchSide<'_, SubscriptionRecord>,
        publications: &mut Vec<StoredRecord<PublicationRecord>>,
    ) -> Result<()> {
        let from = subscription.record.from.max(moment.oldest());
        let at = (&*self.db, &self.spaces.subscriptions, moment.snapshot);
        let user = (moment.topic, subscription.record.user.as_slice());
        let memory = SubscriptionHistory::read(at, user, (from, moment.before))?;
        let rule = self.rule(moment.topic);
        publications
            .retain(|publication| !memory.has_matched(publication, subscription.sequence, rule));
        Ok(())
    }

    /// Searches the lists that match a place: in one scan if one keyspace has all of them.
    fn lookup(
        &self,
        moment: &ReadMoment<'_>,
        place: &TopicPlace,
        windows: LookupWindows,
        mut record_collector: RecordCollector<'_>,
    ) -> Result<StoreAnswer> {
        let topic = keys::topic(moment.topic.number);
        let mut cost = Cost::default();
        for (keyspace, windows) in self.spaces.lookups(windows) {
            let lookup = ListLookup {
                db: &self.db,
                keyspace,
                topic: &topic,
                windows,
                snapshot: moment.snapshot,
            };
            let visit = &mut |entry: crate::lookup::ListEntry<'_>| record_collector.take(entry);
            cost.add(&lookup.run(place.ids(), moment.topic.ids, visit)?);
        }
        self.cost.lock().add(&cost);
        let mut answer = record_collector.finish();
        answer.cost = cost;
        Ok(answer)
    }

    /// The live publications within a window, and the stored subscriptions.
    pub(crate) fn find(
        &self,
        topic: &TopicSpec,
        place: &TopicPlace,
        window: Option<TimeWindow>,
        keep: Option<&dyn Fn(&SubscriptionRecord) -> bool>,
    ) -> Result<StoreAnswer> {
        let snapshot = self.db.snapshot();
        let moment = ReadMoment {
            topic,
            snapshot: &snapshot,
            before: Sequence::MAX,
        };
        let now = moment.now();
        let windows = LookupWindows {
            publications: window.map(|window| TimeWindow {
                from: window.from.max(moment.oldest()),
                to: window.to,
            }),
            subscriptions: keep.map(|_| TimeWindow::since(now)),
        };
        let data =
            |publication: &StoredRecord<PublicationRecord>| is_alive(publication.record.until, now);
        let subscribers = |subscription: &StoredRecord<SubscriptionRecord>| {
            keep.is_some_and(|keep| keep(&subscription.record))
        };
        self.lookup(
            &moment,
            place,
            windows,
            RecordCollector::new(
                (Sequence::MAX, (place.extent(), topic.ids)),
                &data,
                &subscribers,
            ),
        )
    }

    pub(crate) fn get_subscription(
        &self,
        topic: &TopicSpec,
        name: &SubscriptionLocator,
    ) -> Result<Option<StoredRecord<SubscriptionRecord>>> {
        self.subscription(topic, name, &self.db.snapshot())
    }

    pub(crate) fn unsubscribe(
        &self,
        topic: &TopicSpec,
        name: &SubscriptionLocator,
    ) -> Result<bool> {
        let keyspace = &self.spaces.subscriptions;
        let bytes = keys::topic(topic.number);
        let key = |(id, at)| keys::entry(&bytes, id, SUBSCRIPTIONS, name.until, at);
        let entries: Vec<Vec<u8>> = name.ids.iter().zip(name.sequence..).map(key).collect();
        let Some(first) = entries.first() else {
            return Ok(false);
        };
        if self.db.get(keyspace, first)?.is_none() {
            return Ok(false);
        }
        let mut batch = WriteBatch::new();
        for key in &entries {
            batch.delete(keyspace, key);
        }
        subscription_history::end(&mut batch, (keyspace, topic), name);
        self.db.write(batch, self.options.durability)?;
        Ok(true)
    }

    pub(crate) fn resume(
        &self,
        topic: &TopicSpec,
        name: &SubscriptionLocator,
        position: Sequence,
    ) -> Result<Option<Vec<StoredRecord<PublicationRecord>>>> {
        let snapshot = self.db.snapshot();
        let Some(subscription) = self.subscription(topic, name, &snapshot)? else {
            return Ok(None);
        };
        let moment = ReadMoment {
            topic,
            snapshot: &snapshot,
            before: Sequence::MAX,
        };
        let window = TimeWindow {
            from: subscription.record.from.max(moment.oldest()),
            to: subscription.record.until,
        };
        let windows = LookupWindows {
            publications: Some(window),
            subscriptions: None,
        };
        let (now, rule) = (moment.now(), self.rule(topic));
        let matches = |publication: &StoredRecord<PublicationRecord>| {
            publication.sequence > position
                && rule.matches(subscription.side(), publication.side(), now)
        };
        let place = TopicPlace::of_parts(name.ids.clone(), subscription.extent.clone());
        let record_collector = RecordCollector::new(
            (moment.before, (place.extent(), topic.ids)),
            &matches,
            &|_| false,
        );
        let mut publications = self
            .lookup(&moment, &place, windows, record_collector)?
            .publications;
        if subscription.record.unseen_only {
            self.retain_unseen(&moment, subscription.side(), &mut publications)?;
        }
        Ok(Some(publications))
    }

    /// The subscription with a name, if it has not ended.
    fn subscription(
        &self,
        topic: &TopicSpec,
        name: &SubscriptionLocator,
        snapshot: &DbSnapshot,
    ) -> Result<Option<StoredRecord<SubscriptionRecord>>> {
        let Some(id) = name.ids.first() else {
            return Ok(None);
        };
        let bytes = keys::topic(topic.number);
        let key = keys::entry(&bytes, id, SUBSCRIPTIONS, name.until, name.sequence);
        let value = self.db.get_at(&self.spaces.subscriptions, &key, snapshot)?;
        let place = (id.as_bytes(), name.until, name.sequence);
        let read = |value: rillbase_engine::ValueBytes| record::decode(&value, place);
        value.map(read).transpose()
    }
}

/// Rejects what no store accepts.
pub(crate) fn check(
    topic: &TopicSpec,
    operation: &TopicOperation,
    conditions: &Conditions,
) -> Result<()> {
    if operation.place().ids().is_empty() {
        let what = "a place needs an id";
        return Err(Error::InvalidId { what });
    }
    match operation {
        TopicOperation::Publish { publication, .. } => {
            let life = publication.until.saturating_sub(publication.at);
            if life > topic.retention {
                return Err(Error::LivesTooLong);
            }
        }
        TopicOperation::Subscribe { subscription, .. } => {
            if let Some(filter) = &subscription.filter {
                conditions.check(filter)?;
            }
        }
    }
    Ok(())
}
