//! Parsing projections.

use super::{Projection, ProjectionBranch, ProjectionPart};
use crate::bson::{Document, ValueRef};
use crate::error::{Error, ErrorCode, ParseLocation};
use crate::filter::FilterParser;
use crate::limits::{CHANGES, NESTING_DEPTH};

/// What the fields so far decided: inclusion, exclusion or neither.
#[derive(Default)]
struct ProjectionMode {
    includes: Option<bool>,
    fields: usize,
    positional: bool,
}

fn refuse(location: &ParseLocation<'_>, detail: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidProjection, location, detail)
}

pub(super) fn projection(
    document: Document<'_>,
    location: &ParseLocation<'_>,
) -> Result<Projection, Error> {
    let mut reading = ProjectionMode::default();
    let mut tree = ProjectionBranch::default();
    let mut id = None;
    for (key, value) in document.iter() {
        let here = location.key(key);
        // `_id` may differ from the rest.
        if key == "_id" && flag(value).is_some() {
            id = flag(value);
            continue;
        }
        reading.field(key, value, &mut tree, &here)?;
    }
    let includes = reading
        .includes
        .unwrap_or(id == Some(true) && reading.fields == 0);
    match (includes, id) {
        (true, None | Some(true)) => tree.children.push(("_id".into(), ProjectionPart::Include)),
        (false, Some(false)) => tree.children.push(("_id".into(), ProjectionPart::Exclude)),
        _ => {}
    }
    Ok(Projection { tree, includes })
}

/// 1 and true include, 0 and false exclude.
fn flag(value: ValueRef<'_>) -> Option<bool> {
    match value {
        ValueRef::Bool(bool) => Some(bool),
        number if number.is_number() => Some(number.as_exact_i64() != Some(0)),
        _ => None,
    }
}

impl ProjectionMode {
    fn field(
        &mut self,
        key: &str,
        value: ValueRef<'_>,
        tree: &mut ProjectionBranch,
        location: &ParseLocation<'_>,
    ) -> Result<(), Error> {
        self.fields += 1;
        if self.fields > CHANGES {
            return Err(refuse(
                location,
                format!("a projection may have at most {CHANGES} fields"),
            ));
        }
        let (path, positional) = match key.strip_suffix(".$") {
            Some(path) => (path, true),
            None => (key, false),
        };
        let names: Vec<&str> = path.split('.').collect();
        if names
            .iter()
            .any(|name| name.is_empty() || name.starts_with('$'))
            || names.len() > NESTING_DEPTH
        {
            return Err(refuse(
                location,
                "a projection names fields; '$' is allowed only at the end of a path",
            ));
        }
        if positional {
            self.positional(value, location)?;
            return insert(tree, &names, ProjectionPart::Positional, location);
        }
        match value {
            ValueRef::Document(inner) if !is_operator(inner) => {
                self.nested(&names, inner, tree, location)
            }
            _ => {
                let part = self.part(value, location)?;
                insert(tree, &names, part, location)
            }
        }
    }

