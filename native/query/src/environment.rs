//! What an evaluation needs besides filter and document.

use crate::fuel::Fuel;

/// Fuel and time of one evaluation.
#[derive(Debug, Default)]
pub struct EvaluationContext {
    /// What is left of the allowance.
    pub fuel: Fuel,
    /// `$$NOW`: milliseconds since 1970, the same for a whole query.
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
