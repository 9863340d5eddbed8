//! Quantiles with a bounded relative error: `DDSketch`.
//!
//! A number falls into the bin given by the logarithm of its size, to a base that makes all numbers
//! of a bin equal within the accuracy of the definition. Bins are counted, so sketches can be
//! added, and numbers can be removed again. Numbers below 10^−12 count as zero and those above
//! 10^15 as 10^15, which bounds the bins.

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};
/// Smaller numbers count as zero.
const SMALLEST: f64 = 1e-12;
/// Larger numbers count as this.
const LARGEST: f64 = 1e15;

/// Counted bins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sketch {
    /// The bins with their counts; ascending, without empty ones. Bins of negative numbers are
    /// below zero, so that the order is that of the numbers.
    bins: Vec<(i32, i64)>,
}

/// The relative accuracy of bins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Accuracy {
    stated: f64,
    logarithm: f64,
}

impl Accuracy {
    /// Quantiles have at most this relative error.
    pub fn new(stated: f64) -> Self {
        Self {
            stated,
            logarithm: ((1.0 + stated) / (1.0 - stated)).ln(),
        }
    }

    /// The bin of a number; bins of positive numbers begin at one.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "sizes are bounded, and so are their logarithms"
    )]
    fn bin(self, number: f64) -> i32 {
        let size = number.abs();
        if size < SMALLEST {
            return 0;
        }
        let steps = ((size.min(LARGEST).ln() - SMALLEST.ln()) / self.logarithm).ceil();
        let bin = (steps as i32).max(0) + 1;
        if number < 0.0 { -bin } else { bin }
    }

    /// The number that represents a bin.
    fn number(self, bin: i32) -> f64 {
        if bin == 0 {
            return 0.0;
        }
        let steps = f64::from(bin.abs() - 1);
        let top = (steps * self.logarithm + SMALLEST.ln()).exp();
        let middle = top * (1.0 - self.stated);
        if bin < 0 { -middle } else { middle }
    }
}

impl Sketch {
    /// Adds a number `times` times; a negative count removes it. NaN is not counted.
    pub fn add(&mut self, accuracy: Accuracy, number: f64, times: i64) {
        if !number.is_nan() {
            self.count(accuracy.bin(number), times);
        }
    }

    fn count(&mut self, bin: i32, times: i64) {
        match self.bins.binary_search_by_key(&bin, |(at, _)| *at) {
            Ok(at) => {
                if let Some((_, count)) = self.bins.get_mut(at) {
                    *count = count.saturating_add(times);
                    if *count == 0 {
                        self.bins.remove(at);
                    }
                }
            }
            Err(_) if times == 0 => {}
            Err(at) => self.bins.insert(at, (bin, times)),
        }
    }

    /// Adds what another counted.
    pub fn merge(&mut self, other: &Self) {
        if self.bins.is_empty() {
            self.bins.clone_from(&other.bins);
            return;
        }
        for &(bin, count) in &other.bins {
            self.count(bin, count);
        }
    }

    /// The number at a quantile from 0 to 1; `None` if there are no numbers.
    #[allow(
        clippy::cast_precision_loss,
        reason = "a rank that is off by one in 2^53 is within the accuracy"
    )]
    pub fn quantile(&self, accuracy: Accuracy, share: f64) -> Option<f64> {
        let counted = self.bins.iter().filter(|(_, count)| *count > 0);
        let all: i64 = counted.clone().map(|(_, count)| *count).sum();
        let rank = share * (all - 1) as f64;
        let mut before = 0_i64;
        for (bin, count) in counted {
            before += count;
            if before as f64 > rank {
                return Some(accuracy.number(*bin));
            }
        }
        None
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.put_varint(self.bins.len() as u64);
        for &(bin, count) in &self.bins {
            out.put_signed(bin.into());
            out.put_signed(count.into());
        }
    }

    pub(crate) fn read(reader: &mut ByteReader<'_>) -> ReadResult<Self> {
        let length = reader.count()?;
        let mut bins = Vec::with_capacity(length);
        for _ in 0..length {
            let bin = i32::try_from(reader.signed()?).ok();
            let bin = reader.check(bin, "a bin")?;
            let count = reader.signed_64()?;
            if bins.last().is_some_and(|&(before, _)| before >= bin) || count == 0 {
                return Err(reader.error("ascending bins"));
            }
            bins.push((bin, count));
        }
        Ok(Self { bins })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(accuracy: Accuracy, numbers: &[f64]) -> Sketch {
        let mut sketch = Sketch::default();
        numbers.iter().for_each(|one| sketch.add(accuracy, *one, 1));
        sketch
    }

    proptest! {
        #[test]
        fn quantiles_are_within_the_stated_error(
            mut numbers in prop::collection::vec(-1e9_f64..1e9, 1..300),
            share in 0.0_f64..=1.0,
            stated in prop::sample::select(vec![0.001, 0.01, 0.05]),
        ) {
            let accuracy = Accuracy::new(stated);
            let got = of(accuracy, &numbers).quantile(accuracy, share).unwrap();
            numbers.sort_by(f64::total_cmp);
            let rank = (share * (numbers.len() - 1) as f64).floor() as usize;
            let expected = numbers[rank];
            prop_assert!(
                (got - expected).abs() <= stated * expected.abs() * 1.000_001 + SMALLEST,
                "{got} for {expected}"
            );
        }

        #[test]
        fn order_and_grouping_never_matter_and_numbers_can_be_taken_away(
            left in prop::collection::vec(-1e3_f64..1e3, 0..50),
            right in prop::collection::vec(-1e3_f64..1e3, 0..50),
        ) {
            let accuracy = Accuracy::new(0.01);
            let both: Vec<f64> = left.iter().chain(&right).copied().collect();
            let mut parts = of(accuracy, &right);
            parts.merge(&of(accuracy, &left));
            let mut whole = of(accuracy, &both);
            prop_assert_eq!(&whole, &parts);
            let mut bytes = Vec::new();
            whole.write(&mut bytes);
            prop_assert_eq!(Sketch::read(&mut ByteReader::new(&bytes)), Ok(whole.clone()));
            left.iter().for_each(|one| whole.add(accuracy, *one, -1));
            prop_assert_eq!(whole, of(accuracy, &right));
        }
    }
}
