//! Names of directory entries and extended attributes.

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{Component4, Nfsstat4, Utf8};

use super::Failure;
use crate::fs::NAME_MAX;

/// Checks a name in an argument: INVAL when it is empty or no UTF-8 (RFC 7530 §12.7, RFC 8881 §14.5), BADCHAR for a
/// slash or NUL, BADNAME for "." and "..", which have no meaning in NFSv4 (RFC 8881 §18.13.4).
pub(crate) fn check_name(name: Component4<'_>) -> Result<&[u8], Failure> {
    let bytes = check_text(name)?;
    if matches!(bytes, b"." | b"..") && !is_broken(Mutant::DotIsAName) {
        return Err(Nfsstat4::BADNAME.into());
    }
    if bytes.iter().any(|byte| matches!(byte, b'/' | 0)) {
        return Err(Nfsstat4::BADCHAR.into());
    }
    Ok(bytes)
}

/// Checks the name of an extended attribute, which may be anything but empty, too long, or no UTF-8 (RFC 8276 §8.1).
pub(crate) fn check_text(name: Component4<'_>) -> Result<&[u8], Failure> {
    let bytes = name.0;
    if bytes.is_empty() {
        return Err(
            if is_broken(Mutant::EmptyNameMissing) { Nfsstat4::NOENT } else { Nfsstat4::INVAL }.into()
        );
    }
    if bytes.len() > NAME_MAX {
        return Err(
            if is_broken(Mutant::LongNameMissing) { Nfsstat4::NOENT } else { Nfsstat4::NAMETOOLONG }.into()
        );
    }
    if std::str::from_utf8(bytes).is_err() {
        return Err(Nfsstat4::INVAL.into());
    }
    Ok(bytes)
}

/// A user or group in decimal, as RFC 7530 §5.9 has it: no sign, no leading zeros.
pub(crate) fn number(name: Utf8<'_>) -> Result<u32, Failure> {
    let text = std::str::from_utf8(name.0).map_err(|_| Nfsstat4::INVAL)?;
    if text.is_empty() {
        return Err(Nfsstat4::INVAL.into());
    }
    let canonical = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    match text.parse() {
        // All ones means "leave as is" to chown(2).
        Ok(number) if canonical && number != u32::MAX => Ok(number),
        _ => Err(Nfsstat4::BADOWNER.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_errors() {
        let status = |name: &[u8]| check_name(name.into()).err().map(|failure| failure.status);
        assert_eq!(status(b""), Some(Nfsstat4::INVAL));
        assert_eq!(status(b"."), Some(Nfsstat4::BADNAME));
        assert_eq!(status(b".."), Some(Nfsstat4::BADNAME));
        assert_eq!(status(b"..."), None);
        assert_eq!(status(b"a/b"), Some(Nfsstat4::BADCHAR));
        assert_eq!(status(b"a\0"), Some(Nfsstat4::BADCHAR));
        assert_eq!(status(&[b'x'; 255]), None);
        assert_eq!(status(&[b'x'; 256]), Some(Nfsstat4::NAMETOOLONG));
        assert_eq!(status("Füße".as_bytes()), None);
        // Overlong, surrogate, cut short, beyond Unicode, never used.
        for bad in [&b"\xc0\x80"[..], b"\xed\xa0\x80", b"a\xe2\x82", b"\xf4\x90\x80\x80", b"\xff"] {
            assert_eq!(status(bad), Some(Nfsstat4::INVAL), "{bad:x?}");
        }
    }
}
