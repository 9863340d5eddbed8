//! Fuel: no evaluation runs without end, whatever the filter and the document.
//!
//! A step is about one element looked at; memory counts what expressions
//! build. Cells, not atomics: one evaluation belongs to one thread.

use std::cell::Cell;

use crate::error::Failure;
use crate::limits::{EVALUATION_BYTES, EVALUATION_STEPS};

/// What is left for one evaluation.
#[derive(Debug)]
pub struct Fuel {
    steps: Cell<u64>,
    bytes: Cell<usize>,
}

impl Default for Fuel {
    fn default() -> Self {
        Self::new(EVALUATION_STEPS, EVALUATION_BYTES)
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
    pub fn step(&self) -> Result<(), Failure> {
        self.steps(1)
    }

    /// Burns `count` steps.
    #[inline]
    pub fn steps(&self, count: u64) -> Result<(), Failure> {
        match self.steps.get().checked_sub(count) {
            Some(left) => {
                self.steps.set(left);
                Ok(())
            }
            None => Err(Failure::OutOfSteps),
        }
    }

    /// Accounts for `count` bytes that were or are about to be built, and for
    /// the work of building them.
    #[inline]
    pub fn bytes(&self, count: usize) -> Result<(), Failure> {
        match self.bytes.get().checked_sub(count) {
            Some(left) => {
                self.bytes.set(left);
                self.steps(1 + (count as u64) / 64)
            }
            None => Err(Failure::OutOfMemory),
        }
    }
}
