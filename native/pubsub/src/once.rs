//! Publications that are applied once even if sent twice, by a client that did not receive the
//! reply.
//!
//! The name of such a publication is remembered for a day, by an entry that is written together
//! with it. The entry's sequence follows those of the publication, and the entry says by how many:
//! so it identifies the publication, and nothing that is written depends on a read. Two concurrent
//! operations with one name take turns: the second waits until the first can be read.

use std::collections::{HashMap, HashSet};

use parking_lot::{Condvar, Mutex};
use rillbase_binary_format::{ByteReader, ByteWriter as _};
use rillbase_engine::{Db, Keyspace, Millis, Sequence, WriteBatch};

use crate::error::{Error, Result};
use crate::keys;
use crate::place::TopicPlace;
use crate::record::PublicationRecord;
use crate::store::{REMEMBERED, TopicOperation, TopicSpec};

/// A name within a topic.
type PublicationName = (u64, Vec<u8>);

/// Names that are being published.
#[derive(Debug, Default)]
pub(crate) struct Once {
    claimed: Mutex<HashSet<PublicationName>>,
    given_back: Condvar,
}

/// Names that belong to this operation until it is dropped.
#[derive(Debug)]
pub(crate) struct PublicationClaim<'a> {
    once: &'a Once,
    names: HashSet<PublicationName>,
}

impl Once {
    /// Waits until no other operation publishes any of the names: for all at once, which prevents
    /// deadlocks.
    pub(crate) fn claim(
        &self,
        operations: &[(&TopicSpec, &TopicOperation)],
    ) -> PublicationClaim<'_> {
        let names = operations
            .iter()
            .filter_map(|(topic, operation)| name(topic.number, operation));
        let names: HashSet<PublicationName> = names.collect();
        if !names.is_empty() {
            let mut claimed = self.claimed.lock();
            while names.iter().any(|name| claimed.contains(name)) {
                self.given_back.wait(&mut claimed);
            }
            claimed.extend(names.iter().cloned());
        }
        PublicationClaim { once: self, names }
    }
}

impl Drop for PublicationClaim<'_> {
    fn drop(&mut self) {
        if !self.names.is_empty() {
            let mut claimed = self.once.claimed.lock();
            claimed.retain(|name| !self.names.contains(name));
            drop(claimed);
            self.once.given_back.notify_all();
        }
    }
}

/// The name of an operation that is applied once.
fn name(topic: u64, operation: &TopicOperation) -> Option<PublicationName> {
    match operation {
        TopicOperation::Publish {
            publication,
            once: true,
            ..
        } => Some((topic, publication.id.clone())),
        _ => None,
    }
}

/// The outcome of an operation in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchMark {
    /// It writes from this position in the batch on.
    Writes(u64),
    /// Nothing is written: it repeats an earlier operation.
    Repeats(FirstPublication),
}

/// The first publication with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstPublication {
    /// It was published.
    Published(Sequence),
    /// It is in the same batch, at this position.
    Ahead(u64),
}

impl BatchMark {
    /// The operation's sequence, in a batch that starts at `first`.
    pub(crate) fn sequence(self, first: Sequence) -> Sequence {
        match self {
            Self::Writes(place) | Self::Repeats(FirstPublication::Ahead(place)) => first + place,
            Self::Repeats(FirstPublication::Published(sequence)) => sequence,
        }
    }
}

/// Finds which earlier ones the operations of a batch repeat.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    ahead: HashMap<PublicationName, u64>,
}

impl Repeats {
    /// What an operation repeats; if nothing, it will be at `place`.
    pub(crate) fn find(
        &mut self,
        (db, keyspace, topic): (&Db, &Keyspace, u64),
        operation: &TopicOperation,
        place: u64,
    ) -> Result<Option<FirstPublication>> {
        let Some(named) = name(topic, operation) else {
            return Ok(None);
        };
        if let Some(&place) = self.ahead.get(&named) {
            return Ok(Some(FirstPublication::Ahead(place)));
        }
        if let Some(sequence) = published(db, keyspace, &keys::once(topic, &named.1))? {
            return Ok(Some(FirstPublication::Published(sequence)));
        }
        self.ahead.insert(named, place);
        Ok(None)
    }
}

/// Remembers a publication; must follow its entries in the batch.
pub(crate) fn remember(
    batch: &mut WriteBatch,
    (keyspace, topic): (&Keyspace, u64),
    (place, publication): (&TopicPlace, &PublicationRecord),
    now: Millis,
) {
    let mut value = Vec::new();
    value.put_varint(place.ids().len() as u64);
    let expiry = now.saturating_add(REMEMBERED);
    batch.put_sequenced(
        keyspace,
        &keys::once(topic, &publication.id),
        &value,
        Some(expiry),
    );
}

/// The publication that is remembered.
fn published(db: &Db, keyspace: &Keyspace, prefix: &[u8]) -> Result<Option<Sequence>> {
    let mut scan = db.scan_prefix(keyspace, prefix, None)?;
    scan.first()?;
    if !scan.is_valid() {
        return Ok(None);
    }
    let what = "what is remembered of a publication is malformed although its checksum matches";
    let malformed = Error::Malformed { what };
    let name = scan.key().last_chunk::<8>().ok_or(malformed.clone())?;
    let entries = ByteReader::new(scan.value())
        .varint()
        .map_err(|_| malformed.clone())?;
    let sequence = (!u64::from_be_bytes(*name)).checked_sub(entries);
    sequence.ok_or(malformed).map(Some)
}
