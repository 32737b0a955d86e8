//! Records of TLS 1.3 (RFC 8446 §5): sealed and opened in place.

use std::ops::Range;

use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use rustls::{AlertDescription, ConnectionTrafficSecrets, ContentType};

use crate::error::TlsError;
use crate::spare::{FRAGMENT, LARGEST_RECORD};

/// Type, version, length.
pub(crate) const HEADER: usize = 5;
/// Authentication tag; the same for all suites of TLS 1.3 that rustls has.
const TAG: usize = 16;
/// The type of the content, behind it.
const TYPE: usize = 1;
/// Bytes that a record adds to its content.
pub(crate) const OVERHEAD: usize = HEADER + TYPE + TAG;

/// The cipher of one direction, with the number of its next record.
pub(crate) struct Cipher {
    key: LessSafeKey,
    iv: [u8; 12],
    sequence: u64,
}

impl std::fmt::Debug for Cipher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cipher").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

impl Cipher {
    pub(crate) fn new((sequence, secrets): (u64, ConnectionTrafficSecrets)) -> Result<Self, TlsError> {
        let unknown = || TlsError::Setup("a cipher suite that is not known".into());
        let (algorithm, key, iv) = match &secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (&CHACHA20_POLY1305, key, iv),
            _ => return Err(unknown()),
        };
        let key = UnboundKey::new(algorithm, key.as_ref()).map_err(|_| unknown())?;
        let iv = iv.as_ref().try_into().map_err(|_| unknown())?;
        Ok(Self { key: LessSafeKey::new(key), iv, sequence })
    }

    /// Records under this key so far.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The initial vector, with the number of the record in its last eight bytes (RFC 8446 §5.3). A number is used once.
    fn nonce(&mut self) -> Result<Nonce, TlsError> {
        let mut nonce = self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= number;
        }
        let next = self.sequence.checked_add(1);
        self.sequence = next.ok_or_else(|| TlsError::Protocol("more records than numbers".into()))?;
        Ok(Nonce::assume_unique_for_key(nonce))
    }

    /// Makes a record of the content that lies at `place[HEADER..HEADER + len]`; returns the record's length.
    pub(crate) fn seal(
        &mut self,
        place: &mut [u8],
        len: usize,
        content: ContentType,
    ) -> Result<usize, TlsError> {
        let whole = len + OVERHEAD;
        let room = || TlsError::Protocol("no room for a record".into());
        let (header, rest) = place.get_mut(..whole).ok_or_else(room)?.split_at_mut(HEADER);
        let (body, tag) = rest.split_at_mut(len + TYPE);
        let length = ((len + TYPE + TAG) as u16).to_be_bytes();
        header.copy_from_slice(&[u8::from(ContentType::ApplicationData), 3, 3, length[0], length[1]]);
        body[len] = content.into();
        let nonce = self.nonce()?;
        let sealed = self.key.seal_in_place_separate_tag(nonce, Aad::from(&*header), body);
        let sealed = sealed.map_err(|_| TlsError::Setup("the cipher failed".into()))?;
        tag.copy_from_slice(sealed.as_ref());
        Ok(whole)
    }

    /// Opens a whole record in place: what it contains, and where.
    pub(crate) fn open(&mut self, record: &mut [u8]) -> Result<(ContentType, Range<usize>), TlsError> {
        let (header, body) = record.split_at_mut_checked(HEADER).ok_or(TlsError::Record)?;
        if header[0] != u8::from(ContentType::ApplicationData) {
            // A peer that has no keys yet, or has lost them, can send an alert in the clear: anyone can.
            return Err(TlsError::Protocol("a record that is not encrypted".into()));
        }
        let nonce = self.nonce()?;
        let opened = self.key.open_in_place(nonce, Aad::from(&*header), body);
        let plain = opened.map_err(|_| TlsError::Record)?;
        let last = plain.iter().rposition(|byte| *byte != 0);
        let last = last.ok_or_else(|| TlsError::Protocol("a record without content".into()))?;
        if last > FRAGMENT {
            return Err(TlsError::Protocol("a record that is too long".into()));
        }
        Ok((plain[last].into(), HEADER..HEADER + last))
    }
}

/// Length of the record at the front of `bytes`, if all of it is there.
pub(crate) fn whole(bytes: &[u8]) -> Result<Option<usize>, TlsError> {
    let Some(header) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
    let len = HEADER + usize::from(u16::from_be_bytes([header[3], header[4]]));
    if header[1] != 3 || len > LARGEST_RECORD {
        return Err(TlsError::Protocol("no TLS record".into()));
    }
    Ok((bytes.len() >= len).then_some(len))
}

/// The content of an alert: `None` when the peer closes in good order.
pub(crate) fn alert(content: &[u8]) -> Option<TlsError> {
    match content {
        [_, number] if AlertDescription::from(*number) == AlertDescription::CloseNotify => None,
        [_, number] => Some(TlsError::alert(*number)),
        _ => Some(TlsError::Protocol("an alert that is none".into())),
    }
}
