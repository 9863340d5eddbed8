//! Writes that are grouped by hand.
#![allow(dead_code, reason = "each test uses what it needs")]

use rillbase_engine::{
    Db, DbSnapshot, DbTransaction, Durability, GroupResults, GroupTicket, GroupWrite, Result,
    Sequence, WriteBatch, WriteGroup,
};

/// One write of a group.
pub(crate) enum Write<'a> {
    Batch(Option<WriteBatch>),
    Look(Option<WriteBatch>, &'a DbSnapshot),
    Commit(&'a DbTransaction),
}

/// Several writes, each with an outcome.
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

    /// Writes all by one sync.
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
                Write::Look(batch, since) => group.write_and_look(batch.take().unwrap(), since),
                Write::Commit(transaction) => group.commit(transaction),
            });
        }
    }

    fn complete(self, results: &mut GroupResults) -> Vec<Result<Sequence>> {
        let tickets = self.tickets.into_iter();
        tickets.map(|ticket| results.take(ticket)).collect()
    }
}

/// Writes a batch, and returns the moment right behind it.
pub(crate) fn write_and_look(db: &Db, batch: WriteBatch, since: &DbSnapshot) -> Result<DbSnapshot> {
    let mut writes = Writes::new([Write::Look(Some(batch), since)]);
    let mut results = db.write_group(&mut [&mut writes], Durability::Buffered);
    results.take_snapshot(writes.tickets.pop().unwrap())
}
