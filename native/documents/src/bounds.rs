//! Which entries of an index can belong to documents that match a filter.
//!
//! A filter's conditions on one path become ranges of encoded values. A document may have several
//! values at the path, because arrays are matched element by element, and two conditions may be met
//! by two elements: so the intersection of two ranges is correct only for documents with one key.
//! The others carry the mark ([`crate::entry::MARK`]), and wherever ranges were intersected the
//! mark is looked up too.
//!
//! The conditions of a spatial field are those on regions; they become ranges of cells.
//!
//! The tests verify that every matching document has an entry inside the bounds.

use rillbase_query::bson::{BsonType, Value, ValueRef};
use rillbase_query::filter::{Comparison, Filter, FilterClause, Predicate, Test};
use rillbase_query::geo::Region;
use rillbase_query::index::{FieldOrder, IndexField};
use rillbase_query::key::encode_key;
use rillbase_query::path::FieldPath;
use rillbase_query::pattern::Pattern;

use crate::entry::{ENTRY_BYTES, MARK};

/// The maximum number of ranges; more are not worthwhile.
pub const MAX_RANGES: usize = 1_000;

/// Keys from `low` up to, but not including, `high`; `None` for the end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EncodedRange {
    /// The first key.
    pub low: Vec<u8>,
    /// The first key after the range.
    pub high: Option<Vec<u8>>,
}

impl EncodedRange {
    /// The ranges of all keys.
    #[must_use]
    pub fn everything() -> Vec<Self> {
        vec![Self {
            low: Vec::new(),
            high: None,
        }]
    }

    fn overlaps(&self, other: &Self) -> bool {
        let follows_end =
            |low: &Vec<u8>, high: &Option<Vec<u8>>| high.as_ref().is_some_and(|high| low >= high);
        !follows_end(&self.low, &other.high) && !follows_end(&other.low, &self.high)
    }
}

/// The part of an index that contains the documents of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexBounds {
    /// In key order, without overlaps.
    pub ranges: Vec<EncodedRange>,
    /// How many leading fields are fixed to one value each.
    pub equalities: usize,
    /// The encoding of those fields.
    pub prefix: Vec<u8>,
    /// Whether each range is a single entry: one value of each field.
    pub are_entries: bool,
}

/// The bounds of a filter in an index; `None` if it does not restrict the first field.
#[must_use]
pub fn bounds(filter: &Filter, fields: &[IndexField]) -> Option<IndexBounds> {
    let mut built = KeyBuilder {
        prefixes: vec![Vec::new()],
        marked: false,
        fields: 0,
    };
    let mut equalities = 0;
    let mut prefix = Vec::new();
    for field in fields {
        let Some(limits) = conditions(filter.root(), &field.path, KeyForm::of(field.order)) else {
            break;
        };
        let set = if field.is_descending() {
            limits.reversed()
        } else {
            limits
        };
        built.marked |= set.intersected;
        let points = set.points();
        if built.prefixes.len().saturating_mul(set.ranges.len()) > MAX_RANGES {
            break;
        }
        let Some(points) = points else {
            return Some(built.finish(Some(&set.ranges), equalities, prefix));
        };
        if points.len() == 1 && built.prefixes.len() == 1 {
            equalities += 1;
            prefix.extend(points.first().into_iter().flatten());
        }
        built.extend(&points);
    }
    let are_entries = built.fields == fields.len();
    let first_is_bound = built.prefixes.first().is_none_or(|first| !first.is_empty());
    let bounds = first_is_bound.then(|| built.finish(None, equalities, prefix));
    bounds.map(|bounds| IndexBounds {
        are_entries: are_entries && bounds.are_entries,
        ..bounds
    })
}

/// The bounds of a filter over `_id`, in keys of documents.
#[must_use]
pub fn id_bounds(filter: &Filter) -> Option<Vec<EncodedRange>> {
    let limits = conditions(filter.root(), &FieldPath::new("_id"), KeyForm::Values)?;
    Some(limits.ranges)
}

