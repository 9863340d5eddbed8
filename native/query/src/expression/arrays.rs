//! Arrays.

use super::function::Function as F;
use super::item::{Args, NULL, Out, array, boolean, count, document, is_null, own};
use crate::bson::{Array, DocumentWriter, Value, ValueRef};
use crate::error::{EvaluationFailure, ParseLocation};
use crate::fuel::Fuel;
use crate::limits::EVALUATION_BYTES;
use crate::order::{compare, equal};
use crate::sort::{Sort, SystemFields};

pub(super) fn call<'a>(
    function: F,
    args: &Args<'_>,
    fuel: &Fuel,
) -> Result<Out<'a>, EvaluationFailure> {
    if function == F::IsArray {
        return Ok(boolean(matches!(args.get(0), Some(ValueRef::Array(_)))));
    }
    if args.is_null(0)
        && !matches!(
            function,
            F::In | F::Size | F::Zip | F::Range | F::ConcatArrays
        )
    {
        return Ok(NULL);
    }
    match function {
        F::ArrayElemAt => Ok(element(
            args.array(0)?,
            if args.is_null(1) {
                return Ok(NULL);
            } else {
                args.whole(1)?
            },
        )),
        F::First => Ok(element(args.array(0)?, 0)),
        F::Last => Ok(element(args.array(0)?, -1)),
        F::Size => Ok(count(args.array(0)?.len())),
        F::In => {
            let (value, list) = (args.get(0), args.array(1)?);
            fuel.steps(list.as_bytes().len() as u64 / 64)?;
            Ok(boolean(value.is_some_and(|value| {
                list.iter().any(|element| equal(element, value))
            })))
        }
        F::IndexOfArray => index_of(args),
        F::ReverseArray => {
            let mut values: Vec<ValueRef<'_>> = args.array(0)?.iter().collect();
            values.reverse();
            Ok(array(values))
        }
        F::ConcatArrays => {
            if args.any_null() {
                return Ok(NULL);
            }
            let mut values = Vec::new();
            for index in 0..args.len() {
                values.extend(args.array(index)?.iter());
            }
            Ok(array(values))
        }
        F::Slice => slice(args),
        F::Range => range(args, fuel),
        F::ArrayToObject => to_document(args),
        F::FirstN | F::LastN | F::MaxN | F::MinN => some(function, args, fuel),
        F::SortArray => sort(args, fuel),
        _ => zip(args, fuel),
    }
}

/// A negative index counts from the end; out of range is missing.
fn element<'a>(values: Array<'_>, index: i64) -> Out<'a> {
    let distance = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
    let index = if index < 0 {
        values.len().checked_sub(distance)?
    } else {
        distance
    };
    values.get(index).and_then(|value| own(value.into()))
}

fn index_of<'a>(args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    let values = args.array(0)?;
    let bound = |index: usize, default: usize| {
        if !args.given(index) {
            return Ok(default);
        }
        usize::try_from(args.whole(index)?).map_err(|_| args.refuse("takes positions from zero"))
    };
    let (start, end) = (bound(2, 0)?, bound(3, usize::MAX)?);
    let wanted = args.get(1).unwrap_or(ValueRef::Undefined);
    let mut places = values
        .iter()
        .enumerate()
        .skip(start)
        .take_while(|(index, _)| *index < end);
    Ok(places
        .find(|(_, value)| equal(*value, wanted))
        .map_or(own(Value::Int32(-1)), |(index, _)| count(index)))
}

fn slice<'a>(args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    if args.any_null() {
        return Ok(NULL);
    }
    let values = args.array(0)?;
    let length = values.len();
    let from_end = |distance: i64| {
        length.saturating_sub(usize::try_from(distance.unsigned_abs()).unwrap_or(usize::MAX))
    };
    let (skip, limit) = if args.given(2) {
        let (position, limit) = (args.whole(1)?, args.whole(2)?);
        let Some(limit) = usize::try_from(limit).ok().filter(|limit| *limit > 0) else {
            return Err(args.refuse("takes a count above zero as its third argument"));
        };
        let skip = if position < 0 {
            from_end(position)
        } else {
            usize::try_from(position).unwrap_or(usize::MAX)
        };
        (skip, limit)
    } else {
        match args.whole(1)? {
            number if number < 0 => (from_end(number), usize::MAX),
            number => (0, usize::try_from(number).unwrap_or(usize::MAX)),
        }
    };
    Ok(array(values.iter().skip(skip).take(limit)))
}

fn range<'a>(args: &Args<'_>, fuel: &Fuel) -> Result<Out<'a>, EvaluationFailure> {
    let part = |index| {
        let number = i32::try_from(args.whole(index)?);
        number.map_err(|_| args.refuse("takes 32-bit numbers"))
    };
    let (start, end) = (part(0)?, part(1)?);
    let step = if args.given(2) { part(2)? } else { 1 };
    if step == 0 {
        return Err(args.refuse("takes a step other than zero"));
    }
    let count = (i64::from(end) - i64::from(start))
        .div_euclid(i64::from(step))
        .max(0)
        .unsigned_abs()
        + 1;
    fuel.bytes(
        usize::try_from(count)
            .unwrap_or(usize::MAX)
            .saturating_mul(8),
    )?;
    let numbers = std::iter::successors(Some(start), |number| number.checked_add(step));
    Ok(array(
        numbers
            .take_while(|number| {
                if step > 0 {
                    *number < end
                } else {
                    *number > end
                }
            })
            .map(ValueRef::Int32),
    ))
}

