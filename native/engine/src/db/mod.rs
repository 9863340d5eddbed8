//! The database: keyspaces over one log.
//!
//! - [`write`](self) — `write.rs`: sequence, log, memtable, durable, visible; `publish.rs`: the
//!   order in which writes become visible.
//! - `point_lookup.rs`, `scan.rs`: point lookups and scans; `snapshots.rs`: what they may see.
//! - `search.rs`, `ranked.rs`: entries by their attributes, and in the order of a rank.
//! - `flush.rs`, `compact.rs`: memtables to tables, tables to tables; `rewrite.rs`: how they are
//!   written; `background.rs`, `work_queue.rs`: the threads, and the order of their work.
//! - `recovery.rs`: opening; `replay.rs`: loading the log into memory.
//! - `reserve.rs`: space reserved for opening; `space.rs`: handling a full disk.
//! - `changes.rs`: reading changes from the log, and retaining it for that.
//! - `transaction.rs`, `recent.rs`: first-committer-wins transactions.
//! - `verify.rs`: reading everything; `truncate.rs`: ending a damaged log.
//! - `stats.rs`: counters; `key_sample.rs`: evenly spaced keys of a range.
//!
//! Locks are taken in this order: a keyspace's `flushing` or `compacting`, `state`, `commit`, the
//! publisher's queue, a keyspace's view. `snapshots` is never held with others.

mod background;
pub(crate) mod batch;
mod bulk;
mod changes;
mod compact;
mod copies;
mod description;
mod drafts;
mod flush;
mod group;
mod key_sample;
mod keyspace;
mod keyspace_map;
mod point_lookup;
mod publish;
mod ranked;
mod recent;
mod recovery;
mod replay;
mod reserve;
mod rewrite;
mod scan;
mod search;
pub(crate) mod snapshots;
mod space;
mod stats;
mod transaction;
mod truncate;
mod verify;
mod work_queue;
mod write;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::cache::BlockCache;
use crate::clock::MonotonicTime;
use crate::error::{Error, Result};
use crate::extract::ExtractorVersion;
use crate::key::{Millis, Sequence};
use crate::memtable::Memtable;
use crate::options::{DbOptions, KeyspaceOptions};
use crate::value::ValueBytes;
use crate::version::KeyspaceVersion;
use crate::version::edit::Edit;
use crate::version::file::Graveyard;
use crate::version::manifest::Manifest;
use crate::version::table_cache::TableCache;
use crate::vfs::{LockGuard, Vfs};
use crate::wal::{Durability, Wal};

pub use batch::WriteBatch;
pub use changes::{ChangeBatch, ChangeFeed, LoggedWrite};
pub use copies::restore;
pub use group::{GroupResults, GroupTicket, GroupWrite, WriteGroup};
pub use keyspace::Keyspace;
pub(crate) use keyspace_map::KeyspaceMap;
pub use ranked::{Ranked, RankedEntry};
pub(crate) use scan::Passing;
pub use scan::Scan;
pub use search::{SearchResult, Visited};
pub use snapshots::DbSnapshot;
pub use stats::{KeyspaceStats, LevelStats, Stats};
pub use transaction::DbTransaction;
pub use truncate::truncate_damaged_log;
pub use verify::{DatabaseReport, verify};

/// What the commit lock guards.
#[derive(Debug)]
pub(crate) struct CommitState {
    next_sequence: Sequence,
    /// The active memtables by keyspace.
    active: BTreeMap<u64, (Keyspace, Arc<Memtable>)>,
    recent: recent::Recent,
    /// While the log has no space: the last sequence that will be visible.
    stalled_behind: Option<Sequence>,
}

impl CommitState {
    fn memtables(&self, keyspaces: &[u64]) -> Result<Vec<(Keyspace, Arc<Memtable>)>> {
        let find = |id: &u64| {
            self.active
                .get(id)
                .cloned()
                .ok_or_else(|| Error::InvalidArgument {
                    what: format!("the keyspace {id} no longer exists"),
                })
        };
        keyspaces.iter().map(find).collect()
    }

