//! Pending writes, and what they change.

use std::collections::VecDeque;
use std::sync::Arc;

use rillbase_documents::refusal::DocumentRefusal;

use crate::message::{AfterImage, Cause, ImageContent, NodeEvent, RemovalReason, ResultRow};
use crate::snapshot::PgSnapshot;

use super::super::query_write::QueryWrite;
use super::super::retained_rows::RowEffect;
use super::super::sources::Sources;
use super::super::steps::steps;
use super::SortedQuery;

/// How many applied transactions are remembered before those that all nodes have reported are
/// dropped.
const APPLIED: usize = 64;

/// The outcome of trying to apply the next steps.
#[derive(Debug)]
pub(in super::super) enum Advance {
    /// There are none, or they must wait.
    Stuck,
    /// The window did not change.
    Unchanged,
    /// Rows that were held back can be shown.
    Whole,
    Changed(NodeEvent),
}

impl SortedQuery {
    /// Adds a step. Returns whether steps wait for the rest of their batch.
    pub(in super::super) fn push(&mut self, step: QueryWrite, max_waiting: usize) {
        if self.snapshot.sees(step.image.xid) {
            return;
        }
        self.queue.push_back(step);
        if self.queue.len() > max_waiting
            && let Some(waiting) = &mut self.waiting
            && let Some(step) = self.queue.pop_front()
        {
            waiting.dropped.push(step.image.xid);
        }
    }

    pub(in super::super) fn has_queued_writes(&self) -> bool {
        !self.queue.is_empty() && self.waiting.is_none()
    }

    /// The next steps that can be applied: one write, or all writes of a batch with what belongs to
    /// it.
    fn next(&mut self, sources: &Sources) -> Vec<QueryWrite> {
        let first = self.queue.front().filter(|_| self.waiting.is_none());
        let Some(first) = first.map(|step| Arc::clone(&step.image)) else {
            return Vec::new();
        };
        if first.parts.is_empty() {
            return self.queue.pop_front().into_iter().collect();
        }
        if !self.is_known_to_all(sources) {
            return Vec::new();
        }
        let Some(together) = self.together(first.xid, sources) else {
            return Vec::new();
        };
        let belongs = |step: &QueryWrite| together.contains(&step.image.xid);
        let (batch, rest) = self.queue.drain(..).partition(belongs);
        self.queue = rest;
        Vec::from_iter::<VecDeque<QueryWrite>>(batch)
    }

    /// Whether filter nodes know everything that a rebuild read. Before, a node may have handled a
    /// batch without knowing that it removed a document; what it reports about that later belongs
    /// to the batch.
    fn is_known_to_all(&mut self, sources: &Sources) -> bool {
        let Some(ahead) = &self.ahead else {
            return true;
        };
        let Some(reached) = sources.reached(ahead) else {
            return false;
        };
        self.compensated_until = self.compensated_until.max(reached);
        self.ahead = None;
        true
    }

    /// The transactions that must be applied together with a batch, if all of them are complete.
    /// What a node reported before it handled its part may replace a document of the batch that was
    /// written again, because a node that has handled a higher version reports only that one.
    fn together(&self, xid: u64, sources: &Sources) -> Option<Vec<u64>> {
        let mut together = vec![xid];
        let mut looked_at = 0;
        while let Some(xid) = together.get(looked_at).copied() {
            looked_at += 1;
            let own = self.queue.iter().filter(|step| step.image.xid == xid);
            let ends = sources.ends(&own.clone().next()?.image, &own)?;
            let belongs = |step: &&QueryWrite| {
                let mut ends = ends.iter();
                ends.any(|(part, end)| {
                    *part == step.partition && step.at <= (*end).max(self.compensated_until)
                })
            };
            for step in self.queue.iter().filter(belongs) {
                if !together.contains(&step.image.xid) {
                    together.push(step.image.xid);
                }
            }
        }
        Some(together)
    }

