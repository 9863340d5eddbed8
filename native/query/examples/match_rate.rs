//! How many filters a core compiles and evaluates each second.
//!
//! The documents have the paper's shape: five strings of ten characters and
//! five integers, of which one is unique and random; the filters are
//! `random >= i AND random < j`. The last line of the output is JSON.

#![allow(clippy::print_stdout, reason = "the figures are the purpose")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use rillbase_query::bson::DocumentBuf;
use rillbase_query::ejson::parse_document;
use rillbase_query::error::Error;
use rillbase_query::filter::Filter;
use rillbase_query::shared::{FilterId, FilterSet, Scratch};

const RUN: Duration = Duration::from_secs(2);

fn document(random: u32) -> Result<DocumentBuf, Error> {
    let text = format!(
        r#"{{"_id":{random},"s0":"abcdefghij","s1":"klmnopqrst","s2":"uvwxyzabcd","s3":"efghijklmn","s4":"opqrstuvwx","i0":1,"i1":2,"i2":3,"i3":4,"random":{random}}}"#
    );
    parse_document(text.as_bytes())
}

fn filters(count: u32) -> Result<Vec<DocumentBuf>, Error> {
    let texts =
        (0..count).map(|low| format!(r#"{{"random":{{"$gte":{low},"$lt":{}}}}}"#, low + 17));
    texts.map(|text| parse_document(text.as_bytes())).collect()
}

/// Runs the work, which says how much it did, for a while; per second.
fn rate(mut work: impl FnMut() -> usize) -> f64 {
    let (start, mut done) = (Instant::now(), 0_usize);
    while start.elapsed() < RUN {
        done += work();
    }
    u32::try_from(done / 1000).map_or(0.0, f64::from) * 1000.0 / start.elapsed().as_secs_f64()
}

fn main() -> Result<(), Error> {
    let sources = filters(10_000)?;
    let compiled = sources
        .iter()
        .map(|source| Filter::parse(source.as_ref()))
        .collect::<Result<Vec<_>, _>>()?;
    let documents = (0..100)
        .map(|index| document(index * 97))
        .collect::<Result<Vec<_>, _>>()?;

    let compile = rate(|| {
        sources
            .iter()
            .take(1000)
            .filter(|source| Filter::parse(source.as_ref()).is_ok())
            .count()
    });

    let mut matched = 0_usize;
    let single = rate(|| {
        for filter in compiled.iter().take(100) {
            for document in &documents {
                matched += usize::from(black_box(filter.matches(document.as_ref())) == Ok(true));
            }
        }
        100 * documents.len()
    });

    let mut set = FilterSet::default();
    let ids: Vec<FilterId> = compiled.iter().map(|filter| set.insert(filter)).collect();
    let mut scratch = Scratch::default();
    let many = rate(|| {
        for document in &documents {
            let mut prepared = set.prepare(document.as_ref(), 0, &mut scratch);
            for id in &ids {
                matched += usize::from(black_box(prepared.matches(*id)) == Ok(true));
            }
        }
        ids.len() * documents.len()
    });
    let probe = document(97)?;
    let expected = compiled
        .iter()
        .filter(|filter| filter.matches(probe.as_ref()) == Ok(true))
        .count();
    println!("a document of the set matches {expected} filters; {matched} matches in all");
    println!("{compile:>14.0} filters compiled each second");
    println!("{single:>14.0} evaluations of one filter on BSON each second");
    println!("{many:>14.0} evaluations of a set of filters on one document each second");
    println!(
        r#"{{"compiled_per_second":{compile:.0},"single_per_second":{single:.0},"shared_per_second":{many:.0}}}"#
    );
    Ok(())
}
