//! The filter node: which results a write changes, for the queries of one query partition and the
//! documents of one write partition.
//!
//! For each document that is in some query's result or was written recently, it knows the highest
//! version that it handled and the queries that this version matches. A write is matched against
//! all queries of its collection ([`rillbase_matching`]); the difference from the previous list
//! says which results it enters, stays in and leaves. Writes arrive in any order and repeatedly: a
//! version that is not higher than the handled one changes nothing.
//!
//! A query is registered with the rows that its snapshot sees and with the end of the write stream
//! from before that snapshot. Entries after that end are replayed for it from [`retained`]; writes
//! that the snapshot sees are ignored for it, then and later ([`queries::Guard`]). Rows of
//! subscribers that join later may be [`unconfirmed_rows`], ahead of what the node has handled.
//!
//! ```text
//! write stream ── Write ─▶ stream (counts) ─▶ retained
//!                                          └▶ writes ──▶ Match, Done
//!                          stream (ticks)  ──▶ Tick, or Rebuild
//! requests ───── Request ▶ registration ──▶ Active, TooOld, Failed
//! documents ──── Rows ───▶ rebuild ──▶ Start, Rebase …, Rebased
//! ```

mod config;
mod documents;
mod incremental_map;
mod queries;
mod rebuild;
mod registration;
mod retained;
mod sides;
mod stream;
mod unconfirmed_rows;
mod writes;

pub use config::FilterNodeConfig;
pub(crate) use registration::parse;

use rillbase_matching::{Matcher, QueryId, Statistics};

use crate::message::{
    NodeEvent, NodeRequest, NotificationSource, QueryHash, StreamId, StreamTick, WriteEntry,
};
use crate::node::{self, NodeOutput, NotificationWriter, RebuildReason};

use documents::TrackedDocuments;
use queries::WatchedQueries;
use rebuild::FilterRebuild;
use retained::Retained;
use sides::WatchedSides;
use stream::{StreamProgress, TickVerdict};
use unconfirmed_rows::UnconfirmedRows;
use writes::MatchBuffers;

/// The input of a filter node.
pub type Input = node::NodeInput<WriteEntry>;

/// The state machine of a filter node. See the module.
#[derive(Debug)]
pub struct FilterNode {
    config: FilterNodeConfig,
    voice: NotificationWriter,
    phase: FilterPhase,
    matcher: Matcher,
    queries: WatchedQueries,
    sides: WatchedSides,
    documents: TrackedDocuments,
    ahead: UnconfirmedRows,
    retained: Retained,
    stream: StreamProgress,
    /// The last request that was read.
    requests: StreamId,
    /// The batch whose images are being read.
    batch: Option<u64>,
    scratch: MatchBuffers,
}

#[derive(Debug)]
enum FilterPhase {
    /// Its state is incomplete, and no rebuild has started.
    NeedsRebuild,
    Rebuilding(FilterRebuild),
    Running,
}

/// Figures about a filter node for operators.
#[derive(Debug, Clone)]
pub struct FilterFigures {
    /// Registered queries.
    pub queries: usize,
    /// Remembered documents.
    pub documents: usize,
    /// Bytes of retained after-images.
    pub retained_bytes: usize,
    /// The index of queries.
    pub matching: Statistics,
}

impl FilterNode {
    /// A node without state. Its first input must be [`Input::Start`].
    pub fn new(config: FilterNodeConfig) -> Self {
        let begin = StreamId::default();
        Self {
            voice: NotificationWriter::new(
                NotificationSource::Filter(config.partition),
                config.token,
            ),
            phase: FilterPhase::NeedsRebuild,
            matcher: Matcher::new(config.limits),
            queries: WatchedQueries::default(),
            sides: WatchedSides::default(),
            documents: TrackedDocuments::new(config.remembered_us),
            ahead: UnconfirmedRows::default(),
            retained: Retained::new(begin, config.retained_us, config.retained_bytes),
            stream: StreamProgress::new(begin, 0),
            requests: begin,
            batch: None,
            scratch: MatchBuffers::default(),
            config,
        }
    }

    /// Handles one input. `now_us` never runs backward except by small clock adjustments.
    pub fn handle(&mut self, input: Input, now_us: u64, out: &mut Vec<NodeOutput>) {
        match input {
            Input::Start => self.start(out),
            Input::Queries(queries) => self.add_queries(&queries, out),
            Input::Begin(begin) => self.begin(begin, now_us),
            Input::Rows { collection, rows } => self.rows(collection, rows, now_us, out),
            Input::End => self.end(out),
            Input::Request { id, request } if self.is_running() => {
                self.requests = id;
                self.request(request, now_us, out);
            }
            Input::Entry { id, entry } if self.is_running() => self.write(id, entry, now_us, out),
            Input::Quarantined { id, collection } if self.is_running() => {
                self.quarantine(id, collection, out);
            }
            Input::LeftOut { collection } if self.is_running() => self.poison(collection, out),
            Input::Idle if self.is_running() => self.idle(now_us, out),
            Input::Request { .. }
            | Input::Entry { .. }
            | Input::Quarantined { .. }
            | Input::LeftOut { .. }
            | Input::Idle => {}
        }
    }

