//! How a keyspace folds merge operands into a value.

use std::fmt::Debug;

/// Folds operands. Must be associative: the engine folds neighbours in any grouping, in reads,
/// flushes and compactions, but never changes their order.
pub trait Merge: Debug + Send + Sync {
    /// A stable name, stored in the manifest: a database cannot be opened with another merge.
    fn name(&self) -> &'static str;

    /// The value of `key` from the value below, if any, and operands, oldest first.
    fn full(&self, key: &[u8], below: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8>;

    /// One operand equivalent to `operands`, oldest first; `None` if that depends on the value
    /// below.
    fn partial(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>>;

    /// Whether an operand with nothing below it equals its value.
    fn is_value_alone(&self) -> bool {
        false
    }

    /// Whether a value is equivalent to no value: operands on top of it give the same result. Such
    /// a value is dropped if nothing older can be below it.
    fn is_nothing(&self, value: &[u8]) -> bool {
        let _ = value;
        false
    }
}
