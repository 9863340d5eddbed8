//! Dates as text, free and by format.

use super::calendar::{Zone, day_of_year, iso_week, iso_weekday, sunday_week};
use crate::ejson::date::{Civil, Scan, days_in_month};

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

/// Writes a date by a format; none if the format or the year is not allowed.
pub(super) fn format_date(millis: i64, format: &str, zone: &Zone) -> Option<String> {
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

/// Reads a date written as ISO 8601 has it: the day, optionally followed by
/// `T` or a space and the time, and an offset unless a zone is given.
pub(super) fn parse_date(text: &str, zone: Option<&Zone>) -> Option<i64> {
    let mut scan = Scan { rest: text.trim() };
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

/// Up to three digits; more are cut.
fn fraction(scan: &mut Scan<'_>) -> Option<i64> {
    let count = scan.rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = scan.rest.split_at_checked(count)?;
    scan.rest = rest;
    let digits: String = digits.chars().chain("00".chars()).take(3).collect();
    digits.parse().ok()
}

fn finish(civil: Civil, mut scan: Scan<'_>, zone: Option<&Zone>) -> Option<i64> {
    let in_range = (1..=12).contains(&civil.month)
        && (1..=days_in_month(civil.year, civil.month)).contains(&civil.day)
        && civil.hour < 24
        && civil.minute < 60
        && civil.second < 60;
    if !in_range {
        return None;
    }
    if scan.rest.is_empty() {
        return zone.unwrap_or(&Zone::UTC).moment(civil);
    }
    // An offset in the text and a zone beside it contradict each other.
    let offset = match zone {
        Some(_) => return None,
        None => scan.offset()?,
    };
    scan.rest
        .is_empty()
        .then(|| Zone::Fixed(offset * 60_000).moment(civil))
        .flatten()
}

/// Reads a date by a format.
pub(super) fn parse_format(text: &str, format: &str, zone: Option<&Zone>) -> Option<i64> {
    let mut scan = Scan { rest: text };
    let mut civil = Civil {
        year: 1970,
        month: 1,
        day: 1,
        hour: 0,
        minute: 0,
        second: 0,
        millisecond: 0,
    };
    let mut offset = None;
    let mut day_of_year = None;
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            scan.expect(letter)?;
            continue;
        }
        match letters.next()? {
            'Y' => civil.year = scan.digits(4)?,
            'm' => civil.month = scan.digits(2)?,
            'd' => civil.day = scan.digits(2)?,
            'H' => civil.hour = scan.digits(2)?,
            'M' => civil.minute = scan.digits(2)?,
            'S' => civil.second = scan.digits(2)?,
            'L' => civil.millisecond = scan.digits(3)?,
            'j' => day_of_year = Some(scan.digits(3)?),
            'b' | 'B' => civil.month = month(&mut scan)?,
            'z' => offset = Some(scan.offset()?),
            '%' => scan.expect('%')?,
            _ => return None,
        }
    }
    if let Some(day) = day_of_year {
        let last = if days_in_month(civil.year, 2) == 29 {
            366
        } else {
            365
        };
        if !(1..=last).contains(&day) {
            return None;
        }
        let start = crate::ejson::date::days_from_civil(civil.year, 1, 1);
        (_, civil.month, civil.day) = crate::ejson::date::civil_from_days(start + day - 1);
    }
    if !scan.rest.is_empty() || (offset.is_some() && zone.is_some()) {
        return None;
    }
    let fixed = offset.map(|minutes| Zone::Fixed(minutes * 60_000));
    finish(civil, Scan { rest: "" }, fixed.as_ref().or(zone))
}

fn month(scan: &mut Scan<'_>) -> Option<i64> {
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
