//! Sends the rows of watched queries that have changed.

use std::sync::atomic::Ordering;

use rillbase_aggregates::AggregateResult;
use rillbase_engine::Sequence;

use crate::command::parse_query;
use crate::node::NodeCore;
use crate::refusal::Result;
use crate::watches::Watch;

impl NodeCore {
    /// Pushes the rows that have changed since each watch was last notified.
    pub(crate) fn notify_watches(&self) {
        let now = self.now();
        for watch in self.watches.stale(now) {
            if watch.aggregate.is_dropped() {
                watch.end("dropped");
                self.watches.leave(&watch);
                continue;
            }
            match self.evaluate(&watch) {
                Ok((answer, position)) => {
                    let has_news = watch.notify(answer, position, now);
                    self.watches
                        .notified
                        .fetch_add(u64::from(has_news), Ordering::Relaxed);
                }
                Err(refusal) => {
                    watch.end(&format!("{} {}", refusal.code, refusal.text));
                    self.watches.leave(&watch);
                }
            }
        }
    }

    fn evaluate(&self, watch: &Watch) -> Result<(AggregateResult, Sequence)> {
        let query = parse_query(self, &watch.query)?;
        // All earlier changes are visible now.
        let snapshot = self.db.snapshot();
        let answer = self
            .aggregates
            .query(&watch.aggregate, &query, &snapshot, None)?;
        Ok((answer, snapshot.sequence()))
    }
}
