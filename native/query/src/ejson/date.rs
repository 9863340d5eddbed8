//! Civil dates of the proleptic Gregorian calendar, and RFC 3339 text.
//!
//! All computations are integer arithmetic on days since 1970-01-01. Divisions round down rather
//! than toward zero, so dates before 1970 are correct.

/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;

/// A civil date and time of day, without a time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Civil {
    /// May be negative or beyond 9999.
    pub year: i64,
    /// 1 … 12
    pub month: i64,
    /// 1 … 31
    pub day: i64,
    /// 0 … 23
    pub hour: i64,
    /// 0 … 59
    pub minute: i64,
    /// 0 … 59
    pub second: i64,
    /// 0 … 999
    pub millisecond: i64,
}

/// The date of this many days after 1970-01-01, as (year, month, day).
///
/// Years are counted from March, so that the leap day is a year's last.
#[must_use]
pub const fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days.saturating_add(719_468);
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

/// The days from 1970-01-01 to a date; months and days out of range overflow into the next unit.
#[must_use]
pub const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year.saturating_add((month - 1).div_euclid(12));
    let month = (month - 1).rem_euclid(12) + 1;
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era.saturating_mul(146_097)
        .saturating_add(day_of_era - 719_468)
        .saturating_add(day - 1)
}

/// How many days the month has.
#[must_use]
pub const fn days_in_month(year: i64, month: i64) -> i64 {
    days_from_civil(year, month + 1, 1) - days_from_civil(year, month, 1)
}

impl Civil {
    /// Splits milliseconds since 1970 into fields.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        let (year, month, day) = civil_from_days(millis.div_euclid(DAY_MS));
        let rest = millis.rem_euclid(DAY_MS);
        Self {
            year,
            month,
            day,
            hour: rest / 3_600_000,
            minute: rest / 60_000 % 60,
            second: rest / 1_000 % 60,
            millisecond: rest % 1_000,
        }
    }

    /// Milliseconds since 1970; fields out of range overflow into the next unit. None when the date
    /// does not fit.
    #[must_use]
    pub fn to_millis(self) -> Option<i64> {
        let days = days_from_civil(self.year, self.month, self.day);
        let hours = self.hour.checked_mul(3_600_000)?;
        let minutes = self.minute.checked_mul(60_000)?;
        let seconds = self.second.checked_mul(1_000)?;
        let day = days.checked_mul(DAY_MS)?;
        day.checked_add(hours)?
            .checked_add(minutes)?
            .checked_add(seconds)?
            .checked_add(self.millisecond)
    }
}

/// Milliseconds as RFC 3339 text in UTC, if the year is 0000 … 9999.
#[must_use]
pub fn to_rfc3339(millis: i64) -> Option<String> {
    let civil = Civil::from_millis(millis);
    if !(0..=9999).contains(&civil.year) {
        return None;
    }
    let Civil {
        year,
        month,
        day,
        hour,
        minute,
        second,
        millisecond,
    } = civil;
    // Without `format!`, which takes ten times as long, because results contain many dates.
    let mut text = String::with_capacity("0000-00-00T00:00:00.000Z".len());
    let mut put = |number: i64, digits: u32, end: char| {
        for place in (0..digits).rev() {
            let digit = number / 10_i64.pow(place) % 10;
            text.push(char::from(b'0' + u8::try_from(digit).unwrap_or_default()));
        }
        text.push(end);
    };
    put(year, 4, '-');
    put(month, 2, '-');
    put(day, 2, 'T');
    put(hour, 2, ':');
    put(minute, 2, ':');
    if millisecond == 0 {
        put(second, 2, 'Z');
    } else {
        put(second, 2, '.');
        put(millisecond, 3, 'Z');
    }
    Some(text)
}

/// Parses RFC 3339 text; digits beyond milliseconds are truncated. An offset may be written
/// `+01:00`, `+0100` or `+01`.
#[must_use]
pub fn from_rfc3339(text: &str) -> Option<i64> {
    let mut scan = TextScanner { rest: text };
    let year = scan.digits(4)?;
    scan.expect('-')?;
    let month = scan.digits(2)?;
    scan.expect('-')?;
    let day = scan.digits(2)?;
    scan.expect('T').or_else(|| scan.expect('t'))?;
    let hour = scan.digits(2)?;
    scan.expect(':')?;
    let minute = scan.digits(2)?;
    scan.expect(':')?;
    let second = scan.digits(2)?;
    let millisecond = scan.fraction()?;
    let offset_minutes = scan.offset()?;
    let in_range = (1..=12).contains(&month)
        && (1..=days_in_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !in_range || !scan.rest.is_empty() {
        return None;
    }
    let civil = Civil {
        year,
        month,
        day,
        hour,
        minute: minute - offset_minutes,
        second,
        millisecond,
    };
    civil.to_millis()
}

/// Reads text from the front.
pub(crate) struct TextScanner<'a> {
    pub(crate) rest: &'a str,
}

impl TextScanner<'_> {
    /// Exactly `count` digits.
    pub(crate) fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.rest.split_at_checked(count)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        self.rest = rest;
        digits.parse().ok()
    }

    pub(crate) fn expect(&mut self, character: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(character)?;
        Some(())
    }

    fn fraction(&mut self) -> Option<i64> {
        if self.expect('.').is_none() {
            return Some(0);
        }
        let count = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        let milliseconds: String = digits.chars().chain("00".chars()).take(3).collect();
        if digits.is_empty() {
            None
        } else {
            milliseconds.parse().ok()
        }
    }

    /// An offset from UTC in minutes: `Z`, `+01:00`, `+0100` or `+01`.
    pub(crate) fn offset(&mut self) -> Option<i64> {
        if self.expect('Z').or_else(|| self.expect('z')).is_some() {
            return Some(0);
        }
        let sign = if self.expect('+').is_some() {
            1
        } else {
            self.expect('-').map(|()| -1)?
        };
        let hours = self.digits(2)?;
        let colon = self.expect(':').is_some();
        let minutes = match self.digits(2) {
            Some(minutes) => minutes,
            None if colon => return None,
            None => 0,
        };
        if hours < 24 && minutes < 60 {
            Some(sign * (hours * 60 + minutes))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_before_1970_round_down() {
        assert_eq!(to_rfc3339(-1).as_deref(), Some("1969-12-31T23:59:59.999Z"));
        assert_eq!(from_rfc3339("1969-12-31T23:59:59.999Z"), Some(-1));
        assert_eq!(
            from_rfc3339("1600-02-29T00:00:00Z"),
            Some(-11_670_998_400_000)
        );
    }

    #[test]
    fn dates_that_do_not_exist_are_refused() {
        assert_eq!(from_rfc3339("2023-02-29T00:00:00Z"), None);
        assert_eq!(from_rfc3339("2024-02-29T24:00:00Z"), None);
        assert_eq!(from_rfc3339("2024-02-29T00:00:00"), None);
    }

    #[test]
    fn offsets_move_the_moment() {
        assert_eq!(from_rfc3339("1970-01-01T01:00:00+01:00"), Some(0));
        assert_eq!(from_rfc3339("1970-01-01T01:00:00.5+0100"), Some(500));
    }

    #[test]
    fn every_day_of_four_centuries_round_trips() {
        for day in -146_097..146_097 {
            let (year, month, date) = civil_from_days(day);
            assert_eq!(days_from_civil(year, month, date), day);
        }
    }
}
