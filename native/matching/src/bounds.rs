//! Bounds of values: order comparisons alone or in pairs.

use std::collections::BTreeMap;

use rillbase_query::bson::ValueRef;
use rillbase_query::filter::{Comparison, FilterClause, Predicate, Test};
use rillbase_query::key::encode_key;
use rillbase_query::path::FieldPath;

use crate::class::Class;
use crate::entry::{Probe, is_compound};
use crate::match_plan::{MatchPlan, is_too_long, joined, one};
use crate::point::{Interval, Point};

/// A bound, or a pair of bounds.
pub(crate) struct ValueBounds<'n> {
    pub(crate) nodes: Vec<&'n FilterClause>,
    pub(crate) plan: MatchPlan,
}

/// The path and the interval of a comparison that bounds values other than documents and arrays.
fn bound(node: &FilterClause) -> Option<(&FieldPath, Interval)> {
    let FilterClause::Field(Predicate {
        path,
        test: Test::Compare(comparison, operand),
    }) = node
    else {
        return None;
    };
    Some((path, interval(*comparison, operand.as_ref())?))
}

pub(crate) fn is_range(node: &FilterClause) -> bool {
    bound(node).is_some()
}

/// Whether a filter only requires that one value is in one interval, and the points of the bounds
/// represent it exactly.
pub(crate) fn is_one_interval(root: &FilterClause) -> bool {
    let single = std::slice::from_ref(root);
    let bounds = match root {
        FilterClause::And(children) => children,
        _ => single,
    };
    let mut first = None;
    bounds.iter().all(|node| {
        let FilterClause::Field(Predicate {
            path,
            test: Test::Compare(_, operand),
        }) = node
        else {
            return false;
        };
        let operand = operand.as_ref();
        let subject = (path, operand.rank());
        is_range(node)
            && *first.get_or_insert(subject) == subject
            && !operand.is_nan()
            && Point::holds(&encode_key(operand))
    })
}

/// The interval of values that satisfy a comparison; `None` if they are not ordered.
pub(crate) fn interval(comparison: Comparison, operand: ValueRef<'_>) -> Option<Interval> {
    let out_of_order = matches!(
        operand,
        ValueRef::MinKey | ValueRef::MaxKey | ValueRef::Null | ValueRef::Undefined
    );
    if out_of_order || is_compound(operand) {
        return None;
    }
    let (less, inclusive) = match comparison {
        Comparison::Equal => return None,
        Comparison::Less => (true, false),
        Comparison::LessOrEqual => (true, true),
        Comparison::Greater => (false, false),
        Comparison::GreaterOrEqual => (false, true),
    };
    Some(Interval::bounded_by(operand, less, inclusive))
}

/// The bounds among the children, combined by path and type: some value lies above the greatest
/// lower bound and some below the least upper one.
pub(crate) fn ranges<'n>(children: &'n [FilterClause], prefix: &FieldPath) -> Vec<ValueBounds<'n>> {
    let mut ranges: BTreeMap<(&FieldPath, u8), (Interval, Vec<&'n FilterClause>)> = BTreeMap::new();
    for child in children {
        if let Some((path, interval)) = bound(child) {
            let (held, nodes) = ranges
                .entry((path, interval.high.rank()))
                .or_insert_with(|| (interval, Vec::new()));
            *held = held.and(interval);
            nodes.push(child);
        }
    }
    let planned = ranges
        .into_iter()
        .map(|((path, _), (interval, nodes))| ValueBounds {
            nodes,
            plan: ranged(joined(prefix, path), interval, false),
        });
    let deep = |range: &ValueBounds| {
        range
            .plan
            .entries
            .iter()
            .any(|entry| is_too_long(&entry.path))
    };
    planned.filter(|range| !deep(range)).collect()
}

/// The bounds that a single element must meet. No element meets bounds of several types.
pub(crate) fn element_range(path: &FieldPath, children: &[FilterClause]) -> Option<MatchPlan> {
    let bounds = children.iter().filter_map(bound);
    let both = bounds.map(|(_, interval)| interval).reduce(Interval::and)?;
    Some(ranged(path.clone(), both, true))
}

pub(crate) fn ranged(path: FieldPath, interval: Interval, each: bool) -> MatchPlan {
    let usual = if interval.is_two_sided() { 0.02 } else { 0.3 };
    one(
        path,
        Probe::Interval {
            interval,
            each,
            sure: false,
        },
        Class::Range,
        usual,
    )
}
