//! After-images that are kept for a while, because queries are registered some time after their
//! rows were read.

use std::collections::VecDeque;

use crate::message::{AfterImage, ImageContent, QueryHash, StreamId};

#[derive(Debug)]
struct RetainedImage {
    id: StreamId,
    at_us: u64,
    image: AfterImage,
    /// Queries to which it was reported that the document left them.
    left: Vec<QueryHash>,
}

impl RetainedImage {
    fn is(&self, image: &AfterImage) -> bool {
        self.image.version == image.version
            && self.image.key == image.key
            && self.image.collection == image.collection
    }

    fn size(&self) -> usize {
        let body = match &self.image.content {
            ImageContent::Document(body) | ImageContent::Deleted(body) => body.len(),
            ImageContent::Superseded => 0,
        };
        size_of::<Self>() + self.image.key.len() + body
    }
}

/// The last after-images in stream order: all after `floor`.
#[derive(Debug)]
pub(super) struct Retained {
    kept: VecDeque<RetainedImage>,
    floor: StreamId,
    bytes: usize,
    max_us: u64,
    max_bytes: usize,
}

impl Retained {
    pub(super) fn new(floor: StreamId, max_us: u64, max_bytes: usize) -> Self {
        Self {
            kept: VecDeque::new(),
            floor,
            bytes: 0,
            max_us,
            max_bytes,
        }
    }

    pub(super) fn push(&mut self, id: StreamId, image: &AfterImage, now_us: u64) {
        let kept = RetainedImage {
            id,
            at_us: now_us,
            image: image.clone(),
            left: Vec::new(),
        };
        self.bytes += kept.size();
        self.kept.push_back(kept);
        self.trim(now_us);
    }

    /// Drops entries that are too old or exceed the size limit.
    pub(super) fn trim(&mut self, now_us: u64) {
        while let Some(oldest) = self.kept.front() {
            let old = oldest.at_us.saturating_add(self.max_us) < now_us;
            if !old && self.bytes <= self.max_bytes {
                return;
            }
            self.bytes = self.bytes.saturating_sub(oldest.size());
            self.floor = oldest.id;
            self.kept.pop_front();
        }
    }

    /// Whether everything after `position` is retained.
    pub(super) fn reaches(&self, position: StreamId) -> bool {
        position >= self.floor
    }

    /// The entries after `position`, in order.
    pub(super) fn after(&self, position: StreamId) -> impl Iterator<Item = &AfterImage> {
        let start = self.kept.partition_point(|kept| kept.id <= position);
        self.kept.range(start..).map(|kept| &kept.image)
    }

    /// Records that the last after-image left these queries and that this was reported.
    pub(super) fn record_departures(&mut self, image: &AfterImage, queries: &[QueryHash]) {
        let last = self.kept.back_mut();
        if let Some(kept) = last.filter(|kept| kept.image.xid == image.xid && kept.is(image)) {
            kept.left.extend_from_slice(queries);
        }
    }

    /// Records the same for one query and any retained image.
    pub(super) fn record_departure(&mut self, image: &AfterImage, query: QueryHash) {
        let mut kept = self.kept.iter_mut().rev();
        if let Some(kept) = kept.find(|kept| kept.is(image)) {
            kept.left.push(query);
        }
    }

    /// Documents that left a query after `position` and were reported.
    pub(super) fn departures_since(
        &self,
        position: StreamId,
        query: &QueryHash,
    ) -> impl Iterator<Item = &AfterImage> {
        let start = self.kept.partition_point(|kept| kept.id <= position);
        let behind = self.kept.range(start..);
        let departed = behind.filter(|kept| kept.left.contains(query));
        departed.map(|kept| &kept.image)
    }

    /// The after-image of one version, if it is retained.
    pub(super) fn find(
        &self,
        collection: &[u8; 16],
        key: &[u8],
        version: u64,
    ) -> Option<AfterImage> {
        let mut images = self.kept.iter().rev().map(|kept| &kept.image);
        let image = images.find(|image| {
            image.version == version && *image.key == *key && image.collection == *collection
        });
        image.cloned()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }
}
