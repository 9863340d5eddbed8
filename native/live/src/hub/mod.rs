//! The hub of an app server: what its subscribers are told, from what the grid's nodes say.
//!
//! It keeps the current result of each query that somebody here watches, applies every message of
//! the notification log to it, and tells each subscriber what has changed since it was told last.
//!
//! ```text
//! attach ───────────▶ query known? ── no ──▶ wish: Register ──▶ registered(rows, snapshot)
//! notification log ─▶ sources (fenced, counted) ─▶ query (versions, batches, windows) ─▶ groups
//! groups ───────────▶ client (projection, throttle, coalescing, numbering) ─▶ frames
//! ```
//!
//! What comes from the log while a registration is on its way is kept and judged afterwards: the
//! rows are known to hold whatever their snapshot sees, and the log is known from before it.

mod change;
mod client;
mod frames;
mod query;
mod replay;
mod sources;
mod token;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use rillbase_query::projection::Projection;

use crate::message::{Definition, News, Notification, QueryHash, Row, Source, StreamId};
use crate::snapshot::Snapshot;

use change::{Change, Rows};
use client::{Bodies, Client, Phase};
use query::Query;
use sources::{Heard, Log};

pub use client::{Bounds, Options};
pub use token::{Sealer, Token};

/// What holds for all of a hub.
#[derive(Debug, Clone)]
pub struct Config {
    /// Seals resume tokens.
    pub sealer: Sealer,
    /// The installation epoch.
    pub installation: u64,
    /// The grid epoch.
    pub epoch: u32,
    /// How many filter nodes each query has.
    pub write_partitions: u16,
    /// What waits for one client.
    pub bounds: Bounds,
}

/// A subscription that begins.
#[derive(Debug)]
pub struct Attach {
    /// The name that the client chose.
    pub name: String,
    /// What it watches.
    pub definition: Arc<Definition>,
    /// Where that is watched.
    pub partition: u16,
    /// What it sees of documents.
    pub projection: Option<Arc<Projection>>,
    /// How it wants to be told.
    pub options: Options,
    /// Names tenant and principal, hashed: who may use its tokens.
    pub holder: [u8; 16],
    /// From where it wants to go on.
    pub resume: Option<String>,
    /// Why it begins anew, if it was there before.
    pub reset: Option<String>,
}

/// What the app server has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// Read a query's rows and register it with the nodes, for the first time or again.
    Register(QueryHash),
    /// Nobody here watches it any more.
    Unregister(QueryHash),
    /// Read the rows again, since the sort node has lost sight of them, with so many more.
    Renew(QueryHash, u32),
    /// Read what a client missed: the log behind the first place, up to the second.
    Replay {
        /// Whose.
        client: u64,
        /// Of which log.
        partition: u16,
        /// Behind which entry.
        after: StreamId,
        /// Up to which.
        upto: StreamId,
    },
    /// A write has shown that the access rules are others now: judge the subscribers again.
    Judge(QueryHash),
    /// A node gave the query up: end its subscribers, with this code and detail.
    Fail(QueryHash, String, String),
}

/// A frame for a client; `over`: it is the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Whose.
    pub client: u64,
    /// JSON text.
    pub text: String,
    /// Whether the subscription is over.
    pub over: bool,
}

/// How a subscription goes.
#[derive(Debug, Clone)]
pub struct Figures {
    /// `starting`, `live` or `stale`.
    pub state: &'static str,
    /// Events sent.
    pub events: u64,
    /// Events that have not been taken.
    pub waiting: usize,
    /// How far behind the writes the query is, in microseconds.
    pub lag_us: Option<u64>,
}

/// The state machine of a hub. See the module.
#[derive(Debug)]
pub struct Hub {
    config: Config,
    logs: BTreeMap<u16, Log>,
    queries: HashMap<QueryHash, Query>,
    clients: HashMap<u64, Client>,
    /// Clients with frames to hand out.
    outgoing: BTreeSet<u64>,
    /// Clients whose changes are put together.
    behind: BTreeSet<u64>,
    wishes: Vec<Wish>,
    now_us: u64,
}

