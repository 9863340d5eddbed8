//! Fuel: it bounds every evaluation, whatever the filter and the document.
//!
//! A step is roughly one visited element; memory counts what expressions build. Cells, not atomics:
//! one evaluation belongs to one thread.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::EvaluationFailure;
use crate::limits::{EVALUATION_BYTES, EVALUATION_STEPS};

/// What is left for one evaluation.
#[derive(Debug)]
pub struct Fuel {
    steps: Cell<u64>,
    bytes: Cell<usize>,
}

static STEPS: AtomicU64 = AtomicU64::new(EVALUATION_STEPS);

/// Lowers the steps of every evaluation of this process. For tests of what
/// happens to documents that cannot be evaluated, which are large otherwise.
#[doc(hidden)]
pub fn limit_steps(steps: u64) {
    STEPS.store(steps.min(EVALUATION_STEPS), Ordering::Relaxed);
}

impl Default for Fuel {
    fn default() -> Self {
        Self::new(STEPS.load(Ordering::Relaxed), EVALUATION_BYTES)
    }
}

impl Fuel {
    /// Fuel for `steps` steps and `bytes` bytes.
    #[must_use]
    pub const fn new(steps: u64, bytes: usize) -> Self {
        Self {
            steps: Cell::new(steps),
            bytes: Cell::new(bytes),
        }
    }

    /// Burns one step.
    #[inline]
    pub fn step(&self) -> Result<(), EvaluationFailure> {
        self.steps(1)
    }

    /// Burns `count` steps.
    #[inline]
    pub fn steps(&self, count: u64) -> Result<(), EvaluationFailure> {
        match self.steps.get().checked_sub(count) {
            Some(left) => {
                self.steps.set(left);
                Ok(())
            }
            None => Err(EvaluationFailure::OutOfSteps),
        }
    }

    /// How many steps are left.
    #[must_use]
    pub const fn steps_left(&self) -> u64 {
        self.steps.get()
    }

    /// Accounts for `count` bytes that were or are about to be built, and for
    /// the work of building them.
    #[inline]
    pub fn bytes(&self, count: usize) -> Result<(), EvaluationFailure> {
        match self.bytes.get().checked_sub(count) {
            Some(left) => {
                self.bytes.set(left);
                self.steps(1 + (count as u64) / 64)
            }
            None => Err(EvaluationFailure::OutOfMemory),
        }
    }
}
