//! Adds, removes and matches queries of all collections.

use std::hint::black_box;

use rillbase_query::bson::Document;
use rillbase_query::filter::Filter;

use crate::check::{Check, Compiled, Paths};
use crate::class::Class;
use crate::group::{AccessPath, CollectionQueries};
use crate::hashes::Hashes;
use crate::limits::{MatcherLimits, QueryRefusal};
use crate::match_plan::MatchPlan;
use crate::names::InternedNames;
use crate::placement::{Placement, QueryReach, is_everything, placement};
use crate::plan::Planner;
use crate::query::{IndexedQuery, Trials};
use crate::statistics::Statistics;
use crate::walk::{Candidates, WalkBuffers};

/// The maximum number of queries whose plans are reconsidered after one document.
const RECONSIDERED: usize = 4;

/// The number of a live query. Numbers are dense, and those of removed queries are reused.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct QueryId(pub u32);

/// Live queries of all collections, found by the documents that they match.
#[derive(Debug)]
pub struct Matcher {
    limits: MatcherLimits,
    hashes: Hashes,
    group_names: InternedNames,
    groups: Vec<CollectionQueries>,
    /// Tenants; their use counts are the numbers of their residual queries.
    quotas: InternedNames,
    paths: Paths,
    compiled: Compiled,
    queries: Vec<Option<IndexedQuery>>,
    free: Vec<u32>,
    scratch: WalkBuffers,
    proposals: Proposals,
    /// Queries that were recently proposed without matching.
    to_reconsider: Vec<u32>,
    sampled_bytes: usize,
    statistics: Statistics,
    /// How many queries there are of each class.
    classes: [usize; Class::ALL.len()],
    check_bytes: usize,
}

/// The candidates of a document, each once.
#[derive(Debug, Default)]
struct Proposals {
    queries: Vec<u32>,
    /// Those that certainly match.
    sure: Vec<u32>,
    /// For each query, the last document for which it was proposed.
    proposed: Vec<u32>,
    document: u32,
}

impl Candidates for Proposals {
    fn propose(&mut self, query: u32) {
        if let Some(last) = self.proposed.get_mut(query as usize)
            && std::mem::replace(last, self.document) != self.document
        {
            self.queries.push(query);
        }
    }

    fn sure(&mut self, query: u32) {
        self.sure.push(query);
    }
}

impl Matcher {
    /// A matcher without queries.
    #[must_use]
    pub fn new(limits: MatcherLimits) -> Self {
        Self {
            limits,
            hashes: Hashes::default(),
            group_names: InternedNames::default(),
            groups: Vec::new(),
            quotas: InternedNames::default(),
            paths: Paths::default(),
            compiled: Compiled::default(),
            queries: Vec::new(),
            free: Vec::new(),
            scratch: WalkBuffers::default(),
            proposals: Proposals::default(),
            to_reconsider: Vec::new(),
            sampled_bytes: 0,
            statistics: Statistics::default(),
            classes: [0; Class::ALL.len()],
            check_bytes: 0,
        }
    }

    /// Adds a query. `group` is the collection whose documents it is matched
    /// with, `quota` names whose quota it counts against if it is residual.
    ///
    /// # Errors
    ///
    /// It would be residual and exceed a limit.
    pub fn add(
        &mut self,
        group: [u8; 16],
        quota: [u8; 16],
        filter: &Filter,
    ) -> Result<QueryId, QueryRefusal> {
        let number = self.group_names.hold(group);
        if self.groups.len() <= number as usize {
            self.groups
                .resize_with(number as usize + 1, CollectionQueries::default);
        }
        let placed = self.choose_plan(number, quota, filter);
        if placed.is_err() {
            self.release_group(number);
        }
        placed
    }

