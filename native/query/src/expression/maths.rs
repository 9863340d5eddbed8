//! Arithmetic.
//!
//! Roots, sums, products and quotients of decimals are exact to 34 digits; exponentials, logarithms
//! and trigonometry of decimals are computed as doubles and returned as decimals.

use super::function::Function as F;
use super::item::{Args, NULL, Out, is_null, own};
use crate::arithmetic::{ArithmeticOperator, Overflow, compute, sized, to_decimal};
use crate::bson::{Value, ValueRef};
use crate::decimal::{Decimal, Rounding};
use crate::error::EvaluationFailure;
use crate::number::NumericValue;
use crate::order::compare;

pub(super) fn call<'a>(function: F, args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    match function {
        F::Sum | F::Avg | F::Min | F::Max => return Ok(accumulate(function, args)),
        F::BitAnd | F::BitOr | F::BitXor | F::BitNot => return bits(function, args),
        _ => {}
    }
    if args.any_null() {
        return Ok(NULL);
    }
    match function {
        F::Add => fold(args, ArithmeticOperator::Add, 0),
        F::Multiply => fold(args, ArithmeticOperator::Multiply, 1),
        F::Subtract => subtract(args),
        F::Divide => divide(args),
        F::Mod => modulo(args),
        F::Abs => abs(args),
        F::Ceil => round(args, 0, Rounding::Up),
        F::Floor => round(args, 0, Rounding::Down),
        F::Round => round(args, places(args)?, Rounding::HalfEven),
        F::Trunc => round(args, places(args)?, Rounding::TowardsZero),
        F::Pow => pow(args),
        F::Sqrt => sqrt(args),
        F::Atan2 => both(args, f64::atan2),
        F::Log => log(args),
        F::Ln | F::Log10 => {
            if args.number(0)?.to_f64() <= 0.0 {
                return Err(args.refuse("takes a number above zero"));
            }
            one(
                args,
                if function == F::Ln {
                    f64::ln
                } else {
                    f64::log10
                },
            )
        }
        _ => one(args, function_of_doubles(function)),
    }
}

fn function_of_doubles(function: F) -> fn(f64) -> f64 {
    match function {
        F::Exp => f64::exp,
        F::Sin => f64::sin,
        F::Cos => f64::cos,
        F::Tan => f64::tan,
        F::Asin => f64::asin,
        F::Acos => f64::acos,
        F::Atan => f64::atan,
        F::Sinh => f64::sinh,
        F::Cosh => f64::cosh,
        F::Tanh => f64::tanh,
        F::Asinh => f64::asinh,
        F::Acosh => f64::acosh,
        F::Atanh => f64::atanh,
        F::DegreesToRadians => f64::to_radians,
        F::RadiansToDegrees => f64::to_degrees,
        _ => |double| double,
    }
}

/// Applies a function of doubles; for a decimal, the result is a decimal.
fn one<'a>(args: &Args<'_>, function: fn(f64) -> f64) -> Result<Out<'a>, EvaluationFailure> {
    let number = args.number(0)?;
    let result = function(number.to_f64());
    Ok(own(like(
        matches!(number, NumericValue::Decimal(_)),
        result,
    )))
}

fn both<'a>(args: &Args<'_>, function: fn(f64, f64) -> f64) -> Result<Out<'a>, EvaluationFailure> {
    let (a, b) = (args.number(0)?, args.number(1)?);
    let decimal = matches!(a, NumericValue::Decimal(_)) || matches!(b, NumericValue::Decimal(_));
    Ok(own(like(decimal, function(a.to_f64(), b.to_f64()))))
}

fn like(decimal: bool, double: f64) -> Value {
    if decimal {
        Value::Decimal(Decimal::from_f64(double))
    } else {
        Value::Double(double)
    }
}

/// A sum may contain one date; the result is then a date.
fn fold<'a>(
    args: &Args<'_>,
    operation: ArithmeticOperator,
    start: i32,
) -> Result<Out<'a>, EvaluationFailure> {
    let mut total = Value::Int32(start);
    let mut date = false;
    for (index, value) in args.iter().enumerate() {
        let value = match value {
            Some(ValueRef::Date(millis)) if operation == ArithmeticOperator::Add && !date => {
                date = true;
                ValueRef::Int64(millis)
            }
            Some(ValueRef::Date(_)) if operation == ArithmeticOperator::Add => {
                return Err(args.refuse("takes at most one date"));
            }
            Some(value) if value.is_number() => value,
            _ => return Err(args.wrong(index, "a number")),
        };
        total = widened(operation, &total, value);
    }
    if !date {
        return Ok(own(total));
    }
    match total.as_ref() {
        ValueRef::Int64(millis) => Ok(own(Value::Date(millis))),
        total => date_of(args, total),
    }
}

