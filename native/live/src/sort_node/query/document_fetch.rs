//! Unknown documents that rows refer to, requested one by one.
//!
//! A document is read from a snapshot that may be ahead of what was reported here: of an atomic
//! batch it would show one half. So it counts once its whole transaction was reported, as proved by
//! a tick or by the document's own version, and not if a newer version was reported.

use std::sync::Arc;

use rillbase_documents::refusal::DocumentRefusal;

use crate::message::{FetchId, FetchedDocument, QueryHash};
use crate::snapshot::PgSnapshot;

use super::super::joined::FetchVerdict;
use super::SortedQuery;

/// The maximum number of documents requested, and the bytes of their keys. If more are unknown, all
/// rows are read again.
const MAX_DOCUMENTS: usize = 1_000;
const MAX_BYTES: usize = 256 * 1024;

/// A request that was not answered yet.
#[derive(Debug)]
pub(in super::super) struct DocumentFetch {
    fetch: FetchId,
    pub(in super::super) asked_us: u64,
}

/// The documents to request.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum MissingDocuments {
    /// None, or an answer is pending.
    Nothing,
    /// These documents, of each side.
    Of(Vec<Vec<Arc<[u8]>>>),
    /// More than are read one by one.
    TooMany,
}

/// Returns the highest recently reported version of a side's document.
pub(in super::super) type VersionLookup<'t> = dyn Fn(&QueryHash, &[u8]) -> Option<u64> + 't;

impl SortedQuery {
    /// The documents to request now. There is one request at a time: documents found missing
    /// meanwhile are requested together.
    pub(in super::super) fn missing_documents(&self) -> MissingDocuments {
        if self.waiting.is_some() || self.question.is_some() {
            return MissingDocuments::Nothing;
        }
        let keys = self.rows.unread();
        let count = keys.iter().map(Vec::len).sum::<usize>();
        let bytes = keys.iter().flatten().map(|key| key.len()).sum::<usize>();
        match count {
            0 => MissingDocuments::Nothing,
            count if count > MAX_DOCUMENTS || bytes > MAX_BYTES => MissingDocuments::TooMany,
            _ => MissingDocuments::Of(keys),
        }
    }

    pub(in super::super) fn ask_for(&mut self, fetch: FetchId, now_us: u64) {
        self.question = Some(DocumentFetch {
            fetch,
            asked_us: now_us,
        });
    }

    /// Repeats an unanswered request.
    pub(in super::super) fn retry(&mut self, before_us: u64) {
        if self
            .question
            .as_ref()
            .is_some_and(|question| question.asked_us <= before_us)
        {
            self.question = None;
        }
    }

    /// Takes an answer, if it is the expected one.
    pub(in super::super) fn answer(
        &mut self,
        fetch: &FetchId,
        documents: Vec<Vec<FetchedDocument>>,
    ) {
        if self
            .question
            .take_if(|question| question.fetch == *fetch)
            .is_some()
        {
            self.rows.fetched(documents);
        }
    }

    /// Uses documents that were read, as far as they count. `complete` sees what was reported.
    pub(in super::super) fn resolve(
        &mut self,
        latest_version: &VersionLookup<'_>,
        complete: Option<&PgSnapshot>,
    ) -> Result<(), DocumentRefusal> {
        let (queue, snapshot) = (&self.queue, &self.snapshot);
        let judge = |side: &QueryHash, read: &FetchedDocument| {
            let mut steps = queue.iter();
            let is_coming =
                steps.any(|step| step.side == Some(*side) && step.image.key == read.key);
            let reported = latest_version(side, &read.key).unwrap_or(0);
            let is_over = |seen: &PgSnapshot| seen.sees(read.xid);
            if is_coming {
                FetchVerdict::Early
            } else if reported > read.version {
                FetchVerdict::Outdated
            } else if reported == read.version || is_over(snapshot) || complete.is_some_and(is_over)
            {
                FetchVerdict::Taken
            } else {
                FetchVerdict::Early
            }
        };
        self.rows.resolve(&judge);
        self.rows.refresh(&self.order).map(|_| ())
    }
}
