//! The event layer: streams that are trimmed, leases, the registry. It may lose all of its data, or
//! the newest part.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};

use rillbase_live::message::{
    AfterImage, FencingToken, NodeEvent, NodeRequest, Notification, QueryDefinition, QueryHash,
    StreamId, StreamTick, WriteEntry,
};
use rillbase_live::snapshot::PgSnapshot;

use super::database::{number, partition};

/// Entries with older time stamps are rejected.
const LATE_US: u64 = 5_000_000;
const LEASE_US: u64 = 2_000_000;
/// How long it takes the server to append what a notification reports about one query.
const REPORT_US: u64 = 20;
/// An app server's lease, and the time to live of a query without subscribers.
const HUB_US: u64 = 10_000_000;
const TTL_US: u64 = 120_000_000;

/// The incarnation in which streams are complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Incarnation {
    pub(crate) valkey: u8,
    pub(crate) database: u8,
}

impl Incarnation {
    fn bytes(self) -> [u8; 16] {
        let mut bytes = [self.valkey; 16];
        bytes[0] = self.database;
        bytes
    }
}

/// The publisher of a write: its writer, or a relay with its token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sender {
    pub(crate) stamp_us: u64,
    pub(crate) token: Option<u64>,
}

/// A stream. Entries are trimmed, oldest first, and a single entry may be lost.
#[derive(Debug, Clone)]
pub(crate) struct Stream<T> {
    /// Each with its id, and its number among all entries ever appended.
    entries: VecDeque<(StreamId, u64, T)>,
    last: StreamId,
    pub(crate) count: u64,
    kept_ms: u64,
}

impl<T: Clone> Stream<T> {
    const fn new(kept_ms: u64) -> Self {
        Self {
            entries: VecDeque::new(),
            last: StreamId { ms: 0, number: 0 },
            count: 0,
            kept_ms,
        }
    }

    fn append(&mut self, now_us: u64, entry: T) -> StreamId {
        let ms = (now_us / 1_000).max(self.last.ms);
        let number = if self.last.ms == ms {
            self.last.number + 1
        } else {
            0
        };
        self.last = StreamId { ms, number };
        self.count += 1;
        self.entries.push_back((self.last, self.count, entry));
        while let Some((id, ..)) = self.entries.front()
            && id.ms + self.kept_ms < ms
        {
            self.entries.pop_front();
        }
        self.last
    }

    pub(crate) const fn end(&self) -> StreamId {
        self.last
    }

    /// The next entry after `after`, with its number.
    pub(crate) fn next(&self, after: StreamId) -> Option<(StreamId, u64, T)> {
        let at = self.entries.partition_point(|(id, ..)| *id <= after);
        self.entries.get(at).cloned()
    }

    /// The entries after `after` up to `upto`; `None` if the oldest of them may have been trimmed.
    pub(crate) fn range(&self, after: StreamId, upto: StreamId) -> Option<Vec<(StreamId, T)>> {
        let first = self.entries.front()?.0;
        let within = |id: &StreamId| *id > after && *id <= upto;
        let entries = self.entries.iter().filter(|(id, ..)| within(id));
        let entries = entries.map(|(id, _, entry)| (*id, entry.clone()));
        (first <= after).then(|| entries.collect())
    }

    /// Keeps only the last entries.
    fn trim(&mut self, keep: usize) {
        let drop = self.entries.len().saturating_sub(keep);
        self.entries.drain(..drop);
    }

    /// Loses an entry that was not trimmed.
    fn lose(&mut self, which: usize) {
        let count = self.entries.len();
        if count > 0 {
            self.entries.remove(which % count);
        }
    }
}

/// How many queries' states an event reports.
const fn reported_queries(event: &NodeEvent) -> u64 {
    match event {
        NodeEvent::Rebase { .. } | NodeEvent::Active { .. } => 1,
        NodeEvent::Empty { queries, .. } => queries.len() as u64,
        _ => 0,
    }
}

/// The lease of a node.
#[derive(Debug, Clone, Copy)]
struct Lease {
    holder: u64,
    token: FencingToken,
    until_us: u64,
}