/// Keys under construction: every combination of the fixed fields so far.
struct KeyBuilder {
    prefixes: Vec<Vec<u8>>,
    marked: bool,
    /// How many fields are fixed.
    fields: usize,
}

impl KeyBuilder {
    fn extend(&mut self, points: &[Vec<u8>]) {
        let mut longer = Vec::with_capacity(self.prefixes.len() * points.len());
        for prefix in &self.prefixes {
            for point in points {
                longer.push([prefix.as_slice(), point].concat());
            }
        }
        self.prefixes = longer;
        self.fields += 1;
    }

    fn finish(
        self,
        last: Option<&[EncodedRange]>,
        equalities: usize,
        prefix: Vec<u8>,
    ) -> IndexBounds {
        let mut ranges = Vec::new();
        for start in &self.prefixes {
            match last {
                None => ranges.push(EncodedRange {
                    low: start.clone(),
                    high: successor(start),
                }),
                Some(last) => ranges.extend(last.iter().map(|range| EncodedRange {
                    low: [start.as_slice(), &range.low].concat(),
                    high: match &range.high {
                        Some(high) => Some([start.as_slice(), high].concat()),
                        None => successor(start),
                    },
                })),
            }
        }
        if self.marked {
            ranges.push(EncodedRange {
                low: MARK.to_vec(),
                high: Some(vec![0]),
            });
        }
        let count = ranges.len();
        let ranges = merged(ranges.into_iter().map(cut).collect());
        IndexBounds {
            are_entries: last.is_none() && !self.marked && ranges.len() == count,
            ranges,
            equalities,
            prefix,
        }
    }
}

/// Entries are truncated, so bounds are too, outwards.
fn cut(mut range: EncodedRange) -> EncodedRange {
    range.low.truncate(ENTRY_BYTES);
    if let Some(high) = &mut range.high
        && high.len() > ENTRY_BYTES
    {
        high.truncate(ENTRY_BYTES);
        range.high = successor(high);
    }
    range
}

/// Values that a condition admits, as ranges of their encoding.
#[derive(Debug, Clone)]
struct Set {
    ranges: Vec<EncodedRange>,
    /// Whether each range is one value.
    exact: bool,
    /// Whether it is correct only for documents with one key.
    intersected: bool,
}

impl Set {
    fn of(ranges: Vec<EncodedRange>) -> Self {
        Self {
            ranges: merged(ranges),
            exact: false,
            intersected: false,
        }
    }

    /// Single values.
    fn exactly(ranges: Vec<EncodedRange>) -> Self {
        Self {
            exact: true,
            ..Self::of(ranges)
        }
    }

    /// Its values, if it consists of single values.
    fn points(&self) -> Option<Vec<Vec<u8>>> {
        self.exact
            .then(|| self.ranges.iter().map(|range| range.low.clone()).collect())
    }

    /// The same set in the encoding of a descending field. Ranges that cannot be inverted exactly
    /// become slightly larger.
    fn reversed(self) -> Self {
        let ranges = self.ranges.into_iter().map(|range| {
            let first = inverted(&range.low);
            match range.high {
                _ if self.exact => starting(first),
                Some(high) => EncodedRange {
                    low: inverted(&high),
                    high: successor(&first),
                },
                None => EncodedRange {
                    low: Vec::new(),
                    high: successor(&first),
                },
            }
        });
        Self {
            ranges: merged(ranges.collect()),
            ..self
        }
    }

    /// The intersection, in one pass over both.
    fn intersection(&self, other: &Self) -> Self {
        let mut ranges = Vec::new();
        let mut rest = (self.ranges.as_slice(), other.ranges.as_slice());
        while let ([a, after_a @ ..], [b, after_b @ ..]) = rest {
            let a_ends_first = match (&a.high, &b.high) {
                (Some(a), Some(b)) => a <= b,
                (a, _) => a.is_some(),
            };
            let low = a.low.clone().max(b.low.clone());
            let high = if a_ends_first { &a.high } else { &b.high }.clone();
            if high.as_ref().is_none_or(|high| low < *high) {
                ranges.push(EncodedRange { low, high });
            }
            if a_ends_first {
                rest.0 = after_a;
            } else {
                rest.1 = after_b;
            }
        }
        Self {
            ranges,
            exact: self.exact || other.exact,
            intersected: true,
        }
    }

