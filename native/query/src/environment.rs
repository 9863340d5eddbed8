//! The context of an evaluation: fuel and time.

use crate::fuel::Fuel;

/// Fuel and time of one evaluation.
#[derive(Debug, Default)]
pub struct EvaluationContext {
    /// The remaining fuel.
    pub fuel: Fuel,
    /// `$$NOW`, in milliseconds since 1970; the same for a whole query.
    pub now_ms: i64,
}

impl EvaluationContext {
    /// Fresh fuel at this time.
    #[must_use]
    pub fn at(now_ms: i64) -> Self {
        Self {
            fuel: Fuel::default(),
            now_ms,
        }
    }
}
