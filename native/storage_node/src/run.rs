//! Runs: the times between an opening of the node and the end of its process.
//!
//! Changes that were visible may be lost if a run does not end cleanly, and their sequences are
//! then given to other changes. So a reader of changes remembers the run with its position. A run
//! that ends cleanly records its last sequence, and its readers continue in the next run; a run
//! without a record may have lost changes, and its readers start again from a snapshot.
//!
//! ```text
//! key 'closed'    value := run ' ' sequence
//! ```

use std::hash::{BuildHasher as _, RandomState};

use rillbase_engine::{Db, Durability, Keyspace, KeyspaceOptions, Sequence, WriteBatch};

use crate::log;
use crate::refusal::{CommandRefusal, Result};

const CLOSED: &[u8] = b"closed";

/// A run that ended cleanly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClosedRun {
    pub(crate) id: String,
    /// The sequence up to which its writes were visible.
    pub(crate) sequence: Sequence,
}

/// The run of a node.
#[derive(Debug)]
pub(crate) struct NodeRun {
    keyspace: Keyspace,
    /// 16 random bytes in hex.
    pub(crate) id: String,
    /// The run before, if it ended cleanly.
    pub(crate) previous: Option<ClosedRun>,
}

impl NodeRun {
    /// Begins a run, and removes the record of the one before: it would be wrong if this run did
    /// not end cleanly.
    pub(crate) fn begin(db: &Db) -> Result<Self> {
        let keyspace = db.create_keyspace("runs", KeyspaceOptions::default())?;
        let previous = match db.get(&keyspace, CLOSED)? {
            Some(value) => Some(read(&value).ok_or_else(malformed)?),
            None => None,
        };
        if previous.is_some() {
            let mut batch = WriteBatch::new();
            batch.delete(&keyspace, CLOSED);
            match db.write(batch, Durability::Sync) {
                // A node starts on a full disk. If the record remains, it is still true of the run
                // that it names: readers of this run do not use it.
                Err(error) if error.is_full() => {
                    log::warning("the record of the previous run remains: the disk is full");
                }
                written => drop(written?),
            }
        }
        Ok(Self {
            keyspace,
            id: random_id(),
            previous,
        })
    }

    /// Records the end of the run; nothing is written after this.
    pub(crate) fn end(self, db: &Db) {
        let value = format!("{} {}", self.id, db.snapshot().sequence());
        let mut batch = WriteBatch::new();
        batch.put(&self.keyspace, CLOSED, value.as_bytes());
        if let Err(error) = db.write(batch, Durability::Sync) {
            log::warning(&format!("the end of the run cannot be recorded: {error}"));
        }
    }
}

fn read(value: &[u8]) -> Option<ClosedRun> {
    let (id, sequence) = std::str::from_utf8(value).ok()?.split_once(' ')?;
    Some(ClosedRun {
        id: id.to_owned(),
        sequence: sequence.parse().ok()?,
    })
}

/// The keys of hashers come from the system's source of randomness.
fn random_id() -> String {
    let [high, low] = [RandomState::new(), RandomState::new()].map(|state| state.hash_one(()));
    format!("{high:016x}{low:016x}")
}

fn malformed() -> CommandRefusal {
    CommandRefusal::new(
        "CORRUPTION",
        "the record of the previous run is malformed although its checksum matches",
    )
}
