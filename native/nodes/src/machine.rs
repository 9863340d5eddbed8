//! What the two kinds of node have in common, as the loop sees them.

use rillbase_live::filter_node::{self, FilterNode};
use rillbase_live::message::{Definition, Request, Row, Token};
use rillbase_live::node::Output;
use rillbase_live::snapshot::Snapshot;
use rillbase_live::sort_node::{self, SortNode};
use rillbase_live::wire::{Malformed, notification, write_entry};

use crate::layer::{Beginning, Entry, Place};
use crate::report::Figures;
use crate::rows::Wanted;

/// What a node is given.
#[derive(Debug)]
pub enum Step<'a> {
    /// A rebuild is about to begin.
    Start,
    /// The rebuild begins: where reading will go on, the queries, the snapshot of the rows.
    Begin(Beginning, Vec<Definition>, Snapshot),
    /// A document that the snapshot sees.
    Row([u8; 16], Row),
    /// All rows have been given.
    End,
    /// The next request.
    Request(Request),
    /// The next entry of the node's own stream.
    Entry(&'a Entry),
    /// The same, where the node broke on it before.
    Quarantined(&'a Entry),
    /// A row was left out, on which the node broke before.
    RowLeftOut(Beginning, [u8; 16]),
    /// Everything that was there has been given.
    Idle,
}

/// A node's state machine in one life.
pub trait Machine: Sized {
    /// A new one, which knows nothing.
    fn new(place: &Place, write_partition: u16, token: Token) -> Self;
    /// The stream that it reads besides the requests.
    fn stream(place: &Place, write_partition: u16) -> String;
    /// Where that stream's reading begins.
    fn position(beginning: &Beginning) -> rillbase_live::message::StreamId;
    /// The write partition that it reads, if it reads one.
    fn reads_writes(write_partition: u16) -> Option<u16>;
    /// Which documents it needs for a rebuild.
    fn wanted(place: &Place, write_partition: u16, queries: &[Definition]) -> Wanted;
    /// Hands it a step.
    fn handle(
        &mut self,
        step: Step<'_>,
        now_us: u64,
        out: &mut Vec<Output>,
    ) -> Result<(), Malformed>;
    /// What is to be seen of it.
    fn figures(&self, figures: &mut Figures);
}

fn collections(queries: impl Iterator<Item = [u8; 16]>) -> Vec<[u8; 16]> {
    let mut found: Vec<_> = queries.collect();
    found.sort_unstable();
    found.dedup();
    found
}

impl Machine for FilterNode {
    fn new(place: &Place, write_partition: u16, token: Token) -> Self {
        let config = filter_node::Config::new(write_partition, place.write_partitions, token);
        Self::new(config)
    }

    fn stream(place: &Place, write_partition: u16) -> String {
        place.stream(&write_partition.to_string())
    }

    fn position(beginning: &Beginning) -> rillbase_live::message::StreamId {
        beginning.writes
    }

    fn reads_writes(write_partition: u16) -> Option<u16> {
        Some(write_partition)
    }

    fn wanted(place: &Place, write_partition: u16, queries: &[Definition]) -> Wanted {
        Wanted {
            collections: collections(queries.iter().map(|query| query.collection)),
            partition: write_partition,
            partitions: place.write_partitions,
        }
    }

    fn handle(
        &mut self,
        step: Step<'_>,
        now_us: u64,
        out: &mut Vec<Output>,
    ) -> Result<(), Malformed> {
        use filter_node::Input;
        let input = match step {
            Step::Start => Input::Start,
            Step::Begin(beginning, queries, snapshot) => Input::Begin(filter_node::Begin {
                position: beginning.writes,
                count: beginning.write_count,
                queries,
                snapshot,
            }),
            Step::Row(collection, row) => Input::Rows {
                collection,
                rows: vec![row],
            },
            Step::End => Input::End,
            Step::Request(request) => Input::Request(request),
            Step::Entry(entry) => Input::Write {
                id: entry.id,
                entry: write_entry::decode(&entry.body, entry.parts.as_deref())?,
            },
            Step::Quarantined(entry) => Input::Quarantined {
                id: entry.id,
                collection: collection_of(entry),
            },
            Step::RowLeftOut(beginning, collection) => Input::Quarantined {
                id: beginning.writes,
                collection: Some(collection),
            },
            Step::Idle => Input::Idle,
        };
        FilterNode::handle(self, input, now_us, out);
        Ok(())
    }

    fn figures(&self, figures: &mut Figures) {
        let found = FilterNode::figures(self);
        figures.queries = found.queries;
        figures.documents = found.documents;
        figures.retained_bytes = found.retained_bytes;
        figures.matched_documents = found.matching.documents;
        figures.candidates = found.matching.candidates;
        figures.verified = found.matching.verified;
        figures.residual_evaluations = found.matching.residual_evaluations;
        figures.index_bytes = found.matching.memory_bytes;
    }
}

/// Whose document an entry is of, if it can be read.
fn collection_of(entry: &Entry) -> Option<[u8; 16]> {
    use rillbase_live::message::WriteEntry;
    match write_entry::decode(&entry.body, entry.parts.as_deref()) {
        Ok(WriteEntry::Image(image)) => Some(image.collection),
        Ok(WriteEntry::Tick(_)) | Err(_) => None,
    }
}

impl Machine for SortNode {
    fn new(place: &Place, _: u16, token: Token) -> Self {
        Self::new(sort_node::Config::new(place.write_partitions, token))
    }

    fn stream(place: &Place, _: u16) -> String {
        place.stream(&format!("log:{}", place.query_partition))
    }

    fn position(beginning: &Beginning) -> rillbase_live::message::StreamId {
        beginning.log
    }

    fn reads_writes(_: u16) -> Option<u16> {
        None
    }

    fn wanted(_: &Place, _: u16, queries: &[Definition]) -> Wanted {
        let sorted = queries.iter().filter(|query| query.sorted);
        Wanted {
            collections: collections(sorted.map(|query| query.collection)),
            partition: 0,
            partitions: 1,
        }
    }

    fn handle(
        &mut self,
        step: Step<'_>,
        now_us: u64,
        out: &mut Vec<Output>,
    ) -> Result<(), Malformed> {
        use sort_node::Input;
        let input = match step {
            Step::Start => Input::Start,
            Step::Begin(beginning, queries, snapshot) => Input::Begin(sort_node::Begin {
                position: beginning.log,
                queries,
                snapshot,
            }),
            Step::Row(collection, row) => Input::Rows {
                collection,
                rows: vec![row],
            },
            Step::End => Input::End,
            Step::Request(request) => Input::Request(request),
            Step::Entry(entry) => Input::Log {
                id: entry.id,
                notification: notification::decode(&entry.body)?,
            },
            // What it said is in the documents that a rebuild reads.
            Step::Quarantined(_) => {
                out.push(Output::Rebuild(rillbase_live::node::Why::Unreadable));
                return Ok(());
            }
            Step::RowLeftOut(..) => return Ok(()),
            Step::Idle => Input::Idle,
        };
        SortNode::handle(self, input, now_us, out);
        Ok(())
    }

    fn figures(&self, figures: &mut Figures) {
        let found = SortNode::figures(self);
        figures.queries = found.queries;
    }
}
