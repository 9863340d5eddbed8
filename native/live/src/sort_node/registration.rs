//! Registering, joining, renewing and ending queries.
//!
//! Rows that come with a request are put aside until all filter nodes have answered that request.

use rillbase_documents::refusal::DocumentRefusal;

use crate::message::{
    Foreign, NodeEvent, QueryDefinition, QueryHash, RemovalReason, ResultRow, StreamId,
};
use crate::node::NodeOutput;
use crate::snapshot::PgSnapshot;

use super::SortNode;
use super::query::{Aside, AsideVerdict, SortedQuery};
use super::query_write::QueryWrite;
use super::steps::steps;

/// A request to keep a query, or new rows for it.
#[derive(Debug)]
pub(super) struct SortRegistration<'r> {
    pub(super) id: StreamId,
    pub(super) query: &'r QueryDefinition,
    pub(super) snapshot: &'r PgSnapshot,
    pub(super) rows: &'r [ResultRow],
    pub(super) complete: bool,
    /// What was read of each side.
    pub(super) foreign: &'r [Foreign],
    pub(super) renewal: bool,
}

impl SortNode {
    pub(super) fn register(
        &mut self,
        registration: &SortRegistration<'_>,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) {
        let hash = registration.query.hash;
        let activation = registration.query.activation;
        let done = match self.queries.get(&hash).map(|query| query.activation) {
            Some(known) if known > activation => return,
            Some(known) if known == activation => self.register_again(registration, now_us, out),
            _ if registration.renewal => return,
            _ => {
                self.outlive(hash, now_us);
                self.register_first(registration, now_us, out)
            }
        };
        if let Err(refusal) = done {
            return self.fail(hash, &refusal, out);
        }
        self.confirm(hash, now_us, out);
    }

    fn register_first(
        &mut self,
        registration: &SortRegistration<'_>,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) -> Result<(), DocumentRefusal> {
        let definition = registration.query;
        let hash = definition.hash;
        let mut query = SortedQuery::new(definition)?;
        let mut orphan = self.orphans.adopt(&hash, now_us);
        query.begin(
            orphan.answers(definition.activation),
            orphan.history,
            now_us,
        );
        query.read = registration.id;
        query.may_begin(registration.snapshot);
        query.rebase_pending = true;
        let (mut steps, below) = self.looks_up(definition, now_us);
        query.below = query.below.max(below);
        steps.extend(orphan.steps);
        steps.sort_by_key(|step| step.at);
        for step in steps {
            query.push(step, self.config.max_waiting);
        }
        let believed = query.can_settle(registration.snapshot, &self.sources);
        if believed {
            query.aside = Some(self.place(&query, registration)?);
        }
        self.queries.insert(hash, query);
        if !believed {
            self.ask(hash, now_us, out);
        }
        Ok(())
    }

    /// Subscribes a query to its sides. Returns what was reported about them before, and up to
    /// which transaction some of that is missing.
    fn looks_up(&mut self, query: &QueryDefinition, now_us: u64) -> (Vec<QueryWrite>, u64) {
        let (mut steps, mut below) = self.sides.join(query, now_us);
        for side in query.sides.iter() {
            let orphan = self.orphans.adopt(&side.hash, now_us);
            below = below.max(orphan.history.below);
            for mut step in orphan.steps {
                step.side = Some(side.hash);
                self.sides.take(&side.hash, &step, now_us);
                steps.push(step);
            }
        }
        (steps, below)
    }

    fn place(
        &self,
        query: &SortedQuery,
        registration: &SortRegistration<'_>,
    ) -> Result<Aside, DocumentRefusal> {
        let order = query.order();
        let mut gathered = query.gathered(
            registration.query,
            Some(registration.foreign),
            self.config.max_rows,
        )?;
        for row in registration.rows {
            gathered.push(row, order);
        }
        Ok(Aside {
            rows: gathered.into_rows(registration.complete, order)?,
            snapshot: registration.snapshot.clone(),
            request: registration.id,
            steps: Vec::new(),
        })
    }

    fn register_again(
        &mut self,
        registration: &SortRegistration<'_>,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) -> Result<(), DocumentRefusal> {
        let hash = registration.query.hash;
        let Some(query) = self.queries.get_mut(&hash) else {
            return Ok(());
        };
        // Filter nodes may have answered already.
        let doubtful = query.is_doubtful(self.config.partitions);
        query.read = registration.id;
        let waits = query.waiting.is_some();
        if (waits || doubtful) && !registration.renewal {
            query.may_begin(registration.snapshot);
        }
        let newer = !registration.renewal && !query.covers(registration.snapshot);
        if waits || (doubtful && newer) {
            self.renew_with(registration, now_us, out)?;
        }
        if !registration.renewal {
            self.emit_start(hash, out);
        }
        Ok(())
    }

