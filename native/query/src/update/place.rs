//! Paths of updates: fields, positions and the positional operators.

use super::refuse;
use crate::bson::{Array, Document, ValueRef};
use crate::error::{Error, Place};
use crate::filter::{Filter, Node};
use crate::limits::{CHANGES, NESTING_DEPTH};
use crate::path::Segment;

/// One part of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// A key, or a position in an array.
    Field(Segment),
    /// `$`: where the filter matched.
    Matched,
    /// `$[]`: every element.
    All,
    /// `$[name]`: the elements that this array filter matches.
    Filtered(usize),
}

impl Step {
    /// As it is written.
    pub(super) fn text<'s>(&'s self, filters: &'s Filters) -> String {
        match self {
            Self::Field(segment) => segment.name.to_string(),
            Self::Matched => "$".into(),
            Self::All => "$[]".into(),
            Self::Filtered(index) => format!("$[{}]", filters.name(*index)),
        }
    }
}

/// The array filters with their names.
#[derive(Debug, Default)]
pub(super) struct Filters {
    list: Vec<Named>,
}

#[derive(Debug)]
struct Named {
    name: String,
    filter: Filter,
    used: bool,
}

impl Filters {
    pub(super) fn parse(filters: Option<Array<'_>>, place: &Place<'_>) -> Result<Self, Error> {
        let mut all = Self::default();
        for (index, filter) in filters.iter().flat_map(Array::iter).enumerate() {
            let here = place.index(index);
            let document = filter
                .as_document()
                .ok_or_else(|| refuse(&here, "an array filter is a document"))?;
            let filter = Filter::parse_at(document, &here)?;
            let name = name_of(filter.root(), &here)?;
            if all.list.iter().any(|named| named.name == name) {
                return Err(refuse(
                    &here,
                    format!("there are two array filters named '{name}'"),
                ));
            }
            if index >= CHANGES {
                return Err(refuse(&here, "there are too many array filters"));
            }
            all.list.push(Named {
                name,
                filter,
                used: false,
            });
        }
        Ok(all)
    }

    pub(super) fn check_all_used(&self, place: &Place<'_>) -> Result<(), Error> {
        match self.list.iter().position(|named| !named.used) {
            Some(index) => Err(refuse(
                &place.index(index),
                "the update does not use this array filter",
            )),
            None => Ok(()),
        }
    }

    fn use_named(&mut self, name: &str) -> Option<usize> {
        let index = self.list.iter().position(|named| named.name == name)?;
        self.list.get_mut(index)?.used = true;
        Some(index)
    }

    pub(super) fn name(&self, index: usize) -> &str {
        self.list.get(index).map_or("", |named| &named.name)
    }

    /// The filter, which looks at documents `{name: element}`.
    pub(super) fn filter(&self, index: usize) -> Option<&Filter> {
        self.list.get(index).map(|named| &named.filter)
    }
}

/// The first segment that all paths of an array filter share.
fn name_of(root: &Node, place: &Place<'_>) -> Result<String, Error> {
    let mut names = Vec::new();
    collect_names(root, &mut names);
    let Some((first, rest)) = names.split_first() else {
        return Err(refuse(
            place,
            "an array filter tests the element that it names",
        ));
    };
    let well_formed = first.starts_with(|letter: char| letter.is_ascii_lowercase())
        && first.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !well_formed {
        return Err(refuse(
            place,
            "the name of an array filter is a lower-case letter, then letters and digits",
        ));
    }
    if rest.iter().any(|name| name != first) {
        return Err(refuse(place, "an array filter names one element only"));
    }
    Ok(first.clone())
}

fn collect_names(node: &Node, names: &mut Vec<String>) {
    match node {
        Node::And(children) | Node::Or(children) => children
            .iter()
            .for_each(|child| collect_names(child, names)),
        Node::Not(inner) => collect_names(inner, names),
        Node::Whole(_) => names.push(String::new()),
        Node::Field(predicate) => {
            names.extend(
                predicate
                    .path
                    .segments()
                    .first()
                    .map(|segment| segment.name.to_string()),
            );
        }
    }
}

/// Parses a dotted path.
pub(super) fn steps(
    text: &str,
    filters: &mut Filters,
    place: &Place<'_>,
) -> Result<Vec<Step>, Error> {
    let steps: Result<Vec<Step>, Error> = text
        .split('.')
        .map(|part| step(part, filters, place))
        .collect();
    let steps = steps?;
    if steps.len() > NESTING_DEPTH {
        return Err(refuse(place, "the path is too deep"));
    }
    if !matches!(steps.first(), Some(Step::Field(_))) {
        return Err(refuse(place, "a path begins with a field"));
    }
    if steps.iter().filter(|step| **step == Step::Matched).count() > 1 {
        return Err(refuse(
            place,
            "a path has at most one positional operator '$'",
        ));
    }
    Ok(steps)
}

fn step(part: &str, filters: &mut Filters, place: &Place<'_>) -> Result<Step, Error> {
    match part {
        "" => return Err(refuse(place, "a path has no empty parts")),
        "$" => return Ok(Step::Matched),
        "$[]" => return Ok(Step::All),
        "$ref" | "$id" | "$db" => return Ok(Step::Field(Segment::new(part))),
        _ => {}
    }
    if let Some(name) = part
        .strip_prefix("$[")
        .and_then(|rest| rest.strip_suffix(']'))
    {
        let index = filters.use_named(name);
        return index
            .map(Step::Filtered)
            .ok_or_else(|| refuse(place, format!("there is no array filter named '{name}'")));
    }
    if part.starts_with('$') {
        return Err(refuse(
            place,
            "a field of an update does not begin with '$'",
        ));
    }
    Ok(Step::Field(Segment::new(part)))
}

/// A document as an argument.
pub(super) fn document<'a>(
    value: ValueRef<'a>,
    what: &str,
    place: &Place<'_>,
) -> Result<Document<'a>, Error> {
    value
        .as_document()
        .ok_or_else(|| refuse(place, format!("{what} takes a document")))
}
