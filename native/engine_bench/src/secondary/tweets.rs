//! Tweets of about 550 bytes, whose users are Zipf-distributed and whose times of creation ascend,
//! and what each lookup of them must return.

use std::cmp::Reverse;
use std::io::Write as _;
use std::path::Path;

use rillbase_query::bson::ValueRef;
use rillbase_query::bson::{Document, DocumentWriter};

use super::tweet_store::{TweetField, TweetQuery};
use crate::store::Result;
use crate::workload::Xorshift;

/// The mean number of tweets of a user.
const TWEETS_PER_USER: u32 = 30;
/// The text of a tweet and of its attachments.
const TEXT_BYTES: usize = 460;
const FIRST_CREATED_MS: i64 = 1_600_000_000_000;
/// The mean time between two tweets.
pub(crate) const CREATED_STEP_MS: i64 = 10;
/// Weights are whole numbers, so that every machine draws the same users.
const WEIGHT: u64 = 1 << 40;
/// Coprime to numbers of users below it: spreads the frequent users over the range of users.
const SPREAD: u64 = 2_147_483_647;

/// A tweet as a BSON document.
#[derive(Debug, Clone)]
pub(crate) struct Tweet {
    pub(crate) id: u32,
    pub(crate) user: u32,
    pub(crate) created_ms: i64,
    pub(crate) body: Vec<u8>,
}

impl Tweet {
    pub(crate) fn document(&self) -> Document<'_> {
        Document::trusted(&self.body)
    }
}

/// A tweet's indexed values, and when it was written last.
#[derive(Debug, Clone, Copy)]
struct TweetTimes {
    user: u32,
    created_ms: i64,
    updated_ms: u64,
}

/// The source of tweets, which remembers what was written.
pub(crate) struct TweetSource {
    dice: Xorshift,
    filling: String,
    /// The sums of the users' weights, the most frequent user first.
    weights: Vec<u64>,
    times: Vec<TweetTimes>,
    of_user: Vec<Vec<u32>>,
}

impl TweetSource {
    pub(crate) fn new(seed: u64, documents: u32) -> Self {
        let mut dice = Xorshift::new(seed, "tweets", 0);
        let letters = b"etaoin shrdlu cmfwyp";
        let filling = (0..1 << 20).map(|_| {
            let at = usize::try_from(dice.roll() >> 40).unwrap_or(0) % letters.len();
            char::from(letters.get(at).copied().unwrap_or(b' '))
        });
        let filling = filling.collect();
        let users = (documents / TWEETS_PER_USER).max(20);
        let mut sum = 0;
        let weights = (1..=u64::from(users)).map(|rank| {
            sum += WEIGHT / rank;
            sum
        });
        Self {
            filling,
            weights: weights.collect(),
            times: Vec::new(),
            of_user: vec![Vec::new(); usize::try_from(users).unwrap_or(0)],
            dice,
        }
    }

    pub(crate) fn documents(&self) -> u32 {
        u32::try_from(self.times.len()).unwrap_or(u32::MAX)
    }

    pub(crate) fn users(&self) -> u32 {
        u32::try_from(self.weights.len()).unwrap_or(u32::MAX)
    }

