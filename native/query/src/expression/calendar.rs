//! Time zones, weeks and arithmetic on dates.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::ejson::date::{Civil, DAY_MS, TextScanner, days_from_civil, days_in_month};

/// A time zone: an offset, or a name of the tz database (which is built in).
#[derive(Debug, Clone)]
pub(super) enum DateZone {
    /// Milliseconds east of UTC.
    Fixed(i64),
    Named(TimeZone),
}

impl DateZone {
    pub(super) const UTC: Self = Self::Fixed(0);

    /// `Europe/Paris`, `UTC`, `+02:00`, `+0200` or `+02`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if matches!(text, "UTC" | "GMT" | "Z") {
            return Some(Self::UTC);
        }
        if text.starts_with(['+', '-']) {
            let mut scan = TextScanner { rest: text };
            let minutes = scan.offset()?;
            return scan
                .rest
                .is_empty()
                .then_some(Self::Fixed(minutes * 60_000));
        }
        TimeZone::get(text).ok().map(Self::Named)
    }

    /// Milliseconds east of UTC at a time.
    pub(super) fn offset(&self, millis: i64) -> i64 {
        match self {
            Self::Fixed(offset) => *offset,
            Self::Named(zone) => {
                let clamped = millis.clamp(-377_705_000_000_000, 253_402_200_000_000);
                let moment = Timestamp::from_millisecond(clamped).unwrap_or(Timestamp::UNIX_EPOCH);
                i64::from(zone.to_offset(moment).seconds()) * 1000
            }
        }
    }

    /// The civil time at a time.
    pub(super) fn civil(&self, millis: i64) -> Civil {
        Civil::from_millis(millis.saturating_add(self.offset(millis)))
    }

    /// The time of a civil time. One that a clock change skips is moved forward by the gap; of one
    /// that occurs twice the first is taken.
    pub(super) fn moment(&self, civil: Civil) -> Option<i64> {
        let local = civil.to_millis()?;
        match self {
            Self::Fixed(offset) => local.checked_sub(*offset),
            Self::Named(zone) => {
                let normal = Civil::from_millis(local);
                let date = datetime(normal);
                match date.and_then(|date| zone.to_ambiguous_timestamp(date).compatible().ok()) {
                    Some(moment) => Some(moment.as_millisecond()),
                    None => local.checked_sub(self.offset(local)),
                }
            }
        }
    }
}

fn datetime(civil: Civil) -> Option<DateTime> {
    DateTime::new(
        i16::try_from(civil.year).ok()?,
        i8::try_from(civil.month).ok()?,
        i8::try_from(civil.day).ok()?,
        i8::try_from(civil.hour).ok()?,
        i8::try_from(civil.minute).ok()?,
        i8::try_from(civil.second).ok()?,
        i32::try_from(civil.millisecond).ok()? * 1_000_000,
    )
    .ok()
}

/// Days since 1970-01-01 of a civil date.
pub(super) const fn day_number(civil: Civil) -> i64 {
    days_from_civil(civil.year, civil.month, civil.day)
}

/// 1 Monday … 7 Sunday; 1970-01-01 was a Thursday.
pub(super) const fn iso_weekday(day: i64) -> i64 {
    (day + 3).rem_euclid(7) + 1
}

/// Days since the first of January, from 1.
pub(super) const fn day_of_year(civil: Civil) -> i64 {
    day_number(civil) - days_from_civil(civil.year, 1, 1) + 1
}

/// The ISO week and the year that it belongs to: the year of its Thursday.
pub(super) const fn iso_week(civil: Civil) -> (i64, i64) {
    let day = day_number(civil);
    let thursday = day + 4 - iso_weekday(day);
    let (year, ..) = crate::ejson::date::civil_from_days(thursday);
    (year, (thursday - days_from_civil(year, 1, 1)) / 7 + 1)
}

/// Weeks that start on Sundays, 0 before the year's first Sunday.
pub(super) const fn sunday_week(civil: Civil) -> i64 {
    let weekday = iso_weekday(day_number(civil)) % 7;
    (day_of_year(civil) - 1 + 7 - weekday) / 7
}

/// The Monday of the first ISO week of a year, as a day number.
pub(super) const fn iso_year_start(year: i64) -> i64 {
    let fourth = days_from_civil(year, 1, 4);
    fourth - (iso_weekday(fourth) - 1)
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
}

