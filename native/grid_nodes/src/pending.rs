//! Notifications that a node has not appended yet.

/// The largest batch that one call appends: it takes the server less than 5 ms.
const BATCH_ENTRIES: usize = 400;
const BATCH_BYTES: usize = 256 << 10;

/// Notifications in the order in which they are appended, in batches. The server does nothing else
/// while it appends a batch.
#[derive(Debug, Default)]
pub(crate) struct PendingNotifications {
    encoded: Vec<Vec<u8>>,
    /// How many have been appended.
    appended: usize,
    /// The bytes of the others.
    pub(crate) bytes: usize,
}

impl PendingNotifications {
    pub(crate) fn push(&mut self, encoded: Vec<u8>) {
        self.bytes += encoded.len();
        self.encoded.push(encoded);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }

    pub(crate) fn is_more_than_a_batch(&self) -> bool {
        self.batch().len() < self.waiting().len()
    }

    fn waiting(&self) -> &[Vec<u8>] {
        self.encoded.get(self.appended..).unwrap_or_default()
    }

    /// The next batch: at least one, if any are waiting.
    pub(crate) fn batch(&self) -> &[Vec<u8>] {
        let waiting = self.waiting();
        let mut bytes = 0;
        let fits = waiting.iter().take(BATCH_ENTRIES).take_while(|encoded| {
            bytes += encoded.len();
            bytes <= BATCH_BYTES
        });
        let count = fits.count().max(1).min(waiting.len());
        waiting.get(..count).unwrap_or_default()
    }

    /// Removes the first ones, which have been appended.
    pub(crate) fn remove(&mut self, count: usize) {
        let removed = self.waiting().iter().take(count).map(Vec::len);
        self.bytes -= removed.sum::<usize>();
        self.appended += count;
        if self.is_empty() {
            self.encoded.clear();
            self.appended = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pending_notifications_are_appended_in_bounded_batches_and_in_order() {
        let sizes = (0..3 * BATCH_ENTRIES).map(|number| 1 + number % 7);
        let sizes: Vec<usize> = sizes.chain([BATCH_BYTES + 1, 5, BATCH_BYTES]).collect();
        let mut pending = PendingNotifications::default();
        for size in &sizes {
            pending.push(vec![0; *size]);
        }
        assert_eq!(pending.bytes, sizes.iter().sum::<usize>());
        let mut appended = Vec::new();
        while !pending.is_empty() {
            let batch = pending.batch();
            let bytes: usize = batch.iter().map(Vec::len).sum();
            assert!(batch.len() <= BATCH_ENTRIES && (bytes <= BATCH_BYTES || batch.len() == 1));
            appended.extend(batch.iter().map(Vec::len));
            let count = batch.len();
            pending.remove(count);
        }
        assert_eq!(appended, sizes);
        assert_eq!((pending.bytes, pending.encoded.len()), (0, 0));
    }
}
