//! The hub's memory usage, and what is released when there is too much.
//!
//! One budget applies to all subscriptions together. Beyond it, in this order:
//!
//! 1. Results that were not sent recently lose their bodies. Changes need only keys, versions and
//!    `_id`s; when the whole result is needed again, it is read again.
//! 2. Clients that do not read lose their pending frames. They restart with a new result once they
//!    read again.
//! 3. Results that do not fit and new subscriptions are rejected.
//! 4. The largest queries are ended.
//!
//! One query may use a quarter of the budget and one tenant a half; beyond that, theirs are ended.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use crate::message::QueryHash;

use super::change::ResultList;
use super::client::HubClient;
use super::{Hub, HubRequest};

/// Eviction releases enough memory to last for some time.
const EVICTION_TARGET: (usize, usize) = (9, 10);
/// Beyond this share of the budget queries are ended.
const TERMINATION_THRESHOLD: (usize, usize) = (5, 4);
/// A client that has read nothing for this long is considered not to read.
const IDLE_READER_US: u64 = 2_000_000;
/// The fraction of the budget for frames that were handed out and not read, before fewer are handed
/// out.
const IN_FLIGHT_SHARE: usize = 8;

/// The memory of a hub by use, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryUsage {
    /// Current results, and what is remembered of removed rows.
    pub results: usize,
    /// Log entries that are not shown yet.
    pub waiting: usize,
    /// Frames that clients have not read.
    pub outboxes: usize,
    /// How often a result was evicted.
    pub let_go: u64,
    /// How often a client was cut off because it did not read.
    pub cut_off: u64,
    /// How many queries were rejected or ended for lack of memory.
    pub refused: u64,
}

impl MemoryUsage {
    /// The total.
    pub fn total(&self) -> usize {
        self.results + self.waiting + self.outboxes
    }
}

fn fraction(of: usize, (numerator, denominator): (usize, usize)) -> usize {
    of / denominator * numerator
}

impl Hub {
    /// The memory usage when it was last measured.
    pub fn memory(&self) -> MemoryUsage {
        self.memory
    }

    /// Whether new subscriptions may be accepted.
    pub fn has_room(&self) -> bool {
        self.memory.total() < self.config.memory_bytes
    }

    /// Whether clients are sent less at once.
    pub(super) fn is_memory_short(&self) -> bool {
        self.in_flight_bytes > self.config.memory_bytes / IN_FLIGHT_SHARE
    }

    /// Measures the memory usage, and evicts what exceeds the budget.
    pub(super) fn keep_within_budget(&mut self) {
        self.measure_memory();
        if self.memory.total() <= self.config.memory_bytes {
            return;
        }
        let target = fraction(self.config.memory_bytes, EVICTION_TARGET);
        self.evict_results(target);
        if self.memory.total() > target {
            self.cut_off_idle_readers(target);
            self.evict_results(target);
        }
        if self.memory.total() > fraction(self.config.memory_bytes, TERMINATION_THRESHOLD) {
            self.end_largest_queries();
        }
    }

    fn measure_memory(&mut self) {
        let mut memory = MemoryUsage {
            results: 0,
            waiting: 0,
            outboxes: 0,
            ..self.memory
        };
        for query in self.queries.values() {
            let (results, waiting) = query.bytes();
            memory.results += results;
            memory.waiting += waiting;
        }
        let mut in_flight = 0;
        let mut counted: HashSet<*const ResultList> = HashSet::new();
        for client in self.clients.values() {
            memory.outboxes += client.bytes();
            in_flight += client.outbox.in_flight().1;
            let rows = self.queries.get(&client.query);
            let rows = rows.and_then(|query| query.rows.as_ref());
            for listed in client.listed() {
                let known = rows.is_some_and(|rows| rows.is_listed_as(listed));
                if !known && counted.insert(Arc::as_ptr(listed)) {
                    memory.outboxes += listed.bytes;
                }
            }
        }
        self.in_flight_bytes = in_flight;
        self.memory = memory;
    }

    /// Evicts in the order in which whole results were last used.
    fn evict_results(&mut self, target: usize) {
        let mut known: Vec<(u64, QueryHash)> = Vec::new();
        for (hash, query) in &self.queries {
            let mut clients = query.clients.iter().filter_map(|id| self.clients.get(id));
            if !clients.any(HubClient::needs_bodies) {
                known.push((query.last_sent_us, *hash));
            }
        }
        known.sort_unstable();
        for (_, hash) in known {
            if self.memory.total() <= target {
                return;
            }
            let rows = self
                .queries
                .get_mut(&hash)
                .and_then(|one| one.rows.as_mut());
            if let Some(rows) = rows {
                let before = rows.bytes();
                rows.drop_bodies();
                let released = before.saturating_sub(rows.bytes());
                self.memory.results = self.memory.results.saturating_sub(released);
                self.memory.let_go += u64::from(released > 0);
            }
        }
    }