    fn positional(
        &mut self,
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<(), Error> {
        if flag(value) != Some(true) {
            return Err(refuse(
                location,
                "the positional projection can only include",
            ));
        }
        if std::mem::replace(&mut self.positional, true) {
            return Err(refuse(
                location,
                "a projection may have at most one positional field",
            ));
        }
        self.decide(true, location)
    }

    /// `{"a":{"b":1}}` means `{"a.b":1}`.
    fn nested(
        &mut self,
        names: &[&str],
        inner: Document<'_>,
        tree: &mut ProjectionBranch,
        location: &ParseLocation<'_>,
    ) -> Result<(), Error> {
        if inner.is_empty() {
            return Err(refuse(location, "an empty document projects nothing"));
        }
        for (key, value) in inner.iter() {
            let path = names
                .iter()
                .copied()
                .chain([key])
                .collect::<Vec<_>>()
                .join(".");
            self.field(&path, value, tree, &location.key(key))?;
        }
        Ok(())
    }

    fn decide(&mut self, includes: bool, location: &ParseLocation<'_>) -> Result<(), Error> {
        match self.includes.replace(includes) {
            Some(before) if before != includes => Err(refuse(
                location,
                "a projection includes or excludes; only _id may differ",
            )),
            _ => Ok(()),
        }
    }

    fn part(
        &mut self,
        value: ValueRef<'_>,
        location: &ParseLocation<'_>,
    ) -> Result<ProjectionPart, Error> {
        if let Some(includes) = flag(value) {
            self.decide(includes, location)?;
            return Ok(if includes {
                ProjectionPart::Include
            } else {
                ProjectionPart::Exclude
            });
        }
        let operator = value
            .as_document()
            .filter(|inner| inner.len() == 1)
            .and_then(|inner| inner.iter().next());
        match operator {
            Some(("$slice", argument)) => slice(argument, &location.key("$slice")),
            Some(("$elemMatch", argument)) => {
                self.decide(true, location)?;
                let test =
                    FilterParser::default().element(argument, 1, &location.key("$elemMatch"))?;
                Ok(ProjectionPart::Element(Box::new(test)))
            }
            Some(("$meta", argument)) if argument.as_str() == Some("textScore") => {
                Ok(ProjectionPart::TextScore)
            }
            Some((name, _)) => {
                let detail = format!("{name} is not supported in projections");
                Err(Error::new(
                    ErrorCode::UnsupportedOperator,
                    &location.key(name),
                    detail,
                ))
            }
            None => Err(refuse(
                location,
                "a field is projected by 1, 0, $slice, $elemMatch or $meta",
            )),
        }
    }
}

fn is_operator(document: Document<'_>) -> bool {
    document
        .iter()
        .next()
        .is_some_and(|(key, _)| key.starts_with('$'))
}

/// A count from the front (from the back when negative), or skip and limit.
fn slice(argument: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<ProjectionPart, Error> {
    let wrong = || {
        refuse(
            location,
            "$slice takes a count, or [skip, limit] with a limit above zero",
        )
    };
    if let Some(count) = argument.as_exact_i64() {
        return Ok(if count < 0 {
            ProjectionPart::Slice {
                skip: count,
                limit: None,
            }
        } else {
            ProjectionPart::Slice {
                skip: 0,
                limit: Some(count.unsigned_abs()),
            }
        });
    }
    let array = argument
        .as_array()
        .filter(|array| array.len() == 2)
        .ok_or_else(wrong)?;
    let part = |index| {
        array
            .get(index)
            .and_then(|value| value.as_exact_i64())
            .ok_or_else(wrong)
    };
    let (skip, limit) = (part(0)?, part(1)?);
    let limit = u64::try_from(limit)
        .ok()
        .filter(|limit| *limit > 0)
        .ok_or_else(wrong)?;
    Ok(ProjectionPart::Slice {
        skip,
        limit: Some(limit),
    })
}

fn insert(
    tree: &mut ProjectionBranch,
    names: &[&str],
    part: ProjectionPart,
    location: &ParseLocation<'_>,
) -> Result<(), Error> {
    let collision = || refuse(location, "two fields of the projection conflict");
    let Some((first, rest)) = names.split_first() else {
        return Err(collision());
    };
    let existing = tree.children.iter_mut().find(|(name, _)| &**name == *first);
    match (existing, rest.is_empty()) {
        (Some((_, ProjectionPart::Branch(inner))), false) => insert(inner, rest, part, location),
        (Some(_), _) => Err(collision()),
        (None, true) => {
            tree.children.push(((*first).into(), part));
            Ok(())
        }
        (None, false) => {
            let mut inner = ProjectionBranch::default();
            insert(&mut inner, rest, part, location)?;
            tree.children
                .push(((*first).into(), ProjectionPart::Branch(inner)));
            Ok(())
        }
    }
}
