//! Histograms as they are stored: HdrHistogram's V2 encoding, not deflated, which other tools read.
//!
//! A header of 40 bytes (cookie, length of the counts, normalising offset 0, digits, smallest and largest value, ratio 1.0),
//! all big-endian, then the counts by ascending value: each a zigzag varint, of which a negative one stands for as many counts
//! of zero.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

const COOKIE: u32 = 0x1c84_9313;

/// A histogram in HDR V2 binary form, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EncodedHistogram(pub Vec<u8>);

/// A stored histogram that does not decode.
#[derive(Debug, thiserror::Error)]
#[error("a stored histogram is damaged: {0}")]
pub struct HistogramError(&'static str);

impl EncodedHistogram {
    /// Encodes a histogram.
    pub fn encode(histogram: &Histogram<u64>) -> Self {
        let slots = Slots::of(histogram);
        let (mut counts, mut zeros) = (Vec::new(), 0);
        for slot in 0..=slots.of_value(histogram.max()) {
            match histogram.count_at(slots.value(slot)) {
                0 => zeros += 1,
                count => {
                    put_zeros(&mut counts, zeros);
                    put(&mut counts, i64::try_from(count).unwrap_or(i64::MAX));
                    zeros = 0;
                }
            }
        }
        put_zeros(&mut counts, zeros);
        let mut bytes = Vec::with_capacity(40 + counts.len());
        for word in [COOKIE, counts.len() as u32, 0, histogram.sigfig().into()] {
            bytes.extend(word.to_be_bytes());
        }
        bytes.extend(histogram.low().to_be_bytes());
        bytes.extend(histogram.high().to_be_bytes());
        bytes.extend(1f64.to_be_bytes());
        bytes.extend(counts);
        Self(bytes)
    }

    /// Decodes it.
    ///
    /// # Errors
    /// When the bytes are not an HDR V2 histogram.
    pub fn decode(&self) -> Result<Histogram<u64>, HistogramError> {
        let mut bytes = self.0.as_slice();
        let [cookie, length, offset, digits] =
            [take(&mut bytes)?, take(&mut bytes)?, take(&mut bytes)?, take(&mut bytes)?]
                .map(u32::from_be_bytes);
        let [low, high] = [take(&mut bytes)?, take(&mut bytes)?].map(u64::from_be_bytes);
        let ratio = f64::from_be_bytes(take(&mut bytes)?);
        if cookie != COOKIE || offset != 0 || ratio != 1.0 {
            return Err(HistogramError("it is of another encoding"));
        }
        let digits = u8::try_from(digits).unwrap_or(u8::MAX);
        let histogram = Histogram::new_with_bounds(low, high, digits);
        let mut histogram = histogram.map_err(|_| HistogramError("its range is impossible"))?;
        let mut counts = bytes.get(..length as usize).ok_or(SHORT)?;
        let slots = Slots::of(&histogram);
        let mut next = 0usize;
        while !counts.is_empty() {
            let count = get(&mut counts)?;
            if count > 0 {
                let too_long = HistogramError("it has more counts than its range");
                if next >= histogram.distinct_values() {
                    return Err(too_long);
                }
                histogram.record_n(slots.value(next), count.unsigned_abs()).map_err(|_| too_long)?;
            }
            next = next.saturating_add(if count < 0 { count.unsigned_abs() as usize } else { 1 });
        }
        Ok(histogram)
    }
}

const SHORT: HistogramError = HistogramError("it ends too early");

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], HistogramError> {
    let (taken, rest) = bytes.split_first_chunk().ok_or(SHORT)?;
    *bytes = rest;
    Ok(*taken)
}

/// How values map to counts: the first slots have the width of the smallest value, as many as the digits require; every further
/// half as many slots are twice as wide.
struct Slots {
    /// Bits of a value below the first slots' width.
    unit: u32,
    /// Slots of one width, as a power of two.
    half: u32,
}

impl Slots {
    fn of(histogram: &Histogram<u64>) -> Self {
        let exact = 2 * 10u32.pow(histogram.sigfig().into());
        Self { unit: histogram.low().ilog2(), half: exact.next_power_of_two().ilog2() - 1 }
    }

    fn of_value(&self, value: u64) -> usize {
        let value = value >> self.unit;
        let doublings = (u64::BITS - value.leading_zeros()).saturating_sub(self.half + 1);
        ((u64::from(doublings) << self.half) + (value >> doublings)) as usize
    }

    /// The smallest value of a slot that the histogram has.
    fn value(&self, slot: usize) -> u64 {
        let doublings = (slot >> self.half).saturating_sub(1);
        ((slot - (doublings << self.half)) as u64) << (doublings as u32 + self.unit)
    }
}

/// A single one is shorter as itself.
fn put_zeros(bytes: &mut Vec<u8>, zeros: i64) {
    match zeros {
        0 => {}
        1 => put(bytes, 0),
        zeros => put(bytes, -zeros),
    }
}