    fn choose_plan(
        &mut self,
        number: u32,
        quota: [u8; 16],
        filter: &Filter,
    ) -> Result<QueryId, QueryRefusal> {
        let id = self.free.last().copied();
        let id = id.unwrap_or_else(|| u32::try_from(self.queries.len()).unwrap_or(u32::MAX));
        let Some(group) = self.groups.get_mut(number as usize) else {
            return Err(QueryRefusal::ResidualQuota);
        };
        let everything = is_everything(filter);
        let plan = Planner::new(&self.hashes, Some(&group.sample)).plan(filter.root());
        let access = match &plan {
            Some(plan) => group.add_entries(&plan.entries, id),
            None if everything => group.add_everything(id),
            None => {
                if group.residual.len() >= self.limits.residual_per_group
                    || self.quotas.uses(&quota) >= self.limits.residual_per_quota
                {
                    return Err(QueryRefusal::ResidualQuota);
                }
                group.add_residual(filter, id)
            }
        };
        let check = match access {
            // The set of residual filters keeps its own copies.
            AccessPath::Everything | AccessPath::Residual(_) => Check::none(),
            AccessPath::One(_) | AccessPath::Any(_) | AccessPath::Cells(_) => {
                Check::new(filter, &mut self.paths)
            }
        };
        let (class, selectivity) = summary(plan.as_ref(), everything);
        let quota = match access {
            AccessPath::Residual(_) => self.quotas.hold(quota),
            _ => 0,
        };
        let query = IndexedQuery {
            group: number,
            quota,
            access,
            check,
            class,
            selectivity,
            trials: Trials::since(group.documents),
        };
        self.keep(id, query);
        Ok(QueryId(id))
    }

    fn keep(&mut self, id: u32, query: IndexedQuery) {
        self.check_bytes += query.memory();
        self.count(query.class, true);
        self.free.pop();
        match self.queries.get_mut(id as usize) {
            Some(slot) => *slot = Some(query),
            None => self.queries.push(Some(query)),
        }
        self.proposals.proposed.resize(self.queries.len(), 0);
    }

    fn release_group(&mut self, number: u32) {
        if self.group_names.release(number)
            && let Some(group) = self.groups.get_mut(number as usize)
        {
            self.sampled_bytes = self.sampled_bytes.saturating_sub(group.sample.memory());
            *group = CollectionQueries::default();
        }
    }

    /// Removes a query, whose number may be reused.
    pub fn remove(&mut self, id: QueryId) {
        let slot = self.queries.get_mut(id.0 as usize);
        let Some(query) = slot.and_then(Option::take) else {
            return;
        };
        self.check_bytes = self.check_bytes.saturating_sub(query.memory());
        self.count(query.class, false);
        if let Some(group) = self.groups.get_mut(query.group as usize) {
            group.take_out(&query.access, id.0);
        }
        if matches!(query.access, AccessPath::Residual(_)) {
            self.quotas.release(query.quota);
        }
        query
            .check
            .release(id.0, &mut self.paths, &mut self.compiled);
        self.free.push(id.0);
        self.release_group(query.group);
    }

    /// Stores the queries of a group that match a document in `matched`, and those whose evaluation
    /// failed in `failed`, both sorted and without duplicates. Previous contents are dropped.
    pub fn matches(
        &mut self,
        group: &[u8; 16],
        document: Document<'_>,
        matched: &mut Vec<QueryId>,
        failed: &mut Vec<QueryId>,
    ) {
        matched.clear();
        failed.clear();
        let Some(number) = self.group_names.find(group) else {
            return;
        };
        let documents = self.propose(number, document);
        self.verify(documents, document, matched, failed);
        self.add_unindexed(number, document, matched, failed);
        matched.sort_unstable();
        failed.sort_unstable();
        self.statistics.failures += failed.len() as u64;
        self.reconsider();
    }

    /// Finds the candidates; returns how many documents the group has matched.
    fn propose(&mut self, number: u32, document: Document<'_>) -> u32 {
        let Some(group) = self.groups.get_mut(number as usize) else {
            self.begin();
            return 0;
        };
        group.documents = group.documents.wrapping_add(1);
        self.statistics.documents += 1;
        let before = group.sample.memory();
        let room = self.limits.sample_bytes.saturating_sub(self.sampled_bytes);
        group.sample.offer(document, room);
        self.sampled_bytes = self.sampled_bytes + group.sample.memory() - before;
        let documents = group.documents;
        self.collect_candidates(number, document);
        documents
    }

    /// Walks a document through the index and collects its candidates.
    fn collect_candidates(&mut self, number: u32, document: Document<'_>) {
        self.begin();
        let Some(group) = self.groups.get_mut(number as usize) else {
            return;
        };
        let proposals = &mut self.proposals;
        let whole = group.candidates(
            document,
            proposals.document,
            &self.hashes,
            &mut self.scratch,
            proposals,
        );
        if !whole {
            self.propose_all_numeric(number);
        }
        self.proposals.queries.sort_unstable();
    }

