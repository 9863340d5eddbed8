//! Queries whose changed rows are pushed.
//!
//! Once a tick every watch whose aggregate was written to is evaluated again, at one snapshot, and
//! sent the rows that differ from those sent before. So a row that changed a thousand times within
//! a tick is sent once, and what is sent is always consistent. If there are time buckets, a watch
//! is also evaluated from time to time without writes: rows leave its period, and expire.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rillbase_aggregates::{AggregateEntry, AggregateResult};
use rillbase_engine::{Millis, Sequence};

use crate::outbox::ConnectionOutbox;
use crate::resp::ReplyWriter;

/// With time buckets a watch is evaluated again after one bucket, or after this if that is longer.
const MAX_REFRESH_INTERVAL: Millis = 60_000;

/// The rows that were sent: for each, its group and the row, as JSON.
type WatchedRows = BTreeMap<Vec<u8>, (String, String)>;

#[derive(Debug)]
struct WatchState {
    rows: WatchedRows,
    /// The snapshot of the rows.
    position: Sequence,
    evaluated_at: Millis,
}

/// A connection's interest in a query.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) number: u64,
    pub(crate) aggregate: Arc<AggregateEntry>,
    pub(crate) query: String,
    outbox: Arc<ConnectionOutbox>,
    state: Mutex<WatchState>,
}

/// All watches.
#[derive(Debug, Default)]
pub(crate) struct QueryWatches {
    next: AtomicU64,
    all: Mutex<HashMap<u64, Arc<Watch>>>,
    pub(crate) notified: AtomicU64,
}

fn watched_rows(answer: AggregateResult) -> WatchedRows {
    let rows = answer.rows.into_iter();
    rows.map(|row| (row.key, (row.by, row.json))).collect()
}

fn array<'a>(items: impl Iterator<Item = &'a str>) -> String {
    format!("[{}]", items.collect::<Vec<&str>>().join(","))
}

impl QueryWatches {
    /// Registers a watch; `answer` is the reply to the connection.
    pub(crate) fn enter(
        &self,
        (aggregate, query): (&Arc<AggregateEntry>, &str),
        (answer, position, evaluated_at): (AggregateResult, Sequence, Millis),
        outbox: &Arc<ConnectionOutbox>,
    ) -> Arc<Watch> {
        let watch = Arc::new(Watch {
            number: self.next.fetch_add(1, Ordering::Relaxed) + 1,
            aggregate: Arc::clone(aggregate),
            query: query.to_owned(),
            outbox: Arc::clone(outbox),
            state: Mutex::new(WatchState {
                rows: watched_rows(answer),
                position,
                evaluated_at,
            }),
        });
        self.all.lock().insert(watch.number, Arc::clone(&watch));
        watch
    }

    /// Removes a watch; returns whether it existed.
    pub(crate) fn leave(&self, watch: &Watch) -> bool {
        self.all.lock().remove(&watch.number).is_some()
    }

    pub(crate) fn count(&self) -> usize {
        self.all.lock().len()
    }

    pub(crate) fn stale(&self, now: Millis) -> Vec<Arc<Watch>> {
        let all = self.all.lock();
        let is_stale = |watch: &&Arc<Watch>| {
            let state = watch.state.lock();
            let (is_written, is_dropped) = (
                watch.aggregate.changed() > state.position,
                watch.aggregate.is_dropped(),
            );
            is_dropped
                || is_written
                || watch.refresh_interval() <= now.saturating_sub(state.evaluated_at)
        };
        all.values().filter(is_stale).cloned().collect()
    }
}

impl Watch {
    /// How long its rows stay unchanged without writes.
    fn refresh_interval(&self) -> Millis {
        let shape = self.aggregate.shape();
        let bucket = shape.current.definition.time.as_ref();
        bucket.map_or(Millis::MAX, |time| {
            u64::try_from(time.bucket).map_or(MAX_REFRESH_INTERVAL, |bucket| {
                bucket.min(MAX_REFRESH_INTERVAL)
            })
        })
    }

    pub(crate) fn end(&self, reason: &str) {
        let mut frame = Vec::new();
        let mut reply = ReplyWriter::new(&mut frame, 3);
        reply.push(3);
        reply.text("rb.agg.end");
        reply.integer(self.number);
        reply.text(reason);
        self.outbox.push(&frame);
    }

    /// Sends the rows that differ from those sent before. Returns whether there were any.
    pub(crate) fn notify(
        &self,
        answer: AggregateResult,
        position: Sequence,
        evaluated_at: Millis,
    ) -> bool {
        let mut state = self.state.lock();
        let rows = watched_rows(answer);
        let before = &state.rows;
        let changed: Vec<&str> = rows
            .iter()
            .filter(|(key, (_, json))| before.get(*key).is_none_or(|(_, known)| known != json))
            .map(|(_, (_, json))| json.as_str())
            .collect();
        let removed: Vec<&str> = before
            .iter()
            .filter(|(key, _)| !rows.contains_key(*key))
            .map(|(_, (by, _))| by.as_str())
            .collect();
        let has_news = !changed.is_empty() || !removed.is_empty();
        if has_news {
            let mut frame = Vec::new();
            let mut reply = ReplyWriter::new(&mut frame, 3);
            reply.push(5);
            reply.text("rb.agg");
            reply.integer(self.number);
            reply.integer(position);
            reply.text(&array(changed.into_iter()));
            reply.text(&array(removed.into_iter()));
            self.outbox.push(&frame);
        }
        *state = WatchState {
            rows,
            position,
            evaluated_at,
        };
        has_news
    }
}
