//! Queries come, are joined by others, get new rows, and go.

use rillbase_documents::refusal::Refusal;

use crate::message::{Definition, Gone, News, QueryHash, Row};
use crate::node::Output;
use crate::snapshot::Snapshot;

use super::SortNode;
use super::query::Query;
use super::rows::Rows;
use super::steps::steps;

/// A request to keep a query, or new rows for it.
#[derive(Debug)]
pub(super) struct Registration<'r> {
    pub(super) query: &'r Definition,
    pub(super) snapshot: &'r Snapshot,
    pub(super) rows: &'r [Row],
    pub(super) complete: bool,
    pub(super) renewal: bool,
}

impl SortNode {
    pub(super) fn register(
        &mut self,
        registration: &Registration<'_>,
        now_us: u64,
        out: &mut Vec<Output>,
    ) {
        let hash = registration.query.hash;
        let activation = registration.query.activation;
        match self.queries.get(&hash).map(|query| query.activation) {
            Some(known) if known > activation => return,
            Some(known) if known == activation => {
                return self.register_again(registration, now_us, out);
            }
            _ if registration.renewal => return,
            _ => {}
        }
        match self.register_first(registration, now_us) {
            Ok(true) => {}
            Ok(false) => self.renew(hash, now_us, out),
            Err(refusal) => return self.fail(hash, &refusal, out),
        }
        self.tell(hash, out);
        self.check(hash, now_us, out);
        self.advance(hash, now_us, out);
    }

    /// False: its rows are not to be believed.
    fn register_first(
        &mut self,
        registration: &Registration<'_>,
        now_us: u64,
    ) -> Result<bool, Refusal> {
        let definition = registration.query;
        let mut query = Query::new(definition)?;
        let rows = self.place(&query, registration)?;
        query.settle(rows, registration.snapshot);
        let (hash, activation) = (definition.hash, definition.activation);
        let (steps, believed) = self.orphans.adopt(&hash, activation, now_us);
        for step in steps {
            query.push(step, self.config.max_waiting);
        }
        let behind = query.is_behind(&self.sources);
        query.joined = registration.snapshot.clone();
        self.queries.insert(hash, query);
        Ok(believed && !behind)
    }

    fn place(&self, query: &Query, registration: &Registration<'_>) -> Result<Rows, Refusal> {
        let order = query.order();
        let rows = registration.rows.iter();
        let placed: Result<Vec<_>, Refusal> = rows
            .map(|row| Ok((order.place(row)?, row.clone())))
            .collect();
        let capacity = query.capacity(self.config.max_rows);
        Ok(Rows::new(placed?, registration.complete, capacity))
    }

    fn register_again(
        &mut self,
        registration: &Registration<'_>,
        now_us: u64,
        out: &mut Vec<Output>,
    ) {
        let hash = registration.query.hash;
        let Some(query) = self.queries.get_mut(&hash) else {
            return;
        };
        if !registration.renewal {
            query.joined = registration.snapshot.clone();
        }
        let Some(query) = self.queries.get(&hash) else {
            return;
        };
        let newer = !registration.renewal && !query.covers(registration.snapshot);
        let wanted = query.waiting.is_some() || (query.doubtful && newer);
        if wanted && query.can_settle(registration.snapshot, &self.sources) {
            match self.place(query, registration) {
                Ok(rows) => self.settle(hash, rows, registration.snapshot, out),
                Err(refusal) => return self.fail(hash, &refusal, out),
            }
        } else if wanted {
            self.renew(hash, now_us, out);
        }
        if !registration.renewal {
            self.tell(hash, out);
        }
        self.check(hash, now_us, out);
        self.advance(hash, now_us, out);
    }

    /// New rows are there: everybody is told what is different.
    fn settle(&mut self, hash: QueryHash, rows: Rows, snapshot: &Snapshot, out: &mut Vec<Output>) {
        let Some(query) = self.queries.get_mut(&hash) else {
            return;
        };
        let before = query.window();
        query.settle(rows, snapshot);
        let left = |row: &Row| (row.version, Gone::Left);
        let changes = steps(&before, &query.window(), &left);
        let (news, owed) = (query.news(None, changes), query.owed);
        self.voice.say(news, out);
        if owed {
            self.tell(hash, out);
        }
    }

    /// From where those start who have just come: now, or when the rows are complete.
    pub(super) fn tell(&mut self, hash: QueryHash, out: &mut Vec<Output>) {
        let Some(query) = self.queries.get_mut(&hash) else {
            return;
        };
        query.owed = query.waiting.is_some();
        if query.owed {
            return;
        }
        for part in query.rebase(self.config.rebase_bytes) {
            self.voice.say(part, out);
        }
        let active = News::Active {
            query: hash,
            activation: query.activation,
        };
        self.voice.say(active, out);
    }

    pub(super) fn expire(&mut self, hash: &QueryHash, activation: u64) {
        self.unsorted.remove(hash);
        let query = self.queries.get(hash);
        if query.is_some_and(|query| query.activation <= activation) {
            self.queries.remove(hash);
            self.held.remove(hash);
        }
    }
}
