//! A sort node, and shorthands for the messages of filter nodes and app servers.

use rillbase_live::message::{
    AfterImage, FencingToken, NodeEvent, NodeRequest, NotificationSource, QueryDefinition,
    QueryHash, ResultRow, StreamId,
};
use rillbase_live::node::Begin;
use rillbase_live::snapshot::PgSnapshot;
use rillbase_live::sort_node::{Input, SortNode, SortNodeConfig};

use crate::common::{
    COLLECTION, at, hash, lines, notification, register, row, sorted, tick, until,
};

/// A node, a clock, and a log to which two filter nodes write.
pub(crate) struct Stage {
    pub(crate) node: SortNode,
    pub(crate) now_us: u64,
    pub(crate) read: u64,
    pub(crate) requests: u64,
    pub(crate) counts: [u64; 2],
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::with(&[], &[])
    }

    pub(crate) fn with(queries: &[QueryDefinition], rows: &[ResultRow]) -> Self {
        let mut node = Self {
            node: SortNode::new(SortNodeConfig::new(2, FencingToken(1))),
            now_us: 1_000_000,
            read: 100,
            requests: 0,
            counts: [0, 0],
        };
        node.begin(queries, until(1));
        node.give(Input::Rows {
            collection: COLLECTION,
            rows: rows.to_vec(),
        });
        node.give(Input::End);
        node
    }

    pub(crate) fn begin(&mut self, queries: &[QueryDefinition], snapshot: PgSnapshot) {
        self.give(Input::Start);
        self.give(Input::Queries(queries.to_vec()));
        self.give(Input::Begin(Begin {
            position: at(self.read),
            count: 0,
            requests: at(self.requests),
            snapshot,
            rules: std::collections::HashMap::new(),
        }));
    }

    pub(crate) fn give(&mut self, input: Input) -> Vec<String> {
        let mut out = Vec::new();
        self.node.handle(input, self.now_us, &mut out);
        lines(&out)
    }

    /// The next notification of a filter node.
    pub(crate) fn notify(&mut self, partition: u16, event: NodeEvent) -> Vec<String> {
        let count = &mut self.counts[usize::from(partition)];
        *count += 1;
        let entry = notification(NotificationSource::Filter(partition), 1, *count, event);
        self.read += 1;
        let id = at(self.read);
        self.give(Input::Entry { id, entry })
    }

    /// A write that enters or stays in the query `s`.
    pub(crate) fn put(&mut self, image: AfterImage) -> Vec<String> {
        self.notify(0, match_event(image, &[hash("s")], &[]))
    }

    /// A write that leaves it.
    pub(crate) fn leave(&mut self, image: AfterImage) -> Vec<String> {
        self.notify(0, match_event(image, &[], &[hash("s")]))
    }

    /// A request from which both filter nodes continue.
    pub(crate) fn ask(&mut self, request: NodeRequest) -> Vec<String> {
        let mut answers = self.ask_alone(request);
        answers.extend(self.accept(0));
        answers.extend(self.accept(1));
        answers
    }

    /// A request that they have not answered.
    pub(crate) fn ask_alone(&mut self, request: NodeRequest) -> Vec<String> {
        self.requests += 1;
        let id = at(self.requests);
        self.give(Input::Request { id, request })
    }

    /// A filter node continues from the last request for `s`.
    pub(crate) fn accept(&mut self, partition: u16) -> Vec<String> {
        let request = at(self.requests);
        self.notify(partition, active(request))
    }

    /// A filter node calls a request for `s` too old.
    pub(crate) fn refuse(&mut self, partition: u16, request: u64) -> Vec<String> {
        let (query, activation, request) = (hash("s"), 1, at(request));
        let event = NodeEvent::TooOld {
            query,
            activation,
            request,
        };
        self.notify(partition, event)
    }

    /// Both filter nodes have reported what the snapshot sees.
    pub(crate) fn tick(&mut self, count: u64, snapshot: &PgSnapshot) -> Vec<String> {
        let first = self.notify(0, NodeEvent::Tick(tick(count, snapshot.clone())));
        assert!(first.is_empty());
        self.notify(1, NodeEvent::Tick(tick(count, snapshot.clone())))
    }
}

pub(crate) fn active(request: StreamId) -> NodeEvent {
    NodeEvent::Active {
        query: hash("s"),
        activation: 1,
        request,
    }
}

pub(crate) fn match_event(
    image: AfterImage,
    changed: &[QueryHash],
    removed: &[QueryHash],
) -> NodeEvent {
    NodeEvent::Match {
        image,
        added: Vec::new(),
        changed: changed.to_vec(),
        removed: removed.to_vec(),
    }
}

pub(crate) fn batch(image: AfterImage) -> AfterImage {
    AfterImage {
        parts: [0, 1].into(),
        ..image
    }
}

/// A node that keeps the first two of `a` 10, `b` 20, `c` 30, and one row more.
pub(crate) fn three() -> Stage {
    let mut node = Stage::new();
    let rows = [row("a", 1, 10), row("b", 1, 20), row("c", 1, 30)];
    let answers = node.ask(register(&sorted("s", 0, 2, 1), 0, &until(5), &rows, false));
    assert_eq!(answers, ["rebase s [a@1 b@1]", "active s 1"]);
    node
}
