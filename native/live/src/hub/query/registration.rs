//! How a query obtains its rows: by its first registration, by another one because something was
//! lost, or by a read because bodies were evicted.

use crate::message::{ResultRow, StreamId};
use crate::snapshot::PgSnapshot;

use super::super::change::ResultRows;
use super::super::queue::LogEntry;
use super::super::sizes::{KEY_BYTES, row_bytes};
use super::HubQuery;

/// Missing bodies are requested again after this long.
const REFRESH_AGAIN_US: u64 = 1_000_000;

/// The progress of a query's registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::hub) enum RegistrationProgress {
    /// In progress; log entries are kept meanwhile.
    InProgress,
    /// In progress, but something was lost meanwhile, so another one must follow.
    Outdated,
    /// Only evicted bodies are being read, because a client needs them. `lost`: something was lost
    /// meanwhile.
    Refreshing { lost: bool },
    /// Complete.
    Done,
}

impl HubQuery {
    /// Identifies the registration in progress. A query registers less often than 2^24 times.
    pub(in crate::hub) fn registration_id(&self) -> Option<u64> {
        let (number, times) = self.registration_ids;
        (self.registration != RegistrationProgress::Done).then_some(number << 24 | times)
    }

    /// Whether something was lost, and the registration that makes up for it is not complete.
    pub(in crate::hub) fn may_have_gaps(&self) -> bool {
        let whole = [
            RegistrationProgress::Done,
            RegistrationProgress::Refreshing { lost: false },
        ];
        !whole.contains(&self.registration)
    }

    /// Needs to be registered again; returns whether that must be requested.
    pub(in crate::hub) fn register_again(&mut self) -> bool {
        let ask = self.registration == RegistrationProgress::Done;
        self.registration_ids.1 += u64::from(ask);
        self.registration = match self.registration {
            RegistrationProgress::Done => RegistrationProgress::InProgress,
            RegistrationProgress::Refreshing { .. } => {
                RegistrationProgress::Refreshing { lost: true }
            }
            RegistrationProgress::InProgress | RegistrationProgress::Outdated => {
                RegistrationProgress::Outdated
            }
        };
        ask
    }

    /// Needs the evicted bodies; returns whether a registration must be requested.
    pub(in crate::hub) fn refresh(&mut self, now_us: u64) -> bool {
        let again_us = self.last_refreshed_us.saturating_add(REFRESH_AGAIN_US);
        let ask = self.registration == RegistrationProgress::Done && again_us <= now_us;
        if ask {
            self.registration_ids.1 += 1;
            self.registration = RegistrationProgress::Refreshing { lost: false };
        }
        ask
    }

    /// Takes bodies from a registration that was requested only for them, and continues as before.
    /// `None` if it was requested for more; otherwise whether another one must follow, because log
    /// entries were not kept meanwhile.
    pub(in crate::hub) fn refreshed(
        &mut self,
        activation: u64,
        rows: &[ResultRow],
        now_us: u64,
    ) -> Option<bool> {
        let RegistrationProgress::Refreshing { lost } = self.registration else {
            return None;
        };
        self.last_refreshed_us = now_us;
        self.registration = RegistrationProgress::Done;
        let again = lost || activation != self.activation;
        if let Some(held) = self.rows.as_mut().filter(|_| !again) {
            held.fill(rows);
        }
        Some(again && self.register_again())
    }

    /// Whether the whole result is at hand.
    pub(in crate::hub) fn is_whole(&self) -> bool {
        self.rows
            .as_ref()
            .is_some_and(|rows| !rows.has_missing_bodies())
    }

    /// Its bytes: those of its rows, and those of pending changes.
    pub(in crate::hub) fn bytes(&self) -> (usize, usize) {
        let rows = self.rows.as_ref().map_or(0, ResultRows::bytes);
        let parts = self.parts.values().flatten();
        let parts: usize = parts.map(row_bytes).sum();
        let remembered = KEY_BYTES * self.removals.len();
        let waiting = self.deferred.bytes() + self.queue.bytes();
        (rows + remembered, waiting + parts)
    }

    /// Keeps an entry until the registration is complete.
    pub(in crate::hub) fn defer(&mut self, entry: LogEntry) {
        if !self.deferred.keep(entry) {
            self.registration = RegistrationProgress::Outdated;
        }
    }

    /// Takes the rows of a registration; returns the log entries since it was requested, and
    /// whether another registration must follow.
    pub(in crate::hub) fn registered(
        &mut self,
        (activation, request): (u64, StreamId),
        snapshot: PgSnapshot,
        rows: Vec<ResultRow>,
    ) -> (Vec<LogEntry>, bool) {
        let anew = self.rows.is_none() || activation != self.activation;
        self.activation = activation;
        self.answers.begin(request, anew);
        self.snapshot = snapshot;
        self.queue.clear();
        let (offset, limit) = (self.definition.offset, self.definition.limit);
        let cut = self.definition.sorted.then_some((offset, limit));
        if self.definition.sorted {
            self.window.begin();
        }
        // A window that is already shown continues from the sort node's answer.
        if cut.is_none() || self.rows.is_none() {
            // Rows that have been removed since will be reported again.
            for row in &rows {
                self.removals.remove(&row.key);
            }
            self.rows = Some(ResultRows::new(rows, cut));
        }
        let again = self.registration == RegistrationProgress::Outdated;
        self.registration_ids.1 += u64::from(again);
        self.registration = if again {
            RegistrationProgress::InProgress
        } else {
            RegistrationProgress::Done
        };
        (self.deferred.take(), again)
    }
}
