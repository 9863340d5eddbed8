//! The limits of a matcher, and the errors beyond them.

use std::fmt;

/// The limits of a matcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatcherLimits {
    /// The maximum number of residual queries of one group, which bounds the cost of a document.
    pub residual_per_group: usize,
    /// The maximum number of residual queries that count against one quota.
    pub residual_per_quota: usize,
    /// The maximum size of the sample documents of all groups, in bytes.
    pub sample_bytes: usize,
}

impl Default for MatcherLimits {
    fn default() -> Self {
        Self {
            residual_per_group: 1_000,
            residual_per_quota: 1_000,
            sample_bytes: 64 * 1024 * 1024,
        }
    }
}

/// Why a query was not added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryRefusal {
    /// It would have to be evaluated for every document, and there are as
    /// many such queries as are allowed.
    ResidualQuota,
}

impl fmt::Display for QueryRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ResidualQuota => f.write_str("too many live queries that no predicate can find"),
        }
    }
}

impl std::error::Error for QueryRefusal {}
