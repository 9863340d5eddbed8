//! Sums of many numbers that are rounded once.

use super::arithmetic::Unrounded;
use super::wide::Wide;
use super::{Decimal, DecimalParts};

/// `number × 10^exponent`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScaledInteger {
    pub(crate) number: i128,
    pub(crate) exponent: i32,
}

/// The digits that determine the result, besides whether any others follow: those of a decimal, and
/// two more.
const KEPT: usize = 36;
/// The digits of an `i128`, with space for carries.
const ROOM: usize = 48;

/// The nearest decimal to the sum of all pieces. Its exponent is the least of their exponents,
/// unless that would need too many digits.
pub(crate) fn sum(pieces: impl Iterator<Item = ScaledInteger>) -> Decimal {
    let pieces: Vec<ScaledInteger> = pieces.collect();
    let exponents = || pieces.iter().map(|piece| piece.exponent);
    let (Some(least), Some(most)) = (exponents().min(), exponents().max()) else {
        return Decimal::ZERO;
    };
    let span = usize::try_from(most - least).unwrap_or(0);
    let mut digits = vec![0_i64; span + ROOM];
    for piece in &pieces {
        let at = usize::try_from(piece.exponent - least).unwrap_or(0);
        let sign = if piece.number < 0 { -1 } else { 1 };
        let mut rest = piece.number.unsigned_abs();
        for digit in digits.iter_mut().skip(at) {
            *digit += sign * i64::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
    }
    let negative = carried(&mut digits);
    let top = digits.iter().rposition(|digit| *digit != 0);
    let length = top.map_or(0, |top| top + 1);
    let dropped = length.saturating_sub(KEPT);
    let (rest, kept) = digits.split_at_checked(dropped).unwrap_or_default();
    let kept = kept.iter().take(length - dropped).rev();
    let value = kept.fold(0_u128, |number, digit| {
        number * 10 + u128::try_from(*digit).unwrap_or(0)
    });
    let unrounded = Unrounded {
        negative,
        value: Wide::new(value),
        exponent: least.saturating_add(i32::try_from(dropped).unwrap_or(i32::MAX)),
        sticky: rest.iter().any(|digit| *digit != 0),
    };
    unrounded.round().0
}

/// Propagates carries, so that each digit is from 0 to 9. Returns whether the number is negative;
/// the digits are then its magnitude.
fn carried(digits: &mut [i64]) -> bool {
    let carry = |digits: &mut [i64]| {
        digits.iter_mut().fold(0, |carry, digit| {
            let all = *digit + carry;
            *digit = all.rem_euclid(10);
            all.div_euclid(10)
        })
    };
    if carry(digits) >= 0 {
        return false;
    }
    // The digits are a ten's complement; the magnitude is the distance to the next power of ten.
    digits.iter_mut().for_each(|digit| *digit = -*digit);
    carry(digits);
    true
}

impl Decimal {
    /// Sign, coefficient and exponent of a finite number.
    pub(crate) fn finite(self) -> Option<(bool, u128, i32)> {
        match self.parts() {
            DecimalParts::Finite(finite) => {
                Some((finite.negative, finite.coefficient, finite.exponent))
            }
            DecimalParts::Nan | DecimalParts::Infinite(_) => None,
        }
    }
}
