//! How a keyspace folds merge operands into a value.

use std::fmt::Debug;

/// Folds operands. Must be associative: the engine folds neighbours in any grouping, on reads,
/// in flushes and in compactions, but never changes their order.
pub trait Merge: Debug + Send + Sync {
    /// A stable name, kept in the manifest: a database opened with another merge is refused.
    fn name(&self) -> &'static str;

    /// The value of `key` from the value below, if any, and operands, the oldest first.
    fn full(&self, key: &[u8], below: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8>;

    /// One operand that does what `operands`, the oldest first, do; `None` if that is not known
    /// without the value below.
    fn partial(&self, key: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>>;

    /// Whether an operand with nothing below it is the value that it comes to, as it is.
    fn is_value_alone(&self) -> bool {
        false
    }

    /// Whether a value says no more than that there is none: operands on top of it come to what they
    /// come to by themselves. Such a value is dropped where nothing older can lie below it.
    fn is_nothing(&self, value: &[u8]) -> bool {
        let _ = value;
        false
    }
}
