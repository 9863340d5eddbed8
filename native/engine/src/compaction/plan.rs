//! What to compact next.

use std::cmp::{Ordering, Reverse};
use std::collections::HashSet;
use std::sync::Arc;

use super::shape::{KeyspaceShape, Separation, TableShape};
use crate::key::Millis;
use crate::options::{Expiry, KeyspaceOptions};
use crate::version::file::{Largest, TableFile};
use crate::version::{KeyspaceVersion, LEVELS, SortedRun};

/// Input files of one run.
#[derive(Debug, Clone)]
pub(crate) struct CompactionInput {
    pub(crate) level: usize,
    pub(crate) run: Arc<SortedRun>,
    pub(crate) files: Vec<Arc<TableFile>>,
}

/// What happens to the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CompactionAction {
    /// They are merged into new files.
    Merge,
    /// They move to the output level unchanged.
    Move,
    /// They are dropped unread, because everything in them has expired.
    Drop,
}

/// A planned compaction.
#[derive(Debug, Clone)]
pub struct CompactionPlan {
    pub(crate) action: CompactionAction,
    /// Newest first.
    pub(crate) inputs: Vec<CompactionInput>,
    pub(crate) level: usize,
    /// The run of the outputs; `None` for a new one, newer than those of its level.
    pub(crate) run: Option<u64>,
    /// The layout's cursor after this compaction.
    pub(crate) cursor: Option<Vec<u8>>,
}

impl CompactionPlan {
    /// Merges tables into a new run of a level, or into one run per part.
    pub fn merge<'a>(tables: impl IntoIterator<Item = TableShape<'a>>, level: usize) -> Self {
        let mut inputs: Vec<CompactionInput> = Vec::new();
        for table in tables {
            let own = inputs
                .iter_mut()
                .find(|input| input.level == table.level && input.run.id == table.run.id);
            if let Some(input) = own {
                input.files.push(Arc::clone(table.file));
            } else {
                inputs.push(CompactionInput {
                    level: table.level,
                    run: Arc::clone(table.run),
                    files: vec![Arc::clone(table.file)],
                });
            }
        }
        inputs.sort_by_key(|input| (input.level, Reverse(input.run.id)));
        for input in &mut inputs {
            input
                .files
                .sort_by(|left, right| left.meta.smallest.cmp(&right.meta.smallest));
        }
        Self {
            action: CompactionAction::Merge,
            inputs,
            level,
            run: None,
            cursor: None,
        }
    }

    /// The same plan, which also sets the layout's cursor.
    #[must_use]
    pub fn with_cursor(mut self, cursor: impl Into<Vec<u8>>) -> Self {
        self.cursor = Some(cursor.into());
        self
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        self.inputs.iter().flat_map(|input| input.files.iter())
    }

    pub(crate) fn size(&self) -> u64 {
        self.files().map(|file| file.meta.size).sum()
    }

    /// Whether every entry stays above older ones of its key. `separation` says whether that is
    /// required.
    pub(crate) fn keeps_order(&self, version: &KeyspaceVersion, separation: Separation) -> bool {
        if self.level >= LEVELS || self.inputs.is_empty() {
            return false;
        }
        if separation == Separation::Zones {
            return true;
        }
        let chosen: HashSet<u64> = self.files().map(|file| file.meta.number).collect();
        let output = (self.level, Reverse(self.run.unwrap_or(u64::MAX)));
        for (level, runs) in version.levels.iter().enumerate() {
            for run in runs {
                let position = (level, Reverse(run.id));
                for input in &self.inputs {
                    let from = (input.level, Reverse(input.run.id));
                    // A run that stays keeps its order relative to what passes it.
                    let passed = match position.cmp(&from) {
                        Ordering::Less => output <= position,
                        Ordering::Greater => output >= position,
                        Ordering::Equal => false,
                    };
                    if passed && blocks_move(run, input, &chosen) {
                        return false;
                    }
                }
            }
        }
        true
    }
}

