//! The state of a row's measures, and how two rows are merged.
//!
//! ```text
//! row   := state*                            one for each slot of the definition, in its order
//! state := 00 signed                         a count
//!        | 01 signed                         an exact sum of integers, or of scaled decimals
//!        | 02 sum                            an exact sum of doubles
//!        | 03 slice | 04 slice               the least, the greatest value; empty: none
//!        | 05 registers                      distinct values, about
//!        | 06 bins                           counted bins, for quantiles
//! ```
//!
//! A row's value and the operands that change it have the same form and are merged by one rule:
//! slot by slot, each kind by an operation that is associative and commutative. So neither the
//! order nor the grouping of deltas matters.

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};
use rillbase_engine::Merge;
use rillbase_query::exact::ExactSum;

use crate::distinct::Distinct;
use crate::exact;
use crate::sketch::Sketch;

/// What a slot holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotValue {
    /// A count.
    Count(i64),
    /// A sum of integers. Values are bounded so that 2^40 of them fit.
    Whole(i128),
    /// A sum of doubles.
    Exact(ExactSum),
    /// The minimum, in the sortable encoding; empty if there is none.
    Least(Vec<u8>),
    /// The maximum.
    Greatest(Vec<u8>),
    /// Distinct values.
    Distinct(Distinct),
    /// Quantiles.
    Sketch(Sketch),
}

/// A count or a sum of integers; zero for other slots.
pub(crate) fn whole(slot: Option<&SlotValue>) -> i128 {
    match slot {
        Some(SlotValue::Whole(sum)) => *sum,
        Some(SlotValue::Count(count)) => (*count).into(),
        _ => 0,
    }
}

impl SlotValue {
    /// Merges another of the same kind. Another kind would belong to another definition, which
    /// cannot occur: keys start with the definition's generation.
    pub fn merge(&mut self, other: &Self) {
        match (self, other) {
            (Self::Count(own), Self::Count(other)) => *own = own.saturating_add(*other),
            (Self::Whole(own), Self::Whole(other)) => *own = own.saturating_add(*other),
            (Self::Exact(own), Self::Exact(other)) => own.merge(other),
            (Self::Least(own), Self::Least(other)) => least(own, other),
            (Self::Greatest(own), Self::Greatest(other)) => greatest(own, other),
            (Self::Distinct(own), Self::Distinct(other)) => own.merge(other),
            (Self::Sketch(own), Self::Sketch(other)) => own.merge(other),
            _ => {}
        }
    }

    /// Whether it is the initial value.
    fn is_nothing(&self) -> bool {
        match self {
            Self::Count(count) => *count == 0,
            Self::Whole(sum) => *sum == 0,
            Self::Exact(sum) => *sum == ExactSum::default(),
            Self::Least(value) | Self::Greatest(value) => value.is_empty(),
            Self::Distinct(set) => *set == Distinct::default(),
            Self::Sketch(sketch) => *sketch == Sketch::default(),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Count(count) => {
                out.push(0);
                out.put_signed((*count).into());
            }
            Self::Whole(sum) => {
                out.push(1);
                out.put_signed(*sum);
            }
            Self::Exact(sum) => {
                out.push(2);
                exact::write(sum, out);
            }
            Self::Least(value) => {
                out.push(3);
                out.put_slice(value);
            }
            Self::Greatest(value) => {
                out.push(4);
                out.put_slice(value);
            }
            Self::Distinct(set) => {
                out.push(5);
                set.write(out);
            }
            Self::Sketch(sketch) => {
                out.push(6);
                sketch.write(out);
            }
        }
    }

    /// The first slot of a row: the number of contributions.
    pub(crate) fn first(row: &[u8]) -> ReadResult<Self> {
        Self::read(&mut ByteReader::new(row))
    }

    fn read(reader: &mut ByteReader<'_>) -> ReadResult<Self> {
        Ok(match reader.byte()? {
            0 => Self::Count(reader.signed_64()?),
            1 => Self::Whole(reader.signed()?),
            2 => Self::Exact(exact::read(reader)?),
            3 => Self::Least(reader.slice()?.to_vec()),
            4 => Self::Greatest(reader.slice()?.to_vec()),
            5 => Self::Distinct(Distinct::read(reader)?),
            6 => Self::Sketch(Sketch::read(reader)?),
            _ => return Err(reader.error("a kind of slot")),
        })
    }
}

/// Keeps the lesser of two values, either of which may be missing.
pub(crate) fn least(own: &mut Vec<u8>, other: &[u8]) {
    if own.is_empty() || (!other.is_empty() && other < own.as_slice()) {
        other.clone_into(own);
    }
}

