//! What is on its way to one client: bounded, and handed out as fast as the client takes it.

use std::collections::VecDeque;
use std::sync::Arc;

use rillbase_query::projection::Projection;

use crate::message::Row;

use super::client::Bounds;
use super::frames;

/// A result is cut into parts of about so many bytes.
const PART_BYTES: usize = 1024 * 1024;
/// Frames and bytes handed out and not reported as sent.
const IN_FLIGHT_FRAMES: usize = 128;
const IN_FLIGHT_BYTES: usize = 2 * 1024 * 1024;

#[derive(Debug)]
enum Out {
    Frame(String),
    /// A result, of which rows are rendered when their part is sent.
    Result {
        rows: Vec<Arc<Row>>,
        next: usize,
        part: usize,
        resume: String,
    },
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: VecDeque<Out>,
    bytes: usize,
    in_flight: (usize, usize),
}

impl Outbox {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Frames that the client has not taken.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len() + self.in_flight.0
    }

    pub(super) fn push(&mut self, frame: String) {
        self.bytes += frame.len();
        self.waiting.push_back(Out::Frame(frame));
    }

    /// The whole result, which replaces what the client holds.
    pub(super) fn push_result(&mut self, rows: Vec<Arc<Row>>, resume: String) {
        self.waiting.push_back(Out::Result {
            rows,
            next: 0,
            part: 0,
            resume,
        });
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.bytes = 0;
    }

    pub(super) fn is_full(&self, bounds: Bounds) -> bool {
        self.waiting.len() >= bounds.frames || self.bytes >= bounds.bytes
    }

    /// Whether there is room for what was put together meanwhile.
    pub(super) fn has_room(&self, bounds: Bounds) -> bool {
        self.waiting.len() <= bounds.frames / 2 && self.bytes <= bounds.bytes / 2
    }

    /// Takes a frame to send, if there is one and the client has room.
    pub(super) fn next(&mut self, name: &str, projection: Option<&Projection>) -> Option<String> {
        if self.in_flight.0 >= IN_FLIGHT_FRAMES || self.in_flight.1 >= IN_FLIGHT_BYTES {
            return None;
        }
        let (frame, last) = match self.waiting.front_mut()? {
            Out::Frame(frame) => {
                self.bytes = self.bytes.saturating_sub(frame.len());
                (std::mem::take(frame), true)
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
                    frames::item(&mut items, row, projection);
                    *next += 1;
                }
                let last = *next >= rows.len();
                let token = last.then_some(resume.as_str());
                let frame = frames::result(name, &items, *part, last, token);
                *part += 1;
                (frame, last)
            }
        };
        if last {
            self.waiting.pop_front();
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
