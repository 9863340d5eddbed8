//! One subscription: what has been sent to it, and how further changes are sent.

use std::sync::Arc;

use rillbase_query::ejson::Form;
use rillbase_query::projection::Projection;

use crate::message::{QueryHash, StreamId};

use super::change::{Leave, ResultChange, ResultList, ResultRows};
use super::coalesced_changes::CoalescedChanges;
use super::frames::{self, EventPart};
use super::outbox::{ClientOutbox, OutboxBounds};
use super::sizes::row_bytes;
use super::token::ResumeToken;
use super::trace::{ClientTrace, DeliveryMode};

/// A larger group is sent as a new result.
const MAX_GROUP_EVENTS: usize = 500;

/// How a subscriber wants to be notified.
#[derive(Debug, Clone, Default)]
pub struct ClientOptions {
    /// Whole results instead of events.
    pub whole_results: bool,
    /// At most one group in this many microseconds.
    pub throttle_us: u64,
    /// Kinds of change that are not sent, in the order of `add`, `change`, `changeIndex`, `remove`.
    pub muted: [bool; 4],
    /// The form in which documents are written.
    pub form: Form,
}

/// A group of changes, and the position in the log after it.
pub(super) type MissedChanges = (Vec<ResultChange>, StreamId);

fn bytes_of_missed((changes, _): &MissedChanges) -> usize {
    let row = |change: &ResultChange| match change {
        ResultChange::Add { row, .. }
        | ResultChange::Stay { row, .. }
        | ResultChange::Move { row, .. }
        | ResultChange::Remove { row, .. } => row_bytes(row),
    };
    changes.iter().map(row).sum()
}

/// The phase of a subscription.
#[derive(Debug)]
pub(super) enum ClientPhase {
    /// It has no result yet.
    Waiting,
    /// It resumes with a token, and waits for its query to be ready.
    Resuming(ResumeToken),
    /// The changes that it missed are being read; newer ones wait. `None` if there were too many.
    Replaying(ResumeToken, Option<Vec<MissedChanges>>),
    /// It has the hub's result, or the frames on their way lead to it.
    Running,
    /// It did not read while memory was short: nothing is kept for it until it has read what was
    /// sent.
    CutOff,
}

/// An update of a query, for its subscribers.
pub(super) struct QueryUpdate<'n> {
    /// The changes, which have been applied to `rows`.
    pub(super) group: &'n [ResultChange],
    /// Bodies of their events, rendered once for all subscribers that see whole documents in the
    /// same form.
    pub(super) bodies: &'n [Arc<str>],
    /// The current result.
    pub(super) rows: &'n ResultRows,
}

/// Creates the token for a position after this many events.
pub(super) type Seal<'s> = dyn Fn(u64) -> String + 's;

/// A subscription. See the module.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and all combinations occur"
)]
pub(super) struct HubClient {
    pub(super) name: String,
    pub(super) query: QueryHash,
    pub(super) holder: [u8; 16],
    /// The connection that carries it.
    pub(super) connection: u64,
    /// The client does not read from that connection.
    pub(super) stuck: bool,
    pub(super) phase: ClientPhase,
    /// It was notified that its query is ready.
    pub(super) ready: bool,
    /// It was last notified that its query is live.
    pub(super) live: bool,
    pub(super) seq: u64,
    pub(super) events: u64,
    pub(super) over: bool,
    /// Documents omitted from results that it has not been notified of.
    pub(super) unevaluated: u32,
    /// It is in the hub's list of clients with frames to hand out.
    pub(super) listed: bool,
    pub(super) outbox: ClientOutbox,
    projection: Option<Arc<Projection>>,
    options: ClientOptions,
    bounds: OutboxBounds,
    groups: u64,
    /// Set while changes are coalesced.
    coalesced: Option<CoalescedChanges>,
    dirty: bool,
    due_us: u64,
    /// When it last read something.
    pub(super) last_read_us: u64,
    pub(super) trace: ClientTrace,
}

impl HubClient {
    pub(super) fn new(
        name: String,
        query: QueryHash,
        holder: [u8; 16],
        projection: Option<Arc<Projection>>,
        options: ClientOptions,
        bounds: OutboxBounds,
        trace_bytes: usize,
    ) -> Self {
        Self {
            name,
            query,
            holder,
            connection: 0,
            stuck: false,
            phase: ClientPhase::Waiting,
            ready: false,
            live: true,
            seq: 0,
            events: 0,
            over: false,
            unevaluated: 0,
            listed: false,
            outbox: ClientOutbox::default(),
            projection,
            options,
            bounds,
            groups: 0,
            coalesced: None,
            dirty: false,
            due_us: 0,
            last_read_us: 0,
            trace: ClientTrace::new(trace_bytes),
        }
    }

