//! The state of the model.

use super::client::Client;
use super::hub::Hub;
use super::node::Node;
use super::outbox::{Outbox, Relay};
use super::scope::Scope;

pub(crate) const DOCUMENTS: usize = 2;

/// A set of writes: a snapshot, for example.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct Set(u8);

impl Set {
    pub(crate) const EMPTY: Self = Self(0);

    pub(crate) fn has(self, write: u8) -> bool {
        self.0 & (1 << write) != 0
    }

    pub(crate) fn add(&mut self, write: u8) {
        self.0 |= 1 << write;
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) fn covers(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The version of each document that is in a result.
pub(crate) type Rows = [Option<u8>; DOCUMENTS];

/// A stream. Positions continue after a loss of all entries.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Stream<T> {
    /// How many entries were lost.
    pub(crate) lost: usize,
    entries: Vec<T>,
}

impl<T> Stream<T> {
    pub(crate) const fn new() -> Self {
        Self {
            lost: 0,
            entries: Vec::new(),
        }
    }

    /// The position after the last entry.
    pub(crate) fn end(&self) -> usize {
        self.lost + self.entries.len()
    }

    pub(crate) fn push(&mut self, entry: T) {
        self.entries.push(entry);
    }

    pub(crate) fn last(&self) -> Option<&T> {
        self.entries.last()
    }

    /// The first entry from a position on, and the position after it.
    pub(crate) fn next(&self, from: usize) -> Option<(usize, &T)> {
        let at = from.max(self.lost);
        Some((at + 1, self.entries.get(at - self.lost)?))
    }

    pub(crate) fn empty(&mut self) {
        self.lost = self.end();
        self.entries.clear();
    }
}

/// An entry of the write stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Entry {
    Image(u8),
    /// Everything that it sees is in the stream of this incarnation.
    Tick(Tick),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Tick {
    pub(crate) seen: Set,
    pub(crate) life: u8,
}

/// A registration: the end of the write stream, and what the rows have seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Request {
    pub(crate) noted: usize,
    pub(crate) seen: Set,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Added,
    Changed,
    Removed,
}

/// A notification of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum News {
    Start,
    Match(u8, Kind),
    /// For all requests up to this position of the request stream.
    Active(usize),
    TooOld(usize),
    /// Its members, according to this snapshot.
    Rebase(Set),
    Tick(Tick),
}

/// The event layer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Valkey {
    pub(crate) life: u8,
    /// The last incarnation in which everything was published.
    pub(crate) complete: Option<u8>,
    pub(crate) writes: Stream<Entry>,
    pub(crate) requests: Stream<Request>,
    pub(crate) log: Stream<News>,
    /// Whether the registry has the query.
    pub(crate) registered: bool,
}

impl Valkey {
    const fn new() -> Self {
        Self {
            life: 0,
            complete: Some(0),
            writes: Stream::new(),
            requests: Stream::new(),
            log: Stream::new(),
            registered: false,
        }
    }

    pub(crate) fn empty(&mut self) {
        self.life += 1;
        self.complete = None;
        self.writes.empty();
        self.requests.empty();
        self.log.empty();
        self.registered = false;
    }
}

/// The remaining faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Faults {
    pub(crate) empties: u8,
    pub(crate) kills: u8,
    pub(crate) crashes: u8,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(crate) committed: Set,
    pub(crate) outbox: Outbox,
    pub(crate) relay: Relay,
    pub(crate) valkey: Valkey,
    pub(crate) node: Node,
    pub(crate) hub: Hub,
    pub(crate) client: Client,
    pub(crate) faults: Faults,
}

impl State {
    pub(crate) fn begin(scope: &Scope) -> Self {
        Self {
            committed: Set::default(),
            outbox: Outbox::default(),
            relay: Relay::default(),
            valkey: Valkey::new(),
            node: Node::default(),
            hub: Hub::new(0),
            client: Client::default(),
            faults: Faults {
                empties: scope.empties,
                kills: scope.kills,
                crashes: scope.crashes,
            },
        }
    }
}

impl Scope {
    /// The result of the query in a snapshot.
    pub(crate) fn answer(&self, seen: Set) -> Rows {
        let mut rows = [None; DOCUMENTS];
        for number in self.numbers().filter(|number| seen.has(*number)) {
            let write = self.write(number);
            rows[write.document] = write.matches.then_some(write.version);
        }
        rows
    }

    /// The newest version of each document in a snapshot; 0: there is none.
    pub(crate) fn versions(&self, seen: Set) -> [u8; DOCUMENTS] {
        let mut versions = [0; DOCUMENTS];
        for number in self.numbers().filter(|number| seen.has(*number)) {
            let write = self.write(number);
            versions[write.document] = write.version;
        }
        versions
    }
}
