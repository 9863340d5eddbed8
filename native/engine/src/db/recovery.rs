//! Opening: the manifest lists the tables, and the log has what is not in them yet.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::{Mutex, RwLock};

use super::changes::Retention;
use super::description::{Described, Description, describe, log_dir};
use super::publish::Publisher;
use super::recent::Recent;
use super::reserve;
use super::{CommitState, DbCore, Keyspace, KeyspaceMap, ManifestState};
use crate::cache::BlockCache;
use crate::clock::MonotonicTime;
use crate::error::{Error, Result};
use crate::memtable::Memtable;
use crate::options::DbOptions;
use crate::version::KeyspaceVersion;
use crate::version::file::{Graveyard, TableFile};
use crate::version::manifest::{self, Manifest};
use crate::version::table_cache::{self, TableCache};
use crate::vfs::{Vfs, make_dir};
use crate::wal::Wal;

const LOCK: &str = "LOCK";

/// Ensures that the database is not open elsewhere.
pub(crate) fn lock(vfs: &dyn Vfs, dir: &Path) -> Result<Box<dyn crate::vfs::LockGuard>> {
    vfs.lock(&dir.join(LOCK))
}

/// Opens or creates a database. Without space for that, the reserve is released.
pub(crate) fn open(dir: &Path, options: DbOptions) -> Result<Arc<DbCore>> {
    match open_within(dir, options.clone()) {
        Err(error) if error.is_full() && reserve::give_up(&*options.vfs, dir)? => {
            open_within(dir, options)
        }
        opened => opened,
    }
}

fn open_within(dir: &Path, options: DbOptions) -> Result<Arc<DbCore>> {
    let vfs = Arc::clone(&options.vfs);
    make_dir(&*vfs, dir)?;
    let lock = lock(&*vfs, dir)?;
    let description = describe(&*vfs, dir)?;
    let names = vfs.list(dir)?;
    if description.is_none()
        && names
            .iter()
            .any(|name| table_cache::number_of(name).is_some())
    {
        let detail = "it is missing, although there are tables";
        return Err(Error::corruption(&dir.join("CURRENT"), 0, detail));
    }
    let description = match description {
        Some(description) => description,
        None => Description::of(Vec::new()).unwrap_or_default(),
    };
    check_files(dir, &description, &names)?;
    let used = names
        .iter()
        .filter_map(|name| table_cache::number_of(name).or_else(|| manifest::number_of(name)));
    let number = used
        .max()
        .map_or(0, |used| used + 1)
        .max(description.next_file);
    let manifest = Manifest::create(&vfs, dir, number, &description.edits(number + 1))?;
    remove_leftovers(&*vfs, dir, &description, &names, number)?;
    let log = Wal::open(Arc::clone(&vfs), &log_dir(dir), &options.log)?;
    let core = build(dir, options, lock, &description, manifest, number + 1, log)?;
    core.lower_replay(description.replay_from)?;
    super::replay::replay(&core, &description)?;
    Ok(core)
}

/// All tables must exist. Their sizes and checksums are verified when they are opened.
fn check_files(dir: &Path, description: &Description, names: &[String]) -> Result<()> {
    let there: HashSet<&str> = names.iter().map(String::as_str).collect();
    for (number, _) in description.files() {
        let name = table_cache::name_of(number);
        if !there.contains(name.as_str()) {
            return Err(Error::corruption(
                &dir.join(name),
                0,
                "the table is missing",
            ));
        }
    }
    Ok(())
}

/// Removes what a crash left: tables that are not in the manifest, and older manifests.
fn remove_leftovers(
    vfs: &dyn Vfs,
    dir: &Path,
    description: &Description,
    names: &[String],
    manifest: u64,
) -> Result<()> {
    let tables: HashSet<u64> = description.files().map(|(number, _)| number).collect();
    for name in names {
        let table = table_cache::number_of(name).is_some_and(|number| !tables.contains(&number));
        let old = manifest::number_of(name).is_some_and(|number| number != manifest);
        if table || old {
            vfs.remove(&dir.join(name))?;
        }
    }
    Ok(())
}

