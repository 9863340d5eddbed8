//! What a notification log's writers are known to have said.

use std::collections::{HashMap, HashSet};

use crate::message::{Incarnation, Source, StreamId, Tick, Token};

/// After so long without a tick a source counts as behind.
const STALE_US: u64 = 2_000_000;
/// How long the ends of batches are remembered.
const DONE_US: u64 = 10_000_000;

/// Whether a message may be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// It is the next one.
    Next,
    /// It comes from a holder who has been outrun.
    Outrun,
    /// Some before it were lost.
    Hole,
}

#[derive(Debug, Default)]
struct SourceState {
    token: Token,
    count: u64,
    tick_us: u64,
    /// A new holder has begun and has not told everything yet.
    rebuilding: bool,
}

/// One notification log.
#[derive(Debug, Default)]
pub(super) struct Log {
    sources: HashMap<Source, SourceState>,
    /// The last entry that was handled.
    pub(super) position: StreamId,
    pub(super) incarnation: Incarnation,
    done: HashMap<u64, (u64, HashSet<u16>)>,
}

impl Log {
    pub(super) fn hear(&mut self, source: Source, token: Token, count: u64) -> Heard {
        let first = !self.sources.contains_key(&source);
        let state = self.sources.entry(source).or_default();
        if token < state.token {
            return Heard::Outrun;
        }
        let expected = if token > state.token {
            1
        } else {
            state.count + 1
        };
        state.token = token;
        state.count = count;
        if first || count == expected {
            Heard::Next
        } else {
            Heard::Hole
        }
    }

    pub(super) fn start(&mut self, source: Source) {
        self.sources.entry(source).or_default().rebuilding = true;
    }

    pub(super) fn rebuilt(&mut self, source: Source) {
        self.sources.entry(source).or_default().rebuilding = false;
    }

    pub(super) fn tick(&mut self, source: Source, tick: &Tick) {
        self.sources.entry(source).or_default().tick_us = tick.time_us;
        self.incarnation = tick.incarnation;
    }

    /// Whether a source has told everything up to a moment that is not long ago.
    pub(super) fn is_live(&self, source: Source, now_us: u64) -> bool {
        self.sources.get(&source).is_some_and(|state| {
            !state.rebuilding && now_us.saturating_sub(state.tick_us) < STALE_US
        })
    }

    pub(super) fn done(&mut self, xid: u64, partition: u16, now_us: u64) {
        let (_, parts) = self
            .done
            .entry(xid)
            .or_insert_with(|| (now_us, HashSet::new()));
        parts.insert(partition);
    }

    pub(super) fn is_done(&self, xid: u64, parts: &[u16]) -> bool {
        self.done
            .get(&xid)
            .is_some_and(|(_, done)| parts.iter().all(|part| done.contains(part)))
    }

    /// Forgets what is old.
    pub(super) fn forget(&mut self, now_us: u64) {
        self.done
            .retain(|_, (since, _)| now_us.saturating_sub(*since) < DONE_US);
    }

    /// How far behind the slowest of these sources is, in microseconds.
    pub(super) fn lag_us(&self, sources: &[Source], now_us: u64) -> u64 {
        let ticks = sources
            .iter()
            .map(|source| self.sources.get(source).map_or(0, |state| state.tick_us));
        now_us.saturating_sub(ticks.min().unwrap_or(0))
    }
}
