//! Comparing checksums.

/// Whether a stored checksum is the one that was computed. Fuzz targets are let past: they look for
/// what happens behind.
pub(crate) fn agree<T: PartialEq + Copy>(stored: T, computed: T) -> bool {
    cfg!(fuzzing) || stored == computed
}