    /// Whether it waits for a result.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.phase, ClientPhase::Waiting)
    }

    /// The bytes that are kept for it alone.
    pub(super) fn bytes(&self) -> usize {
        let missed = match &self.phase {
            ClientPhase::Replaying(_, Some(missed)) => missed.iter().map(bytes_of_missed).sum(),
            _ => 0,
        };
        self.outbox.bytes() + self.coalesced.as_ref().map_or(0, CoalescedChanges::bytes) + missed
    }

    /// Earlier results that are kept for it.
    pub(super) fn listed(&self) -> impl Iterator<Item = &Arc<ResultList>> {
        let window = self.coalesced.as_ref().and_then(CoalescedChanges::listed);
        self.outbox.listed().chain(window)
    }

    /// Whether it will be sent rows of the current result, besides later changes.
    pub(super) fn needs_bodies(&self) -> bool {
        self.options.whole_results || self.is_waiting() || self.is_behind()
    }

    /// Drops its pending frames; returns whether there were any.
    pub(super) fn cut_off(&mut self, trace_time_us: u64) -> bool {
        if self.over || !matches!(self.phase, ClientPhase::Running) {
            return false;
        }
        self.trace.set_time(trace_time_us);
        self.record_restart("too_slow");
        self.outbox.clear();
        self.coalesced = None;
        self.dirty = false;
        self.ready = false;
        self.phase = ClientPhase::CutOff;
        true
    }

    /// Records what it has read; returns whether it restarts with a new result.
    pub(super) fn drained(&mut self, frames: usize, bytes: usize, now_us: u64) -> bool {
        self.last_read_us = now_us;
        self.outbox.drained(frames, bytes);
        let anew = matches!(self.phase, ClientPhase::CutOff) && self.outbox.is_drained();
        if anew {
            self.restart("too_slow");
        }
        anew
    }

    /// Announces a new result, and waits for it.
    fn restart(&mut self, reason: &'static str) {
        self.record_restart(reason);
        self.outbox.clear();
        self.seq = 0;
        self.coalesced = None;
        self.dirty = false;
        self.ready = false;
        self.phase = ClientPhase::Waiting;
        self.outbox.push(frames::reset(&self.name, reason));
    }

    /// Records that pending frames are dropped.
    fn record_restart(&mut self, reason: &'static str) {
        let (handed, _) = self.outbox.numbers();
        self.trace
            .record_delivery(DeliveryMode::Reset(reason), (1, 0), handed);
    }

    /// Whether changes wait until they are due or there is room.
    pub(super) fn is_behind(&self) -> bool {
        self.coalesced.is_some() || self.dirty
    }

    /// The form of its next group, if that is sent at once with shared bodies.
    pub(super) fn shared_form(&self) -> Option<Form> {
        let shares = !self.options.whole_results && self.coalesced.is_none();
        (self.projection.is_none() && shares).then_some(self.options.form)
    }

    /// Whether it is sent results instead of events.
    pub(super) fn takes_whole_results(&self) -> bool {
        self.options.whole_results
    }

    /// Sends the whole result, which replaces what the client has.
    pub(super) fn send_result(&mut self, rows: &ResultRows, seal: &Seal<'_>) {
        self.coalesced = None;
        self.dirty = false;
        self.outbox.push_result(rows.list(), seal(self.seq));
        let number = self.outbox.last_number();
        self.trace
            .record_delivery(DeliveryMode::Result, (1, 0), number);
    }

    /// Restarts: a result follows, and events are counted from 1 again.
    pub(super) fn reset(&mut self, reason: &'static str, rows: &ResultRows, seal: &Seal<'_>) {
        if rows.has_missing_bodies() {
            self.restart(reason);
            return;
        }
        self.record_restart(reason);
        self.outbox.clear();
        self.seq = 0;
        self.outbox.push(frames::reset(&self.name, reason));
        self.send_result(rows, seal);
        if self.ready {
            let live = self.live;
            self.emit_ready(seal);
            self.emit_liveness(live);
        }
    }

    /// Sends that matching is active. Liveness is sent again after that.
    pub(super) fn emit_ready(&mut self, seal: &Seal<'_>) {
        let token = seal(self.seq);
        self.outbox.push(frames::ready(&self.name, &token));
        self.ready = true;
        self.live = true;
    }

    /// Sends the liveness, if it has changed.
    pub(super) fn emit_liveness(&mut self, live: bool) -> bool {
        let changed = self.ready && self.live != live;
        if changed {
            self.live = live;
            self.outbox.push(frames::status(&self.name, live));
        }
        changed
    }

    /// Sends a group of changes, or records it to be coalesced.
    pub(super) fn deliver(&mut self, update: &QueryUpdate<'_>, now_us: u64, seal: &Seal<'_>) {
        if self.options.whole_results {
            self.dirty = true;
            self.trace.defer();
        } else if let Some(coalesced) = &mut self.coalesced {
            coalesced.record(update.group);
            self.dirty = true;
            self.trace.defer();
        } else {
            self.emit_group(update, seal);
            self.coalesce_if_full(update.rows, now_us);
        }
    }

    /// Coalesces changes from now on if the client is throttled or has no room.
    pub(super) fn coalesce_if_full(&mut self, rows: &ResultRows, now_us: u64) {
        let waits = self.options.throttle_us > 0 || self.stuck || self.outbox.is_full(self.bounds);
        if !self.options.whole_results && waits {
            self.coalesced = Some(CoalescedChanges::since(rows));
            self.due_us = now_us.saturating_add(self.options.throttle_us);
        }
    }

    /// Sends what has been coalesced, if it is due and there is room.
    pub(super) fn flush(
        &mut self,
        rows: &ResultRows,
        now_us: u64,
        leave: &Leave<'_>,
        seal: &Seal<'_>,
    ) {
        if now_us < self.due_us {
            return;
        }
        if self.options.whole_results {
            if self.dirty && self.outbox.waiting() == 0 {
                self.send_result(rows, seal);
                self.due_us = now_us.saturating_add(self.options.throttle_us);
            }
            return;
        }
        if self.stuck || !self.outbox.has_room(self.bounds) {
            return;
        }
        let Some(coalesced) = self.coalesced.take() else {
            return;
        };
        if !std::mem::take(&mut self.dirty) {
            return;
        }
        let update = QueryUpdate {
            group: &coalesced.diff_to(rows, leave),
            bodies: &[],
            rows,
        };
        self.emit_group(&update, seal);
        self.coalesce_if_full(rows, now_us);
    }

    /// Sends coalesced changes before they are due, so that a token may state that everything was
    /// sent. Returns false if there is no room for them yet.
    pub(super) fn catch_up(
        &mut self,
        rows: &ResultRows,
        now_us: u64,
        leave: &Leave<'_>,
        seal: &Seal<'_>,
    ) -> bool {
        if self.dirty {
            self.due_us = now_us;
            self.flush(rows, now_us, leave, seal);
        }
        !self.dirty
    }

    /// Sends the events of a group at once.
    pub(super) fn emit_group(&mut self, update: &QueryUpdate<'_>, seal: &Seal<'_>) {
        let visible: Vec<(usize, &ResultChange)> = update
            .group
            .iter()
            .enumerate()
            .filter(|(_, change)| self.wants(change))
            .collect();
        let count = visible.len();
        if count > MAX_GROUP_EVENTS {
            self.reset("too_many_changes", update.rows, seal);
            return;
        }
        if count > 1 {
            self.groups += 1;
        }
        let first = self.seq + 1;
        for (index, (at, change)) in visible.into_iter().enumerate() {
            let body = match (update.bodies.get(at), &self.projection) {
                (Some(body), None) => Arc::clone(body),
                _ => frames::event_body(change, self.projection.as_deref(), self.options.form),
            };
            self.seq += 1;
            self.events += 1;
            let part = (count > 1).then_some(EventPart {
                group: self.groups,
                index,
                count,
            });
            let token = (index + 1 == count).then(|| seal(self.seq));
            let frame = frames::event(&self.name, self.seq, &body, part, token.as_deref());
            self.outbox.push(frame);
        }
        // Coalesced changes may cancel out.
        let has_events = count > 0 || update.group.is_empty();
        let how = if has_events {
            DeliveryMode::Events
        } else {
            DeliveryMode::Muted
        };
        let number = self.outbox.last_number();
        self.trace.record_delivery(how, (first, self.seq), number);
    }

    fn wants(&self, change: &ResultChange) -> bool {
        let [add, changed, moved, remove] = self.options.muted;
        !match change {
            ResultChange::Add { .. } => add,
            ResultChange::Stay { .. } => changed,
            ResultChange::Move { .. } => moved,
            ResultChange::Remove { .. } => remove,
        }
    }

    /// Takes a frame to send, if there is one and the client has room.
    pub(super) fn next(&mut self, short: bool) -> Option<String> {
        let projection = self.projection.as_deref();
        self.outbox.next(
            &self.name,
            projection,
            self.options.form,
            self.bounds.in_flight,
            short,
        )
    }
}
