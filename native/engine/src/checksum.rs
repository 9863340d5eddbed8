//! Comparing checksums.

/// Whether a stored checksum equals the computed one. Always true when fuzzing, to reach the code
/// after the check.
pub(crate) fn agree<T: PartialEq + Copy>(stored: T, computed: T) -> bool {
    cfg!(fuzzing) || stored == computed
}
