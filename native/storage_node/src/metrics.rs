//! What the node counts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// A counter that only increases.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($name:ident $about:literal)*) => {
        /// What was counted since the node started.
        #[derive(Debug)]
        pub(crate) struct Metrics {
            pub(crate) started: Instant,
            $(#[doc = $about] pub(crate) $name: Counter,)*
        }

        impl Default for Metrics {
            fn default() -> Self {
                Self { started: Instant::now(), $($name: Counter::default(),)* }
            }
        }

        impl Metrics {
            /// Each counter by its name, with its description.
            pub(crate) fn counters(&self) -> Vec<Figure> {
                vec![$((
                    concat!(stringify!($name), "_total"),
                    "counter",
                    $about,
                    number(self.$name.get()),
                )),*]
            }
        }
    };
}

counters! {
    connections "Connections accepted."
    refused_connections "Connections rejected because too many are open."
    refused_from_address "Connections rejected because too many from their address are open."
    evicted_strangers "Connections closed before they authenticated, to make room for others."
    late_strangers "Connections closed because they did not authenticate in time."
    stalled_requests "Connections closed because a request did not arrive completely in time."
    stalled_readers "Connections closed because they read none of a reply in time."
    postponed_reads "Reads postponed because too many bytes were in memory."
    slow_readers "Connections closed because they did not read."
    protocol_errors "Connections closed because of invalid requests."
    wrong_tokens "Attempts to authenticate with a wrong token."
    commands "Commands executed or rejected."
    refused_commands "Commands rejected."
    publications "Publications created."
    subscriptions "Subscriptions created."
    matches "Matches of publications with subscriptions."
    acks "Positions acknowledged."
    events "Events added to aggregates, or already known."
    queries "Queries of aggregates that were answered."
    repeated_queries "Queries of aggregates answered from the result of an earlier one."
    query_micros "Microseconds spent on queries of aggregates."
    commit_groups "Groups of writes that became durable together."
    commit_group_writes "Writes in those groups."
    commit_micros "Microseconds that commits took."
    read_bytes "Bytes read from connections."
    written_bytes "Bytes written to connections."
}

/// A figure: name, kind, description, value.
pub(crate) type Figure = (&'static str, &'static str, &'static str, f64);

#[allow(
    clippy::cast_precision_loss,
    reason = "figures are for people and their charts"
)]
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}
