//! Sums, products, quotients, remainders and rounding.

use super::wide::{Wide, power_of_ten};
use super::{DIGITS, Decimal, DecimalParts, Finite, MAX_COEFFICIENT, MAX_EXPONENT, MIN_EXPONENT};

/// Digits that an operand is widened by before an inexact operation, so that
/// one sticky digit decides the rounding.
const GUARD: u32 = 36;

/// A result before rounding: `value × 10^exponent`, plus something below one
/// unit of `value` when `sticky`.
pub(crate) struct Unrounded {
    pub(crate) negative: bool,
    pub(crate) value: Wide,
    pub(crate) exponent: i32,
    pub(crate) sticky: bool,
}

impl Unrounded {
    /// Rounds half to even to 34 digits and to the range of exponents. Also returns whether digits
    /// were lost.
    pub(crate) fn round(self) -> (Decimal, bool) {
        let digits = self.value.digits().cast_signed();
        let over = (digits - DIGITS.cast_signed()).max(MIN_EXPONENT.saturating_sub(self.exponent));
        let (coefficient, exponent, inexact) = if over <= 0 {
            // A sticky part below the last digit is always less than half.
            (self.value.narrow().unwrap_or(0), self.exponent, self.sticky)
        } else {
            drop_digits(self.value, over.unsigned_abs(), self.exponent, self.sticky)
        };
        let (decimal, overflowed) = settle(self.negative, coefficient, exponent);
        (decimal, inexact || overflowed)
    }
}

/// Drops the last `over` digits, half to even; also returns whether any of them was not zero.
fn drop_digits(value: Wide, over: u32, exponent: i32, sticky: bool) -> (u128, i32, bool) {
    let exponent = exponent.saturating_add(over.cast_signed());
    if over > 76 {
        return (0, exponent, sticky || !value.is_zero());
    }
    let mut rest = value;
    let mut sticky = sticky;
    let mut left = over;
    // Of all but the last dropped digit, only whether any is not zero matters.
    while left > 1 {
        let step = (left - 1).min(37);
        let (quotient, remainder) = rest.divide(power_of_ten(step));
        sticky |= remainder != 0;
        rest = quotient;
        left -= step;
    }
    let (quotient, last) = rest.divide(10);
    let coefficient = quotient.narrow().unwrap_or(0);
    let up = last > 5 || (last == 5 && (sticky || coefficient % 2 == 1));
    let coefficient = if up { coefficient + 1 } else { coefficient };
    let inexact = sticky || last != 0;
    if coefficient > MAX_COEFFICIENT {
        (coefficient / 10, exponent.saturating_add(1), inexact)
    } else {
        (coefficient, exponent, inexact)
    }
}

/// Brings the exponent into range by padding zeros, or overflows.
fn settle(negative: bool, coefficient: u128, exponent: i32) -> (Decimal, bool) {
    let mut finite = Finite {
        negative,
        coefficient,
        exponent,
    };
    if coefficient == 0 {
        finite.exponent = exponent.clamp(MIN_EXPONENT, MAX_EXPONENT);
        return (Decimal::pack(finite), false);
    }
    while finite.exponent > MAX_EXPONENT {
        let padded = finite.coefficient.saturating_mul(10);
        if padded > MAX_COEFFICIENT {
            return (Decimal::infinity(negative), true);
        }
        finite.coefficient = padded;
        finite.exponent -= 1;
    }
    (Decimal::pack(finite), false)
}

