//! Parses a document of operators into ordered changes.

use std::cmp::Ordering;

use super::operation::UpdateOperation;
use super::refuse;
use super::update_path::{ArrayFilters, UpdateSegment, document, steps};
use crate::bson::{Document, ValueRef};
use crate::error::{Error, ErrorCode, ParseLocation};
use crate::limits::CHANGES;

/// One operation at one path.
#[derive(Debug)]
pub(super) struct PathChange {
    pub(super) steps: Vec<UpdateSegment>,
    pub(super) operation: UpdateOperation,
    /// Its location in the update, for errors while applying.
    pub(super) pointer: String,
}

impl PathChange {
    pub(super) fn is_positional(&self) -> bool {
        self.steps.contains(&UpdateSegment::Matched)
    }
}

/// Parses all operators; returns the changes in the order of their paths.
pub(super) fn changes(
    update: Document<'_>,
    filters: &mut ArrayFilters,
    location: &ParseLocation<'_>,
) -> Result<Vec<PathChange>, Error> {
    let mut changes = Vec::new();
    for (name, fields) in update.iter() {
        let here = location.key(name);
        if !name.starts_with('$') {
            return Err(refuse(
                &here,
                "an update consists of operators; use PUT to replace a document",
            ));
        }
        if !UpdateOperation::NAMES.contains(&name) {
            let detail = format!("the update operator {name} is unknown or not supported");
            return Err(Error::new(ErrorCode::UnsupportedOperator, &here, detail));
        }
        for (path, argument) in document(fields, name, &here)?.iter() {
            let at = here.key(path);
            change(name, path, argument, filters, &mut changes, &at)?;
        }
    }
    if changes.len() > CHANGES {
        return Err(refuse(
            location,
            format!("an update may have at most {CHANGES} fields"),
        ));
    }
    changes.sort_by(|a, b| by_path(&a.steps, &b.steps));
    check_conflicts(&changes)?;
    Ok(changes)
}

fn change(
    name: &str,
    path: &str,
    argument: ValueRef<'_>,
    filters: &mut ArrayFilters,
    changes: &mut Vec<PathChange>,
    location: &ParseLocation<'_>,
) -> Result<(), Error> {
    let parsed = steps(path, filters, location)?;
    let pointer = location.pointer();
    if name != "$rename" {
        let operation = UpdateOperation::parse(name, argument, location)?;
        changes.push(PathChange {
            steps: parsed,
            operation,
            pointer,
        });
        return Ok(());
    }
    let target = argument
        .as_str()
        .ok_or_else(|| refuse(location, "$rename takes the new path as a string"))?;
    let target = steps(target, filters, location)?;
    let only_fields = |steps: &[UpdateSegment]| {
        steps
            .iter()
            .all(|step| matches!(step, UpdateSegment::Field(_)))
    };
    if !only_fields(&parsed) || !only_fields(&target) {
        return Err(refuse(
            location,
            "$rename takes paths without positional operators",
        ));
    }
    // Two changes, so that a conflict with either path is found. The value
    // is fetched before anything is changed.
    changes.push(PathChange {
        steps: target,
        operation: UpdateOperation::RenameTo(parsed.clone()),
        pointer: pointer.clone(),
    });
    changes.push(PathChange {
        steps: parsed,
        operation: UpdateOperation::Unset,
        pointer,
    });
    Ok(())
}

fn by_path(a: &[UpdateSegment], b: &[UpdateSegment]) -> Ordering {
    let steps = a.iter().zip(b).map(|(a, b)| by_step(a, b));
    steps
        .fold(Ordering::Equal, Ordering::then)
        .then(a.len().cmp(&b.len()))
}

fn by_step(a: &UpdateSegment, b: &UpdateSegment) -> Ordering {
    let rank = |step: &UpdateSegment| match step {
        UpdateSegment::Matched => (0, 0),
        UpdateSegment::All => (1, 0),
        UpdateSegment::Filtered(index) => (2, *index),
        UpdateSegment::Field(_) => (3, 0),
    };
    match (a, b) {
        (UpdateSegment::Field(a), UpdateSegment::Field(b)) => match (a.index, b.index) {
            (Some(x), Some(y)) => x.cmp(&y),
            _ => a.name.cmp(&b.name),
        },
        _ => rank(a).cmp(&rank(b)),
    }
}

/// No path may equal another or be below it.
fn check_conflicts(changes: &[PathChange]) -> Result<(), Error> {
    for (index, change) in changes.iter().enumerate() {
        for other in changes.iter().skip(index + 1) {
            let shared = change.steps.iter().zip(&other.steps).all(|(a, b)| a == b);
            if shared {
                let detail = "two changes of the update conflict at the same place";
                return Err(Error {
                    code: ErrorCode::InvalidUpdate,
                    pointer: other.pointer.clone(),
                    detail: detail.into(),
                });
            }
        }
    }
    Ok(())
}
