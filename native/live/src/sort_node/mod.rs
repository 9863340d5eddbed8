//! The sort node: the windows of the sorted queries of one query partition.
//!
//! For each query it keeps the first rows, up to the end of the window and some beyond (slack), and
//! applies the filter nodes' reports to them. A row placed after the last known one is dropped,
//! because whether it is the next one is unknown. When so many rows have left that the window's end
//! is unknown, the query must be read again (`Renew`); until then steps are collected.
//!
//! For a grouped query it keeps all documents, reduced to what their groups need
//! ([`grouped_rows`]), and reports the rows that stand for groups.
//!
//! For a query with lookups it also keeps the looked-up documents ([`joined`]); reports about
//! looked-up collections go to all queries that use them ([`sides`]).
//!
//! The writes of a batch are applied together, once every filter node concerned has handled its
//! part; later writes of the query queue after them. So one `Window` is one write, one batch or one
//! renewal.
//!
//! ```text
//! requests ── Request ▶ registration ──▶ Rebase, Active
//! log ─────── Log ────▶ sources (order, completeness) ─▶ query (queue) ─▶ Window, Renew
//!                       └ ticks of all filter nodes ────────────────────▶ Tick, or Rebuild
//! documents ─ Rows ───▶ rebuild ──▶ Start, Rebase …, Rebased
//! ```

mod answers;
mod config;
mod document_fetches;
mod entries;
mod grouped_rows;
mod joined;
mod orphans;
mod query;
mod query_write;
mod rebuild;
mod registration;
mod retained_rows;
mod rows;
mod sides;
mod sources;
mod steps;

pub use config::SortNodeConfig;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use rillbase_documents::refusal::DocumentRefusal;

use crate::message::{
    NodeEvent, NodeRequest, Notification, NotificationSource, QueryHash, StreamId,
};
use crate::node::{self, NodeOutput, NotificationWriter, RebuildReason};
use crate::snapshot::PgSnapshot;

use orphans::Orphans;
use query::SortedQuery;
use rebuild::SortRebuild;
use sides::SharedSides;
use sources::Sources;

pub(crate) use steps::steps;

/// The input of a sort node.
pub type Input = node::NodeInput<Notification>;

/// The state machine of a sort node. See the module.
#[derive(Debug)]
pub struct SortNode {
    config: SortNodeConfig,
    voice: NotificationWriter,
    phase: SortPhase,
    queries: BTreeMap<QueryHash, SortedQuery>,
    /// Queries that do not concern this node: reports about them are not orphans.
    unsorted: HashSet<QueryHash>,
    /// Queries whose steps wait for the rest of a batch.
    held: BTreeSet<QueryHash>,
    /// Queries that refer to unknown documents.
    incomplete: BTreeSet<QueryHash>,
    /// How many requests this holder has made.
    fetches: u64,
    orphans: Orphans,
    sides: SharedSides,
    sources: Sources,
    /// What the last rebuild has seen.
    rebuilt: PgSnapshot,
    /// The last tick of all filter nodes: everything that it sees was reported.
    complete: Option<PgSnapshot>,
}

#[derive(Debug)]
enum SortPhase {
    /// Its state is incomplete, and no rebuild has started.
    NeedsRebuild,
    Rebuilding(Box<SortRebuild>),
    Running,
}

/// Figures about a sort node for operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortFigures {
    /// Registered queries.
    pub queries: usize,
    /// Their rows, slack included.
    pub rows: usize,
    /// Queries that wait for new rows.
    pub waiting: usize,
}

impl SortNode {
    /// A node without state. Its first input must be [`Input::Start`].
    pub fn new(config: SortNodeConfig) -> Self {
        Self {
            voice: NotificationWriter::new(NotificationSource::Sort, config.token),
            phase: SortPhase::NeedsRebuild,
            queries: BTreeMap::new(),
            unsorted: HashSet::new(),
            held: BTreeSet::new(),
            incomplete: BTreeSet::new(),
            fetches: 0,
            orphans: Orphans::new(config.max_waiting, config.orphans_us),
            sides: config.sides(),
            sources: Sources::new(config.partitions, StreamId::default()),
            rebuilt: PgSnapshot::default(),
            complete: None,
            config,
        }
    }

    /// Handles one input.
    pub fn handle(&mut self, input: Input, now_us: u64, out: &mut Vec<NodeOutput>) {
        match input {
            Input::Start => self.start(out),
            Input::Queries(queries) => self.add_queries(&queries, out),
            Input::Begin(begin) => self.begin(begin),
            Input::Rows { collection, rows } => self.rows(collection, &rows),
            Input::End => self.end(now_us, out),
            Input::Request { id, request } if self.is_running() => {
                self.request(id, request, now_us, out);
            }
            Input::Entry { id, entry } if self.is_running() => self.log(id, entry, now_us, out),
            // What the entry reported is in the documents that a rebuild reads.
            Input::Quarantined { .. } if self.is_running() => {
                self.request_rebuild(RebuildReason::Unreadable, out);
            }
            Input::LeftOut { collection } if self.is_running() => {
                self.poison(collection, out);
            }
            Input::Idle if self.is_running() => self.idle(now_us, out),
            Input::Request { .. }
            | Input::Entry { .. }
            | Input::Quarantined { .. }
            | Input::LeftOut { .. }
            | Input::Idle => {}
        }
    }

