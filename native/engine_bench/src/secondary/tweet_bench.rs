//! Requests, and the rounds in which the systems take turns.
//!
//! ```text
//! fill COUNT ROUNDS          groups of inserts without syncs, background work included; then a flush
//! durable COUNT ROUNDS       groups of inserts with one sync each
//! lookup frequent|any LIMIT QUERIES ROUNDS
//! users WIDTH LIMIT QUERIES ROUNDS
//! created WIDTH LIMIT QUERIES ROUNDS
//! mix PUT/GET/LOOKUP/UPDATE OPERATIONS ROUNDS
//! only SYSTEM QUERY          one of the queries above, of one system
//! usage SYSTEM               how it was used, by its own count
//! dump FILE
//! ```
//!
//! A limit of 0 reads all results. The reply has the operations of a round and, by system, the time
//! of each round.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::tweet_store::{TweetField, TweetQuery, TweetStore};
use super::tweets::{CREATED_STEP_MS, Tweet, TweetSource, created_from};
use crate::process::{processor_seconds, written_bytes};
use crate::store::Result;

/// Users with the highest ranks, which the lookups of frequent users choose from.
const FREQUENT: u32 = 10;
/// The limit of lookups in mixes.
const MIX_LIMIT: usize = 10;
/// A system that has written nothing for this long has settled.
const SETTLED_AFTER: Duration = Duration::from_millis(50);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A system, and how it is queried.
pub(super) struct MeasuredSystem {
    pub(super) name: String,
    pub(super) is_indexed: bool,
    pub(super) store: Box<dyn TweetStore>,
}

/// The cost of the rounds of one system.
#[derive(Default)]
struct RoundTimes {
    seconds: Vec<f64>,
    processor_seconds: Vec<f64>,
    written_bytes: u64,
}

/// An operation of a mix.
enum TweetOperation {
    Write(Tweet),
    Get(u32),
    Lookup(TweetQuery, Vec<u32>),
}

/// All systems, with the same tweets.
pub(super) struct TweetBench {
    pub(super) systems: Vec<MeasuredSystem>,
    pub(super) source: TweetSource,
    /// The number of writes that are made together.
    pub(super) group: usize,
    pub(super) now_ms: u64,
    /// The only system that is measured.
    pub(super) only: Option<String>,
}

impl TweetBench {
    /// The names of the systems in JSON.
    pub(super) fn names(&self) -> String {
        let names = self
            .systems
            .iter()
            .map(|system| format!("\"{}\"", system.name));
        let names: Vec<String> = names.collect();
        format!("{{\"systems\": [{}]}}", names.join(", "))
    }

