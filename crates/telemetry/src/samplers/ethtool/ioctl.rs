//! `SIOCETHTOOL`: how many counters a device has, what they are called, and what they count.

use std::ffi::CString;
use std::io;

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use super::{NAME, names};

const SIOCETHTOOL: libc::Ioctl = 0x8946;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
/// The set of strings that are names of counters.
const ETH_SS_STATS: u32 = 1;
/// Most counters of a device. The kernel writes as many as the driver has when it is asked, whatever it is told: there must
/// be room for many more than there were a moment before.
const MOST: usize = 1 << 15;
const ROOM: usize = 2 * MOST;

/// A device, and the names of its counters.
#[derive(Debug)]
pub(super) struct Device {
    name: CString,
    text: String,
    counters: Vec<String>,
}

impl Device {
    /// `None` for names that no device can have.
    pub(super) fn new(name: &str) -> Option<Self> {
        // One byte must be left for the zero at the end.
        (name.len() < libc::IFNAMSIZ).then_some(())?;
        Some(Self { name: CString::new(name).ok()?, text: name.to_owned(), counters: Vec::new() })
    }

    pub(super) fn name(&self) -> &str {
        &self.text
    }
}

/// A socket to ask with, and memory for answers.
#[derive(Debug)]
pub(super) struct Counters {
    socket: OwnedFd,
    /// A header of 8 bytes, then counters of 8 bytes or names of 32: as long as what was asked for, with room for [`ROOM`] names
    /// behind that. Memory that is not written to costs nothing.
    answer: Vec<u64>,
}

impl Counters {
    pub(super) fn open() -> io::Result<Self> {
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        Ok(Self { socket, answer: Vec::with_capacity(1 + ROOM * NAME / 8) })
    }

    /// Asks for the values now; names are asked for when their number has changed.
    pub(super) fn ask_for(&mut self, device: &mut Device) -> io::Result<()> {
        let count = self.count(device)?;
        if count > MOST {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("it has {count}, more than {MOST}"),
            ));
        }
        if count != device.counters.len() {
            // The header of names is 12 bytes long.
            self.ask(device, [ETHTOOL_GSTRINGS, ETH_SS_STATS, count as u32, 0], 2 + count * NAME / 8)?;
            let bytes = self.answer.iter().flat_map(|word| word.to_ne_bytes()).skip(12).take(count * NAME);
            device.counters = names(&bytes.collect::<Vec<u8>>()).collect();
        }
        if count > 0 {
            self.ask(device, [ETHTOOL_GSTATS, count as u32, 0, 0], 1 + count)?;
        }
        Ok(())
    }

    /// Names, and the values that were asked for last.
    pub(super) fn values<'a>(&'a self, device: &'a Device) -> impl Iterator<Item = (&'a str, u64)> {
        device.counters.iter().map(String::as_str).zip(self.answer.iter().skip(1).copied())
    }

    fn count(&mut self, device: &Device) -> io::Result<usize> {
        // A mask of the sets asked for, and one number for each of those that there are.
        self.ask(device, [ETHTOOL_GSSET_INFO, 0, 1 << ETH_SS_STATS, 0], 3)?;
        let [mask, number] = [1, 2].map(|at| self.answer.get(at).copied().unwrap_or_default());
        let [first, ..] = split(number);
        Ok(if mask == 0 { 0 } else { first as usize })
    }

    /// Puts the question where the answer of `words` words will be, and asks.
    fn ask(&mut self, device: &Device, question: [u32; 4], words: usize) -> io::Result<()> {
        self.answer.clear();
        // Never beyond the capacity, as counters are at most `MOST`.
        self.answer.resize(words.max(3), 0);
        let [a, b, c, d] = question;
        for (word, value) in self.answer.iter_mut().zip([join([a, b]), join([c, d]), 0]) {
            *word = value;
        }
        // SAFETY: `ifreq` is a plain struct of integers and unions of them, for which all zero bytes are valid.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(device.name.as_bytes_with_nul()) {
            *to = *from as libc::c_char;
        }
        request.ifr_ifru.ifru_data = self.answer.as_mut_ptr().cast();
        // SAFETY: the socket is open, the request is a whole `ifreq` with a name that ends with zero, and its data point
        // to `answer`, which lives until the call returns, is aligned to 8 bytes, and has the capacity for a header and twice
        // as many names of 32 bytes as are ever asked for: the kernel writes less, also when the driver got some counters
        // more since they were counted.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// Two numbers as they stand in memory.
fn join([first, second]: [u32; 2]) -> u64 {
    let (mut bytes, [low, high]) = ([0; 8], [first.to_ne_bytes(), second.to_ne_bytes()]);
    bytes[..4].copy_from_slice(&low);
    bytes[4..].copy_from_slice(&high);
    u64::from_ne_bytes(bytes)
}

fn split(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_two_numbers_in_the_order_of_memory() {
        assert_eq!(split(join([1, 2])), [1, 2]);
        assert_eq!(
            join([0x0403_0201, 0x0807_0605]).to_le_bytes()[0],
            if cfg!(target_endian = "little") { 1 } else { 5 }
        );
    }

    #[test]
    fn names_that_are_too_long_are_no_devices() {
        assert!(Device::new("a-name-of-15-by").is_some());
        assert!(Device::new("a-name-of-16-byt").is_none());
        assert!(Device::new("a\0b").is_none());
    }

    #[test]
    fn devices_that_are_not_there_and_those_without_counters_are_told_apart() {
        let mut counters = Counters::open().unwrap();
        let mut code = |name: &str| {
            let mut device = Device::new(name).unwrap();
            counters
                .ask_for(&mut device)
                .map(|()| device.counters.len())
                .map_err(|error| error.raw_os_error())
        };
        assert_eq!(code("no-such-dev"), Err(Some(libc::ENODEV)));
        // Loopback has no counters; where this is no network namespace with one, there is nothing to try.
        let loopback = code("lo");
        assert!(matches!(loopback, Ok(0) | Err(Some(libc::EOPNOTSUPP | libc::ENODEV))), "{loopback:?}");
    }
}
