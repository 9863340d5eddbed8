//! Applies writes, states and window changes to a query's result.

use std::sync::Arc;

use crate::message::{
    AfterImage, ImageContent, NotificationSource, RemovalReason, ResultRow, WindowChange,
};
use crate::partition::write_partition;
use crate::snapshot::PgSnapshot;

use super::super::change::{ResultChange, ResultRows, difference};
use super::super::positions::EntryPosition;
use super::super::queue::{QueuedItem, QueuedWrite};
use super::super::sources::NotificationLog;
use super::HubQuery;

impl HubQuery {
    /// A write enters, stays in or leaves an unsorted result.
    pub(in crate::hub) fn image(
        &mut self,
        image: &AfterImage,
        removed: bool,
        place: (EntryPosition, NotificationSource),
    ) {
        if !self.may_show(image.rules_version) {
            return;
        }
        if self.snapshot.sees(image.xid) {
            return;
        }
        let step = match &image.content {
            ImageContent::Superseded => return,
            ImageContent::Deleted(_) => QueuedWrite::Take(
                Arc::clone(&image.key),
                image.version,
                RemovalReason::Deleted,
            ),
            ImageContent::Document(_) if removed => {
                QueuedWrite::Take(Arc::clone(&image.key), image.version, RemovalReason::Left)
            }
            ImageContent::Document(body) => QueuedWrite::Put(ResultRow {
                key: Arc::clone(&image.key),
                version: image.version,
                created_ms: image.created_ms,
                updated_ms: image.written_us.div_euclid(1000),
                body: Arc::clone(body),
            }),
        };
        self.queue.write((image.xid, &image.parts), step, place);
    }

    /// Whether more is queued than allowed.
    pub(in crate::hub) fn is_flooded(&self) -> bool {
        self.queue.is_flooded()
    }

    pub(in crate::hub) fn has_waiting(&self) -> bool {
        self.queue.len() > 0
    }

    /// Applies complete changes in order; returns those that belong together. Nothing is applied
    /// while entries may be missing: what was received may be a part of a batch whose rest was
    /// lost, and the rows that replace it would undo what was shown of a batch in the meantime.
    pub(in crate::hub) fn settle(
        &mut self,
        log: &NotificationLog,
        now_us: u64,
    ) -> Vec<ResultChange> {
        let mut changes = Vec::new();
        if self.outdated || self.may_have_gaps() {
            return changes;
        }
        let nodes = (&*self.sources, &self.answers);
        let items = self.queue.ready(log, nodes);
        for item in items {
            match item {
                QueuedItem::Writes { writes, .. } => {
                    let applied = writes.into_iter();
                    changes.extend(applied.filter_map(|write| self.apply(write, now_us)));
                }
                QueuedItem::State {
                    partition, rows, ..
                } => changes.extend(self.replace_partition(partition, rows)),
            }
        }
        changes
    }

    /// Whether a batch was not completed in time and must be read.
    pub(in crate::hub) fn is_late(&self, now_us: u64) -> bool {
        !self.outdated && !self.may_have_gaps() && self.queue.is_late(now_us, self.live_us)
    }

    /// Records that a batch was not completed.
    pub(in crate::hub) fn tear(&mut self) {
        self.torn = true;
    }

    /// Whether a batch was not completed before the current rows arrived.
    pub(in crate::hub) fn was_torn(&mut self) -> bool {
        std::mem::take(&mut self.torn)
    }

    fn apply(&mut self, write: QueuedWrite, now_us: u64) -> Option<ResultChange> {
        let rows = self.rows.as_mut()?;
        let (key, version) = match &write {
            QueuedWrite::Put(row) => (&row.key, row.version),
            QueuedWrite::Take(key, version, _) => (key, *version),
        };
        let held = rows.get(key).map(|row| row.version);
        let removed = self.removals.get(key).map(|(version, ..)| *version);
        if held.is_some_and(|held| held >= version)
            || removed.is_some_and(|removed| removed >= version)
        {
            return None;
        }
        match write {
            QueuedWrite::Put(row) => {
                self.removals.remove(&row.key);
                rows.put(row)
            }
            QueuedWrite::Take(key, version, reason) => {
                self.removals
                    .insert(Arc::clone(&key), (version, reason, now_us));
                rows.take(&key, version, reason)
            }
        }
    }

