//! The event layer: streams that are trimmed, leases, the registry. It may lose all that it holds.

use std::collections::{BTreeMap, VecDeque};

use rillbase_live::message::{
    AfterImage, Definition, Notification, QueryHash, Request, StreamId, Tick, Token, WriteEntry,
};
use rillbase_live::snapshot::Snapshot;

use crate::database::partition;

/// A stream of which the oldest entries are dropped.
#[derive(Debug)]
pub(crate) struct Stream<T> {
    entries: VecDeque<(StreamId, T)>,
    last: StreamId,
    pub(crate) count: u64,
    /// The last that was dropped.
    trimmed: StreamId,
    kept_ms: u64,
}

impl<T: Clone> Stream<T> {
    fn new(kept_ms: u64) -> Self {
        Self {
            entries: VecDeque::new(),
            last: StreamId::default(),
            count: 0,
            trimmed: StreamId::default(),
            kept_ms,
        }
    }

    fn append(&mut self, now_us: u64, entry: T) {
        let ms = now_us / 1_000;
        let number = if self.last.ms == ms {
            self.last.number + 1
        } else {
            0
        };
        self.last = StreamId { ms, number };
        self.count += 1;
        self.entries.push_back((self.last, entry));
        while let Some((id, _)) = self.entries.front()
            && id.ms + self.kept_ms < ms
        {
            self.trimmed = *id;
            self.entries.pop_front();
        }
    }

    pub(crate) fn end(&self) -> StreamId {
        self.last
    }

    /// Entries behind `after`, `most` of them.
    pub(crate) fn read(&self, after: StreamId, most: usize) -> Vec<(StreamId, T)> {
        let start = self.entries.partition_point(|(id, _)| *id <= after);
        self.entries.range(start..).take(most).cloned().collect()
    }

    /// Whether entries behind `after` were dropped.
    pub(crate) fn is_trimmed(&self, after: StreamId) -> bool {
        after < self.trimmed
    }
}

/// Who may speak as a node.
#[derive(Debug, Clone, Copy)]
struct Lease {
    holder: u64,
    token: Token,
    until_us: u64,
}

/// The event layer.
#[derive(Debug)]
pub(crate) struct Valkey {
    pub(crate) now_us: u64,
    /// Rises each time that it loses everything.
    pub(crate) life: u8,
    pub(crate) writes: Vec<Stream<WriteEntry>>,
    pub(crate) requests: Stream<Request>,
    pub(crate) log: Stream<Notification>,
    pub(crate) registry: BTreeMap<QueryHash, Definition>,
    activation: u64,
    leases: BTreeMap<String, Lease>,
}

impl Valkey {
    pub(crate) fn new(partitions: u16, now_us: u64) -> Self {
        let mut writes = Vec::new();
        writes.resize_with(partitions.into(), || Stream::new(10_000));
        Self {
            now_us,
            life: 1,
            writes,
            requests: Stream::new(60_000),
            log: Stream::new(60_000),
            registry: BTreeMap::new(),
            activation: 0,
            leases: BTreeMap::new(),
        }
    }

    /// Everything is lost.
    pub(crate) fn empty(&mut self) {
        let partitions = u16::try_from(self.writes.len()).unwrap_or(1);
        let life = self.life + 1;
        *self = Self::new(partitions, self.now_us);
        self.life = life;
    }

    fn partitions(&self) -> u16 {
        u16::try_from(self.writes.len()).unwrap_or(1)
    }

    /// Appends what one transaction wrote, all at once.
    pub(crate) fn publish(&mut self, images: &[AfterImage]) {
        for image in images {
            let wp = usize::from(partition(image.key[0], self.partitions()));
            let entry = WriteEntry::Image(image.clone());
            self.writes[wp].append(self.now_us, entry);
        }
    }

    pub(crate) fn tick(&mut self, snapshot: &Snapshot) {
        for stream in &mut self.writes {
            let tick = Tick {
                time_us: self.now_us,
                count: stream.count + 1,
                token: Token(1),
                incarnation: [self.life; 16],
                snapshot: snapshot.clone(),
            };
            stream.append(self.now_us, WriteEntry::Tick(tick));
        }
    }

    /// Takes or keeps a lease; its token, unless somebody else has it.
    pub(crate) fn lease(&mut self, node: &str, holder: u64) -> Option<Token> {
        let until_us = self.now_us + 2_000_000;
        let lease = self.leases.get(node).copied();
        let token = match lease {
            Some(lease) if lease.holder == holder => lease.token,
            Some(lease) if lease.until_us > self.now_us => return None,
            Some(lease) => Token(self.now_us.max(lease.token.0 + 1)),
            None => Token(self.now_us),
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
    pub(crate) fn append(&mut self, node: &str, token: Token, said: Vec<Notification>) -> bool {
        if self
            .leases
            .get(node)
            .is_none_or(|lease| lease.token != token)
        {
            return false;
        }
        for notification in said {
            self.log.append(self.now_us, notification);
        }
        true
    }

    /// Registers a query, or new rows for it, and says in which life it is.
    pub(crate) fn register(&mut self, mut request: Request) -> Option<u64> {
        let Request::Register { query, renewal, .. } = &mut request else {
            return None;
        };
        let activation = match self.registry.get(&query.hash) {
            Some(known) => known.activation,
            None if *renewal => return None,
            None => {
                self.activation += 1;
                self.activation
            }
        };
        query.activation = activation;
        self.registry.insert(query.hash, query.clone());
        self.requests.append(self.now_us, request);
        Some(activation)
    }

    /// Forgets a query that nobody watches.
    pub(crate) fn expire(&mut self, query: QueryHash) {
        if let Some(definition) = self.registry.remove(&query) {
            let activation = definition.activation;
            self.requests
                .append(self.now_us, Request::Expire { query, activation });
        }
    }
}
