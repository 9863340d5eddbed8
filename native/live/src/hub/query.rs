//! One query with subscribers in this hub: its result, and changes that are not yet part of it.

mod registration;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::message::{
    AfterImage, ImageContent, NotificationSource, QueryDefinition, RemovalReason, ResultRow,
    StreamId, WindowChange,
};
use crate::partition::write_partition;
use crate::snapshot::PgSnapshot;

use super::answers::RegistrationAnswers;
use super::change::{Leave, ResultChange, ResultRows, difference};
use super::positions::EntryPosition;
use super::queue::{ChangeQueue, HeldBack, QueuedItem, QueuedWrite};
use super::registration_retry::RegistrationRetry;
use super::sources::NotificationLog;
use super::trace::QueryTrace;
use super::unevaluated::UnevaluatedCounts;
use super::window::SortWindow;

pub(super) use registration::RegistrationProgress;

/// How long removed keys are remembered.
const GONE_US: u64 = 60_000_000;

/// See the module.
#[derive(Debug)]
pub(super) struct HubQuery {
    pub(super) definition: Arc<QueryDefinition>,
    pub(super) partition: u16,
    pub(super) clients: BTreeSet<u64>,
    /// `None` until it is registered.
    pub(super) rows: Option<ResultRows>,
    pub(super) registration: RegistrationProgress,
    /// The number of this query in the hub, and how often its rows were requested.
    asked: (u64, u64),
    held_back: HeldBack,
    pub(super) activation: u64,
    /// What the rows of the registration have seen; the default if the log can no longer repeat any
    /// of it.
    pub(super) snapshot: PgSnapshot,
    /// When evicted bodies were last read again.
    refreshed_us: u64,
    /// When the whole result was last sent to a client.
    pub(super) given_us: u64,
    /// Since when it is live.
    pub(super) live_us: Option<u64>,
    /// A batch could not be completed: subscribers restart with the next rows.
    torn: bool,
    /// Until when the previous grid's proof counts.
    proven_until_us: u64,
    /// A write was made under access rules other than these: nothing more is shown.
    pub(super) outdated: bool,
    /// All its filter nodes and, if it is sorted, its sort node.
    pub(super) sources: Vec<NotificationSource>,
    /// Which of them continue from its rows.
    answers: RegistrationAnswers,
    /// The state shared with its sort node.
    window: SortWindow,
    registration_retry: RegistrationRetry,
    parts: HashMap<NotificationSource, Vec<ResultRow>>,
    removals: HashMap<Arc<[u8]>, (u64, RemovalReason, u64)>,
    queue: ChangeQueue,
    pub(super) trace: QueryTrace,
    pub(super) unevaluated: UnevaluatedCounts,
}

impl HubQuery {
    pub(super) fn new(
        definition: Arc<QueryDefinition>,
        partition: u16,
        write_partitions: u16,
        number: u64,
        trace_bytes: usize,
    ) -> Self {
        Self {
            sources: sources(&definition, write_partitions),
            definition,
            partition,
            clients: BTreeSet::new(),
            rows: None,
            registration: RegistrationProgress::UnderWay,
            asked: (number, 0),
            held_back: HeldBack::default(),
            refreshed_us: 0,
            given_us: 0,
            activation: 0,
            snapshot: PgSnapshot::default(),
            live_us: None,
            torn: false,
            proven_until_us: 0,
            outdated: false,
            answers: RegistrationAnswers::default(),
            window: SortWindow::default(),
            registration_retry: RegistrationRetry::default(),
            parts: HashMap::new(),
            removals: HashMap::new(),
            queue: ChangeQueue::default(),
            trace: QueryTrace::new(trace_bytes),
            unevaluated: UnevaluatedCounts::default(),
        }
    }

    /// Moves to the nodes of another grid. The rows stay until those of the registration arrive.
    /// What `log`, the log of the previous nodes, has proved counts for as long as it would have
    /// otherwise.
    pub(super) fn moved(&mut self, to: (u16, u16), log: Option<&NotificationLog>, now_us: u64) {
        if let Some(log) = log.filter(|log| self.is_live(log, now_us)) {
            self.proven_until_us = log.live_until_us(&self.sources);
        }
        let (partition, write_partitions) = to;
        self.sources = sources(&self.definition, write_partitions);
        self.partition = partition;
        self.registration = RegistrationProgress::UnderWay;
        self.asked.1 += 1;
        self.held_back.take();
        self.activation = 0;
        self.snapshot = PgSnapshot::default();
        self.live_us = None;
        self.answers = RegistrationAnswers::default();
        self.window = SortWindow::default();
        self.parts.clear();
        self.queue.clear();
    }

