//! Which hosts mounted what, as they reported it: listed on request, never relied upon (RFC 1813 §5.2.2).

use std::collections::BTreeSet;
use std::net::IpAddr;

use parking_lot::Mutex;

pub(super) const MOST_MOUNTS: usize = 10_000;
/// Most of one host.
pub(super) const MOST_OF_HOST: usize = 256;

/// Hosts and the paths that they mounted.
#[derive(Debug, Default)]
pub(crate) struct Mounts {
    list: Mutex<BTreeSet<(IpAddr, Box<[u8]>)>>,
}

impl Mounts {
    pub(super) fn add(&self, host: IpAddr, path: &[u8]) {
        let mut list = self.list.lock();
        let own = list.range((host, Box::default())..).take_while(|(other, _)| *other == host).count();
        if list.len() < MOST_MOUNTS && own < MOST_OF_HOST {
            list.insert((host, path.into()));
        }
    }

    pub(super) fn remove(&self, host: IpAddr, path: &[u8]) {
        self.list.lock().remove(&(host, path.into()));
    }

    pub(super) fn remove_all(&self, host: IpAddr) {
        self.list.lock().retain(|(other, _)| *other != host);
    }

    pub(super) fn for_each(&self, mut visit: impl FnMut(IpAddr, &[u8])) {
        self.list.lock().iter().for_each(|(host, path)| visit(*host, path));
    }
}
