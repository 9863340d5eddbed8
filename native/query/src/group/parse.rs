//! Reading a group.

use super::{BranchContent, GroupDefinition, GroupOperator, IdBranch, MeasureDefinition};
use crate::bson::{Document, ValueRef};
use crate::error::{Error, ErrorCode, ParseLocation};
use crate::limits::{GROUP_FIELDS, GROUP_MEASURES};
use crate::path::{FieldPath, is_field_name};

pub(super) fn group(
    value: ValueRef<'_>,
    location: &ParseLocation<'_>,
) -> Result<GroupDefinition, Error> {
    let Some(document) = value.as_document() else {
        return Err(refuse(
            location,
            "a group is an object with `by` and `measures`",
        ));
    };
    let (mut by, mut measures) = (Vec::new(), Vec::new());
    for (name, value) in document.iter() {
        let here = location.key(name);
        match name {
            "by" => by = paths(value, &here)?,
            "measures" => measures = self::measures(value, &here)?,
            _ => return Err(refuse(&here, "a group has `by` and `measures`")),
        }
    }
    let mut shape = Vec::new();
    for (number, path) in by.iter().enumerate() {
        let names: Vec<&str> = path.segments().iter().map(|one| &*one.name).collect();
        if !grow(&mut shape, &names, number) {
            let by = location.key("by");
            let detail = "one path equals the other, or is a prefix of it";
            return Err(refuse(&by.index(number), detail));
        }
    }
    for measure in &measures {
        if shape.iter().any(|branch| branch.name == measure.name) {
            let all = location.key("measures");
            let detail = "a group field already has this name";
            return Err(refuse(&all.key(&measure.name), detail));
        }
    }
    Ok(GroupDefinition {
        by,
        shape,
        measures,
    })
}

fn refuse(location: &ParseLocation<'_>, detail: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidGroup, location, detail)
}

fn paths(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<Vec<FieldPath>, Error> {
    let Some(list) = value.as_array() else {
        return Err(refuse(location, "a list of fields is expected"));
    };
    let mut paths = Vec::new();
    for (index, item) in list.iter().enumerate() {
        paths.push(path(item, &location.index(index))?);
    }
    if paths.len() > GROUP_FIELDS {
        let detail = format!("documents may be grouped by at most {GROUP_FIELDS} fields");
        return Err(refuse(location, detail));
    }
    Ok(paths)
}

fn path(value: ValueRef<'_>, location: &ParseLocation<'_>) -> Result<FieldPath, Error> {
    match value.as_str().and_then(FieldPath::of_field) {
        Some(path) => Ok(path),
        None => Err(refuse(location, "a field is expected, as `a` or `a.b`")),
    }
}

/// Adds a path to the tree; returns false if it, a prefix or an extension of it is present.
fn grow(branches: &mut Vec<IdBranch>, names: &[&str], number: usize) -> bool {
    let Some((first, rest)) = names.split_first() else {
        return false;
    };
    let known = branches.iter_mut().find(|branch| branch.name == *first);
    match known {
        Some(branch) => match &mut branch.inner {
            BranchContent::Leaf(_) => false,
            BranchContent::Branches(inner) => grow(inner, rest, number),
        },
        // A row has its own `_id`.
        None if *first == "_id" => false,
        None => {
            let mut inner = Vec::new();
            let inner = if rest.is_empty() {
                BranchContent::Leaf(number)
            } else {
                grow(&mut inner, rest, number);
                BranchContent::Branches(inner)
            };
            branches.push(IdBranch {
                name: (*first).to_owned(),
                inner,
            });
            true
        }
    }
}

fn measures(
    value: ValueRef<'_>,
    location: &ParseLocation<'_>,
) -> Result<Vec<MeasureDefinition>, Error> {
    let Some(document) = value.as_document() else {
        return Err(refuse(
            location,
            "an object of measures by name is expected",
        ));
    };
    let mut measures: Vec<MeasureDefinition> = Vec::new();
    for (name, value) in document.iter() {
        let here = location.key(name);
        if !is_field_name(name) || name == "_id" {
            return Err(refuse(&here, "not a valid name for a measure"));
        }
        if measures.iter().any(|earlier| earlier.name == name) {
            return Err(refuse(&here, "a measure already has this name"));
        }
        let Some(written) = value.as_document() else {
            return Err(refuse(
                &here,
                "a measure is an object with `op` and `field`",
            ));
        };
        measures.push(measure(name, written, &here)?);
    }
    if measures.len() > GROUP_MEASURES {
        let detail = format!("a group may have at most {GROUP_MEASURES} measures");
        return Err(refuse(location, detail));
    }
    Ok(measures)
}

fn measure(
    name: &str,
    written: Document<'_>,
    location: &ParseLocation<'_>,
) -> Result<MeasureDefinition, Error> {
    let (mut operation, mut field) = (None, None);
    for (member, value) in written.iter() {
        let here = location.key(member);
        match member {
            "op" => {
                let mut all = GroupOperator::ALL.into_iter();
                operation = all.find(|one| value.as_str() == Some(one.name()));
                if operation.is_none() {
                    let detail = "`count`, `sum`, `avg`, `min` or `max` is expected";
                    return Err(refuse(&here, detail));
                }
            }
            "field" => field = Some(path(value, &here)?),
            _ => return Err(refuse(&here, "a measure has `op` and `field`")),
        }
    }
    let Some(operation) = operation else {
        return Err(refuse(location, "`op` is missing"));
    };
    match (operation, &field) {
        (GroupOperator::Count, Some(_)) => Err(refuse(
            &location.key("field"),
            "`count` counts documents and takes no field",
        )),
        (GroupOperator::Count, None) | (_, Some(_)) => Ok(MeasureDefinition {
            name: name.to_owned(),
            operation,
            field,
        }),
        (_, None) => Err(refuse(location, "`field` is missing")),
    }
}
