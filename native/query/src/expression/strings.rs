//! Text.

use super::function::Function as F;
use super::item::{Args, NULL, Out, array, boolean, count, is_null, own, text};
use crate::bson::{ArrayWriter, DocumentWriter, Value, ValueRef};
use crate::error::EvaluationFailure;
use crate::fuel::Fuel;
use crate::pattern::Pattern;

pub(super) fn call<'a>(
    function: F,
    args: &Args<'_>,
    fuel: &Fuel,
) -> Result<Out<'a>, EvaluationFailure> {
    fuel.steps(
        args.iter()
            .flatten()
            .filter_map(|value| value.as_str())
            .map(|text| text.len() as u64 / 256)
            .sum(),
    )?;
    match function {
        F::Concat => {
            if args.any_null() {
                return Ok(NULL);
            }
            let mut joined = String::new();
            for index in 0..args.len() {
                joined.push_str(args.text(index)?);
            }
            Ok(text(joined))
        }
        F::StrLenBytes => Ok(count(args.text(0)?.len())),
        F::StrLenCp => Ok(count(args.text(0)?.chars().count())),
        F::ToLower => Ok(text(coerced(args, 0)?.to_ascii_lowercase())),
        F::ToUpper => Ok(text(coerced(args, 0)?.to_ascii_uppercase())),
        F::StrCaseCmp => {
            let (a, b) = (
                coerced(args, 0)?.to_ascii_uppercase(),
                coerced(args, 1)?.to_ascii_uppercase(),
            );
            Ok(own(Value::Int32(a.cmp(&b) as i32)))
        }
        F::Substr | F::SubstrBytes => substring_bytes(args),
        F::SubstrCp => substring_characters(args),
        F::Split => split(args),
        F::Trim | F::Ltrim | F::Rtrim => trim(function, args),
        F::IndexOfBytes => index_of(args, false),
        F::IndexOfCp => index_of(args, true),
        F::ReplaceOne | F::ReplaceAll => replace(function, args),
        _ => regex(function, args, fuel),
    }
}

/// Null is empty text; numbers and dates are written out.
fn coerced(args: &Args<'_>, index: usize) -> Result<String, EvaluationFailure> {
    match args.get(index) {
        value if is_null(value) => Ok(String::new()),
        Some(ValueRef::String(text) | ValueRef::Symbol(text)) => Ok(text.to_owned()),
        Some(value) => super::convert::to_text(value).ok_or_else(|| args.wrong(index, "a string")),
        None => Ok(String::new()),
    }
}

fn substring_bytes<'a>(args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    let whole = coerced(args, 0)?;
    let (start, length) = (args.whole(1)?, args.whole(2)?);
    let Ok(start) = usize::try_from(start) else {
        return Err(args.refuse("takes a start from zero"));
    };
    if start >= whole.len() {
        return Ok(text(""));
    }
    // A negative length reaches to the end.
    let end = usize::try_from(length).map_or(whole.len(), |length| {
        start.saturating_add(length).min(whole.len())
    });
    match whole.get(start..end) {
        Some(part) => Ok(text(part)),
        None => Err(args.refuse("would split a character")),
    }
}

fn substring_characters<'a>(args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    let whole = coerced(args, 0)?;
    let part = |index| {
        usize::try_from(args.whole(index)?).map_err(|_| args.refuse("takes numbers from zero"))
    };
    let (start, length) = (part(1)?, part(2)?);
    Ok(text(
        whole.chars().skip(start).take(length).collect::<String>(),
    ))
}

fn split<'a>(args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    if args.any_null() {
        return Ok(NULL);
    }
    let (whole, separator) = (args.text(0)?, args.text(1)?);
    if separator.is_empty() {
        return Err(args.refuse("takes a separator that is not empty"));
    }
    Ok(array(whole.split(separator).map(ValueRef::String)))
}

/// What MongoDB trims when no characters are given.
const WHITESPACE: &[char] = &[
    '\0', '\t', '\n', '\u{b}', '\u{c}', '\r', ' ', '\u{a0}', '\u{1680}', '\u{2000}', '\u{2001}',
    '\u{2002}', '\u{2003}', '\u{2004}', '\u{2005}', '\u{2006}', '\u{2007}', '\u{2008}', '\u{2009}',
    '\u{200a}',
];

fn trim<'a>(function: F, args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    if args.is_null(0) || (args.given(1) && args.is_null(1)) {
        return Ok(NULL);
    }
    let whole = args.text(0)?;
    let set: Vec<char> = if args.given(1) {
        args.text(1)?.chars().collect()
    } else {
        WHITESPACE.to_vec()
    };
    let is_unwanted = |character: char| set.contains(&character);
    Ok(text(match function {
        F::Trim => whole.trim_matches(is_unwanted),
        F::Ltrim => whole.trim_start_matches(is_unwanted),
        _ => whole.trim_end_matches(is_unwanted),
    }))
}

