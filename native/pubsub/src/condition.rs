//! Filters of subscriptions, compiled once for many publications.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use rillbase_query::bson::Document;
use rillbase_query::filter::Filter;

use crate::error::Result;

/// The maximum number of compiled filters; beyond it all are evicted, and compiled again when
/// needed.
const MAX_COMPILED: usize = 4096;

/// Compiled filters by their bytes.
#[derive(Debug, Default)]
pub(crate) struct Conditions {
    compiled: RwLock<HashMap<Arc<[u8]>, Arc<Filter>>>,
}

impl Conditions {
    /// Rejects an invalid filter, or one that depends on more than one publication.
    pub(crate) fn check(&self, filter: &[u8]) -> Result<()> {
        self.compile(filter)?.check_live()?;
        Ok(())
    }

    /// Whether a filter matches data. It never matches data that is not a document or cannot be
    /// evaluated.
    pub(crate) fn matches(&self, filter: &[u8], data: &[u8]) -> bool {
        let (Ok(filter), Ok(data)) = (self.compile(filter), Document::parse(data)) else {
            return false;
        };
        filter.matches(data).unwrap_or(false)
    }

    fn compile(&self, bytes: &[u8]) -> Result<Arc<Filter>> {
        if let Some(known) = self.compiled.read().get(bytes) {
            return Ok(Arc::clone(known));
        }
        let filter = Arc::new(Filter::parse(Document::parse(bytes)?)?);
        let mut compiled = self.compiled.write();
        if compiled.len() >= MAX_COMPILED {
            compiled.clear();
        }
        compiled.insert(bytes.into(), Arc::clone(&filter));
        Ok(filter)
    }
}
