//! The operations of one write.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::operation::DocumentOperation;
use crate::refusal::DocumentRefusal;

/// Operations in order; those that could not be parsed as errors. Parts share them.
#[derive(Debug, Clone)]
pub struct DocumentOperations {
    all: Arc<[Result<DocumentOperation, DocumentRefusal>]>,
    part: Range<usize>,
    is_list: bool,
}

impl DocumentOperations {
    /// Operations in the order in which they are applied.
    #[must_use]
    pub fn new(all: Vec<Result<DocumentOperation, DocumentRefusal>>) -> Self {
        Self {
            part: 0..all.len(),
            all: all.into(),
            is_list: false,
        }
    }

    /// The operations that a body lists.
    #[must_use]
    pub fn listed(all: Vec<Result<DocumentOperation, DocumentRefusal>>) -> Self {
        Self {
            is_list: true,
            ..Self::new(all)
        }
    }

    /// Whether a body lists them.
    pub(crate) const fn is_list(&self) -> bool {
        self.is_list
    }

    /// The number of the first one in the body.
    pub(crate) const fn first_number(&self) -> usize {
        self.part.start
    }

    /// All operations.
    pub fn as_slice(&self) -> &[Result<DocumentOperation, DocumentRefusal>] {
        self.all.get(self.part.clone()).unwrap_or_default()
    }

    /// The operations in a range.
    #[must_use]
    pub fn part(&self, part: Range<usize>) -> Self {
        let end = self.part.end.min(self.part.start.saturating_add(part.end));
        let start = end.min(self.part.start.saturating_add(part.start));
        Self {
            all: self.all.clone(),
            part: start..end,
            is_list: self.is_list,
        }
    }

    /// The collections that operations name, and the empty name if one names none.
    #[must_use]
    pub fn collections(&self) -> BTreeSet<&str> {
        let readable = self.as_slice().iter().flatten();
        readable
            .map(|operation| operation.collection.as_deref().unwrap_or_default())
            .collect()
    }

    /// The approximate size of their contents.
    #[must_use]
    pub fn size(&self) -> usize {
        let readable = self.as_slice().iter().flatten();
        readable.map(|operation| operation.size).sum()
    }
}
