//! After-images that are kept for a while: queries are registered some time after they were read.

use std::collections::VecDeque;

use crate::message::{AfterImage, ImageContent, QueryHash, StreamId};

#[derive(Debug)]
struct RetainedImage {
    id: StreamId,
    at_us: u64,
    image: AfterImage,
    /// Queries that were told that it left them.
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

/// The last after-images in the order of the stream: all behind `floor`.
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

    /// Drops what is too old or too much.
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

    /// Whether everything behind `position` is here.
    pub(super) fn reaches(&self, position: StreamId) -> bool {
        position >= self.floor
    }

    /// What came behind `position`, in order.
    pub(super) fn after(&self, position: StreamId) -> impl Iterator<Item = &AfterImage> {
        let start = self.kept.partition_point(|kept| kept.id <= position);
        self.kept.range(start..).map(|kept| &kept.image)
    }

    /// Notes that the last after-image left these queries, and they were told.
    pub(super) fn last_left(&mut self, image: &AfterImage, queries: &[QueryHash]) {
        let last = self.kept.back_mut();
        if let Some(kept) = last.filter(|kept| kept.image.xid == image.xid && kept.is(image)) {
            kept.left.extend_from_slice(queries);
        }
    }

    /// Notes the same of any that is here, and one query.
    pub(super) fn one_left(&mut self, image: &AfterImage, query: QueryHash) {
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

    /// The after-image of one version, if it is here.
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
