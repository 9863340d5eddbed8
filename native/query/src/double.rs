//! Doubles as integers, and the order of both.
//!
//! Converting an `i64` to a double would make 2^53 and 2^53 + 1 equal. Here a double and an integer
//! are equal only if they are the same number.

use std::cmp::Ordering;

/// The integer with the same value as a double, if there is one that fits.
#[must_use]
#[allow(
    clippy::cast_possible_truncation,
    reason = "the range is checked just before"
)]
pub fn exact_i64(double: f64) -> Option<i64> {
    if double.trunc() == double && in_i64_range(double) {
        Some(double as i64)
    } else {
        None
    }
}

/// The integer part, if it fits.
#[must_use]
pub fn truncate_i64(double: f64) -> Option<i64> {
    exact_i64(double.trunc())
}

/// Whether the double is in [−2^63, 2^63).
fn in_i64_range(double: f64) -> bool {
    (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&double)
}

/// Compares doubles: NaN is least and equal to itself, −0 equals 0.
#[must_use]
pub fn cmp_f64(a: f64, b: f64) -> Ordering {
    match a.partial_cmp(&b) {
        Some(order) => order,
        None => b.is_nan().cmp(&a.is_nan()),
    }
}

/// Compares an integer with a double exactly.
#[must_use]
pub fn cmp_i64_f64(int: i64, double: f64) -> Ordering {
    if double.is_nan() {
        return Ordering::Greater;
    }
    if !in_i64_range(double) {
        return if double > 0.0 {
            Ordering::Less
        } else {
            Ordering::Greater
        };
    }
    let whole = truncate_i64(double).unwrap_or(0);
    // Equal whole parts: the fraction decides, with the double's sign.
    int.cmp(&whole).then_with(|| cmp_f64(0.0, double.fract()))
}