/// The position of some text, or −1.
fn index_of<'a>(args: &Args<'_>, characters: bool) -> Result<Out<'a>, EvaluationFailure> {
    if args.is_null(0) {
        return Ok(NULL);
    }
    let (text, needle) = (args.text(0)?, args.text(1)?);
    let length = if characters {
        text.chars().count()
    } else {
        text.len()
    };
    let bound = |index: usize, default: usize| {
        if !args.given(index) {
            return Ok(default);
        }
        usize::try_from(args.whole(index)?).map_err(|_| args.refuse("takes positions from zero"))
    };
    let (start, end) = (bound(2, 0)?, bound(3, length)?.min(length));
    if start > end || start > length {
        return Ok(own(Value::Int32(-1)));
    }
    let offset = |position: usize| {
        if !characters {
            return position;
        }
        text.char_indices()
            .nth(position)
            .map_or(text.len(), |(offset, _)| offset)
    };
    let (from, to) = (offset(start), offset(end));
    let Some(part) = text.as_bytes().get(from..to) else {
        return Ok(own(Value::Int32(-1)));
    };
    let position = match needle.as_bytes() {
        [] => Some(0),
        bytes => part.windows(bytes.len()).position(|window| window == bytes),
    };
    Ok(position.map_or(own(Value::Int32(-1)), |position| {
        let at = from + position;
        if characters {
            count(text.get(..at).map_or(0, |before| before.chars().count()))
        } else {
            count(at)
        }
    }))
}

fn replace<'a>(function: F, args: &Args<'_>) -> Result<Out<'a>, EvaluationFailure> {
    if args.any_null() {
        return Ok(NULL);
    }
    let (whole, find, replacement) = (args.text(0)?, args.text(1)?, args.text(2)?);
    // The size is known before anything is built.
    let times = if function == F::ReplaceAll {
        whole.matches(find).count()
    } else {
        1
    };
    if whole
        .len()
        .saturating_add(times.saturating_mul(replacement.len()))
        > crate::limits::EVALUATION_BYTES
    {
        return Err(EvaluationFailure::OutOfMemory);
    }
    Ok(text(match function {
        F::ReplaceAll => whole.replace(find, replacement),
        _ => whole.replacen(find, replacement, 1),
    }))
}

/// The fuel for compiling a regular expression from the document.
const COMPILING_STEPS: u64 = 2_000;

fn regex<'a>(function: F, args: &Args<'_>, fuel: &Fuel) -> Result<Out<'a>, EvaluationFailure> {
    if args.is_null(0) || args.is_null(1) {
        return Ok(nothing_found(function));
    }
    let given = if args.is_null(2) {
        None
    } else {
        Some(args.text(2)?)
    };
    let (source, options) = match (args.get(1), given) {
        (Some(ValueRef::String(source)), given) => (source, given.unwrap_or("")),
        (Some(ValueRef::Regex(regex)), None) => (regex.pattern, regex.options),
        (Some(ValueRef::Regex(regex)), Some(given)) if regex.options.is_empty() => {
            (regex.pattern, given)
        }
        _ => {
            return Err(args.wrong(
                1,
                "a string or a regular expression with options in one place",
            ));
        }
    };
    fuel.steps(COMPILING_STEPS + 20 * source.len() as u64)?;
    let pattern = Pattern::new(source, options).map_err(|why| args.refuse(&why))?;
    with_pattern(function, &pattern, args, fuel)
}

fn nothing_found<'a>(function: F) -> Out<'a> {
    match function {
        F::RegexMatch => boolean(false),
        F::RegexFindAll => super::item::empty_array(),
        _ => NULL,
    }
}

/// Finds a regular expression in the first argument.
pub(super) fn with_pattern<'a>(
    function: F,
    pattern: &Pattern,
    args: &Args<'_>,
    fuel: &Fuel,
) -> Result<Out<'a>, EvaluationFailure> {
    if args.is_null(0) {
        return Ok(nothing_found(function));
    }
    let whole = args.text(0)?;
    fuel.steps(whole.len() as u64 / 256)?;
    if function == F::RegexMatch {
        return Ok(boolean(pattern.is_match(whole)));
    }
    let mut all = ArrayWriter::new();
    let mut seen = (0, 0);
    for captures in pattern.compiled().captures_iter(whole.as_bytes()) {
        let Some(whole_match) = captures.get(0) else {
            continue;
        };
        let before = whole
            .get(seen.0..whole_match.start())
            .map_or(0, |part| part.chars().count());
        seen = (whole_match.start(), seen.1 + before);
        let mut writer = DocumentWriter::new();
        let match_at = whole_match.start();
        let piece = |range: std::ops::Range<usize>| whole.get(range).unwrap_or_default();
        writer.append("match", ValueRef::String(piece(whole_match.range())));
        writer.append(
            "idx",
            ValueRef::Int32(i32::try_from(seen.1).unwrap_or(i32::MAX)),
        );
        let mut groups = ArrayWriter::new();
        for group in captures.iter().skip(1) {
            groups.push(group.map_or(ValueRef::Null, |group| {
                ValueRef::String(piece(group.range()))
            }));
        }
        writer.append("captures", Value::Array(groups.into()).as_ref());
        let details = Value::Document(writer.into());
        if function == F::RegexFind {
            return Ok(own(details));
        }
        all.push(details.as_ref());
        // Each search may look at all that is left before it finds anything.
        fuel.steps(1 + (whole.len().saturating_sub(match_at) >> 10) as u64)?;
        if all.len() > crate::limits::EVALUATION_BYTES {
            return Err(EvaluationFailure::OutOfMemory);
        }
    }
    if function == F::RegexFind {
        Ok(NULL)
    } else {
        Ok(own(Value::Array(all.into())))
    }
}