    /// Assigns a number to the document.
    fn begin(&mut self) {
        self.proposals.queries.clear();
        self.proposals.sure.clear();
        self.proposals.document = self.proposals.document.wrapping_add(1);
        if self.proposals.document == 0 {
            self.proposals.document = 1;
            self.proposals.proposed.fill(0);
            self.scratch.restart();
            self.groups.iter_mut().for_each(CollectionQueries::restart);
        }
    }

    /// Proposes all queries below array positions, after too many paths through positions. Omitting
    /// some would decide their filters without evaluating them.
    fn propose_all_numeric(&mut self, number: u32) {
        let Some(group) = self.groups.get(number as usize) else {
            return;
        };
        // Queries that are already certain may be among them.
        for query in std::mem::take(&mut self.proposals.sure) {
            self.proposals.propose(query);
        }
        for (id, query) in (0..).zip(&self.queries) {
            if let Some(query) = query
                && query.group == number
                && group.is_numeric(&query.access)
            {
                self.proposals.propose(id);
            }
        }
    }

    /// Evaluates the filter of each candidate.
    fn verify(
        &mut self,
        documents: u32,
        document: Document<'_>,
        matched: &mut Vec<QueryId>,
        failed: &mut Vec<QueryId>,
    ) {
        let (proposed, sure) = (&self.proposals.queries, &self.proposals.sure);
        self.statistics.candidates += (proposed.len() + sure.len()) as u64;
        matched.extend(sure.iter().copied().map(QueryId));
        self.prefetch();
        for id in &self.proposals.queries {
            let Some(Some(query)) = self.queries.get_mut(*id as usize) else {
                continue;
            };
            let answer = query.check.matches(*id, document, &mut self.compiled);
            let is_match = matches!(answer, Ok(true));
            match answer {
                Ok(true) => matched.push(QueryId(*id)),
                Ok(false) => {}
                Err(_) => failed.push(QueryId(*id)),
            }
            if query.trials.count(is_match, documents) && self.to_reconsider.len() < RECONSIDERED {
                self.to_reconsider.push(*id);
            }
        }
        self.statistics.verified += matched.len() as u64;
    }

    /// Reads the memory of all candidates in advance, so that cache misses overlap.
    fn prefetch(&self) {
        let queries = self.proposals.queries.iter();
        let queries = queries.filter_map(|id| self.queries.get(*id as usize)?.as_ref());
        black_box(queries.clone().map(|query| query.group).max());
        black_box(queries.map(|query| query.check.peek()).sum::<usize>());
    }

    /// Adds the queries that no index entry proposes.
    fn add_unindexed(
        &mut self,
        number: u32,
        document: Document<'_>,
        matched: &mut Vec<QueryId>,
        failed: &mut Vec<QueryId>,
    ) {
        let Some(group) = self.groups.get_mut(number as usize) else {
            return;
        };
        matched.extend(group.everything().map(QueryId));
        self.statistics.residual_evaluations += group.residual.len() as u64;
        group.residual.matches(
            document,
            &mut |query| matched.push(QueryId(query)),
            &mut |query| failed.push(QueryId(query)),
        );
    }

    /// Moves queries that are often proposed without matching, if a better predicate is known by
    /// now.
    fn reconsider(&mut self) {
        while let Some(id) = self.to_reconsider.pop() {
            self.reconsider_one(id);
        }
    }

    fn reconsider_one(&mut self, id: u32) {
        let Some(Some(query)) = self.queries.get_mut(id as usize) else {
            return;
        };
        let Some(group) = self.groups.get_mut(query.group as usize) else {
            return;
        };
        let observed = query.trials.observed(group.documents);
        let specs = group.entry_specs(&query.access);
        let planner =
            Planner::new(&self.hashes, Some(&group.sample)).with_observed(&specs, observed);
        let tree = query.check.node(id, &mut self.compiled);
        let plan = tree.and_then(|tree| planner.plan(&tree));
        query.trials.restart(group.documents);
        let Some(plan) = plan else {
            return;
        };
        if plan.entries == specs || plan.selectivity > observed / 2.0 {
            query.trials.double_interval();
            return;
        }
        self.check_bytes = self.check_bytes.saturating_sub(query.memory());
        group.take_out(&query.access, id);
        query.access = group.add_entries(&plan.entries, id);
        let before = query.class;
        (query.class, query.selectivity) = summary(Some(&plan), false);
        let after = query.class;
        self.check_bytes += query.memory();
        self.count(before, false);
        self.count(after, true);
        self.statistics.moves += 1;
    }