impl Hub {
    /// A hub that watches nothing.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            logs: BTreeMap::new(),
            queries: HashMap::new(),
            clients: HashMap::new(),
            outgoing: BTreeSet::new(),
            behind: BTreeSet::new(),
            wishes: Vec::new(),
            now_us: 0,
        }
    }

    /// Begins a subscription.
    pub fn attach(&mut self, id: u64, attach: Attach) {
        let hash = attach.definition.hash;
        let mut client = Client::new(
            attach.name,
            hash,
            attach.holder,
            attach.projection,
            attach.options,
            self.config.bounds,
        );
        if let Some(reason) = attach.reset {
            client.push(frames::reset(&client.name, &reason));
        }
        if let Some(text) = attach.resume {
            match self.opened(&text, &client) {
                Some(token) => client.phase = Phase::Resuming(token),
                None => client.push(frames::reset(&client.name, "token_not_valid")),
            }
        }
        let wishes = &mut self.wishes;
        let query = self.queries.entry(hash).or_insert_with(|| {
            wishes.push(Wish::Register(hash));
            Query::new(attach.definition, attach.partition)
        });
        query.clients.insert(id);
        self.logs.entry(attach.partition).or_default();
        self.clients.insert(id, client);
        self.begin(id);
    }

    fn opened(&self, text: &str, client: &Client) -> Option<Token> {
        let token = self.config.sealer.open(text)?;
        let ours = token.holder == client.holder
            && token.query == client.query
            && token.installation == self.config.installation
            && token.epoch == self.config.epoch;
        ours.then_some(token)
    }

    /// Ends a subscription without a word.
    pub fn detach(&mut self, id: u64) {
        let Some(client) = self.clients.remove(&id) else {
            return;
        };
        self.outgoing.remove(&id);
        self.behind.remove(&id);
        let Some(query) = self.queries.get_mut(&client.query) else {
            return;
        };
        query.clients.remove(&id);
        if query.clients.is_empty() {
            self.queries.remove(&client.query);
            self.wishes.push(Wish::Unregister(client.query));
        }
    }

    /// Takes the rows of a query, as registered behind `log_end`.
    pub fn registered(
        &mut self,
        hash: &QueryHash,
        activation: u64,
        log_end: StreamId,
        snapshot: Snapshot,
        rows: Vec<Row>,
    ) {
        let Some(query) = self.queries.get_mut(hash) else {
            return;
        };
        let definition = &query.definition;
        let window = definition
            .sorted
            .then_some((definition.offset, definition.limit));
        let changes = query.registered(activation, snapshot, Rows::new(rows, window));
        let clients: Vec<u64> = query.clients.iter().copied().collect();
        let missed = std::mem::take(&mut query.held_back);
        self.show(hash, &changes, false);
        for id in clients {
            self.begin(id);
        }
        for (position, source, news) in missed {
            if position > log_end {
                self.tell_query(hash, position, source, &news);
            }
        }
        self.settle(hash);
    }

    /// A query cannot be registered: its subscribers are told why. `problem` is JSON.
    pub fn refused(&mut self, hash: &QueryHash, problem: &str) {
        let Some(query) = self.queries.get_mut(hash) else {
            return;
        };
        for id in std::mem::take(&mut query.clients) {
            self.end(id, problem);
        }
        self.queries.remove(hash);
        self.wishes.push(Wish::Unregister(*hash));
    }

    fn end(&mut self, id: u64, problem: &str) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.push(frames::ended(&client.name, problem));
            client.over = true;
            self.outgoing.insert(id);
        }
    }

    /// Makes a query be registered again, or all of a log's: messages may be missing.
    pub fn lost(&mut self, partition: u16) {
        for (hash, query) in &mut self.queries {
            if query.partition == partition && !query.registering {
                query.registering = true;
                self.wishes.push(Wish::Register(*hash));
            }
        }
    }

    /// Reads an entry of a log.
    pub fn read(&mut self, partition: u16, position: StreamId, notification: &Notification) {
        let log = self.logs.entry(partition).or_default();
        let Notification {
            source,
            token,
            count,
            news,
        } = notification;
        match log.hear(*source, *token, *count) {
            Heard::Outrun => {
                log.position = position;
                return;
            }
            Heard::Hole => self.lost(partition),
            Heard::Next => {}
        }
        let touched = self.dispatch(partition, position, *source, news);
        if let Some(log) = self.logs.get_mut(&partition) {
            log.position = position;
        }
        for hash in touched {
            self.settle(&hash);
        }
    }

    /// Hands a message to whom it concerns; returns them.
    fn dispatch(
        &mut self,
        partition: u16,
        position: StreamId,
        source: Source,
        news: &News,
    ) -> Vec<QueryHash> {
        let now_us = self.now_us;
        let log = self.logs.entry(partition).or_default();
        match news {
            News::Start => log.start(source),
            News::Rebased { .. } => log.rebuilt(source),
            News::Tick(tick) => {
                log.tick(source, tick);
                if source == Source::Sort {
                    return self.sort_node_ticked(partition, &tick.snapshot);
                }
            }
            News::Done { xid } => {
                if let Source::Filter(part) = source {
                    log.done(*xid, part, now_us);
                }
                let here = |query: &&Query| query.partition == partition;
                let queries = self.queries.values().filter(here);
                return queries.map(|query| query.definition.hash).collect();
            }
            News::Match {
                added,
                changed,
                removed,
                ..
            } => {
                let all = added.iter().chain(changed).chain(removed);
                let known = all.filter(|hash| self.queries.contains_key(hash));
                let known: Vec<QueryHash> = known.copied().collect();
                for hash in &known {
                    self.tell_query(hash, position, source, news);
                }
                return known;
            }
            News::Active { query, .. }
            | News::TooOld { query, .. }
            | News::Failed { query, .. }
            | News::Rebase { query, .. }
            | News::Window { query, .. }
            | News::Renew { query, .. } => {
                self.tell_query(query, position, source, news);
                return vec![*query];
            }
        }
        Vec::new()
    }

    fn sort_node_ticked(&mut self, partition: u16, snapshot: &Snapshot) -> Vec<QueryHash> {
        let mut touched = Vec::new();
        let mut shown = Vec::new();
        for (hash, query) in &mut self.queries {
            if query.partition == partition && query.definition.sorted && query.rows.is_some() {
                touched.push(*hash);
                shown.push((*hash, query.caught_up(snapshot)));
            }
        }
        for (hash, changes) in shown {
            self.show(&hash, &changes, false);
        }
        touched
    }

    /// Applies a message to one query.
    fn tell_query(&mut self, hash: &QueryHash, position: StreamId, source: Source, news: &News) {
        let Some(query) = self.queries.get_mut(hash) else {
            return;
        };
        if query.registering {
            query.held_back.push((position, source, news.clone()));
        }
        if query.rows.is_none() {
            return;
        }
        let before = self
            .logs
            .get(&query.partition)
            .map(|log| log.position)
            .unwrap_or_default();
        let mine = |activation: u64| activation == query.activation;
        let changes = match news {
            News::Match { image, removed, .. } if !query.definition.sorted => {
                query.image(image, removed.contains(hash), before, self.now_us);
                Vec::new()
            }
            News::Active { activation, .. } => {
                query.activated(source, *activation);
                Vec::new()
            }
            News::TooOld { activation, .. } if mine(*activation) => {
                if !query.registering {
                    query.registering = true;
                    self.wishes.push(Wish::Register(*hash));
                }
                Vec::new()
            }
            News::Failed { code, detail, .. } => {
                let wish = Wish::Fail(*hash, code.clone(), detail.clone());
                self.wishes.push(wish);
                Vec::new()
            }
            News::Rebase {
                activation,
                snapshot,
                rows,
                part,
                last,
                ..
            } if mine(*activation) => query.rebase(
                source,
                rows.clone(),
                *part == 0,
                last.then_some(snapshot),
                self.config.write_partitions,
            ),
            News::Window {
                activation,
                image,
                changes,
                ..
            } if mine(*activation) => {
                let rules = query.definition.rules_version;
                if rules != 0 && image.as_ref().is_some_and(|i| i.rules_version > rules) {
                    query.outdated = true;
                }
                query.window(changes.clone(), image.is_none())
            }
            News::Renew {
                activation, slack, ..
            } if mine(*activation) => {
                query.renew();
                self.wishes.push(Wish::Renew(*hash, *slack));
                Vec::new()
            }
            _ => Vec::new(),
        };
        self.show(hash, &changes, false);
    }

    /// Applies what a query can apply, and tells who has not heard that it is ready.
    fn settle(&mut self, hash: &QueryHash) {
        let Some(query) = self.queries.get_mut(hash) else {
            return;
        };
        let Some(log) = self.logs.get(&query.partition) else {
            return;
        };
        let groups = query.settle(log, self.now_us);
        for group in groups {
            self.show(hash, &group.changes, group.broken);
        }
        let Some(query) = self.queries.get_mut(hash) else {
            return;
        };
        if query.outdated {
            query.outdated = false;
            self.wishes.push(Wish::Judge(*hash));
        }
        if query.is_ready(self.config.write_partitions) {
            for id in query.clients.clone() {
                self.make_ready(id);
            }
        }
    }

    fn make_ready(&mut self, id: u64) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let Some(query) = self.queries.get(&client.query) else {
            return;
        };
        let Some(log) = self.logs.get(&query.partition) else {
            return;
        };
        match &client.phase {
            Phase::Running if !client.ready => {
                let token = seal(&self.config, query, log, client, client.seq);
                client.push(frames::ready(&client.name, &token));
                client.ready = true;
                client.live = true;
                self.outgoing.insert(id);
            }
            Phase::Resuming(token) => {
                let token = *token;
                if token.activation != query.activation || token.incarnation != log.incarnation {
                    client.phase = Phase::Running;
                    client.reset(
                        "resume_not_possible",
                        query.rows.as_ref().unwrap_or(&EMPTY),
                        None,
                    );
                    self.outgoing.insert(id);
                    self.make_ready(id);
                    return;
                }
                client.phase = Phase::Replaying(token, Vec::new());
                self.wishes.push(Wish::Replay {
                    client: id,
                    partition: query.partition,
                    after: token.position,
                    upto: query.shown_up_to(log),
                });
            }
            _ => {}
        }
    }

    /// Gives a client its first result, if there is one and it has not come to go on.
    fn begin(&mut self, id: u64) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let Some(query) = self.queries.get(&client.query) else {
            return;
        };
        let Some(rows) = &query.rows else {
            return;
        };
        if matches!(client.phase, Phase::Waiting) {
            client.phase = Phase::Running;
            client.give(rows, None);
            self.outgoing.insert(id);
        }
        if query.is_ready(self.config.write_partitions) {
            self.make_ready(id);
        }
    }

    /// Tells a query's clients of a group of changes, which has been applied.
    fn show(&mut self, hash: &QueryHash, changes: &[Change], broken: bool) {
        if changes.is_empty() {
            return;
        }
        let Some(query) = self.queries.get(hash) else {
            return;
        };
        let (Some(rows), Some(log)) = (&query.rows, self.logs.get(&query.partition)) else {
            return;
        };
        if query.outdated {
            return;
        }
        let bodies: Bodies = changes
            .iter()
            .map(|change| frames::event_body(change, None))
            .collect();
        for id in &query.clients {
            let Some(client) = self.clients.get_mut(id) else {
                continue;
            };
            match &mut client.phase {
                Phase::Running if broken => client.reset("batch_incomplete", rows, None),
                Phase::Running => {
                    let holder = client.holder;
                    let resume = |seq| seal_for(&self.config, query, log, holder, seq);
                    client.deliver(changes, &bodies, rows, self.now_us, &resume);
                }
                Phase::Replaying(_, missed) => missed.push(changes.to_vec()),
                Phase::Waiting | Phase::Resuming(_) => continue,
            }
            if client.is_behind() {
                self.behind.insert(*id);
            }
            self.outgoing.insert(*id);
        }
    }

    /// Takes what a client missed; none: the log no longer has it all.
    pub fn replay(&mut self, id: u64, entries: Option<&[(StreamId, Notification)]>) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let Phase::Replaying(token, after) = std::mem::replace(&mut client.phase, Phase::Running)
        else {
            return;
        };
        let Some(query) = self.queries.get(&client.query) else {
            return;
        };
        let (Some(rows), Some(log)) = (&query.rows, self.logs.get(&query.partition)) else {
            return;
        };
        let missed = entries.and_then(|entries| replay::groups(query, &token, entries));
        client.live = true;
        self.outgoing.insert(id);
        let Some(groups) = missed else {
            client.reset("resume_not_possible", rows, None);
            self.make_ready(id);
            return;
        };
        client.seq = token.seq;
        client.ready = true;
        let holder = client.holder;
        let resume = |seq| seal_for(&self.config, query, log, holder, seq);
        client.push(frames::ready(&client.name, &resume(token.seq)));
        for group in groups.into_iter().chain(after) {
            let bodies: Bodies = group
                .iter()
                .map(|change| frames::event_body(change, None))
                .collect();
            client.deliver(&group, &bodies, rows, self.now_us, &resume);
        }
        if client.is_behind() {
            self.behind.insert(id);
        }
    }

    /// Lets time pass. `now_us` is Valkey's time.
    pub fn tick(&mut self, now_us: u64) {
        self.now_us = now_us;
        for log in self.logs.values_mut() {
            log.forget(now_us);
        }
        let hashes: Vec<QueryHash> = self.queries.keys().copied().collect();
        for hash in hashes {
            self.settle_if_waiting(&hash);
            self.judge_liveness(&hash);
        }
        for id in self.behind.clone() {
            self.flush(id);
        }
    }

    fn settle_if_waiting(&mut self, hash: &QueryHash) {
        let Some(query) = self.queries.get_mut(hash) else {
            return;
        };
        query.forget(self.now_us);
        if query.has_pending() {
            self.settle(hash);
        }
    }

    fn judge_liveness(&mut self, hash: &QueryHash) {
        let Some(query) = self.queries.get_mut(hash) else {
            return;
        };
        let Some(log) = self.logs.get(&query.partition) else {
            return;
        };
        query.live = query.is_live(log, self.config.write_partitions, self.now_us);
        for id in &query.clients {
            let Some(client) = self.clients.get_mut(id) else {
                continue;
            };
            if client.ready && client.live != query.live {
                client.live = query.live;
                client.push(frames::status(&client.name, query.live));
                self.outgoing.insert(*id);
            }
        }
    }

    fn flush(&mut self, id: u64) {
        let Some(client) = self.clients.get_mut(&id) else {
            self.behind.remove(&id);
            return;
        };
        let Some(query) = self.queries.get(&client.query) else {
            return;
        };
        let Some(log) = self.logs.get(&query.partition) else {
            return;
        };
        let (config, now_us, holder) = (&self.config, self.now_us, client.holder);
        let resume = |seq| seal_for(config, query, log, holder, seq);
        query.with_leave(|leave, rows| client.flush(rows, now_us, leave, &resume));
        if !client.is_behind() {
            self.behind.remove(&id);
        }
        self.outgoing.insert(id);
    }

    /// Takes frames to send, at most so many.
    pub fn poll(&mut self, most: usize) -> Vec<Frame> {
        let mut found = Vec::new();
        let mut idle = HashSet::new();
        'clients: for &id in &self.outgoing {
            loop {
                if found.len() >= most {
                    break 'clients;
                }
                let Some(client) = self.clients.get_mut(&id) else {
                    break;
                };
                let Some(text) = client.next() else {
                    break;
                };
                let over = client.over && client.waiting_frames() == 0;
                found.push(Frame {
                    client: id,
                    text,
                    over,
                });
            }
            idle.insert(id);
        }
        self.outgoing.retain(|id| !idle.contains(id));
        for frame in found.iter().filter(|frame| frame.over) {
            self.clients.remove(&frame.client);
        }
        found
    }

    /// Learns what has left for a client.
    pub fn drained(&mut self, id: u64, frames: usize, bytes: usize) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.drained(frames, bytes);
            if client.waiting_frames() > 0 {
                self.outgoing.insert(id);
            }
        }
    }

    /// Takes what the app server has to do.
    pub fn wishes(&mut self) -> Vec<Wish> {
        std::mem::take(&mut self.wishes)
    }

    /// Whether there are frames to hand out.
    pub fn has_frames(&self) -> bool {
        !self.outgoing.is_empty()
    }

    /// A query's definition, while somebody watches it.
    pub fn definition(&self, hash: &QueryHash) -> Option<&Arc<Definition>> {
        self.queries.get(hash).map(|query| &query.definition)
    }

    /// The subscriptions of a query.
    pub fn clients(&self, hash: &QueryHash) -> Vec<u64> {
        let query = self.queries.get(hash);
        query.map_or_else(Vec::new, |query| query.clients.iter().copied().collect())
    }

    /// How a subscription goes.
    pub fn figures(&self, id: u64) -> Option<Figures> {
        let client = self.clients.get(&id)?;
        let query = self.queries.get(&client.query)?;
        let log = self.logs.get(&query.partition)?;
        let sources = query.sources(self.config.write_partitions);
        let state = match (client.ready, client.live) {
            (false, _) => "starting",
            (true, true) => "live",
            (true, false) => "stale",
        };
        Some(Figures {
            state,
            events: client.events,
            waiting: client.waiting(),
            lag_us: client.ready.then(|| log.lag_us(&sources, self.now_us)),
        })
    }
}

static EMPTY: Rows = Rows::Window(Vec::new());

fn seal(config: &Config, query: &Query, log: &Log, client: &Client, seq: u64) -> String {
    seal_for(config, query, log, client.holder, seq)
}

fn seal_for(config: &Config, query: &Query, log: &Log, holder: [u8; 16], seq: u64) -> String {
    config.sealer.seal(&Token {
        holder,
        query: query.definition.hash,
        activation: query.activation,
        installation: config.installation,
        epoch: config.epoch,
        incarnation: log.incarnation,
        position: query.shown_up_to(log),
        seq,
        seen: query.snapshot.xmin,
    })
}
