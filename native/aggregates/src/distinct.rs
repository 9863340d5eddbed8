//! The approximate number of distinct values: `HyperLogLog`.
//!
//! Of each value's hash, 12 bits select a register, which keeps the longest run of zeros in the
//! other bits. Merging takes the longer run, so that order and repetition never matter. While few
//! registers are filled they are stored as a list. The estimate is Ertl's, which needs no tables
//! and no corrections; its standard error is 1.04 ÷ √4096 = 1.6 %.

use std::hash::Hasher as _;

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};

use crate::hash::Hasher;

/// Bits of a hash that select a register.
const BITS: u32 = 12;
const REGISTERS: usize = 1 << BITS;
/// The longest distinguishable run.
const LONGEST: u8 = 64 - 12 + 1;
/// With this many filled registers all are stored.
const DENSE_FROM: usize = 1024;

/// A set of values, remembered by hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distinct(HllRegisters);

#[derive(Debug, Clone, PartialEq, Eq)]
enum HllRegisters {
    /// The filled ones, by index.
    Sparse(Vec<(u16, u8)>),
    Dense(Box<[u8]>),
}

impl Default for Distinct {
    fn default() -> Self {
        Self(HllRegisters::Sparse(Vec::new()))
    }
}

impl Distinct {
    /// Adds a value, by its bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        let mut hasher = Hasher::default();
        hasher.write(bytes);
        let hash = hasher.finish();
        let register = (hash >> (64 - BITS)) as u16;
        let run = (hash << BITS | 1 << (BITS - 1)).leading_zeros() as u8 + 1;
        self.raise(register, run);
    }

    fn raise(&mut self, register: u16, run: u8) {
        match &mut self.0 {
            HllRegisters::Dense(all) => {
                if let Some(register) = all.get_mut(usize::from(register)) {
                    *register = (*register).max(run);
                }
            }
            HllRegisters::Sparse(some) => {
                match some.binary_search_by_key(&register, |(at, _)| *at) {
                    Ok(at) => {
                        if let Some((_, register)) = some.get_mut(at) {
                            *register = (*register).max(run);
                        }
                    }
                    Err(at) => some.insert(at, (register, run)),
                }
                if some.len() >= DENSE_FROM {
                    self.become_dense();
                }
            }
        }
    }

    fn become_dense(&mut self) {
        let mut all = vec![0; REGISTERS].into_boxed_slice();
        self.each(|register, run| {
            if let Some(register) = all.get_mut(usize::from(register)) {
                *register = run;
            }
        });
        self.0 = HllRegisters::Dense(all);
    }

    /// Passes all filled registers.
    fn each(&self, mut take: impl FnMut(u16, u8)) {
        match &self.0 {
            HllRegisters::Sparse(some) => {
                some.iter().for_each(|&(register, run)| take(register, run));
            }
            HllRegisters::Dense(all) => {
                for (register, &run) in (0..).zip(all) {
                    if run > 0 {
                        take(register, run);
                    }
                }
            }
        }
    }

    /// Adds all values of another set.
    pub fn merge(&mut self, other: &Self) {
        other.each(|register, run| self.raise(register, run));
    }

    /// The approximate number of values.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an estimate is rounded; it is never negative"
    )]
    pub fn estimate(&self) -> u64 {
        let mut counts = [0_u32; LONGEST as usize + 1];
        let mut filled = 0_u32;
        self.each(|_, run| {
            filled += 1;
            if let Some(count) = counts.get_mut(usize::from(run)) {
                *count += 1;
            }
        });
        let all = REGISTERS as f64;
        let [first, .., last] = &mut counts;
        *first = REGISTERS as u32 - filled;
        let mut sum = all * tau((all - f64::from(*last)) / all);
        for &count in counts.iter().rev().skip(1).take(LONGEST as usize - 1) {
            sum = 0.5 * (sum + f64::from(count));
        }
        let [first, ..] = counts;
        sum += all * sigma(f64::from(first) / all);
        (all * all / (2.0 * std::f64::consts::LN_2 * sum)).round() as u64
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match &self.0 {
            HllRegisters::Sparse(some) => {
                out.put_varint(some.len() as u64);
                for &(register, run) in some {
                    out.extend_from_slice(&register.to_be_bytes());
                    out.push(run);
                }
            }
            HllRegisters::Dense(all) => {
                out.put_varint(REGISTERS as u64);
                out.extend_from_slice(all);
            }
        }
    }

    pub(crate) fn read(reader: &mut ByteReader<'_>) -> ReadResult<Self> {
        let count = reader.count()?;
        if count == REGISTERS {
            let all = reader.take(REGISTERS)?;
            let valid = all.iter().all(|&run| run <= LONGEST);
            return reader.check(
                valid.then(|| Self(HllRegisters::Dense(all.into()))),
                "registers",
            );
        }
        let mut some = Vec::with_capacity(count);
        for _ in 0..count {
            let register = reader.u16_be()?;
            let run = reader.byte()?;
            let ascends = some.last().is_none_or(|&(before, _)| before < register);
            if !ascends || usize::from(register) >= REGISTERS || !(1..=LONGEST).contains(&run) {
                return Err(reader.error("ascending registers"));
            }
            some.push((register, run));
        }
        let sparse = (count < DENSE_FROM).then_some(Self(HllRegisters::Sparse(some)));
        reader.check(sparse, "few registers")
    }
}

/// The contribution of empty registers.
fn sigma(mut share: f64) -> f64 {
    if share >= 1.0 {
        return f64::INFINITY;
    }
    let (mut weight, mut sum) = (1.0, share);
    loop {
        share *= share;
        let before = sum;
        sum += share * weight;
        weight += weight;
        if sum <= before {
            return sum;
        }
    }
}

/// The contribution of full registers.
fn tau(mut share: f64) -> f64 {
    if share <= 0.0 || share >= 1.0 {
        return 0.0;
    }
    let (mut weight, mut sum) = (1.0, 1.0 - share);
    loop {
        share = share.sqrt();
        let before = sum;
        weight *= 0.5;
        sum -= (1.0 - share).powi(2) * weight;
        if sum >= before {
            return sum / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Distinct {
        let mut set = Distinct::default();
        values
            .into_iter()
            .for_each(|value| set.add(&value.to_be_bytes()));
        set
    }

    #[test]
    fn estimates_are_within_four_standard_errors() {
        assert_eq!(of([]).estimate(), 0);
        for count in [1, 2, 10, 100, 1_000, 5_000, 20_000, 300_000_u64] {
            let estimate = of(0..count).estimate().cast_signed();
            let error = (estimate - count.cast_signed()).unsigned_abs() as f64;
            assert!(error <= 0.065 * count as f64, "{count} → {estimate}");
        }
    }

    proptest! {
        #[test]
        fn order_repetition_and_grouping_never_matter(
            left in prop::collection::vec(0_u64..5000, 0..2000),
            right in prop::collection::vec(0_u64..5000, 0..2000),
        ) {
            let mut parts = of(right.iter().copied());
            parts.merge(&of(left.iter().copied()));
            let whole = of(left.into_iter().chain(right));
            prop_assert_eq!(&whole, &parts);
            let mut bytes = Vec::new();
            whole.write(&mut bytes);
            prop_assert_eq!(Distinct::read(&mut ByteReader::new(&bytes)), Ok(whole));
        }
    }
}
