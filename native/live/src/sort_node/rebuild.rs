//! A rebuild: a node whose state is missing or incomplete reads all documents once.

use std::collections::{HashMap, HashSet};

use rillbase_documents::refusal::DocumentRefusal;
use rillbase_matching::{Matcher, QueryId};
use rillbase_query::bson::Document;
use rillbase_query::filter::Filter;

use crate::message::{LookupSide, NodeEvent, QueryDefinition, QueryHash, ResultRow};
use crate::node::{Begin, NodeOutput};
use crate::snapshot::PgSnapshot;

use super::orphans::Orphans;
use super::query::SortedQuery;
use super::retained_rows::RowCollector;
use super::sources::Sources;
use super::{SortNode, SortPhase};

/// A rebuild in progress.
#[derive(Debug)]
pub(super) struct SortRebuild {
    matcher: Matcher,
    building: HashMap<QueryId, RebuiltQuery>,
    sides: RebuiltSides,
    /// The hashes of the sorted queries so far.
    added: HashSet<QueryHash>,
    snapshot: PgSnapshot,
    /// Once all rows have been passed: the queries that have not been reported yet.
    unreported: Option<std::vec::IntoIter<RebuiltQuery>>,
}

/// The sides of queries, by their numbers and hashes.
#[derive(Debug, Default)]
struct RebuiltSides {
    by_id: HashMap<QueryId, (QueryHash, Vec<QueryId>)>,
    by_hash: HashMap<QueryHash, QueryId>,
}

/// The state of a query so far.
#[derive(Debug)]
struct RebuiltQuery {
    query: SortedQuery,
    gathered: RowCollector,
}

impl SortNode {
    pub(super) fn start(&mut self, out: &mut Vec<NodeOutput>) {
        let config = &self.config;
        self.orphans = Orphans::new(config.max_waiting, config.orphans_us);
        self.sides = config.sides();
        self.queries.clear();
        self.unsorted.clear();
        self.held.clear();
        self.incomplete.clear();
        self.complete = None;
        self.phase = SortPhase::Rebuilding(Box::new(SortRebuild {
            matcher: Matcher::new(config.limits),
            building: HashMap::new(),
            sides: RebuiltSides::default(),
            added: HashSet::new(),
            snapshot: PgSnapshot::default(),
            unreported: None,
        }));
        self.voice.emit(NodeEvent::Start, out);
    }

    pub(super) fn add_queries(&mut self, queries: &[QueryDefinition], out: &mut Vec<NodeOutput>) {
        let SortPhase::Rebuilding(mut rebuild) =
            std::mem::replace(&mut self.phase, SortPhase::NeedsRebuild)
        else {
            return;
        };
        for definition in queries {
            if !definition.sorted {
                self.unsorted.insert(definition.hash);
            } else if rebuild.added.insert(definition.hash)
                && let Err(refusal) = self.build(&mut rebuild, definition)
            {
                self.refuse(definition.hash, &refusal, out);
            }
        }
        self.phase = SortPhase::Rebuilding(rebuild);
    }

    pub(super) fn begin(&mut self, begin: Begin) {
        let SortPhase::Rebuilding(rebuild) = &mut self.phase else {
            return;
        };
        self.sources = Sources::new(self.config.partitions, begin.position);
        self.rebuilt = begin.snapshot.clone();
        for building in rebuild.building.values_mut() {
            building.query.read = begin.requests;
            building.query.apply_rules(&begin.rules);
        }
        rebuild.snapshot = begin.snapshot;
    }

    fn build(
        &mut self,
        rebuild: &mut SortRebuild,
        definition: &QueryDefinition,
    ) -> Result<(), DocumentRefusal> {
        let filter = crate::filter_node::parse(definition)?;
        let query = SortedQuery::new(definition)?;
        let added = rebuild
            .matcher
            .add(definition.collection, definition.tenant, &filter);
        let id =
            added.map_err(|refused| DocumentRefusal::new("residual_quota", refused.to_string()))?;
        let building = RebuiltQuery {
            gathered: query.gathered(definition, None, self.config.max_rows)?,
            query,
        };
        for side in definition.sides.iter() {
            rebuild.add_side(definition, side, id)?;
        }
        rebuild.building.insert(id, building);
        self.sides.join(definition, 0);
        Ok(())
    }

