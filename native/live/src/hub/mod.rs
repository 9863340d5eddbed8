//! The hub of an app server: what its subscribers are sent, derived from what the grid's nodes
//! report.
//!
//! It keeps the current result of each query with subscribers here, applies every message of the
//! notification log to it, and sends each subscriber what has changed since the last message.
//!
//! ```text
//! attach ───────────▶ query known? ── no ──▶ request: Register ──▶ registered(rows, snapshot)
//! notification log ─▶ sources (fenced, counted) ─▶ query (versions, batches, windows) ─▶ groups
//! groups ───────────▶ client (projection, throttle, coalescing, numbering) ─▶ frames
//! ```
//!
//! Log entries that arrive during a registration are kept and judged afterwards: the rows contain
//! whatever their snapshot sees, and the log is known from before it. A query that is registered
//! again sends the difference once, so that no subscriber sees a version decrease.
//!
//! Files: [`sources`] and [`log_reader`] — the log; [`query`], [`queue`], [`window`], [`change`],
//! [`answers`], [`registration_retry`] — one query; [`memory`] and [`sizes`] — the bounds of all;
//! [`connection_window`] — flow control of connections; [`client`], [`outbox`],
//! [`coalesced_changes`], [`delivery`], [`readiness`], [`unevaluated`], [`frames`] — one
//! subscriber; [`token`], [`token_stamp`] and [`replay`] — resuming; [`trace`] and
//! [`trace_answer`] — the delivery trace of recent changes.

mod answers;
mod change;
mod client;
mod coalesced_changes;
mod connection_window;
mod delivery;
mod event_bodies;
mod frames;
mod grid_change;
mod log_reader;
mod memory;
mod outbox;
mod parts;
mod positions;
mod query;
mod queue;
mod readiness;
mod registration_retry;
mod replay;
mod sizes;
mod sources;
mod token;
mod token_stamp;
mod trace;
mod trace_answer;
mod unevaluated;
mod window;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::message::{QueryDefinition, QueryHash, ResultRow, StreamId};
use crate::snapshot::PgSnapshot;

use client::{ClientPhase, HubClient};
use connection_window::ConnectionWindows;
use positions::EntryPosition;
use query::HubQuery;
use sources::NotificationLog;
use trace::Shares;

pub use client::ClientOptions;
pub use memory::MemoryUsage;
pub use outbox::OutboxBounds;
pub use parts::{Attach, ClientFigures, ClientFrame, GridShape, HubConfig, HubRequest};
pub use token::{ResumeToken, Sealer};
pub use trace_answer::TraceRequest;

/// The state machine of a hub. See the module.
#[derive(Debug)]
pub struct Hub {
    config: HubConfig,
    logs: BTreeMap<u16, NotificationLog>,
    queries: HashMap<QueryHash, HubQuery>,
    clients: HashMap<u64, HubClient>,
    /// Queries with incomplete changes, or with clients that are not ready.
    waiting: BTreeSet<QueryHash>,
    /// Clients with frames to hand out, each once, in turn.
    outgoing: VecDeque<u64>,
    /// Clients whose changes are coalesced.
    behind: BTreeSet<u64>,
    requests: Vec<HubRequest>,
    now_us: u64,
    /// The current time, for traces: `now_us` is as old as the last tick.
    trace_time_us: u64,
    liveness_checked_us: u64,
    /// How many queries this hub has ever started.
    begun: u64,
    memory: MemoryUsage,
    in_flight_bytes: usize,
    windows: ConnectionWindows,
    shares: Shares,
}

impl Hub {
    /// A hub without queries.
    pub fn new(config: HubConfig) -> Self {
        Self {
            shares: Shares::new(config.trace_bytes),
            config,
            logs: BTreeMap::new(),
            queries: HashMap::new(),
            clients: HashMap::new(),
            waiting: BTreeSet::new(),
            outgoing: VecDeque::new(),
            behind: BTreeSet::new(),
            requests: Vec::new(),
            now_us: 0,
            trace_time_us: 0,
            liveness_checked_us: 0,
            begun: 0,
            memory: MemoryUsage::default(),
            in_flight_bytes: 0,
            windows: ConnectionWindows::default(),
        }
    }

