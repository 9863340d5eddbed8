//! Figures of a matcher.

use crate::placement::Class;

/// The contents of a matcher, and its work since it was created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Queries by class; classes without any are left out.
    pub queries: Vec<(Class, usize)>,
    /// Residual queries by quota; quotas without any are left out.
    pub residual: Vec<([u8; 16], usize)>,
    /// Documents that were matched.
    pub documents: u64,
    /// Queries that the indexes proposed.
    pub candidates: u64,
    /// Those of them that matched.
    pub verified: u64,
    /// Evaluations of residual queries.
    pub residual_evaluations: u64,
    /// Evaluations that came to no answer.
    pub failures: u64,
    /// Queries that were moved to a better predicate.
    pub moves: u64,
    /// About how many bytes all of it takes.
    pub memory_bytes: usize,
}
