//! One subscription: what it has been told, and what is on its way to it.

use std::collections::VecDeque;
use std::sync::Arc;

use rillbase_query::projection::Projection;

use crate::message::{QueryHash, Row};

use super::change::{Change, Leave, Rows, difference};
use super::frames::{self, Part};
use super::token::Token;

/// A larger group is a new result.
const LARGEST_GROUP: usize = 500;
/// A result is cut into parts of about so many bytes.
const PART_BYTES: usize = 1024 * 1024;
/// Frames and bytes handed out and not reported as sent.
const IN_FLIGHT_FRAMES: usize = 128;
const IN_FLIGHT_BYTES: usize = 2 * 1024 * 1024;

/// How much waits for a client before changes are put together.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Frames.
    pub frames: usize,
    /// Bytes.
    pub bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            frames: 1_000,
            bytes: 8 * 1024 * 1024,
        }
    }
}

/// How a subscriber wants to be told.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The whole result instead of events.
    pub whole_results: bool,
    /// At most one group in so many microseconds.
    pub throttle_us: u64,
    /// Kinds of change that it does not want to hear of, in the order of `add`, `change`,
    /// `changeIndex`, `remove`.
    pub muted: [bool; 4],
}

/// Where a subscription stands.
#[derive(Debug)]
pub(super) enum Phase {
    /// It has no result yet.
    Waiting,
    /// It came with a token, and waits for its query to be ready.
    Resuming(Token),
    /// What it missed is being read; what happens meanwhile waits behind.
    Replaying(Token, Vec<Vec<Change>>),
    /// It holds what the hub holds, or what is on its way leads there.
    Running,
}

#[derive(Debug)]
enum Out {
    Frame(String),
    Result {
        rows: Vec<Arc<Row>>,
        next: usize,
        part: usize,
        resume: Option<String>,
    },
}

/// A subscription. See the module.
#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and all combinations occur"
)]
pub(super) struct Client {
    pub(super) name: String,
    pub(super) query: QueryHash,
    pub(super) holder: [u8; 16],
    pub(super) phase: Phase,
    pub(super) ready: bool,
    pub(super) live: bool,
    pub(super) seq: u64,
    pub(super) events: u64,
    pub(super) over: bool,
    projection: Option<Arc<Projection>>,
    options: Options,
    bounds: Bounds,
    groups: u64,
    outbox: VecDeque<Out>,
    outbox_bytes: usize,
    in_flight: (usize, usize),
    /// What the client holds once everything that waits has been sent, while changes are put
    /// together.
    base: Option<Vec<Arc<Row>>>,
    dirty: bool,
    due_us: u64,
}

/// Bodies of a group's events, rendered once for all who see whole documents.
pub(super) type Bodies = Vec<Arc<str>>;

impl Client {
    pub(super) fn new(
        name: String,
        query: QueryHash,
        holder: [u8; 16],
        projection: Option<Arc<Projection>>,
        options: Options,
        bounds: Bounds,
    ) -> Self {
        Self {
            name,
            query,
            holder,
            phase: Phase::Waiting,
            ready: false,
            live: true,
            seq: 0,
            events: 0,
            over: false,
            projection,
            options,
            bounds,
            groups: 0,
            outbox: VecDeque::new(),
            outbox_bytes: 0,
            in_flight: (0, 0),
            base: None,
            dirty: false,
            due_us: 0,
        }
    }

    /// Whether something waits until it is due or there is room.
    pub(super) fn is_behind(&self) -> bool {
        self.base.is_some() || self.dirty
    }

    pub(super) fn waiting_frames(&self) -> usize {
        self.outbox.len()
    }

    pub(super) fn waiting(&self) -> usize {
        self.outbox.len() + self.in_flight.0
    }

    pub(super) fn push(&mut self, frame: String) {
        self.outbox_bytes += frame.len();
        self.outbox.push_back(Out::Frame(frame));
    }

    /// Sends the whole result. What the client held before is replaced.
    pub(super) fn give(&mut self, rows: &Rows, resume: Option<String>) {
        self.base = None;
        self.dirty = false;
        self.outbox.push_back(Out::Result {
            rows: rows.list(),
            next: 0,
            part: 0,
            resume,
        });
    }

    /// Begins anew: a result follows, and events are counted from 1 again.
    pub(super) fn reset(&mut self, reason: &str, rows: &Rows, resume: Option<String>) {
        self.outbox.clear();
        self.outbox_bytes = 0;
        self.seq = 0;
        self.push(frames::reset(&self.name, reason));
        self.give(rows, resume);
        if self.ready {
            self.ready = false;
        }
    }

