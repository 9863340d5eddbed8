//! How a sorted query follows its sort node.
//!
//! The first result comes from the registration. The sort node answers with its window, which may
//! be older than what was shown. The window is followed in the background until the sort node has
//! handled all that the registration saw, and has processed each filter node's report that it
//! watches the query. Then the difference is shown, and every step from there on.

use std::collections::HashMap;

use crate::message::{NotificationSource, StreamId, WindowChange};

use super::change::ResultRows;

#[derive(Debug, Default)]
enum WindowState {
    /// The sort node has not answered.
    #[default]
    Unknown,
    /// Its window, not shown yet.
    Ahead(ResultRows),
    /// What is shown is its window.
    Shown,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct SortWindow {
    state: WindowState,
    /// By filter node: the time of its first tick after it reported that it watches the query.
    first_ticks: HashMap<NotificationSource, u64>,
    /// The time of the sort node's last tick.
    tick_us: u64,
    /// The position before the sort node's request for new rows.
    renewing: Option<StreamId>,
}

impl SortWindow {
    pub(super) fn begin(&mut self) {
        self.state = WindowState::Unknown;
        self.first_ticks.clear();
        self.renewing = None;
    }

    /// A node has a new holder. For the sort node itself, the whole new window follows.
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

    /// Replaces the window; returns the rows if they are to be shown.
    pub(super) fn replace_window(&mut self, rows: ResultRows) -> Option<ResultRows> {
        self.renewing = None;
        if self.is_shown() {
            return Some(rows);
        }
        self.state = WindowState::Ahead(rows);
        None
    }

    /// Applies steps to the window; returns those to be shown.
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

    /// Whether the sort node has processed a filter node's report that it watches.
    pub(super) fn has_seen(&self, source: NotificationSource) -> bool {
        let first = self.first_ticks.get(&source);
        first.is_some_and(|first| *first <= self.tick_us)
    }

    /// The window that was followed in the background, shown from now on.
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