    fn union(mut self, other: Self) -> Self {
        self.ranges.extend(other.ranges);
        Self {
            ranges: merged(self.ranges),
            exact: self.exact && other.exact,
            intersected: self.intersected || other.intersected,
        }
    }
}

/// What the keys of a field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyForm {
    /// Encoded values. All documents have keys.
    Values,
    /// Cells of the sphere. Only geometries have keys.
    SphereCells,
    /// Cells of the plane.
    PlaneCells,
}

impl KeyForm {
    const fn of(order: FieldOrder) -> Self {
        match order {
            FieldOrder::Ascending | FieldOrder::Descending => Self::Values,
            FieldOrder::Sphere => Self::SphereCells,
            FieldOrder::Plane => Self::PlaneCells,
        }
    }

    /// The keys of what may be in a region.
    fn cells(self, region: Option<Region>) -> Option<Set> {
        let ranges = region?.cell_ranges(self == Self::PlaneCells)?;
        let ranges = ranges.into_iter();
        Some(Set::of(
            ranges
                .map(|(low, high)| EncodedRange { low, high })
                .collect(),
        ))
    }
}

/// The keys that the filter's conditions on a path admit.
fn conditions(node: &FilterClause, path: &FieldPath, form: KeyForm) -> Option<Set> {
    match node {
        FilterClause::Field(predicate) => condition(predicate, path, form),
        FilterClause::And(children) => children
            .iter()
            .filter_map(|child| conditions(child, path, form))
            .reduce(|all, one| all.intersection(&one)),
        FilterClause::Or(children) => {
            let mut all: Option<Set> = None;
            for child in children {
                let one = conditions(child, path, form)?;
                all = Some(match all {
                    Some(all) => all.union(one),
                    None => one,
                })
                .filter(|all| all.ranges.len() <= MAX_RANGES);
                all.as_ref()?;
            }
            all
        }
        FilterClause::Not(inner) => match inner.as_ref() {
            FilterClause::Field(Predicate {
                path: at,
                test: Test::Exists,
            }) if at == path && form == KeyForm::Values => Some(Set::exactly(nothing())),
            _ => None,
        },
        FilterClause::Whole(_) => None,
    }
}

fn condition(predicate: &Predicate, path: &FieldPath, form: KeyForm) -> Option<Set> {
    if let Test::ElementDocument(inner) = &predicate.test {
        return inside_elements(inner, &predicate.path, path, form);
    }
    if predicate.path != *path {
        return None;
    }
    if form != KeyForm::Values {
        return match &predicate.test {
            Test::Geo(test) => form.cells(test.region()),
            Test::Near(near) => form.cells(near.indexed_region()),
            _ => None,
        };
    }
    match &predicate.test {
        Test::Compare(comparison, operand) => compared(*comparison, operand.as_ref()),
        Test::In(list) if list.values().len() <= MAX_RANGES => {
            let equal = Set::exactly(list.values().iter().flat_map(equal).collect());
            let patterns = list.patterns().iter().map(matching);
            Some(patterns.fold(equal, Set::union))
        }
        Test::Regex(pattern) => Some(matching(pattern)),
        Test::ElementValue(inner) if finds_elements(path) => Some(Set {
            // One element meets all conditions.
            intersected: false,
            ..conditions(inner, &FieldPath::itself(), form)?
        }),
        _ => None,
    }
}

/// Text that a pattern matches, and the pattern as a value.
fn matching(pattern: &Pattern) -> Set {
    Set::of(vec![
        strings(&pattern.prefix()),
        rank(BsonType::Regex.rank()),
    ])
}

