//! One query that is watched here: its result, and what is not yet part of it.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use rillbase_documents::id::key_hash;

use crate::message::{
    AfterImage, Content, Definition, Gone, News, Row, Source, StreamId, WindowChange,
};
use crate::snapshot::Snapshot;

use super::change::{Change, Leave, Rows, difference};
use super::sources::Log;

/// A batch whose end does not come is not waited for longer.
const BATCH_US: u64 = 2_000_000;
/// Removed keys are remembered for so long.
const GONE_US: u64 = 60_000_000;

/// One write's effect on an unsorted result.
#[derive(Debug)]
enum Step {
    Put(Row),
    Take(Arc<[u8]>, u64, Gone),
}

/// A write, or an atomic batch, that is not applied yet.
#[derive(Debug)]
struct Pending {
    xid: u64,
    parts: Arc<[u16]>,
    steps: Vec<Step>,
    since_us: u64,
    /// The place in the log in front of it.
    before: StreamId,
}

/// Changes that belong together. `broken`: a part of them may be missing.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) changes: Vec<Change>,
    pub(super) broken: bool,
}

/// See the module.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and all combinations occur"
)]
pub(super) struct Query {
    pub(super) definition: Arc<Definition>,
    pub(super) partition: u16,
    pub(super) clients: BTreeSet<u64>,
    /// None: it has not been registered yet.
    pub(super) rows: Option<Rows>,
    /// A registration is on its way: what the log says meanwhile is kept.
    pub(super) registering: bool,
    pub(super) held_back: Vec<(StreamId, Source, News)>,
    pub(super) activation: u64,
    pub(super) snapshot: Snapshot,
    pub(super) live: bool,
    /// A write was made under other access rules than these: nothing more is shown.
    pub(super) outdated: bool,
    active: HashSet<Source>,
    renewing: bool,
    /// A window that runs ahead of what is shown until it has seen all that is shown.
    ahead: Option<Rows>,
    parts: HashMap<Source, Vec<Row>>,
    gone: HashMap<Arc<[u8]>, (u64, Gone, u64)>,
    pending: VecDeque<Pending>,
}

impl Query {
    pub(super) fn new(definition: Arc<Definition>, partition: u16) -> Self {
        Self {
            definition,
            partition,
            clients: BTreeSet::new(),
            rows: None,
            registering: true,
            held_back: Vec::new(),
            activation: 0,
            snapshot: Snapshot::default(),
            live: false,
            outdated: false,
            active: HashSet::new(),
            renewing: false,
            ahead: None,
            parts: HashMap::new(),
            gone: HashMap::new(),
            pending: VecDeque::new(),
        }
    }

    pub(super) fn sources(&self, write_partitions: u16) -> Vec<Source> {
        let filters = (0..write_partitions).map(Source::Filter);
        filters
            .chain(self.definition.sorted.then_some(Source::Sort))
            .collect()
    }

    /// Whether every node concerned watches it.
    pub(super) fn is_ready(&self, write_partitions: u16) -> bool {
        let sources = self.sources(write_partitions);
        self.rows.is_some()
            && self.ahead.is_none()
            && sources.iter().all(|source| self.active.contains(source))
    }

    pub(super) fn is_live(&self, log: &Log, write_partitions: u16, now_us: u64) -> bool {
        self.is_ready(write_partitions)
            && !self.registering
            && !self.renewing
            && self
                .sources(write_partitions)
                .iter()
                .all(|source| log.is_live(*source, now_us))
    }

    /// The place in the log up to which everything has been shown.
    pub(super) fn shown_up_to(&self, log: &Log) -> StreamId {
        self.pending
            .front()
            .map_or(log.position, |first| first.before)
    }