    /// Carries out a request, and returns the reply in JSON.
    pub(super) fn answer(&mut self, line: &str) -> Result<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["only", system, query @ ..] => {
                self.only = Some((*system).to_owned());
                let reply = self.answer_query(query);
                self.only = None;
                reply
            }
            ["usage", system] => self.usage(system),
            ["lookup" | "users" | "created", ..] => self.answer_query(&words),
            _ => self.answer_write(&words),
        }
    }

    fn usage(&self, name: &str) -> Result<String> {
        let system = self.systems.iter().find(|system| system.name == name);
        let usage = system.map(|system| system.store.usage()).transpose()?;
        Ok(usage
            .flatten()
            .ok_or_else(|| format!("{name} does not count its use"))?)
    }

    fn answer_query(&mut self, words: &[&str]) -> Result<String> {
        match *words {
            ["lookup", who, limit, queries, rounds] => {
                let limit = limit_of(limit)?;
                let is_frequent = who == "frequent";
                self.queries(count(queries)?, count(rounds)?, |source| {
                    TweetQuery::of_user(some_user(source, is_frequent), limit)
                })
            }
            ["users", width, limit, queries, rounds] => {
                let (width, limit) = (width.parse()?, limit_of(limit)?);
                self.queries(count(queries)?, count(rounds)?, |source| {
                    users_of(source, width, limit)
                })
            }
            ["created", width, limit, queries, rounds] => {
                let (width, limit) = (width.parse()?, limit_of(limit)?);
                self.queries(count(queries)?, count(rounds)?, |source| {
                    created_of(source, width, limit)
                })
            }
            _ => Err(format!("unknown query {words:?}").into()),
        }
    }

    fn answer_write(&mut self, words: &[&str]) -> Result<String> {
        match *words {
            ["fill", total, rounds] => self.fill(count(total)?, count(rounds)?),
            ["durable", total, rounds] => self.durable(count(total)?, count(rounds)?),
            ["mix", shares, operations, rounds] => {
                self.mix(shares, count(operations)?, count(rounds)?)
            }
            ["dump", file] => {
                self.source.dump(Path::new(file))?;
                Ok(format!("{{\"tweets\": {}}}", self.source.documents()))
            }
            _ => Err(format!("unknown request {words:?}").into()),
        }
    }

    /// Tweets in groups with their times.
    fn groups(&mut self, count: usize) -> Vec<(u64, Vec<Tweet>)> {
        let mut groups = Vec::new();
        let mut rest = count;
        while rest > 0 {
            let now_ms = self.tick();
            let size = rest.min(self.group);
            let tweets = (0..size).map(|_| self.source.insert(now_ms));
            groups.push((now_ms, tweets.collect()));
            rest -= size;
        }
        groups
    }

    fn tick(&mut self) -> u64 {
        self.now_ms += 1;
        self.now_ms
    }

    fn fill(&mut self, count: usize, rounds: usize) -> Result<String> {
        let mut times = self.no_times();
        let mut body_bytes = 0;
        for round in 0..rounds {
            let groups = self.groups(count / rounds);
            body_bytes += bytes_of(&groups);
            self.round(round, &mut times, |system| {
                write_all(system, &groups, false)?;
                settle()
            })?;
        }
        // What is in memtables is a part of what was written.
        for (system, times) in self.systems.iter_mut().zip(&mut times) {
            let before = written_bytes()?;
            system.store.flush()?;
            settle()?;
            times.written_bytes += written_bytes()? - before;
        }
        Ok(self.reply(count / rounds, body_bytes, &times))
    }

    fn durable(&mut self, count: usize, rounds: usize) -> Result<String> {
        let mut times = self.no_times();
        let mut body_bytes = 0;
        for round in 0..rounds {
            let groups = self.groups(count / rounds);
            body_bytes += bytes_of(&groups);
            self.round(round, &mut times, |system| {
                write_all(system, &groups, true)?;
                Ok(Duration::ZERO)
            })?;
        }
        Ok(self.reply(count / rounds, body_bytes, &times))
    }

    fn queries(
        &mut self,
        count: usize,
        rounds: usize,
        make: impl Fn(&mut TweetSource) -> TweetQuery,
    ) -> Result<String> {
        let queries = (0..count).map(|_| {
            let query = make(&mut self.source);
            let expected = self.source.expected(&query);
            (query, expected)
        });
        let queries: Vec<(TweetQuery, Vec<u32>)> = queries.collect();
        let results: usize = queries.iter().map(|(_, expected)| expected.len()).sum();
        let mut times = self.no_times();
        for round in 0..rounds {
            self.round(round, &mut times, |system| {
                if system.is_indexed {
                    for (query, expected) in &queries {
                        check(system, query, expected)?;
                    }
                }
                Ok(Duration::ZERO)
            })?;
        }
        Ok(self.reply(count, results, &times))
    }

    fn mix(&mut self, shares: &str, count: usize, rounds: usize) -> Result<String> {
        let shares = shares.split('/').map(str::parse);
        let shares: Vec<u32> = shares.collect::<std::result::Result<_, _>>()?;
        let mut times = self.no_times();
        for round in 0..rounds {
            let operations = (0..count).map(|_| self.operation(&shares));
            let operations = operations.collect::<Result<Vec<_>>>()?;
            self.round(round, &mut times, |system| {
                // Without an index, a lookup would read all tweets: it only writes.
                for (now_ms, operation) in &operations {
                    perform(system, *now_ms, operation)?;
                }
                settle()
            })?;
        }
        Ok(self.reply(count, 0, &times))
    }

    /// An operation, with its time, by the shares of puts, gets, lookups and updates.
    fn operation(&mut self, shares: &[u32]) -> Result<(u64, TweetOperation)> {
        let now_ms = self.tick();
        let mut point = self.source.below(shares.iter().sum());
        let kind = shares.iter().position(|share| {
            let is_chosen = point < *share;
            point = point.saturating_sub(*share);
            is_chosen
        });
        let operation = match kind {
            Some(0) => TweetOperation::Write(self.source.insert(now_ms)),
            Some(1) => TweetOperation::Get(self.source.below(self.source.documents())),
            Some(2) => {
                let query = TweetQuery::of_user(self.source.any_user(), Some(MIX_LIMIT));
                let expected = self.source.expected(&query);
                TweetOperation::Lookup(query, expected)
            }
            _ => TweetOperation::Write(self.source.update(now_ms).ok_or("there are no tweets")?),
        };
        Ok((now_ms, operation))
    }

    fn no_times(&self) -> Vec<RoundTimes> {
        self.systems.iter().map(|_| RoundTimes::default()).collect()
    }

    /// Lets each system work, beginning with another one in each round. The work returns for how
    /// long it only waited.
    fn round(
        &mut self,
        round: usize,
        times: &mut [RoundTimes],
        mut work: impl FnMut(&mut MeasuredSystem) -> Result<Duration>,
    ) -> Result<()> {
        let count = self.systems.len();
        let order = (0..count).map(|at| (at + round) % count);
        for at in order {
            let (Some(system), Some(times)) = (self.systems.get_mut(at), times.get_mut(at)) else {
                continue;
            };
            let only = self.only.as_ref();
            if only.is_some_and(|only| *only != system.name) {
                continue;
            }
            let (processor, written) = (processor_seconds()?, written_bytes()?);
            let started = Instant::now();
            let waited = work(system)?;
            let seconds = started.elapsed().saturating_sub(waited).as_secs_f64();
            times.seconds.push(seconds);
            times
                .processor_seconds
                .push(processor_seconds()? - processor);
            times.written_bytes += written_bytes()? - written;
        }
        Ok(())
    }

    fn reply(&self, operations: usize, size: usize, times: &[RoundTimes]) -> String {
        let mut out = format!("{{\"operations\": {operations}, \"size\": {size}, \"systems\": {{");
        for (number, (system, times)) in self.systems.iter().zip(times).enumerate() {
            let separator = if number == 0 { "" } else { ", " };
            let engine_bytes = system.store.engine_bytes().unwrap_or(0);
            // Writing to a string does not fail.
            let _ = write!(
                out,
                "{separator}\"{}\": {{\"seconds\": {:?}, \"processor_seconds\": {:?}, \
                 \"written_bytes\": {}, \"engine_bytes\": {engine_bytes}}}",
                system.name, times.seconds, times.processor_seconds, times.written_bytes
            );
        }
        out.push_str("}}");
        out
    }
}

