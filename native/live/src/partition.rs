//! The write partition of a document and the query partition of a query.
//!
//! `documents/outbox/events.lua` and the statement in `realtime/grid/documents.py` compute write
//! partitions of stored hashes themselves. `tests/partitions.tsv` has the vectors that all agree on.

use rillbase_documents::id::key_hash;
use rillbase_documents::partition::hash_partition;

use crate::message::QueryHash;

/// The write partition of a document.
pub fn write_partition(key: &[u8], partitions: u16) -> u16 {
    hash_partition(key_hash(key), partitions)
}

/// The query partition of a query: its first eight bytes, as a number, decide.
pub fn query_partition(hash: &QueryHash, partitions: u16) -> u16 {
    let (first, _) = hash.0.split_first_chunk().unwrap_or((&[0; 8], &[]));
    remainder(u64::from_be_bytes(*first), partitions)
}

fn remainder(number: u64, partitions: u16) -> u16 {
    let partition = number % u64::from(partitions.max(1));
    u16::try_from(partition).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{hash_partition, query_partition, write_partition};
    use crate::message::QueryHash;

    fn bytes(hex: &str) -> Vec<u8> {
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        hex.as_bytes().chunks_exact(2).map(byte).collect()
    }

    #[test]
    fn partitions_are_those_of_the_test_vectors() {
        let vectors = include_str!("../tests/partitions.tsv").lines().skip(1);
        assert!(vectors.clone().count() > 20);
        for vector in vectors {
            let fields: Vec<&str> = vector.split('\t').collect();
            let [kind, name, hash, partitions, expected] = fields[..] else {
                panic!("{vector}");
            };
            let (name, partitions) = (bytes(name), partitions.parse().unwrap());
            let partition = if kind == "query" {
                query_partition(&QueryHash(name.try_into().unwrap()), partitions)
            } else {
                assert_eq!(
                    hash_partition(hash.parse().unwrap(), partitions).to_string(),
                    expected
                );
                write_partition(&name, partitions)
            };
            assert_eq!(partition.to_string(), expected, "{vector}");
        }
    }
}
