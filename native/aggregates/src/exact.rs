//! The encoding of exact sums of doubles ([`ExactSum`]): the numbers of NaNs and infinities, then
//! the limbs.

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};
use rillbase_query::exact::ExactSum;

/// Appends a sum.
pub(crate) fn write(sum: &ExactSum, out: &mut Vec<u8>) {
    for count in sum.specials() {
        out.put_signed(count.into());
    }
    out.put_varint(sum.limbs().len() as u64);
    for &(position, digit) in sum.limbs() {
        out.push(position);
        out.put_signed(digit.into());
    }
}

/// Decodes a sum.
pub(crate) fn read(reader: &mut ByteReader<'_>) -> ReadResult<ExactSum> {
    let specials = [
        reader.signed_64()?,
        reader.signed_64()?,
        reader.signed_64()?,
    ];
    let count = reader.count()?;
    let limbs = (0..count).map(|_| {
        let (position, digit) = (reader.byte()?, reader.signed()?.try_into().ok());
        Ok((position, reader.check(digit, "a limb")?))
    });
    let sum = ExactSum::from_parts(specials, limbs.collect::<ReadResult<_>>()?);
    reader.check(sum, "an exact sum")
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
            prop_assert_eq!(read(&mut ByteReader::new(&bytes)), Ok(sum));
        }
    }
}
