//! One query with subscribers in this hub: its result, and changes that are not yet part of it.

mod applying;
mod registration;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::message::{NotificationSource, QueryDefinition, RemovalReason, ResultRow, StreamId};
use crate::snapshot::PgSnapshot;

use super::answers::RegistrationAnswers;
use super::change::{Leave, ResultRows};
use super::queue::{ChangeQueue, DeferredEntries};
use super::registration_retry::RegistrationRetry;
use super::sources::NotificationLog;
use super::trace::QueryTrace;
use super::unevaluated::UnevaluatedCounts;
use super::window::SortWindow;

pub(super) use registration::RegistrationProgress;

/// How long removed keys are remembered.
const REMOVAL_MEMORY_US: u64 = 60_000_000;

/// What several decisions about a query need to know of its nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct NodesState {
    /// Every node concerned watches the query.
    watch: bool,
    /// All of them have ticked recently.
    are_present: bool,
}

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
    registration_ids: (u64, u64),
    deferred: DeferredEntries,
    pub(super) activation: u64,
    /// What the rows of the registration have seen; the default if the log can no longer repeat any
    /// of it.
    pub(super) snapshot: PgSnapshot,
    /// When evicted bodies were last read again.
    last_refreshed_us: u64,
    /// When the whole result was last sent to a client.
    pub(super) last_sent_us: u64,
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
            registration: RegistrationProgress::InProgress,
            registration_ids: (number, 0),
            deferred: DeferredEntries::default(),
            last_refreshed_us: 0,
            last_sent_us: 0,
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
        self.registration = RegistrationProgress::InProgress;
        self.registration_ids.1 += 1;
        self.deferred.take();
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
        self.is_live_with(self.nodes(log, now_us))
    }

    /// The same, for nodes in this state.
    pub(super) fn is_live_with(&self, nodes: NodesState) -> bool {
        nodes.watch
            && nodes.are_present
            && !self.outdated
            && !self.may_have_gaps()
            && !self.window.is_renewing()
    }

    /// Whether what the grid before this one proved still counts, while this one takes over.
    pub(super) fn is_proven(&self, now_us: u64) -> bool {
        now_us < self.proven_until_us && !self.outdated && !self.window.is_renewing()
    }

    /// Nothing that was proved counts any longer.
    pub(super) fn mark_stale(&mut self) {
        self.live_us = None;
        self.proven_until_us = 0;
    }

    /// The state of its nodes. Finding out takes most of the time that liveness takes.
    pub(super) fn nodes(&self, log: &NotificationLog, now_us: u64) -> NodesState {
        let mut sources = self.sources.iter();
        NodesState {
            watch: self.is_ready(),
            are_present: sources.all(|source| log.is_live(*source, now_us)),
        }
    }

    /// Whether its nodes are present and have not watched it for too long.
    pub(super) fn is_overdue(&mut self, nodes: NodesState, now_us: u64) -> bool {
        let due = self.registration == RegistrationProgress::Done && nodes.are_present;
        self.registration_retry.is_due(nodes.watch, due, now_us)
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
        if unseen || self.may_have_gaps() {
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
    pub(super) fn forget(&mut self, log: &NotificationLog, nodes: NodesState, now_us: u64) {
        self.removals
            .retain(|_, (.., since)| now_us.saturating_sub(*since) < REMOVAL_MEMORY_US);
        let mut sources = self.sources.iter();
        if self.snapshot != PgSnapshot::default()
            && self.registration == RegistrationProgress::Done
            && nodes.watch
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