/// From `[[key, value], …]` or `[{k, v}, …]`; a duplicate key keeps its position and receives the
/// last value.
fn to_document<'a>(args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    let wrong = || args.refuse("takes pairs, or documents of k and v, with keys that are strings");
    let mut fields: Vec<(&str, ValueRef<'_>)> = Vec::new();
    for value in args.array(0)?.iter() {
        let pair = match value {
            ValueRef::Array(pair) if pair.len() == 2 => pair.get(0).zip(pair.get(1)),
            ValueRef::Document(pair) if pair.len() == 2 => pair.get("k").zip(pair.get("v")),
            _ => None,
        };
        let (key, value) = pair
            .and_then(|(key, value)| Some((key.as_str()?, value)))
            .ok_or_else(wrong)?;
        match fields.iter_mut().find(|(known, _)| *known == key) {
            Some((_, slot)) => *slot = value,
            None => fields.push((key, value)),
        }
    }
    let mut writer = DocumentWriter::new();
    fields
        .iter()
        .for_each(|(key, value)| writer.append(key, *value));
    Ok(document(writer.into()))
}

fn some<'a>(function: F, args: &Args<'_>, fuel: &Fuel) -> Result<Out<'a>, EvaluationFailure> {
    let values = args.array(0)?;
    let Some(wanted) = usize::try_from(args.whole(1)?)
        .ok()
        .filter(|wanted| *wanted > 0)
    else {
        return Err(args.refuse("takes n above zero"));
    };
    let mut values: Vec<ValueRef<'_>> = values.iter().collect();
    fuel.steps(values.len() as u64)?;
    match function {
        F::FirstN => values.truncate(wanted),
        F::LastN => {
            let before = values.len().saturating_sub(wanted);
            values.rotate_left(before);
        }
        _ => {
            values.retain(|value| !is_null(Some(*value)));
            values.sort_by(|a, b| {
                if function == F::MinN {
                    compare(*a, *b)
                } else {
                    compare(*b, *a)
                }
            });
        }
    }
    values.truncate(wanted);
    Ok(array(values))
}

fn sort<'a>(args: &Args<'_>, fuel: &Fuel) -> Result<Out<'a>, EvaluationFailure> {
    let mut values: Vec<ValueRef<'_>> = args.array(0)?.iter().collect();
    fuel.steps(values.len() as u64)?;
    let by = args.get(1).unwrap_or(ValueRef::Null);
    match (by, by.as_exact_i64()) {
        (_, Some(1)) => values.sort_by(|a, b| compare(*a, *b)),
        (_, Some(-1)) => values.sort_by(|a, b| compare(*b, *a)),
        (ValueRef::Document(_), _) => {
            let sort = Sort::parse_of_values(by, &ParseLocation::root())
                .map_err(|error| args.refuse(&error.detail))?;
            let mut keyed = Vec::with_capacity(values.len());
            for value in values {
                let document = value
                    .as_document()
                    .unwrap_or_else(crate::bson::Document::empty);
                keyed.push((sort.key(document, SystemFields::default(), fuel)?, value));
            }
            keyed.sort_by(|a, b| a.0.cmp(&b.0));
            return Ok(array(keyed.into_iter().map(|(_, value)| value)));
        }
        _ => return Err(args.refuse("takes 1, -1 or a document of fields as its order")),
    }
    Ok(array(values))
}

fn zip<'a>(args: &Args<'_>, fuel: &Fuel) -> Result<Out<'a>, EvaluationFailure> {
    let mut inputs = Vec::new();
    for input in args.array(0)?.iter() {
        match input {
            ValueRef::Array(input) => inputs.push(input.iter().collect::<Vec<_>>()),
            value if is_null(Some(value)) => return Ok(NULL),
            _ => return Err(args.refuse("takes arrays as its inputs")),
        }
    }
    let longest = matches!(args.get(1), Some(ValueRef::Bool(true)));
    let defaults: Vec<ValueRef<'_>> = match args.get(2) {
        Some(ValueRef::Array(defaults)) if longest && defaults.len() == inputs.len() => {
            defaults.iter().collect()
        }
        None | Some(ValueRef::Null) => Vec::new(),
        _ => return Err(args.refuse("takes one default for each input, with useLongestLength")),
    };
    let lengths = inputs.iter().map(Vec::len);
    let length = if longest {
        lengths.max()
    } else {
        lengths.min()
    }
    .unwrap_or(0);
    let mut rows = Vec::with_capacity(length);
    let mut built = 0_usize;
    for row in 0..length {
        fuel.steps(inputs.len() as u64)?;
        let cells = inputs.iter().enumerate().map(|(index, input)| {
            input
                .get(row)
                .or_else(|| defaults.get(index))
                .copied()
                .unwrap_or(ValueRef::Null)
        });
        let row = Value::Array(cells.collect());
        built += row.size();
        if built > EVALUATION_BYTES {
            return Err(EvaluationFailure::OutOfMemory);
        }
        rows.push(row);
    }
    Ok(array(rows.iter().map(Value::as_ref)))
}
