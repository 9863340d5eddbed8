//! Columns of rows as one-dimensional arrays in PostgreSQL's binary format, with which a statement
//! takes all rows of a batch at once.

/// From 1970 to 2000.
const EPOCH_2000_US: i64 = 946_684_800_000_000;

/// Type OIDs of PostgreSQL's catalogue.
mod oid {
    pub(super) const BOOL: i32 = 16;
    pub(super) const BYTEA: i32 = 17;
    pub(super) const INT8: i32 = 20;
    pub(super) const INT4: i32 = 23;
    pub(super) const TIMESTAMPTZ: i32 = 1184;
}

/// Byte strings; `None` is null.
#[must_use]
pub fn byteas<'a>(items: impl Iterator<Item = Option<&'a [u8]>> + Clone) -> Vec<u8> {
    array(oid::BYTEA, items, |out, item| {
        out.extend_from_slice(&length(item.len()));
        out.extend_from_slice(item);
    })
}

/// 32-bit numbers.
#[must_use]
pub fn int4s(items: impl Iterator<Item = i32> + Clone) -> Vec<u8> {
    array(oid::INT4, items.map(Some), |out, item| {
        fixed(out, item.to_be_bytes());
    })
}

/// 64-bit numbers.
#[must_use]
pub fn int8s(items: impl Iterator<Item = i64> + Clone) -> Vec<u8> {
    array(oid::INT8, items.map(Some), |out, item| {
        fixed(out, item.to_be_bytes());
    })
}

/// Times in microseconds since 2000, as in rows.
#[must_use]
pub fn timestamps(items: impl Iterator<Item = Option<i64>> + Clone) -> Vec<u8> {
    array(oid::TIMESTAMPTZ, items, |out, item| {
        fixed(out, item.to_be_bytes());
    })
}

/// Microseconds since 2000 as milliseconds since 1970.
pub(crate) const fn unix_ms(moment_us: i64) -> i64 {
    moment_us.saturating_add(EPOCH_2000_US).div_euclid(1000)
}

/// Milliseconds since 1970 as microseconds since 2000, as in rows.
#[must_use]
pub const fn row_us(unix_ms: i64) -> i64 {
    unix_ms.saturating_mul(1000).saturating_sub(EPOCH_2000_US)
}

/// True or false.
#[must_use]
pub fn bools(items: impl Iterator<Item = bool> + Clone) -> Vec<u8> {
    array(oid::BOOL, items.map(Some), |out, item| {
        fixed(out, [u8::from(item)]);
    })
}

fn array<T>(
    element: i32,
    items: impl Iterator<Item = Option<T>> + Clone,
    mut put: impl FnMut(&mut Vec<u8>, T),
) -> Vec<u8> {
    let (count, nulls) = items.clone().fold((0, false), |(count, nulls), item| {
        (count + 1, nulls || item.is_none())
    });
    let dimensions = i32::from(count > 0);
    let mut out = Vec::with_capacity(20 + 16 * count);
    for number in [dimensions, i32::from(nulls), element] {
        out.extend_from_slice(&number.to_be_bytes());
    }
    if count > 0 {
        out.extend_from_slice(&length(count));
        out.extend_from_slice(&1_i32.to_be_bytes());
    }
    for item in items {
        match item {
            Some(item) => put(&mut out, item),
            None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
        }
    }
    out
}

fn fixed<const N: usize>(out: &mut Vec<u8>, bytes: [u8; N]) {
    out.extend_from_slice(&length(N));
    out.extend_from_slice(&bytes);
}

/// PostgreSQL rejects lengths beyond a signed 32-bit number.
fn length(length: usize) -> [u8; 4] {
    i32::try_from(length).unwrap_or(i32::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::{byteas, int4s};

    #[test]
    fn an_array_states_its_dimension_type_length_and_lower_bound() {
        let packed = int4s([7].into_iter());
        let expected = [
            0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 7,
        ];
        assert_eq!(packed, expected);
    }

    #[test]
    fn a_null_has_no_length_and_is_announced() {
        let packed = byteas([Some(b"a".as_slice()), None].into_iter());
        let expected = [
            0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 17, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 97, 255, 255,
            255, 255,
        ];
        assert_eq!(packed, expected);
    }

    #[test]
    fn an_empty_array_has_no_dimension() {
        assert_eq!(
            int4s(std::iter::empty()),
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 23]
        );
    }
}
