//! Exact comparison, also with doubles.

use std::cmp::Ordering;

use super::wide::power_of_ten;
use super::{DIGITS, Decimal, DecimalParts, Finite};

impl Decimal {
    /// Compares numbers; NaN is less than all others and equal to itself.
    #[must_use]
    pub fn total_cmp(self, other: Self) -> Ordering {
        match (self.parts(), other.parts()) {
            (DecimalParts::Nan, DecimalParts::Nan) => Ordering::Equal,
            (DecimalParts::Nan, _) => Ordering::Less,
            (_, DecimalParts::Nan) => Ordering::Greater,
            (DecimalParts::Infinite(a), DecimalParts::Infinite(b)) => b.cmp(&a),
            (DecimalParts::Infinite(negative), _) => {
                if negative {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            (_, DecimalParts::Infinite(negative)) => {
                if negative {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
            (DecimalParts::Finite(a), DecimalParts::Finite(b)) => finite(a, b),
        }
    }

    /// The exponent of the first digit, and the coefficient padded to 34 digits. Comparing such
    /// pairs compares magnitudes.
    pub(crate) fn scientific(self) -> (i32, u128) {
        match self.parts() {
            DecimalParts::Finite(number) => (number.exponent + number.digits() - 1, padded(number)),
            _ => (0, 0),
        }
    }

    /// Compares with a double exactly, by the same order.
    #[must_use]
    pub fn cmp_f64(self, other: f64) -> Ordering {
        match (self.is_nan(), other.is_nan()) {
            (true, true) => return Ordering::Equal,
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => {}
        }
        // Rounding keeps order: only when the nearest double is the other
        // number itself do the lost digits decide.
        match self.to_f64().partial_cmp(&other).unwrap_or(Ordering::Equal) {
            Ordering::Equal => match self.parts() {
                DecimalParts::Finite(_) if other.is_infinite() => against_infinity(other),
                DecimalParts::Finite(finite) => exact(finite, other),
                _ => Ordering::Equal,
            },
            decided => decided,
        }
    }
}

/// Compares a finite decimal beyond the range of doubles with the infinity that it rounds to.
fn against_infinity(other: f64) -> Ordering {
    if other > 0.0 {
        Ordering::Less
    } else {
        Ordering::Greater
    }
}

fn finite(a: Finite, b: Finite) -> Ordering {
    match (a.coefficient == 0, b.coefficient == 0) {
        (true, true) => return Ordering::Equal,
        (true, false) => {
            return if b.negative {
                Ordering::Greater
            } else {
                Ordering::Less
            };
        }
        (false, true) => {
            return if a.negative {
                Ordering::Less
            } else {
                Ordering::Greater
            };
        }
        (false, false) => {}
    }
    if a.negative != b.negative {
        return b.negative.cmp(&a.negative);
    }
    let order = (a.exponent + a.digits())
        .cmp(&(b.exponent + b.digits()))
        .then_with(|| padded(a).cmp(&padded(b)));
    if a.negative { order.reverse() } else { order }
}

/// The coefficient filled with zeros to 34 digits.
fn padded(number: Finite) -> u128 {
    number.coefficient * power_of_ten(DIGITS - number.digits().unsigned_abs().min(DIGITS))
}

/// Compares a decimal with a finite double that is the nearest to it.
fn exact(decimal: Finite, double: f64) -> Ordering {
    if decimal.coefficient == 0 {
        return Ordering::Equal;
    }
    if double == 0.0 {
        return if decimal.negative {
            Ordering::Less
        } else {
            Ordering::Greater
        };
    }
    let bits = double.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    let biased = i32::try_from((bits >> 52) & 0x7FF).unwrap_or(0);
    let (mantissa, binary) = if biased == 0 {
        (fraction, -1074)
    } else {
        (fraction | (1 << 52), biased - 1075)
    };
    // decimal: c × 10^q, double: m × 2^e. Multiply both sides by the negative
    // powers of the other until all is whole.
    let mut left = Big::new(decimal.coefficient);
    let mut right = Big::new(u128::from(mantissa));
    if decimal.exponent >= 0 {
        left.times_power(10, decimal.exponent.unsigned_abs());
    } else {
        right.times_power(10, decimal.exponent.unsigned_abs());
    }
    if binary >= 0 {
        right.times_power(2, binary.unsigned_abs());
    } else {
        left.times_power(2, binary.unsigned_abs());
    }
    let order = left.cmp(&right);
    if decimal.negative {
        order.reverse()
    } else {
        order
    }
}

/// An unsigned integer of any size, least significant limb first, without
/// zeros at the end. The operands above stay below 5,000 bits.
#[derive(PartialEq, Eq)]
struct Big {
    limbs: Vec<u32>,
}

impl Big {
    fn new(number: u128) -> Self {
        let limbs =
            (0..4).map(|limb| u32::try_from((number >> (32 * limb)) & 0xFFFF_FFFF).unwrap_or(0));
        let mut big = Self {
            limbs: limbs.collect(),
        };
        big.trim();
        big
    }

    fn trim(&mut self) {
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
    }

    fn times(&mut self, factor: u32) {
        let mut carry = 0_u64;
        for limb in &mut self.limbs {
            let product = u64::from(*limb) * u64::from(factor) + carry;
            *limb = u32::try_from(product & 0xFFFF_FFFF).unwrap_or(0);
            carry = product >> 32;
        }
        if carry != 0 {
            self.limbs.push(u32::try_from(carry).unwrap_or(0));
        }
    }

    /// Multiplies by `base^exponent`, nine factors at a time.
    fn times_power(&mut self, base: u32, exponent: u32) {
        for _ in 0..exponent / 9 {
            self.times(base.pow(9));
        }
        self.times(base.pow(exponent % 9));
    }
}

impl PartialOrd for Big {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Big {
    fn cmp(&self, other: &Self) -> Ordering {
        let lengths = self.limbs.len().cmp(&other.limbs.len());
        lengths.then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev()))
    }
}
