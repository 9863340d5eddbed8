//! What to compact next.

use std::sync::Arc;

use crate::key::Millis;
use crate::options::{Expiry, KeyspaceOptions, Strategy};
use crate::version::file::{File, Largest};
use crate::version::{Run, Version};

/// Files of one run that are read.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub(crate) level: usize,
    pub(crate) run: Arc<Run>,
    pub(crate) files: Vec<Arc<File>>,
}

/// What is done with the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// They are merged into new files.
    Merge,
    /// They come to the output level as they are.
    Move,
    /// They go, unread: all in them has expired.
    Drop,
}

/// A compaction to do.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) action: Action,
    /// The newest first.
    pub(crate) inputs: Vec<Input>,
    pub(crate) level: usize,
    /// The run that the outputs belong to; `None`: a new one, newer than those of its level.
    pub(crate) run: Option<u64>,
}

impl Plan {
    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<File>> {
        self.inputs.iter().flat_map(|input| input.files.iter())
    }

    pub(crate) fn size(&self) -> u64 {
        self.files().map(|file| file.meta.size).sum()
    }
}

/// The compaction that a keyspace needs most, if it needs one. `now` is the oldest snapshot's time.
pub(crate) fn choose(version: &Version, options: &KeyspaceOptions, now: Millis) -> Option<Plan> {
    if let Some(plan) = expired(version, options, now) {
        return Some(plan);
    }
    match options.strategy {
        Strategy::Leveled { fanout } => super::leveled::choose(version, options, fanout),
        Strategy::SizeTiered { runs } => super::tiered::choose(version, options, runs, false),
        Strategy::LazyLeveled { runs } => super::tiered::choose(version, options, runs, true),
        Strategy::TimeWindow { window, runs } => super::window::choose(version, window, runs),
    }
}

/// Merges everything into one run, for which there is no other use than to be asked for.
pub(crate) fn everything(version: &Version, options: &KeyspaceOptions) -> Option<Plan> {
    let mut inputs = Vec::new();
    for (level, runs) in version.levels.iter().enumerate() {
        inputs.extend(runs.iter().map(|run| whole(level, run)));
    }
    if inputs.is_empty() {
        return None;
    }
    let level = match options.strategy {
        Strategy::TimeWindow { .. } => 0,
        Strategy::Leveled { fanout } => {
            super::leveled::level_for(version.size(), options, fanout).max(version.deepest())
        }
        _ => version.deepest().max(1),
    };
    let newest = inputs.first().map(|input| input.run.id);
    Some(Plan {
        action: Action::Merge,
        run: if level == 0 { newest } else { None },
        inputs,
        level,
    })
}

/// All files of a run.
pub(crate) fn whole(level: usize, run: &Arc<Run>) -> Input {
    Input {
        level,
        run: Arc::clone(run),
        files: run.files.clone(),
    }
}

/// A file in which everything has expired. It is dropped unread, unless it hides something: puts
/// that expire by entry hide older ones of their key, as deletes do.
fn expired(version: &Version, options: &KeyspaceOptions, now: Millis) -> Option<Plan> {
    let mut passed: Vec<(usize, &Arc<Run>)> = Vec::new();
    for (level, runs) in version.levels.iter().enumerate().rev() {
        for run in runs.iter().rev() {
            let gone = |file: &&Arc<File>| {
                file.meta.entries > 0
                    && file.meta.all_expired_at.is_some_and(|at| at <= now)
                    && (options.expiry == Expiry::ByKey
                        || !passed.iter().any(|(_, older)| overlaps(older, file)))
            };
            let files: Vec<Arc<File>> = run.files.iter().filter(gone).cloned().collect();
            if !files.is_empty() {
                return Some(Plan {
                    action: Action::Drop,
                    inputs: vec![Input {
                        level,
                        run: Arc::clone(run),
                        files,
                    }],
                    level,
                    run: Some(run.id),
                });
            }
            passed.push((level, run));
        }
    }
    None
}

fn overlaps(run: &Run, file: &File) -> bool {
    run.overlapping(&file.meta.smallest, &file.meta.largest)
        .next()
        .is_some()
}

/// From the first to the last key of some files.
pub(crate) fn span<'a>(files: impl Iterator<Item = &'a Arc<File>>) -> Option<(Vec<u8>, Largest)> {
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
