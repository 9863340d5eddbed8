//! The bodies of a group's events, which subscribers of one query share.

use std::sync::Arc;

use rillbase_query::ejson::Form;

use super::change::ResultChange;
use super::frames;

/// The bodies of a group's events, rendered once for each form that a subscriber wants.
#[derive(Default)]
pub(super) struct EventBodies {
    relaxed: Vec<Arc<str>>,
    canonical: Vec<Arc<str>>,
}

impl EventBodies {
    /// None are rendered for a subscriber that shares no form.
    pub(super) fn of(&mut self, changes: &[ResultChange], form: Option<Form>) -> &[Arc<str>] {
        let Some(form) = form else {
            return &[];
        };
        let bodies = match form {
            Form::Relaxed => &mut self.relaxed,
            Form::Canonical => &mut self.canonical,
        };
        if bodies.is_empty() {
            let rendered = changes
                .iter()
                .map(|one| frames::event_body(one, None, form));
            *bodies = rendered.collect();
        }
        bodies
    }
}
