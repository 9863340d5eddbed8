//! The queries of the simulation in two forms: as nodes read them, and as the checks evaluate them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use rillbase_live::message::{Foreign, LookupSide, QueryDefinition, QueryHash, ResultRow};
use rillbase_query::bson::Value;
use rillbase_query::ejson::parse_value;

use super::COLLECTION;
use super::database::{Database, Version, number};

/// A query that a client subscribes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QuerySpec {
    number: u8,
    /// The inclusive lower bound of `n`.
    low: i64,
    /// The exclusive upper bound of `n`.
    high: i64,
    /// Offset, limit, slack.
    window: Option<(u32, u32, u32)>,
    /// Whether access rules restrict it.
    ruled: bool,
    /// Whether documents with the same `n` are one row.
    grouped: bool,
    /// Whether the document whose `_id` is `n` is shown with it.
    joined: bool,
    order: WindowOrder,
}

/// The order of the documents in a window; groups have their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WindowOrder {
    /// The greatest `n` first.
    Number,
    /// Those changed last first.
    Updated,
    /// The greatest `n` first, then those created first.
    NumberCreated,
}

impl WindowOrder {
    fn sort(self) -> Arc<[u8]> {
        bson(match self {
            Self::Number => r#"{"sort":[["n",-1]]}"#,
            Self::Updated => r#"{"sort":[["$updated",-1]]}"#,
            Self::NumberCreated => r#"{"sort":[["n",-1],["$created",1]]}"#,
        })
    }

    /// A key of this order, ascending.
    fn key(self, version: &Version) -> (Reverse<Option<i64>>, i64) {
        match self {
            Self::Number => (Reverse(version.n), 0),
            Self::Updated => (Reverse(None), -version.updated_ms),
            Self::NumberCreated => (Reverse(version.n), version.created_ms),
        }
    }
}

const fn spec(
    number: u8,
    (low, high): (i64, i64),
    window: Option<(u32, u32, u32)>,
    ruled: bool,
) -> QuerySpec {
    QuerySpec {
        number,
        low,
        high,
        window,
        ruled,
        grouped: false,
        joined: false,
        order: WindowOrder::Number,
    }
}

/// Groups by `n`, in the order of `n`, or the groups with the most documents first.
const fn grouped(number: u8, window: Option<(u32, u32, u32)>, ruled: bool) -> QuerySpec {
    QuerySpec {
        grouped: true,
        ..spec(number, (0, 1_000), window, ruled)
    }
}

/// A lookup of the document whose `_id` is `n`.
const fn joined(number: u8, window: Option<(u32, u32, u32)>, ruled: bool) -> QuerySpec {
    QuerySpec {
        joined: true,
        ..spec(number, (-1_000, 1_000), window, ruled)
    }
}

const fn ordered(order: WindowOrder, spec: QuerySpec) -> QuerySpec {
    QuerySpec { order, ..spec }
}

/// All queries of the simulation.
pub(crate) const WANTED: [QuerySpec; 19] = [
    spec(1, (0, 1_000), None, false),
    spec(2, (3, 7), None, false),
    spec(3, (5, 6), None, false),
    spec(4, (0, 1_000), Some((0, 2, 1)), false),
    spec(5, (-1_000, 1_000), Some((1, 2, 0)), false),
    spec(6, (2, 8), Some((0, 3, 2)), false),
    spec(7, (0, 5), Some((0, u32::MAX, 0)), false),
    spec(8, (0, 1_000), None, true),
    spec(9, (0, 1_000), Some((0, 3, 1)), true),
    grouped(10, None, false),
    grouped(11, Some((1, 2, 0)), false),
    grouped(12, Some((0, 3, 0)), true),
    joined(13, None, false),
    joined(14, Some((0, 3, 1)), false),
    joined(15, Some((1, 4, 0)), true),
    ordered(
        WindowOrder::Updated,
        spec(16, (0, 1_000), Some((0, 3, 1)), false),
    ),
    ordered(
        WindowOrder::Updated,
        spec(17, (2, 8), Some((1, 2, 0)), true),
    ),
    ordered(
        WindowOrder::NumberCreated,
        spec(18, (0, 1_000), Some((0, 4, 1)), false),
    ),
    ordered(WindowOrder::Updated, joined(19, Some((0, 3, 1)), true)),
];

/// A query under some version of the access rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) wanted: QuerySpec,
    /// The version of the rules; 0 if none apply.
    pub(crate) rules: u64,
}

