//! Paths of updates: fields, positions and the positional operators.

use super::refuse;
use crate::bson::{Array, Document, ValueRef};
use crate::error::{Error, ParseLocation};
use crate::filter::{Filter, FilterClause};
use crate::limits::{CHANGES, NESTING_DEPTH};
use crate::path::PathSegment;

/// One part of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UpdateSegment {
    /// A key, or a position in an array.
    Field(PathSegment),
    /// `$`: where the filter matched.
    Matched,
    /// `$[]`: every element.
    All,
    /// `$[name]`: the elements that this array filter matches.
    Filtered(usize),
}

impl UpdateSegment {
    /// As it is written.
    pub(super) fn text<'s>(&'s self, filters: &'s ArrayFilters) -> String {
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
pub(super) struct ArrayFilters {
    list: Vec<ArrayFilter>,
}

#[derive(Debug)]
struct ArrayFilter {
    name: String,
    filter: Filter,
    used: bool,
}

impl ArrayFilters {
    pub(super) fn parse(
        filters: Option<Array<'_>>,
        location: &ParseLocation<'_>,
    ) -> Result<Self, Error> {
        let mut all = Self::default();
        for (index, filter) in filters.iter().flat_map(Array::iter).enumerate() {
            let here = location.index(index);
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
                return Err(refuse(&here, "too many array filters"));
            }
            all.list.push(ArrayFilter {
                name,
                filter,
                used: false,
            });
        }
        Ok(all)
    }

    pub(super) fn check_all_used(&self, location: &ParseLocation<'_>) -> Result<(), Error> {
        match self.list.iter().position(|named| !named.used) {
            Some(index) => Err(refuse(
                &location.index(index),
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
fn name_of(root: &FilterClause, location: &ParseLocation<'_>) -> Result<String, Error> {
    let mut names = Vec::new();
    collect_names(root, &mut names);
    let Some((first, rest)) = names.split_first() else {
        return Err(refuse(
            location,
            "an array filter tests the element that it names",
        ));
    };
    let well_formed = first.starts_with(|letter: char| letter.is_ascii_lowercase())
        && first.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !well_formed {
        return Err(refuse(
            location,
            "the name of an array filter is a lower-case letter, then letters and digits",
        ));
    }
    if rest.iter().any(|name| name != first) {
        return Err(refuse(
            location,
            "an array filter may name only one element",
        ));
    }
    Ok(first.clone())
}

fn collect_names(node: &FilterClause, names: &mut Vec<String>) {
    match node {
        FilterClause::And(children) | FilterClause::Or(children) => children
            .iter()
            .for_each(|child| collect_names(child, names)),
        FilterClause::Not(inner) => collect_names(inner, names),
        FilterClause::Whole(_) => names.push(String::new()),
        FilterClause::Field(predicate) => {
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
    filters: &mut ArrayFilters,
    location: &ParseLocation<'_>,
) -> Result<Vec<UpdateSegment>, Error> {
    let steps: Result<Vec<UpdateSegment>, Error> = text
        .split('.')
        .map(|part| step(part, filters, location))
        .collect();
    let steps = steps?;
    if steps.len() > NESTING_DEPTH {
        return Err(refuse(location, "the path is too deep"));
    }
    if !matches!(steps.first(), Some(UpdateSegment::Field(_))) {
        return Err(refuse(location, "a path must start with a field"));
    }
    if steps
        .iter()
        .filter(|step| **step == UpdateSegment::Matched)
        .count()
        > 1
    {
        return Err(refuse(
            location,
            "a path may have at most one positional operator '$'",
        ));
    }
    Ok(steps)
}

fn step(
    part: &str,
    filters: &mut ArrayFilters,
    location: &ParseLocation<'_>,
) -> Result<UpdateSegment, Error> {
    match part {
        "" => return Err(refuse(location, "a path must not have empty parts")),
        "$" => return Ok(UpdateSegment::Matched),
        "$[]" => return Ok(UpdateSegment::All),
        "$ref" | "$id" | "$db" => return Ok(UpdateSegment::Field(PathSegment::new(part))),
        _ => {}
    }
    if let Some(name) = part
        .strip_prefix("$[")
        .and_then(|rest| rest.strip_suffix(']'))
    {
        let index = filters.use_named(name);
        return index
            .map(UpdateSegment::Filtered)
            .ok_or_else(|| refuse(location, format!("no array filter is named '{name}'")));
    }
    if part.starts_with('$') {
        return Err(refuse(
            location,
            "a field of an update must not start with '$'",
        ));
    }
    Ok(UpdateSegment::Field(PathSegment::new(part)))
}

/// A document as an argument.
pub(super) fn document<'a>(
    value: ValueRef<'a>,
    what: &str,
    location: &ParseLocation<'_>,
) -> Result<Document<'a>, Error> {
    value
        .as_document()
        .ok_or_else(|| refuse(location, format!("{what} takes a document")))
}
