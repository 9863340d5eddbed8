//! A hub with two filter nodes and a sort node, which the test simulates.

use std::collections::HashMap;
use std::sync::Arc;

use rillbase_live::hub::{
    Attach, ClientFrame, ClientOptions, Hub, HubConfig, HubRequest, OutboxBounds, Sealer,
};
use rillbase_live::message::{
    AfterImage, Cause, EmptyResult, FencingToken, NodeEvent, Notification, NotificationSource,
    QueryDefinition, QueryHash, ResultRow, StreamId, StreamTick, WindowChange,
};
use rillbase_live::snapshot::PgSnapshot;
use rillbase_query::bson::{Value, ValueRef};
use rillbase_query::ejson::parse_value;

use crate::common::{notification, query, until};

pub(crate) const F0: NotificationSource = NotificationSource::Filter(0);
pub(crate) const F1: NotificationSource = NotificationSource::Filter(1);
pub(crate) const SORT: NotificationSource = NotificationSource::Sort;

/// The hub under test, its log and its clock.
pub(crate) struct Desk {
    pub(crate) hub: Hub,
    pub(crate) now_us: u64,
    pub(crate) log: Vec<(StreamId, Notification)>,
    counts: HashMap<NotificationSource, (u64, u64)>,
    pub(crate) life: [u8; 16],
    requests: u64,
    /// The connection of the next subscriber; `None` for a separate one.
    pub(crate) connection: Option<u64>,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::bounded(OutboxBounds::default())
    }

    pub(crate) fn bounded(bounds: OutboxBounds) -> Self {
        Self::with(bounds, 1 << 30, 1 << 20)
    }

    /// A hub with this memory budget.
    pub(crate) fn narrow(memory_bytes: usize) -> Self {
        Self::with(OutboxBounds::default(), memory_bytes, 1 << 20)
    }

    /// A hub with this budget for traces.
    pub(crate) fn forgetful(trace_bytes: usize) -> Self {
        Self::with(OutboxBounds::default(), 1 << 30, trace_bytes)
    }

    pub(crate) fn with(bounds: OutboxBounds, memory_bytes: usize, trace_bytes: usize) -> Self {
        let config = HubConfig {
            sealer: Sealer::new(b"secret"),
            installation: 1,
            epoch: 1,
            write_partitions: 2,
            bounds,
            memory_bytes,
            trace_bytes,
        };
        let mut desk = Self {
            hub: Hub::new(config),
            now_us: 10_000_000,
            log: Vec::new(),
            counts: HashMap::new(),
            life: [1; 16],
            requests: 0,
            connection: None,
        };
        desk.pass(0);
        desk
    }

    /// A hub of another process, which has read nothing of the log.
    pub(crate) fn elsewhere(&self) -> Self {
        let mut other = Self::new();
        other.now_us = self.now_us;
        other.log.clone_from(&self.log);
        other.counts.clone_from(&self.counts);
        other.requests = self.requests;
        other.pass(0);
        other
    }

    /// Reads the log entries that another process has read since.
    pub(crate) fn follow(&mut self, other: &Self) {
        for (at, notification) in other.log.iter().skip(self.log.len()) {
            self.log.push((*at, notification.clone()));
            self.hub.read(0, *at, notification);
        }
        self.counts.clone_from(&other.counts);
        self.now_us = other.now_us;
        self.pass(0);
    }

    /// Switches to other nodes with a separate log.
    pub(crate) fn begin_anew(&mut self) {
        self.log.clear();
        self.counts.clear();
    }

    pub(crate) fn pass(&mut self, us: u64) {
        self.now_us += us;
        self.hub.tick(self.now_us);
    }

    pub(crate) fn end(&self) -> StreamId {
        self.log.last().map(|(at, _)| *at).unwrap_or_default()
    }

    /// Appends a notification of a node.
    pub(crate) fn notify(&mut self, source: NotificationSource, event: NodeEvent) {
        let (token, count) = self.counts.get(&source).copied().unwrap_or((1, 0));
        let (token, count) = match event {
            NodeEvent::Start => (token + 1, 1),
            _ => (token, count + 1),
        };
        self.counts.insert(source, (token, count));
        self.enter(notification(source, token, count, event));
    }

    pub(crate) fn enter(&mut self, notification: Notification) {
        let number = u64::try_from(self.log.len()).unwrap() + 1;
        let ms = self.now_us / 1000;
        let at = StreamId { ms, number };
        self.log.push((at, notification.clone()));
        self.hub.read(0, at, &notification);
    }

    pub(crate) fn skip(&mut self, source: NotificationSource) {
        self.counts.entry(source).or_insert((1, 0)).1 += 1;
    }

    /// Appends ticks of all nodes, which prove that they have handled everything below `next`.
    pub(crate) fn ticks(&mut self, next: u64) {
        for source in [F0, F1, SORT] {
            self.tick(source, next);
        }
        self.pass(0);
    }

    pub(crate) fn tick(&mut self, source: NotificationSource, next: u64) {
        let tick = StreamTick {
            time_us: self.now_us,
            count: 1,
            token: FencingToken(1),
            incarnation: self.life,
            snapshot: until(next),
        };
        self.notify(source, NodeEvent::Tick(tick));
    }

    pub(crate) fn attach(&mut self, id: u64, query: &QueryDefinition) {
        self.attach_with(id, query, ClientOptions::default(), None);
    }

    pub(crate) fn attach_with(
        &mut self,
        id: u64,
        query: &QueryDefinition,
        options: ClientOptions,
        resume: Option<String>,
    ) {
        let attach = Attach {
            name: format!("s{id}"),
            definition: Arc::new(query.clone()),
            partition: 0,
            projection: None,
            options,
            holder: [9; 16],
            resume,
            reset: None,
            connection: self.connection.unwrap_or(id),
        };
        self.hub.attach(id, attach);
    }

    /// Answers a request to register.
    pub(crate) fn register(
        &mut self,
        query: &QueryDefinition,
        snapshot: PgSnapshot,
        rows: &[ResultRow],
    ) {
        let end = self.end();
        self.register_behind(query, end, snapshot, rows);
    }

    pub(crate) fn register_behind(
        &mut self,
        query: &QueryDefinition,
        end: StreamId,
        snapshot: PgSnapshot,
        rows: &[ResultRow],
    ) {
        self.requests += 1;
        let registered = (query.activation, self.request());
        let asked = self.hub.registration_id(&query.hash).unwrap_or_default();
        self.hub
            .registered(&query.hash, asked, registered, end, snapshot, rows.to_vec());
    }

    /// The last request.
    pub(crate) fn request(&self) -> StreamId {
        StreamId {
            ms: 1,
            number: self.requests,
        }
    }

    /// A node answers the last request.
    pub(crate) fn active(&mut self, source: NotificationSource, query: &QueryDefinition) {
        let event = NodeEvent::Active {
            query: query.hash,
            activation: query.activation,
            request: self.request(),
        };
        self.notify(source, event);
    }

    /// A filter node does not continue from the rows of the last request.
    pub(crate) fn too_old(&mut self, source: NotificationSource, query: &QueryDefinition) {
        let event = NodeEvent::TooOld {
            query: query.hash,
            activation: query.activation,
            request: self.request(),
        };
        self.notify(source, event);
    }

    /// Registers, and lets all nodes answer until subscribers are notified that they are ready.
    pub(crate) fn open(&mut self, query: &QueryDefinition, next: u64, rows: &[ResultRow]) {
        self.register(query, until(next), rows);
        self.active(F0, query);
        self.active(F1, query);
        if query.sorted {
            self.rebase(SORT, query, next, rows);
            self.active(SORT, query);
        }
        self.ticks(next);
    }

    pub(crate) fn rebase(
        &mut self,
        source: NotificationSource,
        query: &QueryDefinition,
        next: u64,
        rows: &[ResultRow],
    ) {
        self.rebase_under(0, source, query, next, rows);
    }

    /// The same, for rows that were written under these access rules.
    pub(crate) fn rebase_under(
        &mut self,
        rules_version: u64,
        source: NotificationSource,
        query: &QueryDefinition,
        next: u64,
        rows: &[ResultRow],
    ) {
        let event = NodeEvent::Rebase {
            query: query.hash,
            activation: query.activation,
            snapshot: until(next),
            rules_version,
            rows: rows.to_vec(),
            part: 0,
            last: true,
        };
        self.notify(source, event);
    }

    /// A rebuilt node has no rows of these queries.
    pub(crate) fn empty(
        &mut self,
        source: NotificationSource,
        queries: &[&QueryDefinition],
        next: u64,
    ) {
        let queries = queries.iter().map(|query| EmptyResult {
            query: query.hash,
            activation: query.activation,
            rules_version: 0,
        });
        let event = NodeEvent::Empty {
            queries: queries.collect(),
            snapshot: until(next),
            request: self.request(),
        };
        self.notify(source, event);
    }

    pub(crate) fn matched(
        &mut self,
        source: NotificationSource,
        image: AfterImage,
        how: Is,
        query: QueryHash,
    ) {
        let one = |is: Is| if how == is { vec![query] } else { Vec::new() };
        let event = NodeEvent::Match {
            image,
            added: one(Is::Added),
            changed: one(Is::Changed),
            removed: one(Is::Removed),
        };
        self.notify(source, event);
    }

    /// A write of a document that some subscribers joined with in a version that was skipped.
    pub(crate) fn matched_by_some(
        &mut self,
        source: NotificationSource,
        image: AfterImage,
        how: Is,
        query: QueryHash,
    ) {
        let one = |is: Is| if how == is { vec![query] } else { Vec::new() };
        let event = NodeEvent::Match {
            image,
            added: one(Is::Added),
            changed: vec![query],
            removed: one(Is::Removed),
        };
        self.notify(source, event);
    }

    pub(crate) fn window(&mut self, query: &QueryDefinition, xid: u64, changes: Vec<WindowChange>) {
        let image = Some(Cause {
            xid,
            rules_version: 0,
            written_us: 0,
            parts: [].into(),
        });
        let event = NodeEvent::Window {
            query: query.hash,
            activation: query.activation,
            rules_version: 0,
            image,
            changes,
        };
        self.notify(SORT, event);
    }

    /// Takes the frames of clients that read everything.
    pub(crate) fn take(&mut self) -> Vec<ClientFrame> {
        let mut all = Vec::new();
        loop {
            let frames = self.hub.poll(1_000);
            for frame in &frames {
                self.hub.drained(frame.client, 1, frame.text.len());
            }
            if frames.is_empty() {
                return all;
            }
            all.extend(frames);
        }
    }

    /// The frames to clients, one line each.
    pub(crate) fn lines(&mut self) -> Vec<String> {
        self.take().iter().map(|frame| line(&frame.text)).collect()
    }

    pub(crate) fn take_requests(&mut self) -> Vec<HubRequest> {
        self.hub.take_requests()
    }

    /// Answers requests to replay the log, which is complete.
    pub(crate) fn answer_replays(&mut self) {
        for request in self.take_requests() {
            if let HubRequest::Replay {
                client,
                after,
                upto,
                ..
            } = request
            {
                let part = |(at, _): &&(StreamId, Notification)| *at > after && *at <= upto;
                let part: Vec<_> = self.log.iter().filter(part).cloned().collect();
                self.hub.replay(client, Some(&part));
            }
        }
    }
}