fn bson(json: &str) -> Arc<[u8]> {
    match parse_value(json.as_bytes()) {
        Ok(Value::Document(document)) => document.as_bytes().into(),
        other => panic!("{json}: {other:?}"),
    }
}

impl QuerySpec {
    /// The query under the rules in force.
    pub(crate) fn under(self, rules: u64) -> Query {
        Query {
            wanted: self,
            rules: if self.ruled { rules } else { 0 },
        }
    }
}

impl Query {
    /// The query of a name.
    pub(crate) fn named(hash: &QueryHash) -> Self {
        let [number, ..] = hash.0;
        let (_, rules) = hash.0.split_at(8);
        Self {
            wanted: WANTED[usize::from(number - 1)],
            rules: rules
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
        }
    }

    pub(crate) fn hash(self) -> QueryHash {
        let mut hash = [self.wanted.number; 16];
        hash[8..].copy_from_slice(&self.rules.to_be_bytes());
        QueryHash(hash)
    }

    /// The exclusive upper bound of `n` that the rules allow.
    fn high(self) -> i64 {
        match (self.rules, self.rules % 3) {
            (0, _) | (_, 1) => self.wanted.high,
            (_, 2) => self.wanted.high.min(4),
            _ => self.wanted.high.min(7),
        }
    }

