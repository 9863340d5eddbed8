//! A filter node for tests, with a clock and a write stream.

use rillbase_live::filter_node::{FilterNode, FilterNodeConfig, Input};
use rillbase_live::message::{AfterImage, FencingToken, NodeRequest, QueryDefinition, WriteEntry};
use rillbase_live::node::Begin;
use rillbase_live::snapshot::PgSnapshot;

use crate::common::{at, lines, query, tick, until};

/// A node, a clock, and a write stream.
pub(crate) struct Stage {
    pub(crate) node: FilterNode,
    pub(crate) now_us: u64,
    pub(crate) read: u64,
    pub(crate) requests: u64,
}

impl Stage {
    /// A running node of one partition that has read everything up to `at(100)`.
    pub(crate) fn new() -> Self {
        Self::with(FilterNodeConfig::new(0, 1, FencingToken(1)), &[])
    }

    pub(crate) fn with(config: FilterNodeConfig, queries: &[QueryDefinition]) -> Self {
        let mut node = Self {
            node: FilterNode::new(config),
            now_us: 1_000_000,
            read: 100,
            requests: 0,
        };
        node.give(Input::Start);
        node.give(Input::Queries(queries.to_vec()));
        node.give(Input::Begin(Begin {
            position: at(100),
            count: 0,
            requests: at(0),
            snapshot: until(1),
            rules: std::collections::HashMap::new(),
        }));
        node.give(Input::End);
        node
    }

    pub(crate) fn give(&mut self, input: Input) -> Vec<String> {
        let mut out = Vec::new();
        self.node.handle(input, self.now_us, &mut out);
        lines(&out)
    }

    pub(crate) fn entry(&mut self, entry: WriteEntry) -> Vec<String> {
        self.read += 1;
        let id = at(self.read);
        self.give(Input::Entry { id, entry })
    }

    pub(crate) fn write(&mut self, image: AfterImage) -> Vec<String> {
        self.entry(WriteEntry::Image(image))
    }

    /// The relay's tick, with the right number of entries.
    pub(crate) fn tick(&mut self, snapshot: PgSnapshot) -> Vec<String> {
        let count = self.read - 100 + 1;
        self.entry(WriteEntry::Tick(tick(count, snapshot)))
    }

    pub(crate) fn ask(&mut self, request: NodeRequest) -> Vec<String> {
        self.requests += 1;
        let id = at(self.requests);
        self.give(Input::Request { id, request })
    }

    pub(crate) fn pass(&mut self, seconds: u64) {
        self.now_us += seconds * 1_000_000;
        self.give(Input::Idle);
    }
}

pub(crate) fn positive() -> QueryDefinition {
    query("q", r#"{"n":{"$gt":0}}"#)
}
