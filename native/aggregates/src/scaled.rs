//! Decimals at a declared scale: integers of the smallest unit.

/// The maximum value: 2^40 of them fit a sum.
const MAX_UNITS: i128 = 10_i128.pow(24);
/// The maximum absolute exponent.
const MAX_EXPONENT: i32 = 400;

/// Why a number is not a decimal at a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misfit {
    /// It is not a finite number.
    NotANumber,
    /// It has more decimal places than the scale.
    TooPrecise,
    /// It is too large.
    TooLarge,
}

/// Parses a decimal number; digits beyond the scale are rejected, or rounded half to even.
pub(crate) fn parse(text: &str, scale: u32, rounds: bool) -> Result<i128, Misfit> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => text.split_at_checked(at).ok_or(Misfit::NotANumber)?,
        None => (text, ""),
    };
    let exponent: i32 = match exponent.get(1..) {
        None => 0,
        Some(digits) => digits.parse().map_err(|_| Misfit::NotANumber)?,
    };
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = whole
        .bytes()
        .chain(fraction.bytes())
        .all(|byte| byte.is_ascii_digit());
    if !is_number || (whole.is_empty() && fraction.is_empty()) {
        return Err(Misfit::NotANumber);
    }
    if exponent.abs() > MAX_EXPONENT {
        return Err(if exponent > 0 {
            Misfit::TooLarge
        } else {
            Misfit::TooPrecise
        });
    }
    let decimals = i32::try_from(fraction.len()).map_err(|_| Misfit::TooPrecise)?;
    let shift = i32::try_from(scale).unwrap_or_default() + exponent - decimals;
    let unscaled = shifted(whole, fraction, shift, rounds)?;
    Ok(sign * unscaled)
}

/// The number with some digits, times a power of ten.
fn shifted(whole: &str, fraction: &str, shift: i32, rounds: bool) -> Result<i128, Misfit> {
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let dropped = usize::try_from(-shift).unwrap_or(0).min(digits.len());
    let (kept, rest) = digits
        .split_at_checked(digits.len() - dropped)
        .unwrap_or_default();
    let mut number = 0_i128;
    let zeros = usize::try_from(shift).unwrap_or(0);
    for digit in kept.iter().copied().chain(std::iter::repeat_n(b'0', zeros)) {
        number = number * 10 + i128::from(digit - b'0');
        if number >= MAX_UNITS {
            return Err(Misfit::TooLarge);
        }
    }
    if rest.iter().all(|&digit| digit == b'0') {
        return Ok(number);
    }
    if !rounds {
        return Err(Misfit::TooPrecise);
    }
    // Digits entirely after the first decimal place round to zero.
    let is_near = usize::try_from(-shift).unwrap_or(0) == dropped;
    let half = rest
        .iter()
        .enumerate()
        .map(|(at, _)| if at == 0 { b'5' } else { b'0' });
    let up = match rest.iter().copied().cmp(half) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => number % 2 == 1,
        std::cmp::Ordering::Greater => true,
    };
    Ok(number + i128::from(is_near && up))
}

/// The text of a number of units.
pub(crate) fn text(units: i128, scale: u32) -> String {
    let digits = units.unsigned_abs().to_string();
    let scale = scale as usize;
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let sign = if units < 0 { "-" } else { "" };
    let (whole, fraction) = padded
        .split_at_checked(padded.len() - scale)
        .unwrap_or_default();
    match fraction {
        "" => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{fraction}"),
    }
}

/// A quotient, rounded half to even. The divisor is positive.
pub(crate) fn divide(number: i128, divisor: i128) -> i128 {
    let (quotient, rest) = (number.div_euclid(divisor), number.rem_euclid(divisor));
    let up = match (2 * rest).cmp(&divisor) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Equal => quotient % 2 != 0,
        std::cmp::Ordering::Greater => true,
    };
    quotient + i128::from(up)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_at_their_scale() {
        for (text, expected) in [
            ("12.5", Ok(1250)),
            ("-0.01", Ok(-1)),
            ("3", Ok(300)),
            ("1E+2", Ok(10_000)),
            ("12345e-3", Err(Misfit::TooPrecise)),
            ("1.2300", Ok(123)),
            ("0.001", Err(Misfit::TooPrecise)),
            ("1e22", Err(Misfit::TooLarge)),
            ("1e-999", Err(Misfit::TooPrecise)),
            ("NaN", Err(Misfit::NotANumber)),
            (".", Err(Misfit::NotANumber)),
            ("1e", Err(Misfit::NotANumber)),
        ] {
            assert_eq!(parse(text, 2, false), expected, "{text}");
        }
    }

    #[test]
    fn finer_values_are_rounded_half_to_even_where_allowed() {
        for (text, expected) in [
            ("0.005", 0),
            ("0.015", 2),
            ("0.0151", 2),
            ("0.025", 2),
            ("-0.026", -3),
            ("0.0009", 0),
            ("9e-5", 0),
        ] {
            assert_eq!(parse(text, 2, true), Ok(expected), "{text}");
        }
    }

    #[test]
    fn units_are_written_with_their_point() {
        assert_eq!(text(1250, 2), "12.50");
        assert_eq!(text(-5, 2), "-0.05");
        assert_eq!(text(7, 0), "7");
        assert_eq!(divide(5, 2), 2);
        assert_eq!(divide(7, 2), 4);
        assert_eq!(divide(-5, 2), -2);
        assert_eq!(divide(-7, 3), -2);
    }
}