fn date_of<'a>(args: &Args<'_>, total: ValueRef<'_>) -> Result<Out<'a>, EvaluationFailure> {
    let millis = match NumericValue::from_value(total) {
        Some(NumericValue::Double(double)) => crate::double::exact_i64(double.round_ties_even()),
        Some(NumericValue::Decimal(decimal)) => decimal.round_to_i64(),
        Some(NumericValue::Int(int)) => Some(int),
        None => None,
    };
    millis
        .map(|millis| own(Value::Date(millis)))
        .ok_or_else(|| args.refuse("results in a date out of range"))
}

/// A result beyond 64 bits becomes a double.
fn widened(operation: ArithmeticOperator, total: &Value, value: ValueRef<'_>) -> Value {
    match compute(operation, total.as_ref(), value) {
        Some(Ok(result)) => result,
        Some(Err(Overflow)) => {
            let side =
                |value| NumericValue::from_value(value).map_or(f64::NAN, NumericValue::to_f64);
            let (a, b) = (side(total.as_ref()), side(value));
            Value::Double(match operation {
                ArithmeticOperator::Add => a + b,
                ArithmeticOperator::Subtract => a - b,
                ArithmeticOperator::Multiply => a * b,
            })
        }
        None => Value::Double(f64::NAN),
    }
}

fn subtract<'a>(args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    match (args.get(0), args.get(1)) {
        (Some(ValueRef::Date(a)), Some(ValueRef::Date(b))) => match a.checked_sub(b) {
            Some(millis) => Ok(own(Value::Int64(millis))),
            None => Err(args.refuse("of these dates is out of range")),
        },
        (Some(ValueRef::Date(a)), Some(b)) if b.is_number() => {
            let total = widened(ArithmeticOperator::Subtract, &Value::Int64(a), b);
            date_of(args, total.as_ref())
        }
        _ => {
            args.number(0)?;
            args.number(1)?;
            let (a, b) = (
                args.get(0).unwrap_or(ValueRef::Null),
                args.get(1).unwrap_or(ValueRef::Null),
            );
            Ok(own(widened(ArithmeticOperator::Subtract, &a.into(), b)))
        }
    }
}

fn divide<'a>(args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    let (a, b) = (args.number(0)?, args.number(1)?);
    if b.to_f64() == 0.0 && !matches!(b, NumericValue::Decimal(decimal) if !decimal.is_zero()) {
        return Err(args.refuse("by zero"));
    }
    Ok(own(match (a, b) {
        (NumericValue::Decimal(_), _) | (_, NumericValue::Decimal(_)) => {
            Value::Decimal(to_decimal(a).divided_by(to_decimal(b)))
        }
        _ => Value::Double(a.to_f64() / b.to_f64()),
    }))
}

fn modulo<'a>(args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    let narrow = matches!(
        (args.get(0), args.get(1)),
        (Some(ValueRef::Int32(_)), Some(ValueRef::Int32(_)))
    );
    let (a, b) = (args.number(0)?, args.number(1)?);
    let zero = match b {
        NumericValue::Int(int) => int == 0,
        NumericValue::Double(double) => double == 0.0,
        NumericValue::Decimal(decimal) => decimal.is_zero(),
    };
    if zero {
        return Err(args.refuse("by zero"));
    }
    Ok(own(match (a, b) {
        (NumericValue::Int(a), NumericValue::Int(b)) => sized(a.wrapping_rem(b), narrow),
        (NumericValue::Decimal(_), _) | (_, NumericValue::Decimal(_)) => {
            Value::Decimal(to_decimal(a).remainder(to_decimal(b)))
        }
        _ => Value::Double(a.to_f64() % b.to_f64()),
    }))
}

fn abs<'a>(args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    Ok(own(match (args.number(0)?, args.get(0)) {
        (NumericValue::Int(int), Some(ValueRef::Int32(_))) => sized(int.wrapping_abs(), true),
        (NumericValue::Int(int), _) => Value::Int64(
            int.checked_abs()
                .ok_or_else(|| args.refuse("of the least long does not fit a long"))?,
        ),
        (NumericValue::Double(double), _) => Value::Double(double.abs()),
        (NumericValue::Decimal(decimal), _) => Value::Decimal(decimal.abs()),
    }))
}

fn places(args: &Args<'_>) -> Result<i32, EvaluationFailure> {
    if !args.given(1) {
        return Ok(0);
    }
    let places = args.whole(1)?;
    i32::try_from(places)
        .ok()
        .filter(|places| (-20..=100).contains(places))
        .ok_or_else(|| args.refuse("takes -20 to 100 places"))
}

