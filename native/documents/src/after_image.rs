//! After-images in the form that the event layer receives. docs/formats/after-image.md specifies
//! the bytes.
//!
//! They leave this process as arguments of a Valkey command, so they are built in that form: for
//! each image its key's hash and its bytes, each as a bulk string of the protocol.

use std::io::Write as _;

use crate::changes::{ChangedDocument, GroupChanges};

const FORMAT: u8 = 1;
const PUT: u8 = 1;
const DELETE: u8 = 2;
/// The size of an image besides its key and its content.
const HEAD_BYTES: usize = 80;

/// What the images of a transaction have in common.
#[derive(Debug, Clone, Copy)]
pub struct ImageTransaction<'t> {
    /// Its id.
    pub xid: u64,
    /// The tenant of the documents.
    pub tenant: [u8; 16],
    /// By collection, the version of the access rules that it read.
    pub rules_versions: &'t [i64],
}

/// What an image contains.
#[derive(Debug, Clone, Copy)]
pub struct ImageFields<'d> {
    /// The transaction.
    pub xid: u64,
    /// The tenant of the document.
    pub tenant: [u8; 16],
    /// Its collection.
    pub collection: [u8; 16],
    /// The version after the write.
    pub version: i64,
    /// The version of the access rules that the transaction read.
    pub rules_version: i64,
    /// When the document came into being.
    pub created_ms: i64,
    /// When it was written.
    pub updated_ms: i64,
    /// The document's key.
    pub key: &'d [u8],
    /// The key's hash, by which documents are assigned to write partitions.
    pub key_hash: i32,
    /// Whether it was deleted.
    pub is_deletion: bool,
    /// The document, or what a deletion leaves of it.
    pub content: &'d [u8],
}

impl ImageFields<'_> {
    /// The size of the image.
    #[must_use]
    pub fn size(&self) -> usize {
        HEAD_BYTES + self.key.len() + self.content.len()
    }

    /// Appends both arguments: the key's hash and the image.
    fn put(&self, out: &mut Vec<u8>) {
        bulk_string(out, self.key_hash.to_string().as_bytes());
        length(out, self.size());
        let kind = if self.is_deletion { DELETE } else { PUT };
        out.extend_from_slice(&[FORMAT, kind]);
        out.extend_from_slice(&self.xid.to_be_bytes());
        out.extend_from_slice(&self.tenant);
        out.extend_from_slice(&self.collection);
        for number in [
            self.version,
            self.rules_version,
            self.created_ms,
            self.updated_ms.saturating_mul(1000),
        ] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        // Keys have at most a kilobyte and documents 16 MiB.
        let key_length = u16::try_from(self.key.len()).unwrap_or(u16::MAX);
        let content_length = u32::try_from(self.content.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&key_length.to_be_bytes());
        out.extend_from_slice(&content_length.to_be_bytes());
        out.extend_from_slice(self.key);
        out.extend_from_slice(self.content);
        out.extend_from_slice(b"\r\n");
    }
}

/// Images that are appended together.
#[derive(Debug, Default)]
pub struct Parcel {
    /// The number of images.
    pub images: usize,
    /// Two arguments for each.
    pub arguments: Vec<u8>,
}

impl Parcel {
    /// Adds an image.
    pub fn add(&mut self, image: &ImageFields<'_>) {
        image.put(&mut self.arguments);
        self.images += 1;
    }

    /// Whether the limits allow no further image of this size.
    #[must_use]
    pub fn is_full(&self, size: usize, limits: ParcelLimits) -> bool {
        let filled = self.arguments.len().saturating_add(size);
        self.images > 0 && (self.images >= limits.images || filled > limits.bytes)
    }
}

/// The limits of a parcel.
#[derive(Debug, Clone, Copy)]
pub struct ParcelLimits {
    /// The maximum number of images.
    pub images: usize,
    /// The approximate maximum of bytes, unless one image is larger.
    pub bytes: usize,
}

/// Packs the images of a transaction, in a single parcel if there are no limits.
#[must_use]
pub fn parcels(
    changes: &GroupChanges,
    transaction: ImageTransaction<'_>,
    limits: Option<ParcelLimits>,
) -> Vec<Parcel> {
    let mut full = Vec::new();
    let mut parcel = Parcel::default();
    let collections = changes.collections.iter().zip(&changes.documents);
    for ((collection, documents), rules) in collections.zip(transaction.rules_versions) {
        for changed in documents {
            let image = ImageFields {
                xid: transaction.xid,
                tenant: transaction.tenant,
                collection: *collection,
                version: changed.version,
                rules_version: *rules,
                created_ms: changes.created_ms(changed),
                updated_ms: changes.now_ms,
                key: &changed.key,
                key_hash: changed.key_hash,
                is_deletion: changed.body.is_none(),
                content: content(changed),
            };
            if limits.is_some_and(|limits| parcel.is_full(image.size(), limits)) {
                full.push(std::mem::take(&mut parcel));
            }
            parcel.add(&image);
        }
    }
    if parcel.images > 0 {
        full.push(parcel);
    }
    full
}

fn content(changed: &ChangedDocument) -> &[u8] {
    match &changed.body {
        Some(body) => body.as_bytes(),
        None => changed.deleted_id.as_deref().unwrap_or_default(),
    }
}

fn length(out: &mut Vec<u8>, length: usize) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "${length}\r\n");
}

fn bulk_string(out: &mut Vec<u8>, text: &[u8]) {
    length(out, text.len());
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}