impl Unit {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "year" => Self::Year,
            "quarter" => Self::Quarter,
            "month" => Self::Month,
            "week" => Self::Week,
            "day" => Self::Day,
            "hour" => Self::Hour,
            "minute" => Self::Minute,
            "second" => Self::Second,
            "millisecond" => Self::Millisecond,
            _ => return None,
        })
    }

    /// Months of a unit of months.
    const fn months(self) -> Option<i64> {
        match self {
            Self::Year => Some(12),
            Self::Quarter => Some(3),
            Self::Month => Some(1),
            _ => None,
        }
    }

    /// Milliseconds of a unit of fixed length.
    const fn millis(self) -> i64 {
        match self {
            Self::Hour => 3_600_000,
            Self::Minute => 60_000,
            Self::Second => 1_000,
            Self::Millisecond => 1,
            Self::Week => 7 * DAY_MS,
            _ => DAY_MS,
        }
    }

    const fn is_clock(self) -> bool {
        matches!(
            self,
            Self::Hour | Self::Minute | Self::Second | Self::Millisecond
        )
    }
}

/// The date `amount` units later. Months keep the day or take their last;
/// days and longer keep the local time of day.
pub(super) fn add(millis: i64, unit: Unit, amount: i64, zone: &DateZone) -> Option<i64> {
    if unit.is_clock() {
        return millis.checked_add(amount.checked_mul(unit.millis())?);
    }
    let mut civil = zone.civil(millis);
    if let Some(months) = unit.months() {
        let total = (civil.year * 12 + civil.month - 1).checked_add(amount.checked_mul(months)?)?;
        civil.year = total.div_euclid(12);
        civil.month = total.rem_euclid(12) + 1;
        if civil.year.abs() > 300_000_000 {
            return None;
        }
        civil.day = civil.day.min(days_in_month(civil.year, civil.month));
    } else {
        let days = amount.checked_mul(unit.millis() / DAY_MS)?;
        if days.abs() > 200_000_000_000 {
            return None;
        }
        let moved = day_number(civil) + days;
        (civil.year, civil.month, civil.day) = crate::ejson::date::civil_from_days(moved);
    }
    zone.moment(civil)
}

/// The number of boundaries of the unit between two dates.
pub(super) fn difference(
    start: i64,
    end: i64,
    unit: Unit,
    zone: &DateZone,
    week_start: i64,
) -> Option<i64> {
    if unit.is_clock() {
        if unit == Unit::Millisecond {
            return end.checked_sub(start);
        }
        let local = |millis: i64| {
            millis
                .checked_add(zone.offset(millis))
                .map(|local| local.div_euclid(unit.millis()))
        };
        // A clock change is not a boundary of an hour, not even one of half an hour, so that
        // exchanging the dates only changes the sign.
        let shift = zone.offset(end) - zone.offset(start);
        return Some(local(end)? - local(start)? - shift / unit.millis());
    }
    let (from, to) = (zone.civil(start), zone.civil(end));
    Some(match unit.months() {
        Some(months) => {
            let index = |civil: Civil| (civil.year * 12 + civil.month - 1).div_euclid(months);
            index(to) - index(from)
        }
        None if unit == Unit::Week => {
            let index = |civil: Civil| week_index(day_number(civil), week_start);
            index(to) - index(from)
        }
        None => day_number(to) - day_number(from),
    })
}

/// The number of the week that starts on the weekday `week_start` (1 Monday).
const fn week_index(day: i64, week_start: i64) -> i64 {
    (day + 3 - (week_start - 1)).div_euclid(7)
}

/// The start of the bin of `size` units that contains a date; bins are counted from 2000-01-01.
pub(super) fn truncate(
    millis: i64,
    unit: Unit,
    size: i64,
    zone: &DateZone,
    week_start: i64,
) -> Option<i64> {
    let civil = zone.civil(millis);
    let midnight = |day: i64| {
        let (year, month, day) = crate::ejson::date::civil_from_days(day);
        zone.moment(Civil {
            year,
            month,
            day,
            hour: 0,
            minute: 0,
            second: 0,
            millisecond: 0,
        })
    };
    let origin = days_from_civil(2000, 1, 1);
    if let Some(months) = unit.months() {
        let bin = months.checked_mul(size)?;
        let index = civil.year * 12 + civil.month - 1 - 2000 * 12;
        let start = index.div_euclid(bin).checked_mul(bin)? + 2000 * 12;
        return midnight(days_from_civil(
            start.div_euclid(12),
            start.rem_euclid(12) + 1,
            1,
        ));
    }
    if unit.is_clock() {
        let bin = unit.millis().checked_mul(size)?;
        let reference = midnight(origin)?;
        return reference.checked_add(
            millis
                .checked_sub(reference)?
                .div_euclid(bin)
                .checked_mul(bin)?,
        );
    }
    let (length, origin) = match unit {
        Unit::Week => {
            // The first day of the week at or after the origin.
            let behind = (iso_weekday(origin) - week_start).rem_euclid(7);
            (7, origin + (7 - behind) % 7)
        }
        _ => (1, origin),
    };
    let bin = size.checked_mul(length)?;
    midnight(
        origin.checked_add(
            (day_number(civil) - origin)
                .div_euclid(bin)
                .checked_mul(bin)?,
        )?,
    )
}
