//! The grammar and the range of numbers.

use crate::error::JsonErrorCode;
use crate::sink::Integer;

/// A number as written, and its parsed value.
#[derive(Debug, PartialEq)]
pub(crate) enum JsonNumber<'i> {
    Integer(Integer<'i>),
    Double(f64),
}

/// What is wrong, and its offset from the start of the number.
pub(crate) type Refusal = (JsonErrorCode, &'static str, usize);

/// Decimal digits that always fit into an `i64`.
const SMALL_DIGITS: usize = 18;

/// The number at the start of `text`, and its length in bytes.
pub(crate) fn number(text: &str, max_length: usize) -> Result<(JsonNumber<'_>, usize), Refusal> {
    let shape = shape(text.as_bytes())?;
    if shape.length > max_length {
        return Err((
            JsonErrorCode::NumberOutOfRange,
            "the number has too many digits",
            0,
        ));
    }
    let written = text.get(..shape.length).unwrap_or_default();
    if shape.is_integer && written != "-0" {
        return Ok((JsonNumber::Integer(integer(written)), shape.length));
    }
    match written.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((JsonNumber::Double(value), shape.length)),
        _ => Err((
            JsonErrorCode::NumberOutOfRange,
            "the number is too large for a double",
            0,
        )),
    }
}

struct NumberShape {
    length: usize,
    is_integer: bool,
}

fn shape(bytes: &[u8]) -> Result<NumberShape, Refusal> {
    let mut at = usize::from(bytes.first() == Some(&b'-'));
    if bytes.get(at) == Some(&b'0') {
        at += 1;
        if bytes.get(at).is_some_and(u8::is_ascii_digit) {
            return Err((
                JsonErrorCode::Malformed,
                "a number does not start with a zero",
                at,
            ));
        }
    } else {
        at = digits(bytes, at)?;
    }
    let mut is_integer = true;
    if bytes.get(at) == Some(&b'.') {
        is_integer = false;
        at = digits(bytes, at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        is_integer = false;
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        at = digits(bytes, at + 1 + sign)?;
    }
    Ok(NumberShape {
        length: at,
        is_integer,
    })
}

/// The end of the digits that start at `at`; there must be one.
fn digits(bytes: &[u8], at: usize) -> Result<usize, Refusal> {
    let rest = bytes.get(at..).unwrap_or_default();
    let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 {
        return Err((JsonErrorCode::Malformed, "expected a digit", at));
    }
    Ok(at + count)
}

fn integer(written: &str) -> Integer<'_> {
    if written.len() <= SMALL_DIGITS {
        let (negative, digits) = match written.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, written),
        };
        let value = digits
            .bytes()
            .fold(0_i64, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        return Integer::Small(if negative { -value } else { value });
    }
    written
        .parse()
        .map_or(Integer::Large(written), Integer::Small)
}