fn round<'a>(args: &Args<'_>, places: i32, mode: Rounding) -> Result<Out<'a>, EvaluationFailure> {
    let narrow = matches!(args.get(0), Some(ValueRef::Int32(_)));
    Ok(own(match args.number(0)? {
        NumericValue::Int(int) if places >= 0 => sized(int, narrow),
        NumericValue::Int(int) => {
            let rounded = Decimal::from(int).round_to(places, mode).to_exact_i64();
            sized(
                rounded.ok_or_else(|| args.refuse("results in a number of more than 64 bits"))?,
                narrow,
            )
        }
        NumericValue::Decimal(decimal) => Value::Decimal(decimal.round_to(places, mode)),
        NumericValue::Double(double) => Value::Double(round_double(double, places, mode)),
    }))
}

/// Rounds by the double's exact decimal digits.
fn round_double(double: f64, places: i32, mode: Rounding) -> f64 {
    match mode {
        _ if !double.is_finite() => double,
        Rounding::HalfEven if places == 0 => double.round_ties_even(),
        Rounding::TowardsZero if places == 0 => double.trunc(),
        Rounding::Up => double.ceil(),
        Rounding::Down => double.floor(),
        _ => {
            let text = format!("{double:e}");
            let decimal = Decimal::parse_rounded(&text).unwrap_or(Decimal::NAN);
            decimal.round_to(places, mode).to_f64()
        }
    }
}

fn sqrt<'a>(args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    let number = args.number(0)?;
    if number.to_f64() < 0.0 {
        return Err(args.refuse("takes a number from zero"));
    }
    Ok(own(match number {
        NumericValue::Decimal(decimal) => Value::Decimal(decimal.square_root()),
        other => Value::Double(other.to_f64().sqrt()),
    }))
}

fn log<'a>(args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    let (number, base) = (args.number(0)?.to_f64(), args.number(1)?.to_f64());
    if number <= 0.0 || base <= 0.0 || base == 1.0 {
        return Err(args.refuse("takes a number above zero and a base above zero other than 1"));
    }
    both(args, |number, base| number.ln() / base.ln())
}

fn pow<'a>(args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    let (base, exponent) = (args.number(0)?, args.number(1)?);
    if base.to_f64() == 0.0 && exponent.to_f64() < 0.0 {
        return Err(args.refuse("of zero takes an exponent from zero"));
    }
    let narrow = matches!(
        (args.get(0), args.get(1)),
        (Some(ValueRef::Int32(_)), Some(ValueRef::Int32(_)))
    );
    if let (NumericValue::Int(base), NumericValue::Int(exponent)) = (base, exponent) {
        let exact = u32::try_from(exponent)
            .ok()
            .and_then(|exponent| base.checked_pow(exponent));
        if let Some(exact) = exact {
            return Ok(own(sized(exact, narrow)));
        }
    }
    both(args, f64::powf)
}

fn bits<'a>(function: F, args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    if args.any_null() {
        return Ok(NULL);
    }
    let mut narrow = true;
    let mut total = if function == F::BitAnd { -1 } else { 0 };
    for (index, value) in args.iter().enumerate() {
        let int = match value {
            Some(ValueRef::Int32(int)) => i64::from(int),
            Some(ValueRef::Int64(int)) => {
                narrow = false;
                int
            }
            _ => return Err(args.wrong(index, "an int or a long")),
        };
        total = match function {
            F::BitAnd => total & int,
            F::BitOr => total | int,
            F::BitXor => total ^ int,
            _ => !int,
        };
    }
    Ok(own(sized(total, narrow)))
}

/// `$sum`, `$avg`, `$min` and `$max` of the arguments, or of the one array.
fn accumulate<'a>(function: F, args: &Args<'_>) -> Out<'a> {
    let alone = (args.len() == 1)
        .then(|| args.get(0).and_then(|value| value.as_array()))
        .flatten();
    let values: Vec<ValueRef<'_>> = match alone {
        Some(array) => array.iter().collect(),
        None => args.iter().flatten().collect(),
    };
    let numbers = || values.iter().copied().filter(ValueRef::is_number);
    match function {
        F::Sum => own(numbers().fold(Value::Int32(0), |sum, value| {
            widened(ArithmeticOperator::Add, &sum, value)
        })),
        F::Avg => {
            let count = numbers().count();
            if count == 0 {
                return NULL;
            }
            let sum = numbers().fold(Value::Int32(0), |sum, value| {
                widened(ArithmeticOperator::Add, &sum, value)
            });
            let count = NumericValue::Int(i64::try_from(count).unwrap_or(i64::MAX));
            NumericValue::from_value(sum.as_ref()).and_then(|sum| {
                own(match sum {
                    NumericValue::Decimal(decimal) => {
                        Value::Decimal(decimal.divided_by(to_decimal(count)))
                    }
                    other => Value::Double(other.to_f64() / count.to_f64()),
                })
            })
        }
        _ => {
            let present = values
                .iter()
                .copied()
                .filter(|value| !is_null(Some(*value)));
            let extreme = if function == F::Min {
                present.min_by(|a, b| compare(*a, *b))
            } else {
                present.max_by(|a, b| compare(*a, *b))
            };
            extreme.map_or(NULL, |value| own(value.into()))
        }
    }
}
