//! How a sorted query follows its sort node.
//!
//! The first result comes from the registration. The sort node answers that with its window, which
//! may be older than what was shown; it is followed unseen until the sort node has handled all that
//! the registration saw, and has heard from each filter node behind that one's word that it watches
//! the query. Then the difference is shown, and every step from there on.

use std::collections::HashMap;

use crate::message::{NotificationSource, StreamId, WindowChange};

use super::change::ResultRows;

#[derive(Debug, Default)]
enum WindowState {
    /// The sort node has not answered.
    #[default]
    Unknown,
    /// Its window, unseen.
    Ahead(ResultRows),
    /// What is shown is its window.
    Shown,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct SortWindow {
    state: WindowState,
    /// By filter node: the time of its first tick behind its word that it watches the query.
    first_ticks: HashMap<NotificationSource, u64>,
    /// The time of the sort node's last tick.
    tick_us: u64,
    /// The place in front of the sort node's demand to be told the rows again.
    renewing: Option<StreamId>,
}

impl SortWindow {
    pub(super) fn begin(&mut self) {
        self.state = WindowState::Unknown;
        self.first_ticks.clear();
        self.renewing = None;
    }

    /// A node has a new holder. Of the sort node's own, the new window follows as a whole.
    pub(super) fn restarted(&mut self, source: NotificationSource) {
        self.first_ticks.remove(&source);
        if source == NotificationSource::Sort {
            self.renewing = None;
        }
    }

    pub(super) fn is_shown(&self) -> bool {
        matches!(self.state, WindowState::Shown)
    }

    pub(super) fn is_renewing(&self) -> bool {
        self.renewing.is_some()
    }

    pub(super) fn renewing_since(&self) -> Option<StreamId> {
        self.renewing
    }

    pub(super) fn renew(&mut self, before: StreamId) {
        self.renewing.get_or_insert(before);
    }

    pub(super) fn renewed(&mut self) {
        self.renewing = None;
    }

    /// The whole window; handed back if it is to be shown.
    pub(super) fn replace_window(&mut self, rows: ResultRows) -> Option<ResultRows> {
        self.renewing = None;
        if self.is_shown() {
            return Some(rows);
        }
        self.state = WindowState::Ahead(rows);
        None
    }

    /// Steps of the window; those that are to be shown.
    pub(super) fn step<'s>(&mut self, steps: &'s [WindowChange]) -> &'s [WindowChange] {
        match &mut self.state {
            WindowState::Unknown => &[],
            WindowState::Shown => steps,
            WindowState::Ahead(rows) => {
                for step in steps {
                    rows.step(step.clone());
                }
                &[]
            }
        }
    }

    pub(super) fn filter_ticked(&mut self, source: NotificationSource, time_us: u64) {
        self.first_ticks.entry(source).or_insert(time_us);
    }

    pub(super) fn sort_ticked(&mut self, time_us: u64) {
        self.tick_us = time_us;
    }

    /// Whether the sort node has heard that a filter node watches.
    pub(super) fn has_seen(&self, source: NotificationSource) -> bool {
        let first = self.first_ticks.get(&source);
        first.is_some_and(|first| *first <= self.tick_us)
    }

    /// The window that was followed unseen, from now on shown.
    pub(super) fn show(&mut self) -> Option<ResultRows> {
        match std::mem::take(&mut self.state) {
            WindowState::Ahead(rows) => {
                self.state = WindowState::Shown;
                Some(rows)
            }
            other => {
                self.state = other;
                None
            }
        }
    }
}