impl Decimal {
    /// The sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        match (self.parts(), other.parts()) {
            (DecimalParts::Nan, _) | (_, DecimalParts::Nan) => Self::NAN,
            (DecimalParts::Infinite(a), DecimalParts::Infinite(b)) if a != b => Self::NAN,
            (DecimalParts::Infinite(negative), _) | (_, DecimalParts::Infinite(negative)) => {
                Self::infinity(negative)
            }
            (DecimalParts::Finite(a), DecimalParts::Finite(b)) => sum(a, b),
        }
    }

    /// The difference.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(other.negate())
    }

    /// The product.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        let negative = self.is_negative() != other.is_negative();
        match (self.parts(), other.parts()) {
            (DecimalParts::Nan, _) | (_, DecimalParts::Nan) => Self::NAN,
            (DecimalParts::Infinite(_), _) if other.is_zero() => Self::NAN,
            (_, DecimalParts::Infinite(_)) if self.is_zero() => Self::NAN,
            (DecimalParts::Infinite(_), _) | (_, DecimalParts::Infinite(_)) => {
                Self::infinity(negative)
            }
            (DecimalParts::Finite(a), DecimalParts::Finite(b)) => {
                let value = Wide::product(a.coefficient, b.coefficient);
                let exponent = a.exponent + b.exponent;
                Unrounded {
                    negative,
                    value,
                    exponent,
                    sticky: false,
                }
                .round()
                .0
            }
        }
    }

    /// The quotient; 0 ÷ 0 is NaN, x ÷ 0 an infinity.
    #[must_use]
    pub fn divided_by(self, other: Self) -> Self {
        let negative = self.is_negative() != other.is_negative();
        match (self.parts(), other.parts()) {
            (DecimalParts::Nan, _)
            | (_, DecimalParts::Nan)
            | (DecimalParts::Infinite(_), DecimalParts::Infinite(_)) => Self::NAN,
            (DecimalParts::Infinite(_), _) => Self::infinity(negative),
            (DecimalParts::Finite(_), DecimalParts::Infinite(_)) => Self::pack(Finite {
                negative,
                coefficient: 0,
                exponent: MIN_EXPONENT,
            }),
            (DecimalParts::Finite(a), DecimalParts::Finite(b)) => quotient(negative, a, b),
        }
    }

    /// The remainder of the division whose quotient is truncated toward zero; it has the sign of
    /// the dividend.
    #[must_use]
    pub fn remainder(self, other: Self) -> Self {
        match (self.parts(), other.parts()) {
            (DecimalParts::Nan | DecimalParts::Infinite(_), _) | (_, DecimalParts::Nan) => {
                Self::NAN
            }
            (DecimalParts::Finite(_), DecimalParts::Infinite(_)) => self,
            (DecimalParts::Finite(_), DecimalParts::Finite(Finite { coefficient: 0, .. })) => {
                Self::NAN
            }
            (DecimalParts::Finite(a), DecimalParts::Finite(b)) => remainder(a, b),
        }
    }

    /// Rounded to `places` digits after the point (before it when negative).
    #[must_use]
    pub fn round_to(self, places: i32, mode: Rounding) -> Self {
        let DecimalParts::Finite(finite) = self.parts() else {
            return self;
        };
        let target = places.saturating_neg();
        let over = target.saturating_sub(finite.exponent);
        if over <= 0 {
            return self;
        }
        let exponent = target.clamp(MIN_EXPONENT, MAX_EXPONENT);
        let (cut, rest) = if over > 38 {
            (0, finite.coefficient != 0)
        } else {
            let unit = power_of_ten(over.unsigned_abs());
            (finite.coefficient / unit, finite.coefficient % unit != 0)
        };
        let up = match mode {
            Rounding::TowardsZero => false,
            Rounding::Up => rest && !finite.negative,
            Rounding::Down => rest && finite.negative,
            Rounding::HalfEven => {
                let value = Wide::new(finite.coefficient);
                let (rounded, ..) = drop_digits(value, over.unsigned_abs(), finite.exponent, false);
                rounded > cut
            }
        };
        let value = Wide::new(cut + u128::from(up));
        Unrounded {
            negative: finite.negative,
            value,
            exponent,
            sticky: false,
        }
        .round()
        .0
    }

    /// The square root; NaN for negative numbers.
    #[must_use]
    pub fn square_root(self) -> Self {
        let DecimalParts::Finite(finite) = self.parts() else {
            return if self.is_infinite() && self.is_negative() {
                Self::NAN
            } else {
                self
            };
        };
        if finite.coefficient == 0 {
            return self;
        }
        if finite.negative {
            return Self::NAN;
        }
        // An even exponent and as many digits as keep the radicand below 10^70.
        let widen = 70 - finite.digits();
        let widen = widen - (finite.exponent - widen).rem_euclid(2);
        let first = widen.min(35).unsigned_abs();
        let second = widen.unsigned_abs() - first;
        let radicand =
            Wide::product(finite.coefficient, power_of_ten(first)).times(power_of_ten(second));
        let (root, exact) = integer_root(radicand);
        let exponent = (finite.exponent - widen) / 2;
        let ideal = finite.exponent.div_euclid(2);
        let (root, exponent) = if exact {
            strip_zeros(root, exponent, ideal)
        } else {
            (root, exponent)
        };
        Unrounded {
            negative: false,
            value: Wide::new(root),
            exponent,
            sticky: !exact,
        }
        .round()
        .0
    }
}

/// The rounding mode of [`Decimal::round_to`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest, a tie to the even digit.
    HalfEven,
    /// Truncate.
    TowardsZero,
    /// To the next larger.
    Up,
    /// To the next smaller.
    Down,
}

