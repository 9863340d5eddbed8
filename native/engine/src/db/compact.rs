//! The life of a compaction: plan, rewrite, switch.

use std::collections::HashSet;
use std::sync::Arc;

use super::stats::add;
use super::{Core, Keyspace};
use crate::compaction::output::{Output, Place};
use crate::compaction::plan::{Action, Input, Plan, choose, everything};
use crate::compaction::rules::{Rules, kept_ranges};
use crate::error::{Error, Result};
use crate::iterate::merging::MergingCursor;
use crate::iterate::run::RunCursor;
use crate::iterate::source::Source;
use crate::range_delete::{RangeDelete, RangeDeletes};
use crate::table::builder::TableSettings;
use crate::version::edit::Edit;
use crate::version::file::{File, FileMeta, Largest};
use crate::version::{Run, Version};

impl Core {
    /// Does the compaction that a keyspace needs most. Returns whether it needed one.
    pub(crate) fn compact_once(&self, keyspace: &Keyspace) -> Result<bool> {
        let Some(_guard) = keyspace.0.compacting.try_lock() else {
            return Ok(false);
        };
        let version = Arc::clone(&keyspace.view().version);
        let time = self.snapshots.horizon(self).time;
        let Some(plan) = choose(&version, keyspace.options(), time) else {
            return Ok(false);
        };
        self.run_plan(keyspace, &version, &plan)?;
        Ok(true)
    }

    /// Merges all tables of a keyspace into one run.
    pub(crate) fn compact_everything(&self, keyspace: &Keyspace) -> Result<()> {
        let _guard = keyspace.0.compacting.lock();
        let version = Arc::clone(&keyspace.view().version);
        match everything(&version, keyspace.options()) {
            Some(plan) => self.run_plan(keyspace, &version, &plan),
            None => Ok(()),
        }
    }

    fn run_plan(&self, keyspace: &Keyspace, version: &Version, plan: &Plan) -> Result<()> {
        let metas = match plan.action {
            Action::Merge => self.rewrite(keyspace, version, plan)?,
            Action::Move | Action::Drop => Vec::new(),
        };
        let written: u64 = metas.iter().map(|meta| meta.size).sum();
        self.install_plan(keyspace, plan, metas)?;
        match plan.action {
            Action::Merge => {
                add(&self.stats.compactions, 1);
                add(&self.stats.compaction_read_bytes, plan.size());
                add(&self.stats.compaction_written_bytes, written);
            }
            Action::Move => add(&self.stats.moves, 1),
            Action::Drop => {
                add(&self.stats.dropped_files, plan.files().count() as u64);
            }
        }
        self.work.wake();
        Ok(())
    }

    fn rewrite(
        &self,
        keyspace: &Keyspace,
        version: &Version,
        plan: &Plan,
    ) -> Result<Vec<FileMeta>> {
        let options = keyspace.options();
        let horizon = self.snapshots.horizon(self);
        let older = older_runs(version, plan);
        let ranges = self.ranges_of(plan)?;
        let base = plan
            .files()
            .map(|file| file.meta.first_sequence)
            .min()
            .unwrap_or(0);
        let until = plan
            .files()
            .map(|file| file.meta.written_until)
            .max()
            .unwrap_or(0);
        let below = version
            .level(plan.level + 1)
            .iter()
            .flat_map(|run| &run.files);
        let place = Place {
            vfs: &self.vfs,
            tables: &self.tables,
            settings: TableSettings::new(options, plan.level, base, until),
            table_bytes: options.table_bytes,
            number: &|| self.next_file(),
            progress: &|bytes| self.go_on(keyspace, bytes),
            cuts: below.map(|file| file.meta.smallest.clone()).collect(),
        };
        let kept = kept_ranges(&ranges, &horizon, &|start, end| {
            let end = Largest {
                key: end.to_vec(),
                exclusive: true,
            };
            !older
                .iter()
                .any(|run| run.overlapping(start, &end).next().is_some())
        });
        let is_bottom = |key: &[u8]| older.iter().all(|run| run.files_of(key).next().is_none());
        let mut output = Output::new(place, kept);
        let mut rules = Rules::new(options, &horizon, &ranges, &is_bottom);
        let mut cursor = MergingCursor::new(self.sources_of(plan));
        cursor.first()?;
        while cursor.is_valid() {
            rules.take(cursor.key(), cursor.tag(), cursor.value(), &mut output)?;
            cursor.next()?;
        }
        rules.finish(&mut output)?;
        output.finish()
    }

