//! The tables of a keyspace.
//!
//! A [`KeyspaceVersion`] is immutable: flushes and compactions create new ones, and readers keep
//! the one that they started with, and thereby its files. Levels contain runs, newest first; the
//! files of a run do not overlap. All entries of a key are newer in a newer run, and newer in a
//! lower level.

pub(crate) mod edit;
pub(crate) mod file;
pub(crate) mod manifest;
pub(crate) mod table_cache;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::key::{Sequence, position_by_number, prefix_number};
use edit::Edit;
use file::{FileMeta, Largest, TableFile};

/// The maximum number of levels.
pub(crate) const LEVELS: usize = 8;

/// Non-overlapping files in key order.
#[derive(Debug, Clone)]
pub(crate) struct SortedRun {
    /// Larger is newer.
    pub(crate) id: u64,
    pub(crate) files: Vec<Arc<TableFile>>,
    /// The numbers of the files' last keys.
    numbers: Vec<u64>,
}

impl SortedRun {
    /// A run of ordered files.
    pub(crate) fn new(id: u64, files: Vec<Arc<TableFile>>) -> Self {
        let numbers = files
            .iter()
            .map(|file| prefix_number(&file.meta.largest.key));
        Self {
            id,
            numbers: numbers.collect(),
            files,
        }
    }

    pub(crate) fn size(&self) -> u64 {
        self.files.iter().map(|file| file.meta.size).sum()
    }

    /// The number of the first file that does not end before `key`.
    pub(crate) fn position(&self, key: &[u8]) -> usize {
        position_by_number(&self.numbers, key, |at| {
            self.files
                .get(at)
                .is_some_and(|file| file.meta.largest.is_before(key))
        })
    }

    /// The files that may have `key`: more than one only where a file ends inside a key.
    pub(crate) fn files_of<'a>(
        &'a self,
        key: &'a [u8],
    ) -> impl Iterator<Item = &'a Arc<TableFile>> {
        let files = self.files.iter().skip(self.position(key));
        files.take_while(move |file| file.meta.smallest.as_slice() <= key)
    }

    pub(crate) fn overlapping<'a>(
        &'a self,
        smallest: &'a [u8],
        largest: &'a Largest,
    ) -> impl Iterator<Item = &'a Arc<TableFile>> {
        self.files
            .iter()
            .filter(move |file| file.meta.overlaps(smallest, largest))
    }
}

/// The tables of a keyspace at one time.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyspaceVersion {
    pub(crate) levels: Vec<Vec<Arc<SortedRun>>>,
    /// Everything of the keyspace up to this sequence is in tables.
    pub(crate) flushed: Sequence,
    /// The last layout that chose, and its cursor.
    pub(crate) cursor: Arc<(String, Vec<u8>)>,
}

impl KeyspaceVersion {
    pub(crate) fn empty() -> Self {
        Self {
            levels: vec![Vec::new(); LEVELS],
            flushed: 0,
            cursor: Arc::default(),
        }
    }

    /// All runs, newest first.
    pub(crate) fn runs(&self) -> impl DoubleEndedIterator<Item = &Arc<SortedRun>> {
        self.levels.iter().flatten()
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        self.runs().flat_map(|run| run.files.iter())
    }

    pub(crate) fn level(&self, number: usize) -> &[Arc<SortedRun>] {
        self.levels.get(number).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn level_size(&self, number: usize) -> u64 {
        self.level(number).iter().map(|run| run.size()).sum()
    }

    pub(crate) fn size(&self) -> u64 {
        self.runs().map(|run| run.size()).sum()
    }

    /// The deepest level with a run.
    pub(crate) fn deepest(&self) -> usize {
        self.levels
            .iter()
            .rposition(|runs| !runs.is_empty())
            .unwrap_or(0)
    }

    /// This version without some files and with others, each with its level and run.
    pub(crate) fn changed(
        &self,
        removed: &HashSet<u64>,
        added: &[(usize, u64, Arc<TableFile>)],
        flushed: Option<Sequence>,
    ) -> Self {
        let mut levels: Vec<Vec<Arc<SortedRun>>> = Vec::with_capacity(LEVELS);
        for level in 0..LEVELS {
            let additions = || added.iter().filter(|(of, ..)| *of == level);
            let mut runs: BTreeMap<Reverse<u64>, Vec<Arc<TableFile>>> = BTreeMap::new();
            for run in self.level(level) {
                let kept = run
                    .files
                    .iter()
                    .filter(|file| !removed.contains(&file.meta.number));
                runs.insert(Reverse(run.id), kept.cloned().collect());
            }
            for (_, id, file) in additions() {
                runs.entry(Reverse(*id)).or_default().push(Arc::clone(file));
            }
            runs.retain(|_, files| !files.is_empty());
            let runs = runs.into_iter().map(|(id, mut files)| {
                files.sort_by(|left, right| order_of(&left.meta, &right.meta));
                Arc::new(SortedRun::new(id.0, files))
            });
            levels.push(runs.collect());
        }
        Self {
            levels,
            flushed: flushed.map_or(self.flushed, |sequence| sequence.max(self.flushed)),
            cursor: Arc::clone(&self.cursor),
        }
    }

    /// This version with a layout's cursor.
    pub(crate) fn with_cursor(mut self, layout: &str, cursor: &[u8]) -> Self {
        self.cursor = Arc::new((layout.to_owned(), cursor.to_vec()));
        self
    }

    /// The edit with the layout's cursor, if it has one.
    pub(crate) fn cursor_edit(&self, keyspace: u64) -> Option<Edit> {
        let (layout, cursor) = &*self.cursor;
        (!layout.is_empty()).then(|| Edit::Cursor {
            keyspace,
            layout: layout.clone(),
            cursor: cursor.clone(),
        })
    }
}

/// The order of files in a run; where one ends inside a key, the newer entries come first.
fn order_of(left: &FileMeta, right: &FileMeta) -> std::cmp::Ordering {
    left.smallest
        .cmp(&right.smallest)
        .then_with(|| left.largest.key.cmp(&right.largest.key))
        .then_with(|| right.last_sequence.cmp(&left.last_sequence))
}