    fn replace(&mut self, keyspace: &Keyspace, fresh: &Arc<Memtable>) {
        if let Some((_, memtable)) = self.active.get_mut(&keyspace.id()) {
            *memtable = Arc::clone(fresh);
        }
    }
}

/// What the state lock guards: its holder may change versions.
#[derive(Debug)]
pub(crate) struct ManifestState {
    manifest: Manifest,
    next_keyspace: u64,
}

/// The state of an open database.
#[derive(Debug)]
pub(crate) struct DbCore {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    options: DbOptions,
    time: MonotonicTime,
    wal: Wal,
    cache: Arc<BlockCache>,
    tables: Arc<TableCache>,
    keyspaces: RwLock<KeyspaceMap>,
    commit: Mutex<CommitState>,
    publisher: publish::Publisher,
    snapshots: snapshots::Snapshots,
    state: Mutex<ManifestState>,
    next_file: AtomicU64,
    work: background::Work,
    stalls: space::Stalls,
    /// The first failure after which the contents of the disk are unknown.
    poison: OnceLock<String>,
    stats: stats::Counters,
    graveyard: Graveyard,
    /// Delays of writers that were too short to sleep.
    owed_delay: Mutex<Duration>,
    logged_bytes: AtomicU64,
    /// During replay: log records from here on are not in memory yet.
    replayed: AtomicU64,
    retention: changes::Retention,
    _lock: Box<dyn LockGuard>,
}

impl DbCore {
    /// Fails once the database is poisoned.
    #[inline]
    fn check(&self) -> Result<()> {
        if self.poison.get().is_some() {
            return Err(self.poisoned());
        }
        Ok(())
    }

    fn poisoned(&self) -> Error {
        let why = self.poison.get().or(None).cloned();
        let why = why.or_else(|| self.wal.poisoned().map(str::to_owned));
        if let (None, Some(why)) = (&why, self.wal.why_full()) {
            return Error::Full { why };
        }
        Error::Poisoned {
            why: why.unwrap_or_else(|| "a write before this one failed".into()),
        }
    }

    /// Poisons the database: nothing is written after this failure.
    fn poison(&self, error: &Error) {
        if matches!(error, Error::Stopped) || error.is_full() {
            return;
        }
        self.poison.get_or_init(|| error.to_string());
        self.work.wake();
    }

    fn next_file(&self) -> u64 {
        self.next_file.fetch_add(1, Ordering::Relaxed)
    }

    fn all_keyspaces(&self) -> Vec<Keyspace> {
        self.keyspaces.read().iter().cloned().collect()
    }

    fn keyspace_by_id(&self, id: u64) -> Option<Keyspace> {
        self.keyspaces.read().get(id).cloned()
    }

    /// Appends edits to the manifest, durably. Without space they are not in it; any other failure
    /// poisons, because whether they are in it is unknown.
    fn append_edits(
        &self,
        state: &mut MutexGuard<'_, ManifestState>,
        mut edits: Vec<Edit>,
    ) -> Result<()> {
        self.check()?;
        edits.push(Edit::Used {
            file: self.next_file.load(Ordering::Relaxed),
            sequence: self.publisher.visible(),
            time: self.time.now(),
        });
        let appended = state.manifest.append(&edits);
        if let Err(error) = &appended {
            self.poison(error);
        }
        appended
    }

    /// Replaces a memtable by an empty one. The full one has nothing after a sequence, and waits for
    /// its flush.
    fn replace_memtable(
        &self,
        commit: &mut CommitState,
        keyspace: &Keyspace,
        full: &Memtable,
        sequence: Sequence,
    ) {
        full.seal(sequence);
        let fresh = Arc::new(Memtable::of(keyspace.options()));
        commit.replace(keyspace, &fresh);
        keyspace.rotate(fresh);
        self.work.flushes.add(keyspace.id());
    }

