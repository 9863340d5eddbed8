//! All native collections of a database.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard, RwLock};
use rillbase_documents::definition::CollectionDefinition;
use rillbase_engine::{
    Db, DbOptions, DbSnapshot, Durability, Extractor, KeyHead, Keyspace, KeyspaceOptions, Millis,
    Sequence, WriteBatch,
};

use crate::counters::{Greatest, PairSum, decode_pair};
use crate::definition::{IndexTechnique, MAX_COLLECTION, NativeDefinition};
use crate::embedded::EmbeddedIndexes;
use crate::error::{Error, Result};
use crate::feed::WrittenGroups;
use crate::format::{CHANGES, DOCUMENTS, EntryHeads, prefix};
use crate::plan::ScanPlan;
use crate::usage::UsageCounters;

/// Collections and claims share this many commit queues.
const QUEUES: usize = 1024;
const HOUR_MS: Millis = 3_600_000;
/// The floors of more hours than this are merged.
const MAX_FLOOR_HOURS: usize = 8;

const ENTRIES: &str = "collections";
const DEFINITIONS: &str = "collection-definitions";
const COUNTS: &str = "collection-counts";
const FLOORS: &str = "collection-floors";
const CLAIMS: &str = "collection-claims";

/// A collection's definition, compiled.
#[derive(Debug)]
pub(crate) struct InstalledCollection {
    pub(crate) number: u64,
    /// Snapshots before this sequence may lack entries of its indexes.
    pub(crate) since: Sequence,
    pub(crate) definition: NativeDefinition,
    pub(crate) compiled: Arc<CollectionDefinition>,
    pub(crate) usage: UsageCounters,
}

/// The size of a collection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CollectionSize {
    /// Documents that exist.
    pub documents: u64,
    /// The bytes of their bodies.
    pub bytes: u64,
}

/// The version after which documents without a row continue: a tombstone that may have expired had
/// at most this version.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct VersionFloor {
    pub(crate) version: i64,
    /// The number of hours with a floor of their own.
    hours: usize,
}

/// The collections of a database.
#[derive(Debug)]
pub struct Collections {
    pub(crate) db: Arc<Db>,
    /// Documents and entries of indexes.
    pub(crate) entries: Keyspace,
    definitions: Keyspace,
    pub(crate) counts: Keyspace,
    pub(crate) floors: Keyspace,
    pub(crate) claims: Keyspace,
    embedded: Arc<EmbeddedIndexes>,
    installed: RwLock<HashMap<u64, Arc<InstalledCollection>>>,
    queues: Box<[Mutex<()>]>,
    pub(crate) written: Arc<WrittenGroups>,
}

impl Collections {
    /// The options of a database with the keyspaces of collections.
    #[must_use]
    pub fn options(options: DbOptions, embedded: &Arc<EmbeddedIndexes>) -> DbOptions {
        // A memtable is filled while another one is flushed.
        let entries = KeyspaceOptions {
            memtable_bytes: options.memtables_bytes / 2,
            head: KeyHead::Function(Arc::new(EntryHeads)),
            extractor: Some(Arc::clone(embedded) as Arc<dyn Extractor>),
            ..KeyspaceOptions::default()
        };
        let counts = KeyspaceOptions {
            merge: Some(Arc::new(PairSum)),
            ..KeyspaceOptions::default()
        };
        let floors = KeyspaceOptions {
            merge: Some(Arc::new(Greatest)),
            ..KeyspaceOptions::default()
        };
        options
            .keyspace(ENTRIES, entries)
            .keyspace(DEFINITIONS, KeyspaceOptions::default())
            .keyspace(COUNTS, counts)
            .keyspace(FLOORS, floors)
            .keyspace(CLAIMS, KeyspaceOptions::default())
    }

    /// Opens the collections of a database that was opened with [`Self::options`].
    pub fn open(db: &Arc<Db>, embedded: Arc<EmbeddedIndexes>) -> Result<Self> {
        let keyspace = |name: &str| {
            db.keyspace(name)
                .ok_or(Error::Malformed("a database without collections"))
        };
        let definitions = keyspace(DEFINITIONS)?;
        let mut installed = HashMap::new();
        let mut scan = db.scan_prefix(&definitions, &[], None)?;
        scan.first()?;
        while scan.is_valid() {
            let number = scan.key().try_into().map(u64::from_be_bytes);
            let number = number.map_err(|_| Error::Malformed("the key of a definition"))?;
            let definition = NativeDefinition::decode(scan.value())?;
            embedded.install(number, &definition.indexes);
            installed.insert(number, Arc::new(install(number, definition, None)?));
            scan.advance()?;
        }
        Ok(Self {
            entries: keyspace(ENTRIES)?,
            counts: keyspace(COUNTS)?,
            floors: keyspace(FLOORS)?,
            claims: keyspace(CLAIMS)?,
            definitions,
            db: Arc::clone(db),
            installed: RwLock::new(installed),
            embedded,
            queues: (0..QUEUES).map(|_| Mutex::default()).collect(),
            written: Arc::default(),
        })
    }

