//! What few files have.

use std::sync::Arc;

use super::Acl;

/// What an attribute counts beside name and value.
const OVERHEAD: u64 = 64;

/// What few files have.
#[derive(Debug, Default)]
pub(super) struct Extra {
    /// Verifier of exclusive creation.
    pub(super) verifier: Option<u64>,
    /// Access control list, where it says more than the mode.
    pub(super) acl: Option<Arc<Acl>>,
    /// By ascending cookie.
    pub(super) xattrs: Vec<Xattr>,
    pub(super) last_cookie: u64,
}

#[derive(Debug)]
pub(super) struct Xattr {
    pub(super) cookie: u64,
    pub(super) name: Box<[u8]>,
    pub(super) value: Box<[u8]>,
}

impl Xattr {
    pub(super) fn cost(name: &[u8], value: &[u8]) -> u64 {
        (name.len() + value.len()) as u64 + OVERHEAD
    }
}

impl Extra {
    /// Bytes that count against the limit of the file system.
    pub(super) fn cost(&self) -> u64 {
        let acl = self.acl.as_ref().map_or(0, |acl| acl.cost());
        acl + self.xattrs.iter().map(|it| Xattr::cost(&it.name, &it.value)).sum::<u64>()
    }
}