    /// Applies the next steps that can be applied.
    pub(in super::super) fn advance(
        &mut self,
        sources: &Sources,
        complete: Option<&PgSnapshot>,
        remembered: (u64, u64),
    ) -> Result<Advance, DocumentRefusal> {
        let batch = self.next(sources);
        if batch.is_empty() {
            return Ok(Advance::Stuck);
        }
        self.forget(remembered);
        // If all rows are shown, the changes of the rows are those of the window.
        let all = self.offset == 0 && self.limit.is_none() && self.rows.knows_changes();
        let before = if all { Vec::new() } else { self.window() };
        for step in &batch {
            self.apply(step, remembered.0)?;
            self.note_applied(step.image.xid);
        }
        if let Some(aside) = &mut self.aside {
            aside.steps.extend(batch.iter().cloned());
        }
        if self.applied.len() > APPLIED
            && let Some(complete) = complete
        {
            self.applied.retain(|xid| !complete.sees(*xid));
            self.pruned = Some(complete.clone());
        }
        let refreshed = self.rows.refresh(&self.order)?.filter(|_| all);
        if self.has_unknown_references() {
            self.hold(before);
            return Ok(Advance::Unchanged);
        }
        if self.is_on_hold() {
            return Ok(Advance::Whole);
        }
        let differ = || steps(&before, &self.window(), &|row| leave(row, &batch));
        let changes = refreshed.unwrap_or_else(differ);
        if changes.is_empty() {
            return Ok(Advance::Unchanged);
        }
        Ok(Advance::Changed(self.window_event(cause(&batch), changes)))
    }

    pub(super) fn note_applied(&mut self, xid: u64) {
        if self.applied.last() != Some(&xid) {
            self.applied.push(xid);
        }
    }

    pub(super) fn apply(&mut self, step: &QueryWrite, now_us: u64) -> Result<(), DocumentRefusal> {
        let image = &step.image;
        if let Some(side) = &step.side {
            let unseen = !self.snapshot.sees(image.xid);
            if unseen && self.rows.write(side, image, step.matches) {
                self.apply_rules_version(u64::MAX);
            }
            return Ok(());
        }
        let known = self.rows.version(&image.key);
        let known = known.max(self.removals.get(&image.key).copied());
        if self.snapshot.sees(image.xid) || known.is_some_and(|known| image.version <= known) {
            return Ok(());
        }
        self.apply_rules_version(image.rules_version);
        let row = row(image).filter(|_| step.matches);
        let entry = self.rows.change(&image.key, row, &self.order)?;
        self.unevaluated |= matches!(entry, RowEffect::Unevaluated);
        match entry {
            RowEffect::Absent | RowEffect::Unevaluated => {
                self.remember(&image.key, image.version, now_us);
            }
            RowEffect::Present(beyond) => {
                self.removals.remove(&image.key);
                if let Some(beyond) = beyond {
                    self.remember(&beyond.key, beyond.version, now_us);
                }
            }
        }
        Ok(())
    }

    fn remember(&mut self, key: &Arc<[u8]>, version: u64, now_us: u64) {
        self.removals.insert(Arc::clone(key), version);
        self.removals_since.push_back((now_us, Arc::clone(key)));
    }

    /// Forgets documents that left long ago. A key that left again since is forgotten with its
    /// first removal's time only if that was the last one.
    fn forget(&mut self, (now_us, remembered_us): (u64, u64)) {
        while let Some((since_us, _)) = self.removals_since.front()
            && since_us.saturating_add(remembered_us) < now_us
        {
            let Some((_, key)) = self.removals_since.pop_front() else {
                return;
            };
            let again = self.removals_since.iter().any(|(_, later)| *later == key);
            if !again {
                self.removals.remove(&key);
            }
        }
    }
}

/// The row that a write leaves.
fn row(image: &AfterImage) -> Option<ResultRow> {
    let ImageContent::Document(body) = &image.content else {
        return None;
    };
    Some(ResultRow {
        key: Arc::clone(&image.key),
        version: image.version,
        created_ms: image.created_ms,
        updated_ms: image.written_us.div_euclid(1_000),
        body: Arc::clone(body),
    })
}

/// The version with which a row left a window, and why.
fn leave(row: &ResultRow, batch: &[QueryWrite]) -> (u64, RemovalReason) {
    let last = batch
        .iter()
        .filter(|step| step.side.is_none() && step.image.key == row.key)
        .max_by_key(|step| step.image.version);
    let held = row.document_version();
    match last.filter(|step| step.image.version > held) {
        Some(step) if matches!(step.image.content, ImageContent::Deleted(_)) => {
            (step.image.version, RemovalReason::Deleted)
        }
        Some(step) => (step.image.version, RemovalReason::Left),
        None => (held, RemovalReason::Left),
    }
}

fn cause(batch: &[QueryWrite]) -> Option<Cause> {
    let first = batch.first()?;
    let images = || batch.iter().map(|step| &step.image);
    let own = batch.iter().filter(|step| step.side.is_none());
    Some(Cause {
        xid: first.image.xid,
        rules_version: own.map(|step| step.image.rules_version).max().unwrap_or(0),
        written_us: images().map(|image| image.written_us).max()?,
        parts: Arc::clone(&first.image.parts),
    })
}
