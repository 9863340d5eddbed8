//! The interface of a store of tweets with secondary indexes.

use super::tweets::Tweet;
use crate::store::Result;

/// An indexed field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TweetField {
    User,
    Created,
}

impl TweetField {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Created => "created",
        }
    }
}

/// `LOOKUP` if both ends are equal, else `RANGELOOKUP`: the tweets written last.
#[derive(Debug, Clone)]
pub(crate) struct TweetQuery {
    pub(crate) field: TweetField,
    pub(crate) low: i64,
    /// Included.
    pub(crate) high: i64,
    /// `None` for all.
    pub(crate) limit: Option<usize>,
}

impl TweetQuery {
    pub(crate) fn of_user(user: u32, limit: Option<usize>) -> Self {
        Self {
            field: TweetField::User,
            low: i64::from(user),
            high: i64::from(user),
            limit,
        }
    }
}

/// A store of tweets.
pub(crate) trait TweetStore {
    /// Inserts tweets, or replaces those with the same ids, as one group.
    fn write(&mut self, tweets: &[Tweet], now_ms: u64, durable: bool) -> Result<()>;

    /// Whether a tweet exists; it is read.
    fn get(&self, id: u32) -> Result<bool>;

    /// The ids of the tweets that a query returns, in order; the tweets are read.
    fn query(&self, query: &TweetQuery) -> Result<Vec<u32>>;

    /// Flushes memtables to tables.
    fn flush(&self) -> Result<()>;

    /// Bytes written to log and tables by its own count, if it has one.
    fn engine_bytes(&self) -> Option<u64>;

    /// How the collection and its index of users were used, in JSON, if it counts that.
    fn usage(&self) -> Result<Option<String>>;
}
