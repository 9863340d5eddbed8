//! The steps of a compaction: plan, rewrite, switch.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::drafts::Drafts;
use super::stats::add;
use super::{DbCore, Keyspace};
use crate::compaction::plan::{CompactionAction, CompactionPlan, choose, everything};
use crate::compaction::shape::TableShape;
use crate::error::{Error, Result};
use crate::extract::ExtractorVersion;
use crate::version::KeyspaceVersion;
use crate::version::edit::Edit;
use crate::version::file::{FileMeta, Largest, TableFile};

impl DbCore {
    /// Runs the most urgent compaction of a keyspace. Returns whether one was needed.
    pub(crate) fn compact_once(&self, keyspace: &Keyspace) -> Result<bool> {
        let Some(_guard) = keyspace.0.compacting.try_lock() else {
            return Ok(false);
        };
        if keyspace.is_dropped() {
            return Ok(false);
        }
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
        let time = self.snapshots.horizon(self).time;
        // A background thread may have left the keyspace to this one.
        self.work.compactions.add(keyspace.id());
        match everything(&version, keyspace.options(), time) {
            Some(plan) => self.run_plan(keyspace, &version, &plan),
            None => Ok(()),
        }
    }

    /// Rewrites, in its place, a table with keys within bounds whose attributes are those of an older
    /// version of the keyspace's extractor, or of another one. Returns its entries; `None` if there is
    /// no such table.
    pub(crate) fn rewrite_outdated(
        &self,
        keyspace: &Keyspace,
        (start, end): (&[u8], &[u8]),
        required: ExtractorVersion<'_>,
    ) -> Result<Option<u64>> {
        let _guard = keyspace.0.compacting.lock();
        // A background thread may have left the keyspace to this one.
        self.work.compactions.add(keyspace.id());
        let version = Arc::clone(&keyspace.view().version);
        let end = Largest {
            key: end.to_vec(),
            exclusive: true,
        };
        let Some(outdated) = self.outdated(&version, (start, &end), required)? else {
            return Ok(None);
        };
        let entries = outdated.file.meta.entries;
        let plan = CompactionPlan {
            run: Some(outdated.run.id),
            ..CompactionPlan::merge([outdated], outdated.level)
        };
        self.run_plan(keyspace, &version, &plan)?;
        Ok(Some(entries))
    }

    fn outdated<'v>(
        &self,
        version: &'v KeyspaceVersion,
        (start, end): (&'v [u8], &'v Largest),
        required: ExtractorVersion<'_>,
    ) -> Result<Option<TableShape<'v>>> {
        for (level, runs) in version.levels.iter().enumerate() {
            for run in runs {
                for file in run.overlapping(start, end) {
                    if !self.tables.table(file)?.is_made_by(required) {
                        return Ok(Some(TableShape { level, run, file }));
                    }
                }
            }
        }
        Ok(None)
    }

    fn run_plan(
        &self,
        keyspace: &Keyspace,
        version: &KeyspaceVersion,
        plan: &CompactionPlan,
    ) -> Result<()> {
        let layout = keyspace.options().layout();
        if !plan.keeps_order(version, layout.separation()) {
            let name = layout.name();
            let what = format!("the layout {name:?} would put older entries over newer ones");
            return Err(Error::InvalidArgument { what });
        }
        let drafts = Drafts::new(self);
        let metas = match plan.action {
            CompactionAction::Merge => self.rewrite(keyspace, version, plan, &drafts)?,
            CompactionAction::Move | CompactionAction::Drop => Vec::new(),
        };
        let written: u64 = metas.iter().map(|meta| meta.size).sum();
        self.install_plan(keyspace, plan, metas)?;
        drafts.keep();
        match plan.action {
            CompactionAction::Merge => {
                add(&self.stats.compactions, 1);
                add(&self.stats.compaction_read_bytes, plan.size());
                add(&self.stats.compaction_written_bytes, written);
            }
            CompactionAction::Move => add(&self.stats.moves, 1),
            CompactionAction::Drop => {
                add(&self.stats.dropped_files, plan.files().count() as u64);
            }
        }
        self.work.wake();
        Ok(())
    }

    fn install_plan(
        &self,
        keyspace: &Keyspace,
        plan: &CompactionPlan,
        metas: Vec<FileMeta>,
    ) -> Result<()> {
        if plan.action == CompactionAction::Merge {
            self.vfs.sync_dir(&self.dir)?;
        }
        let mut state = self.state.lock();
        // Each part is a separate run.
        let mut runs: BTreeMap<u8, u64> = BTreeMap::new();
        let mut run_of = |part| {
            let fresh = || plan.run.unwrap_or_else(|| self.next_file());
            *runs.entry(part).or_insert_with(fresh)
        };
        let mut added: Vec<(usize, u64, Arc<TableFile>)> = Vec::new();
        if plan.action == CompactionAction::Move {
            let run = run_of(0);
            added.extend(plan.files().map(|file| (plan.level, run, Arc::clone(file))));
        }
        for meta in metas {
            let path = self.tables.path_of(meta.number);
            let run = run_of(meta.about.as_ref().map_or(0, |about| about.0));
            added.push((plan.level, run, TableFile::new(meta, path, &self.graveyard)));
        }
        let removed: HashSet<u64> = plan.files().map(|file| file.meta.number).collect();
        let mut version = keyspace.view().version.changed(&removed, &added, None);
        let mut edits = edits_of(keyspace, &removed, &added);
        if let Some(cursor) = &plan.cursor {
            version = version.with_cursor(keyspace.options().layout().name(), cursor);
            edits.extend(version.cursor_edit(keyspace.id()));
        }
        self.append_edits(&mut state, edits)?;
        self.install(keyspace, version, &[]);
        if plan.action != CompactionAction::Move {
            plan.files().for_each(|file| file.set_obsolete());
        }
        Ok(())
    }

    /// Compacts as long as needed, and returns why it stopped.
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
    added: &[(usize, u64, Arc<TableFile>)],
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
