//! A rebuild: a node whose state is missing or incomplete reads all documents of its partition
//! once.

use std::collections::HashMap;

use rillbase_matching::{Matcher, QueryId};
use rillbase_query::bson::Document;

use crate::message::{EmptyResult, NodeEvent, QueryDefinition, ResultRow};
use crate::node::{Begin, NodeOutput};
use crate::snapshot::PgSnapshot;

use super::documents::TrackedDocuments;
use super::queries::WatchedQueries;
use super::retained::Retained;
use super::sides::WatchedSides;
use super::stream::StreamProgress;
use super::unconfirmed_rows::UnconfirmedRows;
use super::{FilterNode, FilterPhase};

/// A rebuild in progress.
#[derive(Debug, Default)]
pub(super) struct FilterRebuild {
    snapshot: PgSnapshot,
    rules: HashMap<[u8; 16], u64>,
    /// Rows that have not been reported yet, by query.
    pending: HashMap<QueryId, PendingRows>,
    /// Once all rows have been passed: the queries that have not been reported yet.
    unreported: Option<std::vec::IntoIter<QueryId>>,
}

#[derive(Debug, Default)]
struct PendingRows {
    rows: Vec<ResultRow>,
    bytes: usize,
    part: u32,
}

impl FilterNode {
    pub(super) fn start(&mut self, out: &mut Vec<NodeOutput>) {
        self.matcher = Matcher::new(self.config.limits);
        self.queries = WatchedQueries::default();
        self.sides = WatchedSides::default();
        self.phase = FilterPhase::Rebuilding(FilterRebuild::default());
        self.voice.emit(NodeEvent::Start, out);
    }

    pub(super) fn add_queries(&mut self, queries: &[QueryDefinition], out: &mut Vec<NodeOutput>) {
        if !self.is_rebuilding() {
            return;
        }
        for query in queries {
            if self.queries.find(&query.hash).is_none()
                && let Some((id, _)) = self.add(query, out)
            {
                self.queries.insert(id, query);
            }
        }
    }

    pub(super) fn begin(&mut self, begin: Begin, now_us: u64) {
        let FilterPhase::Rebuilding(rebuild) = &mut self.phase else {
            return;
        };
        let config = &self.config;
        self.documents = TrackedDocuments::new(config.remembered_us);
        self.ahead = UnconfirmedRows::default();
        self.retained = Retained::new(begin.position, config.retained_us, config.retained_bytes);
        self.stream = StreamProgress::new(begin.position, begin.count);
        self.requests = begin.requests;
        self.batch = None;
        let until_us = now_us.saturating_add(config.remembered_us);
        self.queries.guard_all(&begin.snapshot, until_us);
        rebuild.snapshot = begin.snapshot;
        rebuild.rules = begin.rules;
    }

    pub(super) fn rows(
        &mut self,
        collection: [u8; 16],
        rows: Vec<ResultRow>,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) {
        let FilterPhase::Rebuilding(mut rebuild) =
            std::mem::replace(&mut self.phase, FilterPhase::NeedsRebuild)
        else {
            return;
        };
        let (mut matched, mut failed) = (Vec::new(), Vec::new());
        for row in rows {
            if !self.is_in_partition(&row.key) {
                continue;
            }
            matched.clear();
            let document = Document::trusted(&row.body);
            self.matcher
                .matches(&collection, document, &mut matched, &mut failed);
            matched.retain(|id| !self.sides.is_side(*id));
            if !matched.is_empty() {
                let known = self.documents.touch(collection, &row.key, now_us);
                known.members = matched.iter().map(|id| self.queries.member(*id)).collect();
            }
            for id in &matched {
                self.add_row(&mut rebuild, *id, &row, out);
            }
        }
        self.phase = FilterPhase::Rebuilding(rebuild);
    }

    fn add_row(
        &mut self,
        rebuild: &mut FilterRebuild,
        id: QueryId,
        row: &ResultRow,
        out: &mut Vec<NodeOutput>,
    ) {
        if self.queries.get(id).is_none_or(|query| query.sorted) {
            return;
        }
        let pending = rebuild.pending.entry(id).or_default();
        let size = 64 + row.key.len() + row.body.len();
        if pending.bytes + size > self.config.rebase_bytes && !pending.rows.is_empty() {
            self.rebase(rebuild, id, false, out);
        }
        let pending = rebuild.pending.entry(id).or_default();
        pending.bytes += size;
        pending.rows.push(row.clone());
    }

    fn rebase(
        &mut self,
        rebuild: &mut FilterRebuild,
        id: QueryId,
        last: bool,
        out: &mut Vec<NodeOutput>,
    ) {
        let Some(query) = self.queries.get(id) else {
            return;
        };
        let rules_version = rebuild.rules_version(&query.collection);
        let pending = rebuild.pending.entry(id).or_default();
        let event = NodeEvent::Rebase {
            query: query.hash,
            activation: query.activation,
            snapshot: rebuild.snapshot.clone(),
            rules_version,
            rows: std::mem::take(&mut pending.rows),
            part: pending.part,
            last,
        };
        pending.bytes = 0;
        pending.part += 1;
        self.voice.emit(event, out);
    }

    pub(super) fn end(&mut self, out: &mut Vec<NodeOutput>) {
        let FilterPhase::Rebuilding(mut rebuild) =
            std::mem::replace(&mut self.phase, FilterPhase::Running)
        else {
            self.phase = FilterPhase::NeedsRebuild;
            return;
        };
        let unreported = rebuild.unreported.take();
        let mut ids = unreported.unwrap_or_else(|| self.queries.ids().into_iter());
        let mut empty = Vec::new();
        for id in ids.by_ref().take(self.config.reported_at_once) {
            let Some(query) = self.queries.get(id) else {
                continue;
            };
            let (query, activation, collection) = (query.hash, query.activation, query.collection);
            if rebuild.pending.contains_key(&id) {
                self.rebase(&mut rebuild, id, true, out);
                rebuild.pending.remove(&id);
                let request = self.requests;
                let active = NodeEvent::Active {
                    query,
                    activation,
                    request,
                };
                self.voice.emit(active, out);
            } else {
                empty.push(EmptyResult {
                    query,
                    activation,
                    rules_version: rebuild.rules_version(&collection),
                });
            }
        }
        if !empty.is_empty() {
            let event = NodeEvent::Empty {
                queries: empty,
                snapshot: rebuild.snapshot.clone(),
                request: self.requests,
            };
            self.voice.emit(event, out);
        }
        if ids.len() > 0 {
            rebuild.unreported = Some(ids);
            self.phase = FilterPhase::Rebuilding(rebuild);
            return;
        }
        let snapshot = rebuild.snapshot;
        self.voice.emit(NodeEvent::Rebased { snapshot }, out);
    }
}

impl FilterRebuild {
    /// The newest access rules of a collection under which the rows may have been written.
    fn rules_version(&self, collection: &[u8; 16]) -> u64 {
        self.rules.get(collection).copied().unwrap_or(0)
    }
}
