//! Measures how many filters are compiled and evaluated per CPU second, and the memory of a filter
//! in a set. `match_rate [SECONDS]`
//!
//! The documents have the paper's shape: five strings of ten characters and
//! five integers, of which one is unique and random; the filters are
//! `random >= i AND random < j`. The last line of the output is JSON.

#![allow(clippy::print_stdout, reason = "the figures are the purpose")]

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use rillbase_query::bson::DocumentBuf;
use rillbase_query::ejson::parse_document;
use rillbase_query::filter::Filter;
use rillbase_query::filter_set::{FilterId, FilterSet, PredicateAnswers};

/// The number of filters in the set whose memory is measured.
const IDLE: u32 = 100_000;
/// How many filters match a document: the width of their ranges.
const WIDTH: u32 = 17;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn document(random: u32) -> Outcome<DocumentBuf> {
    let text = format!(
        r#"{{"_id":{random},"s0":"abcdefghij","s1":"klmnopqrst","s2":"uvwxyzabcd","s3":"efghijklmn","s4":"opqrstuvwx","i0":1,"i1":2,"i2":3,"i3":4,"random":{random}}}"#
    );
    Ok(parse_document(text.as_bytes())?)
}

fn filter(low: u32) -> Outcome<DocumentBuf> {
    let text = format!(r#"{{"random":{{"$gte":{low},"$lt":{}}}}}"#, low + WIDTH);
    Ok(parse_document(text.as_bytes())?)
}

fn three_predicates(low: u32) -> Outcome<Filter> {
    let text = format!(
        r#"{{"s0":"user{low:06}","random":{{"$gte":{low},"$lt":{}}}}}"#,
        low + WIDTH
    );
    Ok(Filter::parse(parse_document(text.as_bytes())?.as_ref())?)
}

/// The CPU time of this thread, which other programs do not affect, or wall-clock time where the
/// system does not report it.
fn core_time(start: Instant) -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|text| text.parse().ok());
    nanos.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

/// Repeats `work` for `run`; returns the sum of its results per second.
fn rate(run: Duration, mut work: impl FnMut() -> u32) -> f64 {
    let start = Instant::now();
    let (before, mut done) = (core_time(start), 0.0);
    loop {
        done += f64::from(work());
        let spent = core_time(start).saturating_sub(before);
        if spent >= run {
            return done / spent.as_secs_f64();
        }
    }
}

/// The process's resident memory in bytes.
fn resident() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u32 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(f64::from(kib) * 1024.0)
}

/// The bytes per filter of many filters with three predicates in a set.
fn idle_bytes() -> Outcome<f64> {
    let mut set = FilterSet::default();
    let before = resident().unwrap_or_default();
    for low in 0..IDLE {
        set.insert(&three_predicates(low)?);
    }
    let after = resident().unwrap_or_default();
    black_box(&set);
    Ok((after - before) / f64::from(IDLE))
}

/// Checks that the set and its filters agree and are right; otherwise the measurement would be
/// meaningless.
fn check(set: &FilterSet, ids: &[FilterId], filters: &[Filter], doc: &DocumentBuf) -> Outcome<()> {
    let mut scratch = PredicateAnswers::default();
    let mut prepared = set.prepare(doc.as_ref(), 0, &mut scratch);
    let mut matched = 0;
    for (id, filter) in ids.iter().zip(filters) {
        let answer = filter.matches(doc.as_ref())?;
        if prepared.matches(*id)? != answer {
            return Err("the set and its filter disagree".into());
        }
        matched += u32::from(answer);
    }
    if matched != WIDTH {
        return Err(format!("{matched} filters match instead of {WIDTH}").into());
    }
    Ok(())
}

fn main() -> Outcome<()> {
    let seconds = std::env::args()
        .nth(1)
        .map_or(Ok(2.0), |text| text.parse())?;
    let run = Duration::try_from_secs_f64(seconds)?;
    let idle = idle_bytes()?;
    let sources = (0..10_000).map(filter).collect::<Outcome<Vec<_>>>()?;
    let filters = sources
        .iter()
        .map(|source| Filter::parse(source.as_ref()))
        .collect::<Result<Vec<_>, _>>()?;
    let documents = (1..=100)
        .map(|index| document(index * 97))
        .collect::<Outcome<Vec<_>>>()?;
    let mut set = FilterSet::default();
    let ids: Vec<FilterId> = filters.iter().map(|filter| set.insert(filter)).collect();
    documents
        .iter()
        .try_for_each(|document| check(&set, &ids, &filters, document))?;

    let compile = rate(run, || {
        let parsed = sources.iter().take(1000);
        parsed
            .map(|source| u32::from(Filter::parse(source.as_ref()).is_ok()))
            .sum()
    });
    let single = rate(run, || {
        let mut done = 0;
        for filter in filters.iter().take(100) {
            for document in &documents {
                done += u32::from(black_box(filter.matches(document.as_ref())).is_ok());
            }
        }
        done
    });
    let mut scratch = PredicateAnswers::default();
    let mut next = documents.iter().cycle();
    let shared = rate(run, || {
        let Some(document) = next.next() else {
            return 0;
        };
        let mut prepared = set.prepare(document.as_ref(), 0, &mut scratch);
        let answers = ids
            .iter()
            .map(|id| u32::from(black_box(prepared.matches(*id)).is_ok()));
        answers.sum()
    });
    println!(
        r#"{{"compiled_per_second":{compile:.0},"single_per_second":{single:.0},"shared_per_second":{shared:.0},"idle_bytes":{idle:.0}}}"#
    );
    Ok(())
}
