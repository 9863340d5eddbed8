//! Queries of an aggregate.

use rillbase_query::bson::{Document, DocumentBuf, ValueRef};
use rillbase_query::ejson::{self, date};
use rillbase_query::filter::Filter;

use crate::definition_parser::duration;
use crate::error::{AggregateErrorCode, Error, Result, segment};

const DEFAULT_LIMIT: usize = 1000;
const MAX_LIMIT: i64 = 10_000;

/// What each row is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// The previous period.
    Previous,
    /// This many milliseconds earlier.
    Earlier(i64),
}

/// The snapshot to read at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotSelector {
    /// One that is at most a second old, which many share.
    Shared,
    /// The current state.
    Fresh,
    /// That of an earlier result.
    Named(String),
}

/// A query.
#[derive(Debug)]
pub struct AggregateQuery {
    /// The rollup to read.
    pub rollup: Option<Vec<String>>,
    /// Which rows count.
    pub filter: Option<(DocumentBuf, Filter)>,
    /// The start.
    pub from: Option<i64>,
    /// The end, exclusive.
    pub to: Option<i64>,
    /// The group columns.
    pub group_by: Option<Vec<String>>,
    /// The length of buckets.
    pub bucket: Option<i64>,
    /// Names, and whether the order is descending.
    pub order: Vec<(String, bool)>,
    /// The maximum number of rows.
    pub limit: usize,
    /// The measures in the result.
    pub measures: Option<Vec<String>>,
    /// What each is compared with.
    pub compare: Option<Compare>,
    /// The snapshot to read at.
    pub moment: SnapshotSelector,
}

pub(crate) fn refuse(pointer: impl Into<String>, detail: impl Into<String>) -> Error {
    Error::at(AggregateErrorCode::BadQuery, pointer, detail)
}

impl AggregateQuery {
    /// Parses a query from JSON; times are relative to `now`.
    pub fn parse(text: &[u8], now: i64) -> Result<Self> {
        let parsed = ejson::parse_document(text);
        let parsed = parsed.map_err(|error| refuse(error.pointer, error.detail))?;
        let document = parsed.as_ref();
        let mut query = Self {
            rollup: None,
            filter: None,
            from: None,
            to: None,
            group_by: None,
            bucket: None,
            order: Vec::new(),
            limit: DEFAULT_LIMIT,
            measures: None,
            compare: None,
            moment: SnapshotSelector::Shared,
        };
        for (name, value) in document.iter() {
            if !matches!(value, ValueRef::Null) {
                query.take(name, value, now)?;
            }
        }
        Ok(query)
    }

    fn take(&mut self, name: &str, value: ValueRef<'_>, now: i64) -> Result<()> {
        let pointer = format!("/{}", segment(name));
        match name {
            "rollup" => self.rollup = Some(names(value, &pointer)?),
            "filter" => self.filter = Some(filter(value)?),
            "from" => self.from = Some(moment(value, &pointer, now)?),
            "to" => self.to = Some(moment(value, &pointer, now)?),
            "group_by" => self.group_by = Some(names(value, &pointer)?),
            "bucket" => self.bucket = Some(length(value, &pointer)?),
            "order" => self.order = order(value)?,
            "limit" => self.limit = limit(value)?,
            "measures" => self.measures = Some(names(value, &pointer)?),
            "compare" => {
                self.compare = Some(match value.as_str() {
                    Some("previous") => Compare::Previous,
                    _ => Compare::Earlier(length(value, &pointer)?),
                });
            }
            "snapshot" => {
                self.moment = match value.as_str() {
                    Some("fresh") => SnapshotSelector::Fresh,
                    Some(name) => SnapshotSelector::Named(name.to_owned()),
                    None => return Err(refuse(pointer, "a string is expected")),
                }
            }
            _ => return Err(refuse(pointer, format!("unknown member '{name}'"))),
        }
        Ok(())
    }
}

fn names(value: ValueRef<'_>, pointer: &str) -> Result<Vec<String>> {
    let array = value
        .as_array()
        .ok_or_else(|| refuse(pointer, "an array is expected"))?;
    let names = array.iter().enumerate().map(|(index, value)| {
        let name = value.as_str().map(str::to_owned);
        name.ok_or_else(|| refuse(format!("{pointer}/{index}"), "a string is expected"))
    });
    names.collect()
}

