//! What a caller expects of a document that it changes.

use crate::refusal::DocumentRefusal;

/// What `If-Match` and `If-None-Match` ask of a document.
#[derive(Debug, Clone, Default)]
pub struct Precondition {
    /// It has one of these versions.
    pub versions: Option<Vec<i64>>,
    /// It is there.
    pub present: bool,
    /// It is not there.
    pub absent: bool,
}

impl Precondition {
    /// Refuses a document that is otherwise.
    pub fn check(&self, version: i64, present: bool) -> Result<(), DocumentRefusal> {
        if self.absent && present {
            return Err(failed("The document exists."));
        }
        if !present && (self.present || self.versions.is_some()) {
            return Err(failed("The document does not exist."));
        }
        match &self.versions {
            Some(versions) if !versions.contains(&version) => {
                Err(failed(format!("The document is at version {version}.")))
            }
            _ => Ok(()),
        }
    }
}

fn failed(detail: impl Into<String>) -> DocumentRefusal {
    DocumentRefusal::new("precondition_failed", detail)
}
