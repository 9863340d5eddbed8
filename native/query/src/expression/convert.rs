//! Types and conversions.

use super::date_text::parse_date;
use super::function::Function as F;
use super::item::{Args, NULL, Out, boolean, is_null, own, text};
use crate::bson::{BsonType, ObjectId, Value, ValueRef};
use crate::decimal::Decimal;
use crate::ejson::date::Civil;
use crate::error::EvaluationFailure;
use crate::number::NumericValue;
use crate::truth::is_true;

pub(super) fn call(function: F, mut args: Args<'_>) -> Result<Out<'_>, EvaluationFailure> {
    let to = match function {
        F::Type => {
            return Ok(text(
                args.get(0).map_or("missing", |value| value.kind().alias()),
            ));
        }
        F::IsNumber => return Ok(boolean(args.get(0).is_some_and(|value| value.is_number()))),
        F::Convert => return general(&mut args),
        F::ToBool => BsonType::Bool,
        F::ToDate => BsonType::Date,
        F::ToDecimal => BsonType::Decimal,
        F::ToDouble => BsonType::Double,
        F::ToInt => BsonType::Int32,
        F::ToLong => BsonType::Int64,
        F::ToObjectId => BsonType::ObjectId,
        _ => BsonType::String,
    };
    match args.get(0) {
        Some(value) if !is_null(Some(value)) => match convert(value, to) {
            Ok(converted) => Ok(own(converted)),
            Err(why) => Err(args.refuse(&why)),
        },
        _ => Ok(NULL),
    }
}

fn general<'a>(args: &mut Args<'a>) -> Result<Out<'a>, EvaluationFailure> {
    let to = match args.get(1) {
        value if is_null(value) => return Ok(NULL),
        Some(ValueRef::String(alias)) => BsonType::from_alias(alias),
        Some(number) => number.as_exact_i64().and_then(BsonType::from_type_number),
        None => None,
    };
    let Some(to) = to else {
        return Err(args.wrong(1, "the name or number of a type"));
    };
    if args.is_null(0) {
        return Ok(if args.given(3) { args.take(3) } else { NULL });
    }
    let converted = args
        .get(0)
        .map_or(Ok(Value::Null), |value| convert(value, to));
    match converted {
        Ok(value) => Ok(own(value)),
        Err(_) if args.given(2) => Ok(args.take(2)),
        Err(why) => Err(args.refuse(&why)),
    }
}

/// Converts a value, or returns why it cannot.
fn convert(value: ValueRef<'_>, to: BsonType) -> Result<Value, String> {
    if value.kind() == to {
        return Ok(value.into());
    }
    let converted = match to {
        BsonType::Bool => Some(Value::Bool(is_true(value))),
        BsonType::String => to_text(value).map(Value::String),
        BsonType::Int32 => whole(value)?
            .map(|int| i32::try_from(int).map(Value::Int32))
            .transpose()
            .map_err(|_| range(to))?,
        BsonType::Int64 => whole(value)?.map(Value::Int64),
        BsonType::Double => to_double(value)?.map(Value::Double),
        BsonType::Decimal => to_decimal(value)?.map(Value::Decimal),
        BsonType::Date => to_date(value)?.map(Value::Date),
        BsonType::ObjectId => value
            .as_str()
            .and_then(ObjectId::from_hex)
            .map(Value::ObjectId),
        _ => None,
    };
    converted.ok_or_else(|| format!("cannot convert {} to {}", value.kind().alias(), to.alias()))
}

fn range(to: BsonType) -> String {
    format!("results in a number outside the range of {}", to.alias())
}

/// A whole number of 64 bits; fractions are truncated.
fn whole(value: ValueRef<'_>) -> Result<Option<i64>, String> {
    Ok(match value {
        ValueRef::Bool(bool) => Some(i64::from(bool)),
        ValueRef::Date(millis) => Some(millis),
        ValueRef::String(digits) => {
            let body = digits.strip_prefix(['-', '+']).unwrap_or(digits);
            let plain = !body.is_empty() && body.bytes().all(|byte| byte.is_ascii_digit());
            let parsed = digits.parse().ok().filter(|_| plain);
            Some(parsed.ok_or_else(|| format!("cannot parse '{digits}' as an integer"))?)
        }
        number => match NumericValue::from_value(number) {
            Some(number) => Some(number.truncate().ok_or_else(|| range(BsonType::Int64))?),
            None => None,
        },
    })
}