    /// Whether every node concerned watches it.
    pub(super) fn is_ready(&self) -> bool {
        let mut sources = self.sources.iter();
        self.rows.is_some()
            && sources.all(|source| self.answers.has(*source))
            && !self.queue.has_state()
            && (!self.definition.sorted || (self.window.is_shown() && self.is_complete()))
    }

    /// Its nodes, and whether each watches it.
    pub(super) fn answered(&self) -> impl Iterator<Item = (NotificationSource, bool)> {
        let sources = self.sources.iter();
        sources.map(|source| (*source, self.answers.has(*source)))
    }

    pub(super) fn is_renewing(&self) -> bool {
        self.window.is_renewing()
    }

    /// The version with which a shown document was removed, and why.
    pub(super) fn removal_of(&self, key: &[u8]) -> Option<(u64, RemovalReason)> {
        let removal = self.removals.get(key);
        removal.map(|(version, reason, _)| (*version, *reason))
    }

    /// Whether a write waits for the other parts of its batch.
    pub(super) fn waits_for(&self, key: &[u8], version: u64) -> bool {
        self.queue.has(key, version)
    }

    /// Whether the sort node has heard from all filter nodes that they watch.
    fn is_complete(&self) -> bool {
        let mut filters = self
            .sources
            .iter()
            .filter(|one| **one != NotificationSource::Sort);
        filters.all(|source| self.window.has_seen(*source))
    }

    pub(super) fn is_live(&self, log: &NotificationLog, now_us: u64) -> bool {
        self.is_ready()
            && !self.outdated
            && !self.may_lack_something()
            && !self.window.is_renewing()
            && self.has_live_nodes(log, now_us)
    }

    /// Whether what the grid before this one proved still counts, while this one takes over.
    pub(super) fn is_proven(&self, now_us: u64) -> bool {
        now_us < self.proven_until_us && !self.outdated && !self.window.is_renewing()
    }

    /// Nothing that was proved counts any longer.
    pub(super) fn stands_still(&mut self) {
        self.live_us = None;
        self.proven_until_us = 0;
    }

    fn has_live_nodes(&self, log: &NotificationLog, now_us: u64) -> bool {
        let mut sources = self.sources.iter();
        sources.all(|source| log.is_live(*source, now_us))
    }

    /// Whether its nodes are present and have not watched it for too long.
    pub(super) fn is_overdue(&mut self, log: &NotificationLog, now_us: u64) -> bool {
        let due =
            self.registration == RegistrationProgress::Done && self.has_live_nodes(log, now_us);
        self.registration_retry.is_due(self.is_ready(), due, now_us)
    }

    /// The position in the log up to which everything has been shown.
    pub(super) fn shown_up_to(&self, log: &NotificationLog) -> StreamId {
        self.queue.front().unwrap_or(log.position)
    }

    /// The position from which a client that has received everything can resume. Zero if there is
    /// none. It precedes what the log alone cannot explain, so that a client that returns in the
    /// middle of that is reset.
    pub(super) fn resume_from(&self, log: &NotificationLog) -> StreamId {
        let unseen = self.definition.sorted && !self.window.is_shown();
        if unseen || self.may_lack_something() {
            return StreamId::default();
        }
        let shown = self.shown_up_to(log);
        let places = [log.repeats_since(), self.window.renewing_since()];
        places.into_iter().flatten().fold(shown, StreamId::min)
    }

