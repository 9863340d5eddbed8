//! A store on an in-memory disk with a manual clock, and a naive model of it.

pub(crate) mod model;

use std::sync::{Arc, Mutex};

use rillbase_engine::vfs::MemoryVfs;
use rillbase_engine::{
    Clock, Db, DbOptions, Durability, KeyspaceOptions, ManualClock, Sequence, Strategy,
};
use rillbase_pubsub::{
    Delivery, DeliverySink, DualDb, Ids, PublicationRecord, StoreAnswer, StoreOptions,
    StoredRecord, SubscriptionRecord, TopicSpec, TopicStore, TwoDb, keyspace_options,
};
use rillbase_query::bson::DocumentBuf;
use rillbase_query::ejson;

/// The start of the clock.
pub(crate) const START: u64 = 1_000_000;
/// The maximum lifetime of publications.
pub(crate) const RETENTION: u64 = 20_000;

/// The tested store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Dual,
    Two,
}

/// A database that can be closed and opened again.
pub(crate) struct Disk {
    vfs: Arc<MemoryVfs>,
    pub(crate) clock: Arc<ManualClock>,
    strategy: Strategy,
    threads: usize,
}

impl Disk {
    pub(crate) fn new(strategy: Strategy, threads: usize) -> Self {
        Self {
            vfs: Arc::new(MemoryVfs::new()),
            clock: Arc::new(ManualClock::new(START)),
            strategy,
            threads,
        }
    }

    pub(crate) fn keyspace(&self) -> KeyspaceOptions {
        KeyspaceOptions {
            strategy: self.strategy,
            memtable_bytes: 4096,
            block_bytes: 256,
            table_bytes: 2048,
            base_bytes: 4096,
            compact_at_runs: 2,
            ..keyspace_options()
        }
    }

    pub(crate) fn open(&self) -> Arc<Db> {
        let options = DbOptions {
            vfs: Arc::clone(&self.vfs) as _,
            clock: Arc::clone(&self.clock) as Arc<dyn Clock>,
            background_threads: self.threads,
            default_keyspace: self.keyspace(),
            ..DbOptions::default()
        };
        Arc::new(Db::open("/topics", options).unwrap())
    }

    pub(crate) fn store(
        &self,
        db: &Arc<Db>,
        kind: Kind,
        sink: Option<Arc<dyn DeliverySink>>,
    ) -> Arc<dyn TopicStore> {
        let options = StoreOptions {
            durability: Durability::Buffered,
            sink,
        };
        let keyspace = self.keyspace();
        match kind {
            Kind::Dual => Arc::new(DualDb::open(db, "topics", keyspace, options).unwrap()),
            Kind::Two => Arc::new(TwoDb::open(db, "topics", keyspace, options).unwrap()),
        }
    }
}

pub(crate) fn topic(ids: Ids) -> TopicSpec {
    TopicSpec {
        number: 7,
        ids,
        retention: RETENTION,
    }
}

/// A document as BSON.
pub(crate) fn bson(text: &str) -> Vec<u8> {
    let document: DocumentBuf = ejson::parse_document(text.as_bytes()).unwrap();
    document.into_bytes()
}

/// A publication at `at` that lives for `life`.
pub(crate) fn publication(id: &str, at: u64, life: u64) -> PublicationRecord {
    PublicationRecord {
        at,
        until: at + life,
        id: id.as_bytes().to_vec(),
        data: Vec::new(),
    }
}

/// A subscription to a time window.
pub(crate) fn subscription(id: &str, from: u64, until: u64) -> SubscriptionRecord {
    SubscriptionRecord {
        from,
        until,
        id: id.as_bytes().to_vec(),
        ..SubscriptionRecord::default()
    }
}

fn names<T>(found: &[StoredRecord<T>], id: impl Fn(&T) -> &[u8]) -> Vec<String> {
    let name = |found: &StoredRecord<T>| String::from_utf8(id(&found.record).to_vec()).unwrap();
    found.iter().map(name).collect()
}

/// The names of publications that were found.
pub(crate) fn publications(answer: &StoreAnswer) -> Vec<String> {
    publication_names(&answer.publications)
}

/// The names of publications.
pub(crate) fn publication_names(found: &[StoredRecord<PublicationRecord>]) -> Vec<String> {
    names(found, |publication| &publication.id)
}

/// The names of subscriptions that were found.
pub(crate) fn subscriptions(answer: &StoreAnswer) -> Vec<String> {
    names(&answer.subscriptions, |wish| &wish.id)
}

/// The deliveries to subscribers, in order.
#[derive(Debug, Default)]
pub(crate) struct DeliveryLog(Mutex<Vec<(Sequence, Sequence)>>);

impl DeliverySink for DeliveryLog {
    fn deliver(&self, deliveries: Vec<Delivery>) {
        let pairs = deliveries.iter().map(|delivery| {
            (
                delivery.publication.sequence,
                delivery.subscription.sequence,
            )
        });
        self.0.lock().unwrap().extend(pairs);
    }
}

impl DeliveryLog {
    /// Each publication with a subscription that received it, in order.
    pub(crate) fn pairs(&self) -> Vec<(Sequence, Sequence)> {
        self.0.lock().unwrap().clone()
    }
}