    /// Takes the rows of a registration; returns what changes for those who had others.
    pub(super) fn registered(
        &mut self,
        activation: u64,
        snapshot: Snapshot,
        rows: Rows,
    ) -> Vec<Change> {
        let before = self.rows.as_ref().map(Rows::list);
        let changes =
            before.map_or_else(Vec::new, |before| difference(&before, &rows, &self.leave()));
        if activation != self.activation {
            self.active.clear();
            self.gone.clear();
        }
        self.activation = activation;
        self.snapshot = snapshot;
        self.ahead = self.definition.sorted.then(|| rows.clone());
        self.rows = Some(rows);
        self.active.remove(&Source::Sort);
        self.pending.clear();
        self.registering = false;
        self.renewing = false;
        changes
    }

    /// Why a row that is shown no longer is there.
    pub(super) fn leave(&self) -> impl Fn(&Row) -> (u64, Gone) + use<'_> {
        |row| {
            self.gone
                .get(&row.key)
                .filter(|(version, ..)| *version >= row.version)
                .map_or((row.version, Gone::Left), |(version, gone, _)| {
                    (*version, *gone)
                })
        }
    }

    /// A write enters, stays in or leaves an unsorted result.
    pub(super) fn image(
        &mut self,
        image: &AfterImage,
        removed: bool,
        before: StreamId,
        now_us: u64,
    ) {
        let rules = self.definition.rules_version;
        if rules != 0 && image.rules_version > rules {
            self.outdated = true;
            return;
        }
        if self.snapshot.sees(image.xid) {
            return;
        }
        let step = match &image.content {
            Content::Superseded => return,
            Content::Deleted(_) => Step::Take(Arc::clone(&image.key), image.version, Gone::Deleted),
            Content::Document(_) if removed => {
                Step::Take(Arc::clone(&image.key), image.version, Gone::Left)
            }
            Content::Document(body) => Step::Put(Row {
                key: Arc::clone(&image.key),
                version: image.version,
                created_ms: image.created_ms,
                updated_ms: image.written_us.div_euclid(1000),
                body: Arc::clone(body),
            }),
        };
        let batch = !image.parts.is_empty();
        match self
            .pending
            .iter_mut()
            .find(|one| batch && one.xid == image.xid)
        {
            Some(one) => one.steps.push(step),
            None => self.pending.push_back(Pending {
                xid: image.xid,
                parts: Arc::clone(&image.parts),
                steps: vec![step],
                since_us: now_us,
                before,
            }),
        }
    }

    /// Applies what is complete, in order.
    pub(super) fn settle(&mut self, log: &Log, now_us: u64) -> Vec<Group> {
        let mut groups = Vec::new();
        while let Some(first) = self.pending.front() {
            let complete = first.parts.is_empty() || log.is_done(first.xid, &first.parts);
            let broken = !complete && now_us.saturating_sub(first.since_us) > BATCH_US;
            if !complete && !broken {
                break;
            }
            let Some(first) = self.pending.pop_front() else {
                break;
            };
            let steps = first.steps.into_iter();
            let changes: Vec<_> = steps.filter_map(|step| self.apply(step, now_us)).collect();
            if !changes.is_empty() {
                groups.push(Group { changes, broken });
            }
        }
        groups
    }

    fn apply(&mut self, step: Step, now_us: u64) -> Option<Change> {
        let rows = self.rows.as_mut()?;
        let (key, version) = match &step {
            Step::Put(row) => (&row.key, row.version),
            Step::Take(key, version, _) => (key, *version),
        };
        let held = rows.get(key).map(|row| row.version);
        let gone = self.gone.get(key).map(|(version, ..)| *version);
        if held.is_some_and(|held| held >= version) || gone.is_some_and(|gone| gone >= version) {
            return None;
        }
        match step {
            Step::Put(row) => {
                self.gone.remove(&row.key);
                rows.put(row)
            }
            Step::Take(key, version, gone) => {
                self.gone.insert(Arc::clone(&key), (version, gone, now_us));
                rows.take(&key, version, gone)
            }
        }
    }

    /// A node watches the query from here on.
    pub(super) fn activated(&mut self, source: Source, activation: u64) {
        if activation == self.activation {
            self.active.insert(source);
        }
    }

    /// A node's whole state, or a part of it.
    pub(super) fn rebase(
        &mut self,
        source: Source,
        rows: Vec<Row>,
        first: bool,
        last: Option<&Snapshot>,
        write_partitions: u16,
    ) -> Vec<Change> {
        let parts = self.parts.entry(source).or_default();
        if first {
            parts.clear();
        }
        parts.extend(rows);
        let Some(snapshot) = last else {
            return Vec::new();
        };
        let rows = self.parts.remove(&source).unwrap_or_default();
        match source {
            Source::Sort => {
                self.renewing = false;
                self.rebase_window(Rows::Window(rows.into_iter().map(Arc::new).collect()))
            }
            Source::Filter(partition) => {
                self.rebase_partition(partition, rows, snapshot, write_partitions)
            }
        }
    }

    fn rebase_window(&mut self, told: Rows) -> Vec<Change> {
        if self.ahead.is_some() {
            self.ahead = Some(told);
            return Vec::new();
        }
        let before = self.rows.as_ref().map(Rows::list).unwrap_or_default();
        let changes = difference(&before, &told, &self.leave());
        self.rows = Some(told);
        changes
    }

    fn rebase_partition(
        &mut self,
        partition: u16,
        told: Vec<Row>,
        snapshot: &Snapshot,
        write_partitions: u16,
    ) -> Vec<Change> {
        let own = |key: &[u8]| {
            let hash = u32::try_from(key_hash(key)).unwrap_or(0);
            hash % u32::from(write_partitions.max(1)) == u32::from(partition)
        };
        if self.snapshot.covers(snapshot) {
            return Vec::new();
        }
        let Some(Rows::Keyed(rows)) = &self.rows else {
            return Vec::new();
        };
        let before: Vec<_> = rows.values().cloned().collect();
        let mut after = rows.clone();
        after.retain(|key, _| !own(key));
        for row in told {
            after.insert(Arc::clone(&row.key), Arc::new(row));
        }
        let after = Rows::Keyed(after);
        let changes = difference(&before, &after, &self.leave());
        self.rows = Some(after);
        changes
    }

    /// The sort node says how the window changes; returns the changes that are shown.
    pub(super) fn window(&mut self, steps: Vec<WindowChange>, renewed: bool) -> Vec<Change> {
        if renewed {
            self.renewing = false;
        }
        match (&mut self.ahead, &mut self.rows) {
            (Some(ahead), _) => {
                for step in steps {
                    ahead.step(step);
                }
                Vec::new()
            }
            (None, Some(rows)) => steps
                .into_iter()
                .filter_map(|step| rows.step(step))
                .collect(),
            (None, None) => Vec::new(),
        }
    }

    /// The sort node has handled whatever `snapshot` sees: a window that ran ahead is shown if
    /// that is all that was shown before.
    pub(super) fn caught_up(&mut self, snapshot: &Snapshot) -> Vec<Change> {
        if !snapshot.covers(&self.snapshot) || !self.active.contains(&Source::Sort) {
            return Vec::new();
        }
        let (Some(ahead), Some(rows)) = (self.ahead.take(), self.rows.as_ref()) else {
            return Vec::new();
        };
        let changes = difference(&rows.list(), &ahead, &self.leave());
        self.rows = Some(ahead);
        changes
    }

    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(super) fn renew(&mut self) {
        self.renewing = true;
    }

    pub(super) fn forget(&mut self, now_us: u64) {
        self.gone
            .retain(|_, (.., since)| now_us.saturating_sub(*since) < GONE_US);
    }

    /// What a row's absence means, for those whose changes are put together.
    pub(super) fn with_leave<T>(&self, then: impl FnOnce(&Leave<'_>, &Rows) -> T) -> Option<T> {
        let leave = self.leave();
        self.rows.as_ref().map(|rows| then(&leave, rows))
    }
}