/// The integer square root of a number below 10^70, and whether it is exact.
fn integer_root(radicand: Wide) -> (u128, bool) {
    let (mut low, mut high) = (0_u128, power_of_ten(36));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if Wide::product(middle, middle) <= radicand {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    (low, Wide::product(low, low) == radicand)
}

fn sum(a: Finite, b: Finite) -> Decimal {
    let (large, small) = if a.exponent >= b.exponent {
        (a, b)
    } else {
        (b, a)
    };
    if large.coefficient == 0 {
        let negative = if small.coefficient == 0 {
            a.negative && b.negative
        } else {
            small.negative
        };
        return Decimal::pack(Finite { negative, ..small });
    }
    let distance = (large.exponent - small.exponent).unsigned_abs();
    let widen = distance.min(GUARD);
    let exponent = large.exponent - widen.cast_signed();
    let value = Wide::product(large.coefficient, power_of_ten(widen));
    let (aligned, lost) = match distance - widen {
        0 => (small.coefficient, false),
        beyond if beyond > 37 => (0, small.coefficient != 0),
        beyond => {
            let unit = power_of_ten(beyond);
            (small.coefficient / unit, small.coefficient % unit != 0)
        }
    };
    let aligned = Wide::new(aligned);
    combine(
        (large.negative, value),
        (small.negative, aligned),
        exponent,
        lost,
    )
}

/// Adds two aligned numbers; `lost` is set if the second was slightly larger.
fn combine(a: (bool, Wide), b: (bool, Wide), exponent: i32, lost: bool) -> Decimal {
    let unrounded = if a.0 == b.0 {
        Unrounded {
            negative: a.0,
            value: a.1.plus(b.1),
            exponent,
            sticky: lost,
        }
    } else if a.1 > b.1 {
        // The lost digits are subtracted: one unit less, with a sticky remainder above it.
        let value = a.1.minus(b.1).minus(Wide::new(u128::from(lost)));
        Unrounded {
            negative: a.0,
            value,
            exponent,
            sticky: lost,
        }
    } else {
        let value = b.1.minus(a.1);
        let negative = b.0 && !value.is_zero();
        Unrounded {
            negative,
            value,
            exponent,
            sticky: lost,
        }
    };
    unrounded.round().0
}

fn quotient(negative: bool, a: Finite, b: Finite) -> Decimal {
    if b.coefficient == 0 {
        return if a.coefficient == 0 {
            Decimal::NAN
        } else {
            Decimal::infinity(negative)
        };
    }
    let ideal = a.exponent - b.exponent;
    if a.coefficient == 0 {
        return settle(negative, 0, ideal).0;
    }
    let pad = DIGITS - a.digits().unsigned_abs();
    let dividend = Wide::product(a.coefficient * power_of_ten(pad), power_of_ten(GUARD));
    let (value, remainder) = dividend.divide(b.coefficient);
    let exponent = ideal - (pad + GUARD).cast_signed();
    if remainder != 0 {
        return Unrounded {
            negative,
            value,
            exponent,
            sticky: true,
        }
        .round()
        .0;
    }
    let (value, exponent) = strip_wide_zeros(value, exponent, ideal);
    Unrounded {
        negative,
        value,
        exponent,
        sticky: false,
    }
    .round()
    .0
}

/// Drops trailing zeros until the exponent is the ideal one.
fn strip_wide_zeros(mut value: Wide, mut exponent: i32, ideal: i32) -> (Wide, i32) {
    while exponent < ideal {
        let (quotient, remainder) = value.divide(10);
        if remainder != 0 {
            break;
        }
        (value, exponent) = (quotient, exponent + 1);
    }
    (value, exponent)
}

fn strip_zeros(value: u128, exponent: i32, ideal: i32) -> (u128, i32) {
    let (value, exponent) = strip_wide_zeros(Wide::new(value), exponent, ideal);
    (value.narrow().unwrap_or(0), exponent)
}

fn remainder(a: Finite, b: Finite) -> Decimal {
    let exponent = a.exponent.min(b.exponent);
    let result = |coefficient| {
        Decimal::pack(Finite {
            negative: a.negative,
            coefficient,
            exponent,
        })
    };
    if a.exponent >= b.exponent {
        let power = power_modulo((a.exponent - b.exponent).unsigned_abs(), b.coefficient);
        let (_, rest) = Wide::product(a.coefficient % b.coefficient, power).divide(b.coefficient);
        return result(rest);
    }
    let distance = (b.exponent - a.exponent).unsigned_abs();
    let scaled = if distance > 38 {
        None
    } else {
        b.coefficient.checked_mul(power_of_ten(distance))
    };
    match scaled {
        Some(divisor) => result(a.coefficient % divisor),
        None => result(a.coefficient),
    }
}

/// `10^exponent mod modulus`.
fn power_modulo(exponent: u32, modulus: u128) -> u128 {
    let mut result = 1 % modulus;
    let mut base = 10 % modulus;
    let mut left = exponent;
    while left > 0 {
        if left & 1 == 1 {
            result = Wide::product(result, base).divide(modulus).1;
        }
        base = Wide::product(base, base).divide(modulus).1;
        left >>= 1;
    }
    result
}
