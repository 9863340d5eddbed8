//! Comparing numbers of different types exactly.
//!
//! Converting an `i64` to a double would make 2^53 and 2^53 + 1 equal, and a
//! tenth as a decimal equal to the double nearest to it. Here numbers are
//! equal only when they are the same number.

use std::cmp::Ordering;

use crate::bson::ValueRef;
use crate::decimal::Decimal;
use crate::double::{cmp_f64, cmp_i64_f64, truncate_i64};

/// Compares two numbers; other values count as NaN.
#[must_use]
pub fn compare(a: ValueRef<'_>, b: ValueRef<'_>) -> Ordering {
    match (NumericValue::of(a), NumericValue::of(b)) {
        (NumericValue::Int(a), NumericValue::Int(b)) => a.cmp(&b),
        (NumericValue::Int(a), NumericValue::Double(b)) => cmp_i64_f64(a, b),
        (NumericValue::Double(a), NumericValue::Int(b)) => cmp_i64_f64(b, a).reverse(),
        (NumericValue::Double(a), NumericValue::Double(b)) => cmp_f64(a, b),
        (NumericValue::Decimal(a), NumericValue::Double(b)) => a.cmp_f64(b),
        (NumericValue::Double(a), NumericValue::Decimal(b)) => b.cmp_f64(a).reverse(),
        (NumericValue::Decimal(a), NumericValue::Int(b)) => a.total_cmp(Decimal::from(b)),
        (NumericValue::Int(a), NumericValue::Decimal(b)) => Decimal::from(a).total_cmp(b),
        (NumericValue::Decimal(a), NumericValue::Decimal(b)) => a.total_cmp(b),
    }
}

/// A number in the form in which it is computed.
#[derive(Debug, Clone, Copy)]
pub enum NumericValue {
    /// A whole number of either width.
    Int(i64),
    /// A double.
    Double(f64),
    /// A decimal128.
    Decimal(Decimal),
}

impl NumericValue {
    fn of(value: ValueRef<'_>) -> Self {
        Self::from_value(value).unwrap_or(Self::Double(f64::NAN))
    }

    /// The number, if the value is one.
    #[must_use]
    pub fn from_value(value: ValueRef<'_>) -> Option<Self> {
        Some(match value {
            ValueRef::Int32(int) => Self::Int(i64::from(int)),
            ValueRef::Int64(int) => Self::Int(int),
            ValueRef::Double(double) => Self::Double(double),
            ValueRef::Decimal(decimal) => Self::Decimal(decimal),
            _ => return None,
        })
    }

    /// The nearest double.
    #[must_use]
    #[allow(
        clippy::cast_precision_loss,
        reason = "the nearest double is the intended result"
    )]
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Double(double) => double,
            Self::Decimal(decimal) => decimal.to_f64(),
        }
    }

    /// The integer part, if it fits.
    #[must_use]
    pub fn truncate(self) -> Option<i64> {
        match self {
            Self::Int(int) => Some(int),
            Self::Double(double) => truncate_i64(double),
            Self::Decimal(decimal) => decimal.truncate_to_i64(),
        }
    }
}