    /// Locks the commit queues of collections and claims by their numbers, in ascending order.
    pub(crate) fn lock_queues(
        &self,
        numbers: impl Iterator<Item = u64>,
    ) -> Vec<MutexGuard<'_, ()>> {
        let queues = numbers.map(|number| number % QUEUES as u64);
        let queues: BTreeSet<usize> = queues.filter_map(|queue| queue.try_into().ok()).collect();
        let queues = queues
            .into_iter()
            .filter_map(|queue| self.queues.get(queue));
        queues.map(Mutex::lock).collect()
    }

    pub(crate) fn installed(&self, collection: u64) -> Result<Arc<InstalledCollection>> {
        let installed = self.installed.read().get(&collection).cloned();
        installed.ok_or(Error::NoCollection)
    }

    /// The installed collection, if its definition has this version.
    pub(crate) fn current(
        &self,
        collection: u64,
        write_version: u64,
    ) -> Result<Arc<InstalledCollection>> {
        let installed = self.installed(collection)?;
        let version = installed.definition.write_version;
        if version != write_version {
            return Err(Error::Stale { installed: version });
        }
        Ok(installed)
    }

    /// Fails if the definition has another version.
    pub fn check_version(&self, collection: u64, write_version: u64) -> Result<()> {
        self.current(collection, write_version).map(|_| ())
    }

    /// Fails if the index of a plan was dropped. What was read by it before may lack documents: the
    /// values of an embedded index are not extracted any more.
    pub fn check_index(&self, collection: u64, plan: &ScanPlan) -> Result<()> {
        let installed = self.installed(collection)?;
        let is_present =
            plan.index == DOCUMENTS || installed.definition.index(plan.index).is_some();
        is_present.then_some(()).ok_or(Error::NoIndex)
    }

    /// The installed definition of a collection.
    pub fn definition(&self, collection: u64) -> Result<NativeDefinition> {
        Ok(self.installed(collection)?.definition.clone())
    }

    /// Installs a definition, durably, between two groups of writes. One whose version is not
    /// greater than the installed one's changes nothing. The entries of indexes that it no longer
    /// has are removed.
    pub fn define(&self, collection: u64, mut definition: NativeDefinition) -> Result<()> {
        let _queues = self.lock_queues(std::iter::once(collection));
        let before = self.installed(collection).ok();
        if before
            .as_ref()
            .is_some_and(|before| before.definition.write_version >= definition.write_version)
        {
            return Ok(());
        }
        let _installing = self.embedded.lock();
        let version = self.embedded.next_version(self.db.snapshot().sequence());
        for index in &mut definition.indexes {
            let before = before.as_ref().map(|before| &before.definition);
            let before = before.and_then(|before| before.index(index.number));
            index.embedded_since = match index.technique {
                IndexTechnique::Embedded => before.map_or(version, |before| before.embedded_since),
                _ => 0,
            };
        }
        let mut installed = install(collection, definition, before.as_deref())?;
        let definition = &installed.definition;
        let mut batch = WriteBatch::new();
        let key = collection.to_be_bytes();
        batch.put(&self.definitions, &key, &definition.encode());
        for index in before.iter().flat_map(|before| &before.definition.indexes) {
            if definition.index(index.number).is_none() {
                let start = prefix(collection, index.number);
                let end = prefix(collection, index.number.saturating_add(1));
                batch.delete_range(&self.entries, &start, &end);
            }
        }
        if definition.version_floor > 0 {
            let floor = (definition.version_floor, 0);
            self.raise_floor(&mut batch, collection, floor);
        }
        let has_moved = before.as_ref().map(|before| before.definition.move_stage);
        if has_moved.flatten().is_some() && definition.move_stage.is_none() {
            let start = prefix(collection, CHANGES);
            let end = prefix(collection.saturating_add(1), DOCUMENTS);
            batch.delete_range(&self.entries, &start, &end);
        }
        self.db.write(batch, Durability::Sync)?;
        // Values of indexes are extracted from before until after definitions have them. So a query
        // whose index is still there once it has read did not miss any.
        let mut indexes = definition.indexes.clone();
        let before = before.iter().flat_map(|before| &before.definition.indexes);
        indexes.extend(
            before
                .filter(|index| definition.index(index.number).is_none())
                .cloned(),
        );
        self.embedded.install(collection, &indexes);
        installed.since = self.db.snapshot().sequence();
        let mut indexes = installed.definition.indexes.iter();
        let has_new_embedded = indexes.any(|index| index.embedded_since == version);
        let installed = Arc::new(installed);
        let mut all = self.installed.write();
        all.insert(collection, Arc::clone(&installed));
        drop(all);
        self.embedded
            .install(collection, &installed.definition.indexes);
        if has_new_embedded {
            // The next memtable lists the values of the index. If this fails, queries read the
            // collection's documents in this one, and the next write reports the failure.
            self.db.flush_keyspace(&self.entries).ok();
        }
        Ok(())
    }

    /// Removes a collection with all its data. Its number is not used again.
    pub fn remove(&self, collection: u64) -> Result<()> {
        let _queues = self.lock_queues(std::iter::once(collection));
        let (start, end) = (
            collection.to_be_bytes(),
            collection.saturating_add(1).to_be_bytes(),
        );
        let mut batch = WriteBatch::new();
        batch.delete(&self.definitions, &start);
        for keyspace in [&self.entries, &self.counts, &self.floors] {
            batch.delete_range(keyspace, &start, &end);
        }
        self.db.write(batch, Durability::Sync)?;
        self.installed.write().remove(&collection);
        self.embedded.remove(collection);
        Ok(())
    }

    /// Lets the log drop all changes if there are no collections.
    pub fn release_unused(&self) {
        // While it is locked, no collection is added, so nothing is written to one.
        let installed = self.installed.read();
        if installed.is_empty() {
            self.db.release_changes();
        }
    }

    /// The size of a collection.
    pub fn counts(&self, collection: u64, snapshot: Option<&DbSnapshot>) -> Result<CollectionSize> {
        let key = collection.to_be_bytes();
        let value = match snapshot {
            Some(snapshot) => self.db.get_at(&self.counts, &key, snapshot)?,
            None => self.db.get(&self.counts, &key)?,
        };
        let (documents, bytes) = value.map_or((0, 0), |value| decode_pair(&value));
        Ok(CollectionSize {
            documents: u64::try_from(documents).unwrap_or(0),
            bytes: u64::try_from(bytes).unwrap_or(0),
        })
    }

    /// The greatest version of a document that was deleted, also of those that have a row.
    pub fn version_floor(&self, collection: u64) -> Result<i64> {
        Ok(self.floor(collection, Millis::MAX)?.version)
    }

    /// The version floor of a collection.
    pub(crate) fn floor(&self, collection: u64, now: Millis) -> Result<VersionFloor> {
        let start = collection.to_be_bytes();
        let mut scan = self.db.scan_prefix(&self.floors, &start, None)?;
        scan.first()?;
        let mut floor = VersionFloor::default();
        while scan.is_valid() {
            let hour = scan.key().get(8..).and_then(|hour| hour.try_into().ok());
            let hour = hour.map(u64::from_be_bytes);
            let hour = hour.ok_or(Error::Malformed("the key of a version floor"))?;
            // From the beginning of the hour: its tombstones expire at any time within it.
            if hour.saturating_mul(HOUR_MS) > now {
                break;
            }
            let version = scan.value().try_into().map(i64::from_be_bytes);
            let version = version.map_err(|_| Error::Malformed("a version floor"))?;
            floor.version = floor.version.max(version);
            floor.hours += 1;
            scan.advance()?;
        }
        Ok(floor)
    }

    /// Replaces the floors of many hours by a single one.
    pub(crate) fn merge_floors(
        &self,
        batch: &mut WriteBatch,
        collection: u64,
        (floor, now): (VersionFloor, Millis),
    ) {
        if floor.hours > MAX_FLOOR_HOURS {
            let (start, end) = (
                floor_key(collection, 0),
                floor_key(collection, now / HOUR_MS + 1),
            );
            batch.delete_range(&self.floors, &start, &end);
            batch.merge(&self.floors, &start, &floor.version.to_be_bytes());
        }
    }

    /// Records that a tombstone with a version expires.
    pub(crate) fn raise_floor(
        &self,
        batch: &mut WriteBatch,
        collection: u64,
        (version, expiry): (i64, Millis),
    ) {
        let key = floor_key(collection, expiry / HOUR_MS);
        batch.merge(&self.floors, &key, &version.to_be_bytes());
    }
}

fn floor_key(collection: u64, hour: u64) -> Vec<u8> {
    [collection.to_be_bytes(), hour.to_be_bytes()].concat()
}

fn install(
    number: u64,
    definition: NativeDefinition,
    before: Option<&InstalledCollection>,
) -> Result<InstalledCollection> {
    if number > MAX_COLLECTION {
        return Err(Error::Definition("its number has more than 31 bits".into()));
    }
    Ok(InstalledCollection {
        number,
        since: 0,
        compiled: definition.compile(number)?,
        usage: UsageCounters::continued(before.map(|before| &before.usage), &definition),
        definition,
    })
}
