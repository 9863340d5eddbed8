//! The list of `$in`.

use crate::bson::{Value, ValueRef};
use crate::order::compare;
use crate::pattern::Pattern;

/// The values of `$in`, sorted for binary search, and its regular expressions.
#[derive(Debug, Clone)]
pub struct List {
    values: Vec<Value>,
    patterns: Vec<Pattern>,
}

impl List {
    /// Sorts the values and drops duplicates.
    #[must_use]
    pub fn new(mut values: Vec<Value>, mut patterns: Vec<Pattern>) -> Self {
        values.sort_by(|a, b| compare(a.as_ref(), b.as_ref()));
        values.dedup_by(|a, b| compare(a.as_ref(), b.as_ref()).is_eq());
        patterns.sort_by(|a, b| (a.source(), a.options()).cmp(&(b.source(), b.options())));
        patterns.dedup();
        Self { values, patterns }
    }

    /// The values in order.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The regular expressions.
    #[must_use]
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// Whether a value equal to this one is in the list; missing counts as null.
    #[must_use]
    pub fn holds(&self, value: Option<ValueRef<'_>>) -> bool {
        let value = value.unwrap_or(ValueRef::Null);
        self.values
            .binary_search_by(|held| compare(held.as_ref(), value))
            .is_ok()
    }
}
