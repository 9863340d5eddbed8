//! How a query comes by its rows: registered for the first time, again because something was lost,
//! or read again because bodies were let go.

use crate::message::{ResultRow, StreamId};
use crate::snapshot::PgSnapshot;

use super::super::change::{ResultRows, bytes_of};
use super::super::memory::KEY_BYTES;
use super::super::queue::LogEntry;
use super::HubQuery;

/// Bodies that are still missing are asked for again after so long.
const REFRESH_AGAIN_US: u64 = 1_000_000;

/// How far a registration of the query has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::hub) enum RegistrationProgress {
    /// It is on its way; what the log says meanwhile is kept.
    UnderWay,
    /// It is on its way, and something was lost meanwhile: another one has to follow.
    Outdated,
    /// Only bodies are on their way, which were let go and which somebody needs now. `lost`:
    /// something was lost meanwhile.
    Refreshing { lost: bool },
    /// It is done.
    Done,
}

impl HubQuery {
    /// Names the registration that is on its way. A query asks less often than 2^24 times.
    pub(in crate::hub) fn registration_id(&self) -> Option<u64> {
        let (number, times) = self.asked;
        (self.registration != RegistrationProgress::Done).then_some(number << 24 | times)
    }

    /// Whether something was lost, and the registration that makes up for it is not done.
    pub(in crate::hub) fn may_lack_something(&self) -> bool {
        let whole = [
            RegistrationProgress::Done,
            RegistrationProgress::Refreshing { lost: false },
        ];
        !whole.contains(&self.registration)
    }

    /// Needs to be registered again; returns whether that has to be asked for.
    pub(in crate::hub) fn register_again(&mut self) -> bool {
        let ask = self.registration == RegistrationProgress::Done;
        self.asked.1 += u64::from(ask);
        self.registration = match self.registration {
            RegistrationProgress::Done => RegistrationProgress::UnderWay,
            RegistrationProgress::Refreshing { .. } => {
                RegistrationProgress::Refreshing { lost: true }
            }
            RegistrationProgress::UnderWay | RegistrationProgress::Outdated => {
                RegistrationProgress::Outdated
            }
        };
        ask
    }

    /// Needs the bodies that were let go; returns whether a registration has to be asked for.
    pub(in crate::hub) fn refresh(&mut self, now_us: u64) -> bool {
        let again_us = self.refreshed_us.saturating_add(REFRESH_AGAIN_US);
        let ask = self.registration == RegistrationProgress::Done && again_us <= now_us;
        if ask {
            self.asked.1 += 1;
            self.registration = RegistrationProgress::Refreshing { lost: false };
        }
        ask
    }

    /// Takes bodies from a registration that was asked for because of them alone, and goes on as
    /// before, so that nobody notices. None: it was asked for because of more; else, whether another
    /// one has to follow, since nobody kept what the log said meanwhile.
    pub(in crate::hub) fn refreshed(
        &mut self,
        activation: u64,
        rows: &[ResultRow],
        now_us: u64,
    ) -> Option<bool> {
        let RegistrationProgress::Refreshing { lost } = self.registration else {
            return None;
        };
        self.refreshed_us = now_us;
        self.registration = RegistrationProgress::Done;
        let again = lost || activation != self.activation;
        if let Some(held) = self.rows.as_mut().filter(|_| !again) {
            held.fill(rows);
        }
        Some(again && self.register_again())
    }

    /// Whether the whole result is at hand.
    pub(in crate::hub) fn is_whole(&self) -> bool {
        self.rows.as_ref().is_some_and(|rows| !rows.is_thin())
    }

    /// What it takes, in bytes: its rows, and what waits to become part of them.
    pub(in crate::hub) fn bytes(&self) -> (usize, usize) {
        let rows = self.rows.as_ref().map_or(0, ResultRows::bytes);
        let parts = self.parts.values().flatten();
        let parts: usize = parts.map(bytes_of).sum();
        let remembered = KEY_BYTES * self.removals.len();
        let waiting = self.held_back.bytes() + self.queue.bytes();
        (rows + remembered, waiting + parts)
    }

    /// Keeps an entry until the registration is there.
    pub(in crate::hub) fn hold_back(&mut self, entry: LogEntry) {
        if !self.held_back.keep(entry) {
            self.registration = RegistrationProgress::Outdated;
        }
    }

    /// Takes the rows of a registration; returns what the log has said since it was asked for, and
    /// whether another registration has to follow.
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
        // A window that is shown already goes on from the sort node's answer.
        if cut.is_none() || self.rows.is_none() {
            // What is among the rows and gone since will be said once more.
            for row in &rows {
                self.removals.remove(&row.key);
            }
            self.rows = Some(ResultRows::new(rows, cut));
        }
        let again = self.registration == RegistrationProgress::Outdated;
        self.asked.1 += u64::from(again);
        self.registration = if again {
            RegistrationProgress::UnderWay
        } else {
            RegistrationProgress::Done
        };
        (self.held_back.take(), again)
    }
}