    pub(crate) fn definition(self) -> QueryDefinition {
        let spec = self.wanted;
        let (offset, limit, slack) = spec.window.unwrap_or_default();
        let (low, high) = (spec.low, self.high());
        let filter = format!(r#"{{"n":{{"$gte":{low},"$lt":{high}}}}}"#);
        QueryDefinition {
            hash: self.hash(),
            activation: 0,
            tenant: [1; 16],
            collection: COLLECTION,
            rules_version: self.rules,
            filter: bson(&filter),
            sort: match (spec.window, self.grouped()) {
                (None, _) => [].into(),
                (_, false) => spec.order.sort(),
                (_, true) => bson(r#"{"sort":[["count",-1]]}"#),
            },
            offset,
            limit: (spec.window.is_some() && limit != u32::MAX).then_some(limit),
            sorted: self.sorted(),
            slack,
            group: if self.grouped() {
                bson(GROUP)
            } else {
                [].into()
            },
            rule: [].into(),
            lookups: if self.joined() {
                bson(LOOKUP)
            } else {
                [].into()
            },
            sides: self.joined().then(|| self.side()).into_iter().collect(),
        }
    }

    /// The looked-up collection, restricted by the access rules.
    fn side(self) -> LookupSide {
        let high = self.high();
        let filter = bson(&format!(r#"{{"n":{{"$gte":{SEEN},"$lt":{high}}}}}"#));
        LookupSide::new([1; 16], COLLECTION, self.rules, filter)
    }

    /// The looked-up document of a document.
    pub(crate) fn other(self, version: &Version, database: &Database) -> Option<(u8, Version)> {
        let key = u8::try_from(version.n?).ok()?;
        let other = database.latest(key)?;
        self.shows(&other).then_some((key, other))
    }

    /// Whether a looked-up document may be shown.
    pub(crate) fn shows(self, other: &Version) -> bool {
        other.n.is_some_and(|n| (SEEN..self.high()).contains(&n))
    }

    /// Whether a sort node keeps it.
    pub(crate) const fn sorted(self) -> bool {
        self.wanted.window.is_some() || self.wanted.grouped || self.wanted.joined
    }

    pub(crate) const fn joined(self) -> bool {
        self.wanted.joined
    }

    pub(crate) const fn grouped(self) -> bool {
        self.wanted.grouped
    }

    pub(crate) fn matches(self, version: &Version) -> bool {
        let within = |n| self.wanted.low <= n && n < self.high();
        version.n.is_some_and(within)
    }

    /// All matching documents in order: key and version.
    fn all(self, database: &Database) -> Vec<(u8, u64)> {
        let spec = self.wanted;
        let rows = database.all().filter(|(_, version)| self.matches(version));
        let mut rows: Vec<_> = rows
            .map(|(key, version)| (spec.order.key(&version), key, version.version))
            .collect();
        if spec.window.is_some() {
            rows.sort_unstable();
        } else {
            rows.sort_by_key(|(_, key, _)| *key);
        }
        let rows = rows.into_iter();
        rows.map(|(_, key, version)| (key, version)).collect()
    }

    /// All groups in order: the value that they share, and their contents.
    fn groups(self, database: &Database) -> Vec<(u8, u64)> {
        let mut groups: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
        for (key, version) in database.all().filter(|(_, version)| self.matches(version)) {
            let n = version.n.and_then(|n| u8::try_from(n).ok()).unwrap_or(0);
            groups.entry(n).or_default().push(key);
        }
        let groups = groups.into_iter().map(|(n, keys)| {
            let sum = keys.iter().map(|key| u64::from(*key)).sum();
            let most = keys.iter().max().copied().unwrap_or(0);
            (n, content(keys.len() as u64, sum, most.into()))
        });
        let mut groups: Vec<_> = groups.collect();
        if self.wanted.window.is_some() {
            groups.sort_by_key(|(n, content)| (Reverse(content / COUNT), *n));
        }
        groups
    }

    /// All matching documents in order, each with its looked-up document.
    fn joins(self, database: &Database) -> Vec<(u8, u64)> {
        let shown = self.all(database).into_iter().map(|(key, version)| {
            let own = database.latest(key);
            let other = own.and_then(|own| self.other(&own, database));
            let other = other.map_or(0, |(_, other)| other.version);
            (key, both(version, other))
        });
        shown.collect()
    }

    /// What an app server reads of the looked-up collection: the documents to which rows refer, or
    /// all.
    pub(crate) fn foreign(
        self,
        database: &Database,
        rows: &[ResultRow],
        all: bool,
    ) -> Vec<Foreign> {
        if !self.joined() {
            return Vec::new();
        }
        let refers = |other: u8| {
            rows.iter().any(|row| {
                let own = database.latest(number(&row.key));
                own.and_then(|own| own.n) == Some(other.into())
            })
        };
        let seen = database.rows().into_iter().filter(|row| {
            let key = number(&row.key);
            let shown = database.latest(key).is_some_and(|other| self.shows(&other));
            shown && (all || refers(key))
        });
        vec![Foreign {
            rows: seen.collect(),
            complete: all,
        }]
    }

    /// The result of the query, evaluated by the checks.
    pub(crate) fn answer(self, database: &Database) -> Vec<(u8, u64)> {
        let rows = if self.grouped() {
            self.groups(database)
        } else if self.joined() {
            self.joins(database)
        } else {
            self.all(database)
        };
        let Some((offset, limit, _)) = self.wanted.window else {
            return rows;
        };
        let rows = rows.into_iter();
        rows.skip(to_usize(offset)).take(to_usize(limit)).collect()
    }

    /// What an app server reads to register the query: the rows that a sort node needs, including
    /// `slack` rows beyond the window, and whether these are all.
    pub(crate) fn rows(self, database: &Database, slack: u32) -> (Vec<ResultRow>, bool) {
        let all = self.all(database);
        let window = self.wanted.window.filter(|_| !self.grouped());
        let (offset, limit, _) = window.unwrap_or((0, u32::MAX, 0));
        let count = to_usize(offset)
            .saturating_add(to_usize(limit))
            .saturating_add(to_usize(slack));
        let complete = all.len() <= count;
        let bodies = database.rows();
        let first = all.iter().take(count);
        let row = |key: u8| bodies.iter().find(|row| number(&row.key) == key).cloned();
        (first.filter_map(|(key, _)| row(*key)).collect(), complete)
    }
}

/// The group definition.
const GROUP: &str = r#"{"by":["n"],"measures":{"count":{"op":"count"},
    "sum":{"op":"sum","field":"_id"},"most":{"op":"max","field":"_id"}}}"#;
const COUNT: u64 = 1_000_000_000;
/// The lookup definition.
const LOOKUP: &str = r#"{"lookup":[{"from":"f","local":"n","as":"other"}]}"#;
/// The access rule of looked-up documents: those with a lower `n` are hidden.
const SEEN: i64 = 0;
const OTHER: u64 = 100_000;

/// The versions of a document and of its looked-up document, as one number.
pub(crate) const fn both(version: u64, other: u64) -> u64 {
    version * OTHER + other
}

/// The version of the document, and that of its looked-up document, if there is one.
pub(crate) fn apart(both: u64) -> (u64, Option<u64>) {
    (both / OTHER, Some(both % OTHER).filter(|other| *other > 0))
}

/// The contents of a group, as one number.
pub(crate) const fn content(count: u64, sum: u64, most: u64) -> u64 {
    count * COUNT + sum * 1_000 + most
}

fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
