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

/// Images that are appended together.
#[derive(Debug, Default)]
pub struct Parcel {
    /// The number of images.
    pub images: usize,
    /// Two arguments for each.
    pub arguments: Vec<u8>,
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
            let filled = parcel.arguments.len().saturating_add(size(changed));
            let is_full =
                |limits: ParcelLimits| parcel.images >= limits.images || filled > limits.bytes;
            if parcel.images > 0 && limits.is_some_and(is_full) {
                full.push(std::mem::take(&mut parcel));
            }
            let out = &mut parcel.arguments;
            bulk_string(out, changed.key_hash.to_string().as_bytes());
            length(out, size(changed));
            head(out, transaction, collection, changed);
            for number in [
                changed.version,
                *rules,
                changes.created_ms(changed),
                changes.now_ms.saturating_mul(1000),
            ] {
                out.extend_from_slice(&number.to_be_bytes());
            }
            contents(out, changed);
            parcel.images += 1;
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

fn size(changed: &ChangedDocument) -> usize {
    HEAD_BYTES + changed.key.len() + content(changed).len()
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

fn head(
    out: &mut Vec<u8>,
    transaction: ImageTransaction<'_>,
    collection: &[u8; 16],
    changed: &ChangedDocument,
) {
    let kind = if changed.body.is_some() { PUT } else { DELETE };
    out.extend_from_slice(&[FORMAT, kind]);
    out.extend_from_slice(&transaction.xid.to_be_bytes());
    out.extend_from_slice(&transaction.tenant);
    out.extend_from_slice(collection);
}

/// Lengths, key and content, to the end of the bulk string.
fn contents(out: &mut Vec<u8>, changed: &ChangedDocument) {
    let content = content(changed);
    // Keys have at most a kilobyte and documents 16 MiB.
    let key_length = u16::try_from(changed.key.len()).unwrap_or(u16::MAX);
    let content_length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&key_length.to_be_bytes());
    out.extend_from_slice(&content_length.to_be_bytes());
    out.extend_from_slice(&changed.key);
    out.extend_from_slice(content);
    out.extend_from_slice(b"\r\n");
}
