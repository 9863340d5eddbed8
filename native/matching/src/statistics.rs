//! Statistics of a matcher.

use crate::class::Class;

/// The contents of a matcher, and counters since it was created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Queries by class; classes without any are omitted.
    pub queries: Vec<(Class, usize)>,
    /// Residual queries by quota; quotas without any are omitted.
    pub residual: Vec<([u8; 16], usize)>,
    /// Documents that were matched.
    pub documents: u64,
    /// Queries that the indexes proposed.
    pub candidates: u64,
    /// Those of them that matched.
    pub verified: u64,
    /// Evaluations of residual queries.
    pub residual_evaluations: u64,
    /// Evaluations that failed.
    pub failures: u64,
    /// Queries that were moved to a better predicate.
    pub moves: u64,
    /// The approximate total size in bytes.
    pub memory_bytes: usize,
}
