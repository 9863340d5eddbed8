//! What a node reads during a rebuild, which may take longer than the server retains it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rillbase_live::message::StreamId;

use crate::layer::{ENTRIES_AT_ONCE, RoundTripResult, ValkeyEntry};

/// How often a rebuild reads ahead, and how many bytes it keeps at most; the rest remains on the
/// server for as long as it is retained there.
const PREFETCH_INTERVAL: Duration = Duration::from_millis(50);
const PREFETCH_BYTES: usize = 256 << 20;

/// Entries of the node's own stream and of the request stream that were read during a rebuild.
#[derive(Debug)]
pub(crate) struct Prefetch {
    /// The streams with the positions up to which they have been read.
    pub(crate) streams: [(String, StreamId); 2],
    entries: [VecDeque<ValkeyEntry>; 2],
    bytes: usize,
    due: Instant,
}

impl Prefetch {
    pub(crate) fn new(streams: [(String, StreamId); 2]) -> Self {
        Self {
            streams,
            entries: Default::default(),
            bytes: 0,
            due: Instant::now(),
        }
    }

    pub(crate) fn is_due(&self) -> bool {
        self.bytes < PREFETCH_BYTES && self.due <= Instant::now()
    }

    /// Adds what was read; if there is more, the next read is due at once.
    pub(crate) fn add(&mut self, read: RoundTripResult) {
        for (index, entries) in read.entries.into_iter().enumerate() {
            let (Some((_, position)), Some(earlier)) =
                (self.streams.get_mut(index), self.entries.get_mut(index))
            else {
                continue;
            };
            for entry in entries {
                *position = entry.id;
                self.bytes += entry.body.len();
                earlier.push_back(entry);
            }
        }
        let now = Instant::now();
        self.due = if read.all_read {
            now + PREFETCH_INTERVAL
        } else {
            now
        };
    }

    /// Removes the oldest entries, as many as one read returns; `None` if there are none.
    pub(crate) fn next(&mut self) -> Option<Vec<Vec<ValkeyEntry>>> {
        if self.entries.iter().all(VecDeque::is_empty) {
            return None;
        }
        let parts = self.entries.iter_mut().map(|entries| {
            let count = entries.len().min(ENTRIES_AT_ONCE);
            entries.drain(..count).collect()
        });
        Some(parts.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(numbers: std::ops::Range<u64>) -> Vec<ValkeyEntry> {
        let entry = |number| ValkeyEntry {
            id: StreamId { ms: 1, number },
            body: vec![0; 10],
            parts: None,
            number: Some(number),
        };
        numbers.map(entry).collect()
    }

    fn result(entries: [Vec<ValkeyEntry>; 2], all_read: bool) -> RoundTripResult {
        RoundTripResult {
            entries: entries.into(),
            all_read,
            ..RoundTripResult::default()
        }
    }

    #[test]
    fn entries_that_were_read_ahead_are_returned_in_order_and_in_parts() {
        let most = u64::try_from(ENTRIES_AT_ONCE).unwrap();
        let mut ahead = Prefetch::new(["own", "requests"].map(|name| (name.into(), at(0))));
        ahead.add(result([read(1..most + 1), read(1..4)], false));
        assert!(ahead.is_due(), "there was more");
        ahead.add(result([read(most + 1..most + 3), Vec::new()], true));
        assert!(!ahead.is_due());
        let positions = ahead.streams.each_ref().map(|(_, position)| *position);
        assert_eq!(positions, [at(most + 2), at(3)]);
        let mut passed = [Vec::new(), Vec::new()];
        while let Some(entries) = ahead.next() {
            for (passed, entries) in passed.iter_mut().zip(entries) {
                assert!(entries.len() <= ENTRIES_AT_ONCE);
                passed.extend(entries.iter().map(|entry| entry.id.number));
            }
        }
        assert_eq!(passed, [(1..most + 3).collect::<Vec<_>>(), vec![1, 2, 3]]);
    }

    #[test]
    fn no_more_is_read_ahead_than_fits() {
        let mut ahead = Prefetch::new(["own", "requests"].map(|name| (name.into(), at(0))));
        let mut large = read(1..2);
        large[0].body = vec![0; PREFETCH_BYTES];
        ahead.add(result([large, Vec::new()], false));
        assert!(!ahead.is_due());
    }

    fn at(number: u64) -> StreamId {
        StreamId {
            ms: u64::from(number > 0),
            number,
        }
    }
}
