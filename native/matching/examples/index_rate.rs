//! Measures the matcher by class of predicate: the time to match one document with very many live
//! queries, the memory per query, and the rate at which queries are added and removed.
//!
//! `index_rate [--queries 1000,29000,1000000] [--classes range,equality,…] [--seconds 0.5]`
//!
//! The documents have the paper's shape: five strings of ten characters and five integers, of which
//! one is unique and random. Whatever the number of queries, about one of them matches a document,
//! so that what grows is the index and not the answer. Times are CPU time of the thread. The last
//! line is JSON.

#![allow(clippy::print_stdout, reason = "the figures are the purpose")]

#[path = "index_rate/workload.rs"]
mod workload;

use std::error::Error;
use std::hint::black_box;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rillbase_matching::{Matcher, MatcherLimits, QueryId};
use rillbase_query::bson::DocumentBuf;
use rillbase_query::filter::Filter;
use workload::{CLASSES, ClassWorkload};

type Outcome<T> = Result<T, Box<dyn Error>>;

const GROUP: [u8; 16] = [1; 16];
const QUOTA: [u8; 16] = [2; 16];
/// The documents that are matched in rotation.
const DOCUMENTS: u64 = 4_000;
/// The maximum number of residual queries.
const RESIDUAL: u64 = 10_000;
/// How many queries are removed and added again to measure the rates.
const CHANGED: u64 = 50_000;

const HEAD: &str = "class        queries  us/document  candidates  matches   B/query accounted   kadds/s   krems/s  Mpredicates/s";

struct RateOptions {
    queries: Vec<u64>,
    classes: Vec<&'static str>,
    /// The only class, measured in this process.
    child_class: Option<&'static str>,
    run: Duration,
}

/// The figures of one class with one number of queries.
struct ClassFigures {
    class: &'static str,
    queries: u64,
    document_us: f64,
    candidates: f64,
    matches: f64,
    evaluations_per_second: f64,
    query_bytes: f64,
    accounted_bytes: f64,
    adds_per_second: f64,
    removes_per_second: f64,
}

fn class(name: &str) -> Outcome<&'static str> {
    let known = CLASSES.into_iter().find(|class| *class == name);
    known.ok_or_else(|| format!("{name} is not a class").into())
}

fn options() -> Outcome<RateOptions> {
    let mut options = RateOptions {
        queries: vec![1_000, 29_000, 1_000_000],
        classes: CLASSES.into(),
        child_class: None,
        run: Duration::from_millis(500),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().ok_or("an option needs a value")?;
        match word.as_str() {
            "--queries" => {
                let parsed: Result<_, _> = value.split(',').map(str::parse).collect();
                options.queries = parsed?;
            }
            "--classes" => options.classes = value.split(',').map(class).collect::<Outcome<_>>()?,
            "--alone" => options.child_class = Some(class(&value)?),
            "--seconds" => options.run = Duration::try_from_secs_f64(value.parse()?)?,
            _ => return Err(format!("{word} is not an option").into()),
        }
    }
    Ok(options)
}

/// The CPU time of this thread, or wall-clock time where the system does not report it.
fn core_time(start: Instant) -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|text| text.parse().ok());
    nanos.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

/// The process's resident memory in bytes.
fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    kib.unwrap_or(0.0) * 1024.0
}

#[allow(
    clippy::cast_precision_loss,
    reason = "figures need no more than fifty bits"
)]
const fn float(number: u64) -> f64 {
    number as f64
}

fn per_second(count: u64, spent: Duration) -> f64 {
    float(count) / spent.as_secs_f64().max(1e-9)
}

/// Removes some of the queries and adds them again; returns how many were added and removed per
/// second.
fn change(
    matcher: &mut Matcher,
    workload: &ClassWorkload,
    ids: &mut [QueryId],
) -> Outcome<(f64, f64)> {
    let start = Instant::now();
    let (mut adding, mut removing, mut count) = (Duration::ZERO, Duration::ZERO, 0);
    while count < CHANGED {
        let chosen = |step: u64| workload.scattered(count + step) % ids.len() as u64;
        let mut numbers: Vec<u64> = (0..CHANGED.min(ids.len() as u64)).map(chosen).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let filters = numbers.iter().map(|number| workload.filter(*number));
        let filters: Vec<Filter> = filters.collect::<Outcome<_>>()?;
        let before = core_time(start);
        for number in &numbers {
            matcher.remove(*ids.get(usize::try_from(*number)?).ok_or("a number")?);
        }
        let between = core_time(start);
        removing += between.saturating_sub(before);
        for (number, filter) in numbers.iter().zip(&filters) {
            let id = matcher.add(GROUP, QUOTA, filter)?;
            *ids.get_mut(usize::try_from(*number)?).ok_or("a number")? = id;
        }
        adding += core_time(start).saturating_sub(between);
        count += numbers.len() as u64;
    }
    Ok((per_second(count, adding), per_second(count, removing)))
}

