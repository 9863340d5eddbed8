//! Rewriting in a compaction: inputs are merged into new tables under the common rules.
//!
//! A large compaction is divided by keys into *spans*, which threads rewrite in parallel. All
//! entries of a key are in one span, so the rules see the same as undivided; range deletes are cut
//! at its ends.

use std::sync::Arc;

use super::drafts::Drafts;
use super::key_sample::evenly_chosen;
use super::{DbCore, Keyspace};
use crate::compaction::output::TableFactory;
use crate::compaction::parts::ZonedOutputs;
use crate::compaction::plan::{CompactionInput, CompactionPlan};
use crate::compaction::rules::{CompactionRules, kept_ranges};
use crate::compaction::shape::Separation;
use crate::error::{Error, Result};
use crate::horizon::Horizon;
use crate::iterate::merging::MergingCursor;
use crate::iterate::run::RunCursor;
use crate::iterate::source::EntrySource;
use crate::key::{Millis, Sequence, Tag};
use crate::range_delete::{RangeDelete, RangeDeletes};
use crate::table::builder::TableSettings;
use crate::version::file::{FileMeta, Largest};
use crate::version::{KeyspaceVersion, SortedRun};

/// Keys from the first, inclusive, to the second, exclusive; `None` is unbounded.
type Span = (Option<Vec<u8>>, Option<Vec<u8>>);

/// What all spans of a compaction share.
struct Rewrite<'a> {
    core: &'a DbCore,
    keyspace: &'a Keyspace,
    plan: &'a CompactionPlan,
    drafts: &'a Drafts<'a>,
    horizon: Horizon,
    /// Runs that may have older entries than the inputs.
    older: Vec<Arc<SortedRun>>,
    ranges: RangeDeletes,
    kept: Vec<RangeDelete>,
    base: Sequence,
    written_until: Millis,
    /// Where tables of the next level start.
    cuts: Vec<Vec<u8>>,
}

impl DbCore {
    /// Writes the tables that replace a plan's inputs.
    pub(super) fn rewrite(
        &self,
        keyspace: &Keyspace,
        version: &KeyspaceVersion,
        plan: &CompactionPlan,
        drafts: &Drafts<'_>,
    ) -> Result<Vec<FileMeta>> {
        let rewrite = Rewrite::new(self, keyspace, version, plan, drafts)?;
        let spans = self.spans_of(keyspace, plan)?;
        let (Some(last), others) = spans
            .split_last()
            .map_or((None, [].as_slice()), |(last, others)| (Some(last), others))
        else {
            return Ok(Vec::new());
        };
        let rewrite = &rewrite;
        let written: Vec<Result<Vec<FileMeta>>> = std::thread::scope(|scope| {
            let begun: Vec<_> = others
                .iter()
                .map(|span| scope.spawn(move || rewrite.span(span)))
                .collect();
            let own = rewrite.span(last);
            let ended = begun.into_iter().map(|thread| {
                let panicked = |_| Err(Error::Stopped);
                thread.join().unwrap_or_else(panicked)
            });
            ended.chain([own]).collect()
        });
        let mut metas = Vec::new();
        for span in written {
            metas.extend(span?);
        }
        Ok(metas)
    }

    /// Divides the keys of a plan's inputs into spans of about equal size.
    fn spans_of(&self, keyspace: &Keyspace, plan: &CompactionPlan) -> Result<Vec<Span>> {
        let worthwhile = plan.size() / keyspace.options().table_bytes.max(1);
        let most = (self.options.sub_compactions as u64).min(worthwhile).max(1);
        if most == 1 {
            return Ok(vec![(None, None)]);
        }
        let mut keys: Vec<Vec<u8>> = Vec::new();
        for file in plan.files() {
            let table = self.tables.table(file)?;
            keys.extend(table.partition_keys().map(<[u8]>::to_vec));
        }
        keys.sort_unstable();
        keys.dedup();
        let mut spans: Vec<Span> = Vec::new();
        let mut from = None;
        for end in evenly_chosen(&keys, most - 1) {
            spans.push((from.replace(end.clone()), Some(end)));
        }
        spans.push((from, None));
        Ok(spans)
    }

    fn ranges_of(&self, plan: &CompactionPlan) -> Result<RangeDeletes> {
        let mut deletes: Vec<RangeDelete> = Vec::new();
        for file in plan.files().filter(|file| file.meta.range_deletes > 0) {
            deletes.extend_from_slice(self.tables.table(file)?.plain_range_deletes());
        }
        Ok(RangeDeletes::new(&deletes))
    }

    /// Limits the write rate. Fails once the rewrite is cancelled.
    fn throttle(&self, keyspace: &Keyspace, bytes: u64) -> Result<()> {
        self.limit_rate(bytes);
        if self.work.is_stopping() || keyspace.is_dropped() {
            return Err(Error::Stopped);
        }
        Ok(())
    }
}