fn count(word: &str) -> Result<usize> {
    Ok(word.parse()?)
}

fn limit_of(word: &str) -> Result<Option<usize>> {
    let limit = word.parse()?;
    Ok((limit > 0).then_some(limit))
}

fn some_user(source: &mut TweetSource, is_frequent: bool) -> u32 {
    if is_frequent {
        let rank = source.below(FREQUENT);
        return source.user_of_rank(rank);
    }
    source.any_user()
}

fn users_of(source: &mut TweetSource, width: u32, limit: Option<usize>) -> TweetQuery {
    let low = source.below(source.users().saturating_sub(width) + 1);
    TweetQuery {
        field: TweetField::User,
        low: i64::from(low),
        high: i64::from(low + width - 1),
        limit,
    }
}

/// The times in which about `width` tweets were created.
fn created_of(source: &mut TweetSource, width: u32, limit: Option<usize>) -> TweetQuery {
    let first = source.below(source.documents().saturating_sub(width) + 1);
    let low = created_from(first);
    TweetQuery {
        field: TweetField::Created,
        low,
        high: low + i64::from(width) * CREATED_STEP_MS - 1,
        limit,
    }
}

fn bytes_of(groups: &[(u64, Vec<Tweet>)]) -> usize {
    let tweets = groups.iter().flat_map(|(_, tweets)| tweets);
    tweets.map(|tweet| tweet.body.len()).sum()
}

fn write_all(
    system: &mut MeasuredSystem,
    groups: &[(u64, Vec<Tweet>)],
    is_durable: bool,
) -> Result<()> {
    for (now_ms, tweets) in groups {
        system.store.write(tweets, *now_ms, is_durable)?;
    }
    Ok(())
}

fn check(system: &MeasuredSystem, query: &TweetQuery, expected: &[u32]) -> Result<()> {
    let ids = system.store.query(query)?;
    if ids != expected {
        let name = &system.name;
        return Err(format!("{name} returns {ids:?} for {query:?}, not {expected:?}").into());
    }
    Ok(())
}

fn perform(system: &mut MeasuredSystem, now_ms: u64, operation: &TweetOperation) -> Result<()> {
    match operation {
        TweetOperation::Write(tweet) => {
            let tweets = std::slice::from_ref(tweet);
            system.store.write(tweets, now_ms, false)
        }
        TweetOperation::Get(id) if system.store.get(*id)? => Ok(()),
        TweetOperation::Get(id) => Err(format!("{} has no tweet {id}", system.name).into()),
        TweetOperation::Lookup(query, expected) if system.is_indexed => {
            check(system, query, expected)
        }
        TweetOperation::Lookup(..) => Ok(()),
    }
}

/// Waits until background writes have stopped; returns for how long there were none.
fn settle() -> Result<Duration> {
    let mut last = written_bytes()?;
    let mut since = Instant::now();
    while since.elapsed() < SETTLED_AFTER {
        std::thread::sleep(LOOK_AGAIN);
        let now = written_bytes()?;
        if now != last {
            (last, since) = (now, Instant::now());
        }
    }
    Ok(since.elapsed())
}
