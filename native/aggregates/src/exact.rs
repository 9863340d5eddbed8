//! The encoding of exact sums of doubles ([`ExactSum`]): the numbers of NaNs and infinities, then
//! the limbs.

use rillbase_query::exact::ExactSum;

use crate::coding::{ValueReader, put_signed, put_varint};

/// Appends a sum.
pub(crate) fn write(sum: &ExactSum, out: &mut Vec<u8>) {
    for count in sum.specials() {
        put_signed(out, count.into());
    }
    put_varint(out, sum.limbs().len() as u64);
    for &(place, digit) in sum.limbs() {
        out.push(place);
        put_signed(out, digit.into());
    }
}

/// Decodes a sum.
pub(crate) fn read(reader: &mut ValueReader<'_>) -> Option<ExactSum> {
    let specials = [
        reader.signed_64()?,
        reader.signed_64()?,
        reader.signed_64()?,
    ];
    let count = reader.count()?;
    let limbs = (0..count).map(|_| Some((reader.byte()?, i32::try_from(reader.signed()?).ok()?)));
    ExactSum::from_parts(specials, limbs.collect::<Option<_>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_sum_is_read_as_it_was_written(doubles in prop::collection::vec(any::<f64>(), 0..20)) {
            let mut sum = ExactSum::default();
            doubles.iter().for_each(|double| sum.add(*double, 1));
            let mut bytes = Vec::new();
            write(&sum, &mut bytes);
            prop_assert_eq!(read(&mut ValueReader(&bytes)), Some(sum));
        }
    }
}