impl<'a> Rewrite<'a> {
    fn new(
        core: &'a DbCore,
        keyspace: &'a Keyspace,
        version: &KeyspaceVersion,
        plan: &'a CompactionPlan,
        drafts: &'a Drafts<'a>,
    ) -> Result<Self> {
        let horizon = core.snapshots.horizon(core);
        let older = older_runs(version, plan, keyspace.options().layout().separation());
        let ranges = core.ranges_of(plan)?;
        let kept = kept_ranges(&ranges, &horizon, &|start, end| {
            let end = Largest {
                key: end.to_vec(),
                exclusive: true,
            };
            !older
                .iter()
                .any(|run| run.overlapping(start, &end).next().is_some())
        });
        let metas = || plan.files().map(|file| &file.meta);
        let below = version.level(plan.level + 1).iter();
        let below = below.flat_map(|run| &run.files);
        Ok(Self {
            core,
            keyspace,
            plan,
            drafts,
            horizon,
            ranges,
            kept,
            base: metas().map(|meta| meta.first_sequence).min().unwrap_or(0),
            written_until: metas().map(|meta| meta.written_until).max().unwrap_or(0),
            cuts: below.map(|file| file.meta.smallest.clone()).collect(),
            older,
        })
    }

    /// Rewrites a span.
    fn span(&self, (from, to): &Span) -> Result<Vec<FileMeta>> {
        let options = self.keyspace.options();
        let number = || self.drafts.number();
        let progress = |bytes| self.core.throttle(self.keyspace, bytes);
        let factory = |part| TableFactory {
            vfs: &self.core.vfs,
            tables: &self.core.tables,
            settings: TableSettings::new(
                options,
                self.plan.level,
                self.base,
                self.written_until,
                self.core.options.table_version,
            ),
            table_bytes: options.table_bytes,
            number: &number,
            progress: &progress,
            cuts: self.cuts.clone(),
            part,
        };
        let kept = within(&self.kept, from.as_deref(), to.as_deref());
        let mut parts = ZonedOutputs::new(options, self.plan.level, kept, factory);
        let older = &self.older;
        let is_bottom = |key: &[u8]| older.iter().all(|run| run.files_of(key).next().is_none());
        let mut rules = CompactionRules::new(options, &self.horizon, &self.ranges, &is_bottom);
        let mut cursor = MergingCursor::new(self.sources());
        match from {
            Some(from) => cursor.seek(from, Tag::NEWEST)?,
            None => cursor.first()?,
        }
        let is_behind = |key: &[u8]| to.as_deref().is_some_and(|to| key >= to);
        while cursor.is_valid() && !is_behind(cursor.key()) {
            rules.take(cursor.key(), cursor.tag(), cursor.value(), &mut parts)?;
            cursor.next()?;
        }
        rules.finish(&mut parts)?;
        parts.finish()
    }

    fn sources(&self) -> Vec<EntrySource> {
        let sources = self.plan.inputs.iter().map(|input| {
            let run = Arc::new(SortedRun::new(input.run.id, input.files.clone()));
            let tables = Arc::clone(&self.core.tables);
            EntrySource::Run(Box::new(RunCursor::new(run, tables, true)))
        });
        sources.collect()
    }
}

/// Range deletes clipped to a span.
fn within(ranges: &[RangeDelete], from: Option<&[u8]>, to: Option<&[u8]>) -> Vec<RangeDelete> {
    let cut = ranges.iter().map(|delete| {
        let mut delete = delete.clone();
        if let Some(from) = from.filter(|from| *from > delete.start.as_slice()) {
            delete.start = from.to_vec();
        }
        if let Some(to) = to.filter(|to| *to < delete.end.as_slice()) {
            delete.end = to.to_vec();
        }
        delete
    });
    cut.filter(|delete| delete.start < delete.end).collect()
}

/// The runs that may have older entries than the inputs: those after the oldest input, or all
/// others if age does not determine the position. The rest of the inputs' own runs does not overlap
/// them.
fn older_runs(
    version: &KeyspaceVersion,
    plan: &CompactionPlan,
    separation: Separation,
) -> Vec<Arc<SortedRun>> {
    let is_input = |run: &Arc<SortedRun>| {
        plan.inputs
            .iter()
            .any(|input: &CompactionInput| input.run.id == run.id)
    };
    let runs: Vec<&Arc<SortedRun>> = version.runs().collect();
    if separation == Separation::Zones {
        let others = runs.into_iter().filter(|run| !is_input(run));
        return others.cloned().collect();
    }
    let last = runs.iter().rposition(|run| is_input(run)).unwrap_or(0);
    runs.into_iter().skip(last + 1).cloned().collect()
}