    fn cut_off_idle_readers(&mut self, target: usize) {
        let unread = |last_read_us: u64| self.now_us.saturating_sub(last_read_us) >= IDLE_READER_US;
        let clients = self.clients.iter().filter(|(_, client)| {
            client.bytes() > 0 && !client.outbox.is_drained() && unread(client.last_read_us)
        });
        let mut slow: Vec<_> = clients
            .map(|(id, one)| (Reverse(one.bytes()), *id))
            .collect();
        slow.sort_unstable();
        for (_, id) in slow {
            if self.memory.total() <= target {
                break;
            }
            let Some(client) = self.clients.get_mut(&id) else {
                continue;
            };
            let before = client.bytes();
            if client.cut_off(self.trace_time_us) {
                let released = before.saturating_sub(client.bytes());
                self.memory.outboxes = self.memory.outboxes.saturating_sub(released);
                self.memory.cut_off += 1;
                self.behind.remove(&id);
            }
        }
        // Lists that several clients shared are released with the last of them.
        self.measure_memory();
    }

    fn end_largest_queries(&mut self) {
        let queries = self.queries.iter();
        let mut largest: Vec<_> = queries
            .map(|(hash, query)| {
                let (results, waiting) = query.bytes();
                (Reverse(results + waiting), *hash)
            })
            .collect();
        largest.sort_unstable();
        for (Reverse(bytes), hash) in largest {
            if self.memory.total() <= self.config.memory_bytes {
                return;
            }
            self.memory.results = self.memory.results.saturating_sub(bytes);
            self.reject_for_memory(&hash, "overloaded");
        }
    }

    /// Whether a result of this size is admitted; if not, its subscribers are notified.
    pub(super) fn admits(&mut self, hash: &QueryHash, bytes: usize) -> bool {
        let budget = self.config.memory_bytes;
        let Some(query) = self.queries.get(hash).filter(|query| query.rows.is_none()) else {
            return true;
        };
        let tenant = query.definition.tenant;
        if self.memory.total() + bytes > budget {
            self.measure_memory();
            self.evict_results(budget.saturating_sub(bytes));
        }
        let code = if bytes > budget / 4 {
            "result_too_large"
        } else if self.memory.total() + bytes > budget {
            "overloaded"
        } else if bytes > budget / 16 && self.tenant_bytes(&tenant) + bytes > budget / 2 {
            "quota_exceeded"
        } else {
            self.memory.results += bytes;
            return true;
        };
        self.reject_for_memory(hash, code);
        false
    }

    fn tenant_bytes(&self, tenant: &[u8; 16]) -> usize {
        let queries = self.queries.values();
        let queries = queries.filter(|query| query.definition.tenant == *tenant);
        queries.map(|query| query.bytes().0).sum()
    }

    fn reject_for_memory(&mut self, hash: &QueryHash, code: &str) {
        let detail = "The result does not fit into the memory that live queries may take.";
        self.memory.refused += 1;
        self.requests
            .push(HubRequest::Fail(*hash, code.to_owned(), detail.to_owned()));
    }

    /// Reads a query again whose bodies were evicted.
    pub(super) fn refresh(&mut self, hash: &QueryHash) {
        if let Some(query) = self.queries.get_mut(hash)
            && query.rows.is_some()
            && !query.is_whole()
            && query.refresh(self.now_us)
        {
            self.requests.push(HubRequest::Register(*hash));
        }
    }

    /// Sends the whole result to the clients that wait for it, or requests a read.
    pub(super) fn send_first_results(&mut self, hash: &QueryHash) {
        let Some(query) = self.queries.get(hash) else {
            return;
        };
        let waits = |id: &&u64| self.clients.get(id).is_some_and(HubClient::is_waiting);
        let waiting: Vec<u64> = query.clients.iter().filter(waits).copied().collect();
        if waiting.is_empty() || query.rows.is_none() {
            return;
        }
        if !query.is_whole() {
            self.refresh(hash);
            return;
        }
        for id in waiting {
            self.begin(id);
        }
    }
}
