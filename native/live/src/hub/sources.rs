//! What the writers of a notification log have reported.

use std::collections::{BTreeMap, HashMap};

use crate::message::{FencingToken, Incarnation, NotificationSource, StreamId, StreamTick};
use crate::snapshot::PgSnapshot;

use super::answers::RegistrationAnswers;
use super::positions::{Ends, EntryPosition, ReportedPositions};

/// A source counts as stale after this long without a tick.
const STALE_US: u64 = 2_000_000;
/// How long the ends of batches are remembered.
const DONE_US: u64 = 10_000_000;

/// Whether a message can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SequenceCheck {
    /// It is the next one.
    Next,
    /// It comes from a holder that has been replaced.
    Superseded,
    /// Earlier messages were lost.
    Gap,
}

/// Checks the message counts of each source.
#[derive(Debug, Default)]
pub(super) struct SourceCounts(BTreeMap<NotificationSource, (FencingToken, u64)>);

impl SourceCounts {
    pub(super) fn check_sequence(
        &mut self,
        source: NotificationSource,
        token: FencingToken,
        count: u64,
    ) -> SequenceCheck {
        let Some((known, last)) = self.0.get_mut(&source) else {
            self.0.insert(source, (token, count));
            return SequenceCheck::Next;
        };
        if token < *known {
            return SequenceCheck::Superseded;
        }
        let expected = if token > *known { 1 } else { *last + 1 };
        (*known, *last) = (token, count);
        if count == expected {
            SequenceCheck::Next
        } else {
            SequenceCheck::Gap
        }
    }
}

#[derive(Debug, Default)]
struct SourceState {
    /// The position at which its holder started.
    began: StreamId,
    tick_us: u64,
    /// What it has handled, by its last tick or as a new holder.
    reached: PgSnapshot,
    /// The position of that report.
    reached_at: StreamId,
    /// Whether it has read that, or started with it.
    has_read: bool,
    /// The incarnation that its last tick named; `None` since it reported everything.
    incarnation: Option<Incarnation>,
    /// A new holder has started and has not reported everything yet.
    rebuilding: bool,
    /// The position before its start, until it has caught up with the previous holder: its reports
    /// until then may be repetitions.
    repeats_since: Option<StreamId>,
    /// When it had reported everything, by Valkey's time.
    rebuilt_us: u64,
}

/// One notification log.
#[derive(Debug, Default)]
pub(super) struct NotificationLog {
    counts: SourceCounts,
    sources: BTreeMap<NotificationSource, SourceState>,
    /// The last entry that was handled.
    pub(super) position: StreamId,
    pub(super) incarnation: Incarnation,
    /// By transaction: since when, and by partition the last position at which its node reported
    /// that it is done.
    done: HashMap<u64, (u64, HashMap<u16, StreamId>)>,
}

impl NotificationLog {
    pub(super) fn check_sequence(
        &mut self,
        source: NotificationSource,
        token: FencingToken,
        count: u64,
    ) -> SequenceCheck {
        self.counts.check_sequence(source, token, count)
    }

    pub(super) fn start(&mut self, source: NotificationSource, place: EntryPosition) {
        let state = self.sources.entry(source).or_default();
        state.began = place.at;
        state.rebuilding = true;
        state.repeats_since.get_or_insert(place.before);
    }

    /// The position at which the current holder of a source started, if that was read.
    pub(super) fn began(&self, source: NotificationSource) -> StreamId {
        let state = self.sources.get(&source);
        state.map_or_else(StreamId::default, |state| state.began)
    }

    pub(super) fn rebuilt(
        &mut self,
        source: NotificationSource,
        snapshot: &PgSnapshot,
        at: StreamId,
    ) {
        let state = self.sources.entry(source).or_default();
        state.rebuilding = false;
        state.rebuilt_us = at.ms.saturating_mul(1000);
        state.reached = snapshot.clone();
        state.reached_at = at;
        state.has_read = false;
        state.incarnation = None;
    }

    /// Takes a tick; returns whether another incarnation has started since the previous one.
    pub(super) fn tick(
        &mut self,
        source: NotificationSource,
        tick: &StreamTick,
        at: StreamId,
    ) -> bool {
        let state = self.sources.entry(source).or_default();
        state.tick_us = tick.time_us;
        // A node's first ticks may be older than the state with which it started.
        let incarnation = state.incarnation.replace(tick.incarnation);
        let same = incarnation.is_none_or(|incarnation| incarnation == tick.incarnation);
        if !same || tick.snapshot.covers(&state.reached) {
            state.reached = tick.snapshot.clone();
            state.reached_at = at;
            state.has_read = true;
        }
        // A source that ticks has reported everything, even if the message that said so was lost.
        state.rebuilding = false;
        if tick.time_us >= state.rebuilt_us {
            state.repeats_since = None;
        }
        let before = std::mem::replace(&mut self.incarnation, tick.incarnation);
        before != tick.incarnation && before != Incarnation::default()
    }

