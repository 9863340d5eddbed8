//! The interface of both kinds of node to the loop.

use std::collections::BTreeSet;

use rillbase_live::filter_node::{self, FilterNode};
use rillbase_live::message::{FencingToken, NodeRequest, QueryDefinition, ResultRow, StreamId};
use rillbase_live::node::{Begin, NodeInput, NodeOutput};
use rillbase_live::sort_node::{self, SortNode};
use rillbase_live::wire::{ReadError, notification, write_entry};

use crate::layer::{NodeSettings, StartPositions, ValkeyEntry};
use crate::report::NodeFigures;
use crate::rows::{RebuildScope, RebuildSnapshot};

/// An input of a node.
#[derive(Debug)]
pub enum MachineInput<'a> {
    /// A rebuild is about to start.
    Start,
    /// Queries of the partition; all of them in several inputs.
    Queries(Vec<QueryDefinition>),
    /// All queries have been passed: the positions where reading will continue, the snapshot of
    /// the rows.
    Begin(StartPositions, RebuildSnapshot),
    /// A document that the snapshot sees.
    Row([u8; 16], ResultRow),
    /// All rows have been passed. Repeated while [`Machine::is_rebuilding`].
    End,
    /// The next request, with its id.
    Request(StreamId, NodeRequest),
    /// The next entry of the node's own stream.
    Entry(&'a ValkeyEntry),
    /// The same, if the node panicked on it before.
    Quarantined(&'a ValkeyEntry),
    /// A row was omitted because the node panicked on it before.
    RowLeftOut([u8; 16]),
    /// Everything available has been passed.
    Idle,
}

/// A node's state machine during one lease term.
pub trait Machine: Sized {
    /// A new machine without state.
    fn new(settings: &NodeSettings, write_partition: u16, token: FencingToken) -> Self;
    /// The stream that it reads besides the requests.
    fn stream(settings: &NodeSettings, write_partition: u16) -> String;
    /// The position where reading that stream starts.
    fn position(beginning: &StartPositions) -> StreamId;
    /// Whether all entries of that stream carry their numbers. Otherwise only entries of batches
    /// do, and ticks count the others.
    const NUMBERED: bool;
    /// The number of the last entry before that position.
    fn number(beginning: &StartPositions) -> u64;
    /// The write partition that it reads, if it reads one.
    fn reads_writes(write_partition: u16) -> Option<u16>;
    /// The documents that it needs for a rebuild, by key hash.
    fn rebuild_scope(settings: &NodeSettings, write_partition: u16) -> RebuildScope;
    /// Adds the collections whose documents it needs for a query.
    fn add_collections(query: &QueryDefinition, collections: &mut BTreeSet<[u8; 16]>);
    /// Handles an input.
    fn handle(
        &mut self,
        step: MachineInput<'_>,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) -> Result<(), ReadError>;
    /// Whether a rebuild has begun and is not over.
    fn is_rebuilding(&self) -> bool;
    /// Adds its figures.
    fn figures(&self, figures: &mut NodeFigures);
}

impl Machine for FilterNode {
    const NUMBERED: bool = false;

    fn new(settings: &NodeSettings, write_partition: u16, token: FencingToken) -> Self {
        let config =
            filter_node::FilterNodeConfig::new(write_partition, settings.write_partitions, token);
        Self::new(config)
    }

    fn stream(settings: &NodeSettings, write_partition: u16) -> String {
        settings.stream(&write_partition.to_string())
    }

    fn position(beginning: &StartPositions) -> StreamId {
        beginning.writes
    }

    fn number(beginning: &StartPositions) -> u64 {
        beginning.write_count
    }

    fn reads_writes(write_partition: u16) -> Option<u16> {
        Some(write_partition)
    }

    fn rebuild_scope(settings: &NodeSettings, write_partition: u16) -> RebuildScope {
        RebuildScope {
            collections: BTreeSet::new(),
            partition: write_partition,
            partitions: settings.write_partitions,
        }
    }

    fn add_collections(query: &QueryDefinition, collections: &mut BTreeSet<[u8; 16]>) {
        collections.insert(query.collection);
    }

    fn handle(
        &mut self,
        step: MachineInput<'_>,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) -> Result<(), ReadError> {
        let decode = |entry: &ValkeyEntry| write_entry::decode(&entry.body, entry.parts.as_deref());
        let input = input(step, Self::position, decode, collection_of)?;
        FilterNode::handle(self, input, now_us, out);
        Ok(())
    }

    fn is_rebuilding(&self) -> bool {
        FilterNode::is_rebuilding(self)
    }

    fn figures(&self, figures: &mut NodeFigures) {
        let own = FilterNode::figures(self);
        figures.queries = own.queries;
        figures.documents = own.documents;
        figures.retained_bytes = own.retained_bytes;
        figures.matched_documents = own.matching.documents;
        figures.candidates = own.matching.candidates;
        figures.verified = own.matching.verified;
        figures.residual_evaluations = own.matching.residual_evaluations;
        figures.index_bytes = own.matching.memory_bytes;
    }
}

/// Converts an input.
fn input<E>(
    step: MachineInput<'_>,
    position: fn(&StartPositions) -> StreamId,
    decode: impl Fn(&ValkeyEntry) -> Result<E, ReadError>,
    collection_of: impl Fn(&ValkeyEntry) -> Option<[u8; 16]>,
) -> Result<NodeInput<E>, ReadError> {
    Ok(match step {
        MachineInput::Start => NodeInput::Start,
        MachineInput::Queries(queries) => NodeInput::Queries(queries),
        MachineInput::Begin(beginning, opened) => NodeInput::Begin(Begin {
            position: position(&beginning),
            count: beginning.write_count,
            requests: beginning.requests,
            snapshot: opened.snapshot,
            rules: opened.rules,
        }),
        MachineInput::Row(collection, row) => NodeInput::Rows {
            collection,
            rows: vec![row],
        },
        MachineInput::End => NodeInput::End,
        MachineInput::Request(id, request) => NodeInput::Request { id, request },
        MachineInput::Entry(entry) => NodeInput::Entry {
            id: entry.id,
            entry: decode(entry)?,
        },
        MachineInput::Quarantined(entry) => NodeInput::Quarantined {
            id: entry.id,
            collection: collection_of(entry),
        },
        MachineInput::RowLeftOut(collection) => NodeInput::LeftOut { collection },
        MachineInput::Idle => NodeInput::Idle,
    })
}

/// The collection that an entry concerns, if it can be decoded.
fn collection_of(entry: &ValkeyEntry) -> Option<[u8; 16]> {
    use rillbase_live::message::WriteEntry;
    match write_entry::decode(&entry.body, entry.parts.as_deref()) {
        Ok(WriteEntry::Image(image)) => Some(image.collection),
        Ok(WriteEntry::Tick(_)) | Err(_) => None,
    }
}

impl Machine for SortNode {
    const NUMBERED: bool = true;

    fn new(settings: &NodeSettings, _: u16, token: FencingToken) -> Self {
        Self::new(sort_node::SortNodeConfig::new(
            settings.write_partitions,
            token,
        ))
    }

    fn stream(settings: &NodeSettings, _: u16) -> String {
        settings.stream(&format!("log:{}", settings.query_partition))
    }

    fn position(beginning: &StartPositions) -> StreamId {
        beginning.log
    }

    fn number(beginning: &StartPositions) -> u64 {
        beginning.log_number
    }

    fn reads_writes(_: u16) -> Option<u16> {
        None
    }

    fn rebuild_scope(_: &NodeSettings, _: u16) -> RebuildScope {
        RebuildScope {
            collections: BTreeSet::new(),
            partition: 0,
            partitions: 1,
        }
    }

    fn add_collections(query: &QueryDefinition, collections: &mut BTreeSet<[u8; 16]>) {
        if query.sorted {
            collections.insert(query.collection);
            collections.extend(query.sides.iter().map(|side| side.collection));
        }
    }

    fn handle(
        &mut self,
        step: MachineInput<'_>,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) -> Result<(), ReadError> {
        let decode = |entry: &ValkeyEntry| notification::decode(&entry.body);
        let input = input(step, Self::position, decode, |_| None)?;
        SortNode::handle(self, input, now_us, out);
        Ok(())
    }

    fn is_rebuilding(&self) -> bool {
        SortNode::is_rebuilding(self)
    }

    fn figures(&self, figures: &mut NodeFigures) {
        let own = SortNode::figures(self);
        figures.queries = own.queries;
    }
}
