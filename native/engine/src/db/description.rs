//! What the manifest of a database describes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::key::Sequence;
use crate::version::LEVELS;
use crate::version::edit::Edit;
use crate::version::file::FileMeta;
use crate::version::manifest;
use crate::vfs::Vfs;

const LOG: &str = "log";

/// A keyspace as the manifest describes it.
#[derive(Debug, Default)]
pub(super) struct Described {
    pub(super) name: String,
    pub(super) merge: String,
    pub(super) flushed: Sequence,
    pub(super) files: BTreeMap<u64, (usize, u64, FileMeta)>,
    /// The last layout that chose, and its cursor.
    pub(super) cursor: Option<(String, Vec<u8>)>,
}

/// The contents of a manifest.
#[derive(Debug, Default)]
pub(crate) struct Description {
    pub(super) keyspaces: BTreeMap<u64, Described>,
    pub(super) next_keyspace: u64,
    pub(super) next_file: u64,
    pub(super) sequence: Sequence,
    pub(super) time: u64,
    /// The first record of the log that is read, if there are earlier ones.
    pub(super) replay_from: u64,
}

impl Description {
    pub(crate) fn of(edits: Vec<Edit>) -> Option<Self> {
        let mut description = Self {
            next_keyspace: 1,
            next_file: 1,
            ..Self::default()
        };
        edits
            .into_iter()
            .try_for_each(|edit| description.apply(edit))?;
        Some(description)
    }

    fn apply(&mut self, edit: Edit) -> Option<()> {
        match edit {
            Edit::KeyspaceCreated { id, name, merge } => {
                self.next_keyspace = self.next_keyspace.max(id + 1);
                let described = Described {
                    name,
                    merge,
                    ..Described::default()
                };
                self.keyspaces.insert(id, described);
            }
            Edit::KeyspaceDropped { id } => {
                self.next_keyspace = self.next_keyspace.max(id + 1);
                self.keyspaces.remove(&id);
            }
            Edit::FileAdded {
                keyspace,
                level,
                run,
                meta,
            } => {
                self.next_file = self.next_file.max(meta.number + 1).max(run + 1);
                // Bulk-loaded entries became visible after this edit.
                self.sequence = self.sequence.max(meta.last_sequence);
                let files = &mut self.keyspaces.get_mut(&keyspace)?.files;
                (level < LEVELS).then_some(())?;
                files.insert(meta.number, (level, run, meta));
            }
            Edit::FileRemoved { keyspace, number } => {
                self.keyspaces.get_mut(&keyspace)?.files.remove(&number)?;
            }
            Edit::Flushed { keyspace, sequence } => {
                let flushed = &mut self.keyspaces.get_mut(&keyspace)?.flushed;
                *flushed = sequence.max(*flushed);
            }
            Edit::Cursor {
                keyspace,
                layout,
                cursor,
            } => self.keyspaces.get_mut(&keyspace)?.cursor = Some((layout, cursor)),
            Edit::ReplayFrom { record } => self.replay_from = record,
            Edit::Used {
                file,
                sequence,
                time,
            } => {
                self.next_file = self.next_file.max(file);
                self.sequence = self.sequence.max(sequence);
                self.time = self.time.max(time);
            }
        }
        Some(())
    }

    /// The numbers of all tables.
    pub(crate) fn files(&self) -> impl Iterator<Item = (u64, &FileMeta)> {
        let keyspaces = self.keyspaces.values();
        keyspaces.flat_map(|keyspace| {
            keyspace
                .files
                .iter()
                .map(|(number, (.., meta))| (*number, meta))
        })
    }

    /// The newest sequence that was ever visible.
    pub(crate) fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// The sequence up to which each keyspace is in tables.
    pub(crate) fn flushed(&self) -> impl Iterator<Item = (u64, Sequence)> {
        let keyspaces = self.keyspaces.iter();
        keyspaces.map(|(id, described)| (*id, described.flushed))
    }

    /// The shortest equivalent list of edits.
    pub(super) fn edits(&self, next_file: u64) -> Vec<Edit> {
        let mut edits = vec![Edit::Used {
            file: next_file,
            sequence: self.sequence,
            time: self.time,
        }];
        if self.replay_from > 0 {
            let record = self.replay_from;
            edits.push(Edit::ReplayFrom { record });
        }
        for (&id, keyspace) in &self.keyspaces {
            edits.push(Edit::KeyspaceCreated {
                id,
                name: keyspace.name.clone(),
                merge: keyspace.merge.clone(),
            });
            edits.push(Edit::Flushed {
                keyspace: id,
                sequence: keyspace.flushed,
            });
            let cursor = keyspace.cursor.iter();
            edits.extend(cursor.map(|(layout, cursor)| Edit::Cursor {
                keyspace: id,
                layout: layout.clone(),
                cursor: cursor.clone(),
            }));
            edits.extend(
                keyspace
                    .files
                    .values()
                    .map(|(level, run, meta)| Edit::FileAdded {
                        keyspace: id,
                        level: *level,
                        run: *run,
                        meta: meta.clone(),
                    }),
            );
        }
        edits
    }
}

/// The contents of the directory's manifest.
pub(crate) fn describe(vfs: &dyn Vfs, dir: &Path) -> Result<Option<Description>> {
    let Some(path) = manifest::current(vfs, dir)? else {
        return Ok(None);
    };
    let edits = manifest::read(vfs, &path)?;
    let description = Description::of(edits);
    let detail = "its edits contradict each other";
    description
        .map(Some)
        .ok_or_else(|| Error::corruption(&path, 0, detail))
}

/// The log directory of a database.
pub(crate) fn log_dir(dir: &Path) -> PathBuf {
    dir.join(LOG)
}
