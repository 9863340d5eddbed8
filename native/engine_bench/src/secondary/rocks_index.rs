//! Tweets in `RocksDB` with composite keys: each write reads the tweet that it replaces, and changes
//! tweet and entries in one batch per group.
//!
//! ```text
//! t id{u32}                          updated{u64} user{u32} created{i64} body
//! u user{u32} !updated{u64} id{u32}
//! c created{i64} !updated{u64} id{u32}
//! ```

use std::collections::BinaryHeap;
use std::path::Path;

use super::tweet_store::{TweetField, TweetQuery, TweetStore};
use super::tweets::Tweet;
use crate::rocks::{self, BatchChange, RangeStep, Rocks};
use crate::store::{BenchStore as _, Result, StoreSetup};

const TWEETS: u8 = b't';
const USERS: u8 = b'u';
const TIMES: u8 = b'c';
const HEAD_BYTES: usize = 20;

/// `RocksDB` with two secondary indexes.
pub(crate) struct RocksTweets(Rocks);

/// The place of an entry among all results: the complement of the time, then the id.
type EntryPlace = (u64, u32);

impl RocksTweets {
    /// `None` if its library is not installed.
    pub(crate) fn open(dir: &Path, setup: &StoreSetup) -> Result<Option<Self>> {
        Ok(rocks::open("rocksdb", dir, setup)?.map(Self))
    }

    /// Deletes the entries of the tweet that is replaced.
    fn remove_entries(&self, id: u32, changes: &mut Vec<BatchChange>) -> Result<()> {
        let mut head = None;
        self.0.get(&tweet_key(id), &mut |value| {
            head = value.first_chunk::<HEAD_BYTES>().copied();
        })?;
        let Some(head) = head else {
            return Ok(());
        };
        let (updated, rest) = head.split_at(8);
        let (user, created) = rest.split_at(4);
        let reversed: Vec<u8> = updated.iter().map(|byte| !byte).collect();
        for (space, value) in [(USERS, user), (TIMES, created)] {
            changes.push(BatchChange::Delete(entry_key(space, value, &reversed, id)));
        }
        Ok(())
    }

    /// The places of the entries in a range, at most `limit` of each value.
    fn places(&self, query: &TweetQuery) -> Result<Vec<EntryPlace>> {
        let (space, low, high) = bounds(query)?;
        let width = low.len();
        let limit = query.limit.unwrap_or(usize::MAX);
        let mut newest = BinaryHeap::new();
        let (mut value, mut count) = (Vec::new(), 0);
        self.0.steps(&[&[space], &*low].concat(), &mut |key, _| {
            let Some((own, place)) = split_entry(key, space, width) else {
                return RangeStep::Stop;
            };
            if own > &*high {
                return RangeStep::Stop;
            }
            if own != value {
                (value, count) = (own.to_vec(), 0);
            }
            count += 1;
            newest.push(place);
            // The entries of a value that follow are older.
            let is_older = newest.len() > limit && newest.pop() == Some(place);
            if !is_older && count < limit {
                return RangeStep::Next;
            }
            if low == high {
                return RangeStep::Stop;
            }
            RangeStep::Seek([&[space], own, &[0xff; 13]].concat())
        })?;
        Ok(newest.into_sorted_vec())
    }
}

/// The keyspace of a query's field, and its bounds as they are stored.
fn bounds(query: &TweetQuery) -> Result<(u8, Vec<u8>, Vec<u8>)> {
    Ok(match query.field {
        TweetField::User => {
            let encode =
                |user| Ok::<_, std::num::TryFromIntError>(u32::try_from(user)?.to_be_bytes());
            let (low, high) = (encode(query.low)?, encode(query.high)?);
            (USERS, low.to_vec(), high.to_vec())
        }
        TweetField::Created => {
            let (low, high) = (query.low.to_be_bytes(), query.high.to_be_bytes());
            (TIMES, low.to_vec(), high.to_vec())
        }
    })
}

fn tweet_key(id: u32) -> Vec<u8> {
    [&[TWEETS], &id.to_be_bytes()[..]].concat()
}

fn entry_key(space: u8, value: &[u8], reversed: &[u8], id: u32) -> Vec<u8> {
    [&[space], value, reversed, &id.to_be_bytes()].concat()
}

fn split_entry(key: &[u8], space: u8, width: usize) -> Option<(&[u8], EntryPlace)> {
    let (first, rest) = key.split_first()?;
    let (value, place) = rest.split_at_checked(width)?;
    let (reversed, id) = place.split_first_chunk::<8>()?;
    let place = (
        u64::from_be_bytes(*reversed),
        u32::from_be_bytes(id.try_into().ok()?),
    );
    (*first == space).then_some((value, place))
}

impl TweetStore for RocksTweets {
    fn write(&mut self, tweets: &[Tweet], now_ms: u64, durable: bool) -> Result<()> {
        let mut changes = Vec::with_capacity(tweets.len() * 3);
        let reversed = (!now_ms).to_be_bytes();
        for tweet in tweets {
            self.remove_entries(tweet.id, &mut changes)?;
            let (user, created) = (tweet.user.to_be_bytes(), tweet.created_ms.to_be_bytes());
            let head = [&now_ms.to_be_bytes()[..], &user, &created];
            let value = [&head.concat()[..], &tweet.body].concat();
            changes.push(BatchChange::Put(tweet_key(tweet.id), value));
            for (space, value) in [(USERS, &user[..]), (TIMES, &created[..])] {
                let key = entry_key(space, value, &reversed, tweet.id);
                changes.push(BatchChange::Put(key, Vec::new()));
            }
        }
        self.0.write(&changes, durable)
    }

    fn get(&self, id: u32) -> Result<bool> {
        self.0.get(&tweet_key(id), &mut |value| {
            std::hint::black_box(value.to_vec());
        })
    }

    fn query(&self, query: &TweetQuery) -> Result<Vec<u32>> {
        let places = self.places(query)?;
        let mut bodies = Vec::with_capacity(places.len());
        for (_, id) in &places {
            let copy = &mut |value: &[u8]| bodies.push(value.to_vec());
            self.0.get(&tweet_key(*id), copy)?;
        }
        std::hint::black_box(&bodies);
        Ok(places.into_iter().map(|(_, id)| id).collect())
    }

    fn flush(&self) -> Result<()> {
        self.0.flush()
    }

    fn engine_bytes(&self) -> Option<u64> {
        None
    }

    fn usage(&self) -> Result<Option<String>> {
        Ok(None)
    }
}
