//! A keyspace: an independent ordered map in a database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;

use crate::memtable::Memtable;
use crate::options::{Expiry, KeyspaceOptions};
use crate::version::KeyspaceVersion;

/// A handle of a keyspace. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Keyspace(pub(crate) Arc<KeyspaceState>);

#[derive(Debug)]
pub(crate) struct KeyspaceState {
    pub(crate) id: u64,
    pub(crate) name: String,
    /// The name of its merge, which may not be known; empty if it has none.
    pub(crate) merge: String,
    pub(crate) options: KeyspaceOptions,
    /// Readers load it without a lock; `changing` is locked to replace it.
    view: ArcSwap<SuperVersion>,
    changing: Mutex<()>,
    /// Locked during a flush; one at a time, so that runs are in order.
    pub(crate) flushing: Mutex<()>,
    /// Locked during a compaction.
    pub(crate) compacting: Mutex<()>,
    /// How many flushed runs wait to be compacted.
    pub(crate) flushed_runs: AtomicUsize,
    pub(crate) dropped: AtomicBool,
}

/// Everything that a read needs, as of one time.
#[derive(Debug)]
pub(crate) struct SuperVersion {
    pub(crate) active: Arc<Memtable>,
    /// Full memtables that wait for their flush, newest first.
    pub(crate) waiting: Vec<Arc<Memtable>>,
    pub(crate) version: Arc<KeyspaceVersion>,
}

impl SuperVersion {
    /// All memtables, newest first.
    pub(crate) fn memtables(&self) -> impl Iterator<Item = &Arc<Memtable>> {
        std::iter::once(&self.active).chain(&self.waiting)
    }
}

impl Keyspace {
    /// `name` and `merge` as in the manifest.
    pub(crate) fn new(
        id: u64,
        (name, merge): (String, String),
        options: KeyspaceOptions,
        active: Arc<Memtable>,
        version: KeyspaceVersion,
    ) -> Self {
        let flushed_runs = AtomicUsize::new(version.level(0).len());
        Self(Arc::new(KeyspaceState {
            id,
            name,
            merge,
            options,
            view: ArcSwap::from_pointee(SuperVersion {
                active,
                waiting: Vec::new(),
                version: Arc::new(version),
            }),
            changing: Mutex::new(()),
            flushing: Mutex::new(()),
            compacting: Mutex::new(()),
            flushed_runs,
            dropped: AtomicBool::new(false),
        }))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Its options.
    pub fn options(&self) -> &KeyspaceOptions {
        &self.0.options
    }

    /// Its number, which no other keyspace of the database ever gets.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    pub(crate) fn expires_by_key(&self) -> bool {
        self.0.options.expiry == Expiry::ByKey
    }

    #[inline]
    pub(crate) fn view(&self) -> Arc<SuperVersion> {
        self.0.view.load_full()
    }

    /// The view, for a short read: unlike [`Keyspace::view`] it writes nothing shared, so that
    /// readers do not contend for cache lines.
    #[inline]
    pub(crate) fn glance(&self) -> Guard<Arc<SuperVersion>> {
        self.0.view.load()
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.0.dropped.load(Ordering::Acquire)
    }

    /// Replaces the active memtable; the full one waits for its flush.
    pub(crate) fn rotate(&self, fresh: Arc<Memtable>) {
        let _guard = self.0.changing.lock();
        let view = self.view();
        let mut waiting = vec![Arc::clone(&view.active)];
        waiting.extend(view.waiting.iter().cloned());
        self.0.view.store(Arc::new(SuperVersion {
            active: fresh,
            waiting,
            version: Arc::clone(&view.version),
        }));
    }

    /// Installs another version, without the memtables that were flushed into it.
    pub(crate) fn install(&self, version: KeyspaceVersion, flushed: &[Arc<Memtable>]) {
        self.0
            .flushed_runs
            .store(version.level(0).len(), Ordering::Relaxed);
        let _guard = self.0.changing.lock();
        let view = self.view();
        let kept = view
            .waiting
            .iter()
            .filter(|memtable| !flushed.iter().any(|done| Arc::ptr_eq(done, memtable)));
        self.0.view.store(Arc::new(SuperVersion {
            active: Arc::clone(&view.active),
            waiting: kept.cloned().collect(),
            version: Arc::new(version),
        }));
    }
}