fn build(
    dir: &Path,
    options: DbOptions,
    lock: Box<dyn crate::vfs::LockGuard>,
    description: &Description,
    manifest: Manifest,
    next_file: u64,
    log: Wal,
) -> Result<Arc<DbCore>> {
    let vfs = Arc::clone(&options.vfs);
    let cache = Arc::new(BlockCache::new(
        options.cache_bytes,
        options.table_cache_bytes / 2,
    ));
    let tables = TableCache::new(
        Arc::clone(&vfs),
        dir,
        Arc::clone(&cache),
        options.table_cache_bytes / 2,
    );
    let graveyard = Graveyard::default();
    let described = description.keyspaces.iter();
    let open = |(&id, described)| keyspace_of(id, described, &options, &tables, &graveyard);
    let keyspaces = described.map(open).collect::<Result<KeyspaceMap>>()?;
    let active = keyspaces.iter().map(|keyspace| {
        let memtable = Arc::clone(&keyspace.view().active);
        (keyspace.id(), (keyspace.clone(), memtable))
    });
    let end = log.indexes().end;
    let replay_from = description.replay_from.min(end);
    let retention = Retention::new(options.retained_log_bytes, replay_from);
    let time = MonotonicTime::new(Arc::clone(&options.clock));
    time.observe(description.time);
    Ok(Arc::new(DbCore {
        commit: Mutex::new(CommitState {
            next_sequence: description.sequence + 1,
            active: active.collect(),
            recent: Recent::default(),
            stalled_behind: None,
        }),
        vfs,
        dir: dir.to_owned(),
        options,
        time,
        wal: log,
        cache,
        tables: Arc::new(tables),
        keyspaces: RwLock::new(keyspaces),
        publisher: Publisher::default(),
        snapshots: super::snapshots::Snapshots::default(),
        state: Mutex::new(ManifestState {
            manifest,
            next_keyspace: description.next_keyspace,
        }),
        next_file: AtomicU64::new(next_file),
        work: super::background::Work::default(),
        stalls: super::space::Stalls::default(),
        poison: std::sync::OnceLock::new(),
        stats: super::stats::Counters::default(),
        graveyard,
        owed_delay: Mutex::default(),
        logged_bytes: AtomicU64::new(0),
        replayed: AtomicU64::new(0),
        retention,
        _lock: lock,
    }))
}

fn keyspace_of(
    id: u64,
    described: &Described,
    options: &DbOptions,
    tables: &TableCache,
    graveyard: &Graveyard,
) -> Result<Keyspace> {
    let name = &described.name;
    let own = options.keyspace_options(name);
    let merge = own.merge.as_ref().map_or("", |merge| merge.name());
    let unknown = own.merge.is_none() && options.unknown_merges;
    if merge != described.merge && !unknown {
        let what = format!(
            "keyspace {name:?} was created with merge {:?} and cannot be opened with {merge:?}",
            described.merge
        );
        return Err(Error::InvalidArgument { what });
    }
    let files = described.files.values().map(|(level, run, meta)| {
        let path = tables.path_of(meta.number);
        (*level, *run, TableFile::new(meta.clone(), path, graveyard))
    });
    let files: Vec<(usize, u64, Arc<TableFile>)> = files.collect();
    crate::compaction::layout::check(&own)?;
    let mut version =
        KeyspaceVersion::empty().changed(&HashSet::new(), &files, Some(described.flushed));
    if let Some((layout, cursor)) = &described.cursor {
        version = version.with_cursor(layout, cursor);
    }
    let memtable = Arc::new(Memtable::of(&own));
    let named = (name.clone(), described.merge.clone());
    Ok(Keyspace::new(id, named, own, memtable, version))
}