    /// Why a shown row was removed.
    pub(super) fn leave(&self) -> impl Fn(&ResultRow) -> (u64, RemovalReason) + use<'_> {
        |row| {
            self.removals
                .get(&row.key)
                .filter(|(version, ..)| *version >= row.version)
                .map_or(
                    (row.document_version(), RemovalReason::Left),
                    |(version, reason, _)| (*version, *reason),
                )
        }
    }

    /// Whether changes written under access rules up to this version may be shown. If not, nothing
    /// more is shown, because newer rules are in force.
    pub(super) fn may_show(&mut self, rules_version: u64) -> bool {
        let rules = self.definition.rules_version;
        self.outdated |= rules != 0 && rules_version > rules;
        !self.outdated
    }

    /// A write enters, stays in or leaves an unsorted result.
    pub(super) fn image(
        &mut self,
        image: &AfterImage,
        removed: bool,
        place: (EntryPosition, NotificationSource),
    ) {
        if !self.may_show(image.rules_version) {
            return;
        }
        if self.snapshot.sees(image.xid) {
            return;
        }
        let step = match &image.content {
            ImageContent::Superseded => return,
            ImageContent::Deleted(_) => QueuedWrite::Take(
                Arc::clone(&image.key),
                image.version,
                RemovalReason::Deleted,
            ),
            ImageContent::Document(_) if removed => {
                QueuedWrite::Take(Arc::clone(&image.key), image.version, RemovalReason::Left)
            }
            ImageContent::Document(body) => QueuedWrite::Put(ResultRow {
                key: Arc::clone(&image.key),
                version: image.version,
                created_ms: image.created_ms,
                updated_ms: image.written_us.div_euclid(1000),
                body: Arc::clone(body),
            }),
        };
        self.queue.write((image.xid, &image.parts), step, place);
    }

    /// Whether more is queued than allowed.
    pub(super) fn is_flooded(&self) -> bool {
        self.queue.is_flooded()
    }

    pub(super) fn has_waiting(&self) -> bool {
        self.queue.len() > 0
    }

    /// Applies complete changes in order; returns those that belong together. Nothing is applied
    /// while entries may be missing: what was received may be a part of a batch whose rest was
    /// lost, and the rows that replace it would undo what was shown of a batch in the meantime.
    pub(super) fn settle(&mut self, log: &NotificationLog, now_us: u64) -> Vec<ResultChange> {
        let mut changes = Vec::new();
        if self.outdated || self.may_lack_something() {
            return changes;
        }
        let nodes = (&*self.sources, &self.answers);
        let items = self.queue.ready(log, nodes);
        for item in items {
            match item {
                QueuedItem::Writes { steps, .. } => {
                    let steps = steps.into_iter();
                    changes.extend(steps.filter_map(|step| self.apply(step, now_us)));
                }
                QueuedItem::State {
                    partition, rows, ..
                } => changes.extend(self.replace_partition(partition, rows)),
            }
        }
        changes
    }

    /// Whether a batch was not completed in time and must be read.
    pub(super) fn is_late(&self, now_us: u64) -> bool {
        !self.outdated && !self.may_lack_something() && self.queue.is_late(now_us, self.live_us)
    }

    /// Records that a batch was not completed.
    pub(super) fn tear(&mut self) {
        self.torn = true;
    }

    /// Whether a batch was not completed before the current rows arrived.
    pub(super) fn was_torn(&mut self) -> bool {
        std::mem::take(&mut self.torn)
    }

    fn apply(&mut self, step: QueuedWrite, now_us: u64) -> Option<ResultChange> {
        let rows = self.rows.as_mut()?;
        let (key, version) = match &step {
            QueuedWrite::Put(row) => (&row.key, row.version),
            QueuedWrite::Take(key, version, _) => (key, *version),
        };
        let held = rows.get(key).map(|row| row.version);
        let removed = self.removals.get(key).map(|(version, ..)| *version);
        if held.is_some_and(|held| held >= version)
            || removed.is_some_and(|removed| removed >= version)
        {
            return None;
        }
        match step {
            QueuedWrite::Put(row) => {
                self.removals.remove(&row.key);
                rows.put(row)
            }
            QueuedWrite::Take(key, version, reason) => {
                self.removals
                    .insert(Arc::clone(&key), (version, reason, now_us));
                rows.take(&key, version, reason)
            }
        }
    }

    /// A filter node reported its members: they replace those of its partition. Rows that are newer
    /// here, or are known to have been removed since, stay as they are.
    fn replace_partition(&mut self, partition: u16, reported: Vec<ResultRow>) -> Vec<ResultChange> {
        let filters = self
            .sources
            .iter()
            .filter(|one| **one != NotificationSource::Sort);
        let partitions = u16::try_from(filters.count()).unwrap_or(u16::MAX);
        let Some(rows) = &self.rows else {
            return Vec::new();
        };
        let known = |row: &ResultRow| {
            let removal = self.removals.get(&row.key);
            removal.is_none_or(|(version, ..)| *version < row.version)
        };
        let reported = reported.into_iter().filter(known).map(|row| {
            let newer = rows.get(&row.key).filter(|held| held.version > row.version);
            newer.cloned().unwrap_or_else(|| Arc::new(row))
        });
        let goes = |key: &[u8]| write_partition(key, partitions) == partition;
        rows.with(goes, reported)
            .map_or_else(Vec::new, |after| self.replace(after))
    }

    /// Shows another result; returns the difference.
    fn replace(&mut self, after: ResultRows) -> Vec<ResultChange> {
        let before = self.rows.replace(after);
        before.map_or_else(Vec::new, |before| self.difference(&before.list().rows))
    }

    /// The changes since the result `before`.
    pub(super) fn difference(&self, before: &[Arc<ResultRow>]) -> Vec<ResultChange> {
        let rows = self.rows.as_ref();
        rows.map_or_else(Vec::new, |rows| difference(before, rows, &self.leave()))
    }

    /// The request that registered it last.
    pub(super) const fn request(&self) -> StreamId {
        self.answers.request()
    }

    /// A node that started and reports so at these positions watches the query, for all requests up
    /// to this one.
    pub(super) fn activated(
        &mut self,
        source: NotificationSource,
        (activation, request): (u64, StreamId),
        places: (StreamId, StreamId),
    ) {
        if activation == self.activation {
            self.answers.answered(source, request, places);
        }
    }

    /// A new holder has started: nothing of it counts until it reports that it watches the query.
    pub(super) fn restarted(&mut self, source: NotificationSource, at: StreamId) {
        self.answers.restarted(source, at);
        self.window.restarted(source);
    }

    /// Applies a node's whole state, or a part of it; returns the immediate changes.
    pub(super) fn state(
        &mut self,
        (place, source): (EntryPosition, NotificationSource),
        rows: &[ResultRow],
        part: u32,
        last: Option<&PgSnapshot>,
    ) -> Vec<ResultChange> {
        let parts = self.parts.entry(source).or_default();
        if part == 0 {
            parts.clear();
        }
        parts.extend_from_slice(rows);
        let Some(snapshot) = last else {
            return Vec::new();
        };
        let rows = self.parts.remove(&source).unwrap_or_default();
        match source {
            NotificationSource::Sort => {
                let window_rows = ResultRows::new(rows, Some((0, None)));
                let window_rows = self.window.replace_window(window_rows);
                window_rows.map_or_else(Vec::new, |window_rows| self.replace(window_rows))
            }
            NotificationSource::Filter(_)
                if self.definition.sorted || self.snapshot.covers(snapshot) =>
            {
                Vec::new()
            }
            NotificationSource::Filter(partition) => {
                self.answers.record_state(source, snapshot, place.at);
                let snapshot = snapshot.clone();
                let item = QueuedItem::State {
                    partition,
                    rows,
                    snapshot,
                };
                self.queue.push(item, place);
                Vec::new()
            }
        }
    }

    /// Applies steps of the sort node to the window; returns the changes that are shown.
    pub(super) fn step(&mut self, steps: &[WindowChange], renewal: bool) -> Vec<ResultChange> {
        if renewal {
            self.window.renewed();
        }
        let Some(rows) = self.rows.as_mut().filter(|_| !self.outdated) else {
            return Vec::new();
        };
        let shown = self.window.step(steps).iter();
        shown.filter_map(|step| rows.step(step.clone())).collect()
    }

    /// A filter node's tick.
    pub(super) fn filter_ticked(&mut self, source: NotificationSource, time_us: u64) {
        if self.answers.has(source) {
            self.window.filter_ticked(source, time_us);
        }
    }

    /// Handles the sort node's tick: a window that was followed in the background is shown once it
    /// contains whatever was shown before. While new rows are on their way to the sort node, ticks
    /// prove more than its window contains.
    pub(super) fn sort_ticked(&mut self, snapshot: &PgSnapshot, time_us: u64) -> Vec<ResultChange> {
        self.window.sort_ticked(time_us);
        if !self.is_complete()
            || !snapshot.covers(&self.snapshot)
            || !self.answers.has(NotificationSource::Sort)
            || self.window.is_renewing()
            || self.may_lack_something()
            || self.outdated
        {
            return Vec::new();
        }
        let Some(ahead) = self.window.show() else {
            return Vec::new();
        };
        self.replace(ahead)
    }

    pub(super) fn renew(&mut self, before: StreamId) {
        self.window.renew(before);
    }

    /// Whether a client can resume from the log: no later entry repeats what the registration
    /// already contains.
    pub(super) fn is_past_registration(&self) -> bool {
        self.snapshot == PgSnapshot::default() && self.queue.len() == 0
    }

    /// Forgets old state: removed keys, and the snapshot that all nodes have passed. Positions from
    /// which clients resume must follow whatever it sees, so nothing may be pending then.
    pub(super) fn forget(&mut self, log: &NotificationLog, now_us: u64) {
        self.removals
            .retain(|_, (.., since)| now_us.saturating_sub(*since) < GONE_US);
        let mut sources = self.sources.iter();
        if self.registration == RegistrationProgress::Done
            && self.is_ready()
            && self.queue.len() == 0
            && sources.all(|source| log.has_reached(*source, &self.snapshot))
        {
            self.snapshot = PgSnapshot::default();
        }
    }

    /// What a row's absence means, for clients whose changes are coalesced.
    pub(super) fn with_leave<T>(
        &self,
        then: impl FnOnce(&Leave<'_>, &ResultRows) -> T,
    ) -> Option<T> {
        let leave = self.leave();
        self.rows.as_ref().map(|rows| then(&leave, rows))
    }
}

/// All filter nodes, and the sort node of a sorted query.
fn sources(definition: &QueryDefinition, write_partitions: u16) -> Vec<NotificationSource> {
    let filters = (0..write_partitions).map(NotificationSource::Filter);
    let sort = definition.sorted.then_some(NotificationSource::Sort);
    filters.chain(sort).collect()
}
