//! After-images that are kept for a while: queries are registered some time after they were read.

use std::collections::VecDeque;

use crate::message::{AfterImage, Content, StreamId};

#[derive(Debug)]
struct Kept {
    id: StreamId,
    at_us: u64,
    image: AfterImage,
}

impl Kept {
    fn size(&self) -> usize {
        let body = match &self.image.content {
            Content::Document(body) | Content::Deleted(body) => body.len(),
            Content::Superseded => 0,
        };
        size_of::<Self>() + self.image.key.len() + body
    }
}

/// The last after-images in the order of the stream: all behind `floor`.
#[derive(Debug)]
pub(super) struct Retained {
    kept: VecDeque<Kept>,
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
        let kept = Kept {
            id,
            at_us: now_us,
            image: image.clone(),
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

    /// The after-image of one version, if it is here.
    pub(super) fn find(
        &self,
        collection: &[u8; 16],
        key: &[u8],
        version: u64,
    ) -> Option<AfterImage> {
        let mut images = self.kept.iter().rev().map(|kept| &kept.image);
        let found = images.find(|image| {
            image.version == version && *image.key == *key && image.collection == *collection
        });
        found.cloned()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }
}
