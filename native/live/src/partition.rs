//! The write partition of a document and the query partition of a query.
//!
//! `documents/outbox/events.lua` and the statement in `realtime/grid/documents.py` compute write
//! partitions of stored hashes themselves. `tests/partitions.tsv` has the vectors that all agree on.

use rillbase_documents::id::{hash_partition, key_hash};

use crate::message::QueryHash;

/// The maximum number of write partitions in a grid.
const MAX_WRITE_PARTITIONS: u16 = 64;
/// Up to this many hashes cover a batch unchanged.
const FEW_HASHES: usize = 500;

/// The write partition of a document.
pub fn write_partition(key: &[u8], partitions: u16) -> u16 {
    hash_partition(key_hash(key), partitions)
}

/// The query partition of a query: its first eight bytes, as a number, decide.
pub fn query_partition(hash: &QueryHash, partitions: u16) -> u16 {
    let (first, _) = hash.0.split_first_chunk().unwrap_or((&[0; 8], &[]));
    remainder(u64::from_be_bytes(*first), partitions)
}

/// Hashes of keys that cover the same write partitions as all of these, in every grid. The rows of
/// an atomic batch are stored with them, and grids differ in their number of partitions.
pub fn covering_hashes(hashes: Vec<i32>) -> Vec<i32> {
    if hashes.len() <= FEW_HASHES {
        return hashes;
    }
    // By number of partitions, a bit for each partition that no chosen hash covers yet.
    let mut missing: Vec<(u16, u64)> = (1..=MAX_WRITE_PARTITIONS)
        .map(|partitions| (partitions, u64::MAX >> (MAX_WRITE_PARTITIONS - partitions)))
        .collect();
    let mut chosen = Vec::new();
    for hash in hashes {
        let mut is_needed = false;
        for (partitions, bits) in &mut missing {
            let bit = 1_u64 << hash_partition(hash, *partitions);
            is_needed |= *bits & bit != 0;
            *bits &= !bit;
        }
        if is_needed {
            chosen.push(hash);
            missing.retain(|(_, bits)| *bits != 0);
            if missing.is_empty() {
                break;
            }
        }
    }
    chosen
}

fn remainder(number: u64, partitions: u16) -> u16 {
    let partition = number % u64::from(partitions.max(1));
    u16::try_from(partition).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{
        FEW_HASHES, MAX_WRITE_PARTITIONS, covering_hashes, hash_partition, query_partition,
        write_partition,
    };
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

    #[test]
    fn few_hashes_cover_very_many() {
        for skipped in [1, 3, 64] {
            // Some partitions of every grid are not touched.
            let hashes: Vec<i32> = (1_u32..20_000)
                .map(|n| i32::try_from(n.wrapping_mul(2_654_435_761) >> 1).unwrap())
                .filter(|hash| skipped == 1 || hash % skipped != 0)
                .collect();
            let covering = covering_hashes(hashes.clone());
            assert!(covering.len() <= FEW_HASHES);
            for partitions in 1..=MAX_WRITE_PARTITIONS {
                let touched = |hashes: &[i32]| -> BTreeSet<u16> {
                    hashes
                        .iter()
                        .map(|hash| hash_partition(*hash, partitions))
                        .collect()
                };
                assert_eq!(touched(&covering), touched(&hashes));
            }
        }
    }

    #[test]
    fn the_hashes_of_a_small_batch_cover_it_as_they_are() {
        assert_eq!(covering_hashes(vec![5, -7, 9]), [5, -7, 9]);
    }
}