    pub(super) fn rows(&mut self, collection: [u8; 16], rows: &[ResultRow]) {
        let SortPhase::Rebuilding(mut rebuild) =
            std::mem::replace(&mut self.phase, SortPhase::NeedsRebuild)
        else {
            return;
        };
        let (mut queries, mut failed) = (Vec::new(), Vec::new());
        for row in rows {
            queries.clear();
            let document = Document::trusted(&row.body);
            let matcher = &mut rebuild.matcher;
            matcher.matches(&collection, document, &mut queries, &mut failed);
            for id in &queries {
                if let Some(RebuiltQuery { query, gathered }) = rebuild.building.get_mut(id) {
                    gathered.push(row, query.order());
                }
                rebuild.push_other(*id, row);
            }
        }
        self.phase = SortPhase::Rebuilding(rebuild);
    }

    pub(super) fn end(&mut self, now_us: u64, out: &mut Vec<NodeOutput>) {
        let SortPhase::Rebuilding(mut rebuild) =
            std::mem::replace(&mut self.phase, SortPhase::Running)
        else {
            self.phase = SortPhase::NeedsRebuild;
            return;
        };
        let mut unreported = rebuild
            .unreported
            .take()
            .unwrap_or_else(|| rebuild.take_queries());
        for query in unreported.by_ref().take(self.config.reported_at_once) {
            self.report(query, &rebuild.snapshot, now_us, out);
        }
        if unreported.len() > 0 {
            rebuild.unreported = Some(unreported);
            self.phase = SortPhase::Rebuilding(rebuild);
            return;
        }
        let snapshot = rebuild.snapshot;
        self.voice.emit(NodeEvent::Rebased { snapshot }, out);
    }

    /// All rows of a query have been passed: it is reported.
    fn report(
        &mut self,
        RebuiltQuery {
            mut query,
            gathered,
        }: RebuiltQuery,
        snapshot: &PgSnapshot,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) {
        let hash = query.hash;
        match gathered.into_rows(true, query.order()) {
            Err(refusal) => {
                self.sides.leave(&hash, &query.sides);
                self.refuse(hash, &refusal, out);
                return;
            }
            Ok(rows) => query.settle_alone(rows, snapshot),
        }
        let incomplete = query.has_unknown_references();
        if incomplete {
            // Its subscribers are notified when that has been read.
            query.hold(Vec::new());
            query.shown = false;
            query.rebase_pending = true;
        }
        self.queries.insert(hash, query);
        if incomplete {
            self.request_documents(hash, now_us, out);
        } else {
            self.emit_start(hash, out);
            self.check(hash, now_us, out);
        }
    }
}

impl SortRebuild {
    fn take_queries(&mut self) -> std::vec::IntoIter<RebuiltQuery> {
        let building = std::mem::take(&mut self.building);
        let mut queries: Vec<RebuiltQuery> = building.into_values().collect();
        queries.sort_unstable_by_key(|building| building.query.hash);
        queries.into_iter()
    }

    /// Adds a side that a query looks up. Queries that share it share its place in the index.
    fn add_side(
        &mut self,
        query: &QueryDefinition,
        side: &LookupSide,
        user: QueryId,
    ) -> Result<(), DocumentRefusal> {
        let known = self.sides.by_hash.get(&side.hash).copied();
        let id = if let Some(id) = known {
            id
        } else {
            let filter = Filter::parse(Document::parse(&side.filter)?)?;
            let added = self.matcher.add(side.collection, query.tenant, &filter);
            added.map_err(|refused| DocumentRefusal::new("residual_quota", refused.to_string()))?
        };
        self.sides.by_hash.insert(side.hash, id);
        let known = self.sides.by_id.entry(id);
        known.or_insert((side.hash, Vec::new())).1.push(user);
        Ok(())
    }

    /// Passes a document of a side to all queries that look it up.
    fn push_other(&mut self, id: QueryId, row: &ResultRow) {
        let Some((side, users)) = self.sides.by_id.get(&id) else {
            return;
        };
        for user in users {
            if let Some(building) = self.building.get_mut(user) {
                building.gathered.push_other(side, row);
            }
        }
    }
}