/// A ready subscriber of an unsorted query, with these rows before the transaction 5.
pub(crate) fn watched(rows: &[ResultRow]) -> (Desk, QueryDefinition) {
    let (mut desk, q) = (Desk::new(), query("q", "{}"));
    desk.attach(1, &q);
    desk.open(&q, 5, rows);
    (desk, q)
}

/// The effect of a write on a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Is {
    Added,
    Changed,
    Removed,
}

/// A frame's members.
pub(crate) fn parsed(text: &str) -> rillbase_query::bson::DocumentBuf {
    match parse_value(text.as_bytes()) {
        Ok(Value::Document(document)) => document,
        other => panic!("{text}: {other:?}"),
    }
}

pub(crate) fn number(value: Option<ValueRef<'_>>) -> Option<i64> {
    match value? {
        ValueRef::Int32(number) => Some(number.into()),
        ValueRef::Int64(number) => Some(number),
        _ => None,
    }
}

pub(crate) fn text(value: Option<ValueRef<'_>>) -> Option<String> {
    match value? {
        ValueRef::String(text) => Some(text.to_owned()),
        _ => None,
    }
}

/// The last token that a client received.
pub(crate) fn token(frames: &[ClientFrame]) -> String {
    let tokens = frames.iter().rev();
    let mut tokens = tokens.filter_map(|frame| text(parsed(&frame.text).as_ref().get("resume")));
    tokens.next().unwrap()
}

