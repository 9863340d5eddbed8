//! Dates.

use super::calendar::{
    self, DateZone, Unit, day_number, iso_week, iso_weekday, iso_year_start, sunday_week,
};
use super::date_text::{format_date, parse_date, parse_format};
use super::function::Function as F;
use super::item::{Args, NULL, Out, document, own, text};
use crate::bson::{DocumentWriter, Value, ValueRef};
use crate::ejson::date::{Civil, civil_from_days};
use crate::error::EvaluationFailure;

pub(super) fn call(function: F, mut args: Args<'_>) -> Result<Out<'_>, EvaluationFailure> {
    match function {
        F::TsSecond | F::TsIncrement => match args.get(0) {
            Some(ValueRef::Timestamp(stamp)) => {
                let part = if function == F::TsSecond {
                    stamp >> 32
                } else {
                    stamp & 0xFFFF_FFFF
                };
                Ok(own(Value::Int64(part.cast_signed())))
            }
            _ if args.is_null(0) => Ok(NULL),
            _ => Err(args.wrong(0, "a timestamp")),
        },
        F::DateToString => to_text(&mut args),
        F::DateFromString => from_text(&mut args),
        F::DateFromParts => from_parts(&args),
        F::DateToParts => to_parts(&args),
        F::DateAdd | F::DateSubtract => add(function, &args),
        F::DateDiff => difference(&args),
        F::DateTrunc => truncate(&args),
        _ => part(function, &args),
    }
}

/// A date, or the date of an ObjectId or timestamp; `None` for null.
fn date(args: &Args<'_>, index: usize) -> Result<Option<i64>, EvaluationFailure> {
    match args.get(index) {
        Some(ValueRef::Date(millis)) => Ok(Some(millis)),
        Some(ValueRef::Timestamp(stamp)) => Ok(i64::try_from(stamp >> 32)
            .ok()
            .map(|seconds| seconds * 1000)),
        Some(ValueRef::ObjectId(id)) => Ok(Some(i64::from(id.seconds()) * 1000)),
        _ if args.is_null(index) => Ok(None),
        _ => Err(args.wrong(index, "a date")),
    }
}

/// The zone of an optional argument: UTC when not given, none when null.
fn zone(args: &Args<'_>, index: usize) -> Result<Option<DateZone>, EvaluationFailure> {
    if !args.given(index) {
        return Ok(Some(DateZone::UTC));
    }
    if args.is_null(index) {
        return Ok(None);
    }
    let name = args.text(index)?;
    match DateZone::parse(name) {
        Some(zone) => Ok(Some(zone)),
        None => Err(args.refuse(&format!("has an unknown time zone: '{name}'"))),
    }
}

fn unit(args: &Args<'_>, index: usize) -> Result<Unit, EvaluationFailure> {
    Unit::from_name(args.text(index)?).ok_or_else(|| args.wrong(index, "a unit of time"))
}

/// 1 Monday … 7 Sunday; Sunday when not given.
fn week_start(args: &Args<'_>, index: usize) -> Result<i64, EvaluationFailure> {
    if !args.given(index) || args.is_null(index) {
        return Ok(7);
    }
    let name = args.text(index)?.to_ascii_lowercase();
    let days = [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];
    let number = (1..)
        .zip(days)
        .find(|(_, day)| *day == name || day.get(..3) == Some(&name));
    number
        .map(|(number, _)| number)
        .ok_or_else(|| args.wrong(index, "a day of the week"))
}

fn int<'a>(int: i64) -> Out<'a> {
    own(crate::arithmetic::sized(int, true))
}

fn part<'a>(function: F, args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    let (Some(millis), Some(zone)) = (date(args, 0)?, zone(args, 1)?) else {
        return Ok(NULL);
    };
    let civil = zone.civil(millis);
    Ok(match function {
        F::Year => int(civil.year),
        F::Month => int(civil.month),
        F::DayOfMonth => int(civil.day),
        F::Hour => int(civil.hour),
        F::Minute => int(civil.minute),
        F::Second => int(civil.second),
        F::Millisecond => int(civil.millisecond),
        F::DayOfYear => int(calendar::day_of_year(civil)),
        F::DayOfWeek => int(iso_weekday(day_number(civil)) % 7 + 1),
        F::IsoDayOfWeek => int(iso_weekday(day_number(civil))),
        F::IsoWeek => int(iso_week(civil).1),
        F::IsoWeekYear => own(Value::Int64(iso_week(civil).0)),
        _ => int(sunday_week(civil)),
    })
}

fn to_text<'a>(args: &mut Args<'a>) -> Result<Out<'a>, EvaluationFailure> {
    let Some(millis) = date(args, 0)? else {
        return Ok(if args.given(3) { args.take(3) } else { NULL });
    };
    let Some(zone) = zone(args, 2)? else {
        return Ok(NULL);
    };
    let default = if args.given(2) && zone.offset(millis) != 0 {
        "%Y-%m-%dT%H:%M:%S.%L"
    } else {
        "%Y-%m-%dT%H:%M:%S.%LZ"
    };
    let format = match args.given(1) {
        true if args.is_null(1) => return Ok(NULL),
        true => args.text(1)?,
        false => default,
    };
    match format_date(millis, format, &zone) {
        Some(written) => Ok(text(written)),
        None => Err(args.refuse("does not support this format, or the year is not in 0 … 9999")),
    }
}

