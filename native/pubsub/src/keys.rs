//! The keys of records.
//!
//! ```text
//! key    := list | user | once
//! list   := 1 topic id 0 kind{u8} !time{u64} !sequence{u64}
//! kind   := 1    subscriptions, by the time at which they end
//!         | 2    publications, by the time at which they happened
//! user   := 2 topic name{slice} kind{u8} !time{u64} !sequence{u64}
//! once   := 3 topic name{slice} !sequence{u64}
//! topic  := an id's component
//! ```
//!
//! Numbers are inverted and big-endian: newest first. Both lists of an id are adjacent, so that one
//! block, and one scan, often has both. Each is ordered by the time that lookups restrict, so that
//! they start at the right entry and stop at the first that is too old.

use rillbase_binary_format::ByteWriter as _;
use rillbase_engine::{Keyspace, Millis, Sequence, WriteBatch, prefix_end};

use crate::id::{DeweyId, put_component};

/// Subscriptions of an id.
pub(crate) const SUBSCRIPTIONS: u8 = 1;
/// Publications of an id.
pub(crate) const PUBLICATIONS: u8 = 2;
/// After both.
pub(crate) const AFTER_LISTS: u8 = 3;
/// Subscriptions of a user with a history.
pub(crate) const STARTED: u8 = 1;
/// Those that were ended.
pub(crate) const ENDED: u8 = 2;

const LISTS: u8 = 1;
const USERS: u8 = 2;
const NAMES: u8 = 3;
/// The maximum size of a kind and a topic's number.
const MAX_TOPIC_BYTES: usize = 10;
/// The size of time and sequence, after the prefix of a list's keys.
pub(crate) const PLACE_BYTES: usize = 16;
/// Kind, time and sequence.
const TAIL_BYTES: usize = PLACE_BYTES + 1;

/// The prefix of all keys of a topic's lists.
pub(crate) fn topic(number: u64) -> Vec<u8> {
    of_topic(LISTS, number)
}

fn of_topic(kind: u8, number: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(MAX_TOPIC_BYTES);
    key.push(kind);
    put_component(&mut key, number);
    key
}

/// The prefix of all keys of a list: everything except a time and a sequence.
pub(crate) fn list(topic: &[u8], id: &[u8], kind: u8) -> Vec<u8> {
    [topic, id, &[0, kind]].concat()
}

/// The key of a list at a time: the first entry at or after it is the newest that is not newer.
pub(crate) fn at(topic: &[u8], id: &[u8], kind: u8, time: Millis) -> Vec<u8> {
    let mut key = Vec::with_capacity(topic.len() + id.len() + TAIL_BYTES + 1);
    key.extend_from_slice(topic);
    key.extend_from_slice(id);
    key.extend_from_slice(&[0, kind]);
    key.extend_from_slice(&(!time).to_be_bytes());
    key
}

/// The key of an entry.
pub(crate) fn entry(topic: &[u8], id: &DeweyId, kind: u8, time: Millis, at: Sequence) -> Vec<u8> {
    let mut key = self::at(topic, id.as_bytes(), kind, time);
    key.extend_from_slice(&(!at).to_be_bytes());
    key
}

/// The key of a user's history at a time.
pub(crate) fn user(number: u64, user: &[u8], kind: u8, time: Millis) -> Vec<u8> {
    let mut key = of_topic(USERS, number);
    key.put_slice(user);
    key.push(kind);
    key.extend_from_slice(&(!time).to_be_bytes());
    key
}

/// The key under which a name published once is remembered.
pub(crate) fn once(number: u64, name: &[u8]) -> Vec<u8> {
    let mut key = of_topic(NAMES, number);
    key.put_slice(name);
    key
}

/// Deletes everything that a keyspace has of a topic.
pub(crate) fn forget(batch: &mut WriteBatch, keyspace: &Keyspace, number: u64) {
    for kind in [LISTS, USERS, NAMES] {
        let start = of_topic(kind, number);
        if let Some(end) = prefix_end(&start) {
            batch.delete_range(keyspace, &start, &end);
        }
    }
}

/// The end of a key: kind, time, sequence; and what precedes them.
pub(crate) fn tail(key: &[u8]) -> Option<(&[u8], u8, Millis, Sequence)> {
    let (head, tail) = key.split_last_chunk::<TAIL_BYTES>()?;
    let (kind, numbers) = tail.split_first()?;
    let (time, sequence) = numbers.split_first_chunk::<8>()?;
    let sequence = sequence.first_chunk::<8>()?;
    let (time, sequence) = (u64::from_be_bytes(*time), u64::from_be_bytes(*sequence));
    Some((head, *kind, !time, !sequence))
}

/// The keyspaces of a store.
#[derive(Debug, Clone)]
pub(crate) struct TopicKeyspaces {
    pub(crate) subscriptions: Keyspace,
    pub(crate) publications: Keyspace,
}

impl TopicKeyspaces {
    /// The keyspace of a kind of list.
    pub(crate) fn of(&self, kind: u8) -> &Keyspace {
        if kind == PUBLICATIONS {
            &self.publications
        } else {
            &self.subscriptions
        }
    }
}
