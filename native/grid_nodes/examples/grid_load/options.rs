//! What the caller asks for.

use std::collections::HashMap;
use std::env;

use crate::Fallible;
use crate::workload::PredicateKind;

/// A run.
#[derive(Debug, Clone)]
pub(crate) struct LoadOptions {
    /// The event layer.
    pub(crate) url: String,
    /// How all names begin.
    pub(crate) prefix: String,
    /// How many queries are registered, or evaluated by who follows the streams.
    pub(crate) queries: usize,
    /// Writes a second.
    pub(crate) writes: u64,
    /// How long they go on.
    pub(crate) seconds: u64,
    /// Of the queries.
    pub(crate) query_partitions: u64,
    /// Of the writes.
    pub(crate) write_partitions: u64,
    /// By what queries find documents: in turns.
    pub(crate) kinds: Vec<PredicateKind>,
    /// How many of a hundred queries have an order and a window.
    pub(crate) sorted_percent: u64,
    /// Groups of all queries together, and documents in them; without groups there are none.
    pub(crate) groups: u64,
    pub(crate) documents: u64,
    /// Whether the streams are followed here, by evaluating each query on each write.
    pub(crate) tailing: bool,
}

/// Reads the command line: names and values in turns.
pub(crate) fn read() -> Fallible<LoadOptions> {
    let mut given = HashMap::new();
    let mut arguments = env::args().skip(1);
    while let (Some(name), Some(value)) = (arguments.next(), arguments.next()) {
        given.insert(name, value);
    }
    let mut take = |name: &str| {
        given
            .remove(name)
            .ok_or_else(|| format!("{name} is missing"))
    };
    Ok(LoadOptions {
        url: take("--url")?,
        prefix: take("--prefix")?,
        queries: take("--queries")?.parse()?,
        writes: take("--writes")?.parse()?,
        seconds: take("--seconds")?.parse()?,
        query_partitions: take("--query-partitions")?.parse()?,
        write_partitions: take("--write-partitions")?.parse()?,
        kinds: PredicateKind::several(&take("--kind")?)?,
        sorted_percent: take("--sorted")?.parse()?,
        groups: take("--groups")?.parse()?,
        documents: take("--documents")?.parse()?,
        tailing: take("--tailing")? == "1",
    })
}