    fn count(&mut self, class: Class, more: bool) {
        if let Some(count) = self.classes.get_mut(class as usize) {
            *count = if more {
                *count + 1
            } else {
                count.saturating_sub(1)
            };
        }
    }

    /// The number of queries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queries.len() - self.free.len()
    }

    /// Whether there are no queries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How the index finds a query. An unknown number is reported as never matching.
    #[must_use]
    pub fn explain(&self, id: QueryId) -> Placement {
        let query = self.queries.get(id.0 as usize).and_then(Option::as_ref);
        let group = query.and_then(|query| self.groups.get(query.group as usize));
        Placement {
            class: query.map_or(Class::Never, |query| query.class),
            selectivity: query.map_or(0.0, |query| f64::from(query.selectivity)),
            paths: match (query, group) {
                (Some(query), Some(group)) => group.paths(&query.access),
                _ => Vec::new(),
            },
        }
    }

    /// Returns whether the index leads a document to a query, and how, without counting the
    /// document. An unknown number is never reached.
    pub fn reach(&mut self, id: QueryId, document: Document<'_>) -> QueryReach {
        let placement = self.explain(id);
        let query = self.queries.get(id.0 as usize).and_then(Option::as_ref);
        let Some((number, access)) = query.map(|query| (query.group, &query.access)) else {
            return QueryReach {
                placement,
                reached: false,
            };
        };
        let whoever = matches!(access, AccessPath::Everything | AccessPath::Residual(_));
        if !whoever {
            self.collect_candidates(number, document);
        }
        let Proposals { queries, sure, .. } = &self.proposals;
        let reached = whoever || queries.contains(&id.0) || sure.contains(&id.0);
        QueryReach { placement, reached }
    }

    /// The figures.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let classes = Class::ALL.into_iter().zip(self.classes);
        Statistics {
            queries: classes.filter(|(_, count)| *count > 0).collect(),
            residual: self.quotas.in_use().collect(),
            memory_bytes: self.memory(),
            ..self.statistics.clone()
        }
    }

    /// The approximate total size in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let slots = self.queries.capacity() * size_of::<Option<IndexedQuery>>()
            + self.proposals.proposed.capacity() * size_of::<u32>();
        let groups = self
            .groups
            .iter()
            .map(CollectionQueries::memory)
            .sum::<usize>();
        slots + groups + self.check_bytes + self.paths.memory() + self.scratch.memory()
    }
}

fn summary(plan: Option<&MatchPlan>, everything: bool) -> (Class, f32) {
    let placement = Placement::of(plan, everything);
    #[allow(
        clippy::cast_possible_truncation,
        reason = "a share of documents needs no more precision"
    )]
    let selectivity = placement.selectivity as f32;
    (placement.class, selectivity)
}

/// How an empty index would lead a document to a filter.
#[must_use]
pub fn reach(filter: &Filter, document: Document<'_>) -> QueryReach {
    let mut matcher = Matcher::new(MatcherLimits::default());
    match matcher.add([0; 16], [0; 16], filter) {
        Ok(id) => matcher.reach(id, document),
        Err(QueryRefusal::ResidualQuota) => QueryReach {
            placement: placement(filter),
            reached: true,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rillbase_query::ejson::parse_document;

    #[test]
    fn numbers_of_documents_that_come_round_hide_nothing() {
        let mut matcher = Matcher::new(MatcherLimits::default());
        let query = parse_document(br#"{"a":{"$in":[1,2]},"b":{"$gt":0}}"#).expect("json");
        let query = Filter::parse(query.as_ref()).expect("a filter");
        let id = matcher.add([1; 16], [1; 16], &query).expect("room");
        let body = parse_document(br#"{"a":[1,2,2],"b":1}"#).expect("json");
        let (mut ids, mut failed) = (Vec::new(), Vec::new());
        // The same numbers were in use before they wrapped around.
        matcher.matches(&[1; 16], body.as_ref(), &mut ids, &mut failed);
        matcher.proposals.document = u32::MAX - 2;
        for _ in 0..5 {
            matcher.matches(&[1; 16], body.as_ref(), &mut ids, &mut failed);
            assert_eq!(ids, [id]);
        }
    }
}
