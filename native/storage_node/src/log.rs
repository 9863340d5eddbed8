//! Lines for the operator, as JSON: time, level, message.

use std::io::Write as _;

use rillbase_engine::{Clock, Millis, SystemClock};

fn line(level: &str, message: &str) {
    let time = timestamp(SystemClock.now());
    let mut shown = String::new();
    for letter in message.chars() {
        match letter {
            '"' | '\\' => shown.extend(['\\', letter]),
            letter if letter.is_control() => shown.push(' '),
            letter => shown.push(letter),
        }
    }
    // If the line cannot be written, there is no one to report that to.
    let _ = writeln!(
        std::io::stderr(),
        "{{\"time\":\"{time}\",\"level\":\"{level}\",\"message\":\"{shown}\"}}"
    );
}

pub(crate) fn info(message: &str) {
    line("INFO", message);
}

pub(crate) fn warning(message: &str) {
    line("WARNING", message);
}

/// A time in ISO 8601, UTC.
fn timestamp(moment: Millis) -> String {
    let (days, rest) = (moment / 86_400_000, moment % 86_400_000);
    let (year, month, day) = date(days);
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
    let (second, millis) = (rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Year, month and day of a day since 1970. Years are counted from March, so that a leap day is the
/// last of its year: any five consecutive months have 153 days.
fn date(days: u64) -> (u64, u64, u64) {
    const ERA_DAYS: u64 = 146_097;
    // Since 1 March 0000.
    let days = days + 719_468;
    let (era, day) = (days / ERA_DAYS, days % ERA_DAYS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let is_after_december = month >= 10;
    let month = if is_after_december {
        month - 9
    } else {
        month + 3
    };
    (era * 400 + year + u64::from(is_after_december), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_as_iso_8601() {
        for (moment, shown) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(timestamp(moment), shown);
        }
    }
}
