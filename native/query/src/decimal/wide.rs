//! Unsigned integers of 256 bits, enough for the product of two coefficients.

use std::cmp::Ordering;

/// `high × 2^128 + low`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wide {
    high: u128,
    low: u128,
}

const HALF: u32 = 64;
const LOW_HALF: u128 = (1 << HALF) - 1;

/// `10^exponent`; the exponent is at most 38.
pub(crate) const fn power_of_ten(exponent: u32) -> u128 {
    10_u128.pow(if exponent > 38 { 38 } else { exponent })
}

/// How many decimal digits the number has; zero has none.
pub(crate) const fn digits(number: u128) -> u32 {
    match number.checked_ilog10() {
        Some(log) => log + 1,
        None => 0,
    }
}

impl Wide {
    pub(crate) const ZERO: Self = Self { high: 0, low: 0 };

    pub(crate) const fn new(low: u128) -> Self {
        Self { high: 0, low }
    }

    /// The product of two numbers.
    pub(crate) const fn product(a: u128, b: u128) -> Self {
        let (a_high, a_low) = (a >> HALF, a & LOW_HALF);
        let (b_high, b_low) = (b >> HALF, b & LOW_HALF);
        let bottom = a_low * b_low;
        let cross = a_high * b_low;
        let (middle, carried) = cross.overflowing_add(a_low * b_high);
        let (low, carry) = bottom.overflowing_add(middle << HALF);
        let carried = if carried { 1 << HALF } else { 0 };
        let high = a_high * b_high + (middle >> HALF) + carried + if carry { 1 } else { 0 };
        Self { high, low }
    }

    /// Multiplies by a number; the caller ensures that the product fits 256 bits.
    pub(crate) const fn times(self, factor: u128) -> Self {
        let low = Self::product(self.low, factor);
        Self {
            high: low.high.wrapping_add(self.high.wrapping_mul(factor)),
            low: low.low,
        }
    }

    pub(crate) const fn plus(self, other: Self) -> Self {
        let (low, carry) = self.low.overflowing_add(other.low);
        let high = self
            .high
            .wrapping_add(other.high)
            .wrapping_add(if carry { 1 } else { 0 });
        Self { high, low }
    }

    /// Subtracts a number that is not larger.
    pub(crate) const fn minus(self, other: Self) -> Self {
        let (low, borrow) = self.low.overflowing_sub(other.low);
        let high = self
            .high
            .wrapping_sub(other.high)
            .wrapping_sub(if borrow { 1 } else { 0 });
        Self { high, low }
    }

    pub(crate) const fn is_zero(self) -> bool {
        self.high == 0 && self.low == 0
    }

    /// The number, if it fits 128 bits.
    pub(crate) const fn narrow(self) -> Option<u128> {
        if self.high == 0 { Some(self.low) } else { None }
    }

    /// Quotient and remainder by a divisor below 2^127; a zero divisor, which callers exclude,
    /// yields zero and zero.
    pub(crate) const fn divide(self, divisor: u128) -> (Self, u128) {
        if divisor == 0 {
            return (Self::ZERO, 0);
        }
        if self.high == 0 {
            return (Self::new(self.low / divisor), self.low % divisor);
        }
        // Long division by bits; the divisor has a bit to spare, so that the
        // shifted remainder cannot overflow.
        let mut quotient = Self {
            high: self.high / divisor,
            low: 0,
        };
        let mut remainder = self.high % divisor;
        let mut bit = 128;
        while bit > 0 {
            bit -= 1;
            remainder = (remainder << 1) | ((self.low >> bit) & 1);
            if remainder >= divisor {
                remainder -= divisor;
                quotient.low |= 1 << bit;
            }
        }
        (quotient, remainder)
    }

    /// How many decimal digits the number has; zero has none.
    pub(crate) const fn digits(self) -> u32 {
        let mut rest = self;
        let mut count = 0;
        while rest.high != 0 {
            (rest, _) = rest.divide(power_of_ten(30));
            count += 30;
        }
        count + digits(rest.low)
    }
}

impl PartialOrd for Wide {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Wide {
    fn cmp(&self, other: &Self) -> Ordering {
        self.high.cmp(&other.high).then(self.low.cmp(&other.low))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_undoes_multiplication() {
        let a = 9_999_999_999_999_999_999_999_999_999_999_999_u128;
        let b = 1_234_567_890_123_456_789_012_345_678_901_234_u128;
        let product = Wide::product(a, b).plus(Wide::new(17));
        assert_eq!(product.divide(b), (Wide::new(a), 17));
        assert_eq!(product.digits(), 68);
    }

    #[test]
    fn the_largest_halves_multiply_without_overflow() {
        let product = Wide::product(u128::MAX, u128::MAX);
        assert_eq!(
            product,
            Wide {
                high: u128::MAX - 1,
                low: 1
            }
        );
    }
}
