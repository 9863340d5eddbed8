//! New rows: whether they count, and when they are taken.

use rillbase_documents::refusal::DocumentRefusal;

use crate::message::StreamId;
use crate::snapshot::PgSnapshot;

use super::super::answers::RequestVerdict;
use super::super::query_write::QueryWrite;
use super::super::retained_rows::RetainedRows;
use super::super::sources::Sources;
use super::SortedQuery;

/// Renewals closer together than this increase the slack, in microseconds.
const CHURN_US: u64 = 60_000_000;

/// New rows are needed; until they arrive, steps are only collected.
#[derive(Debug)]
pub(in super::super) struct RowRequest {
    pub(in super::super) asked_us: u64,
    /// Transactions of dropped steps: the new rows must have seen them.
    pub(super) dropped: Vec<u64>,
}

/// Rows that count when all filter nodes have answered the request that they came with.
#[derive(Debug)]
pub(in super::super) struct Aside {
    pub(in super::super) rows: RetainedRows,
    pub(in super::super) snapshot: PgSnapshot,
    pub(in super::super) request: StreamId,
    /// What was applied to the previous rows meanwhile.
    pub(in super::super) steps: Vec<QueryWrite>,
}

/// What to do with the rows that were put aside.
#[derive(Debug)]
pub(in super::super) enum AsideVerdict {
    /// There are none, or not all filter nodes have answered.
    Open,
    /// They are taken.
    Taken(Aside),
    /// A filter node does not continue from them.
    TooOld,
    /// They lack what was reported meanwhile, or what filter nodes do not report.
    Outdated,
}

impl SortedQuery {
    /// Whether rows of this snapshot contain whatever was applied or dropped.
    pub(in super::super) fn can_settle(&self, snapshot: &PgSnapshot, sources: &Sources) -> bool {
        let dropped = self.waiting.iter().flat_map(|waiting| &waiting.dropped);
        let before = |earlier: &PgSnapshot| snapshot.covers(earlier);
        before(&self.snapshot)
            && self.begun.iter().all(before)
            && (self.below == 0 || self.below < snapshot.xmin)
            && sources.are_behind(snapshot)
            && self.pruned.as_ref().is_none_or(before)
            && self
                .applied
                .iter()
                .chain(dropped)
                .all(|xid| snapshot.sees(*xid))
    }

    /// Whether a filter node may not watch it yet, or no longer, and may start with the rows of a
    /// later registration: then these are needed here, too.
    pub(in super::super) fn is_doubtful(&self, partitions: u16) -> bool {
        !self.answers.all_watch(partitions, self.read)
    }

    /// A request was read with which filter nodes may start.
    pub(in super::super) fn may_begin(&mut self, snapshot: &PgSnapshot) {
        self.begun.retain(|earlier| !snapshot.covers(earlier));
        self.begun.push(snapshot.clone());
    }

    /// Whether the rows that were put aside count now. They are no longer aside, unless that is
    /// open.
    pub(in super::super) fn judge(&mut self, sources: &Sources, partitions: u16) -> AsideVerdict {
        let Some(aside) = &self.aside else {
            return AsideVerdict::Open;
        };
        let verdict = self.answers.of(aside.request, partitions);
        let before = |earlier: &PgSnapshot| aside.snapshot.covers(earlier);
        let mut dropped = self.waiting.iter().flat_map(|waiting| &waiting.dropped);
        let fits = self.begun.iter().all(before)
            && sources.are_behind(&aside.snapshot)
            && dropped.all(|xid| aside.snapshot.sees(*xid));
        match (verdict, fits) {
            (RequestVerdict::TooOld, _) => {
                self.aside = None;
                AsideVerdict::TooOld
            }
            (_, false) => {
                self.aside = None;
                AsideVerdict::Outdated
            }
            (RequestVerdict::Open, true) => AsideVerdict::Open,
            (RequestVerdict::Accepted, true) => self
                .aside
                .take()
                .map_or(AsideVerdict::Open, AsideVerdict::Taken),
        }
    }

    /// Whether its rows contain everything that another subscriber's rows do.
    pub(in super::super) fn covers(&self, snapshot: &PgSnapshot) -> bool {
        self.snapshot.covers(snapshot)
    }

    /// Whether its rows are older than what filter nodes start with.
    pub(in super::super) fn is_behind(&self, sources: &Sources) -> bool {
        !sources.are_behind(&self.snapshot)
    }

    /// Takes the rows that were put aside, with what was applied meanwhile.
    pub(in super::super) fn take(
        &mut self,
        aside: Aside,
        now_us: u64,
    ) -> Result<(), DocumentRefusal> {
        self.settle(aside.rows, &aside.snapshot);
        for step in &aside.steps {
            self.apply(step, now_us)?;
            self.note_applied(step.image.xid);
        }
        self.rows.refresh(&self.order)?;
        Ok(())
    }

    /// Takes rows that a rebuild read. Filter nodes do not receive them, as they do those of
    /// registrations.
    pub(in super::super) fn settle_alone(&mut self, rows: RetainedRows, snapshot: &PgSnapshot) {
        self.settle(rows, snapshot);
        self.ahead = Some(snapshot.clone());
    }

    /// Takes new rows; pending steps that are not in them stay.
    fn settle(&mut self, rows: RetainedRows, snapshot: &PgSnapshot) {
        self.rows = rows;
        self.held_window = None;
        self.question = None;
        self.snapshot = snapshot.clone();
        self.waiting = None;
        self.aside = None;
        self.shown = true;
        self.ahead = None;
        self.applied.clear();
        self.pruned = None;
        self.begun.clear();
        self.below = 0;
        self.removals.clear();
        self.removals_since.clear();
        self.queue.retain(|step| !snapshot.sees(step.image.xid));
        self.compensated_until = self
            .queue
            .iter()
            .map(|step| step.at)
            .max()
            .unwrap_or_default();
    }

    /// Waits for new rows; the more often, the larger the slack.
    pub(in super::super) fn wait(&mut self, max_slack: u32, now_us: u64) {
        self.waiting = Some(RowRequest {
            asked_us: now_us,
            dropped: Vec::new(),
        });
        let renewed_us = self.renewed_us.replace(now_us);
        if renewed_us.is_some_and(|us| us.saturating_add(CHURN_US) > now_us) {
            let most = max_slack.max(self.slack);
            self.slack = self.slack.saturating_mul(2).clamp(1, most);
        }
    }
}
