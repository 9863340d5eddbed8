//! A node that knows nothing, or no longer everything, is told all documents once.

use std::collections::HashMap;

use rillbase_documents::refusal::Refusal;
use rillbase_matching::{Matcher, QueryId};
use rillbase_query::bson::Document;

use crate::message::{Definition, News, QueryHash, Row, StreamId};
use crate::node::{Begin, Output};
use crate::snapshot::Snapshot;

use super::kept::Gathered;
use super::orphans::Orphans;
use super::query::Query;
use super::sources::Sources;
use super::{Phase, SortNode};

/// A rebuild that is under way.
#[derive(Debug)]
pub(super) struct Rebuild {
    matcher: Matcher,
    building: HashMap<QueryId, Building>,
    requests: StreamId,
    snapshot: Snapshot,
    rules: HashMap<[u8; 16], u64>,
}

/// What is known of a query, so far.
#[derive(Debug)]
struct Building {
    query: Query,
    gathered: Gathered,
}

impl SortNode {
    pub(super) fn start(&mut self, out: &mut Vec<Output>) {
        self.phase = Phase::Asleep;
        self.voice.say(News::Start, out);
    }

    pub(super) fn begin(&mut self, begin: Begin, out: &mut Vec<Output>) {
        let config = &self.config;
        self.sources = Sources::new(config.partitions, begin.position);
        self.orphans = Orphans::new(config.max_waiting, config.orphans_us);
        self.queries.clear();
        self.unsorted.clear();
        self.held.clear();
        self.complete = None;
        self.rebuilt = begin.snapshot.clone();
        let mut rebuild = Rebuild {
            matcher: Matcher::new(config.limits),
            building: HashMap::new(),
            requests: begin.requests,
            snapshot: begin.snapshot,
            rules: begin.rules,
        };
        for definition in &begin.queries {
            if !definition.sorted {
                self.unsorted.insert(definition.hash);
            } else if let Err(refusal) = self.build(&mut rebuild, definition) {
                self.refuse(definition.hash, &refusal, out);
            }
        }
        self.phase = Phase::Rebuilding(Box::new(rebuild));
    }

    fn build(&self, rebuild: &mut Rebuild, definition: &Definition) -> Result<(), Refusal> {
        let filter = crate::filter_node::parse(definition)?;
        let mut query = Query::new(definition)?;
        query.read = rebuild.requests;
        let rules = rebuild.rules.get(&definition.collection);
        query.know_rules(rules.copied().unwrap_or(0));
        let added = rebuild
            .matcher
            .add(definition.collection, definition.tenant, &filter);
        let id = added.map_err(|refused| Refusal::new("residual_quota", refused.to_string()))?;
        let building = Building {
            gathered: query.gathered(definition, self.config.max_rows)?,
            query,
        };
        rebuild.building.insert(id, building);
        Ok(())
    }

    pub(super) fn rows(&mut self, collection: [u8; 16], rows: &[Row], out: &mut Vec<Output>) {
        let Phase::Rebuilding(mut rebuild) = std::mem::replace(&mut self.phase, Phase::Asleep)
        else {
            return;
        };
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        for row in rows {
            found.clear();
            let document = Document::trusted(&row.body);
            let matcher = &mut rebuild.matcher;
            matcher.matches(&collection, document, &mut found, &mut failed);
            for id in failed.drain(..) {
                let detail = "a document took too many steps";
                let refusal = Refusal::new("query_too_expensive", detail);
                self.drop(&mut rebuild, id, &refusal, out);
            }
            for id in &found {
                let building = rebuild.building.get_mut(id);
                let pushed =
                    building.map(|Building { query, gathered }| gathered.push(row, query.order()));
                if let Some(Err(refusal)) = pushed {
                    self.drop(&mut rebuild, *id, &refusal, out);
                }
            }
        }
        self.phase = Phase::Rebuilding(rebuild);
    }

    fn drop(
        &mut self,
        rebuild: &mut Rebuild,
        id: QueryId,
        refusal: &Refusal,
        out: &mut Vec<Output>,
    ) {
        rebuild.matcher.remove(id);
        if let Some(building) = rebuild.building.remove(&id) {
            self.refuse(building.query.hash, refusal, out);
        }
    }

    pub(super) fn end(&mut self, now_us: u64, out: &mut Vec<Output>) {
        let Phase::Rebuilding(rebuild) = std::mem::replace(&mut self.phase, Phase::Running) else {
            self.phase = Phase::Asleep;
            return;
        };
        let Rebuild {
            building, snapshot, ..
        } = *rebuild;
        for (_, building) in building {
            let Building {
                mut query,
                gathered,
            } = building;
            match gathered.kept(true, query.order()) {
                Err(refusal) => self.refuse(query.hash, &refusal, out),
                Ok(kept) => {
                    query.settle(kept, &snapshot);
                    self.queries.insert(query.hash, query);
                }
            }
        }
        let hashes: Vec<QueryHash> = self.queries.keys().copied().collect();
        for hash in hashes {
            self.tell(hash, out);
            self.check(hash, now_us, out);
        }
        self.voice.say(News::Rebased { snapshot }, out);
    }
}
