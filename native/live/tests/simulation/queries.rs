//! Queries of the simulation, in two languages: as nodes read them, and as the checks do.

use std::sync::Arc;

use rillbase_live::message::{Definition, QueryHash, Row};
use rillbase_query::bson::Value;
use rillbase_query::ejson::parse_value;

use crate::COLLECTION;
use crate::database::{Database, Version};

/// A query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) number: u8,
    /// `n` is at least this …
    low: i64,
    /// … and less than that.
    high: i64,
    /// Offset, limit, slack.
    pub(crate) window: Option<(u32, u32, u32)>,
}

const fn query(number: u8, low: i64, high: i64, window: Option<(u32, u32, u32)>) -> Query {
    Query {
        number,
        low,
        high,
        window,
    }
}

/// All of them.
pub(crate) const QUERIES: [Query; 7] = [
    query(1, 0, 1_000, None),
    query(2, 3, 7, None),
    query(3, 5, 6, None),
    query(4, 0, 1_000, Some((0, 2, 1))),
    query(5, -1_000, 1_000, Some((1, 2, 0))),
    query(6, 2, 8, Some((0, 3, 2))),
    query(7, 0, 5, Some((0, u32::MAX, 0))),
];

fn bson(json: &str) -> Arc<[u8]> {
    match parse_value(json.as_bytes()) {
        Ok(Value::Document(document)) => document.as_bytes().into(),
        other => panic!("{json}: {other:?}"),
    }
}

impl Query {
    pub(crate) fn hash(self) -> QueryHash {
        QueryHash([self.number; 16])
    }

    pub(crate) fn definition(self) -> Definition {
        let (offset, limit, slack) = self.window.unwrap_or_default();
        let (low, high) = (self.low, self.high);
        let filter = format!(r#"{{"n":{{"$gte":{low},"$lt":{high}}}}}"#);
        Definition {
            hash: self.hash(),
            activation: 0,
            tenant: [1; 16],
            collection: COLLECTION,
            rules_version: 0,
            filter: bson(&filter),
            sort: if self.window.is_some() {
                bson(r#"{"sort":[["n",-1]]}"#)
            } else {
                [].into()
            },
            offset,
            limit: (self.window.is_some() && limit != u32::MAX).then_some(limit),
            sorted: self.window.is_some(),
            slack,
        }
    }

    pub(crate) fn matches(self, version: &Version) -> bool {
        version.n.is_some_and(|n| self.low <= n && n < self.high)
    }

    /// All that match, in order: key and version.
    fn all(self, database: &Database) -> Vec<(u8, u64)> {
        let found = database.all().filter(|(_, version)| self.matches(version));
        let mut found: Vec<_> = found
            .map(|(key, version)| (std::cmp::Reverse(version.n), key, version.version))
            .collect();
        if self.window.is_none() {
            found.sort_by_key(|(_, key, _)| *key);
        } else {
            found.sort_unstable();
        }
        found
            .into_iter()
            .map(|(_, key, version)| (key, version))
            .collect()
    }

    /// The query asked again.
    pub(crate) fn answer(self, database: &Database) -> Vec<(u8, u64)> {
        let Some((offset, limit, _)) = self.window else {
            return self.all(database);
        };
        let rows = self.all(database).into_iter();
        rows.skip(to_usize(offset)).take(to_usize(limit)).collect()
    }

    /// What an app server reads to register it: the rows that a sort node needs, and whether these
    /// are all.
    pub(crate) fn rows(self, database: &Database) -> (Vec<Row>, bool) {
        let all = self.all(database);
        let (offset, limit, slack) = self.window.unwrap_or((0, u32::MAX, 0));
        let count = to_usize(offset)
            .saturating_add(to_usize(limit))
            .saturating_add(to_usize(slack));
        let complete = all.len() <= count;
        let mut rows = database.rows();
        rows.retain(|row| all.iter().take(count).any(|(key, _)| *key == row.key[0]));
        (rows, complete)
    }
}

fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
