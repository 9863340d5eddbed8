//! Lengths as numbers of other widths, and what bytes share.

/// A length or offset that is known to fit; values beyond `usize` saturate and are then rejected by
/// the following bounds check.
pub(crate) fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A count or offset within one block or batch, whose size is checked to be below 4 GiB.
pub(crate) fn to_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// How many leading bytes two strings share.
#[inline]
pub(crate) fn common_prefix(left: &[u8], right: &[u8]) -> usize {
    let mut shared = 0;
    let wide = left.chunks_exact(8).zip(right.chunks_exact(8));
    for (l, r) in wide {
        if l != r {
            break;
        }
        shared += 8;
    }
    let rest = left.iter().skip(shared).zip(right.iter().skip(shared));
    shared + rest.take_while(|(l, r)| l == r).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_prefix_counts_to_the_first_difference() {
        assert_eq!(common_prefix(b"0123456789ab", b"0123456789xb"), 10);
        assert_eq!(common_prefix(b"abc", b"abc"), 3);
        assert_eq!(common_prefix(b"", b"abc"), 0);
    }
}