    /// Installs another version of a keyspace, without the memtables that were flushed into it.
    fn install(&self, keyspace: &Keyspace, version: KeyspaceVersion, flushed: &[Arc<Memtable>]) {
        keyspace.install(version, flushed);
        self.work.compactions.add(keyspace.id());
    }

    fn create_keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        crate::compaction::layout::check(&options)?;
        let mut state = self.state.lock();
        if let Some(existing) = self.keyspace_by_name(name) {
            return Ok(existing);
        }
        let id = state.next_keyspace;
        let merge = options.merge.as_ref().map_or("", |merge| merge.name());
        let edit = Edit::KeyspaceCreated {
            id,
            name: name.to_owned(),
            merge: merge.to_owned(),
        };
        self.append_edits(&mut state, vec![edit])?;
        state.next_keyspace += 1;
        let memtable = Arc::new(Memtable::of(&options));
        let active = Arc::clone(&memtable);
        let named = (name.to_owned(), merge.to_owned());
        let keyspace = Keyspace::new(id, named, options, memtable, KeyspaceVersion::empty());
        let entry = (keyspace.clone(), active);
        self.commit.lock().active.insert(id, entry);
        self.keyspaces.write().insert(keyspace.clone());
        Ok(keyspace)
    }

    fn keyspace_by_name(&self, name: &str) -> Option<Keyspace> {
        self.keyspaces.read().get_named(name).cloned()
    }

    fn drop_keyspace(&self, keyspace: &Keyspace) -> Result<()> {
        keyspace.0.dropped.store(true, Ordering::Release);
        self.work.wake();
        let _compacting = keyspace.0.compacting.lock();
        let _flushing = keyspace.0.flushing.lock();
        let mut state = self.state.lock();
        let dropped = vec![Edit::KeyspaceDropped { id: keyspace.id() }];
        let appended = self.append_edits(&mut state, dropped);
        if appended.is_err() {
            keyspace.0.dropped.store(false, Ordering::Release);
            self.work.add(keyspace);
        }
        appended?;
        self.commit.lock().active.remove(&keyspace.id());
        self.keyspaces.write().remove(keyspace);
        keyspace
            .view()
            .version
            .files()
            .for_each(|file| file.set_obsolete());
        Ok(())
    }
}

/// An open database. All methods are safe to call concurrently.
#[derive(Debug)]
pub struct Db {
    core: Arc<DbCore>,
    threads: Vec<JoinHandle<()>>,
}

impl Db {
    /// Opens or creates the database in a directory.
    pub fn open(dir: impl AsRef<Path>, options: DbOptions) -> Result<Self> {
        let named = options.keyspaces.clone();
        let core = recovery::open(dir.as_ref(), options)?;
        for (name, options) in named {
            core.create_keyspace(&name, options)?;
        }
        let threads = background::start(&core)?;
        Ok(Self { core, threads })
    }

    /// The keyspace with a name.
    pub fn keyspace(&self, name: &str) -> Option<Keyspace> {
        self.core.keyspace_by_name(name)
    }

    /// Creates a keyspace, or returns the existing one.
    pub fn create_keyspace(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        self.core.create_keyspace(name, options)
    }

    /// Drops a keyspace with all its data. Reads in progress may finish.
    pub fn drop_keyspace(&self, keyspace: &Keyspace) -> Result<()> {
        self.core.drop_keyspace(keyspace)
    }

    /// All keyspaces, in the order of their creation.
    pub fn keyspaces(&self) -> Vec<Keyspace> {
        self.core.all_keyspaces()
    }

    /// Writes a batch; returns the sequence of its last write once it is visible, and as durable as
    /// requested.
    pub fn write(&self, batch: WriteBatch, durability: Durability) -> Result<Sequence> {
        if batch.is_empty() {
            batch.check()?;
            return Ok(self.core.publisher.visible());
        }
        self.core.write(batch, durability, |_| Ok(()))
    }