    /// Whether it watches queries; otherwise it waits for a rebuild or is being rebuilt.
    pub const fn is_running(&self) -> bool {
        matches!(self.phase, FilterPhase::Running)
    }

    /// Whether a rebuild has begun and is not over: it waits for rows or for another `End`.
    pub const fn is_rebuilding(&self) -> bool {
        matches!(self.phase, FilterPhase::Rebuilding(_))
    }

    /// The node's figures.
    pub fn figures(&self) -> FilterFigures {
        FilterFigures {
            queries: self.queries.len(),
            documents: self.documents.len(),
            retained_bytes: self.retained.bytes(),
            matching: self.matcher.statistics(),
        }
    }

    fn request(&mut self, request: NodeRequest, now_us: u64, out: &mut Vec<NodeOutput>) {
        match request {
            NodeRequest::Expire { query, activation } => self.expire(query, activation),
            NodeRequest::Register {
                query,
                positions,
                snapshot,
                rows,
                renewal,
                complete: _,
                foreign: _,
            } => {
                let own = usize::from(self.config.partition);
                let registration = registration::FilterRegistration {
                    query: &query,
                    position: positions.get(own).copied().unwrap_or_default(),
                    snapshot: &snapshot,
                    rows: &rows,
                    renewal,
                };
                self.register(&registration, now_us, out);
            }
            // Exchanged only by sort nodes and app servers.
            NodeRequest::Fetched { .. } => {}
        }
    }

    fn write(&mut self, id: StreamId, entry: WriteEntry, now_us: u64, out: &mut Vec<NodeOutput>) {
        if !self.stream.read(id) {
            return;
        }
        match entry {
            WriteEntry::Image(image) => self.image(id, &image, now_us, out),
            WriteEntry::Tick(tick) => self.tick(tick, now_us, out),
        }
    }

    fn tick(&mut self, tick: StreamTick, now_us: u64, out: &mut Vec<NodeOutput>) {
        self.end_batch(out);
        match self.stream.judge(&tick) {
            TickVerdict::Proof => {
                self.release(now_us);
                self.voice.emit(NodeEvent::Tick(tick), out);
            }
            TickVerdict::Superseded => {}
            TickVerdict::Broken(why) => self.request_rebuild(why, out),
        }
    }

    fn quarantine(
        &mut self,
        id: StreamId,
        collection: Option<[u8; 16]>,
        out: &mut Vec<NodeOutput>,
    ) {
        if !self.stream.read(id) {
            return;
        }
        let Some(collection) = collection else {
            return self.request_rebuild(RebuildReason::Unreadable, out);
        };
        self.poison(collection, out);
    }

    /// Ends the queries that an unreadable document may concern.
    fn poison(&mut self, collection: [u8; 16], out: &mut Vec<NodeOutput>) {
        let look_it_up = self.sides.users_of(&collection);
        for id in self.queries.ids() {
            let query = self.queries.get(id);
            if query.is_some_and(|query| {
                query.collection == collection || look_it_up.contains(&query.hash)
            }) {
                self.fail(id, "poison", "a write could not be matched", out);
            }
        }
    }

    fn idle(&mut self, now_us: u64, out: &mut Vec<NodeOutput>) {
        self.end_batch(out);
        self.retained.trim(now_us);
        self.release(now_us);
        let queries = &self.queries;
        self.documents
            .sweep(now_us, |member| queries.is_alive(member));
    }

    fn release(&mut self, now_us: u64) {
        let (complete, end) = (self.stream.complete(), self.stream.end());
        self.queries.release(now_us, complete, end);
        let (queries, documents) = (&self.queries, &mut self.documents);
        self.ahead.release(complete, |name, member| {
            let known = documents.get_mut(&name.collection, &name.key);
            queries.is_alive(member) && !known.is_some_and(|known| known.has(member))
        });
    }

    fn request_rebuild(&mut self, why: RebuildReason, out: &mut Vec<NodeOutput>) {
        self.phase = FilterPhase::NeedsRebuild;
        out.push(NodeOutput::Rebuild(why));
    }

    /// Ends a query that cannot be watched.
    fn fail(&mut self, id: QueryId, code: &str, detail: &str, out: &mut Vec<NodeOutput>) {
        for user in self.sides.users(id) {
            if let Some((id, _)) = self.queries.find(&user) {
                self.fail(id, code, detail, out);
            }
        }
        if let Some(query) = self.forget(id) {
            let event = failed(query, code, detail);
            self.voice.emit(event, out);
        }
    }

    fn forget(&mut self, id: QueryId) -> Option<QueryHash> {
        let query = self.queries.remove(id)?;
        self.matcher.remove(id);
        self.sides
            .leave(&query.hash, &query.sides, &mut self.matcher);
        Some(query.hash)
    }
}

fn failed(query: QueryHash, code: &str, detail: &str) -> NodeEvent {
    NodeEvent::Failed {
        query,
        code: code.to_owned(),
        detail: detail.to_owned(),
    }
}
