//! Times and durations in the notation of clients.
//!
//! ```text
//! moment   := digits                  milliseconds since 1970
//!           | ('+' | '-') duration    from now
//! duration := digits ['ms' | 's' | 'm' | 'h' | 'd']
//! ```

use rillbase_engine::Millis;

use crate::refusal::{CommandRefusal, Result};

const UNITS: [(&str, Millis); 5] = [
    ("ms", 1),
    ("s", 1000),
    ("m", 60_000),
    ("h", 3_600_000),
    ("d", 86_400_000),
];

/// Parses a duration.
pub(crate) fn duration(text: &str) -> Result<Millis> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = text.strip_prefix(digits).unwrap_or_default();
    let known = UNITS.iter().find(|(name, _)| *name == unit);
    let scale = match (unit, known) {
        ("", _) => Some(1),
        (_, Some((_, scale))) => Some(*scale),
        _ => None,
    };
    let number = digits.parse::<Millis>().ok();
    number
        .zip(scale)
        .and_then(|(number, scale)| number.checked_mul(scale))
        .ok_or_else(|| {
            CommandRefusal::syntax(format!("{text:?} is not a duration, such as 500ms or 2h"))
        })
}

/// Parses a time.
pub(crate) fn moment(text: &str, now: Millis) -> Result<Millis> {
    if let Some(ahead) = text.strip_prefix('+') {
        return Ok(now.saturating_add(duration(ahead)?));
    }
    if let Some(back) = text.strip_prefix('-') {
        return Ok(now.saturating_sub(duration(back)?));
    }
    text.parse().map_err(|_| {
        CommandRefusal::syntax(format!(
            "{text:?} is not a time: milliseconds since 1970, or from now, such as -10s or +2h"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_absolute_or_from_now() {
        let now = 1_000_000;
        for (text, expected) in [
            ("5", 5),
            ("-10s", 990_000),
            ("+500ms", 1_000_500),
            ("+7", 1_000_007),
            ("+2h", 8_200_000),
            ("-1d", 0),
        ] {
            assert_eq!(moment(text, now), Ok(expected), "{text}");
        }
        for text in [
            "",
            "+",
            "-s",
            "10s",
            "+1y",
            "+99999999999999999999",
            "+18446744073709551615d",
        ] {
            assert!(moment(text, now).is_err(), "{text}");
        }
    }
}
