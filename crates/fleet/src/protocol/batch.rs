//! Recorded calls in messages: fixed records, in the order of the fields, least significant byte first. Every call of a
//! workload can be traced, and records with the names of their fields would be three times as long.

use benchmaster_record::recording::TraceRecord;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::bytes;

/// Bytes of a record.
const LENGTH: usize = 42;

/// Most records of a message: about 64 KiB.
pub(crate) const RECORDS: usize = (64 << 10) / LENGTH;

/// Recorded calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TraceBatch(pub(crate) Vec<TraceRecord>);

impl Serialize for TraceBatch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        bytes::serialize(&encode(&self.0), serializer)
    }
}

impl<'de> Deserialize<'de> for TraceBatch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        decode(&bytes::deserialize(deserializer)?).map(Self).map_err(D::Error::custom)
    }
}

fn encode(records: &[TraceRecord]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(records.len() * LENGTH);
    for record in records {
        bytes.extend(record.start_ns.to_le_bytes());
        bytes.extend(record.latency_ns.to_le_bytes());
        bytes.extend(record.offset.to_le_bytes());
        bytes.extend(record.bytes.to_le_bytes());
        bytes.extend(record.worker.to_le_bytes());
        bytes.extend(record.file.to_le_bytes());
        bytes.extend(record.series.to_le_bytes());
        bytes.extend(record.error.to_le_bytes());
        bytes.extend(record.fileset.to_le_bytes());
    }
    bytes
}

fn decode(bytes: &[u8]) -> Result<Vec<TraceRecord>, String> {
    let (records, rest) = bytes.as_chunks::<LENGTH>();
    if !rest.is_empty() {
        return Err(format!("{} bytes of recorded calls are not whole records", bytes.len()));
    }
    Ok(records.iter().map(record).collect())
}

fn record(bytes: &[u8; LENGTH]) -> TraceRecord {
    let mut rest = &bytes[..];
    TraceRecord {
        start_ns: u64::from_le_bytes(take(&mut rest)),
        latency_ns: u64::from_le_bytes(take(&mut rest)),
        offset: u64::from_le_bytes(take(&mut rest)),
        bytes: u32::from_le_bytes(take(&mut rest)),
        worker: u32::from_le_bytes(take(&mut rest)),
        file: u32::from_le_bytes(take(&mut rest)),
        series: u16::from_le_bytes(take(&mut rest)),
        error: u16::from_le_bytes(take(&mut rest)),
        fileset: u16::from_le_bytes(take(&mut rest)),
    }
}

/// The next bytes; zeros at the end, which records of the right length never come to.
fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let Some((first, after)) = rest.split_first_chunk() else { return [0; N] };
    *rest = after;
    *first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_through() {
        let records: Vec<_> = (1..=RECORDS as u64)
            .map(|i| TraceRecord {
                start_ns: u64::MAX / i,
                latency_ns: i << 40,
                offset: u64::MAX - i,
                bytes: u32::MAX - i as u32,
                worker: i as u32,
                file: u32::MAX - 2 * i as u32,
                series: i as u16,
                error: u16::MAX - i as u16,
                fileset: 3 * i as u16,
            })
            .collect();
        let batch = TraceBatch(records);
        let frame = benchmaster_frames::encode(&[], &batch, 1 << 17).unwrap();
        assert!(frame.len() <= (64 << 10) + 16, "{}", frame.len());
        assert_eq!(benchmaster_frames::decode(&frame[4..]), Ok(batch.clone()));
        assert!(decode(&encode(&batch.0)[1..]).is_err());
    }
}
