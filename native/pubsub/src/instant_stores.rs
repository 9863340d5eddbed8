//! The two stores with immediate matching, which differ only in the layout of lists.

use std::sync::Arc;

use rillbase_engine::{Db, Expiry, KeyHead, KeyspaceOptions, Millis, Sequence};

use crate::error::Result;
use crate::instant::Instant;
use crate::keys::{self, TopicKeyspaces};
use crate::lookup::{Cost, TimeWindow};
use crate::name::SubscriptionLocator;
use crate::place::TopicPlace;
use crate::record::{PublicationRecord, StoredRecord, SubscriptionRecord};
use crate::staged::StagedOperations;
use crate::store::{StoreAnswer, StoreOptions, TopicOperation, TopicSpec, TopicStore};

/// The options of topic keyspaces: all versions of a key expire together, and filters know which
/// lists a table has, so that a lookup reads only tables with entries of the lists it searches.
pub fn keyspace_options() -> KeyspaceOptions {
    KeyspaceOptions {
        expiry: Expiry::ByKey,
        head: KeyHead::FixedTail(keys::PLACE_BYTES),
        ..KeyspaceOptions::default()
    }
}

/// Subscriptions and publications in one keyspace, where those of an id are adjacent: one scan, and
/// often one block, has both.
#[derive(Debug)]
pub struct DualDb(Instant);

impl DualDb {
    /// Opens the store with a name in a database.
    pub fn open(
        db: &Arc<Db>,
        name: &str,
        keyspace: KeyspaceOptions,
        options: StoreOptions,
    ) -> Result<Self> {
        let keyspace = db.create_keyspace(name, keyspace)?;
        let spaces = TopicKeyspaces {
            subscriptions: keyspace.clone(),
            publications: keyspace,
        };
        Ok(Self(Instant::new(Arc::clone(db), spaces, options)))
    }

    /// Prepares operations, each in its topic, that become durable together with other writes. If
    /// one is rejected, none is applied.
    pub fn stage<'a>(
        &'a self,
        operations: &'a [(&'a TopicSpec, &'a TopicOperation)],
    ) -> Result<StagedOperations<'a>> {
        self.0.stage(operations)
    }
}

/// Subscriptions and publications in separate keyspaces: simple, but finding both takes two
/// searches.
#[derive(Debug)]
pub struct TwoDb(Instant);

impl TwoDb {
    /// Opens the store with a name in a database.
    pub fn open(
        db: &Arc<Db>,
        name: &str,
        keyspace: KeyspaceOptions,
        options: StoreOptions,
    ) -> Result<Self> {
        let spaces = TopicKeyspaces {
            subscriptions: db
                .create_keyspace(&format!("{name}/subscriptions"), keyspace.clone())?,
            publications: db.create_keyspace(&format!("{name}/publications"), keyspace)?,
        };
        Ok(Self(Instant::new(Arc::clone(db), spaces, options)))
    }
}

macro_rules! answers_at_once {
    ($store:ty) => {
        impl TopicStore for $store {
            fn run_each(
                &self,
                operations: &[(&TopicSpec, &TopicOperation)],
            ) -> Result<Vec<StoreAnswer>> {
                self.0.run(operations)
            }

            fn check(&self, topic: &TopicSpec, operation: &TopicOperation) -> Result<()> {
                self.0.check(topic, operation)
            }

            fn forget(&self, topic: &TopicSpec) -> Result<()> {
                self.0.forget(topic)
            }

            fn get_data(
                &self,
                topic: &TopicSpec,
                place: &TopicPlace,
                window: TimeWindow,
            ) -> Result<StoreAnswer> {
                self.0.find(topic, place, Some(window), None)
            }

            fn get_subscribers(
                &self,
                topic: &TopicSpec,
                place: &TopicPlace,
                at: Millis,
            ) -> Result<StoreAnswer> {
                let keep = |subscription: &_| is_in_window(subscription, at);
                self.0.find(topic, place, None, Some(&keep))
            }

            fn get_data_and_subscribers(
                &self,
                topic: &TopicSpec,
                place: &TopicPlace,
                (window, at): (TimeWindow, Millis),
            ) -> Result<StoreAnswer> {
                let keep = |subscription: &_| is_in_window(subscription, at);
                self.0.find(topic, place, Some(window), Some(&keep))
            }

            fn list(&self, topic: &TopicSpec, place: &TopicPlace) -> Result<StoreAnswer> {
                self.0.find(topic, place, None, Some(&|_| true))
            }

            fn get_subscription(
                &self,
                topic: &TopicSpec,
                name: &SubscriptionLocator,
            ) -> Result<Option<StoredRecord<SubscriptionRecord>>> {
                self.0.get_subscription(topic, name)
            }

            fn unsubscribe(&self, topic: &TopicSpec, name: &SubscriptionLocator) -> Result<bool> {
                self.0.unsubscribe(topic, name)
            }

            fn resume(
                &self,
                topic: &TopicSpec,
                name: &SubscriptionLocator,
                position: Sequence,
            ) -> Result<Option<Vec<StoredRecord<PublicationRecord>>>> {
                self.0.resume(topic, name, position)
            }

            fn cost(&self) -> Cost {
                self.0.cost()
            }
        }
    };
}

answers_at_once!(DualDb);
answers_at_once!(TwoDb);

/// Whether the time of a publication is within a subscription's.
fn is_in_window(subscription: &SubscriptionRecord, at: Millis) -> bool {
    (subscription.from..=subscription.until).contains(&at)
}