    /// Starts a subscription.
    pub fn attach(&mut self, id: u64, attach: Attach) {
        let hash = attach.definition.hash;
        let mut client = HubClient::new(
            attach.name,
            hash,
            attach.holder,
            attach.projection,
            attach.options,
            self.config.bounds,
            self.shares.ring_bytes(),
        );
        client.connection = attach.connection;
        self.windows.join(attach.connection);
        if let Some(reason) = attach.reset {
            client.outbox.push(frames::reset(&client.name, &reason));
        }
        if let Some(text) = attach.resume {
            if let Some(token) = self.open_token(&text, &client) {
                client.phase = ClientPhase::Resuming(token);
            } else {
                let frame = frames::reset(&client.name, "token_not_valid");
                client.outbox.push(frame);
            }
        }
        let (requests, partitions) = (&mut self.requests, self.config.write_partitions);
        let (begun, share) = (&mut self.begun, self.shares.ring_bytes());
        let query = self.queries.entry(hash).or_insert_with(|| {
            requests.push(HubRequest::Register(hash));
            *begun += 1;
            HubQuery::new(
                attach.definition,
                attach.partition,
                partitions,
                *begun,
                share,
            )
        });
        query.clients.insert(id);
        client.unevaluated = query.unevaluated.read();
        self.logs.entry(attach.partition).or_default();
        self.clients.insert(id, client);
        self.redistribute_trace_budget();
        self.waiting.insert(hash);
        self.schedule(id);
        self.settle(&hash);
    }

    fn open_token(&self, text: &str, client: &HubClient) -> Option<ResumeToken> {
        let token = self.config.sealer.open(text)?;
        let ours = token.holder == client.holder
            && token.query == client.query
            && token.installation == self.config.installation
            && token.epoch == self.config.epoch;
        ours.then_some(token)
    }

    /// Ends a subscription without a message.
    pub fn detach(&mut self, id: u64) {
        let Some(client) = self.remove_client(id) else {
            return;
        };
        self.behind.remove(&id);
        let Some(query) = self.queries.get_mut(&client.query) else {
            return;
        };
        query.clients.remove(&id);
        if query.clients.is_empty() {
            self.queries.remove(&client.query);
            self.waiting.remove(&client.query);
            self.requests.push(HubRequest::Unregister(client.query));
        }
    }

    /// Removes a subscription and returns its share of the window to the connection.
    fn remove_client(&mut self, id: u64) -> Option<HubClient> {
        let client = self.clients.remove(&id)?;
        let resumed = self
            .windows
            .leave(client.connection, client.outbox.in_flight());
        self.outgoing
            .extend(resumed.iter().filter(|other| **other != id));
        Some(client)
    }

    /// Identifies the registration that a query waits for. It must be taken before the log's end is
    /// noted, and passed back with the rows. `None` if the query waits for none.
    pub fn registration_id(&self, hash: &QueryHash) -> Option<u64> {
        self.queries.get(hash).and_then(HubQuery::registration_id)
    }