/// Shortens a frame: `s1 add a@2 #1`, `s1 result a@1 b@1`, …
pub(crate) fn line(frame: &str) -> String {
    let whole = parsed(frame);
    let whole = whole.as_ref();
    let name = text(whole.get("id")).unwrap();
    let kind = text(whole.get("type")).unwrap();
    let member = |key: &str| text(whole.get(key)).unwrap_or_default();
    let at = |key: &str| number(whole.get(key));
    match kind.as_str() {
        "event" => {
            let mut line = format!(
                "{name} {} {}@{}",
                member("match"),
                member("key"),
                at("version").unwrap()
            );
            if let Some(old) = at("old_index") {
                line += &format!(" {old}→");
            }
            if let Some(index) = at("index") {
                line += &format!(" {index}");
            }
            if !member("reason").is_empty() {
                line += &format!(" {}", member("reason"));
            }
            line += &format!(" #{}", at("seq").unwrap());
            if let Some(ValueRef::Document(txn)) = whole.get("txn") {
                let (index, count) = (number(txn.get("index")), number(txn.get("count")));
                line += &format!(" {}/{}", index.unwrap() + 1, count.unwrap());
            }
            line
        }
        "result" => {
            let mut line = format!("{name} result");
            if let Some(ValueRef::Array(items)) = whole.get("items") {
                for item in items.iter() {
                    if let ValueRef::Document(item) = item {
                        let id = text(item.get("id")).unwrap_or_default();
                        line += &format!(" {id}@{}", number(item.get("version")).unwrap_or(-1));
                    }
                }
            }
            line
        }
        "status" => format!("{name} {}", member("state")),
        "reset" => format!("{name} reset {}", member("reason")),
        _ => format!("{name} {kind}"),
    }
}
