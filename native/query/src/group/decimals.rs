//! Sums of decimals that are exact, whatever the order in which they are added.
//!
//! Coefficients are added up by exponent, in two halves of 17 digits, so that 2^64 of them fit.
//! They are aligned, added and rounded only once, when the sum is read. The result has the least
//! exponent of what is in the sum, as decimal sums have.

use std::collections::BTreeMap;

use crate::decimal::Decimal;
use crate::decimal::exact::{ScaledInteger, sum};

/// Digits of a half.
const HALF: u128 = 10_u128.pow(17);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DecimalColumn {
    high: i128,
    low: i128,
    count: i64,
}

/// An exact sum of decimals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DecimalSum {
    columns: BTreeMap<i32, DecimalColumn>,
    nan: i64,
    infinite: i64,
    negative_infinite: i64,
}

impl DecimalSum {
    /// Adds a decimal `times` times; a negative number removes it.
    pub(super) fn add(&mut self, decimal: Decimal, times: i64) {
        let Some((negative, coefficient, exponent)) = decimal.finite() else {
            let count = match (decimal.is_nan(), decimal.is_negative()) {
                (true, _) => &mut self.nan,
                (_, false) => &mut self.infinite,
                (_, true) => &mut self.negative_infinite,
            };
            *count += times;
            return;
        };
        let signed = if negative {
            -i128::from(times)
        } else {
            times.into()
        };
        let half = |number: u128| i128::try_from(number).unwrap_or(0) * signed;
        let column = self.columns.entry(exponent).or_default();
        column.high += half(coefficient / HALF);
        column.low += half(coefficient % HALF);
        column.count += times;
        if column.count == 0 {
            self.columns.remove(&exponent);
        }
    }

    /// The nearest decimal to the sum plus an integer.
    pub(super) fn value(&self, integer: i128) -> Decimal {
        let infinities = (self.infinite != 0, self.negative_infinite != 0);
        match (self.nan != 0, infinities) {
            (true, _) | (_, (true, true)) => return Decimal::NAN,
            (_, (true, _)) => return Decimal::infinity(false),
            (_, (_, true)) => return Decimal::infinity(true),
            _ => {}
        }
        let halves = self.columns.iter().flat_map(|(&exponent, column)| {
            let piece = |number, exponent| ScaledInteger { number, exponent };
            [
                piece(column.low, exponent),
                piece(column.high, exponent + 17),
            ]
        });
        let integer = Some(integer).filter(|one| *one != 0);
        let integer = integer.map(|number| ScaledInteger {
            number,
            exponent: 0,
        });
        sum(halves.chain(integer))
    }
}