    /// Takes the rows of a query, registered after `log_end` by the request `request`. Rows of a
    /// registration other than the expected one are older than what was reported since.
    pub fn registered(
        &mut self,
        hash: &QueryHash,
        registration: u64,
        (activation, request): (u64, StreamId),
        log_end: StreamId,
        snapshot: PgSnapshot,
        rows: Vec<ResultRow>,
    ) {
        let Some(query) = self.queries.get_mut(hash) else {
            return;
        };
        if query.registration_id() != Some(registration) {
            return;
        }
        if let Some(again) = query.refreshed(activation, &rows, self.now_us) {
            if again {
                self.requests.push(HubRequest::Register(*hash));
            }
            self.settle(hash);
            return;
        }
        let bytes = rows.iter().map(sizes::row_bytes).sum();
        if !self.admits(hash, bytes) {
            return;
        }
        let Some(query) = self.queries.get_mut(hash) else {
            return;
        };
        query.trace.registered(self.trace_time_us, &snapshot);
        let before = query.rows.as_ref().map(change::ResultRows::list);
        let (entries, again) = query.registered((activation, request), snapshot, rows);
        if again {
            self.requests.push(HubRequest::Register(*hash));
        }
        // This alone sends nothing: clients with a result receive the difference, and the others
        // all of it.
        let clients = query.clients.clone();
        query.clients.clear();
        let mut last = log_end;
        for (place, source, event) in entries {
            if place.at > log_end {
                let before = place.before.max(last);
                last = place.at;
                self.apply_query_event(hash, EntryPosition { before, ..place }, source, &event);
            }
        }
        self.settle(hash);
        if let Some(query) = self.queries.get_mut(hash) {
            query.clients = clients;
            let torn = query.was_torn();
            let changes = before.map_or_else(Vec::new, |before| query.difference(&before.rows));
            self.show(hash, &changes, torn);
        }
        self.settle(hash);
    }

    /// A query cannot be registered: its subscribers are notified. `problem` is JSON.
    pub fn refused(&mut self, hash: &QueryHash, problem: &str) {
        let Some(query) = self.queries.remove(hash) else {
            return;
        };
        self.waiting.remove(hash);
        for id in query.clients {
            self.behind.remove(&id);
            if let Some(client) = self.clients.get_mut(&id) {
                let frame = frames::ended(&client.name, problem);
                client.outbox.push(frame);
                client.over = true;
                self.schedule(id);
            }
        }
        self.requests.push(HubRequest::Unregister(*hash));
    }

    /// Records what a client has read.
    pub fn drained(&mut self, id: u64, frames: usize, bytes: usize) {
        if let Some(client) = self.clients.get_mut(&id) {
            self.in_flight_bytes = self.in_flight_bytes.saturating_sub(bytes);
            let (connection, now_us) = (client.connection, self.now_us);
            let resumed = self.windows.drained(connection, (frames, bytes), now_us);
            self.outgoing.extend(resumed);
            let groups = self
                .queries
                .get(&client.query)
                .map_or(0, |one| one.trace.groups);
            client.trace.at(self.trace_time_us, groups);
            let (anew, query) = (client.drained(frames, bytes, self.now_us), client.query);
            if client.outbox.len() > 0 {
                self.schedule(id);
            }
            if anew {
                self.waiting.insert(query);
                self.settle(&query);
            }
        }
    }

    /// Takes the requests to the app server.
    pub fn take_requests(&mut self) -> Vec<HubRequest> {
        std::mem::take(&mut self.requests)
    }

    /// Whether there are frames to hand out.
    pub fn has_frames(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// A query's definition, while it has subscribers.
    pub fn definition(&self, hash: &QueryHash) -> Option<&Arc<QueryDefinition>> {
        self.queries.get(hash).map(|query| &query.definition)
    }

    /// The subscriptions of a query.
    pub fn clients(&self, hash: &QueryHash) -> Vec<u64> {
        let query = self.queries.get(hash);
        query.map_or_else(Vec::new, |query| query.clients.iter().copied().collect())
    }

    /// The state of a subscription.
    pub fn figures(&self, id: u64) -> Option<ClientFigures> {
        let client = self.clients.get(&id)?;
        let query = self.queries.get(&client.query)?;
        let log = self.logs.get(&query.partition)?;
        let state = match (client.ready, client.live) {
            (false, _) if matches!(client.phase, ClientPhase::CutOff) => "stale",
            (false, _) => "starting",
            (true, true) => "live",
            (true, false) => "stale",
        };
        let lag_us = log.lag_us(&query.sources, self.now_us);
        Some(ClientFigures {
            state,
            events: client.events,
            waiting: client.outbox.waiting(),
            waiting_bytes: client.bytes(),
            result_bytes: query.bytes().0,
            lag_us: client.ready.then_some(lag_us),
        })
    }
}
