//! Drives a node: its lease, its positions in the streams, its rebuilds. It works like a production
//! loop, but in small steps, and may stop between any two of them.

use rillbase_live::filter_node::{self, FilterNode};
use rillbase_live::message::{
    FencingToken, NodeRequest, Notification, QueryDefinition, ResultRow, StreamId, WriteEntry,
};
use rillbase_live::node::{Begin, NodeInput, NodeOutput};
use rillbase_live::snapshot::PgSnapshot;
use rillbase_live::sort_node::{self, SortNode};

use super::COLLECTION;
use super::database::Database;
use super::random::Random;
use super::valkey::Valkey;

/// The kind of node that a driver runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Filter(u16),
    Sort,
}

impl Kind {
    pub(crate) fn name(self) -> String {
        match self {
            Self::Filter(partition) => format!("filter {partition}"),
            Self::Sort => "sort".to_owned(),
        }
    }
}

#[derive(Debug)]
enum Machine {
    Filter(Box<FilterNode>),
    Sort(Box<SortNode>),
}

/// The common input of both kinds.
enum Plain {
    Start,
    Queries(Vec<QueryDefinition>),
    Begin(Begin),
    Rows {
        collection: [u8; 16],
        rows: Vec<ResultRow>,
    },
    End,
    Request {
        id: StreamId,
        request: NodeRequest,
    },
    Idle,
}

impl Plain {
    fn of<E>(self) -> NodeInput<E> {
        match self {
            Self::Start => NodeInput::Start,
            Self::Queries(queries) => NodeInput::Queries(queries),
            Self::Begin(begin) => NodeInput::Begin(begin),
            Self::Rows { collection, rows } => NodeInput::Rows { collection, rows },
            Self::End => NodeInput::End,
            Self::Request { id, request } => NodeInput::Request { id, request },
            Self::Idle => NodeInput::Idle,
        }
    }
}

/// The phase of a rebuild.
#[derive(Debug)]
enum Phase {
    Start,
    Note,
    Registry {
        count: u64,
    },
    Snapshot {
        count: u64,
    },
    Rows {
        count: u64,
        snapshot: PgSnapshot,
        rules: u64,
        rows: Vec<ResultRow>,
    },
    Report,
    Running,
}

/// A process that competes for the lease of a node.
#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) kind: Kind,
    partitions: u16,
    holder: u64,
    token: FencingToken,
    machine: Option<Machine>,
    phase: Phase,
    /// Its position in its write stream, or in the log.
    entries_at: StreamId,
    requests_at: StreamId,
    request_number: u64,
    /// Of the write stream.
    write_number: u64,
    /// Of the log.
    log_number: u64,
    /// Notifications that have not been appended yet.
    unsaid: Vec<Notification>,
    /// How many queries it reports at once after a rebuild.
    pub(crate) reported_at_once: usize,
    /// The value of `Valkey::freezes` that it last saw.
    freezes: u64,
    pub(crate) stopped_until_us: u64,
    /// How far its clock is ahead.
    pub(crate) skew_us: u64,
}

impl Driver {
    pub(crate) fn new(kind: Kind, partitions: u16, holder: u64) -> Self {
        Self {
            kind,
            partitions,
            holder,
            token: FencingToken::default(),
            machine: None,
            phase: Phase::Start,
            entries_at: StreamId::default(),
            requests_at: StreamId::default(),
            request_number: 0,
            write_number: 0,
            log_number: 0,
            unsaid: Vec::new(),
            reported_at_once: 2,
            freezes: 0,
            stopped_until_us: 0,
            skew_us: 0,
        }
    }

    /// It is killed, and restarts as another holder.
    pub(crate) fn kill(&mut self) {
        self.forget();
    }

    /// The next term has another holder.
    fn forget(&mut self) {
        self.holder += 1_000;
        self.machine = None;
        self.token = FencingToken::default();
        self.unsaid.clear();
    }

