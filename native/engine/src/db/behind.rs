//! Writing, and seeing the database exactly as it is behind that write.
//!
//! Of many writers who each write and then look for one another, two that must meet do so in the
//! later of the two only if it sees all that was written before it, and nothing that came after.
//! The moment to see is therefore held under the commit lock, when the sequence is given and
//! nothing behind it can be visible: whatever is removed later stays to be seen.

use super::{Db, DbSnapshot};
use crate::batch::WriteBatch;
use crate::error::{Error, Result};
use crate::wal::Durability;

impl Db {
    /// Writes a batch; returns the database as it is right behind it, once it is visible and as
    /// durable as asked. What had not expired when `since` was taken is seen.
    pub fn write_and_look(
        &self,
        batch: WriteBatch,
        durability: Durability,
        since: &DbSnapshot,
    ) -> Result<DbSnapshot> {
        let nothing = || Error::InvalidArgument {
            what: "there is nothing behind a batch without writes".into(),
        };
        if batch.is_empty() {
            return Err(nothing());
        }
        let writes = batch.len() as u64;
        let mut behind = None;
        self.core.write(batch, durability, |commit| {
            let last = commit.next_sequence + writes - 1;
            behind = Some(DbSnapshot::ahead(&self.core, last, since));
            Ok(())
        })?;
        behind.ok_or_else(nothing)
    }
}
