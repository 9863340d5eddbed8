//! Exact sums of doubles, independent of the order of addition.
//!
//! A finite double is an integer times 2^−1074. The sum of such integers is kept in limbs of 32
//! bits, each a signed digit from −2^31 to 2^31 − 1: every integer has exactly one such form, so
//! two accumulators of the same doubles are the same bytes. It is rounded only when it is read, to
//! the nearest double, ties to even. NaN and infinities are counted separately.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "digits are cut on purpose"
)]
#![cfg_attr(
    test,
    allow(
        clippy::cast_precision_loss,
        reason = "tests compare what is exact, with numbers that are small"
    )
)]

/// Bits of a limb.
const LIMB_BITS: u32 = 32;
/// The unit is 2^−`UNIT`.
const UNIT: i32 = 1074;
/// Bits of a double's significand.
const SIGNIFICAND_BITS: u32 = 53;
const FRACTION_MASK: u64 = (1 << 52) - 1;
/// More limbs than 2^40 of the largest doubles need.
const MAX_LIMBS: usize = 68;

/// An exact sum.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExactSum {
    /// By position, ascending; none is zero.
    limbs: Vec<(u8, i32)>,
    nan: i64,
    infinite: i64,
    negative_infinite: i64,
}

impl ExactSum {
    /// Adds a double `times` times; a negative number removes it.
    pub fn add(&mut self, double: f64, times: i64) {
        if double.is_nan() {
            self.nan = self.nan.saturating_add(times);
        } else if double == f64::INFINITY {
            self.infinite = self.infinite.saturating_add(times);
        } else if double == f64::NEG_INFINITY {
            self.negative_infinite = self.negative_infinite.saturating_add(times);
        } else if double != 0.0 {
            self.add_finite(double, times);
        }
    }

    fn add_finite(&mut self, double: f64, times: i64) {
        let bits = double.to_bits();
        let exponent = u32::try_from(bits >> 52 & 0x7ff).unwrap_or_default();
        let fraction = bits & FRACTION_MASK;
        let (significand, shift) = match exponent {
            0 => (fraction, 0),
            _ => (fraction | (FRACTION_MASK + 1), exponent - 1),
        };
        let sign = if double.is_sign_negative() { -1 } else { 1 };
        let mut rest = (i128::from(significand) << (shift % LIMB_BITS))
            .saturating_mul(sign)
            .saturating_mul(times.into());
        let mut position = (shift / LIMB_BITS) as u8;
        while rest != 0 {
            rest += i128::from(self.take(position));
            let digit = low_digit(rest);
            self.put(position, digit);
            rest = (rest - i128::from(digit)) >> LIMB_BITS;
            position = position.saturating_add(1);
        }
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        self.nan = self.nan.saturating_add(other.nan);
        self.infinite = self.infinite.saturating_add(other.infinite);
        self.negative_infinite = self
            .negative_infinite
            .saturating_add(other.negative_infinite);
        for &(position, digit) in &other.limbs {
            self.add_digit(position, digit);
        }
    }

    fn add_digit(&mut self, mut position: u8, digit: i32) {
        let mut rest = i64::from(digit);
        while rest != 0 {
            rest += i64::from(self.take(position));
            let digit = low_digit(rest.into());
            self.put(position, digit);
            rest = (rest - i64::from(digit)) >> LIMB_BITS;
            position = position.saturating_add(1);
        }
    }

    fn take(&self, position: u8) -> i32 {
        let index = self.limbs.binary_search_by_key(&position, |(at, _)| *at);
        let limb = index.ok().and_then(|at| self.limbs.get(at));
        limb.map_or(0, |(_, digit)| *digit)
    }

    fn put(&mut self, position: u8, digit: i32) {
        match self.limbs.binary_search_by_key(&position, |(at, _)| *at) {
            Ok(at) if digit == 0 => drop(self.limbs.remove(at)),
            Ok(at) => {
                if let Some(limb) = self.limbs.get_mut(at) {
                    limb.1 = digit;
                }
            }
            Err(_) if digit == 0 => {}
            Err(at) => self.limbs.insert(at, (position, digit)),
        }
    }

    /// The nearest double.
    #[must_use]
    pub fn value(&self) -> f64 {
        match (
            self.nan != 0,
            self.infinite != 0,
            self.negative_infinite != 0,
        ) {
            (true, ..) | (_, true, true) => f64::NAN,
            (_, true, _) => f64::INFINITY,
            (_, _, true) => f64::NEG_INFINITY,
            _ => self.finite(),
        }
    }

    fn finite(&self) -> f64 {
        // Its sign is that of the highest digit.
        let Some(&(highest, top)) = self.limbs.last() else {
            return 0.0;
        };
        let negative = top < 0;
        let mut words = vec![0_u32; usize::from(highest) + 2];
        let mut carry = 0_i64;
        for (position, word) in words.iter_mut().enumerate() {
            let digit = u8::try_from(position).map_or(0, |position| self.take(position));
            let digit = if negative {
                -i64::from(digit)
            } else {
                i64::from(digit)
            };
            let sum = digit + carry;
            *word = (sum & i64::from(u32::MAX)) as u32;
            carry = sum >> LIMB_BITS;
        }
        let magnitude = round(&words);
        if negative { -magnitude } else { magnitude }
    }

    /// The numbers of NaNs, infinities and negative infinities.
    #[must_use]
    pub const fn specials(&self) -> [i64; 3] {
        [self.nan, self.infinite, self.negative_infinite]
    }

