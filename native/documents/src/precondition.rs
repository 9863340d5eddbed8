//! What a caller requires of a document that it changes.

use crate::refusal::DocumentRefusal;

/// What `If-Match` and `If-None-Match` require of a document.
#[derive(Debug, Clone, Default)]
pub struct Precondition {
    /// It has one of these versions.
    pub versions: Option<Vec<i64>>,
    /// It exists.
    pub present: bool,
    /// It does not exist.
    pub absent: bool,
}

impl Precondition {
    /// Rejects a document that does not satisfy it.
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