    pub(crate) fn step(&mut self, valkey: &mut Valkey, database: &Database, random: &mut Random) {
        if self.freezes != valkey.freezes {
            self.freezes = valkey.freezes;
            return self.forget();
        }
        if valkey.now_us < self.stopped_until_us || !self.speak(valkey) {
            return;
        }
        match valkey.lease(&self.kind.name(), self.holder) {
            None => return self.forget(),
            Some(token) if token == self.token && self.machine.is_some() => {}
            Some(token) => self.begin(token),
        }
        self.advance(valkey, database, random);
        // Sometimes it stops between handling an entry and appending the result.
        if !random.once_in(4) {
            self.speak(valkey);
        }
    }

    /// Appends pending notifications. A rejected node has been replaced.
    fn speak(&mut self, valkey: &mut Valkey) -> bool {
        if self.unsaid.is_empty() {
            return true;
        }
        let said = std::mem::take(&mut self.unsaid);
        let accepted = valkey.append(&self.kind.name(), self.token, said);
        self.freezes = valkey.freezes;
        if !accepted {
            self.forget();
        }
        accepted
    }

    fn begin(&mut self, token: FencingToken) {
        self.token = token;
        self.phase = Phase::Start;
        self.machine = Some(match self.kind {
            Kind::Filter(partition) => {
                let config = filter_node::FilterNodeConfig {
                    reported_at_once: self.reported_at_once,
                    ..filter_node::FilterNodeConfig::new(partition, self.partitions, token)
                };
                Machine::Filter(Box::new(FilterNode::new(config)))
            }
            Kind::Sort => {
                let config = sort_node::SortNodeConfig {
                    reported_at_once: self.reported_at_once,
                    ..sort_node::SortNodeConfig::new(self.partitions, token)
                };
                Machine::Sort(Box::new(SortNode::new(config)))
            }
        });
    }

    fn advance(&mut self, valkey: &Valkey, database: &Database, random: &mut Random) {
        let now_us = valkey.now_us + self.skew_us;
        self.phase = match std::mem::replace(&mut self.phase, Phase::Start) {
            Phase::Start => {
                self.give(Plain::Start, now_us);
                Phase::Note
            }
            // The output of `start` must be in the log before anything is read.
            Phase::Note if !self.unsaid.is_empty() => Phase::Note,
            Phase::Note => {
                self.requests_at = valkey.requests.end();
                self.request_number = valkey.requests.count;
                self.log_number = valkey.log.count;
                let (end, count) = match self.kind {
                    Kind::Filter(partition) => {
                        let stream = &valkey.writes[usize::from(partition)];
                        (stream.end(), stream.count)
                    }
                    Kind::Sort => (valkey.log.end(), 0),
                };
                self.entries_at = end;
                self.write_number = count;
                Phase::Registry { count }
            }
            Phase::Registry { count } => {
                // A scan may return an entry twice.
                let queries: Vec<_> = valkey.registry.values().cloned().collect();
                for part in queries.chunks(2).chain(queries.chunks(5).take(1)) {
                    self.give(Plain::Queries(part.to_vec()), now_us);
                }
                Phase::Snapshot { count }
            }
            Phase::Snapshot { .. } if database.is_away(valkey.now_us) => {
                self.forget();
                Phase::Start
            }
            Phase::Snapshot { count } => Phase::Rows {
                count,
                snapshot: database.snapshot(),
                rules: database.rules,
                rows: database.rows(),
            },
            Phase::Rows {
                count,
                snapshot,
                rules,
                rows,
            } => {
                self.rebuild(count, (snapshot, rules), rows, now_us);
                Phase::Report
            }
            // It may stop between two parts of the report.
            Phase::Report => {
                self.give(Plain::End, now_us);
                if self.is_rebuilding() {
                    Phase::Report
                } else {
                    Phase::Running
                }
            }
            Phase::Running => self.run(valkey, random),
        };
    }

