//! The positions up to which subscribers have acknowledged publications.
//!
//! `topic{u64} subscription{u64} → position{u64}`, big-endian, removed with the subscription. A
//! position never decreases: a writer holds the lock from reading the old one until the new one is
//! durable.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rillbase_engine::{
    Db, Durability, GroupResults, GroupTicket, GroupWrite, Keyspace, KeyspaceOptions, Millis,
    Sequence, WriteBatch, WriteGroup, prefix_end,
};
use rillbase_pubsub::SubscriptionLocator;

use crate::refusal::Result;

/// A subscriber's acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ack {
    key: Vec<u8>,
    position: Sequence,
    /// When the subscription ends.
    until: Millis,
}

impl Ack {
    pub(crate) fn new(topic: u64, name: &SubscriptionLocator, position: Sequence) -> Self {
        Self {
            key: key(topic, name.sequence()),
            position,
            until: name.until(),
        }
    }
}

/// Prepared positions; says for each whether it is new.
#[derive(Debug)]
pub(crate) struct StagedAcks<'a> {
    batch: Option<WriteBatch>,
    are_new: Vec<bool>,
    ticket: Option<GroupTicket>,
    _writing: MutexGuard<'a, ()>,
}

impl GroupWrite for StagedAcks<'_> {
    type Outcome = Result<Vec<bool>>;

    fn contribute<'g>(&'g mut self, group: &mut WriteGroup<'g>) {
        self.ticket = self.batch.take().map(|batch| group.write(batch));
    }

    fn complete(self, results: &mut GroupResults) -> Result<Vec<bool>> {
        if let Some(ticket) = self.ticket {
            results.take(ticket)?;
        }
        Ok(self.are_new)
    }
}

/// The positions of all subscriptions.
#[derive(Debug)]
pub(crate) struct Acks {
    db: Arc<Db>,
    keyspace: Keyspace,
    writing: Mutex<()>,
}

impl Acks {
    pub(crate) fn open(db: &Arc<Db>) -> Result<Self> {
        Ok(Self {
            db: Arc::clone(db),
            keyspace: db.create_keyspace("acks", KeyspaceOptions::default())?,
            writing: Mutex::default(),
        })
    }

    /// Prepares positions that become durable together with other writes.
    pub(crate) fn stage(&self, acks: &[&Ack]) -> Result<StagedAcks<'_>> {
        let writing = self.writing.lock();
        let mut known: BTreeMap<&[u8], Sequence> = BTreeMap::new();
        let mut batch = WriteBatch::new();
        let mut are_new = Vec::with_capacity(acks.len());
        for ack in acks {
            let before = match known.get(ack.key.as_slice()) {
                Some(position) => *position,
                None => self.read(&ack.key)?.unwrap_or(0),
            };
            let is_new = ack.position > before;
            if is_new {
                let expiry = ack.until.saturating_add(1);
                let position = ack.position.to_be_bytes();
                batch.put_expiring(&self.keyspace, &ack.key, &position, expiry);
            }
            known.insert(&ack.key, before.max(ack.position));
            are_new.push(is_new);
        }
        Ok(StagedAcks {
            batch: Some(batch),
            are_new,
            ticket: None,
            _writing: writing,
        })
    }

    /// The position up to which a subscription is acknowledged; initially its own.
    pub(crate) fn position(&self, topic: u64, name: &SubscriptionLocator) -> Result<Sequence> {
        let known = self.read(&key(topic, name.sequence()))?;
        Ok(known.unwrap_or_else(|| name.sequence()))
    }

    fn read(&self, key: &[u8]) -> Result<Option<Sequence>> {
        let value = self.db.get(&self.keyspace, key)?;
        let position = value.and_then(|value| value.first_chunk::<8>().copied());
        Ok(position.map(u64::from_be_bytes))
    }

    /// Removes the acknowledgements of a topic.
    pub(crate) fn forget(&self, topic: u64) -> Result<()> {
        let mut batch = WriteBatch::new();
        let start = topic.to_be_bytes();
        if let Some(end) = prefix_end(&start) {
            batch.delete_range(&self.keyspace, &start, &end);
        }
        self.db.write(batch, Durability::Sync)?;
        Ok(())
    }
}

fn key(topic: u64, subscription: Sequence) -> Vec<u8> {
    [topic.to_be_bytes(), subscription.to_be_bytes()].concat()
}