    /// A filter node reported its members: they replace those of its partition. Rows that are newer
    /// here, or are known to have been removed since, stay as they are.
    fn replace_partition(&mut self, partition: u16, reported: Vec<ResultRow>) -> Vec<ResultChange> {
        let filters = self
            .sources
            .iter()
            .filter(|one| **one != NotificationSource::Sort);
        let partitions = u16::try_from(filters.count()).unwrap_or(u16::MAX);
        let Some(rows) = &self.rows else {
            return Vec::new();
        };
        let known = |row: &ResultRow| {
            let removal = self.removals.get(&row.key);
            removal.is_none_or(|(version, ..)| *version < row.version)
        };
        let reported = reported.into_iter().filter(known).map(|row| {
            let newer = rows.get(&row.key).filter(|held| held.version > row.version);
            newer.cloned().unwrap_or_else(|| Arc::new(row))
        });
        let goes = |key: &[u8]| write_partition(key, partitions) == partition;
        rows.with(goes, reported)
            .map_or_else(Vec::new, |after| self.replace(after))
    }

    /// Shows another result; returns the difference.
    fn replace(&mut self, after: ResultRows) -> Vec<ResultChange> {
        let before = self.rows.replace(after);
        before.map_or_else(Vec::new, |before| self.difference(&before.list().rows))
    }

    /// The changes since the result `before`.
    pub(in crate::hub) fn difference(&self, before: &[Arc<ResultRow>]) -> Vec<ResultChange> {
        let rows = self.rows.as_ref();
        rows.map_or_else(Vec::new, |rows| difference(before, rows, &self.leave()))
    }

    /// Applies a node's whole state, or a part of it; returns the immediate changes.
    pub(in crate::hub) fn state(
        &mut self,
        (place, source): (EntryPosition, NotificationSource),
        rows: &[ResultRow],
        part: u32,
        last: Option<&PgSnapshot>,
    ) -> Vec<ResultChange> {
        let parts = self.parts.entry(source).or_default();
        if part == 0 {
            parts.clear();
        }
        parts.extend_from_slice(rows);
        let Some(snapshot) = last else {
            return Vec::new();
        };
        let rows = self.parts.remove(&source).unwrap_or_default();
        match source {
            NotificationSource::Sort => {
                let window_rows = ResultRows::new(rows, Some((0, None)));
                let window_rows = self.window.replace_window(window_rows);
                window_rows.map_or_else(Vec::new, |window_rows| self.replace(window_rows))
            }
            NotificationSource::Filter(_)
                if self.definition.sorted || self.snapshot.covers(snapshot) =>
            {
                Vec::new()
            }
            NotificationSource::Filter(partition) => {
                self.answers.record_state(source, snapshot, place.at);
                let snapshot = snapshot.clone();
                let item = QueuedItem::State {
                    partition,
                    rows,
                    snapshot,
                };
                self.queue.push(item, place);
                Vec::new()
            }
        }
    }

    /// Applies steps of the sort node to the window; returns the changes that are shown.
    pub(in crate::hub) fn step(
        &mut self,
        steps: &[WindowChange],
        renewal: bool,
    ) -> Vec<ResultChange> {
        if renewal {
            self.window.renewed();
        }
        let Some(rows) = self.rows.as_mut().filter(|_| !self.outdated) else {
            return Vec::new();
        };
        let shown = self.window.step(steps).iter();
        shown.filter_map(|step| rows.step(step.clone())).collect()
    }

    /// A filter node's tick.
    pub(in crate::hub) fn filter_ticked(&mut self, source: NotificationSource, time_us: u64) {
        if self.answers.has(source) {
            self.window.filter_ticked(source, time_us);
        }
    }

    /// Handles the sort node's tick: a window that was followed in the background is shown once it
    /// contains whatever was shown before. While new rows are on their way to the sort node, ticks
    /// prove more than its window contains.
    pub(in crate::hub) fn sort_ticked(
        &mut self,
        snapshot: &PgSnapshot,
        time_us: u64,
    ) -> Vec<ResultChange> {
        self.window.sort_ticked(time_us);
        if !self.is_complete()
            || !snapshot.covers(&self.snapshot)
            || !self.answers.has(NotificationSource::Sort)
            || self.window.is_renewing()
            || self.may_have_gaps()
            || self.outdated
        {
            return Vec::new();
        }
        let Some(ahead) = self.window.show() else {
            return Vec::new();
        };
        self.replace(ahead)
    }
}
