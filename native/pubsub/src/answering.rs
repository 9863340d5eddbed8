//! The two stores that answer at once, which differ only in where lists lie.

use std::sync::Arc;

use rillbase_engine::{Db, Expiry, KeyspaceOptions, Millis, Sequence};

use crate::error::Result;
use crate::instant::Instant;
use crate::keys::{self, Spaces};
use crate::look::{Cost, Window};
use crate::name::Name;
use crate::place::Place;
use crate::record::{Publication, Stored, Subscription};
use crate::store::{Answer, Operation, Store, StoreOptions, Topic};

/// What keyspaces of topics need: all that is under a key expires together, and filters know which
/// lists a table has, so that a look-up reads only tables that have something of what it looks for.
pub fn keyspace_options() -> KeyspaceOptions {
    KeyspaceOptions {
        expiry: Expiry::ByKey,
        tail_bytes: keys::PLACE_BYTES,
        ..KeyspaceOptions::default()
    }
}

/// Subscriptions and publications in one keyspace, where those of an id are neighbours: one scan, and
/// often one block, has both.
#[derive(Debug)]
pub struct DualDb(Instant);

impl DualDb {
    /// The store of a name in a database.
    pub fn open(
        db: &Arc<Db>,
        name: &str,
        keyspace: KeyspaceOptions,
        options: StoreOptions,
    ) -> Result<Self> {
        let keyspace = db.create_keyspace(name, keyspace)?;
        let spaces = Spaces {
            subscriptions: keyspace.clone(),
            publications: keyspace,
        };
        Ok(Self(Instant::new(Arc::clone(db), spaces, options)))
    }
}

/// Subscriptions and publications in a keyspace each: simple, and a second search for who wants both.
#[derive(Debug)]
pub struct TwoDb(Instant);

impl TwoDb {
    /// The store of a name in a database.
    pub fn open(
        db: &Arc<Db>,
        name: &str,
        keyspace: KeyspaceOptions,
        options: StoreOptions,
    ) -> Result<Self> {
        let spaces = Spaces {
            subscriptions: db
                .create_keyspace(&format!("{name}/subscriptions"), keyspace.clone())?,
            publications: db.create_keyspace(&format!("{name}/publications"), keyspace)?,
        };
        Ok(Self(Instant::new(Arc::clone(db), spaces, options)))
    }
}

macro_rules! answers_at_once {
    ($store:ty) => {
        impl Store for $store {
            fn run_each(&self, operations: &[(&Topic, &Operation)]) -> Result<Vec<Answer>> {
                self.0.run(operations)
            }

            fn check(&self, topic: &Topic, operation: &Operation) -> Result<()> {
                self.0.check(topic, operation)
            }

            fn forget(&self, topic: &Topic) -> Result<()> {
                self.0.forget(topic)
            }

            fn get_data(&self, topic: &Topic, place: &Place, window: Window) -> Result<Answer> {
                self.0.find(topic, place, Some(window), None)
            }

            fn get_subscribers(&self, topic: &Topic, place: &Place, at: Millis) -> Result<Answer> {
                let keep = |wish: &_| is_about(wish, at);
                self.0.find(topic, place, None, Some(&keep))
            }

            fn get_data_and_subscribers(
                &self,
                topic: &Topic,
                place: &Place,
                (window, at): (Window, Millis),
            ) -> Result<Answer> {
                let keep = |wish: &_| is_about(wish, at);
                self.0.find(topic, place, Some(window), Some(&keep))
            }

            fn list(&self, topic: &Topic, place: &Place) -> Result<Answer> {
                self.0.find(topic, place, None, Some(&|_| true))
            }

            fn get_subscription(
                &self,
                topic: &Topic,
                name: &Name,
            ) -> Result<Option<Stored<Subscription>>> {
                self.0.get_subscription(topic, name)
            }

            fn unsubscribe(&self, topic: &Topic, name: &Name) -> Result<bool> {
                self.0.unsubscribe(topic, name)
            }

            fn resume(
                &self,
                topic: &Topic,
                name: &Name,
                position: Sequence,
            ) -> Result<Option<Vec<Stored<Publication>>>> {
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

/// Whether a publication at a time lies within a subscription's.
fn is_about(wish: &Subscription, at: Millis) -> bool {
    (wish.from..=wish.until).contains(&at)
}
