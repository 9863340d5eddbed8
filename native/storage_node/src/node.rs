//! The node: one database, the state beside it, and the commands over both.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rillbase_aggregates::Aggregates;
use rillbase_collections::{CollectionFeed, Collections};
use rillbase_engine::{Db, Keyspace, KeyspaceOptions, Millis, Sequence};
use rillbase_pubsub::{DeliverySink, DualDb, StoreOptions, TopicStore, keyspace_options};

use crate::acks::Acks;
use crate::answers::AnswerCache;
use crate::catalog::{Hash, NamespaceCatalog, hash};
use crate::clients::ClientTable;
use crate::in_flight::InFlight;
use crate::live::Live;
use crate::metrics::Metrics;
use crate::options::NodeOptions;
use crate::refusal::Result;
use crate::run::NodeRun;
use crate::snapshots::NamedSnapshots;
use crate::topic::TopicEntry;
use crate::transactions::Transactions;
use crate::watches::QueryWatches;

/// The format marker in a node's directory.
const FORMAT: &[u8] = b"rillbase-node 1\n";
/// The interval, in milliseconds, at which the log is released while there are no collections.
const RELEASE_PERIOD: Millis = 1000;
/// The interval between checks whether chores have ended.
const CHORE_TICK: Duration = Duration::from_millis(5);

/// A storage node.
#[derive(Debug)]
pub struct NodeCore {
    pub(crate) options: NodeOptions,
    pub(crate) db: Arc<Db>,
    pub(crate) store: DualDb,
    pub(crate) aggregates: Aggregates,
    pub(crate) collections: Collections,
    /// The feed of the previous reply, which the next request usually continues.
    pub(crate) feed: Mutex<Option<CollectionFeed>>,
    pub(crate) run: NodeRun,
    /// When the log is released again if there are no collections.
    next_release: AtomicU64,
    pub(crate) snapshots: NamedSnapshots,
    pub(crate) answers: AnswerCache,
    pub(crate) transactions: Transactions,
    pub(crate) watches: QueryWatches,
    pub(crate) catalog: NamespaceCatalog,
    pub(crate) acks: Acks,
    pub(crate) values: Keyspace,
    pub(crate) live: Arc<Live>,
    pub(crate) clients: ClientTable,
    pub(crate) in_flight: Arc<InFlight>,
    pub(crate) metrics: Metrics,
    pub(crate) admin: Hash,
    /// No new work is started.
    pub(crate) is_stopping: AtomicBool,
    /// Connections must check whether they may stay.
    pub(crate) has_revoked: AtomicBool,
}

/// Why a node could not be opened or closed.
#[derive(Debug)]
pub struct NodeFailure(String);

