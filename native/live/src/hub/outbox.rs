//! A client's outgoing frames: bounded, and handed out as fast as the client reads them.

use std::collections::VecDeque;
use std::sync::Arc;

use rillbase_query::ejson::Form;
use rillbase_query::projection::Projection;

use super::change::ResultList;
use super::frames;

/// A result is split into parts of about this many bytes.
const PART_BYTES: usize = 1024 * 1024;
/// Frames and bytes handed out and not reported as sent, while memory is short.
const IN_FLIGHT_SHORT: (usize, usize) = (16, 64 * 1024);

/// The limits of a client's outbox before changes are coalesced.
#[derive(Debug, Clone, Copy)]
pub struct OutboxBounds {
    /// Frames.
    pub frames: usize,
    /// Bytes.
    pub bytes: usize,
    /// Frames and bytes that are handed out before the client must acknowledge some.
    pub in_flight: (usize, usize),
}

impl Default for OutboxBounds {
    fn default() -> Self {
        Self {
            frames: 1_000,
            bytes: 8 * 1024 * 1024,
            in_flight: (128, 2 * 1024 * 1024),
        }
    }
}

#[derive(Debug)]
enum Out {
    Frame(String),
    /// A result whose rows are rendered when their part is sent.
    Result {
        listed: Arc<ResultList>,
        next: usize,
        part: usize,
        resume: String,
    },
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct ClientOutbox {
    waiting: VecDeque<Out>,
    bytes: usize,
    results: usize,
    in_flight: (usize, usize),
    /// How many frames and results were ever handed out completely.
    handed: u64,
}

impl ClientOutbox {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Frames that the client has not read.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len() + self.in_flight.0
    }

    /// Whether the client has read everything that was handed out.
    pub(super) fn is_drained(&self) -> bool {
        self.in_flight.0 == 0
    }

    /// The bytes that it alone uses.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.in_flight.1
    }

    /// Frames and bytes that were handed out and not read.
    pub(super) const fn in_flight(&self) -> (usize, usize) {
        self.in_flight
    }

    /// Results that are being sent, as they were when they were requested.
    pub(super) fn listed(&self) -> impl Iterator<Item = &Arc<ResultList>> {
        let some = self.results > 0;
        let waiting = self.waiting.iter().filter(move |_| some);
        waiting.filter_map(|out| match out {
            Out::Result { listed, .. } => Some(listed),
            Out::Frame(_) => None,
        })
    }

    pub(super) fn push(&mut self, frame: String) {
        self.bytes += frame.len();
        self.waiting.push_back(Out::Frame(frame));
    }

    /// Adds the whole result, which replaces what the client has.
    pub(super) fn push_result(&mut self, listed: Arc<ResultList>, resume: String) {
        self.results += 1;
        self.waiting.push_back(Out::Result {
            listed,
            next: 0,
            part: 0,
            resume,
        });
    }

    /// The number of the last item pushed. Numbers of cleared items are reused.
    pub(super) fn last_number(&self) -> u64 {
        self.handed + self.waiting.len() as u64
    }

    /// The number up to which items were handed out, and the number up to which they were at least
    /// read.
    pub(super) fn numbers(&self) -> (u64, u64) {
        let taken = self.handed.saturating_sub(self.in_flight.0 as u64);
        (self.handed, taken)
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.bytes = 0;
        self.results = 0;
    }

    pub(super) fn is_full(&self, bounds: OutboxBounds) -> bool {
        self.waiting.len() >= bounds.frames || self.bytes >= bounds.bytes
    }

    /// Whether there is room for coalesced changes.
    pub(super) fn has_room(&self, bounds: OutboxBounds) -> bool {
        self.waiting.len() <= bounds.frames / 2 && self.bytes <= bounds.bytes / 2
    }

    /// Takes a frame to send, if there is one and the client has room.
    pub(super) fn next(
        &mut self,
        name: &str,
        projection: Option<&Projection>,
        form: Form,
        most: (usize, usize),
        short: bool,
    ) -> Option<String> {
        let (frames, bytes) = self.in_flight;
        let is_memory_short = short && (frames >= IN_FLIGHT_SHORT.0 || bytes >= IN_FLIGHT_SHORT.1);
        if is_memory_short || frames >= most.0 || bytes >= most.1 {
            return None;
        }
        let (frame, last) = match self.waiting.front_mut()? {
            Out::Frame(frame) => {
                self.bytes = self.bytes.saturating_sub(frame.len());
                (std::mem::take(frame), true)
            }
            Out::Result {
                listed,
                next,
                part,
                resume,
            } => {
                let mut items = String::new();
                while let Some(row) = listed.rows.get(*next)
                    && items.len() < PART_BYTES
                {
                    if !items.is_empty() {
                        items.push(',');
                    }
                    frames::item(&mut items, row, projection, form);
                    *next += 1;
                }
                let last = *next >= listed.rows.len();
                let token = last.then_some(resume.as_str());
                let frame = frames::result(name, &items, *part, last, token);
                *part += 1;
                (frame, last)
            }
        };
        if last {
            self.handed += 1;
            if let Some(Out::Result { .. }) = self.waiting.pop_front() {
                self.results -= 1;
            }
        }
        self.in_flight.0 += 1;
        self.in_flight.1 += frame.len();
        Some(frame)
    }

    pub(super) fn drained(&mut self, frames: usize, bytes: usize) {
        self.in_flight.0 = self.in_flight.0.saturating_sub(frames);
        self.in_flight.1 = self.in_flight.1.saturating_sub(bytes);
    }
}
