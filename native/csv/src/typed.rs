//! A field's text as a value.

use rillbase_query::bson::{ObjectId, Value};
use rillbase_query::ejson::date::from_rfc3339;
use rillbase_query::ejson::parse_value;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsvType {
    /// The text itself.
    Text,
    /// A JSON number: an integer of 64 bits, or a double.
    Number,
    /// `true` or `false`, also `yes`, `no`, `1` and `0`.
    Boolean,
    /// A date, with or without a time; UTC if no offset is given.
    Date,
    /// Extended JSON.
    Json,
    /// Twelve bytes as 24 hexadecimal digits.
    ObjectId,
}

/// Every type with its name in the API.
const NAMES: [(CsvType, &str); 6] = [
    (CsvType::Text, "string"),
    (CsvType::Number, "number"),
    (CsvType::Boolean, "boolean"),
    (CsvType::Date, "date"),
    (CsvType::Json, "json"),
    (CsvType::ObjectId, "objectId"),
];
/// The maximum number of characters of a text that an error quotes.
const SHOWN_CHARS: usize = 40;

impl CsvType {
    /// The name in the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        let named = NAMES.iter().find(|(kind, _)| *kind == self);
        named.map_or("string", |(_, name)| name)
    }

    /// The type with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let named = NAMES.iter().find(|(_, known)| *known == name);
        named.map(|(kind, _)| *kind)
    }

    /// The value of a text.
    ///
    /// # Errors
    ///
    /// One sentence that says why the text is not valid for this type.
    pub fn value(self, text: &str) -> Result<Value, String> {
        let trimmed = text.trim_ascii();
        match self {
            Self::Text => Ok(Value::String(text.to_owned())),
            Self::Number => number(trimmed).ok_or_else(|| is_no(text, "number")),
            Self::Boolean => boolean(trimmed)
                .map(Value::Bool)
                .ok_or_else(|| is_no(text, "boolean: expected true or false")),
            Self::Date => micros(trimmed)
                .map(|micros| Value::Date(micros.div_euclid(1_000)))
                .ok_or_else(|| is_no(text, "date such as 2026-11-21 or 2026-11-21T08:00:00Z")),
            Self::Json => parse_value(trimmed.as_bytes())
                .map_err(|error| format!("{}: {}.", is_no(text, "JSON"), error.detail)),
            Self::ObjectId => ObjectId::from_hex(trimmed)
                .map(Value::ObjectId)
                .ok_or_else(|| is_no(text, "ObjectId: expected 24 hexadecimal digits")),
        }
    }
}

/// The error for a text that is not valid for a type.
pub(crate) fn is_no(text: &str, what: &str) -> String {
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    let article = match what.chars().next() {
        Some('J') => "",
        Some('O' | 'i') => "an ",
        _ => "a ",
    };
    format!("\"{shown}\" is not {article}{what}.")
}

/// An integer or a double, in the grammar of JSON, which excludes `007`.
fn number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let after_zero = digits.strip_prefix('0').unwrap_or_default();
    let has_leading_zero = after_zero.starts_with(|next: char| next.is_ascii_digit());
    if !digits.starts_with(|first: char| first.is_ascii_digit()) || has_leading_zero {
        return None;
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        // An integer that needs more than 64 bits would be rounded.
        let integer = text.parse::<i64>().ok()?;
        return Some(i32::try_from(integer).map_or(Value::Int64(integer), Value::Int32));
    }
    double(text).map(Value::Double)
}

/// A finite double.
pub(crate) fn double(text: &str) -> Option<f64> {
    let is_number = text.starts_with(|first: char| first.is_ascii_digit() || first == '-')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'))
        && !text.ends_with('.');
    let parsed = text.parse::<f64>().ok().filter(|double| double.is_finite());
    parsed.filter(|_| is_number)
}

pub(crate) fn boolean(text: &str) -> Option<bool> {
    let is_any = |words: [&str; 3]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    let is_true = is_any(["true", "yes", "1"]);
    (is_true || is_any(["false", "no", "0"])).then_some(is_true)
}

/// Microseconds since 1970: a day, or a day and a time with `T` or a space between them.
pub(crate) fn micros(text: &str) -> Option<i64> {
    let (day, time) = text.split_at_checked("2026-11-21".len())?;
    if time.is_empty() {
        return from_rfc3339(&format!("{day}T00:00:00Z"))?.checked_mul(1_000);
    }
    let time = time.strip_prefix(['T', 't', ' '])?;
    let clock = time.find(['Z', 'z', '+', '-']);
    let (clock, offset) = time.split_at_checked(clock.unwrap_or(time.len()))?;
    let offset = if offset.is_empty() { "Z" } else { offset };
    // Spreadsheets write `2026-11-21 08:00`.
    let seconds = if clock.len() == "08:00".len() {
        ":00"
    } else {
        ""
    };
    let millis = from_rfc3339(&format!("{day}T{clock}{seconds}{offset}"))?;
    let fraction = clock.split_once('.').map_or("", |(_, digits)| digits);
    let digits = fraction.chars().chain("000000".chars()).skip(3).take(3);
    let below: i64 = digits.collect::<String>().parse().ok()?;
    millis.checked_mul(1_000)?.checked_add(below)
}