fn to_double(value: ValueRef<'_>) -> Result<Option<f64>, String> {
    Ok(match value {
        ValueRef::Bool(bool) => Some(f64::from(u8::from(bool))),
        ValueRef::Date(millis) => Some(NumericValue::Int(millis).to_f64()),
        ValueRef::String(digits) => Some(parse_decimal(digits)?.to_f64()),
        ValueRef::Decimal(decimal) => {
            let double = decimal.to_f64();
            if double.is_infinite() && !decimal.is_infinite() {
                return Err(range(BsonType::Double));
            }
            Some(double)
        }
        number => NumericValue::from_value(number).map(NumericValue::to_f64),
    })
}

fn parse_decimal(digits: &str) -> Result<Decimal, String> {
    Decimal::parse_rounded(digits).map_err(|_| format!("cannot parse '{digits}' as a number"))
}

fn to_decimal(value: ValueRef<'_>) -> Result<Option<Decimal>, String> {
    Ok(match value {
        ValueRef::Bool(bool) => Some(Decimal::from(i64::from(bool))),
        ValueRef::Date(millis) => Some(Decimal::from(millis)),
        ValueRef::String(digits) => Some(parse_decimal(digits)?),
        number => NumericValue::from_value(number).map(crate::arithmetic::to_decimal),
    })
}

/// From longs, doubles and decimals as milliseconds, from ObjectIds,
/// timestamps and text; an int is too short to be a date.
fn to_date(value: ValueRef<'_>) -> Result<Option<i64>, String> {
    Ok(match value {
        ValueRef::Int64(millis) => Some(millis),
        ValueRef::Double(_) | ValueRef::Decimal(_) => {
            let millis = NumericValue::from_value(value).and_then(NumericValue::truncate);
            Some(millis.ok_or_else(|| range(BsonType::Date))?)
        }
        ValueRef::ObjectId(id) => Some(i64::from(id.seconds()) * 1000),
        ValueRef::Timestamp(stamp) => i64::try_from(stamp >> 32)
            .ok()
            .map(|seconds| seconds * 1000),
        ValueRef::String(text) => {
            Some(parse_date(text, None).ok_or_else(|| format!("cannot parse '{text}' as a date"))?)
        }
        _ => None,
    })
}

/// The text of a scalar that has one.
pub(super) fn to_text(value: ValueRef<'_>) -> Option<String> {
    Some(match value {
        ValueRef::String(text) | ValueRef::Symbol(text) | ValueRef::Code(text) => text.to_owned(),
        ValueRef::Bool(bool) => bool.to_string(),
        ValueRef::Int32(int) => int.to_string(),
        ValueRef::Int64(int) => int.to_string(),
        ValueRef::Double(double) => double_text(double),
        ValueRef::Decimal(decimal) => decimal.to_string(),
        ValueRef::ObjectId(id) => id.to_hex(),
        ValueRef::Date(millis) => date_text(millis)?,
        _ => return None,
    })
}

fn date_text(millis: i64) -> Option<String> {
    let Civil {
        year,
        month,
        day,
        hour,
        minute,
        second,
        millisecond,
    } = Civil::from_millis(millis);
    (0..=9999).contains(&year).then(|| {
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
    })
}

/// Sixteen significant digits, without zeros at the end; an exponent below
/// −4 and from 16 on.
fn double_text(double: f64) -> String {
    if double.is_nan() {
        return "NaN".into();
    }
    if double.is_infinite() {
        return if double > 0.0 {
            "Infinity".into()
        } else {
            "-Infinity".into()
        };
    }
    let scientific = format!("{double:.15e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let strip = |text: &str| {
        let bare = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            text
        };
        bare.to_owned()
    };
    if (-4..16).contains(&exponent) {
        let places = usize::try_from(15 - exponent).unwrap_or(0);
        return strip(&format!("{double:.places$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", strip(mantissa), exponent.abs())
}
