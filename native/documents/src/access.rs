//! The predicates by which the index of live queries finds a query.
//!
//! For a conjunction the most selective predicate is used, for a disjunction one for each branch:
//! one of them must hold for a document to match. A filter without any must be tested with every
//! document.

use rillbase_query::filter::{Comparison, Filter, FilterClause, Predicate, Test, Whole};

/// The path and the kind of a predicate.
pub type AccessName = (String, &'static str);

/// The predicates of which one must hold; `None` if every document is tested.
#[must_use]
pub fn access(filter: &Filter) -> Option<Vec<AccessName>> {
    of(filter.root())
}

fn of(node: &FilterClause) -> Option<Vec<AccessName>> {
    match node {
        FilterClause::And(children) => children
            .iter()
            .filter_map(of)
            .min_by_key(|names| names.iter().map(|(_, kind)| cost(kind)).max()),
        FilterClause::Or(children) => {
            let mut all = Vec::new();
            for child in children {
                all.append(&mut of(child)?);
            }
            (!all.is_empty()).then_some(all)
        }
        FilterClause::Field(predicate) => {
            let kind = kind(predicate)?;
            Some(vec![(predicate.path.text(), kind)])
        }
        FilterClause::Whole(whole) => match whole.as_ref() {
            Whole::Text(_) => Some(vec![(String::new(), "text")]),
            _ => None,
        },
        FilterClause::Not(_) => None,
    }
}

/// The rank of a kind of predicate; rarer kinds have lower ranks.
fn cost(kind: &str) -> u8 {
    match kind {
        "equality" => 0,
        "text" => 1,
        "range" | "geo" => 2,
        "regex" => 3,
        _ => 4,
    }
}

fn kind(predicate: &Predicate) -> Option<&'static str> {
    Some(match &predicate.test {
        Test::Compare(Comparison::Equal, _) => "equality",
        Test::In(list) if list.patterns().is_empty() => "equality",
        Test::Compare(..) => "range",
        Test::Regex(pattern) if !pattern.prefix().is_empty() => "regex",
        Test::Geo(_) | Test::Near(_) => "geo",
        Test::Exists => "existence",
        Test::Type(_) => "type",
        _ => return None,
    })
}
