//! A node that knows nothing, or no longer everything, is told all documents of its partition once.

use std::collections::HashMap;

use rillbase_matching::{Matcher, QueryId};
use rillbase_query::bson::Document;

use crate::message::{News, Row};
use crate::node::{Begin, Output};
use crate::snapshot::Snapshot;

use super::ahead::Ahead;
use super::documents::Documents;
use super::queries::Queries;
use super::retained::Retained;
use super::sides::Sides;
use super::stream::Stream;
use super::{FilterNode, Phase};

/// A rebuild that is under way.
#[derive(Debug)]
pub(super) struct Rebuild {
    snapshot: Snapshot,
    rules: HashMap<[u8; 16], u64>,
    /// Rows that are not told yet, by query.
    pending: HashMap<QueryId, Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    rows: Vec<Row>,
    bytes: usize,
    part: u32,
}

impl FilterNode {
    pub(super) fn start(&mut self, out: &mut Vec<Output>) {
        self.phase = Phase::NeedsRebuild;
        self.voice.say(News::Start, out);
    }

    pub(super) fn begin(&mut self, begin: Begin, now_us: u64, out: &mut Vec<Output>) {
        let config = &self.config;
        self.matcher = Matcher::new(config.limits);
        self.queries = Queries::default();
        self.sides = Sides::default();
        self.documents = Documents::new(config.remembered_us);
        self.ahead = Ahead::default();
        self.retained = Retained::new(begin.position, config.retained_us, config.retained_bytes);
        self.stream = Stream::new(begin.position, begin.count);
        self.requests = begin.requests;
        self.batch = None;
        let until_us = now_us.saturating_add(config.remembered_us);
        for query in &begin.queries {
            if let Some((id, _)) = self.add(query, out) {
                self.queries
                    .insert(id, query, &begin.snapshot, true, until_us);
            }
        }
        self.phase = Phase::Rebuilding(Rebuild {
            snapshot: begin.snapshot,
            rules: begin.rules,
            pending: HashMap::new(),
        });
    }

    pub(super) fn rows(
        &mut self,
        collection: [u8; 16],
        rows: Vec<Row>,
        now_us: u64,
        out: &mut Vec<Output>,
    ) {
        let Phase::Rebuilding(mut rebuild) =
            std::mem::replace(&mut self.phase, Phase::NeedsRebuild)
        else {
            return;
        };
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        for row in rows {
            if !self.is_mine(&row.key) {
                continue;
            }
            found.clear();
            let document = Document::trusted(&row.body);
            self.matcher
                .matches(&collection, document, &mut found, &mut failed);
            found.retain(|id| !self.sides.is_side(*id));
            if !found.is_empty() {
                let known = self.documents.touch(collection, &row.key, now_us);
                known.members = found.iter().map(|id| self.queries.member(*id)).collect();
            }
            for id in &found {
                self.tell(&mut rebuild, *id, &row, out);
            }
        }
        self.phase = Phase::Rebuilding(rebuild);
    }

    fn tell(&mut self, rebuild: &mut Rebuild, id: QueryId, row: &Row, out: &mut Vec<Output>) {
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

    fn rebase(&mut self, rebuild: &mut Rebuild, id: QueryId, last: bool, out: &mut Vec<Output>) {
        let Some(query) = self.queries.get(id) else {
            return;
        };
        let pending = rebuild.pending.entry(id).or_default();
        let news = News::Rebase {
            query: query.hash,
            activation: query.activation,
            snapshot: rebuild.snapshot.clone(),
            rules_version: rebuild.rules.get(&query.collection).copied().unwrap_or(0),
            rows: std::mem::take(&mut pending.rows),
            part: pending.part,
            last,
        };
        pending.bytes = 0;
        pending.part += 1;
        self.voice.say(news, out);
    }

    pub(super) fn end(&mut self, out: &mut Vec<Output>) {
        let Phase::Rebuilding(mut rebuild) = std::mem::replace(&mut self.phase, Phase::Running)
        else {
            self.phase = Phase::NeedsRebuild;
            return;
        };
        for id in self.queries.ids() {
            let Some(query) = self.queries.get(id) else {
                continue;
            };
            let active = News::Active {
                query: query.hash,
                activation: query.activation,
                request: self.requests,
            };
            if !query.sorted {
                self.rebase(&mut rebuild, id, true, out);
                rebuild.pending.remove(&id);
            }
            self.voice.say(active, out);
        }
        let snapshot = rebuild.snapshot;
        self.voice.say(News::Rebased { snapshot }, out);
    }
}