/// The event layer.
#[derive(Debug, Clone)]
pub(crate) struct Valkey {
    pub(crate) now_us: u64,
    /// How long it takes to append what a notification reports about one query. The server is
    /// blocked during that time.
    pub(crate) report_us: u64,
    /// The number of calls that took longer than a lease: nodes that waited for one lost theirs.
    pub(crate) freezes: u64,
    /// The number of its run, incremented at each start.
    pub(crate) life: u8,
    /// A relay has published the grid epochs, by which writes are routed.
    pub(crate) has_epochs: bool,
    /// The incarnation in which everything was published to it.
    pub(crate) complete: Option<Incarnation>,
    relay: u64,
    pub(crate) writes: Vec<Stream<WriteEntry>>,
    pub(crate) requests: Stream<NodeRequest>,
    pub(crate) log: Stream<Notification>,
    pub(crate) registry: BTreeMap<QueryHash, QueryDefinition>,
    activation: u64,
    leases: BTreeMap<String, Lease>,
    /// App servers, and the ends of their leases.
    hubs: BTreeMap<u64, u64>,
    /// App servers that registered a query and have not sent a heartbeat.
    strangers: BTreeSet<u64>,
    holders: BTreeMap<QueryHash, BTreeSet<u64>>,
    idle_since: BTreeMap<QueryHash, u64>,
}

impl Valkey {
    pub(crate) fn new(partitions: u16, now_us: u64) -> Self {
        let mut writes = Vec::new();
        writes.resize_with(partitions.into(), || Stream::new(10_000));
        Self {
            now_us,
            report_us: REPORT_US,
            freezes: 0,
            life: 1,
            has_epochs: false,
            complete: None,
            relay: 0,
            writes,
            requests: Stream::new(60_000),
            log: Stream::new(60_000),
            registry: BTreeMap::new(),
            activation: 0,
            leases: BTreeMap::new(),
            hubs: BTreeMap::new(),
            strangers: BTreeSet::new(),
            holders: BTreeMap::new(),
            idle_since: BTreeMap::new(),
        }
    }

    /// Loses everything.
    pub(crate) fn empty(&mut self) {
        let partitions = u16::try_from(self.writes.len()).unwrap_or(1);
        let life = self.life + 1;
        *self = Self::new(partitions, self.now_us);
        self.life = life;
    }

    /// Restarts with an earlier state.
    pub(crate) fn fall_back(&mut self, earlier: &Self) {
        let (life, now_us) = (self.life + 1, self.now_us);
        *self = earlier.clone();
        (self.life, self.now_us) = (life, now_us);
    }

    /// Trims streams, as when they have too many bytes.
    pub(crate) fn trim(&mut self, which: u64, keep: usize) {
        match which % 3 {
            0 => self.writes.iter_mut().for_each(|stream| stream.trim(keep)),
            1 => self.requests.trim(keep),
            _ => self.log.trim(keep),
        }
    }

    /// Loses an entry of some stream.
    pub(crate) fn lose(&mut self, stream: u64, which: u64) {
        let which = usize::try_from(which).unwrap_or(0);
        match stream % 4 {
            0 => self.requests.lose(which),
            1 => self.writes[0].lose(which),
            _ => self.log.lose(which),
        }
    }

    fn partitions(&self) -> u16 {
        u16::try_from(self.writes.len()).unwrap_or(1)
    }

    /// Appends the writes of one transaction atomically; returns whether they were accepted.
    pub(crate) fn publish(&mut self, sender: Sender, images: &[AfterImage]) -> bool {
        let outrun = sender.token.is_some_and(|token| token < self.relay);
        if !self.has_epochs || outrun || sender.stamp_us + LATE_US < self.now_us {
            return false;
        }
        self.relay = sender.token.unwrap_or(self.relay);
        for image in images {
            let wp = usize::from(partition(number(&image.key), self.partitions()));
            let entry = WriteEntry::Image(image.clone());
            self.writes[wp].append(self.now_us, entry);
        }
        true
    }

    pub(crate) fn tick(
        &mut self,
        incarnation: Incarnation,
        (token, stamp_us): (u64, u64),
        snapshot: &PgSnapshot,
    ) -> bool {
        let outrun = token < self.relay || stamp_us + LATE_US < self.now_us;
        if incarnation.valkey != self.life || outrun || !self.has_epochs {
            return false;
        }
        self.relay = token;
        self.complete = Some(incarnation);
        for stream in &mut self.writes {
            let tick = StreamTick {
                time_us: self.now_us,
                count: stream.count + 1,
                token: FencingToken(token),
                incarnation: incarnation.bytes(),
                snapshot: snapshot.clone(),
            };
            stream.append(self.now_us, WriteEntry::Tick(tick));
        }
        true
    }

    /// Takes or renews a lease; returns its token, unless another holder has it.
    pub(crate) fn lease(&mut self, node: &str, holder: u64) -> Option<FencingToken> {
        let until_us = self.now_us + LEASE_US;
        let lease = self.leases.get(node).copied();
        let token = match lease {
            Some(lease) if lease.holder == holder => lease.token,
            Some(lease) if lease.until_us > self.now_us => return None,
            Some(lease) => FencingToken(self.now_us.max(lease.token.0 + 1)),
            None => FencingToken(self.now_us),
        };
        let lease = Lease {
            holder,
            token,
            until_us,
        };
        self.leases.insert(node.to_owned(), lease);
        Some(token)
    }

