//! Stops a node, and reports its state.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::report::NodeFigures;

/// What a node shares with its supervisor.
#[derive(Debug, Default)]
pub struct Control {
    stop: AtomicBool,
    steps: AtomicU64,
    figures: Mutex<NodeFigures>,
}

impl Control {
    /// Stops the node.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the node was stopped.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Counts a step of the loop.
    pub(crate) fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of steps of the loop.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// The current figures in JSON.
    pub fn json(&self) -> String {
        self.figures
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .json()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut NodeFigures)) {
        change(&mut self.figures.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Stops the node when the process that started this one has ended.
pub(crate) fn stop_without_parent(parent: u32, control: &Control) {
    if std::os::unix::process::parent_id() != parent {
        control.stop();
    }
}
