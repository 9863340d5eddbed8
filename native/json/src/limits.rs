//! Bounds on what a document may hold.

/// The limits of a document.
///
/// The length in bytes is not included: the receiver of the bytes limits it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonLimits {
    /// Arrays and objects open at the same time. A scalar alone has depth 0.
    pub max_depth: usize,
    /// Values of any kind in the whole document: scalars, arrays and objects; keys do not count.
    pub max_values: usize,
    /// Characters of one number as it is written.
    pub max_number_length: usize,
}

impl Default for JsonLimits {
    fn default() -> Self {
        Self {
            max_depth: 100,
            max_values: usize::MAX,
            max_number_length: 4_000,
        }
    }
}
