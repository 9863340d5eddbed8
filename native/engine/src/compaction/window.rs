//! Time windows: runs written in the same time window are merged only with one another, so that
//! data that expires together is stored together and is dropped as whole files.
//!
//! Runs are in time order. The current window collects some runs before they are merged; a window
//! that has passed is merged into one run.

use std::sync::Arc;

use super::plan::{CompactionAction, CompactionInput, CompactionPlan, whole};
use crate::key::Millis;
use crate::version::{KeyspaceVersion, SortedRun};

pub(crate) fn choose(
    version: &KeyspaceVersion,
    window: Millis,
    runs: usize,
) -> Option<CompactionPlan> {
    let window_of = |run: &Arc<SortedRun>| {
        let newest = run.files.iter().map(|file| file.meta.written_until).max();
        newest.unwrap_or(0) / window.max(1)
    };
    if let Some(plan) = gather(version) {
        return Some(plan);
    }
    let flushed = version.level(0);
    let current = flushed.first().map(window_of);
    for group in flushed.chunk_by(|newer, older| window_of(newer) == window_of(older)) {
        let open = group.first().map(window_of) == current;
        let most = if open { runs.max(2) } else { 2 };
        if group.len() >= most {
            return Some(merged(group.iter().map(|run| whole(0, run)).collect()));
        }
    }
    None
}

/// Runs of deeper levels come from another strategy: they become the oldest one here, if there is
/// no run here yet that could be newer than they are.
fn gather(version: &KeyspaceVersion) -> Option<CompactionPlan> {
    let mut inputs: Vec<CompactionInput> = Vec::new();
    for level in 1..version.levels.len() {
        inputs.extend(version.level(level).iter().map(|run| whole(level, run)));
    }
    if inputs.is_empty() {
        return None;
    }
    let oldest = version.level(0).last().map(|run| whole(0, run));
    inputs.splice(0..0, oldest);
    Some(merged(inputs))
}

/// Merges neighbours into one run that replaces the newest.
fn merged(inputs: Vec<CompactionInput>) -> CompactionPlan {
    let newest_level0 = inputs.first().filter(|input| input.level == 0);
    // Without one, it precedes all that are flushed meanwhile: their numbers are higher.
    let highest = || inputs.iter().map(|input| input.run.id).max();
    CompactionPlan {
        action: CompactionAction::Merge,
        run: newest_level0.map(|input| input.run.id).or_else(highest),
        inputs,
        level: 0,
        cursor: None,
    }
}