    /// A number below a bound.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        u32::try_from((self.dice.roll() >> 20) % u64::from(bound.max(1))).unwrap_or(0)
    }

    /// The user with a rank, from 0 for the most frequent one.
    pub(crate) fn user_of_rank(&self, rank: u32) -> u32 {
        let users = u64::from(self.users());
        u32::try_from(u64::from(rank) * SPREAD % users).unwrap_or(0)
    }

    /// A user, as often as it writes tweets.
    pub(crate) fn any_user(&mut self) -> u32 {
        let total = self.weights.last().copied().unwrap_or(1);
        let point = self.dice.roll() % total;
        let rank = self.weights.partition_point(|sum| *sum <= point);
        self.user_of_rank(u32::try_from(rank).unwrap_or(0))
    }

    /// A new tweet that is written at a time.
    pub(crate) fn insert(&mut self, updated_ms: u64) -> Tweet {
        let (id, user) = (self.documents(), self.any_user());
        let jitter = self.below(u32::try_from(CREATED_STEP_MS).unwrap_or(1));
        let created_ms = created_from(id) + i64::from(jitter);
        self.times.push(TweetTimes {
            user,
            created_ms,
            updated_ms,
        });
        if let Some(own) = self.of_user_mut(user) {
            own.push(id);
        }
        self.tweet(id, user, created_ms)
    }

    /// An existing tweet with another text, written at a time.
    pub(crate) fn update(&mut self, updated_ms: u64) -> Option<Tweet> {
        let id = self.below(self.documents());
        let times = self.times.get_mut(usize::try_from(id).ok()?)?;
        times.updated_ms = updated_ms;
        let (user, created_ms) = (times.user, times.created_ms);
        Some(self.tweet(id, user, created_ms))
    }

    fn of_user_mut(&mut self, user: u32) -> Option<&mut Vec<u32>> {
        self.of_user.get_mut(usize::try_from(user).ok()?)
    }

    fn tweet(&mut self, id: u32, user: u32, created_ms: i64) -> Tweet {
        let at = usize::try_from(self.below(1 << 19)).unwrap_or(0);
        let text = self.filling.get(at..at + TEXT_BYTES).unwrap_or_default();
        let mut writer = DocumentWriter::with_capacity(600);
        writer.append("_id", ValueRef::Int64(i64::from(id)));
        writer.append("user", ValueRef::Int64(i64::from(user)));
        writer.append("created", ValueRef::Int64(created_ms));
        writer.append("text", ValueRef::String(text));
        writer.append("language", ValueRef::String("en"));
        writer.append("retweets", ValueRef::Int64(i64::from(id % 1000)));
        Tweet {
            id,
            user,
            created_ms,
            body: writer.finish(),
        }
    }

    /// The ids that a query must return: the newest first, and those of one time in ascending order.
    pub(crate) fn expected(&self, query: &TweetQuery) -> Vec<u32> {
        let mut matching: Vec<(Reverse<u64>, u32)> = match query.field {
            TweetField::User => (query.low..=query.high)
                .filter_map(|user| self.of_user.get(usize::try_from(user).ok()?))
                .flatten()
                .filter_map(|id| self.place(*id))
                .collect(),
            TweetField::Created => (0..self.documents())
                .filter(|id| self.is_created(*id, (query.low, query.high)))
                .filter_map(|id| self.place(id))
                .collect(),
        };
        matching.sort_unstable();
        matching.truncate(query.limit.unwrap_or(usize::MAX));
        matching.into_iter().map(|(_, id)| id).collect()
    }

    fn times(&self, id: u32) -> Option<&TweetTimes> {
        self.times.get(usize::try_from(id).ok()?)
    }

    fn place(&self, id: u32) -> Option<(Reverse<u64>, u32)> {
        Some((Reverse(self.times(id)?.updated_ms), id))
    }

    fn is_created(&self, id: u32, (low, high): (i64, i64)) -> bool {
        self.times(id)
            .is_some_and(|times| (low..=high).contains(&times.created_ms))
    }

    /// Writes `id user created updated` of all tweets, a line for each.
    pub(crate) fn dump(&self, path: &Path) -> Result<()> {
        let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
        for (id, times) in self.times.iter().enumerate() {
            let (user, created_ms, updated_ms) = (times.user, times.created_ms, times.updated_ms);
            writeln!(file, "{id} {user} {created_ms} {updated_ms}")?;
        }
        Ok(file.flush()?)
    }
}

/// The earliest time at which a tweet may be created.
pub(crate) fn created_from(id: u32) -> i64 {
    FIRST_CREATED_MS + i64::from(id) * CREATED_STEP_MS
}
