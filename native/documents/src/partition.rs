//! The write partitions of documents, by the hashes of their keys.

/// The maximum number of write partitions in a grid.
const MAX_WRITE_PARTITIONS: u16 = 64;
/// Up to this many hashes cover a batch unchanged.
const FEW_HASHES: usize = 500;

/// The write partition of a document, by the hash of its key.
#[must_use]
pub fn hash_partition(hash: i32, partitions: u16) -> u16 {
    let partition = hash.cast_unsigned() % u32::from(partitions.max(1));
    u16::try_from(partition).unwrap_or(0)
}

/// Hashes of keys that cover the same write partitions as all of these, in every grid. The rows of
/// an atomic batch are stored with them, and grids differ in their number of partitions.
#[must_use]
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{FEW_HASHES, MAX_WRITE_PARTITIONS, covering_hashes, hash_partition};

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
