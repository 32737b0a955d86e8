//! The hash by which network cards spread flows over queues: Toeplitz, as Microsoft's specification of receive-side
//! scaling (RSS) has it.

use std::fmt;
use std::str::FromStr;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// Bytes of a key: 32 bits more than the longest input has, two IPv6 addresses and two ports.
const LENGTH: usize = 40;

/// A key of the hash. Written as `ethtool -x` shows it: 40 bytes in hexadecimal, separated by colons.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HashKey([u8; LENGTH]);

/// Why a text is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a hash key; write {LENGTH} bytes in hexadecimal, with or without colons between them")]
pub struct HashKeyError(String);

impl HashKey {
    /// The key of a seed.
    pub fn of_seed(seed: u64) -> Self {
        Self::drawn(ChaCha8Rng::seed_from_u64(seed))
    }

    /// The key after this number of re-hashes.
    pub(crate) fn after(&self, rehashes: u64) -> Self {
        let Some(seed) = self.0.first_chunk().filter(|_| rehashes > 0) else { return *self };
        let mut random = ChaCha8Rng::from_seed(*seed);
        random.set_stream(rehashes);
        Self::drawn(random)
    }

    fn drawn(mut random: ChaCha8Rng) -> Self {
        let mut key = [0; LENGTH];
        random.fill_bytes(&mut key);
        Self(key)
    }

    /// The hash of bytes: for a TCP or UDP packet source address, destination address, source port and destination port,
    /// each in network order; for others the addresses alone.
    pub fn hash(&self, input: &[u8]) -> u32 {
        let (first, rest) = self.0.split_at(4);
        let mut window = first.iter().fold(0, |window, byte| window << 8 | u32::from(*byte));
        let mut hash = 0;
        for (byte, next) in input.iter().zip(rest.iter().chain(std::iter::repeat(&0))) {
            for bit in (0..8).rev() {
                if byte >> bit & 1 == 1 {
                    hash ^= window;
                }
                window = window << 1 | u32::from(next >> bit & 1);
            }
        }
        hash
    }
}

impl fmt::Display for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02x}", if number == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HashKey({self})")
    }
}

impl From<HashKey> for String {
    fn from(key: HashKey) -> Self {
        key.to_string()
    }
}

impl TryFrom<String> for HashKey {
    type Error = HashKeyError;

    fn try_from(text: String) -> Result<Self, HashKeyError> {
        text.parse()
    }
}

impl FromStr for HashKey {
    type Err = HashKeyError;

    fn from_str(text: &str) -> Result<Self, HashKeyError> {
        let fault = || HashKeyError(text.to_owned());
        let digits = text.trim().replace(':', "");
        let mut key = [0; LENGTH];
        if digits.len() != 2 * LENGTH || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(fault());
        }
        for (at, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).map_err(|_| fault())?;
        }
        Ok(Self(key))
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    /// The key and the packets of Microsoft's "Verifying the RSS Hash Calculation": destination, source, the hash of the
    /// addresses, and that of addresses and ports.
    const KEY: &str = "6d:5a:56:da:25:5b:0e:c2:41:67:25:3d:43:a3:8f:b0:d0:ca:2b:cb:\
                       ae:7b:30:b4:77:cb:2d:a3:80:30:f2:0c:6a:42:b7:3b:be:ac:01:fa";
    const PACKETS: [(&str, u16, &str, u16, u32, u32); 8] = [
        ("161.142.100.80", 1766, "66.9.149.187", 2794, 0x323e_8fc2, 0x51cc_c178),
        ("65.69.140.83", 4739, "199.92.111.2", 14230, 0xd718_262a, 0xc626_b0ea),
        ("12.22.207.184", 38024, "24.19.198.95", 12898, 0xd2d0_a5de, 0x5c2b_394a),
        ("209.142.163.6", 2217, "38.27.205.30", 48228, 0x8298_9176, 0xafc7_327f),
        ("202.188.127.2", 1303, "153.39.163.191", 44251, 0x5d18_09c5, 0x10e8_28a2),
        ("3ffe:2501:200:3::1", 1766, "3ffe:2501:200:1fff::7", 2794, 0x2cc1_8cd5, 0x4020_7d3d),
        ("ff02::1", 4739, "3ffe:501:8::260:97ff:fe40:efab", 14230, 0x0f0c_461c, 0xdde5_1bbf),
        (
            "fe80::200:f8ff:fe21:67cf",
            38024,
            "3ffe:1900:4545:3:200:f8ff:fe21:67cf",
            44251,
            0x4b61_e985,
            0x02d1_feef,
        ),
    ];

    #[test]
    fn microsofts_vectors() {
        let key: HashKey = KEY.parse().unwrap();
        let bytes = |address: &str| match address.parse().unwrap() {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        for (to, to_port, from, from_port, addresses, all) in PACKETS {
            let mut input = [bytes(from), bytes(to)].concat();
            assert_eq!(key.hash(&input), addresses, "{from} to {to}");
            input.extend([from_port, to_port].map(u16::to_be_bytes).concat());
            assert_eq!(key.hash(&input), all, "{from}:{from_port} to {to}:{to_port}");
        }
    }

    #[test]
    fn keys_are_read_as_they_are_written() {
        let key: HashKey = KEY.parse().unwrap();
        assert_eq!(key.to_string(), KEY);
        assert_eq!(KEY.replace(':', "").parse(), Ok(key));
        for bad in ["", "6d:5a", &KEY.replace("6d", "6g"), &format!("{KEY}:00"), &"é".repeat(40)] {
            assert!(bad.parse::<HashKey>().unwrap_err().to_string().contains("40 bytes"), "{bad}");
        }
        // Of a seed always the same, and another after every re-hash.
        let drawn = HashKey::of_seed(7);
        assert_eq!((HashKey::of_seed(7), drawn.after(0)), (drawn, drawn));
        assert!(HashKey::of_seed(8) != drawn && drawn.after(1) != drawn && drawn.after(1) != drawn.after(2));
        assert_eq!(drawn.after(2), drawn.after(2));
        // Input beyond the key changes nothing that panics.
        let _ = drawn.hash(&[0xff; 100]);
    }
}
