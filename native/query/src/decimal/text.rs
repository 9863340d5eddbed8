//! Decimal numbers as text, by the rules of the BSON decimal128 specification.

use std::fmt;

use super::arithmetic::Unrounded;
use super::wide::{Wide, digits};
use super::{DIGITS, Decimal, DecimalParts, Finite, MAX_EXPONENT, MIN_EXPONENT};

/// Why text is not a decimal number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseError {
    /// It does not follow the grammar.
    Malformed,
    /// It needs more than 34 digits or a larger exponent.
    Inexact,
}

impl Decimal {
    /// Parses a number that must be exact.
    pub fn parse_exact(text: &str) -> Result<Self, ParseError> {
        match parse(text)? {
            (decimal, false) => Ok(decimal),
            (_, true) => Err(ParseError::Inexact),
        }
    }

    /// Parses a number and rounds it to 34 digits.
    pub fn parse_rounded(text: &str) -> Result<Self, ParseError> {
        Ok(parse(text)?.0)
    }
}

fn parse(text: &str) -> Result<(Decimal, bool), ParseError> {
    let (negative, body) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..)),
        Some(b'+') => (false, text.get(1..)),
        _ => (false, Some(text)),
    };
    let body = body.ok_or(ParseError::Malformed)?;
    if body.eq_ignore_ascii_case("inf") || body.eq_ignore_ascii_case("infinity") {
        return Ok((Decimal::infinity(negative), false));
    }
    if body.eq_ignore_ascii_case("nan") {
        return Ok((Decimal::NAN, false));
    }
    let (mantissa, exponent) = match body.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
        None => (body, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = whole
        .bytes()
        .chain(fraction.bytes())
        .all(|byte| byte.is_ascii_digit());
    if !all_digits || whole.len() + fraction.len() == 0 {
        return Err(ParseError::Malformed);
    }
    let scale = i32::try_from(fraction.len()).map_err(|_| ParseError::Inexact)?;
    let digits = whole.bytes().chain(fraction.bytes());
    Ok(assemble(negative, digits, exponent.saturating_sub(scale)))
}

fn parse_exponent(text: &str) -> Result<i32, ParseError> {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, text.get(1..)),
        Some(b'+') => (false, text.get(1..)),
        _ => (false, Some(text)),
    };
    let digits = digits
        .filter(|digits| !digits.is_empty())
        .ok_or(ParseError::Malformed)?;
    let mut value = 0_i32;
    for byte in digits.bytes() {
        if !byte.is_ascii_digit() {
            return Err(ParseError::Malformed);
        }
        // Saturation below the range of i32 keeps later sums safe.
        value = (value * 10 + i32::from(byte - b'0')).min(100_000_000);
    }
    Ok(if negative { -value } else { value })
}

/// Takes up to 70 digits exactly and the rest as sticky; trailing zeros beyond the range lose
/// nothing.
fn assemble(negative: bool, digits: impl Iterator<Item = u8>, exponent: i32) -> (Decimal, bool) {
    let mut value = Wide::ZERO;
    let mut taken = 0;
    let mut beyond = 0_i32;
    let mut sticky = false;
    for byte in digits {
        let digit = u128::from(byte - b'0');
        if taken < 70 {
            value = value.times(10).plus(Wide::new(digit));
            taken += u32::from(!value.is_zero());
        } else {
            beyond = beyond.saturating_add(1);
            sticky |= digit != 0;
        }
    }
    let exponent = exponent.saturating_add(beyond);
    if value.is_zero() {
        let exponent = exponent.clamp(MIN_EXPONENT, MAX_EXPONENT);
        return (
            Decimal::pack(Finite {
                negative,
                coefficient: 0,
                exponent,
            }),
            false,
        );
    }
    Unrounded {
        negative,
        value,
        exponent,
        sticky,
    }
    .round()
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let finite = match self.parts() {
            DecimalParts::Nan => return f.write_str("NaN"),
            DecimalParts::Infinite(true) => return f.write_str("-Infinity"),
            DecimalParts::Infinite(false) => return f.write_str("Infinity"),
            DecimalParts::Finite(finite) => finite,
        };
        if finite.negative {
            f.write_str("-")?;
        }
        let text = finite.coefficient.to_string();
        let count = digits(finite.coefficient).max(1).cast_signed();
        let adjusted = finite.exponent + count - 1;
        if finite.exponent > 0 || adjusted < -6 {
            let (first, rest) = text.split_at_checked(1).unwrap_or((&text, ""));
            let point = if rest.is_empty() { "" } else { "." };
            return write!(f, "{first}{point}{rest}E{adjusted:+}");
        }
        let places = finite.exponent.unsigned_abs() as usize;
        if places == 0 {
            return f.write_str(&text);
        }
        match text.len().checked_sub(places).filter(|whole| *whole > 0) {
            Some(whole) => {
                let (whole, fraction) = text.split_at_checked(whole).unwrap_or((&text, ""));
                write!(f, "{whole}.{fraction}")
            }
            None => write!(f, "0.{text:0>places$}"),
        }
    }
}

const _: () = assert!(DIGITS == 34, "70 digits in a Wide are twice the precision");
