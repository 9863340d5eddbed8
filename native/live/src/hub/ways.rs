//! Connections: what is on its way to all subscriptions of one.
//!
//! A connection has room for so much, however many subscriptions it carries. Those that it has no
//! room for wait, and nothing is written out for them. One that stays full is not read: what happens
//! to its subscriptions' queries is put together from then on, so that it costs next to nothing
//! until its client reads again.

use std::collections::HashMap;

/// Frames and bytes that are handed out before the connection has to take some.
const ROOM: (usize, usize) = (1_024, 2 * 1024 * 1024);
/// Who took nothing for so long although the connection is full does not read.
const UNREAD_US: u64 = 1_000_000;

#[derive(Debug, Default)]
struct Way {
    clients: usize,
    in_flight: (usize, usize),
    /// When it took something, or was empty, last.
    taken_us: u64,
    /// Who waits for room.
    waiting: Vec<u64>,
}

impl Way {
    const fn has_room(&self) -> bool {
        self.in_flight.0 < ROOM.0 && self.in_flight.1 < ROOM.1
    }

    /// Whoever waited is let go on when there is room for some time.
    const fn has_much_room(&self) -> bool {
        self.in_flight.0 <= ROOM.0 / 2 && self.in_flight.1 <= ROOM.1 / 2
    }
}

/// All connections. See the module.
#[derive(Debug, Default)]
pub(super) struct Ways(HashMap<u64, Way>);

impl Ways {
    /// A subscription joins.
    pub(super) fn join(&mut self, way: u64) {
        self.0.entry(way).or_default().clients += 1;
    }

    /// A subscription is gone, to which so much was on its way.
    pub(super) fn leave(&mut self, way: u64, (frames, bytes): (usize, usize)) -> Vec<u64> {
        let Some(found) = self.0.get_mut(&way) else {
            return Vec::new();
        };
        found.clients -= 1;
        if found.clients == 0 {
            self.0.remove(&way);
            return Vec::new();
        }
        let taken_us = found.taken_us;
        self.drained(way, (frames, bytes), taken_us)
    }

    /// Whether more may be handed out; if not, the subscription waits.
    pub(super) fn admits(&mut self, way: u64, client: u64) -> bool {
        let Some(found) = self.0.get_mut(&way) else {
            return true;
        };
        let admits = found.has_room();
        if !admits {
            found.waiting.push(client);
        }
        admits
    }

    pub(super) fn handed(&mut self, way: u64, bytes: usize, now_us: u64) {
        if let Some(found) = self.0.get_mut(&way) {
            if found.in_flight.0 == 0 {
                found.taken_us = now_us;
            }
            found.in_flight.0 += 1;
            found.in_flight.1 += bytes;
        }
    }

    /// Learns what has left; returns who has waited for room and may go on.
    pub(super) fn drained(
        &mut self,
        way: u64,
        (frames, bytes): (usize, usize),
        now_us: u64,
    ) -> Vec<u64> {
        let Some(found) = self.0.get_mut(&way) else {
            return Vec::new();
        };
        found.taken_us = now_us;
        found.in_flight.0 = found.in_flight.0.saturating_sub(frames);
        found.in_flight.1 = found.in_flight.1.saturating_sub(bytes);
        if found.has_much_room() {
            std::mem::take(&mut found.waiting)
        } else {
            Vec::new()
        }
    }

    /// Whether nobody reads.
    pub(super) fn is_stuck(&self, way: u64, now_us: u64) -> bool {
        let found = self.0.get(&way);
        found.is_some_and(|found| {
            !found.has_room() && now_us.saturating_sub(found.taken_us) >= UNREAD_US
        })
    }
}