    /// Tells of a group of changes, which has been applied to `rows`, or keeps it in mind.
    pub(super) fn deliver(
        &mut self,
        group: &[Change],
        bodies: &Bodies,
        rows: &Rows,
        now_us: u64,
        resume: &dyn Fn(u64) -> String,
    ) {
        if self.options.whole_results || self.base.is_some() {
            self.dirty = true;
            return;
        }
        self.tell(group, Some(bodies), rows, resume);
        if self.options.throttle_us > 0 || self.is_full() {
            self.base = Some(rows.list());
            self.due_us = now_us.saturating_add(self.options.throttle_us);
        }
    }

    /// Sends what has been put together, if it is time and there is room.
    pub(super) fn flush(
        &mut self,
        rows: &Rows,
        now_us: u64,
        leave: &Leave<'_>,
        resume: &dyn Fn(u64) -> String,
    ) {
        if now_us < self.due_us {
            return;
        }
        if self.options.whole_results {
            if self.dirty && self.outbox.is_empty() {
                let token = resume(self.seq);
                self.give(rows, Some(token));
                self.due_us = now_us.saturating_add(self.options.throttle_us);
            }
            return;
        }
        if self.outbox.len() > self.bounds.frames / 2 || self.outbox_bytes > self.bounds.bytes / 2 {
            return;
        }
        let Some(base) = self.base.take() else {
            return;
        };
        if !self.dirty {
            return;
        }
        self.dirty = false;
        let group = difference(&base, rows, leave);
        self.tell(&group, None, rows, resume);
        if self.options.throttle_us > 0 || self.is_full() {
            self.base = Some(rows.list());
            self.due_us = now_us.saturating_add(self.options.throttle_us);
        }
    }

    fn is_full(&self) -> bool {
        self.outbox.len() >= self.bounds.frames || self.outbox_bytes >= self.bounds.bytes
    }

    fn tell(
        &mut self,
        group: &[Change],
        bodies: Option<&Bodies>,
        rows: &Rows,
        resume: &dyn Fn(u64) -> String,
    ) {
        let heard: Vec<usize> = (0..group.len())
            .filter(|&at| group.get(at).is_some_and(|change| self.hears(change)))
            .collect();
        if heard.len() > LARGEST_GROUP {
            let token = resume(0);
            let was_ready = self.ready;
            self.reset("too_many_changes", rows, Some(token.clone()));
            if was_ready {
                self.push(frames::ready(&self.name, &token));
                self.ready = true;
            }
            return;
        }
        if heard.len() > 1 {
            self.groups += 1;
        }
        let count = heard.len();
        for (index, &at) in heard.iter().enumerate() {
            let Some(change) = group.get(at) else {
                continue;
            };
            let body = match (bodies.and_then(|bodies| bodies.get(at)), &self.projection) {
                (Some(body), None) => Arc::clone(body),
                _ => frames::event_body(change, self.projection.as_deref()),
            };
            self.seq += 1;
            self.events += 1;
            let part = (count > 1).then_some(Part {
                group: self.groups,
                index,
                count,
            });
            let token = (index + 1 == count).then(|| resume(self.seq));
            self.push(frames::event(
                &self.name,
                self.seq,
                &body,
                part,
                token.as_deref(),
            ));
        }
    }

    fn hears(&self, change: &Change) -> bool {
        let [add, changed, moved, remove] = self.options.muted;
        !match change {
            Change::Add { .. } => add,
            Change::Stay { .. } => changed,
            Change::Move { .. } => moved,
            Change::Remove { .. } => remove,
        }
    }

    /// Takes a frame to send, if there is one and the client has room.
    pub(super) fn next(&mut self) -> Option<String> {
        if self.in_flight.0 >= IN_FLIGHT_FRAMES || self.in_flight.1 >= IN_FLIGHT_BYTES {
            return None;
        }
        let frame = match self.outbox.front_mut()? {
            Out::Frame(frame) => {
                let frame = std::mem::take(frame);
                self.outbox_bytes = self.outbox_bytes.saturating_sub(frame.len());
                self.outbox.pop_front();
                frame
            }
            Out::Result {
                rows,
                next,
                part,
                resume,
            } => {
                let mut items = String::new();
                while let Some(row) = rows.get(*next)
                    && items.len() < PART_BYTES
                {
                    if !items.is_empty() {
                        items.push(',');
                    }
                    frames::item(&mut items, row, self.projection.as_deref());
                    *next += 1;
                }
                let last = *next >= rows.len();
                let token = if last { resume.as_deref() } else { None };
                let frame = frames::result(&self.name, &items, *part, last, token);
                *part += 1;
                if last {
                    self.outbox.pop_front();
                }
                frame
            }
        };
        self.in_flight.0 += 1;
        self.in_flight.1 += frame.len();
        Some(frame)
    }

    pub(super) fn drained(&mut self, frames: usize, bytes: usize) {
        self.in_flight.0 = self.in_flight.0.saturating_sub(frames);
        self.in_flight.1 = self.in_flight.1.saturating_sub(bytes);
    }
}