/// The result of matching documents for some time.
struct MatchRun {
    documents: u64,
    matches: u64,
    candidates: u64,
    evaluations: u64,
    spent: Duration,
}

/// Matches the documents in rotation for `run`, each at least once.
fn match_all(matcher: &mut Matcher, documents: &[DocumentBuf], run: Duration) -> MatchRun {
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    let first = matcher.statistics();
    let (start, mut done, mut met) = (Instant::now(), 0, 0);
    let before = core_time(start);
    loop {
        for body in documents {
            matcher.matches(&GROUP, body.as_ref(), &mut found, &mut failed);
            met += black_box(&found).len() as u64;
        }
        done += documents.len() as u64;
        let spent = core_time(start).saturating_sub(before);
        if spent >= run {
            let last = matcher.statistics();
            return MatchRun {
                documents: done,
                matches: met,
                candidates: last.candidates - first.candidates,
                evaluations: last.residual_evaluations - first.residual_evaluations,
                spent,
            };
        }
    }
}

fn measure(class: &'static str, queries: u64, run: Duration) -> Outcome<ClassFigures> {
    let workload = ClassWorkload::new(class, queries);
    let count = if class == "residual" { 100 } else { DOCUMENTS };
    let documents = (0..count).map(|number| workload.document(number));
    let documents = documents.collect::<Outcome<Vec<_>>>()?;
    let mut ids = Vec::with_capacity(usize::try_from(queries)?);
    let before = resident();
    let mut matcher = Matcher::new(MatcherLimits {
        residual_per_group: usize::MAX,
        residual_per_quota: usize::MAX,
        ..MatcherLimits::default()
    });
    for number in 0..queries {
        ids.push(matcher.add(GROUP, QUOTA, &workload.filter(number)?)?);
    }
    let query_bytes = (resident() - before) / float(queries);
    let accounted_bytes = float(matcher.memory() as u64) / float(queries);
    // The first run fills caches and moves queries.
    match_all(&mut matcher, &documents, run / 2);
    let ran = match_all(&mut matcher, &documents, run);
    let (adds_per_second, removes_per_second) = change(&mut matcher, &workload, &mut ids)?;
    Ok(ClassFigures {
        class,
        queries,
        document_us: ran.spent.as_secs_f64() * 1e6 / float(ran.documents),
        candidates: float(ran.candidates) / float(ran.documents),
        matches: float(ran.matches) / float(ran.documents),
        evaluations_per_second: per_second(ran.evaluations * workload.predicates(), ran.spent),
        query_bytes,
        accounted_bytes,
        adds_per_second,
        removes_per_second,
    })
}

fn print(figures: &ClassFigures) {
    println!(
        "{:<10} {:>9} {:>12.2} {:>11.2} {:>8.2} {:>9.0} {:>9.0} {:>9.0} {:>9.0} {:>12.1}",
        figures.class,
        figures.queries,
        figures.document_us,
        figures.candidates,
        figures.matches,
        figures.query_bytes,
        figures.accounted_bytes,
        figures.adds_per_second / 1e3,
        figures.removes_per_second / 1e3,
        figures.evaluations_per_second / 1e6,
    );
}

fn json(figures: &ClassFigures) -> String {
    let name = format!("{}_{}", figures.class, figures.queries);
    let text = format!(
        r#""{name}_us":{:.2},"{name}_bytes":{:.0},"{name}_adds_per_second":{:.0}"#,
        figures.document_us, figures.query_bytes, figures.adds_per_second,
    );
    if figures.class != "residual" {
        return text;
    }
    let rate = figures.evaluations_per_second;
    format!(r#"{text},"{name}_evaluations_per_second":{rate:.0}"#)
}

/// Measures one class in a separate process, so that its memory can be measured; prints its line
/// and returns its figures.
fn measure_in_child(class: &str, queries: u64, run: Duration) -> Outcome<String> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--alone", class, "--queries", &queries.to_string()])
        .args(["--seconds", &run.as_secs_f64().to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    let text = String::from_utf8(output.stdout)?;
    let (row, figures) = text.split_once('\n').ok_or("no figures")?;
    println!("{row}");
    Ok(figures.trim().to_owned())
}

fn main() -> Outcome<()> {
    let options = options()?;
    if let Some(class) = options.child_class {
        let queries = options.queries.first().copied().unwrap_or(1);
        let figures = measure(class, queries, options.run)?;
        print(&figures);
        println!("{}", json(&figures));
        return Ok(());
    }
    println!("{HEAD}");
    let mut all = Vec::new();
    for class in &options.classes {
        for queries in &options.queries {
            if *class != "residual" || *queries <= RESIDUAL {
                all.push(measure_in_child(class, *queries, options.run)?);
            }
        }
    }
    println!("{{{}}}", all.join(","));
    Ok(())
}