fn from_text<'a>(args: &mut Args<'a>) -> Result<Out<'a>, EvaluationFailure> {
    if args.is_null(0) {
        return Ok(if args.given(4) { args.take(4) } else { NULL });
    }
    let Some(zone) = zone(args, 2)? else {
        return Ok(NULL);
    };
    let zone = args.given(2).then_some(zone);
    let parsed = match args.text(0) {
        Ok(written) if args.given(1) && !args.is_null(1) => {
            parse_format(written, args.text(1)?, zone.as_ref())
        }
        Ok(written) => parse_date(written, zone.as_ref()),
        Err(failure) if !args.given(3) => return Err(failure),
        Err(_) => None,
    };
    match parsed {
        Some(millis) => Ok(own(Value::Date(millis))),
        None if args.given(3) => Ok(args.take(3)),
        None => Err(args.refuse("cannot parse this text as a date")),
    }
}

fn from_parts<'a>(args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    let Some(zone) = zone(args, 10)? else {
        return Ok(NULL);
    };
    if (0..args.len()).any(|index| args.given(index) && args.is_null(index)) {
        return Ok(NULL);
    }
    let part = |index: usize, default: i64| {
        let value = if args.given(index) {
            args.whole(index)?
        } else {
            default
        };
        if value.abs() > 100_000_000_000 {
            Err(args.refuse("takes smaller parts"))
        } else {
            Ok(value)
        }
    };
    let iso = args.given(1);
    if iso == args.given(0)
        || (iso && (args.given(2) || args.given(4)))
        || (!iso && (args.given(3) || args.given(5)))
    {
        return Err(args.refuse("takes year, month, day or isoWeekYear, isoWeek, isoDayOfWeek"));
    }
    let (year, month, day) = if iso {
        let start = iso_year_start(part(1, 1970)?);
        civil_from_days(start + (part(3, 1)? - 1) * 7 + part(5, 1)? - 1)
    } else {
        (part(0, 1970)?, part(2, 1)?, part(4, 1)?)
    };
    let civil = Civil {
        year,
        month,
        day,
        hour: part(6, 0)?,
        minute: part(7, 0)?,
        second: part(8, 0)?,
        millisecond: part(9, 0)?,
    };
    if civil.year.abs() > 300_000_000 {
        return Err(args.refuse("results in a date out of range"));
    }
    zone.moment(civil)
        .map(|millis| own(Value::Date(millis)))
        .ok_or_else(|| args.refuse("results in a date out of range"))
}

fn to_parts<'a>(args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    let (Some(millis), Some(zone)) = (date(args, 0)?, zone(args, 1)?) else {
        return Ok(NULL);
    };
    let civil = zone.civil(millis);
    let first = match args.get(2) {
        Some(ValueRef::Bool(true)) => {
            let (year, week) = iso_week(civil);
            [
                ("isoWeekYear", year),
                ("isoWeek", week),
                ("isoDayOfWeek", iso_weekday(day_number(civil))),
            ]
        }
        None | Some(ValueRef::Bool(false)) => [
            ("year", civil.year),
            ("month", civil.month),
            ("day", civil.day),
        ],
        Some(_) => return Err(args.wrong(2, "a boolean")),
    };
    let clock = [
        ("hour", civil.hour),
        ("minute", civil.minute),
        ("second", civil.second),
        ("millisecond", civil.millisecond),
    ];
    let mut writer = DocumentWriter::new();
    for (name, value) in first.into_iter().chain(clock) {
        writer.append(name, crate::arithmetic::sized(value, true).as_ref());
    }
    Ok(document(writer.into()))
}

fn add<'a>(function: F, args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    let (Some(millis), Some(zone)) = (date(args, 0)?, zone(args, 3)?) else {
        return Ok(NULL);
    };
    if args.is_null(1) || args.is_null(2) {
        return Ok(NULL);
    }
    let (unit, amount) = (unit(args, 1)?, args.whole(2)?);
    let amount = if function == F::DateAdd {
        Some(amount)
    } else {
        amount.checked_neg()
    };
    let moved = amount.and_then(|amount| calendar::add(millis, unit, amount, &zone));
    moved
        .map(|millis| own(Value::Date(millis)))
        .ok_or_else(|| args.refuse("results in a date out of range"))
}

fn difference<'a>(args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    let (Some(start), Some(end), Some(zone)) = (date(args, 0)?, date(args, 1)?, zone(args, 3)?)
    else {
        return Ok(NULL);
    };
    if args.is_null(2) {
        return Ok(NULL);
    }
    let count = calendar::difference(start, end, unit(args, 2)?, &zone, week_start(args, 4)?);
    count
        .map(|count| own(Value::Int64(count)))
        .ok_or_else(|| args.refuse("is out of range"))
}

fn truncate<'a>(args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    let (Some(millis), Some(zone)) = (date(args, 0)?, zone(args, 3)?) else {
        return Ok(NULL);
    };
    if args.is_null(1) || (args.given(2) && args.is_null(2)) {
        return Ok(NULL);
    }
    let size = if args.given(2) { args.whole(2)? } else { 1 };
    if size < 1 {
        return Err(args.refuse("takes a binSize above zero"));
    }
    let start = calendar::truncate(millis, unit(args, 1)?, size, &zone, week_start(args, 4)?);
    start
        .map(|millis| own(Value::Date(millis)))
        .ok_or_else(|| args.refuse("results in a date out of range"))
}
