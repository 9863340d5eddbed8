//! Flow control of connections: how much may be in flight to all subscriptions of one.
//!
//! Every connection has one window, however many subscriptions it carries. While the window is full,
//! the hub renders no frames for them, and subscriptions with something to send wait. If a client
//! reads nothing from a full window for a second, the connection is stuck: changes to its
//! subscriptions are coalesced until it reads again, so that it costs almost nothing.

use std::collections::HashMap;

/// The size of a window in frames and bytes. Nothing more is sent while either is exceeded.
const WINDOW: (usize, usize) = (1_024, 2 * 1024 * 1024);
/// A connection with a full window is stuck when it has read nothing for this long.
const STUCK_AFTER_US: u64 = 1_000_000;

#[derive(Debug, Default)]
struct ConnectionWindow {
    subscriptions: usize,
    in_flight: (usize, usize),
    /// When the client last read something, or when the window last was empty.
    read_us: u64,
    /// Subscriptions that wait for room.
    waiting: Vec<u64>,
}

impl ConnectionWindow {
    const fn has_room(&self) -> bool {
        self.in_flight.0 < WINDOW.0 && self.in_flight.1 < WINDOW.1
    }

    /// Waiting subscriptions resume at half a window, so that they do not stop again at once.
    const fn is_half_empty(&self) -> bool {
        self.in_flight.0 <= WINDOW.0 / 2 && self.in_flight.1 <= WINDOW.1 / 2
    }
}

/// The windows of all connections, by connection. See the module.
#[derive(Debug, Default)]
pub(super) struct ConnectionWindows(HashMap<u64, ConnectionWindow>);

impl ConnectionWindows {
    /// Adds a subscription to a connection.
    pub(super) fn join(&mut self, connection: u64) {
        self.0.entry(connection).or_default().subscriptions += 1;
    }

    /// Removes a subscription with what was in flight to it. Returns the subscriptions that may
    /// resume.
    pub(super) fn leave(&mut self, connection: u64, (frames, bytes): (usize, usize)) -> Vec<u64> {
        let Some(window) = self.0.get_mut(&connection) else {
            return Vec::new();
        };
        window.subscriptions -= 1;
        if window.subscriptions == 0 {
            self.0.remove(&connection);
            return Vec::new();
        }
        let read_us = window.read_us;
        self.drained(connection, (frames, bytes), read_us)
    }

    /// Whether a subscription may send. If not, it waits.
    pub(super) fn admits(&mut self, connection: u64, subscription: u64) -> bool {
        let Some(window) = self.0.get_mut(&connection) else {
            return true;
        };
        let admits = window.has_room();
        if !admits {
            window.waiting.push(subscription);
        }
        admits
    }

    /// Counts a frame that was handed out.
    pub(super) fn sent(&mut self, connection: u64, bytes: usize, now_us: u64) {
        if let Some(window) = self.0.get_mut(&connection) {
            if window.in_flight.0 == 0 {
                window.read_us = now_us;
            }
            window.in_flight.0 += 1;
            window.in_flight.1 += bytes;
        }
    }

    /// Subtracts what the client has read. Returns the subscriptions that may resume.
    pub(super) fn drained(
        &mut self,
        connection: u64,
        (frames, bytes): (usize, usize),
        now_us: u64,
    ) -> Vec<u64> {
        let Some(window) = self.0.get_mut(&connection) else {
            return Vec::new();
        };
        window.read_us = now_us;
        window.in_flight.0 = window.in_flight.0.saturating_sub(frames);
        window.in_flight.1 = window.in_flight.1.saturating_sub(bytes);
        if window.is_half_empty() {
            std::mem::take(&mut window.waiting)
        } else {
            Vec::new()
        }
    }

    /// Whether the client does not read from a full window.
    pub(super) fn is_stuck(&self, connection: u64, now_us: u64) -> bool {
        let window = self.0.get(&connection);
        window.is_some_and(|window| {
            !window.has_room() && now_us.saturating_sub(window.read_us) >= STUCK_AFTER_US
        })
    }
}
