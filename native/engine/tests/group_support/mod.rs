//! Builds groups of writes.

use rillbase_engine::{
    Db, DbSnapshot, DbTransaction, Durability, GroupResults, GroupTicket, GroupWrite, Result,
    Sequence, WriteBatch, WriteGroup,
};

/// One write of a group.
pub(crate) enum Write<'a> {
    Batch(Option<WriteBatch>),
    WithSnapshot(Option<WriteBatch>, &'a DbSnapshot),
    Commit(&'a DbTransaction),
}

/// The writes of a group, each with an outcome.
pub(crate) struct Writes<'a> {
    pub(crate) writes: Vec<Write<'a>>,
    tickets: Vec<GroupTicket>,
}

impl<'a> Writes<'a> {
    pub(crate) fn new(writes: impl IntoIterator<Item = Write<'a>>) -> Self {
        Self {
            writes: writes.into_iter().collect(),
            tickets: Vec::new(),
        }
    }

    /// Commits all writes with one sync.
    pub(crate) fn run(mut self, db: &Db, durability: Durability) -> Vec<Result<Sequence>> {
        let mut results = db.write_group(&mut [&mut self], durability);
        self.complete(&mut results)
    }
}

impl GroupWrite for Writes<'_> {
    type Outcome = Vec<Result<Sequence>>;

    fn contribute<'g>(&'g mut self, group: &mut WriteGroup<'g>) {
        for write in &mut self.writes {
            self.tickets.push(match write {
                Write::Batch(batch) => group.write(batch.take().unwrap()),
                Write::WithSnapshot(batch, since) => {
                    group.write_with_snapshot(batch.take().unwrap(), since)
                }
                Write::Commit(transaction) => group.commit(transaction),
            });
        }
    }

    fn complete(self, results: &mut GroupResults) -> Vec<Result<Sequence>> {
        let tickets = self.tickets.into_iter();
        tickets.map(|ticket| results.take(ticket)).collect()
    }
}

/// Writes a batch, and returns a snapshot directly after it.
pub(crate) fn write_with_snapshot(
    db: &Db,
    batch: WriteBatch,
    since: &DbSnapshot,
) -> Result<DbSnapshot> {
    let mut writes = Writes::new([Write::WithSnapshot(Some(batch), since)]);
    let mut results = db.write_group(&mut [&mut writes], Durability::Buffered);
    results.take_snapshot(writes.tickets.pop().unwrap())
}