    fn rebuild(
        &mut self,
        count: u64,
        (snapshot, rules): (PgSnapshot, u64),
        rows: Vec<ResultRow>,
        now_us: u64,
    ) {
        let begin = Begin {
            position: self.entries_at,
            count,
            requests: self.requests_at,
            snapshot,
            rules: [(COLLECTION, rules)].into(),
        };
        let collection = COLLECTION;
        self.give(Plain::Begin(begin), now_us);
        self.give(Plain::Rows { collection, rows }, now_us);
    }

    fn is_rebuilding(&self) -> bool {
        match &self.machine {
            Some(Machine::Filter(node)) => node.is_rebuilding(),
            Some(Machine::Sort(node)) => node.is_rebuilding(),
            None => false,
        }
    }

    /// Reads some entries of both streams, in any order of the two.
    fn run(&mut self, valkey: &Valkey, random: &mut Random) -> Phase {
        let now_us = valkey.now_us + self.skew_us;
        for _ in 0..=random.below(12) {
            let whole = if random.once_in(3) {
                self.read_request(valkey, now_us)
            } else {
                self.read_entry(valkey, now_us)
            };
            match whole {
                Some(true) => {}
                Some(false) => return Phase::Start,
                None => {
                    let caught_up = valkey.requests.end() <= self.requests_at
                        && self.end(valkey) <= self.entries_at;
                    if caught_up && !self.give(Plain::Idle, now_us) {
                        return Phase::Start;
                    }
                }
            }
        }
        Phase::Running
    }

    fn end(&self, valkey: &Valkey) -> StreamId {
        match self.kind {
            Kind::Filter(partition) => valkey.writes[usize::from(partition)].end(),
            Kind::Sort => valkey.log.end(),
        }
    }

    /// Returns `None` if there is no request, and false if the node must be rebuilt.
    fn read_request(&mut self, valkey: &Valkey, now_us: u64) -> Option<bool> {
        let (id, number, request) = valkey.requests.next(self.requests_at)?;
        self.requests_at = id;
        self.request_number += 1;
        // Some were trimmed before they were read.
        if number != self.request_number {
            return Some(false);
        }
        Some(self.give(Plain::Request { id, request }, now_us))
    }

    fn read_entry(&mut self, valkey: &Valkey, now_us: u64) -> Option<bool> {
        let mut out = Vec::new();
        match (self.kind, &mut self.machine) {
            (Kind::Filter(partition), Some(Machine::Filter(node))) => {
                let stream = &valkey.writes[usize::from(partition)];
                let (id, number, entry) = stream.next(self.entries_at)?;
                self.entries_at = id;
                self.write_number += 1;
                // Entries of batches carry their numbers.
                if in_batch(&entry) && number != self.write_number {
                    return Some(false);
                }
                node.handle(NodeInput::Entry { id, entry }, now_us, &mut out);
            }
            (Kind::Sort, Some(Machine::Sort(node))) => {
                let (id, number, entry) = valkey.log.next(self.entries_at)?;
                self.entries_at = id;
                self.log_number += 1;
                if number != self.log_number {
                    return Some(false);
                }
                node.handle(NodeInput::Entry { id, entry }, now_us, &mut out);
            }
            _ => return None,
        }
        Some(self.take(out))
    }

    /// Passes an input that both kinds share to the machine. Returns false if it must be rebuilt.
    fn give(&mut self, input: Plain, now_us: u64) -> bool {
        let mut out = Vec::new();
        match &mut self.machine {
            Some(Machine::Filter(node)) => node.handle(input.of(), now_us, &mut out),
            Some(Machine::Sort(node)) => node.handle(input.of(), now_us, &mut out),
            None => {}
        }
        self.take(out)
    }

    fn take(&mut self, out: Vec<NodeOutput>) -> bool {
        let mut whole = true;
        for output in out {
            match output {
                NodeOutput::Notify(notification) => self.unsaid.push(notification),
                NodeOutput::Rebuild(_) => whole = false,
            }
        }
        whole
    }
}

fn in_batch(entry: &WriteEntry) -> bool {
    matches!(entry, WriteEntry::Image(image) if !image.parts.is_empty())
}