/// Whether a run has a file that was not chosen and overlaps an input.
fn blocks_move(run: &SortedRun, input: &CompactionInput, chosen: &HashSet<u64>) -> bool {
    input.files.iter().any(|file| {
        run.overlapping(&file.meta.smallest, &file.meta.largest)
            .any(|other| !chosen.contains(&other.meta.number))
    })
}

/// The most urgent compaction of a keyspace, if one is needed. `now` is the oldest snapshot's time.
pub(crate) fn choose(
    version: &KeyspaceVersion,
    options: &KeyspaceOptions,
    now: Millis,
) -> Option<CompactionPlan> {
    if let Some(plan) = expired(version, options, now) {
        return Some(plan);
    }
    let shape = KeyspaceShape::new(version, options, now);
    options.layout().choose(&shape)
}

/// Merges everything into one run, on request only.
pub(crate) fn everything(
    version: &KeyspaceVersion,
    options: &KeyspaceOptions,
    now: Millis,
) -> Option<CompactionPlan> {
    let mut inputs = Vec::new();
    for (level, runs) in version.levels.iter().enumerate() {
        inputs.extend(runs.iter().map(|run| whole(level, run)));
    }
    if inputs.is_empty() {
        return None;
    }
    let shape = KeyspaceShape::new(version, options, now);
    let level = options.layout().bottom(&shape).min(LEVELS - 1);
    let newest = inputs.first().map(|input| input.run.id);
    Some(CompactionPlan {
        action: CompactionAction::Merge,
        run: if level == 0 { newest } else { None },
        inputs,
        level,
        cursor: None,
    })
}

/// All files of a run.
pub(crate) fn whole(level: usize, run: &Arc<SortedRun>) -> CompactionInput {
    CompactionInput {
        level,
        run: Arc::clone(run),
        files: run.files.clone(),
    }
}

/// A file in which everything has expired. It is dropped unread, unless it hides something: puts
/// that expire by entry hide older entries of their key, as deletes do.
fn expired(
    version: &KeyspaceVersion,
    options: &KeyspaceOptions,
    now: Millis,
) -> Option<CompactionPlan> {
    let zoned = options.layout().separation() == Separation::Zones;
    let mut passed: Vec<&Arc<SortedRun>> = Vec::new();
    if zoned {
        // Older entries may be anywhere.
        passed.extend(version.runs());
    }
    for (level, runs) in version.levels.iter().enumerate().rev() {
        for run in runs.iter().rev() {
            let is_expired = |file: &&Arc<TableFile>| {
                file.meta.entries > 0
                    && file.meta.all_expired_at.is_some_and(|at| at <= now)
                    && (options.expiry == Expiry::ByKey
                        || !passed
                            .iter()
                            .any(|older| older.id != run.id && overlaps(older, file)))
            };
            let files: Vec<Arc<TableFile>> = run.files.iter().filter(is_expired).cloned().collect();
            if !files.is_empty() {
                return Some(CompactionPlan {
                    action: CompactionAction::Drop,
                    inputs: vec![CompactionInput {
                        level,
                        run: Arc::clone(run),
                        files,
                    }],
                    level,
                    run: Some(run.id),
                    cursor: None,
                });
            }
            passed.push(run);
        }
    }
    None
}

fn overlaps(run: &SortedRun, file: &TableFile) -> bool {
    run.overlapping(&file.meta.smallest, &file.meta.largest)
        .next()
        .is_some()
}

/// From the first to the last key of some files.
pub(crate) fn span<'a>(
    files: impl Iterator<Item = &'a Arc<TableFile>>,
) -> Option<(Vec<u8>, Largest)> {
    let mut span: Option<(Vec<u8>, Largest)> = None;
    for file in files {
        let meta = &file.meta;
        span = Some(match span {
            None => (meta.smallest.clone(), meta.largest.clone()),
            Some((smallest, largest)) => (
                smallest.min(meta.smallest.clone()),
                largest.max(meta.largest.clone()),
            ),
        });
    }
    span
}
