//! Size-tiered: a level collects runs, which are then merged together into one run of the next.
//!
//! Lazy-leveled is the same, but the deepest level is kept as one run: new data is merged into it,
//! so that most data is in one run, while most rewriting is that of tiers.

use super::plan::{CompactionAction, CompactionInput, CompactionPlan, whole};
use crate::options::KeyspaceOptions;
use crate::version::{KeyspaceVersion, LEVELS};

pub(crate) fn choose(
    version: &KeyspaceVersion,
    options: &KeyspaceOptions,
    runs: usize,
    lazy: bool,
) -> Option<CompactionPlan> {
    let most = runs.max(2);
    let full = |level: usize| {
        let limit = if level == 0 {
            options.compact_at_runs.max(2)
        } else {
            most
        };
        version.level(level).len() >= limit
    };
    let level = (0..LEVELS - 1)
        .rev()
        .find(|&level| full(level))
        .or_else(|| {
            let last = LEVELS - 1;
            (version.level(last).len() >= most).then_some(last)
        })?;
    let mut inputs: Vec<CompactionInput> = version
        .level(level)
        .iter()
        .map(|run| whole(level, run))
        .collect();
    if level == LEVELS - 1 {
        return Some(merged(inputs, level));
    }
    let deepest = version.deepest();
    let next = level + 1;
    if !lazy || deepest > next {
        return Some(merged(inputs, next));
    }
    // The next level is the deepest or does not exist yet: its single run takes part. When that has
    // become as large as `most` runs of the level above, it moves one level deeper.
    inputs.extend(version.level(next).iter().map(|run| whole(next, run)));
    let size: u64 = inputs
        .iter()
        .flat_map(|input| &input.files)
        .map(|file| file.meta.size)
        .sum();
    let exponent = u32::try_from(next + 1).unwrap_or(u32::MAX);
    let limit =
        (options.memtable_bytes as u64).saturating_mul((most as u64).saturating_pow(exponent));
    let level = if size > limit {
        (next + 1).min(LEVELS - 1)
    } else {
        next
    };
    Some(merged(inputs, level))
}

fn merged(inputs: Vec<CompactionInput>, level: usize) -> CompactionPlan {
    CompactionPlan {
        action: CompactionAction::Merge,
        inputs,
        level,
        run: None,
        cursor: None,
    }
}
