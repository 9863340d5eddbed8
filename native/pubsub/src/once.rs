//! Publications that are applied once even if sent twice, by a client that did not receive the
//! reply.
//!
//! The name of such a publication is remembered for a day, by an entry that is written together
//! with it. The entry's sequence follows those of the publication, and the entry says by how many:
//! so it identifies the publication, and nothing that is written depends on a read. The entry also
//! has a digest of place and data, by which a different publication with the name is recognized.
//! Two concurrent operations with one name take turns: the second waits until the first can be
//! read.

use std::collections::{HashMap, HashSet};

use parking_lot::{Condvar, Mutex};
use rillbase_binary_format::{ByteReader, ByteWriter as _};
use rillbase_engine::{Db, Keyspace, Millis, Sequence, WriteBatch};
use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};
use crate::keys;
use crate::place::TopicPlace;
use crate::record::PublicationRecord;
use crate::store::{REMEMBERED, TopicOperation, TopicSpec};

/// A name within a topic.
type PublicationName = (u64, Vec<u8>);
/// A digest of a publication's place and data.
type ContentDigest = [u8; 16];

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

/// What a repetition of a publication has in common with it.
fn digest(place: &TopicPlace, publication: &PublicationRecord) -> ContentDigest {
    let mut content = Vec::new();
    place.extent().encode(None, &mut content);
    content.put_slice(&publication.data);
    let whole = Sha256::digest(&content);
    whole.first_chunk().copied().unwrap_or_default()
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
pub(crate) struct FirstPublication {
    place: FirstPlace,
    /// Of its place and data; `None` if it was published by an earlier version.
    digest: Option<ContentDigest>,
}

impl FirstPublication {
    /// Whether an operation with its name has another place or other data.
    pub(crate) fn differs_from(&self, operation: &TopicOperation) -> bool {
        let TopicOperation::Publish {
            place, publication, ..
        } = operation
        else {
            return false;
        };
        self.digest
            .is_some_and(|first| first != digest(place, publication))
    }
}

/// Where the first publication with a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstPlace {
    /// It was published.
    Published(Sequence),
    /// It is in the same batch, at this position.
    Ahead(u64),
}

impl BatchMark {
    /// The operation's sequence, in a batch that starts at `first`.
    pub(crate) fn sequence(self, first: Sequence) -> Sequence {
        match self {
            Self::Writes(place) => first + place,
            Self::Repeats(repeated) => match repeated.place {
                FirstPlace::Ahead(place) => first + place,
                FirstPlace::Published(sequence) => sequence,
            },
        }
    }
}

/// Finds which earlier ones the operations of a batch repeat.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    ahead: HashMap<PublicationName, FirstPublication>,
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
        if let Some(first) = self.ahead.get(&named) {
            return Ok(Some(*first));
        }
        let first = published(db, keyspace, &keys::once(topic, &named.1))?;
        if let (
            None,
            TopicOperation::Publish {
                place: at,
                publication,
                ..
            },
        ) = (first, operation)
        {
            let ahead = FirstPublication {
                place: FirstPlace::Ahead(place),
                digest: Some(digest(at, publication)),
            };
            self.ahead.insert(named, ahead);
        }
        Ok(first)
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
    value.put(&digest(place, publication));
    let expiry = now.saturating_add(REMEMBERED);
    batch.put_sequenced(
        keyspace,
        &keys::once(topic, &publication.id),
        &value,
        Some(expiry),
    );
}

/// The publication that is remembered.
fn published(db: &Db, keyspace: &Keyspace, prefix: &[u8]) -> Result<Option<FirstPublication>> {
    let mut scan = db.scan_prefix(keyspace, prefix, None)?;
    scan.first()?;
    if !scan.is_valid() {
        return Ok(None);
    }
    let what = "what is remembered of a publication is malformed although its checksum matches";
    let malformed = Error::Malformed { what };
    let name = scan.key().last_chunk::<8>().ok_or(malformed.clone())?;
    let mut reader = ByteReader::new(scan.value());
    let entries = reader.varint().map_err(|_| malformed.clone())?;
    let sequence = (!u64::from_be_bytes(*name)).checked_sub(entries);
    Ok(Some(FirstPublication {
        place: FirstPlace::Published(sequence.ok_or(malformed)?),
        digest: reader.array().ok(),
    }))
}