    /// Whether it keeps windows; otherwise it waits for a rebuild or is being rebuilt.
    pub const fn is_running(&self) -> bool {
        matches!(self.phase, SortPhase::Running)
    }

    /// Whether a rebuild has begun and is not over: it waits for rows or for another `End`.
    pub const fn is_rebuilding(&self) -> bool {
        matches!(self.phase, SortPhase::Rebuilding(_))
    }

    /// The node's figures.
    pub fn figures(&self) -> SortFigures {
        let waiting = self
            .queries
            .values()
            .filter(|query| query.waiting.is_some());
        SortFigures {
            queries: self.queries.len(),
            rows: self.queries.values().map(SortedQuery::len).sum(),
            waiting: waiting.count(),
        }
    }

    /// Requests new rows if the window's end is unknown.
    fn check(&mut self, hash: QueryHash, now_us: u64, out: &mut Vec<NodeOutput>) {
        let Some(query) = self.queries.get_mut(&hash) else {
            return;
        };
        if !query.shown {
            return self.request_documents(hash, now_us, out);
        }
        if query.is_too_large() {
            let rows = self.config.max_rows;
            let detail = format!("a live result has at most {rows} rows, and 256 MiB");
            self.fail(hash, &DocumentRefusal::new("result_too_large", detail), out);
        } else if query.is_aside_overfull(self.config.max_waiting) {
            query.aside = None;
            self.renew(hash, now_us, out);
        } else if query.is_short() {
            self.renew(hash, now_us, out);
        } else {
            self.request_documents(hash, now_us, out);
        }
    }

    /// Requests new rows, unless that was done.
    fn renew(&mut self, hash: QueryHash, now_us: u64, out: &mut Vec<NodeOutput>) {
        if let Some(query) = self.queries.get_mut(&hash)
            && query.waiting.is_none()
        {
            query.wait(self.config.max_slack, now_us);
            self.ask(hash, now_us, out);
        }
    }

    fn ask(&mut self, hash: QueryHash, now_us: u64, out: &mut Vec<NodeOutput>) {
        if let Some(query) = self.queries.get_mut(&hash)
            && let Some(waiting) = &mut query.waiting
        {
            waiting.asked_us = now_us;
            let event = NodeEvent::Renew {
                query: hash,
                activation: query.activation,
                slack: query.slack,
            };
            self.voice.emit(event, out);
        }
    }

    /// Ends the queries that an unreadable document may concern.
    fn poison(&mut self, collection: [u8; 16], out: &mut Vec<NodeOutput>) {
        let poisoned = self.queries.values();
        let poisoned = poisoned.filter(|query| {
            let mut sides = query.sides.iter();
            query.collection == collection || sides.any(|side| side.collection == collection)
        });
        for hash in poisoned.map(|query| query.hash).collect::<Vec<_>>() {
            let detail = "a document could not be placed";
            self.fail(hash, &DocumentRefusal::new("poison", detail), out);
        }
    }

    fn request_rebuild(&mut self, why: RebuildReason, out: &mut Vec<NodeOutput>) {
        self.phase = SortPhase::NeedsRebuild;
        out.push(NodeOutput::Rebuild(why));
    }

    fn fail(&mut self, hash: QueryHash, refusal: &DocumentRefusal, out: &mut Vec<NodeOutput>) {
        self.remove(&hash);
        self.held.remove(&hash);
        self.refuse(hash, refusal, out);
    }

    fn remove(&mut self, hash: &QueryHash) -> Option<SortedQuery> {
        let query = self.queries.remove(hash)?;
        self.incomplete.remove(hash);
        self.sides.leave(hash, &query.sides);
        Some(query)
    }

    fn refuse(&mut self, query: QueryHash, refusal: &DocumentRefusal, out: &mut Vec<NodeOutput>) {
        let event = NodeEvent::Failed {
            query,
            code: refusal.code.clone().into_owned(),
            detail: refusal.detail.clone(),
        };
        self.voice.emit(event, out);
    }

    fn request(
        &mut self,
        id: StreamId,
        request: NodeRequest,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) {
        match request {
            NodeRequest::Expire { query, activation } => self.expire(query, activation, now_us),
            NodeRequest::Register { query, .. } if !query.sorted => {
                self.orphans.adopt(&query.hash, now_us);
                self.unsorted.insert(query.hash);
            }
            NodeRequest::Register {
                query,
                snapshot,
                rows,
                complete,
                foreign,
                renewal,
                positions: _,
            } => {
                let registration = registration::SortRegistration {
                    id,
                    query: &query,
                    snapshot: &snapshot,
                    rows: &rows,
                    complete,
                    foreign: &foreign,
                    renewal,
                };
                self.register(&registration, now_us, out);
            }
            NodeRequest::Fetched { fetch, documents } => {
                self.fetched(&fetch, documents, now_us, out);
            }
        }
    }
}