    /// The value of a key.
    pub fn get(&self, keyspace: &Keyspace, key: &[u8]) -> Result<Option<ValueBytes>> {
        let held = self.hold(keyspace, None);
        self.core.get(keyspace, key, held.as_ref())
    }

    /// The snapshot that a read without one takes if rows may be folded during the read.
    fn hold(&self, keyspace: &Keyspace, snapshot: Option<&DbSnapshot>) -> Option<DbSnapshot> {
        let folds = keyspace.options().accumulates && snapshot.is_none();
        folds.then(|| self.snapshot())
    }

    /// The value of a key as a snapshot sees it.
    pub fn get_at(
        &self,
        keyspace: &Keyspace,
        key: &[u8],
        snapshot: &DbSnapshot,
    ) -> Result<Option<ValueBytes>> {
        self.core.get(keyspace, key, Some(snapshot))
    }

    /// The value of a key and the sequence of its write; of the newest one if operands are folded.
    pub fn get_with_sequence(
        &self,
        keyspace: &Keyspace,
        key: &[u8],
        snapshot: Option<&DbSnapshot>,
    ) -> Result<Option<(Sequence, ValueBytes)>> {
        let view = keyspace.view();
        let held = self.hold(keyspace, snapshot);
        let visibility = point_lookup::Visibility::new(&self.core, snapshot.or(held.as_ref()));
        self.core
            .get_with_sequence(&view, keyspace.options(), key, visibility)
    }

