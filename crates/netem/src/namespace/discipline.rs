//! The queueing disciplines of a namespace and what they counted, by rtnetlink(7).
//!
//! `tc -s qdisc show` says the same, but starting a program takes longer than many a run: on virtual time, some 700 stops of the
//! guest's programs.

use std::io;

use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::interface::{Interfaces, NETLINK_HEADER, message};

// From linux/rtnetlink.h, linux/netlink.h and linux/gen_stats.h.
const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// `NLM_F_ROOT | NLM_F_MATCH`: all there are.
const DUMP: u16 = 0x300;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
/// The length of a `struct tcmsg`.
const TCMSG: usize = 20;
/// What the kernel answers at once: it has never filled more than this.
const ANSWER: usize = 64 << 10;

/// A queueing discipline, and what it counted since it was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Discipline {
    /// The kernel's number of the device.
    pub(crate) device: i32,
    /// `netem`, `noqueue`, …
    pub(crate) kind: String,
    pub(crate) frames: u64,
    pub(crate) bytes: u64,
    /// Dropped, on purpose or as the queue was full.
    pub(crate) lost: u64,
}

impl Interfaces {
    /// All queueing disciplines of the namespace.
    ///
    /// # Errors
    /// What the kernel said.
    pub(crate) fn disciplines(&self) -> io::Result<Vec<Discipline>> {
        send(&self.netlink, &message(RTM_GETQDISC, DUMP, &[0; TCMSG], &[]), SendFlags::empty())?;
        let (mut found, mut answer) = (Vec::new(), vec![0; ANSWER]);
        loop {
            let (length, _) = recv(&self.netlink, &mut answer[..], RecvFlags::empty())?;
            if read(answer.get(..length).unwrap_or(&answer), &mut found)? {
                return Ok(found);
            }
        }
    }
}

/// Reads one answer of the kernel; whether it was the last one.
fn read(mut answer: &[u8], found: &mut Vec<Discipline>) -> io::Result<bool> {
    let unexpected = || io::Error::from(io::ErrorKind::InvalidData);
    while !answer.is_empty() {
        let length = number(answer, u32::from_ne_bytes).ok_or_else(unexpected)? as usize;
        let kind =
            answer.get(4..).and_then(|rest| number(rest, u16::from_ne_bytes)).ok_or_else(unexpected)?;
        let content = answer.get(NETLINK_HEADER..length).ok_or_else(unexpected)?;
        match kind {
            NLMSG_DONE => return Ok(true),
            NLMSG_ERROR => {
                let error = number(content, i32::from_ne_bytes).ok_or_else(unexpected)?;
                return Err(io::Error::from_raw_os_error(error.saturating_neg()));
            }
            RTM_NEWQDISC => found.push(discipline(content).ok_or_else(unexpected)?),
            _ => {}
        }
        answer = answer.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// A `struct tcmsg` and its attributes.
fn discipline(content: &[u8]) -> Option<Discipline> {
    let device = number(content.get(4..)?, i32::from_ne_bytes)?;
    let mut discipline = Discipline { device, ..Discipline::default() };
    for (kind, value) in attributes(content.get(TCMSG..)?) {
        match kind {
            TCA_KIND => {
                discipline.kind = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned();
            }
            TCA_STATS2 => {
                for (kind, value) in attributes(value) {
                    match kind {
                        // Bytes, then packets.
                        TCA_STATS_BASIC => {
                            discipline.bytes = number(value, u64::from_ne_bytes)?;
                            discipline.frames = number(value.get(8..)?, u32::from_ne_bytes)?.into();
                        }
                        // Packets and bytes in the queue, then drops.
                        TCA_STATS_QUEUE => {
                            discipline.lost = number(value.get(8..)?, u32::from_ne_bytes)?.into();
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    Some(discipline)
}

/// Kinds and values of attributes, up to the first that is cut off.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(number(bytes, u16::from_ne_bytes)?);
        let kind = number(bytes.get(2..)?, u16::from_ne_bytes)?;
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        // The two highest bits say how the value is made up.
        Some((kind & 0x3fff, value))
    })
}

/// The number at the beginning.
fn number<const N: usize, T>(bytes: &[u8], read: fn([u8; N]) -> T) -> Option<T> {
    bytes.first_chunk().map(|bytes| read(*bytes))
}

#[cfg(test)]
mod tests {
    use super::super::interface::attribute;
    use super::*;

    fn answer(device: i32, kind: &str, counts: Option<(u64, u32, u32)>) -> Vec<u8> {
        let mut about = vec![0; TCMSG];
        about[4..8].copy_from_slice(&device.to_ne_bytes());
        let mut attributes = vec![attribute(TCA_KIND, format!("{kind}\0").as_bytes())];
        if let Some((bytes, frames, lost)) = counts {
            let basic = [&bytes.to_ne_bytes()[..], &frames.to_ne_bytes(), &[0; 4]].concat();
            let queue = [&[0; 8][..], &lost.to_ne_bytes(), &[0; 8]].concat();
            let both = [attribute(TCA_STATS_BASIC, &basic), attribute(TCA_STATS_QUEUE, &queue)].concat();
            attributes.push(attribute(TCA_STATS2, &both));
        }
        message(RTM_NEWQDISC, 0, &about, &attributes)
    }

    #[test]
    fn counts_are_found_in_answers() {
        let mut found = Vec::new();
        let both = [answer(1, "noqueue", None), answer(7, "netem", Some((4242, 42, 3)))].concat();
        assert!(!read(&both, &mut found).unwrap());
        assert!(read(&message(NLMSG_DONE, 0, &[0; 4], &[]), &mut found).unwrap());
        let netem = Discipline { device: 7, kind: "netem".into(), frames: 42, bytes: 4242, lost: 3 };
        assert_eq!(found, [Discipline { device: 1, kind: "noqueue".into(), ..Discipline::default() }, netem]);
    }

    #[test]
    fn errors_and_what_is_cut_off_are_errors() {
        let mut found = Vec::new();
        let refused = message(NLMSG_ERROR, 0, &(-libc::EPERM).to_ne_bytes(), &[]);
        assert_eq!(read(&refused, &mut found).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        let whole = answer(7, "netem", Some((1, 1, 0)));
        for length in 1..whole.len() {
            assert!(read(&whole[..length], &mut found).is_err(), "{length}");
        }
        assert!(found.is_empty());
    }

    #[test]
    fn this_namespace_has_some() {
        // Without devices beside `lo` there may be none; it ends in any case.
        let found = Interfaces::here().unwrap().disciplines().unwrap();
        assert!(
            found.iter().all(|discipline| discipline.device > 0 && !discipline.kind.is_empty()),
            "{found:?}"
        );
    }
}
