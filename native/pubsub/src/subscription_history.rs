//! The history of a user's subscriptions, by which `unseen_only` avoids repeated publications.
//!
//! No list of deliveries is stored. Whether a subscription has matched a publication follows from
//! both records, so it is enough to remember such subscriptions of a user for as long as a
//! publication that they matched may be alive. That is a list by user, written without reading
//! together with the subscription. Of several subscriptions that a publication matches, the oldest
//! is notified.

use std::collections::{HashMap, HashSet};
use std::ops::Bound;

use rillbase_binary_format::{ByteReader, ByteWriter as _};
use rillbase_engine::{Db, DbSnapshot, Keyspace, Millis, Sequence, WriteBatch, prefix_end};

use crate::error::{Error, Result};
use crate::keys::{self, ENDED, STARTED};
use crate::name::SubscriptionLocator;
use crate::place::TopicPlace;
use crate::record::{self, PublicationRecord, StoredRecord, SubscriptionRecord};
use crate::rule::MatchRule;
use crate::store::TopicSpec;

/// Until when a subscription is remembered.
fn remembered_until(topic: &TopicSpec, until: Millis) -> Millis {
    until.saturating_add(topic.retention).saturating_add(1)
}

/// Remembers a subscription; must follow its entries in the batch.
pub(crate) fn begin(
    batch: &mut WriteBatch,
    (keyspace, topic): (&Keyspace, &TopicSpec),
    (place, subscription): (&TopicPlace, &SubscriptionRecord),
    received: Millis,
) {
    let part = place.ids().len() as u64 + 1;
    let value = record::encode(subscription, part, received, (place.extent(), None));
    let key = keys::user(
        topic.number,
        &subscription.user,
        STARTED,
        subscription.until,
    );
    let expiry = remembered_until(topic, subscription.until);
    batch.put_sequenced(keyspace, &key, &value, Some(expiry));
}

/// Remembers that a subscription was ended: what it matched before counts, later publications do
/// not.
pub(crate) fn end(
    batch: &mut WriteBatch,
    (keyspace, topic): (&Keyspace, &TopicSpec),
    name: &SubscriptionLocator,
) {
    let Some(user) = &name.user else { return };
    let mut value = Vec::new();
    value.put_varint(name.sequence);
    let key = keys::user(topic.number, user, ENDED, name.until);
    batch.put_sequenced(
        keyspace,
        &key,
        &value,
        Some(remembered_until(topic, name.until)),
    );
}

/// The remembered subscriptions of a user.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionHistory {
    begun: Vec<StoredRecord<SubscriptionRecord>>,
    ended: HashMap<Sequence, Sequence>,
}

impl SubscriptionHistory {
    /// Reads those created before an operation that had not ended at `from`.
    pub(crate) fn read(
        (db, keyspace, snapshot): (&Db, &Keyspace, &DbSnapshot),
        (topic, user): (&TopicSpec, &[u8]),
        (from, before): (Millis, Sequence),
    ) -> Result<Self> {
        let mut memory = Self::default();
        for kind in [STARTED, ENDED] {
            let lower = keys::user(topic.number, user, kind, Millis::MAX);
            let upper = prefix_end(&keys::user(topic.number, user, kind, from));
            let upper = upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let lower = Bound::Included(lower.as_slice());
            let mut scan = db.scan(keyspace, lower, upper, Some(snapshot))?;
            scan.first()?;
            while scan.is_valid() {
                memory.take(scan.key(), scan.value(), before)?;
                scan.advance()?;
            }
        }
        Ok(memory)
    }

    fn take(&mut self, key: &[u8], value: &[u8], before: Sequence) -> Result<()> {
        let what = "an entry of a user is malformed although its checksum matches";
        let malformed = Error::Malformed { what };
        let (_, kind, time, sequence) = keys::tail(key).ok_or(malformed.clone())?;
        if sequence >= before {
            return Ok(());
        }
        if kind == ENDED {
            let target = ByteReader::new(value).varint().map_err(|_| malformed)?;
            let first = self.ended.entry(target).or_insert(sequence);
            *first = sequence.min(*first);
            return Ok(());
        }
        let stored = record::decode(value, (&[], time, sequence))?;
        self.begun.push(stored);
        Ok(())
    }

    /// Whether one of them that is older than `than` has matched a publication.
    pub(crate) fn has_matched(
        &self,
        publication: &StoredRecord<PublicationRecord>,
        than: Sequence,
        rule: MatchRule<'_>,
    ) -> bool {
        self.begun.iter().any(|known| {
            let later = known.sequence.max(publication.sequence);
            let ended = self.ended.get(&known.sequence);
            known.sequence < than
                && ended.is_none_or(|end| *end > later)
                && rule.is_match(known.side(), publication.side())
        })
    }
}

/// Keeps only the oldest of each user among subscriptions with `unseen_only`, which are in order.
pub(crate) fn oldest_of_users(subscriptions: &mut Vec<StoredRecord<SubscriptionRecord>>) {
    let mut users: HashSet<Vec<u8>> = HashSet::new();
    subscriptions.retain(|subscription| {
        let subscription = &subscription.record;
        !subscription.unseen_only || users.insert(subscription.user.clone())
    });
}
