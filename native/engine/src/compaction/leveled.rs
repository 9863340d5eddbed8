//! Leveled: below the flushed runs, one run per level, each `fanout` times as large as the one
//! above.
//!
//! All flushed runs move down together. From a level that is too large, the file with the least
//! overlap below relative to its size is chosen, which keeps rewriting low.

use std::sync::Arc;

use super::plan::{CompactionAction, CompactionInput, CompactionPlan, span, whole};
use crate::options::KeyspaceOptions;
use crate::version::file::TableFile;
use crate::version::{KeyspaceVersion, LEVELS, SortedRun};

/// The target size of a level.
fn target(level: usize, options: &KeyspaceOptions, fanout: u64) -> u64 {
    let times = u32::try_from(level.saturating_sub(1)).unwrap_or(u32::MAX);
    options
        .base_bytes
        .saturating_mul(fanout.max(2).saturating_pow(times))
}

/// The level for this amount of data.
pub(crate) fn level_for(size: u64, options: &KeyspaceOptions, fanout: u64) -> usize {
    (1..LEVELS - 1)
        .find(|&level| size <= target(level, options, fanout))
        .unwrap_or(LEVELS - 1)
}

pub(crate) fn choose(
    version: &KeyspaceVersion,
    options: &KeyspaceOptions,
    fanout: u64,
) -> Option<CompactionPlan> {
    let flushed = version.level(0).len() as f64 / options.compact_at_runs.max(1) as f64;
    let mut best = (flushed, 0);
    for level in 1..LEVELS - 1 {
        // A level with several runs comes from another strategy and is merged first.
        let score = if version.level(level).len() > 1 {
            f64::INFINITY
        } else {
            version.level_size(level) as f64 / target(level, options, fanout) as f64
        };
        if score > best.0 {
            best = (score, level);
        }
    }
    match best {
        (score, 0) if score >= 1.0 => Some(from_flushed(version, options)),
        (score, level) if score > 1.0 => from_level(version, options, level),
        _ => None,
    }
}

/// All flushed runs go to level 1.
fn from_flushed(version: &KeyspaceVersion, options: &KeyspaceOptions) -> CompactionPlan {
    let inputs: Vec<CompactionInput> = version.level(0).iter().map(|run| whole(0, run)).collect();
    into_level(version, options, inputs, 1)
}

fn from_level(
    version: &KeyspaceVersion,
    options: &KeyspaceOptions,
    level: usize,
) -> Option<CompactionPlan> {
    let runs = version.level(level);
    if runs.len() > 1 {
        let inputs = runs.iter().map(|run| whole(level, run)).collect();
        return Some(into_level(version, options, inputs, level + 1));
    }
    let run = runs.first()?;
    let below = version.level(level + 1);
    let cost = |file: &Arc<TableFile>| {
        let meta = &file.meta;
        let overlapped = below
            .iter()
            .flat_map(|run| run.overlapping(&meta.smallest, &meta.largest));
        let bytes: u64 = overlapped.map(|file| file.meta.size).sum();
        // Files with many deletes go first among equals.
        bytes.saturating_mul(1024) / meta.size.max(1) / (1 + 4 * meta.deletes / meta.entries.max(1))
    };
    let chosen = run.files.iter().min_by_key(|file| cost(file))?;
    let inputs = vec![CompactionInput {
        level,
        run: Arc::clone(run),
        files: vec![Arc::clone(chosen)],
    }];
    Some(into_level(version, options, inputs, level + 1))
}

/// Adds the overlapping files below, or moves the inputs if there are none.
fn into_level(
    version: &KeyspaceVersion,
    options: &KeyspaceOptions,
    mut inputs: Vec<CompactionInput>,
    level: usize,
) -> CompactionPlan {
    let from = inputs.first().map_or(0, |input| input.level);
    let below = version.level(level);
    let mut overlapped = Vec::new();
    if let Some((smallest, largest)) = span(inputs.iter().flat_map(|input| &input.files)) {
        for run in below {
            // Several runs below come from another strategy; all of them are merged.
            let files: Vec<Arc<TableFile>> = if below.len() > 1 {
                run.files.clone()
            } else {
                run.overlapping(&smallest, &largest).cloned().collect()
            };
            if !files.is_empty() {
                overlapped.push(CompactionInput {
                    level,
                    run: Arc::clone(run),
                    files,
                });
            }
        }
    }
    let same_codec = options.compression_of(from) == options.compression_of(level);
    let moves = overlapped.is_empty() && same_codec && disjoint(&inputs);
    inputs.extend(overlapped);
    CompactionPlan {
        action: if moves {
            CompactionAction::Move
        } else {
            CompactionAction::Merge
        },
        inputs,
        level,
        run: match below {
            [only] => Some(only.id),
            _ => None,
        },
        cursor: None,
    }
}

/// Whether no two of the inputs' files overlap.
fn disjoint(inputs: &[CompactionInput]) -> bool {
    let runs: Vec<&SortedRun> = inputs.iter().map(|input| input.run.as_ref()).collect();
    let overlap = |(at, input): (usize, &CompactionInput)| {
        input.files.iter().any(|file| {
            runs.iter().skip(at + 1).any(|run| {
                run.overlapping(&file.meta.smallest, &file.meta.largest)
                    .next()
                    .is_some()
            })
        })
    };
    !inputs.iter().enumerate().any(overlap)
}
