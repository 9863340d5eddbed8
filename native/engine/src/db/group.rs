//! Writes of several kinds that become durable with one sync.
//!
//! Each kind adds batches to a [`WriteGroup`], keeps its locks for them, and receives the result of
//! each. A batch that fails does not fail the others.
//!
//! A writer can request a snapshot directly after its batch. Suppose that many writers each write
//! an entry and then search for matching entries of others. Of two that match, exactly the later
//! one must find the other, so its snapshot has to include everything written before its batch and
//! nothing written after it. Therefore the snapshot is taken under the commit lock, when the batch
//! gets its sequence and nothing later is visible yet.

use super::{CommitState, Db, DbSnapshot, DbTransaction};
use crate::db::batch::WriteBatch;
use crate::error::{Error, Result};
use crate::key::Sequence;
use crate::wal::Durability;

/// The writes of one kind in a group.
pub trait GroupWrite {
    /// Their result.
    type Outcome
    where
        Self: Sized;

    /// Adds its batches.
    fn contribute<'a>(&'a mut self, group: &mut WriteGroup<'a>);

    /// Takes the results of its batches, which are visible and as durable as requested, or failed.
    fn complete(self, results: &mut GroupResults) -> Self::Outcome
    where
        Self: Sized;
}

/// An absent write contributes nothing.
impl<G: GroupWrite> GroupWrite for Option<G> {
    type Outcome = Option<G::Outcome>;

    fn contribute<'a>(&'a mut self, group: &mut WriteGroup<'a>) {
        if let Some(writes) = self {
            writes.contribute(group);
        }
    }

    fn complete(self, results: &mut GroupResults) -> Self::Outcome {
        self.map(|writes| writes.complete(results))
    }
}

/// Writes that could not be prepared contribute nothing.
impl<G: GroupWrite, E> GroupWrite for std::result::Result<G, E> {
    type Outcome = std::result::Result<G::Outcome, E>;

    fn contribute<'a>(&'a mut self, group: &mut WriteGroup<'a>) {
        if let Ok(writes) = self {
            writes.contribute(group);
        }
    }

    fn complete(self, results: &mut GroupResults) -> Self::Outcome {
        self.map(|writes| writes.complete(results))
    }
}

/// Batches that become durable together, in the order in which they were added.
#[derive(Debug, Default)]
pub struct WriteGroup<'a>(Vec<Member<'a>>);

/// The position of a batch in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupTicket(usize);

#[derive(Debug)]
struct Member<'a> {
    batch: Result<WriteBatch>,
    kind: MemberKind<'a>,
}

/// What happens when a batch gets its sequences.
#[derive(Debug, Clone, Copy)]
enum MemberKind<'a> {
    Plain,
    /// A snapshot directly after the batch is taken. It judges expiry at the time of this earlier
    /// snapshot.
    Snapshot(&'a DbSnapshot),
    /// Its keys must not have been written since the transaction started.
    Commit(&'a DbTransaction),
}

impl<'a> WriteGroup<'a> {
    /// Adds a batch.
    pub fn write(&mut self, batch: WriteBatch) -> GroupTicket {
        self.add(Ok(batch), MemberKind::Plain)
    }

    /// Adds a batch, and takes a snapshot directly after it, which judges expiry at the time of
    /// `since`.
    pub fn write_with_snapshot(&mut self, batch: WriteBatch, since: &'a DbSnapshot) -> GroupTicket {
        self.add(Ok(batch), MemberKind::Snapshot(since))
    }

    /// Adds the changes of a transaction, which fail on a conflict.
    pub fn commit(&mut self, transaction: &'a DbTransaction) -> GroupTicket {
        self.add(transaction.prepare(), MemberKind::Commit(transaction))
    }

    fn add(&mut self, batch: Result<WriteBatch>, kind: MemberKind<'a>) -> GroupTicket {
        self.0.push(Member { batch, kind });
        GroupTicket(self.0.len() - 1)
    }
}

/// The results of the batches of a group.
#[derive(Debug)]
pub struct GroupResults(Vec<Option<MemberResult>>);

/// A batch's last sequence, and the snapshot after it if requested.
type MemberResult = Result<(Sequence, Option<DbSnapshot>)>;

impl GroupResults {
    /// The last sequence of a batch.
    pub fn take(&mut self, ticket: GroupTicket) -> Result<Sequence> {
        self.take_member(ticket).map(|(sequence, _)| sequence)
    }

    /// The snapshot directly after a batch.
    pub fn take_snapshot(&mut self, ticket: GroupTicket) -> Result<DbSnapshot> {
        let (_, snapshot) = self.take_member(ticket)?;
        snapshot.ok_or_else(empty_batch)
    }

    fn take_member(&mut self, ticket: GroupTicket) -> MemberResult {
        let result = self.0.get_mut(ticket.0).and_then(Option::take);
        result.unwrap_or_else(|| {
            let what = "the batch is not of this group, or its result was taken".into();
            Err(Error::InvalidArgument { what })
        })
    }
}

fn empty_batch() -> Error {
    Error::InvalidArgument {
        what: "an empty batch has no snapshot".into(),
    }
}

impl Db {
    /// Writes all batches of several kinds with one sync. Each sees those before it as written.
    pub fn write_group(
        &self,
        kinds: &mut [&mut dyn GroupWrite],
        durability: Durability,
    ) -> GroupResults {
        let mut group = WriteGroup::default();
        for writes in kinds {
            writes.contribute(&mut group);
        }
        let mut results = Vec::with_capacity(group.0.len());
        let mut writes = Vec::with_capacity(group.0.len());
        for Member { batch, kind } in group.0 {
            results.push(match batch {
                Ok(batch) if batch.is_empty() => Some(self.write_nothing(&batch, kind)),
                Ok(batch) => {
                    writes.push((batch, kind));
                    None
                }
                Err(error) => Some(Err(error)),
            });
        }
        let mut written = self.write_members(writes, durability).into_iter();
        for result in &mut results {
            if result.is_none() {
                *result = written.next();
            }
        }
        GroupResults(results)
    }

    fn write_members(
        &self,
        writes: Vec<(WriteBatch, MemberKind<'_>)>,
        durability: Durability,
    ) -> Vec<MemberResult> {
        let mut snapshots: Vec<Option<DbSnapshot>> = writes.iter().map(|_| None).collect();
        let checked = writes.into_iter().zip(&mut snapshots);
        let checked = checked.map(|((batch, kind), snapshot)| {
            let count = batch.len() as u64;
            let check = move |commit: &CommitState| {
                match kind {
                    MemberKind::Plain => {}
                    MemberKind::Snapshot(since) => {
                        let last = commit.next_sequence + count - 1;
                        *snapshot = Some(DbSnapshot::in_advance(&self.core, last, since));
                    }
                    MemberKind::Commit(transaction) => transaction.check(commit)?,
                }
                Ok(())
            };
            (batch, check)
        });
        let written = self.core.write_each(checked.collect(), durability);
        let results = written.into_iter().zip(snapshots);
        results
            .map(|(result, snapshot)| result.map(|sequence| (sequence, snapshot)))
            .collect()
    }

    /// The result of an empty batch.
    fn write_nothing(&self, batch: &WriteBatch, kind: MemberKind<'_>) -> MemberResult {
        batch.check()?;
        match kind {
            MemberKind::Plain => Ok((self.core.publisher.visible(), None)),
            MemberKind::Snapshot(_) => Err(empty_batch()),
            MemberKind::Commit(transaction) => Ok((transaction.commit_nothing()?, None)),
        }
    }
}