/// Appends a varint of 7 bits a byte; the ninth has 8.
fn put(bytes: &mut Vec<u8>, number: i64) {
    let mut left = ((number << 1) ^ (number >> 63)).cast_unsigned();
    for _ in 0..8 {
        if left < 0x80 {
            break;
        }
        bytes.push(left as u8 | 0x80);
        left >>= 7;
    }
    bytes.push(left as u8);
}

fn get(bytes: &mut &[u8]) -> Result<i64, HistogramError> {
    let mut number = 0;
    for place in 0..9 {
        let [byte] = take(bytes)?;
        let more = place < 8 && byte >= 0x80;
        number |= u64::from(if more { byte & 0x7f } else { byte }) << (7 * place);
        if !more {
            break;
        }
    }
    Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::{HISTOGRAM_RANGE_NS, latency_histogram};

    fn of(mut histogram: Histogram<u64>, values: &[(u64, u64)]) -> Histogram<u64> {
        values.iter().for_each(|(value, count)| histogram.record_n(*value, *count).unwrap());
        histogram
    }

    #[test]
    fn histograms_round_trip_and_stay_within_one_percent() {
        let values = [1, 99, 12_345, 987_654_321, HISTOGRAM_RANGE_NS.1];
        let histogram = of(latency_histogram(), &values.map(|value| (value, 1)));
        for value in values {
            let kept = histogram.highest_equivalent(value);
            assert!((kept as f64 - value as f64) / value as f64 <= 0.01, "{value} kept as {kept}");
        }
        assert_eq!(EncodedHistogram::encode(&histogram).decode().unwrap(), histogram);
    }

    /// Every slot, and every length of a count.
    #[test]
    fn all_shapes_round_trip() {
        for (low, high, digits) in
            [(1, 2, 0), (1, 3_600_000_000_000, 2), (1, 1 << 62, 3), (1000, 1 << 30, 3), (7, 900, 1)]
        {
            let empty = || Histogram::new_with_bounds(low, high, digits).unwrap();
            assert_eq!(EncodedHistogram::encode(&empty()).decode().unwrap(), empty());
            let (mut dense, mut sparse) = (empty(), empty());
            let (slots, end, mut value) = (Slots::of(&dense), dense.distinct_values(), 0);
            for slot in 0..end {
                assert_eq!(
                    (slots.value(slot), slots.of_value(value)),
                    (value, slot),
                    "{low} {high} {digits}"
                );
                dense.record_n(value, 1 << (slot % 50)).unwrap();
                if slot % 17 < 2 {
                    sparse.record_n(value, 1 << (slot % 50)).unwrap();
                }
                value = dense.next_non_equivalent(value);
            }
            assert_eq!(EncodedHistogram::encode(&dense).decode().unwrap(), dense);
            assert_eq!(EncodedHistogram::encode(&sparse).decode().unwrap(), sparse);
        }
    }

    /// As HdrHistogram's own library encodes.
    #[test]
    fn the_encoding_is_that_of_other_tools() {
        let empty = "1c84931300000001000000000000000200000000000000010000034630b8a0003ff000000000000000";
        let full = "1c84931300000015000000000000000200000000000000010000034630b8a0003ff0000000000000\
                    0002008c01eb07d08c01ab3f808080808080808002";
        let values = [(1, 1), (3, 70), (1000, 9000), (HISTOGRAM_RANGE_NS.1, 1 << 56)];
        for (values, text) in [(&[][..], empty), (&values, full)] {
            let histogram = of(latency_histogram(), values);
            let encoded = EncodedHistogram::encode(&histogram);
            assert_eq!(encoded.0.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), text);
            assert_eq!(encoded.decode().unwrap(), histogram);
        }
    }

    #[test]
    fn damage_is_refused() {
        let whole = EncodedHistogram::encode(&of(latency_histogram(), &[(5, 300), (1 << 30, 1)])).0;
        for length in 0..whole.len() {
            assert!(EncodedHistogram(whole[..length].to_vec()).decode().is_err(), "{length}");
        }
        let damaged = |at: usize, byte: u8| {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            EncodedHistogram(bytes).decode().map_err(|error| error.to_string())
        };
        for (at, byte, reason) in [
            (3, 0x14, "another encoding"),
            (11, 1, "another encoding"),
            (15, 9, "range is impossible"),
            (23, 0, "range is impossible"),
            (32, 0, "another encoding"),
        ] {
            let error = damaged(at, byte).unwrap_err();
            assert!(error.contains(reason), "{at}: {error}");
        }
        // As many zeros as no histogram has slots.
        let mut bytes = whole[..40].to_vec();
        put(&mut bytes, i64::MIN);
        put(&mut bytes, 1);
        let length = (bytes.len() - 40) as u32;
        bytes[4..8].copy_from_slice(&length.to_be_bytes());
        assert!(EncodedHistogram(bytes).decode().unwrap_err().to_string().contains("more counts"));
    }
}