    /// Puts needed rows aside, or requests others. A subscriber that joins later does not replace
    /// rows that already wait for answers, or these would never be used.
    fn renew_with(
        &mut self,
        registration: &SortRegistration<'_>,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) -> Result<(), DocumentRefusal> {
        let hash = registration.query.hash;
        let Some(query) = self.queries.get(&hash) else {
            return Ok(());
        };
        if query.aside.is_some() {
            return Ok(());
        }
        if !query.can_settle(registration.snapshot, &self.sources) {
            self.renew(hash, now_us, out);
            return Ok(());
        }
        let aside = self.place(query, registration)?;
        if let Some(query) = self.queries.get_mut(&hash) {
            query.aside = Some(aside);
        }
        Ok(())
    }

    /// Takes rows when all filter nodes have answered the request that they came with.
    pub(super) fn confirm(&mut self, hash: QueryHash, now_us: u64, out: &mut Vec<NodeOutput>) {
        let Some(query) = self.queries.get_mut(&hash) else {
            return;
        };
        match query.judge(&self.sources, self.config.partitions) {
            AsideVerdict::Open => {}
            AsideVerdict::Taken(aside) => {
                if let Err(refusal) = self.settle(hash, aside, now_us, out) {
                    return self.fail(hash, &refusal, out);
                }
            }
            // The first subscribers register again, because they receive the same answer.
            AsideVerdict::TooOld if !query.shown => {}
            AsideVerdict::TooOld | AsideVerdict::Outdated if query.waiting.is_some() => {
                self.ask(hash, now_us, out);
            }
            AsideVerdict::TooOld | AsideVerdict::Outdated => self.renew(hash, now_us, out),
        }
        self.check(hash, now_us, out);
        self.advance(hash, now_us, out);
    }

    /// New rows have arrived: the difference is reported.
    fn settle(
        &mut self,
        hash: QueryHash,
        aside: Aside,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) -> Result<(), DocumentRefusal> {
        let Some(query) = self.queries.get_mut(&hash) else {
            return Ok(());
        };
        let (before, shown) = (query.window(), query.shown);
        query.take(aside, now_us)?;
        query.hold(before);
        query.shown = shown;
        if query.has_unknown_references() {
            self.request_documents(hash, now_us, out);
        } else {
            self.show(hash, out);
        }
        Ok(())
    }

    /// Rows that were held back count from here on: the difference is reported.
    pub(super) fn show(&mut self, hash: QueryHash, out: &mut Vec<NodeOutput>) {
        let Some(query) = self.queries.get_mut(&hash) else {
            return;
        };
        self.incomplete.remove(&hash);
        let before = query.refresh_window();
        if query.shown {
            let left = |row: &ResultRow| (row.document_version(), RemovalReason::Left);
            let changes = steps(&before, &query.window(), &left);
            let event = query.window_event(None, changes);
            self.voice.emit(event, out);
        }
        query.shown = true;
        if query.rebase_pending {
            self.emit_start(hash, out);
        }
    }

    /// Sends new subscribers their start: now, or when the rows are complete.
    pub(super) fn emit_start(&mut self, hash: QueryHash, out: &mut Vec<NodeOutput>) {
        let Some(query) = self.queries.get_mut(&hash) else {
            return;
        };
        query.rebase_pending =
            query.waiting.is_some() || query.aside.is_some() || query.is_on_hold();
        if query.rebase_pending {
            return;
        }
        for part in query.rebase(self.config.rebase_bytes) {
            self.voice.emit(part, out);
        }
        let active = NodeEvent::Active {
            query: hash,
            activation: query.activation,
            request: query.read,
        };
        self.voice.emit(active, out);
    }

    pub(super) fn expire(&mut self, hash: QueryHash, activation: u64, now_us: u64) {
        self.unsorted.remove(&hash);
        let query = self.queries.get(&hash);
        if query.is_some_and(|query| query.activation <= activation) {
            self.outlive(hash, now_us);
        }
    }

    /// An activation has ended. Reports about it may have been meant for the next one.
    fn outlive(&mut self, hash: QueryHash, now_us: u64) {
        self.held.remove(&hash);
        if let Some(query) = self.remove(&hash) {
            self.orphans
                .record_ended(hash, query.into_history(), now_us);
        }
    }
}
