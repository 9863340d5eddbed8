//! To and from the other number types.

use super::arithmetic::{Rounding, Unrounded};
use super::wide::{Wide, power_of_ten};
use super::{Decimal, DecimalParts, Finite};

impl From<i64> for Decimal {
    fn from(int: i64) -> Self {
        let coefficient = u128::from(int.unsigned_abs());
        Self::pack(Finite {
            negative: int < 0,
            coefficient,
            exponent: 0,
        })
    }
}

impl Decimal {
    /// The decimal nearest to a double with 15 digits, as in MongoDB's arithmetic and `$toDecimal`.
    #[must_use]
    pub fn from_f64(double: f64) -> Self {
        if double.is_nan() {
            return Self::NAN;
        }
        if double.is_infinite() {
            return Self::infinity(double.is_sign_negative());
        }
        if double == 0.0 {
            return if double.is_sign_negative() {
                Self::ZERO.negate()
            } else {
                Self::ZERO
            };
        }
        // Integers that a double holds exactly need no rounding.
        if let Some(int) = crate::double::exact_i64(double)
            .filter(|int| int.unsigned_abs() < 1_000_000_000_000_000)
        {
            return Self::from(int);
        }
        Self::parse_rounded(&format!("{double:.14e}")).unwrap_or(Self::NAN)
    }

    /// The nearest double.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        match self.parts() {
            DecimalParts::Nan => f64::NAN,
            DecimalParts::Infinite(true) => f64::NEG_INFINITY,
            DecimalParts::Infinite(false) => f64::INFINITY,
            DecimalParts::Finite(finite) => {
                let sign = if finite.negative { "-" } else { "" };
                let text = format!("{sign}{}e{}", finite.coefficient, finite.exponent);
                text.parse().unwrap_or(f64::NAN)
            }
        }
    }

    /// The integer with the same value, if there is one that fits.
    #[must_use]
    pub fn to_exact_i64(self) -> Option<i64> {
        let (magnitude, exact) = self.magnitude()?;
        if exact {
            signed(magnitude, self.is_negative())
        } else {
            None
        }
    }

    /// The integer part, if it fits.
    #[must_use]
    pub fn truncate_to_i64(self) -> Option<i64> {
        let (magnitude, _) = self.magnitude()?;
        signed(magnitude, self.is_negative())
    }

    /// The nearest integer, a tie to the even one, if it fits.
    #[must_use]
    pub fn round_to_i64(self) -> Option<i64> {
        self.round_to(0, Rounding::HalfEven).to_exact_i64()
    }

    /// The whole part without sign, and whether there was no fraction.
    fn magnitude(self) -> Option<(u128, bool)> {
        let DecimalParts::Finite(finite) = self.parts() else {
            return None;
        };
        if finite.coefficient == 0 {
            return Some((0, true));
        }
        if finite.exponent >= 0 {
            if finite.exponent > 20 {
                return None;
            }
            let scaled = Wide::product(
                finite.coefficient,
                power_of_ten(finite.exponent.unsigned_abs()),
            );
            return Some((scaled.narrow()?, true));
        }
        if finite.exponent < -38 {
            return Some((0, false));
        }
        let unit = power_of_ten(finite.exponent.unsigned_abs());
        Some((finite.coefficient / unit, finite.coefficient % unit == 0))
    }

    /// The number without trailing zeros, so that equal numbers have equal bytes.
    #[must_use]
    pub fn normalized(self) -> Self {
        let DecimalParts::Finite(mut finite) = self.parts() else {
            return if self.is_nan() { Self::NAN } else { self };
        };
        if finite.coefficient == 0 {
            return Self::ZERO;
        }
        while finite.coefficient % 10 == 0 && finite.exponent < super::MAX_EXPONENT {
            finite.coefficient /= 10;
            finite.exponent += 1;
        }
        Self::pack(finite)
    }

    /// An integer of up to 128 bits, rounded to 34 digits.
    #[must_use]
    pub fn from_i128(int: i128) -> Self {
        let value = Wide::new(int.unsigned_abs());
        Unrounded {
            negative: int < 0,
            value,
            exponent: 0,
            sticky: false,
        }
        .round()
        .0
    }
}

fn signed(magnitude: u128, negative: bool) -> Option<i64> {
    let magnitude = i128::try_from(magnitude).ok()?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}
