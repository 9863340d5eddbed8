//! The commit queue: groups of writes of a collection, one after another. Writes that have
//! collections or the key of a claim in common belong to one group.
//!
//! A group reads the rows that its writes may affect, decides all of them in memory, and becomes
//! one batch. It occupies the queues of its collections and claims until the batch is visible. So nothing
//! changes between reading and writing, no write is retried, and a key of a unique index that had
//! no owner when the group was decided has none when it is written.

use std::collections::{BTreeSet, HashMap};

use parking_lot::MutexGuard;
use rillbase_documents::outcome::WriteResult;
use rillbase_documents::plan::WriteRequest;
use rillbase_engine::{GroupResults, GroupTicket, GroupWrite, WriteBatch, WriteGroup};

use crate::claim::{ClaimedResult, CollectionClaim};
use crate::error::{Error, Result};
use crate::feed::WrittenGroups;
use crate::store::Collections;

/// A write with as many index entries, or as many bytes, takes long.
const LONG_ENTRIES: usize = 1_000;
const LONG_BYTES: usize = 256 << 10;

/// A collection of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenCollection {
    /// The collection's number.
    pub number: u64,
    /// The version of the definition with which the request was made.
    pub write_version: u64,
}

impl WrittenCollection {
    /// The number of collections that do not exist.
    pub const MISSING: u64 = u64::MAX;
}

/// A write.
#[derive(Debug, Clone)]
pub struct CollectionWrite {
    /// The collections. The targets of the request refer to them by position.
    pub collections: Vec<WrittenCollection>,
    /// The operations.
    pub request: WriteRequest,
    /// What is recorded with them.
    pub claim: Option<CollectionClaim>,
}

impl CollectionWrite {
    /// The numbers of its commit queues.
    fn queue_numbers(&self) -> impl Iterator<Item = u64> {
        let collections = self.collections.iter().map(|collection| collection.number);
        collections.chain(self.claim.as_ref().map(CollectionClaim::queue_number))
    }
}

/// The result of a write.
#[derive(Debug, Clone)]
pub enum WrittenResult {
    /// Of a write without a claim.
    Decided(WriteResult),
    /// Of a write with a claim.
    Claimed(ClaimedResult),
}

/// The outcome of a write: refusals of its operations are part of the result.
pub type WriteOutcome = Result<WrittenResult>;

/// A write with its position among all that are staged together.
type PlacedWrite = (usize, CollectionWrite);

/// Writes that became one batch.
#[derive(Debug)]
struct CollectionGroup {
    /// The positions of its writes.
    positions: Vec<usize>,
    batch: Option<WriteBatch>,
    ticket: Option<GroupTicket>,
    outcomes: Vec<WriteOutcome>,
}

/// Writes that were decided and occupy their commit queues.
#[derive(Debug)]
pub struct StagedCollectionWrites<'a> {
    groups: Vec<CollectionGroup>,
    count: usize,
    written: &'a WrittenGroups,
    _queues: Vec<MutexGuard<'a, ()>>,
}

impl GroupWrite for StagedCollectionWrites<'_> {
    type Outcome = Vec<WriteOutcome>;

    fn contribute<'g>(&'g mut self, group: &mut WriteGroup<'g>) {
        for own in &mut self.groups {
            own.ticket = own.batch.take().map(|batch| group.write(batch));
        }
    }

    /// The outcomes in the order of the writes.
    fn complete(self, results: &mut GroupResults) -> Vec<WriteOutcome> {
        let mut outcomes: Vec<WriteOutcome> = Vec::new();
        outcomes.resize_with(self.count, || Err(Error::NoCollection));
        let mut has_written = false;
        for own in self.groups {
            let written = own.ticket.map(|ticket| results.take(ticket));
            has_written |= matches!(written, Some(Ok(_)));
            let failure = written.and_then(std::result::Result::err);
            for (position, outcome) in own.positions.into_iter().zip(own.outcomes) {
                let slot = outcomes.get_mut(position);
                if let Some(slot) = slot {
                    *slot = match &failure {
                        // Nothing of the batch was written.
                        Some(error) if outcome.is_ok() => Err(error.clone().into()),
                        _ => outcome,
                    };
                }
            }
        }
        if has_written {
            self.written.add();
        }
        outcomes
    }
}

impl Collections {
    /// Decides writes. They are written by the group of the engine that they contribute to, and
    /// other writes of their collections wait until then.
    pub fn stage(&self, writes: Vec<CollectionWrite>) -> StagedCollectionWrites<'_> {
        let count = writes.len();
        let queues = self.lock_queues(writes.iter().flat_map(CollectionWrite::queue_numbers));
        let groups = by_shared_queues(writes).into_iter();
        StagedCollectionWrites {
            groups: groups.map(|writes| self.group(writes)).collect(),
            count,
            written: &self.written,
            _queues: queues,
        }
    }

    /// Whether a write takes so long that other writes, and reads, should not wait for it.
    pub fn is_long(&self, write: &CollectionWrite) -> bool {
        let operations = &write.request.operations;
        let indexes = write.collections.iter().map(|collection| {
            let installed = self.installed(collection.number);
            installed.map_or(0, |installed| installed.definition.indexes.len())
        });
        let entries_of_one = 1 + indexes.max().unwrap_or(0);
        let entries = operations.as_slice().len().saturating_mul(entries_of_one);
        entries >= LONG_ENTRIES || operations.size() >= LONG_BYTES
    }

    fn group(&self, writes: Vec<PlacedWrite>) -> CollectionGroup {
        let (positions, writes): (Vec<usize>, Vec<CollectionWrite>) = writes.into_iter().unzip();
        let count = writes.len();
        let (batch, outcomes) = self
            .decide(writes)
            .unwrap_or_else(|error| (None, vec![Err(error); count]));
        CollectionGroup {
            positions,
            batch,
            ticket: None,
            outcomes,
        }
    }
}

/// Groups of writes such that no two groups write to the same collection, or with the same key of a
/// claim. The writes of a collection keep their order.
fn by_shared_queues(writes: Vec<CollectionWrite>) -> Vec<Vec<PlacedWrite>> {
    let mut groups: Vec<Vec<PlacedWrite>> = Vec::new();
    let mut group_of: HashMap<u64, usize> = HashMap::new();
    for (position, write) in writes.into_iter().enumerate() {
        let earlier: BTreeSet<usize> = write
            .queue_numbers()
            .filter_map(|number| group_of.get(&number).copied())
            .collect();
        let mut earlier = earlier.into_iter();
        let first = earlier.next().unwrap_or_else(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        for other in earlier {
            let moved = groups.get_mut(other).map(std::mem::take);
            if let (Some(group), Some(moved)) = (groups.get_mut(first), moved) {
                group.extend(moved);
            }
            for group in group_of.values_mut().filter(|group| **group == other) {
                *group = first;
            }
        }
        group_of.extend(write.queue_numbers().map(|number| (number, first)));
        if let Some(group) = groups.get_mut(first) {
            group.push((position, write));
        }
    }
    groups.retain(|group| !group.is_empty());
    groups
}
