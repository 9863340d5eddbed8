//! Checkpoints, backups and restores: copies of a database.
//!
//! A copy is complete once its `CURRENT` exists, which is written last. Writes made during the copy
//! may or may not be in it; batches are atomic.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::verify::{DatabaseReport, verify};
use super::{Db, DbCore, Keyspace, description};
use crate::error::{Error, Result};
use crate::version::edit::Edit;
use crate::version::file::TableFile;
use crate::version::manifest::{self, Manifest};
use crate::version::table_cache;
use crate::vfs::{Vfs, make_dir};

/// Files are copied in pieces of this size.
const PIECE_BYTES: u64 = 1 << 20;

/// How tables are transferred to the copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// As hard links: immediate, on the same file system.
    Link,
    /// As copies.
    Copy,
}

impl DbCore {
    /// Copies all files and verifies the copy, which reads as much again.
    pub(crate) fn back_up(
        &self,
        to: &Path,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<DatabaseReport> {
        let keyspaces = self.all_keyspaces();
        let expected: u64 = keyspaces
            .iter()
            .map(|space| space.view().version.size())
            .sum();
        let mut copied = 0;
        self.copy_to(to, Transfer::Copy, &mut |bytes| {
            copied += bytes;
            // Compactions continue meanwhile, so that the total may be larger.
            progress(copied, 2 * expected.max(copied));
        })?;
        verify(&self.vfs, to, &mut |checked, total| {
            progress(copied + checked, copied + total);
        })
    }

    /// Copies the open database to a directory that does not exist or is empty. `copied` is called
    /// with the bytes of each file that was copied.
    pub(crate) fn copy_to(
        &self,
        to: &Path,
        transfer: Transfer,
        copied: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let vfs = &self.vfs;
        make_empty(&**vfs, to)?;
        let mut present = HashSet::new();
        if transfer == Transfer::Copy {
            // Most is copied without blocking others.
            let views: Vec<_> = self.all_keyspaces().iter().map(Keyspace::view).collect();
            for file in views.iter().flat_map(|view| view.version.files()) {
                copied(self.transfer(file, to, transfer, &mut present)?);
            }
        }
        // While the state is locked, no flush truncates the log beyond what these tables need.
        let state = self.state.lock();
        let mut needed = HashSet::new();
        let mut edits = vec![Edit::Used {
            file: self.next_file(),
            sequence: self.publisher.visible(),
            time: self.time.now(),
        }];
        for keyspace in self.all_keyspaces() {
            let version = Arc::clone(&keyspace.view().version);
            for file in version.files() {
                copied(self.transfer(file, to, transfer, &mut present)?);
                needed.insert(file.meta.number);
            }
            edits.extend(edits_of(&keyspace));
        }
        let log = description::log_dir(to);
        make_dir(&**vfs, &log)?;
        self.wal.checkpoint(&log)?;
        drop(state);
        for number in present.difference(&needed) {
            vfs.remove(&to.join(table_cache::name_of(*number)))?;
        }
        vfs.sync_dir(to)?;
        Manifest::create(vfs, to, self.next_file(), &edits).map(|_| ())
    }

    /// Transfers a file to the copy, unless it exists; returns the bytes that were copied.
    fn transfer(
        &self,
        file: &TableFile,
        to: &Path,
        transfer: Transfer,
        present: &mut HashSet<u64>,
    ) -> Result<u64> {
        if !present.insert(file.meta.number) {
            return Ok(0);
        }
        let target = to.join(table_cache::name_of(file.meta.number));
        match transfer {
            Transfer::Link => self.vfs.hard_link(file.path(), &target).map(|()| 0),
            Transfer::Copy => copy(&*self.vfs, file.path(), &target),
        }
    }
}

/// The edits that describe a keyspace.
fn edits_of(keyspace: &Keyspace) -> Vec<Edit> {
    let id = keyspace.id();
    let version = Arc::clone(&keyspace.view().version);
    let mut edits = vec![
        Edit::KeyspaceCreated {
            id,
            name: keyspace.name().to_owned(),
            merge: keyspace.0.merge.clone(),
        },
        Edit::Flushed {
            keyspace: id,
            sequence: version.flushed,
        },
    ];
    edits.extend(version.cursor_edit(id));
    for (level, runs) in version.levels.iter().enumerate() {
        for run in runs {
            edits.extend(run.files.iter().map(|file| Edit::FileAdded {
                keyspace: id,
                level,
                run: run.id,
                meta: file.meta.clone(),
            }));
        }
    }
    edits
}

/// Copies a backup, or any database that is not open, into a directory that does not exist or is
/// empty. Both are verified. `progress` is called with the bytes copied.
pub fn restore(
    vfs: &Arc<dyn Vfs>,
    from: &Path,
    to: &Path,
    progress: &mut dyn FnMut(u64),
) -> Result<DatabaseReport> {
    let sound = verify(vfs, from, &mut |_, _| ())?;
    make_empty(&**vfs, to)?;
    let current = manifest::current(&**vfs, from)?.ok_or_else(|| Error::InvalidArgument {
        what: format!("{} contains no database", from.display()),
    })?;
    let tables = description::describe(&**vfs, from)?;
    let numbers: BTreeSet<u64> = tables
        .iter()
        .flat_map(|description| description.files().map(|(number, _)| number))
        .collect();
    let mut copied = 0;
    for number in numbers {
        let name = table_cache::name_of(number);
        copied += copy(&**vfs, &from.join(&name), &to.join(&name))?;
        progress(copied);
    }
    let (from_log, to_log) = (description::log_dir(from), description::log_dir(to));
    make_dir(&**vfs, &to_log)?;
    for name in vfs.list(&from_log)? {
        copy(&**vfs, &from_log.join(&name), &to_log.join(&name))?;
    }
    vfs.sync_dir(&to_log)?;
    let edits = manifest::read(&**vfs, &current)?;
    vfs.sync_dir(to)?;
    Manifest::create(vfs, to, manifest_number(&current), &edits)?;
    let copy = verify(vfs, to, &mut |_, _| ())?;
    if (copy.tables, copy.entries) != (sound.tables, sound.entries) {
        return Err(Error::corruption(to, 0, "the copy differs from the backup"));
    }
    Ok(copy)
}

fn manifest_number(path: &Path) -> u64 {
    let name = path.file_name().and_then(|name| name.to_str());
    name.and_then(manifest::number_of).unwrap_or(1)
}

fn make_empty(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    make_dir(vfs, dir)?;
    if vfs.list(dir)?.is_empty() {
        return Ok(());
    }
    let what = format!("{} is not empty", dir.display());
    Err(Error::InvalidArgument { what })
}

/// Copies a file, durably; returns its size.
fn copy(vfs: &dyn Vfs, from: &Path, to: &Path) -> Result<u64> {
    let source = vfs.open_read(from)?;
    let mut target = vfs.create(to)?;
    let size = source.len()?;
    let mut offset = 0;
    while offset < size {
        let piece = PIECE_BYTES.min(size - offset);
        let mut bytes = vec![0; crate::coding::to_usize(piece)];
        source.read_exact_at(offset, &mut bytes)?;
        target.append(&bytes)?;
        offset += piece;
    }
    target.sync()?;
    Ok(size)
}

impl Db {
    /// Creates an independent database in a directory on the same file system, which does not exist
    /// or is empty. It shares the tables until either database rewrites them.
    pub fn checkpoint(&self, to: impl AsRef<Path>) -> Result<()> {
        self.flush()?;
        self.core.copy_to(to.as_ref(), Transfer::Link, &mut |_| ())
    }

    /// Copies the database to a directory that does not exist or is empty, and verifies the copy.
    /// `progress` is called with the bytes that were copied and checked, and with the total.
    pub fn backup(
        &self,
        to: impl AsRef<Path>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<DatabaseReport> {
        self.flush()?;
        self.core.back_up(to.as_ref(), progress)
    }
}