/// Whether the elements of an array at this path have keys of their own. At a position they do not:
/// `a.0` finds `[2]` in `[[2]]`, but not `2`.
fn finds_elements(path: &FieldPath) -> bool {
    let segments = path.segments();
    !segments.is_empty() && segments.iter().all(|segment| segment.index.is_none())
}

/// The conditions that `$elemMatch` at `outer` implies for values at `path`. An element that is an
/// array counts as a document without such a field, so a set that contains null does not restrict
/// anything.
fn inside_elements(
    inner: &FilterClause,
    outer: &FieldPath,
    path: &FieldPath,
    form: KeyForm,
) -> Option<Set> {
    if !finds_elements(path) {
        return None;
    }
    let rest = path.segments().strip_prefix(outer.segments())?;
    let names: Vec<&str> = rest.iter().map(|segment| &*segment.name).collect();
    let limits = conditions(inner, &FieldPath::new(&names.join(".")), form)?;
    if form != KeyForm::Values {
        return (!rest.is_empty()).then_some(limits);
    }
    let with_nothing = nothing()
        .iter()
        .any(|nothing| limits.ranges.iter().any(|range| range.overlaps(nothing)));
    (!rest.is_empty() && !with_nothing).then_some(limits)
}

fn compared(comparison: Comparison, operand: ValueRef<'_>) -> Option<Set> {
    let key = encode_key(operand);
    let kind = operand.rank();
    let range = match (comparison, operand) {
        (Comparison::Equal, _) => return Some(Set::exactly(equal_ref(operand))),
        (_, ValueRef::MinKey | ValueRef::MaxKey) => return None,
        (_, ValueRef::Null | ValueRef::Undefined) => return Some(Set::exactly(nothing())),
        (Comparison::Less | Comparison::LessOrEqual, _) => EncodedRange {
            low: vec![kind],
            high: successor(&key),
        },
        (Comparison::Greater | Comparison::GreaterOrEqual, _) => EncodedRange {
            low: key,
            high: successor(&[kind]),
        },
    };
    Some(Set::of(vec![range]))
}

fn equal(value: &Value) -> Vec<EncodedRange> {
    equal_ref(value.as_ref())
}

fn equal_ref(value: ValueRef<'_>) -> Vec<EncodedRange> {
    if matches!(value, ValueRef::Null | ValueRef::Undefined) {
        return nothing();
    }
    vec![starting(encode_key(value))]
}

/// Null, missing and undefined.
fn nothing() -> Vec<EncodedRange> {
    vec![
        rank(BsonType::Undefined.rank()),
        rank(BsonType::Null.rank()),
    ]
}

/// All values of one rank.
fn rank(rank: u8) -> EncodedRange {
    starting(vec![rank])
}

/// Strings that begin with `prefix`.
fn strings(prefix: &str) -> EncodedRange {
    let mut low = vec![BsonType::String.rank()];
    low.extend_from_slice(prefix.as_bytes());
    starting(low)
}

fn starting(low: Vec<u8>) -> EncodedRange {
    let high = successor(&low);
    EncodedRange { low, high }
}

/// The first bytes after all that start with `key`.
fn successor(key: &[u8]) -> Option<Vec<u8>> {
    let kept = key.iter().rposition(|byte| *byte != 0xFF)?;
    let mut next = key.get(..=kept)?.to_vec();
    if let Some(last) = next.last_mut() {
        *last += 1;
    }
    Some(next)
}

fn inverted(key: &[u8]) -> Vec<u8> {
    key.iter().map(|byte| !byte).collect()
}

/// Sorts ranges and merges those that overlap.
fn merged(mut ranges: Vec<EncodedRange>) -> Vec<EncodedRange> {
    ranges.sort_unstable();
    let mut joined: Vec<EncodedRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.high.as_ref().is_none_or(|high| *high > range.low) => {
                last.high = match (last.high.take(), range.high) {
                    (Some(a), Some(b)) => Some(a.max(b)),
                    _ => None,
                };
            }
            _ => joined.push(range),
        }
    }
    joined
}
