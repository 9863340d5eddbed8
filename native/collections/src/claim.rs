//! Claims: what a server records with a write, so that a repeated call gets the result of the first.
//!
//! A claim is recorded in the batch of its documents, and is read under the commit queue: so a write
//! is executed once, however many have its key.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};
use rillbase_documents::outcome::{Outcomes, WriteResult};
use rillbase_documents::write_format::encode_result;
use rillbase_engine::{Durability, Millis, WriteBatch};

use crate::error::{Error, Result};
use crate::store::Collections;

const VERSION: u8 = 1;
/// How long a claim is recorded.
const CLAIM_MS: Millis = 24 * 3_600_000;

/// The claim of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionClaim {
    /// The number of the namespace.
    pub namespace: u64,
    /// The key of the write, unique in the namespace.
    pub key: Vec<u8>,
    /// Identifies the request.
    pub request_hash: Vec<u8>,
    /// What the server needs to continue or to answer; may be empty.
    pub state: Vec<u8>,
}

/// The recorded claim of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRecord {
    /// Identifies the request.
    pub request_hash: Vec<u8>,
    /// What the server recorded.
    pub state: Vec<u8>,
    /// The encoded result of the write.
    pub result: Vec<u8>,
}

/// The result of a write with a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedResult {
    /// Whether the write was recorded before, so that nothing was written.
    pub is_replayed: bool,
    /// The claim with its result.
    pub record: ClaimRecord,
}

impl CollectionClaim {
    /// The number by which writes with equal keys use the same commit queue.
    pub(crate) fn queue_number(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.namespace, &self.key).hash(&mut hasher);
        hasher.finish()
    }

    pub(crate) fn has_key_of(&self, other: &Self) -> bool {
        (self.namespace, &self.key) == (other.namespace, &other.key)
    }

    /// The record to replay; `None` if the write may be executed.
    pub(crate) fn replay(&self, recorded: Option<ClaimRecord>) -> Result<Option<ClaimRecord>> {
        match recorded {
            Some(record) if record.request_hash != self.request_hash => Err(Error::Mismatch),
            other => Ok(other),
        }
    }

    fn record(&self, result: &WriteResult) -> ClaimRecord {
        ClaimRecord {
            request_hash: self.request_hash.clone(),
            state: self.state.clone(),
            result: encode_result(result),
        }
    }
}

impl ClaimRecord {
    /// `1 request-hash:slice state:slice result:slice`
    fn encode(&self) -> Vec<u8> {
        let length = self.request_hash.len() + self.state.len() + self.result.len();
        let mut out = Vec::with_capacity(length + 32);
        out.push(VERSION);
        out.put_slice(&self.request_hash);
        out.put_slice(&self.state);
        out.put_slice(&self.result);
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self> {
        read(bytes).map_err(|_| Error::Malformed("a claim"))
    }
}

fn read(bytes: &[u8]) -> ReadResult<ClaimRecord> {
    let mut reader = ByteReader::new(bytes);
    let version = reader.byte()?;
    reader.check((version == VERSION).then_some(()), "version 1")?;
    let record = ClaimRecord {
        request_hash: reader.slice()?.to_vec(),
        state: reader.slice()?.to_vec(),
        result: reader.slice()?.to_vec(),
    };
    reader.finish()?;
    Ok(record)
}

/// The key under which a claim is recorded.
fn claim_key(namespace: u64, key: &[u8]) -> Vec<u8> {
    [&namespace.to_be_bytes(), key].concat()
}

impl Collections {
    /// The recorded claim with a key.
    pub(crate) fn claim(&self, namespace: u64, key: &[u8]) -> Result<Option<ClaimRecord>> {
        let key = claim_key(namespace, key);
        let stored = self.db.get(&self.claims, &key)?;
        stored.map(|value| ClaimRecord::decode(&value)).transpose()
    }

    /// Removes the claims of a namespace.
    pub fn remove_claims(&self, namespace: u64) -> Result<()> {
        let (start, end) = (
            namespace.to_be_bytes(),
            namespace.saturating_add(1).to_be_bytes(),
        );
        let mut scan = self.db.scan_prefix(&self.claims, &start, None)?;
        scan.first()?;
        if scan.is_valid() {
            let mut batch = WriteBatch::new();
            batch.delete_range(&self.claims, &start, &end);
            self.db.write(batch, Durability::Sync)?;
        }
        Ok(())
    }

    /// The result of an executed write with a claim, which is added to the batch if it is recorded.
    pub(crate) fn put_claim(
        &self,
        (batch, now): (&mut WriteBatch, Millis),
        claim: &CollectionClaim,
        result: &WriteResult,
    ) -> ClaimedResult {
        let record = claim.record(result);
        // A write that changes nothing can be repeated without one.
        let is_effective = |outcomes: &Outcomes| outcomes.iter().any(std::result::Result::is_ok);
        if result.as_ref().is_ok_and(is_effective) {
            let key = claim_key(claim.namespace, &claim.key);
            let expiry = now.saturating_add(CLAIM_MS);
            batch.put_expiring(&self.claims, &key, &record.encode(), expiry);
        }
        ClaimedResult {
            is_replayed: false,
            record,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_round_trips_and_a_cut_one_is_malformed() {
        let record = ClaimRecord {
            request_hash: vec![7; 32],
            state: b"state".to_vec(),
            result: b"result".to_vec(),
        };
        let bytes = record.encode();
        assert_eq!(ClaimRecord::decode(&bytes).unwrap(), record);
        for length in 0..bytes.len() {
            assert!(ClaimRecord::decode(&bytes[..length]).is_err());
        }
    }
}
