//! Dates as text, in ISO 8601 or in a given format.

use super::calendar::{DateZone, day_of_year, iso_week, iso_weekday, sunday_week};
use crate::ejson::date::{Civil, TextScanner, civil_from_days, days_from_civil, days_in_month};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Writes a date in a format; `None` if the format or the year is not allowed.
pub(super) fn format_date(millis: i64, format: &str, zone: &DateZone) -> Option<String> {
    let civil = zone.civil(millis);
    if !(0..=9999).contains(&civil.year) {
        return None;
    }
    let offset = zone.offset(millis) / 60_000;
    let mut out = String::with_capacity(format.len() + 16);
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            out.push(letter);
            continue;
        }
        out.push_str(&field(letters.next()?, civil, offset)?);
    }
    Some(out)
}

fn field(letter: char, civil: Civil, offset: i64) -> Option<String> {
    let month = || {
        usize::try_from(civil.month - 1)
            .ok()
            .and_then(|month| MONTHS.get(month))
            .copied()
    };
    let day = super::calendar::day_number(civil);
    Some(match letter {
        'Y' => format!("{:04}", civil.year),
        'm' => format!("{:02}", civil.month),
        'd' => format!("{:02}", civil.day),
        'H' => format!("{:02}", civil.hour),
        'M' => format!("{:02}", civil.minute),
        'S' => format!("{:02}", civil.second),
        'L' => format!("{:03}", civil.millisecond),
        'j' => format!("{:03}", day_of_year(civil)),
        'G' => format!("{:04}", iso_week(civil).0),
        'V' => format!("{:02}", iso_week(civil).1),
        'u' => format!("{}", iso_weekday(day)),
        'U' => format!("{:02}", sunday_week(civil)),
        'w' => format!("{}", iso_weekday(day) % 7 + 1),
        'B' => month()?.to_owned(),
        'b' => month()?.get(..3)?.to_owned(),
        'z' => {
            let sign = if offset < 0 { '-' } else { '+' };
            format!("{sign}{:02}{:02}", offset.abs() / 60, offset.abs() % 60)
        }
        'Z' => format!("{offset:+}"),
        '%' => "%".to_owned(),
        _ => return None,
    })
}

/// Parses a date in ISO 8601: the day, optionally followed by `T` or a space and the time, and an
/// offset unless a zone is given.
pub(super) fn parse_date(text: &str, zone: Option<&DateZone>) -> Option<i64> {
    let mut scan = TextScanner { rest: text.trim() };
    let mut civil = Civil {
        year: scan.digits(4)?,
        month: 1,
        day: 1,
        hour: 0,
        minute: 0,
        second: 0,
        millisecond: 0,
    };
    scan.expect('-')?;
    civil.month = scan.digits(2)?;
    scan.expect('-')?;
    civil.day = scan.digits(2)?;
    if scan.expect('T').or_else(|| scan.expect(' ')).is_some() {
        civil.hour = scan.digits(2)?;
        scan.expect(':')?;
        civil.minute = scan.digits(2)?;
        if scan.expect(':').is_some() {
            civil.second = scan.digits(2)?;
            if scan.expect('.').is_some() {
                civil.millisecond = fraction(&mut scan)?;
            }
        }
    }
    scan.rest = scan.rest.trim_start();
    finish(civil, scan, zone)
}

/// Up to three digits; others are truncated.
fn fraction(scan: &mut TextScanner<'_>) -> Option<i64> {
    let count = scan.rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = scan.rest.split_at_checked(count)?;
    scan.rest = rest;
    let digits: String = digits.chars().chain("00".chars()).take(3).collect();
    digits.parse().ok()
}

fn finish(civil: Civil, mut scan: TextScanner<'_>, zone: Option<&DateZone>) -> Option<i64> {
    let in_range = (1..=12).contains(&civil.month)
        && (1..=days_in_month(civil.year, civil.month)).contains(&civil.day)
        && civil.hour < 24
        && civil.minute < 60
        && civil.second < 60;
    if !in_range {
        return None;
    }
    if scan.rest.is_empty() {
        return zone.unwrap_or(&DateZone::UTC).moment(civil);
    }
    // An offset in the text contradicts a given zone.
    let offset = match zone {
        Some(_) => return None,
        None => scan.offset()?,
    };
    scan.rest
        .is_empty()
        .then(|| DateZone::Fixed(offset * 60_000).moment(civil))
        .flatten()
}

