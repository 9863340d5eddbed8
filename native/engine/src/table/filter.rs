//! A Bloom filter whose bits for one key lie in one cache line.
//!
//! ```text
//! filter := line{64 bytes}* probes{u8}
//! ```
//!
//! At ten bits per key, about one in a hundred missing keys passes.

const LINE_BYTES: usize = 64;
const LINE_BITS: u32 = 512;

/// The filter over keys with these hashes.
pub(crate) fn build(hashes: &[u64], bits_per_key: usize) -> Vec<u8> {
    let lines = (hashes.len() * bits_per_key)
        .div_ceil(LINE_BITS as usize)
        .max(1);
    // ln 2 times the bits per key, slightly fewer because the lines are not filled evenly.
    let probes = u8::try_from((bits_per_key * 69 / 100).clamp(1, 12)).unwrap_or(1);
    let mut bytes = vec![0_u8; lines * LINE_BYTES];
    for &hash in hashes {
        let start = line_of(hash, lines) * LINE_BYTES;
        let Some(line) = bytes.get_mut(start..start + LINE_BYTES) else {
            continue;
        };
        for bit in bits_of(hash, probes) {
            if let Some(byte) = line.get_mut(bit as usize / 8) {
                *byte |= 1 << (bit % 8);
            }
        }
    }
    bytes.push(probes);
    bytes
}

/// Whether a key with this hash may be present. Bytes that are not a filter admit every key.
#[inline]
pub(crate) fn may_contain(filter: &[u8], hash: u64) -> bool {
    let Some((&probes, bits)) = filter.split_last() else {
        return true;
    };
    let lines = bits.len() / LINE_BYTES;
    if lines == 0 {
        return true;
    }
    let start = line_of(hash, lines) * LINE_BYTES;
    let Some(line) = bits.get(start..start + LINE_BYTES) else {
        return true;
    };
    let set = |bit: u32| {
        line.get(bit as usize / 8)
            .is_none_or(|byte| byte & 1 << (bit % 8) != 0)
    };
    bits_of(hash, probes).all(set)
}

/// The upper half of the hash, scaled to the number of lines.
#[inline]
pub(crate) fn line_of(hash: u64, lines: usize) -> usize {
    crate::coding::to_usize(((hash >> 32) * lines as u64) >> 32)
}

#[inline]
pub(crate) fn bits_of(hash: u64, probes: u8) -> impl Iterator<Item = u32> {
    let low = (hash & 0xffff_ffff) as u32;
    let step = low.rotate_left(15).wrapping_mul(0x9e37_79b9) | 1;
    (0..u32::from(probes)).map(move |probe| low.wrapping_add(step.wrapping_mul(probe)) >> 23)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::hash;

    #[test]
    fn every_key_passes_and_few_others_do() {
        let hashes: Vec<u64> = (0..10_000_u32)
            .map(|key| hash(&key.to_be_bytes()))
            .collect();
        let filter = build(&hashes, 10);
        assert!(hashes.iter().all(|&key| may_contain(&filter, key)));
        let others = (10_000..60_000_u32).map(|key| hash(&key.to_be_bytes()));
        let passed = others.filter(|&key| may_contain(&filter, key)).count();
        assert!(passed < 1000, "{passed} of 50,000 passed");
    }

    #[test]
    fn bytes_that_are_no_filter_hide_nothing() {
        assert!(may_contain(&[], 7));
        assert!(may_contain(&[1, 2, 3], 7));
    }
}
