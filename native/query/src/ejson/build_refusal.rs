//! Why a value of a text cannot be converted to BSON.

use crate::error::ErrorCode;

/// Why the builder rejects a value; the reader adds the location.
#[derive(Debug)]
pub(crate) struct BuildRefusal {
    pub(super) code: ErrorCode,
    /// The member of the request that is rejected as a whole.
    pub(super) member: Option<&'static str>,
    pub(super) detail: String,
}

impl BuildRefusal {
    pub(crate) fn new(detail: impl Into<String>) -> Self {
        Self {
            code: ErrorCode::InvalidJson,
            member: None,
            detail: detail.into(),
        }
    }
}