    /// Limits the rate; an error if the rewriting is no longer wanted.
    fn go_on(&self, keyspace: &Keyspace, bytes: u64) -> Result<()> {
        self.limit_rate(bytes);
        if self.work.is_stopping() || keyspace.is_dropped() {
            return Err(Error::Stopped);
        }
        Ok(())
    }

    fn sources_of(&self, plan: &Plan) -> Vec<Source> {
        let sources = plan.inputs.iter().map(|input| {
            let run = Arc::new(Run::new(input.run.id, input.files.clone()));
            Source::Run(Box::new(RunCursor::new(
                run,
                Arc::clone(&self.tables),
                true,
            )))
        });
        sources.collect()
    }

    fn ranges_of(&self, plan: &Plan) -> Result<RangeDeletes> {
        let mut deletes: Vec<RangeDelete> = Vec::new();
        for file in plan.files().filter(|file| file.meta.range_deletes > 0) {
            deletes.extend_from_slice(self.tables.table(file)?.plain_range_deletes());
        }
        Ok(RangeDeletes::new(&deletes))
    }

    fn install_plan(&self, keyspace: &Keyspace, plan: &Plan, metas: Vec<FileMeta>) -> Result<()> {
        if plan.action == Action::Merge {
            self.vfs.sync_dir(&self.dir)?;
        }
        let mut state = self.state.lock();
        let run = plan.run.unwrap_or_else(|| self.next_file());
        let mut added: Vec<(usize, u64, Arc<File>)> = Vec::new();
        if plan.action == Action::Move {
            added.extend(plan.files().map(|file| (plan.level, run, Arc::clone(file))));
        }
        for meta in metas {
            let path = self.tables.path_of(meta.number);
            added.push((plan.level, run, File::new(meta, path, &self.graveyard)));
        }
        let removed: HashSet<u64> = plan.files().map(|file| file.meta.number).collect();
        self.append_edits(&mut state, edits_of(keyspace, &removed, &added))?;
        let version = keyspace.view().version.changed(&removed, &added, None);
        keyspace.install(version, &[]);
        if plan.action != Action::Move {
            plan.files().for_each(|file| file.set_obsolete());
        }
        Ok(())
    }

    /// Compacts while there is need, and says why it stopped.
    pub(crate) fn compact_until_calm(&self, keyspace: &Keyspace) -> Result<()> {
        loop {
            if keyspace.is_dropped() || !self.compact_once(keyspace)? {
                return Ok(());
            }
        }
    }
}

fn edits_of(
    keyspace: &Keyspace,
    removed: &HashSet<u64>,
    added: &[(usize, u64, Arc<File>)],
) -> Vec<Edit> {
    let keyspace = keyspace.id();
    let removals = removed
        .iter()
        .map(|&number| Edit::FileRemoved { keyspace, number });
    let additions = added.iter().map(|(level, run, file)| Edit::FileAdded {
        keyspace,
        level: *level,
        run: *run,
        meta: file.meta.clone(),
    });
    removals.chain(additions).collect()
}

/// The runs that may have older entries than the inputs: those behind the oldest input. What is
/// left of the inputs' own runs does not overlap them.
fn older_runs(version: &Version, plan: &Plan) -> Vec<Arc<Run>> {
    let is_input = |run: &Arc<Run>| {
        plan.inputs
            .iter()
            .any(|input: &Input| input.run.id == run.id)
    };
    let runs: Vec<&Arc<Run>> = version.runs().collect();
    let last = runs.iter().rposition(|run| is_input(run)).unwrap_or(0);
    runs.into_iter().skip(last + 1).cloned().collect()
}