impl std::fmt::Display for NodeFailure {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for NodeFailure {}

impl From<rillbase_engine::Error> for NodeFailure {
    fn from(error: rillbase_engine::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<crate::refusal::CommandRefusal> for NodeFailure {
    fn from(refusal: crate::refusal::CommandRefusal) -> Self {
        Self(refusal.text.into_owned())
    }
}

impl From<std::io::Error> for NodeFailure {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Creates the directory and writes the format marker. The engine makes directories durable up to
/// the first one that is not empty, so it then looks no further than here, where it has access.
fn prepare(directory: &Path) -> std::result::Result<(), NodeFailure> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)?;
    let path = directory.join("FORMAT");
    match std::fs::read(&path) {
        Ok(format) if format == FORMAT => Ok(()),
        // A first start that was interrupted.
        Ok(format) if !FORMAT.starts_with(&format) => {
            let path = path.display();
            Err(NodeFailure(format!(
                "{path} has a format that this version does not support"
            )))
        }
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => {
            let mut file = std::fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&path)?;
            file.write_all(FORMAT)?;
            file.sync_all()?;
            Ok(std::fs::File::open(directory)?.sync_all()?)
        }
    }
}

impl NodeCore {
    /// Opens or creates a node. Its data has been recovered when this returns.
    pub fn open(options: NodeOptions) -> std::result::Result<Self, NodeFailure> {
        let lifetimes = Arc::default();
        let engine = rillbase_engine::DbOptions {
            cache_bytes: options.cache_bytes,
            memtables_bytes: options.memtables_bytes,
            reserve_bytes: options.reserve_bytes,
            retained_log_bytes: options.retained_log_bytes,
            keyspaces: rillbase_aggregates::keyspaces(&lifetimes).into(),
            ..rillbase_engine::DbOptions::default()
        };
        prepare(&options.directory)?;
        let embedded = Arc::default();
        let engine = Collections::options(engine, &embedded);
        let db = Arc::new(Db::open(options.directory.join("db"), engine)?);
        let run = NodeRun::begin(&db)?;
        let live = Arc::new(Live::default());
        let stored = StoreOptions {
            durability: options.durability,
            sink: Some(Arc::clone(&live) as Arc<dyn DeliverySink>),
        };
        let topics = KeyspaceOptions {
            memtable_bytes: options.memtables_bytes / 2,
            ..keyspace_options()
        };
        Ok(Self {
            store: DualDb::open(&db, "topics", topics, stored)
                .map_err(crate::refusal::CommandRefusal::from)?,
            aggregates: Aggregates::open(&db, options.durability, &lifetimes)
                .map_err(crate::refusal::CommandRefusal::from)?,
            collections: Collections::open(&db, embedded)
                .map_err(crate::refusal::CommandRefusal::from)?,
            feed: Mutex::default(),
            run,
            next_release: AtomicU64::new(0),
            snapshots: NamedSnapshots::new(db.now()),
            answers: AnswerCache::default(),
            transactions: Transactions::new(db.now()),
            watches: QueryWatches::default(),
            catalog: NamespaceCatalog::open(&db)?,
            acks: Acks::open(&db)?,
            values: db.create_keyspace("values", KeyspaceOptions::default())?,
            live,
            clients: ClientTable::default(),
            in_flight: InFlight::new(options.in_flight_bytes),
            metrics: Metrics::default(),
            admin: hash(options.token.as_bytes()),
            is_stopping: AtomicBool::new(false),
            has_revoked: AtomicBool::new(false),
            db,
            options,
        })
    }

    /// The node, once no chore of it is running; waits at most this long.
    pub(crate) fn unshared(
        mut node: Arc<Self>,
        longest: Duration,
    ) -> std::result::Result<Self, Arc<Self>> {
        let until = Instant::now() + longest;
        loop {
            match Arc::try_unwrap(node) {
                Err(shared) if Instant::now() < until => node = shared,
                unwrapped => return unwrapped,
            }
            std::thread::sleep(CHORE_TICK);
        }
    }

    /// Records the end of the run, makes all writes durable and marks the log as closed.
    pub fn close(self) -> std::result::Result<(), NodeFailure> {
        let Self {
            db,
            store,
            aggregates,
            collections,
            feed,
            run,
            snapshots,
            transactions,
            watches,
            catalog,
            acks,
            values,
            ..
        } = self;
        drop((
            store,
            aggregates,
            collections,
            feed,
            snapshots,
            transactions,
            watches,
        ));
        drop((catalog, acks, values));
        match Arc::try_unwrap(db) {
            Ok(db) => {
                run.end(&db);
                Ok(db.close()?)
            }
            Err(shared) => Ok(shared.sync()?),
        }
    }

    pub(crate) fn now(&self) -> Millis {
        self.db.now()
    }

    /// The sequence up to which writes are visible.
    pub(crate) fn visible(&self) -> Sequence {
        self.db.snapshot().sequence()
    }

    /// Whether it is stopping.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Deletes the data of a topic that the catalog no longer has.
    pub(crate) fn forget(&self, topic: &TopicEntry) -> Result<()> {
        self.live.end_topic(topic.number);
        self.acks.forget(topic.number)?;
        Ok(self.store.forget(&topic.topic())?)
    }

    /// Periodic work: notifies listeners of what has ended.
    pub(crate) fn tick(&self) {
        let now = self.now();
        self.live.expire(now);
        self.snapshots.expire(now);
        self.answers.expire(now);
        self.transactions.expire(now);
        let due = self.next_release.load(Ordering::Relaxed);
        if now >= due {
            self.next_release
                .store(now.saturating_add(RELEASE_PERIOD), Ordering::Relaxed);
            self.collections.release_unused();
        }
    }
}