    /// Appends to the log, unless the node has another holder by now.
    pub(crate) fn append(
        &mut self,
        node: &str,
        token: FencingToken,
        said: Vec<Notification>,
    ) -> bool {
        let lease = self.leases.get(node);
        if lease.is_none_or(|lease| lease.token != token) {
            return false;
        }
        let reported = said.iter().map(|entry| reported_queries(&entry.event));
        let took_us = self.report_us * reported.sum::<u64>();
        self.now_us += took_us;
        self.freezes += u64::from(took_us > LEASE_US);
        for notification in said {
            self.log.append(self.now_us, notification);
        }
        true
    }

    /// The token of a node's holder.
    pub(crate) fn token(&self, node: &str) -> Option<FencingToken> {
        self.leases.get(node).map(|lease| lease.token)
    }

    /// Registers a query for an app server; returns its activation and the request.
    pub(crate) fn register(&mut self, hub: u64, request: NodeRequest) -> Option<(u64, StreamId)> {
        let NodeRequest::Register { query, .. } = &request else {
            return None;
        };
        if !self.hubs.contains_key(&hub) {
            self.hubs.insert(hub, self.now_us);
            self.strangers.insert(hub);
        }
        self.holders.entry(query.hash).or_default().insert(hub);
        self.idle_since.remove(&query.hash);
        if !self.registry.contains_key(&query.hash) {
            self.activation = self.now_us.max(self.activation + 1);
            let definition = QueryDefinition {
                activation: self.activation,
                ..query.clone()
            };
            self.registry.insert(query.hash, definition);
        }
        self.renew(request)
    }

    /// Sends new rows of a query that has subscribers.
    pub(crate) fn renew(&mut self, mut request: NodeRequest) -> Option<(u64, StreamId)> {
        let NodeRequest::Register { query, .. } = &mut request else {
            return None;
        };
        let activation = self.registry.get(&query.hash)?.activation;
        query.activation = activation;
        self.registry.insert(query.hash, query.clone());
        let id = self.requests.append(self.now_us, request);
        Some((activation, id))
    }

    /// Sends an answer to a sort node, while the query is known.
    pub(crate) fn answer(&mut self, request: NodeRequest) {
        if let NodeRequest::Fetched { fetch, .. } = &request
            && self.registry.contains_key(&fetch.query)
        {
            self.requests.append(self.now_us, request);
        }
    }

    pub(crate) fn unregister(&mut self, hub: u64, query: QueryHash) {
        if let Some(holders) = self.holders.get_mut(&query)
            && holders.remove(&hub)
            && holders.is_empty()
        {
            self.idle_since.insert(query, self.now_us);
        }
    }

    /// The heartbeat of an app server; returns whether it was known, and the queries that it had
    /// registered.
    pub(crate) fn hub_alive(&mut self, hub: u64) -> bool {
        let known = self.hubs.insert(hub, self.now_us + HUB_US).is_some();
        known && !self.strangers.remove(&hub)
    }

    /// The queries that an app server has registered.
    pub(crate) fn queries_of(&self, hub: u64) -> HashSet<QueryHash> {
        let held = self.holders.iter().filter(|(_, all)| all.contains(&hub));
        held.map(|(query, _)| *query).collect()
    }

    /// Forgets queries without subscribers.
    pub(crate) fn expire(&mut self) {
        let now_us = self.now_us;
        let dead: Vec<u64> = self
            .hubs
            .iter()
            .filter(|(_, until_us)| **until_us + TTL_US < now_us)
            .map(|(hub, _)| *hub)
            .collect();
        for hub in dead {
            self.hubs.remove(&hub);
            let held: Vec<_> = self.holders.keys().copied().collect();
            for query in held {
                let held = self
                    .holders
                    .get(&query)
                    .is_some_and(|all| all.contains(&hub));
                self.unregister(hub, query);
                if held && self.idle_since.contains_key(&query) {
                    self.forget(query);
                }
            }
        }
        let old = |since_us: &u64| since_us + TTL_US < now_us;
        let idle = self.idle_since.iter().filter(|(_, since_us)| old(since_us));
        for query in idle.map(|(query, _)| *query).collect::<Vec<_>>() {
            self.forget(query);
        }
    }

    fn forget(&mut self, query: QueryHash) {
        self.idle_since.remove(&query);
        if let Some(definition) = self.registry.remove(&query) {
            let activation = definition.activation;
            self.requests
                .append(self.now_us, NodeRequest::Expire { query, activation });
        }
    }
}
