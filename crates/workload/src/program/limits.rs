//! Limits of what a workload says.

/// The largest read or write.
pub(super) const MAX_IO: u64 = 1 << 30;
/// The size of an extended attribute unless it is given, and the largest (Linux' XATTR_SIZE_MAX).
pub(super) const XATTR: u64 = 64;
pub(super) const MAX_XATTR: u64 = 64 << 10;

/// Whether a text may be the name of a fileset, group or label.
pub(super) fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
}
