//! IEEE 754 decimal128 in the binary integer encoding that BSON uses.
//!
//! The sixteen bytes are kept unchanged, so that documents round-trip exactly; arithmetic works on
//! sign, coefficient (at most 34 digits, which fit a `u128`) and exponent, with [`wide::Wide`] for
//! intermediate results. Every operation rounds once, half to even, as the standard requires.

mod arithmetic;
mod compare;
mod convert;
pub(crate) mod exact;
mod text;
mod wide;

pub use arithmetic::Rounding;
pub use text::ParseError;

/// Digits of the coefficient.
pub(crate) const DIGITS: u32 = 34;
/// The largest coefficient.
pub(crate) const MAX_COEFFICIENT: u128 = 10_u128.pow(DIGITS) - 1;
/// The smallest and the largest exponent of the coefficient's last digit.
pub(crate) const MIN_EXPONENT: i32 = -6176;
pub(crate) const MAX_EXPONENT: i32 = 6111;

const SIGN: u128 = 1 << 127;
const INFINITY: u128 = 0b11110 << 122;
const NAN: u128 = 0b11111 << 122;

/// A decimal128 number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal(u128);

/// The parts of a decimal128 number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecimalParts {
    /// Not a number.
    Nan,
    /// An infinity; true when negative.
    Infinite(bool),
    /// (−1)^negative × coefficient × 10^exponent
    Finite(Finite),
}

/// A finite decimal number; the coefficient has at most 34 digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Finite {
    pub(crate) negative: bool,
    pub(crate) coefficient: u128,
    pub(crate) exponent: i32,
}

impl Finite {
    /// How many digits the coefficient has; zero has none.
    pub(crate) const fn digits(&self) -> i32 {
        wide::digits(self.coefficient).cast_signed()
    }
}

impl Decimal {
    /// Zero with exponent zero.
    pub const ZERO: Self = Self(0x3040 << 112);
    /// Not a number.
    pub const NAN: Self = Self(NAN);

    /// An infinity.
    #[must_use]
    pub const fn infinity(negative: bool) -> Self {
        if negative {
            Self(INFINITY | SIGN)
        } else {
            Self(INFINITY)
        }
    }

    /// Takes the sixteen bytes of BSON.
    #[must_use]
    pub const fn from_le_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_le_bytes(bytes))
    }

    /// The sixteen bytes of BSON.
    #[must_use]
    pub const fn to_le_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    /// Whether it is not a number.
    #[must_use]
    pub const fn is_nan(self) -> bool {
        self.0 & NAN == NAN
    }

    /// Whether it is an infinity.
    #[must_use]
    pub const fn is_infinite(self) -> bool {
        self.0 & NAN == INFINITY
    }

    /// Whether its sign is minus, including zero and NaN.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.0 & SIGN != 0
    }

    /// Whether it is a zero of either sign.
    #[must_use]
    pub fn is_zero(self) -> bool {
        matches!(
            self.parts(),
            DecimalParts::Finite(Finite { coefficient: 0, .. })
        )
    }

    /// The same magnitude with the other sign.
    #[must_use]
    pub const fn negate(self) -> Self {
        Self(self.0 ^ SIGN)
    }

    /// The same magnitude without sign.
    #[must_use]
    pub const fn abs(self) -> Self {
        Self(self.0 & !SIGN)
    }

    /// Decodes the number. Non-canonical coefficients are zero, as the standard requires.
    pub(crate) fn parts(self) -> DecimalParts {
        if self.is_nan() {
            return DecimalParts::Nan;
        }
        if self.is_infinite() {
            return DecimalParts::Infinite(self.is_negative());
        }
        // With the two bits after the sign set the coefficient would begin
        // with 0b100 and exceed 34 digits.
        let large = (self.0 >> 125) & 0b11 == 0b11;
        let (biased, coefficient) = if large {
            ((self.0 >> 111) & 0x3FFF, 0)
        } else {
            ((self.0 >> 113) & 0x3FFF, self.0 & ((1 << 113) - 1))
        };
        let coefficient = if coefficient > MAX_COEFFICIENT {
            0
        } else {
            coefficient
        };
        let exponent = i32::try_from(biased).unwrap_or(0) + MIN_EXPONENT;
        DecimalParts::Finite(Finite {
            negative: self.is_negative(),
            coefficient,
            exponent,
        })
    }

    /// Encodes a number whose coefficient and exponent are in range.
    pub(crate) fn pack(finite: Finite) -> Self {
        let exponent = finite.exponent.clamp(MIN_EXPONENT, MAX_EXPONENT);
        let biased = u128::try_from(exponent - MIN_EXPONENT).unwrap_or(0);
        let sign = if finite.negative { SIGN } else { 0 };
        Self(sign | (biased << 113) | finite.coefficient.min(MAX_COEFFICIENT))
    }
}