    /// Whether a source has recently reported everything up to a recent time.
    pub(super) fn is_live(&self, source: NotificationSource, now_us: u64) -> bool {
        self.sources.get(&source).is_some_and(|state| {
            !state.rebuilding && now_us.saturating_sub(state.tick_us) < STALE_US
        })
    }

    /// Until when these sources count as live if no further tick arrives.
    pub(super) fn live_until_us(&self, sources: &[NotificationSource]) -> u64 {
        self.oldest_tick_us(sources).saturating_add(STALE_US)
    }

    /// Whether a source has handled whatever `snapshot` sees.
    pub(super) fn has_reached(&self, source: NotificationSource, snapshot: &PgSnapshot) -> bool {
        let state = self.sources.get(&source);
        state.is_some_and(|state| state.reached.covers(snapshot))
    }

    /// The same, if the source has reported it for a query.
    pub(super) fn has_reported(
        &self,
        source: NotificationSource,
        snapshot: &PgSnapshot,
        answers: &RegistrationAnswers,
    ) -> bool {
        let mut states = self.reported_state(source, answers);
        states.any(|(seen, _)| seen.covers(snapshot))
    }

    /// The snapshot that a source has reported to a query in full, and the position of the report.
    fn reported_state<'l>(
        &'l self,
        source: NotificationSource,
        answers: &'l RegistrationAnswers,
    ) -> impl Iterator<Item = (&'l PgSnapshot, StreamId)> {
        let reached = self.sources.get(&source).and_then(|state| {
            let at = answers.position_of(source, state.reached_at, state.has_read)?;
            Some((&state.reached, at))
        });
        reached.into_iter().chain(answers.state_of(source))
    }

    /// The position before the first entry that may be a repetition, if there is one.
    pub(super) fn repeats_since(&self) -> Option<StreamId> {
        let states = self.sources.values();
        states.filter_map(|state| state.repeats_since).min()
    }

    pub(super) fn done(&mut self, xid: u64, partition: u16, place: EntryPosition) {
        let (_, parts) = self
            .done
            .entry(xid)
            .or_insert_with(|| (place.now_us, HashMap::new()));
        parts.insert(partition, place.at);
    }

    fn done_at(
        &self,
        xid: u64,
        part: u16,
        reported: (&ReportedPositions, &RegistrationAnswers),
    ) -> Option<StreamId> {
        let at = *self.done.get(&xid)?.1.get(&part)?;
        let (reported_at, answers) = reported;
        let said_at = answers.position_of(NotificationSource::Filter(part), at, true)?;
        reported_at.is_over(part, at).then_some(said_at)
    }

    /// The positions at which each partition, after its reports of a batch, said that it handled
    /// its part; `None` if one has not.
    pub(super) fn handled_positions(
        &self,
        xid: u64,
        parts: &[u16],
        reported: (&ReportedPositions, &RegistrationAnswers),
    ) -> Option<Ends> {
        let ends = parts.iter().map(|&part| {
            let at = self.done_at(xid, part, reported)?;
            Some((part, at))
        });
        ends.collect()
    }

    /// The same, where what a node has reached otherwise also counts.
    pub(super) fn past(
        &self,
        xid: u64,
        parts: &[u16],
        states: (&ReportedPositions, &RegistrationAnswers),
    ) -> Option<Ends> {
        let (reported_at, answers) = states;
        let ends = parts.iter().map(|&part| {
            let reached = || {
                let mut states = self.reported_state(NotificationSource::Filter(part), answers);
                let over =
                    states.find(|(seen, at)| reported_at.is_over(part, *at) && seen.sees(xid));
                over.map(|(_, at)| at)
            };
            let at = self.done_at(xid, part, states).or_else(reached)?;
            Some((part, at))
        });
        ends.collect()
    }

    /// Forgets old entries.
    pub(super) fn forget(&mut self, now_us: u64) {
        self.done
            .retain(|_, (since, _)| now_us.saturating_sub(*since) < DONE_US);
    }

    /// How far behind the slowest of these sources is, in microseconds.
    pub(super) fn lag_us(&self, sources: &[NotificationSource], now_us: u64) -> u64 {
        now_us.saturating_sub(self.oldest_tick_us(sources))
    }

    fn oldest_tick_us(&self, sources: &[NotificationSource]) -> u64 {
        let ticks = sources
            .iter()
            .map(|source| self.sources.get(source).map_or(0, |state| state.tick_us));
        ticks.min().unwrap_or(0)
    }
}