    /// The limbs: position and digit, ascending, none of them zero.
    #[must_use]
    pub fn limbs(&self) -> &[(u8, i32)] {
        &self.limbs
    }

    /// The sum with these parts, if they are valid.
    #[must_use]
    pub fn from_parts(
        [nan, infinite, negative_infinite]: [i64; 3],
        limbs: Vec<(u8, i32)>,
    ) -> Option<Self> {
        let mut pairs = limbs.iter().zip(limbs.iter().skip(1));
        let ascend = pairs.all(|(before, after)| before.0 < after.0);
        let whole = limbs.len() <= MAX_LIMBS && limbs.iter().all(|(_, digit)| *digit != 0);
        (ascend && whole).then_some(Self {
            limbs,
            nan,
            infinite,
            negative_infinite,
        })
    }
}

/// The digit from −2^31 to 2^31 − 1 that a number is congruent to, modulo 2^32.
fn low_digit(number: i128) -> i32 {
    (number & i128::from(u32::MAX)) as u32 as i32
}

/// The double that is nearest to a number of units, given as words from the lowest on.
#[allow(clippy::cast_precision_loss, reason = "53 bits are exact")]
fn round(words: &[u32]) -> f64 {
    let bit = |at: usize| {
        words
            .get(at / 32)
            .is_some_and(|word| word >> (at % 32) & 1 == 1)
    };
    let Some(top) = (0..words.len() * 32).rev().find(|&at| bit(at)) else {
        return 0.0;
    };
    let kept = SIGNIFICAND_BITS as usize;
    let lowest = (top + 1).saturating_sub(kept);
    let mut significand = (lowest..=top)
        .rev()
        .fold(0_u64, |number, at| number << 1 | u64::from(bit(at)));
    if lowest > 0 && bit(lowest - 1) {
        let is_above_half = (0..lowest - 1).any(bit);
        if is_above_half || significand & 1 == 1 {
            significand += 1;
        }
    }
    scale(
        significand as f64,
        i32::try_from(lowest).unwrap_or(i32::MAX) - UNIT,
    )
}

/// A number times a power of two; exact, or infinite.
fn scale(mut number: f64, mut power: i32) -> f64 {
    while power > 1000 {
        number *= 2_f64.powi(1000);
        power -= 1000;
    }
    while power < -1000 {
        // Only whole numbers of units come here, so nothing is rounded.
        number *= 2_f64.powi(-1000);
        power += 1000;
    }
    number * 2_f64.powi(power)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(doubles: &[f64]) -> ExactSum {
        let mut sum = ExactSum::default();
        doubles.iter().for_each(|double| sum.add(*double, 1));
        sum
    }

    #[test]
    fn rounding_errors_are_kept() {
        assert_eq!(sum(&[1e308, 1.0, -1e308]).value(), 1.0);
        assert_eq!(sum(&[1e16, 1.0, 1.0, -1e16]).value(), 2.0);
        assert_eq!(sum(&[5e-324, 1e308, -1e308]).value(), 5e-324);
        assert_eq!(sum(&[0.1; 10]).value(), 1.0);
        assert_eq!(sum(&[f64::MAX, f64::MAX]).value(), f64::INFINITY);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]).value(), f64::MAX);
    }

    #[test]
    fn infinities_and_nan_can_be_taken_away_again() {
        let mut sum = sum(&[1.0, f64::INFINITY]);
        assert_eq!(sum.value(), f64::INFINITY);
        sum.add(f64::NEG_INFINITY, 1);
        assert!(sum.value().is_nan());
        sum.add(f64::INFINITY, -1);
        sum.add(f64::NEG_INFINITY, -1);
        assert_eq!(sum.value(), 1.0);
    }

    proptest! {
        #[test]
        fn one_double_is_itself(double in any::<f64>().prop_filter("finite", |one| one.is_finite())) {
            prop_assert_eq!(sum(&[double]).value(), double);
        }

        #[test]
        fn the_order_of_additions_never_matters(
            doubles in prop::collection::vec(any::<f64>(), 0..20),
            turn in any::<prop::sample::Index>(),
        ) {
            let mut turned = doubles.clone();
            if !turned.is_empty() {
                turned.rotate_left(turn.index(doubles.len()));
            }
            let whole = sum(&doubles);
            prop_assert_eq!(&whole, &sum(&turned));
            let half = doubles.len() / 2;
            let mut parts = sum(&doubles[half..]);
            parts.merge(&sum(&doubles[..half]));
            prop_assert_eq!(&whole, &parts);
            let again = ExactSum::from_parts(whole.specials(), whole.limbs().to_vec());
            prop_assert_eq!(again, Some(whole));
        }

        #[test]
        fn small_numbers_sum_as_integers_do(
            numbers in prop::collection::vec(-1_000_000_i32..1_000_000, 0..50),
        ) {
            let doubles: Vec<f64> = numbers.iter().map(|&one| f64::from(one) / 8.0).collect();
            let expected: i64 = numbers.iter().map(|&one| i64::from(one)).sum();
            prop_assert_eq!(sum(&doubles).value() * 8.0, expected as f64);
        }

        #[test]
        fn removed_summands_leave_no_remainder(
            doubles in prop::collection::vec(any::<f64>(), 0..20),
        ) {
            let mut sum = sum(&doubles);
            doubles.iter().for_each(|double| sum.add(*double, -1));
            prop_assert_eq!(sum, ExactSum::default());
        }
    }
}
