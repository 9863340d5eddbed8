//! Documents that rows refer to and of which nothing is known: asked for, one by one.
//!
//! What was read of one comes from a snapshot that may be ahead of what was told here: of an atomic
//! batch it would show one half. So it counts once its writer's whole transaction was told, which a
//! tick proves or the document's own version, and not if a newer one was.

use std::sync::Arc;

use rillbase_documents::refusal::DocumentRefusal;

use crate::message::{FetchId, FetchedDocument, QueryHash};
use crate::snapshot::PgSnapshot;

use super::super::joined::Worth;
use super::SortedQuery;

/// How many documents are asked for, and the bytes of their keys. Where more are unknown, all rows are
/// read again.
const MOST: usize = 1_000;
const MOST_BYTES: usize = 256 * 1024;

/// A question that was not answered yet.
#[derive(Debug)]
pub(in super::super) struct DocumentFetch {
    fetch: FetchId,
    pub(in super::super) asked_us: u64,
}

/// What is to be asked for.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Lack {
    /// Nothing, or an answer is on its way.
    Nothing,
    /// These documents, of each side.
    Of(Vec<Vec<Arc<[u8]>>>),
    /// More than are read one by one.
    TooMuch,
}

/// Tells the highest version of a side's document that was told lately.
pub(in super::super) type VersionLookup<'t> = dyn Fn(&QueryHash, &[u8]) -> Option<u64> + 't;

impl SortedQuery {
    /// What is to be asked for now. One question at a time: what is found missing meanwhile is asked
    /// for together.
    pub(in super::super) fn lack(&self) -> Lack {
        if self.waiting.is_some() || self.question.is_some() {
            return Lack::Nothing;
        }
        let keys = self.rows.unread();
        let count = keys.iter().map(Vec::len).sum::<usize>();
        let bytes = keys.iter().flatten().map(|key| key.len()).sum::<usize>();
        match count {
            0 => Lack::Nothing,
            count if count > MOST || bytes > MOST_BYTES => Lack::TooMuch,
            _ => Lack::Of(keys),
        }
    }

    pub(in super::super) fn ask_for(&mut self, fetch: FetchId, now_us: u64) {
        self.question = Some(DocumentFetch {
            fetch,
            asked_us: now_us,
        });
    }

    /// Nobody has answered: it is asked again.
    pub(in super::super) fn ask_anew(&mut self, before_us: u64) {
        if self
            .question
            .as_ref()
            .is_some_and(|question| question.asked_us <= before_us)
        {
            self.question = None;
        }
    }

    /// Takes an answer, if it is the one that is waited for.
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

    /// Takes what was read, as far as it may count. `complete` sees what was told.
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
            let told = latest_version(side, &read.key).unwrap_or(0);
            let is_over = |seen: &PgSnapshot| seen.sees(read.xid);
            if is_coming {
                Worth::Early
            } else if told > read.version {
                Worth::Outdated
            } else if told == read.version || is_over(snapshot) || complete.is_some_and(is_over) {
                Worth::Taken
            } else {
                Worth::Early
            }
        };
        self.rows.resolve(&judge);
        self.rows.refresh(&self.order).map(|_| ())
    }
}
