//! Where an error is in the body that was sent.
//!
//! An operation is applied without its body, so its errors are located in its operators or in the
//! resulting document. The server, which has parsed the body, adds where the operation is in it.

use rillbase_query::bson::{Document, ValueRef};
use rillbase_query::error::ParseLocation;

use crate::operation::{DocumentAction, DocumentOperation};
use crate::operations::DocumentOperations;
use crate::outcome::{Outcomes, WriteResult};
use crate::refusal::DocumentRefusal;

impl DocumentOperations {
    /// The result of these operations with the places of its errors in their body.
    pub fn placed(&self, result: WriteResult) -> WriteResult {
        match result {
            Ok(outcomes) => Ok(self.outcomes_placed(outcomes)),
            Err(refusal) => Err(self.whole_placed(refusal)),
        }
    }

    fn outcomes_placed(&self, outcomes: Outcomes) -> Outcomes {
        if outcomes.iter().all(Result::is_ok) {
            return outcomes;
        }
        let placed = outcomes.iter().enumerate().map(|(number, outcome)| {
            let outcome = outcome.clone();
            outcome.map_err(|refusal| self.one_placed(number, refusal))
        });
        placed.collect()
    }

    /// The error of an atomic write. It names the operation if there are several.
    fn whole_placed(&self, mut refusal: DocumentRefusal) -> DocumentRefusal {
        let count = self.as_slice().len();
        let root = ParseLocation::root();
        let list = root.key("operations");
        let number = (0..count).find(|number| {
            count == 1 || is_below(&refusal.pointer, &list.index(*number).pointer())
        });
        let Some(number) = number else {
            return refusal;
        };
        let is_parsed = self.as_slice().get(number).is_some_and(Result::is_ok);
        if count > 1 && is_parsed {
            let prefix = list.index(number).pointer();
            let violations = refusal.violations.iter_mut().map(|(pointer, _)| pointer);
            for pointer in violations.chain([&mut refusal.pointer]) {
                *pointer = pointer.strip_prefix(&prefix).unwrap_or_default().into();
            }
        }
        self.one_placed(number, refusal)
    }

    fn one_placed(&self, number: usize, mut refusal: DocumentRefusal) -> DocumentRefusal {
        // The errors of operations that could not be parsed have their places.
        let Some(Ok(operation)) = self.as_slice().get(number) else {
            return refusal;
        };
        let root = ParseLocation::root();
        let list = root.key("operations");
        let listed = list.index(self.first_number() + number);
        let place = if self.is_list() { &listed } else { &root };
        let violations = refusal.violations.iter_mut().map(|(pointer, _)| pointer);
        for pointer in violations.chain([&mut refusal.pointer]) {
            *pointer = operation.place_of(pointer, place, self.is_list());
        }
        refusal
    }
}

impl DocumentOperation {
    /// The place of an error within the body's item at `place`.
    fn place_of(&self, pointer: &str, place: &ParseLocation<'_>, is_listed: bool) -> String {
        let kind = place.key(self.kind());
        let member = |name| kind.key(name).pointer();
        let (content, pointer) = match &self.action {
            DocumentAction::Insert(_) if is_listed && !pointer.is_empty() => {
                (kind.pointer(), pointer)
            }
            DocumentAction::Replace(_) if is_listed && !pointer.is_empty() => {
                (member("document"), pointer)
            }
            DocumentAction::Update(update, filter) => {
                // It may have been parsed as a member of a body.
                let inner = pointer.strip_prefix("/update").unwrap_or(pointer);
                if inner.is_empty() || !is_in(update.source().document.as_ref(), inner) {
                    (place.pointer(), pointer)
                } else if is_listed {
                    (member("update"), inner)
                } else if filter.is_some() {
                    (place.key("update").pointer(), inner)
                } else {
                    (place.pointer(), inner)
                }
            }
            _ => (place.pointer(), pointer),
        };
        content + pointer
    }
}

/// Whether a pointer is that of a place or of something in it.
fn is_below(pointer: &str, place: &str) -> bool {
    let rest = pointer.strip_prefix(place);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a pointer denotes a part of a document.
fn is_in(document: Document<'_>, pointer: &str) -> bool {
    let mut value = ValueRef::Document(document);
    for segment in pointer.split('/').skip(1) {
        let name = segment.replace("~1", "/").replace("~0", "~");
        let inner = match value {
            ValueRef::Document(document) => document.get(&name),
            ValueRef::Array(items) => {
                let number = name.parse().ok();
                number.and_then(|number: usize| items.iter().nth(number))
            }
            _ => None,
        };
        let Some(inner) = inner else {
            return false;
        };
        value = inner;
    }
    true
}