fn filter(value: ValueRef<'_>) -> Result<(DocumentBuf, Filter)> {
    let document = value
        .as_document()
        .ok_or_else(|| refuse("/filter", "an object is expected"))?;
    let at = |error: rillbase_query::error::Error| {
        refuse(format!("/filter{}", error.pointer), error.detail)
    };
    let filter = Filter::parse(document).map_err(at)?;
    let kept = DocumentBuf::parse(document.as_bytes().to_vec()).map_err(at)?;
    Ok((kept, filter))
}

/// A time: RFC 3339, milliseconds, or relative to now.
fn moment(value: ValueRef<'_>, pointer: &str, now: i64) -> Result<i64> {
    let read = match value {
        ValueRef::Date(millis) => Some(millis),
        ValueRef::String(text) => relative(text, now).or_else(|| date::from_rfc3339(text)),
        other => other.as_exact_i64(),
    };
    read.ok_or_else(|| {
        refuse(
            pointer,
            "a time is RFC 3339, milliseconds since 1970, or from now, such as \"-1h\"",
        )
    })
}

fn relative(text: &str, now: i64) -> Option<i64> {
    if let Some(back) = text.strip_prefix('-') {
        return now.checked_sub(duration(back)?);
    }
    now.checked_add(duration(text.strip_prefix('+')?)?)
}

fn length(value: ValueRef<'_>, pointer: &str) -> Result<i64> {
    let length = value.as_str().and_then(duration);
    length.ok_or_else(|| refuse(pointer, "a duration is expected, such as \"1h\""))
}

fn order(value: ValueRef<'_>) -> Result<Vec<(String, bool)>> {
    let keys = value
        .as_array()
        .ok_or_else(|| refuse("/order", "an array of [name, 1 or -1] is expected"))?;
    let keys = keys.iter().enumerate().map(|(index, key)| {
        let pair = key.as_array();
        let name = pair.and_then(|pair| pair.get(0)?.as_str().map(str::to_owned));
        let direction = pair.and_then(|pair| pair.get(1)?.as_exact_i64());
        match (name, direction) {
            (Some(name), Some(1)) => Ok((name, false)),
            (Some(name), Some(-1)) => Ok((name, true)),
            _ => Err(refuse(
                format!("/order/{index}"),
                "[name, 1 or -1] is expected",
            )),
        }
    });
    keys.collect()
}

fn limit(value: ValueRef<'_>) -> Result<usize> {
    let limit = value.as_exact_i64();
    let limit = limit.filter(|limit| (1..=MAX_LIMIT).contains(limit));
    let limit = limit.ok_or_else(|| refuse("/limit", "a limit is from 1 to 10,000"))?;
    Ok(usize::try_from(limit).unwrap_or_default())
}

/// The fields that a filter reads, and whether those are all.
pub(crate) fn fields<'a>(document: Document<'a>, names: &mut Vec<&'a str>) -> bool {
    let mut are_all = true;
    for (name, value) in document.iter() {
        match (name, value.as_array()) {
            ("$and" | "$or" | "$nor", Some(parts)) => {
                let parts = parts.iter().filter_map(|part| part.as_document());
                for part in parts {
                    are_all &= fields(part, names);
                }
            }
            ("$comment", _) => {}
            _ if name.starts_with('$') => are_all = false,
            _ => names.push(name),
        }
    }
    are_all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_absolute_or_from_now() {
        for (text, expected) in [
            (r#"{"from":"-10s"}"#, Some(990_000)),
            (r#"{"from":5}"#, Some(5)),
            (r#"{"from":"1970-01-01T00:00:01Z"}"#, Some(1000)),
            (r#"{"from":null}"#, None),
        ] {
            let query = AggregateQuery::parse(text.as_bytes(), 1_000_000).unwrap();
            assert_eq!(query.from, expected, "{text}");
        }
    }

    #[test]
    fn errors_name_their_location() {
        for (text, expected) in [
            (r#"{"limit":0}"#, "/limit a limit"),
            (r#"{"group_by":[1]}"#, "/group_by/0 a string"),
            (r#"{"order":[["n",2]]}"#, "/order/0 [name"),
            (r#"{"filter":{"a":{"$near":1}}}"#, "/filter/a"),
            (r#"{"from":"noon"}"#, "/from a time"),
            (r#"{"sort":[]}"#, "/sort unknown member"),
        ] {
            let refusal = AggregateQuery::parse(text.as_bytes(), 0)
                .unwrap_err()
                .to_string();
            assert!(refusal.starts_with(expected), "{refusal}");
        }
    }
}
