//! The command-line options.

use std::collections::HashMap;
use std::env;

use crate::Fallible;
use crate::workload::PredicateKind;

/// The options of a run.
#[derive(Debug, Clone)]
pub(crate) struct LoadOptions {
    /// The event layer's address.
    pub(crate) url: String,
    /// The prefix of all names.
    pub(crate) prefix: String,
    /// How many queries are registered, or evaluated with `--tailing 1`.
    pub(crate) queries: usize,
    /// Writes per second.
    pub(crate) writes: u64,
    /// The duration of the run.
    pub(crate) seconds: u64,
    /// The number of query partitions.
    pub(crate) query_partitions: u64,
    /// The number of write partitions.
    pub(crate) write_partitions: u64,
    /// The kinds of predicates of the queries, assigned in rotation.
    pub(crate) kinds: Vec<PredicateKind>,
    /// The percentage of queries with an order and a window.
    pub(crate) sorted_percent: u64,
    /// The total number of groups of all queries, and of documents in them; 0 for no groups.
    pub(crate) groups: u64,
    pub(crate) documents: u64,
    /// Whether this process follows the streams and evaluates each query on each write.
    pub(crate) tailing: bool,
}

/// Reads the command line, in which names and values alternate.
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