    /// The values of many keys in one snapshot, in the order of the keys.
    pub fn multi_get<'a>(
        &self,
        keyspace: &Keyspace,
        keys: impl IntoIterator<Item = &'a [u8]>,
        snapshot: Option<&DbSnapshot>,
    ) -> Result<Vec<Option<ValueBytes>>> {
        let view = keyspace.view();
        let held = self.hold(keyspace, snapshot);
        let visibility = point_lookup::Visibility::new(&self.core, snapshot.or(held.as_ref()));
        let get = |key| self.core.get_in(&view, keyspace.options(), key, visibility);
        keys.into_iter().map(get).collect()
    }

    /// Whether a key was written or deleted after a sequence.
    pub fn newer_than(&self, keyspace: &Keyspace, key: &[u8], since: Sequence) -> Result<bool> {
        self.core.newer_than(keyspace, key, since)
    }

    /// A scan within bounds. It reads one snapshot: the given one, or the current state. If rows
    /// may be folded during the scan, a snapshot must be given, which retains what the scan sees.
    pub fn scan(
        &self,
        keyspace: &Keyspace,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        snapshot: Option<&DbSnapshot>,
    ) -> Result<Scan> {
        ensure_stable_reads(keyspace, snapshot)?;
        Scan::new(&self.core, keyspace, lower, upper, snapshot)
    }

    pub(crate) fn scan_where(
        &self,
        keyspace: &Keyspace,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        snapshot: Option<&DbSnapshot>,
        passing: Passing<'_>,
    ) -> Result<Scan> {
        ensure_stable_reads(keyspace, snapshot)?;
        Scan::passing(&self.core, keyspace, bounds, snapshot, passing)
    }

    /// A scan, within bounds, over keys whose head is `head`, which [`KeyspaceOptions::head`]
    /// determines. Tables whose filters exclude the head are not read. Other keys within the bounds
    /// may or may not be returned.
    pub fn scan_head(
        &self,
        keyspace: &Keyspace,
        head: &[u8],
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        snapshot: Option<&DbSnapshot>,
    ) -> Result<Scan> {
        let passing = Passing {
            head: (!keyspace.options().head.is_whole()).then_some(head),
            ..Passing::default()
        };
        self.scan_where(keyspace, (lower, upper), snapshot, passing)
    }

    /// A scan over the keys with a prefix.
    pub fn scan_prefix(
        &self,
        keyspace: &Keyspace,
        prefix: &[u8],
        snapshot: Option<&DbSnapshot>,
    ) -> Result<Scan> {
        let end = crate::key::prefix_end(prefix);
        let upper = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.scan(keyspace, Bound::Included(prefix), upper, snapshot)
    }

    /// A snapshot of the current state.
    pub fn snapshot(&self) -> DbSnapshot {
        DbSnapshot::new(&self.core)
    }

    /// Starts a transaction.
    pub fn begin(&self) -> Result<DbTransaction> {
        DbTransaction::begin(&self.core)
    }

    /// The engine's time, in milliseconds since 1970.
    pub fn now(&self) -> Millis {
        self.core.time.now()
    }

    /// Makes all writes durable.
    pub fn sync(&self) -> Result<()> {
        let synced = self.core.wal.sync();
        if let Err(error) = &synced {
            self.core.drop_unwritten();
            self.core.poison(error);
        }
        synced
    }

    /// Flushes all memtables.
    pub fn flush(&self) -> Result<()> {
        self.keyspaces()
            .iter()
            .try_for_each(|keyspace| self.flush_keyspace(keyspace))
    }

    /// Flushes the memtables of a keyspace.
    pub fn flush_keyspace(&self, keyspace: &Keyspace) -> Result<()> {
        let active = Arc::clone(&keyspace.view().active);
        self.core.rotate(keyspace, &active)?;
        while self.core.flush(std::slice::from_ref(keyspace))? {}
        Ok(())
    }

    /// Merges all tables of a keyspace into one run, after a flush.
    pub fn compact(&self, keyspace: &Keyspace) -> Result<()> {
        self.flush()?;
        self.core.compact_everything(keyspace)
    }

    /// Rewrites a table with keys from `start` up to `end` that lacks attributes which the keyspace's
    /// extractor adds from a version on, and returns how many entries it has; `None` if there is no
    /// such table. Memtables are not considered: flush first. Fails if the keyspace has no extractor.
    pub fn rewrite_outdated(
        &self,
        keyspace: &Keyspace,
        (start, end): (&[u8], &[u8]),
        version: u64,
    ) -> Result<Option<u64>> {
        let name = search::extractor_of(keyspace.options())?.name();
        let required = ExtractorVersion { name, version };
        self.core.rewrite_outdated(keyspace, (start, end), required)
    }

    /// Runs due compactions in the calling thread; returns when none is due.
    pub fn compact_due(&self, keyspace: &Keyspace) -> Result<()> {
        self.core.compact_until_calm(keyspace)
    }

    /// Counters since the database was opened.
    pub fn stats(&self) -> Stats {
        self.core.collect_stats()
    }

    /// Why writes are no longer possible, if so.
    pub fn why_poisoned(&self) -> Option<String> {
        self.core.check().err().map(|error| error.to_string())
    }

    /// Makes all writes durable and marks the log as closed. Dropping does the same except for the
    /// mark, and cannot report errors.
    pub fn close(mut self) -> Result<()> {
        self.stop();
        self.core.check()?;
        let core = Arc::clone(&self.core);
        drop(self);
        match Arc::try_unwrap(core) {
            Ok(core) => core.wal.close(),
            // A snapshot or scan is still open.
            Err(core) => core.wal.sync(),
        }
    }

    fn stop(&mut self) {
        self.core.work.stop();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                self.core
                    .poison
                    .get_or_init(|| "a background thread panicked".into());
            }
        }
        self.core.remove_obsolete_files();
    }
}

/// Fails if the data of a scan could change during the scan.
fn ensure_stable_reads(keyspace: &Keyspace, snapshot: Option<&DbSnapshot>) -> Result<()> {
    if snapshot.is_some() || !keyspace.options().accumulates {
        return Ok(());
    }
    Err(Error::InvalidArgument {
        what: "rows that accumulate are scanned at a snapshot".into(),
    })
}

impl Drop for Db {
    fn drop(&mut self) {
        self.stop();
    }
}
