//! Handles the entries of the notification log.

use std::sync::Arc;

use crate::message::{
    NodeEvent, Notification, NotificationSource, QueryHash, StreamId, StreamTick,
};
use crate::node::{NodeOutput, RebuildReason};

use super::SortNode;
use super::answers::FilterAnswers;
use super::query::{Advance, SortedQuery};
use super::query_write::QueryWrite;
use super::sources::EntryVerdict;

impl SortNode {
    pub(super) fn log(
        &mut self,
        id: StreamId,
        notification: Notification,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) {
        match self.sources.check_entry(id, &notification) {
            EntryVerdict::Nothing => return,
            EntryVerdict::Lost => return self.request_rebuild(RebuildReason::Lost, out),
            EntryVerdict::News => {}
        }
        let NotificationSource::Filter(partition) = notification.source else {
            return;
        };
        match notification.event {
            NodeEvent::Match {
                image,
                added,
                changed,
                removed,
            } => {
                let image = Arc::new(image);
                let matching = added.into_iter().chain(changed);
                let step = |matches| QueryWrite {
                    image: Arc::clone(&image),
                    matches,
                    at: id,
                    partition,
                    side: None,
                };
                for query in matching {
                    self.step(query, step(true), now_us, out);
                }
                for query in removed {
                    self.step(query, step(false), now_us, out);
                }
            }
            NodeEvent::Done { xid } => {
                self.sources.handled(partition, xid, id);
                self.release(now_us, out);
            }
            NodeEvent::Tick(tick) => self.tick(partition, (&tick, id), now_us, out),
            NodeEvent::TooOld {
                query,
                activation,
                request,
            } => self.answered(
                (query, activation),
                (partition, request),
                false,
                now_us,
                out,
            ),
            NodeEvent::Active {
                query,
                activation,
                request,
            } => self.answered((query, activation), (partition, request), true, now_us, out),
            NodeEvent::Empty {
                queries, request, ..
            } => {
                for empty in queries {
                    let query = (empty.query, empty.activation);
                    self.answered(query, (partition, request), true, now_us, out);
                }
            }
            NodeEvent::Start => {
                self.orphans.restarted(partition);
                for query in self.queries.values_mut() {
                    query.answers.restarted(partition);
                }
            }
            NodeEvent::Failed { query, .. } => {
                self.remove(&query);
            }
            NodeEvent::Rebased { snapshot } if self.rebuilt.covers(&snapshot) => {
                self.sources.rebased(partition, snapshot, id);
                self.refresh_after_rebuild(now_us, out);
            }
            NodeEvent::Rebased { .. } => self.request_rebuild(RebuildReason::FilterNode, out),
            NodeEvent::Rebase { .. }
            | NodeEvent::Window { .. }
            | NodeEvent::Renew { .. }
            | NodeEvent::Fetch { .. }
            | NodeEvent::Unevaluated { .. } => {}
        }
    }

    pub(super) fn step(
        &mut self,
        hash: QueryHash,
        step: QueryWrite,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) {
        if self.unsorted.contains(&hash) {
            return;
        }
        let of_side = QueryWrite {
            side: Some(hash),
            ..step.clone()
        };
        if let Some(users) = self.sides.take(&hash, &of_side, now_us) {
            for user in users {
                if let Some(query) = self.queries.get_mut(&user) {
                    query.push(of_side.clone(), self.config.max_waiting);
                    self.advance(user, now_us, out);
                }
            }
            return;
        }
        match self.queries.get_mut(&hash) {
            Some(query) => {
                query.push(step, self.config.max_waiting);
                self.advance(hash, now_us, out);
            }
            None => self.orphans.push(hash, step, now_us),
        }
    }

    /// Applies the pending changes of a query that can be applied.
    pub(super) fn advance(&mut self, hash: QueryHash, now_us: u64, out: &mut Vec<NodeOutput>) {
        let remembered = (now_us, self.config.remembered_us);
        loop {
            let Some(query) = self.queries.get_mut(&hash) else {
                return;
            };
            let advance = query.advance(&self.sources, self.complete.as_ref(), remembered);
            if std::mem::take(&mut query.unevaluated) {
                let queries = vec![hash];
                self.voice.emit(NodeEvent::Unevaluated { queries }, out);
            }
            match advance {
                Ok(Advance::Stuck) => break,
                Ok(Advance::Unchanged) => {}
                Ok(Advance::Whole) => self.show(hash, out),
                Ok(Advance::Changed(event)) => self.voice.emit(event, out),
                Err(refusal) => return self.fail(hash, &refusal, out),
            }
            self.check(hash, now_us, out);
        }
        let held = self
            .queries
            .get(&hash)
            .is_some_and(SortedQuery::has_queued_writes);
        if held {
            self.held.insert(hash);
        } else {
            self.held.remove(&hash);
        }
    }

    /// A filter node continues from the rows of a request, or does not: then other rows are needed
    /// here, too.
    pub(super) fn answered(
        &mut self,
        (hash, activation): (QueryHash, u64),
        (partition, request): (u16, StreamId),
        accepted: bool,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) {
        if self.unsorted.contains(&hash) {
            return;
        }
        let note = |answers: &mut FilterAnswers| {
            if accepted {
                answers.accepted(partition, request);
            } else {
                answers.refused(partition, request);
            }
        };
        match self.queries.get_mut(&hash) {
            Some(query) if query.activation == activation => {
                note(&mut query.answers);
                if !accepted {
                    self.renew(hash, now_us, out);
                }
                self.confirm(hash, now_us, out);
            }
            Some(query) if query.activation > activation => {}
            _ => self.orphans.answered((hash, activation), now_us, note),
        }
    }

    /// A filter node was rebuilt: rows read earlier lack what it does not report.
    pub(super) fn refresh_after_rebuild(&mut self, now_us: u64, out: &mut Vec<NodeOutput>) {
        let behind = self.queries.iter().filter_map(|(hash, query)| {
            let behind = query.is_behind(&self.sources);
            behind.then_some(*hash)
        });
        for hash in behind.collect::<Vec<_>>() {
            self.renew(hash, now_us, out);
            self.confirm(hash, now_us, out);
        }
    }

    pub(super) fn tick(
        &mut self,
        partition: u16,
        (tick, at): (&StreamTick, StreamId),
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) {
        self.sources.tick(partition, tick, at);
        self.release(now_us, out);
        if let Some(tick) = self.sources.common_tick() {
            self.complete = Some(tick.snapshot.clone());
            self.resolve_all(now_us, out);
            self.voice.emit(NodeEvent::Tick(tick), out);
        }
    }

    /// Applies batches that may have become complete.
    pub(super) fn release(&mut self, now_us: u64, out: &mut Vec<NodeOutput>) {
        for hash in self.held.clone() {
            self.advance(hash, now_us, out);
        }
    }

    pub(super) fn idle(&mut self, now_us: u64, out: &mut Vec<NodeOutput>) {
        self.orphans.forget(now_us);
        let again_us = self.config.renew_again_us;
        let late = self.queries.iter().filter_map(|(hash, query)| {
            let waiting = query.waiting.as_ref()?;
            let late = waiting.asked_us.saturating_add(again_us) <= now_us;
            late.then_some(*hash)
        });
        for hash in late.collect::<Vec<_>>() {
            self.ask(hash, now_us, out);
        }
        self.retry_requests(now_us, out);
    }
}