/// The parts of a date that a format has read from a text.
#[derive(Default)]
struct DateParts {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    iso_weekday: Option<i64>,
    /// Hours, minutes, seconds, milliseconds.
    clock: [i64; 4],
    offset_minutes: Option<i64>,
}

impl DateParts {
    fn read(&mut self, letter: char, scan: &mut TextScanner<'_>) -> Option<()> {
        let [hour, minute, second, millisecond] = &mut self.clock;
        match letter {
            'Y' => self.year = Some(scan.digits(4)?),
            'm' => self.month = Some(scan.digits(2)?),
            'b' | 'B' => self.month = Some(month(scan)?),
            'd' => self.day = Some(scan.digits(2)?),
            'j' => self.day_of_year = Some(scan.digits(3)?),
            'G' => self.iso_year = Some(scan.digits(4)?),
            'V' => self.iso_week = Some(scan.digits(2)?),
            'u' => self.iso_weekday = Some(scan.digits(1)?),
            'H' => *hour = scan.digits(2)?,
            'M' => *minute = scan.digits(2)?,
            'S' => *second = scan.digits(2)?,
            'L' => *millisecond = scan.digits(3)?,
            'z' => self.offset_minutes = Some(scan.offset()?),
            'Z' => self.offset_minutes = Some(minutes(scan)?),
            '%' => scan.expect('%')?,
            _ => return None,
        }
        Some(())
    }

    /// Year, month and day: by the calendar, by the day of the year, or by the
    /// week, which cannot be mixed with the others.
    fn date(&self) -> Option<(i64, i64, i64)> {
        let by_week =
            self.iso_year.is_some() || self.iso_week.is_some() || self.iso_weekday.is_some();
        let by_month = self.month.is_some() || self.day.is_some();
        if by_week {
            let others = by_month || self.year.is_some() || self.day_of_year.is_some();
            let (week, weekday) = (self.iso_week.unwrap_or(1), self.iso_weekday.unwrap_or(1));
            let in_range = (1..=53).contains(&week) && (1..=7).contains(&weekday);
            if others || !in_range {
                return None;
            }
            let fourth = days_from_civil(self.iso_year?, 1, 4);
            let monday = fourth - (iso_weekday(fourth) - 1);
            return Some(civil_from_days(monday + (week - 1) * 7 + weekday - 1));
        }
        let year = self.year.unwrap_or(1970);
        let Some(day) = self.day_of_year else {
            return Some((year, self.month.unwrap_or(1), self.day.unwrap_or(1)));
        };
        let last = if days_in_month(year, 2) == 29 {
            366
        } else {
            365
        };
        let in_range = (1..=last).contains(&day) && !by_month;
        in_range.then(|| civil_from_days(days_from_civil(year, 1, 1) + day - 1))
    }
}

/// Parses a date in a format.
pub(super) fn parse_format(text: &str, format: &str, zone: Option<&DateZone>) -> Option<i64> {
    let mut scan = TextScanner { rest: text };
    let mut parts = DateParts::default();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter == '%' {
            parts.read(letters.next()?, &mut scan)?;
        } else {
            scan.expect(letter)?;
        }
    }
    if !scan.rest.is_empty() || (parts.offset_minutes.is_some() && zone.is_some()) {
        return None;
    }
    let (year, month, day) = parts.date()?;
    let [hour, minute, second, millisecond] = parts.clock;
    let civil = Civil {
        year,
        month,
        day,
        hour,
        minute,
        second,
        millisecond,
    };
    let fixed = parts
        .offset_minutes
        .map(|minutes| DateZone::Fixed(minutes * 60_000));
    finish(civil, TextScanner { rest: "" }, fixed.as_ref().or(zone))
}

/// An offset in minutes: a sign and up to four digits.
fn minutes(scan: &mut TextScanner<'_>) -> Option<i64> {
    let sign = match scan.expect('+') {
        Some(()) => 1,
        None => scan.expect('-').map(|()| -1)?,
    };
    let count = scan.rest.bytes().take_while(u8::is_ascii_digit).count();
    (1..=4)
        .contains(&count)
        .then(|| scan.digits(count))?
        .map(|minutes| sign * minutes)
}

fn month(scan: &mut TextScanner<'_>) -> Option<i64> {
    for (number, name) in (1..).zip(MONTHS) {
        for known in [name, name.get(..3)?] {
            let head = scan.rest.get(..known.len());
            if head.is_some_and(|head| head.eq_ignore_ascii_case(known)) {
                scan.rest = scan.rest.get(known.len()..)?;
                return Some(number);
            }
        }
    }
    None
}
