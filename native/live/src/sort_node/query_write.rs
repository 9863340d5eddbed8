//! A write that concerns a query.

use std::sync::Arc;

use crate::message::{AfterImage, QueryHash, StreamId};

/// A write that concerns a query.
#[derive(Debug, Clone)]
pub(super) struct QueryWrite {
    pub(super) image: Arc<AfterImage>,
    /// Whether the document matches now.
    pub(super) matches: bool,
    /// Where in the log it was reported, and by which source.
    pub(super) at: StreamId,
    pub(super) partition: u16,
    /// The side, if the document is a looked-up one.
    pub(super) side: Option<QueryHash>,
}