/// Keeps the greater of two values.
pub(crate) fn greatest(own: &mut Vec<u8>, other: &[u8]) {
    if other > own.as_slice() {
        other.clone_into(own);
    }
}

const USUAL_STATES: usize = 4;

/// What a row keeps, slot by slot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowState(pub Vec<SlotValue>);

impl RowState {
    /// Merges another row of the same definition.
    pub fn merge(&mut self, other: &Self) {
        if self.0.is_empty() {
            self.0.clone_from(&other.0);
            return;
        }
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            own.merge(other);
        }
    }

    /// Its encoding.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 * self.0.len());
        self.0.iter().for_each(|state| state.write(&mut out));
        out
    }

    /// Decodes it.
    pub fn from_bytes(bytes: &[u8]) -> ReadResult<Self> {
        let mut row = Self(Vec::with_capacity(USUAL_STATES));
        row.read(bytes)?;
        Ok(row)
    }

    /// Decodes another row into this one.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> ReadResult<()> {
        let mut reader = ByteReader::new(bytes);
        self.0.clear();
        while !reader.is_empty() {
            self.0.push(SlotValue::read(&mut reader)?);
        }
        Ok(())
    }
}

/// Merges rows in the engine.
#[derive(Debug, Default, Clone, Copy)]
pub struct Fold;

impl Fold {
    /// Malformed bytes are ignored: checksums verify what was written.
    fn fold<'a>(rows: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
        let (mut folded, mut row) = (RowState::default(), RowState::default());
        for bytes in rows {
            if row.read(bytes).is_ok() {
                folded.merge(&row);
            }
        }
        folded.to_bytes()
    }
}

impl Merge for Fold {
    fn name(&self) -> &'static str {
        "rillbase.aggregates.1"
    }

    fn full(&self, _: &[u8], below: Option<&[u8]>, operands: &[&[u8]]) -> Vec<u8> {
        if let (None, [one]) = (below, operands) {
            return one.to_vec();
        }
        Self::fold(below.into_iter().chain(operands.iter().copied()))
    }

    fn partial(&self, _: &[u8], operands: &[&[u8]]) -> Option<Vec<u8>> {
        Some(Self::fold(operands.iter().copied()))
    }

    fn is_value_alone(&self) -> bool {
        true
    }

    /// Rows and items from which everything has been retracted.
    fn is_nothing(&self, value: &[u8]) -> bool {
        RowState::from_bytes(value).is_ok_and(|row| row.0.iter().all(SlotValue::is_nothing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::Accuracy;
    use proptest::prelude::*;

    fn row() -> impl Strategy<Value = RowState> {
        let double = prop_oneof![any::<f64>(), -1e6_f64..1e6];
        (any::<i32>(), any::<i64>(), double, any::<Vec<u8>>()).prop_map(
            |(count, whole, double, bytes)| {
                let (mut exact, mut set) = (ExactSum::default(), Distinct::default());
                let mut sketch = Sketch::default();
                exact.add(double, 1);
                set.add(&bytes);
                sketch.add(Accuracy::new(0.01), double, 1);
                RowState(vec![
                    SlotValue::Count(count.into()),
                    SlotValue::Whole(whole.into()),
                    SlotValue::Exact(exact),
                    SlotValue::Least(bytes.clone()),
                    SlotValue::Greatest(bytes),
                    SlotValue::Distinct(set),
                    SlotValue::Sketch(sketch),
                ])
            },
        )
    }

    proptest! {
        #[test]
        fn deltas_fold_to_the_same_bytes_in_any_order_and_grouping(
            rows in prop::collection::vec(row(), 1..8),
            turn in any::<prop::sample::Index>(),
            cut in any::<prop::sample::Index>(),
        ) {
            let bytes: Vec<Vec<u8>> = rows.iter().map(RowState::to_bytes).collect();
            let slices: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
            let whole = Fold.full(b"", None, &slices);
            let mut turned = slices.clone();
            turned.rotate_left(turn.index(slices.len()));
            let (left, right) = turned.split_at(cut.index(slices.len()));
            let right = Fold.partial(b"", right).unwrap();
            let below = Fold.full(b"", None, left);
            prop_assert_eq!(&whole, &Fold.full(b"", Some(&below), &[&right]));
            prop_assert_eq!(RowState::from_bytes(&whole).unwrap().to_bytes(), whole);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in any::<Vec<u8>>()) {
            let _ = RowState::from_bytes(&bytes);
        }
    }
}
