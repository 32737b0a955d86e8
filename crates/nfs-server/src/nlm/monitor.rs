//! Hosts that get a notice of a restart (XNFS, the network status monitor): those to which locks or shares were given.
//!
//! After a restart each is called (SM_NOTIFY, at the port of program 100024 that its portmapper names), so that it reclaims what it
//! held. For one lease time locks are given for reclaims only; NLM has no word for having reclaimed all. A host that did not
//! reclaim anything meanwhile gets no notice of the next restart.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering};

use benchmaster_nfs_proto::nsm::StatChge;
use benchmaster_nfs_proto::xdr::Encoder;
use parking_lot::Mutex;

use super::callback::LockCallbacks;
use super::nsm;
use crate::state::nlm_lock::Route;

/// Most hosts that get notices.
const MOST: usize = 4096;

/// Hosts that hold, or held before a restart, locks.
#[derive(Debug, Default)]
pub(crate) struct Monitor {
    hosts: Mutex<Hosts>,
    changes: AtomicU64,
}

#[derive(Debug, Default)]
struct Hosts {
    /// The way to each, and whether it was given something since the start.
    known: BTreeMap<IpAddr, (Route, bool)>,
    /// Those that have not had their notice yet.
    untold: Vec<Route>,
}

impl Monitor {
    /// After a restart, before which these hosts were known.
    pub(crate) fn after(known: Vec<Route>) -> Self {
        let hosts = known.iter().map(|route| (route.client, (*route, false))).collect();
        Self { hosts: Mutex::new(Hosts { known: hosts, untold: known }), changes: AtomicU64::new(0) }
    }

    /// Something was given to a host.
    pub(super) fn note(&self, route: Route) {
        let mut hosts = self.hosts.lock();
        let room = hosts.known.len() < MOST;
        match hosts.known.get_mut(&route.client) {
            Some(known) => *known = (route, true),
            None if !room => {
                log::warn!("{} will get no notice of a restart: {MOST} hosts get one", route.client);
                return;
            }
            None => drop(hosts.known.insert(route.client, (route, true))),
        }
        drop(hosts);
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// The grace period is over: who did not come back is forgotten.
    pub(super) fn grace_ended(&self) {
        let mut hosts = self.hosts.lock();
        let before = hosts.known.len();
        hosts.known.retain(|_, (_, given)| *given);
        if hosts.known.len() != before {
            self.changes.fetch_add(1, Ordering::Release);
        }
    }

    /// Hosts that get a notice of the next restart.
    pub(crate) fn known(&self) -> Vec<Route> {
        self.hosts.lock().known.values().map(|(route, _)| *route).collect()
    }

    /// Grows with every change of the known hosts, or more often.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Calls as many of the hosts as can be called at a time. `boot`: number of this start; `server`: its address, for hosts
    /// that are not known to have called another.
    pub(super) fn tell(&self, callbacks: &LockCallbacks, boot: u64, server: IpAddr) {
        let mut hosts = self.hosts.lock();
        while let Some(route) = hosts.untold.pop() {
            // Monitors know the server by the address that their host mounted.
            let known_as = if route.server.is_unspecified() { server } else { route.server };
            let name = known_as.to_canonical().to_string();
            let mut e = Encoder::new();
            e.put(&StatChge { mon_name: name.as_bytes().into(), state: nsm::state(boot) });
            if !callbacks.notify(route, e.buffer()) {
                hosts.untold.push(route);
                return;
            }
        }
    }
}

/// A host as one of the names that survive a restart.
pub(crate) fn to_name(route: &Route) -> Vec<u8> {
    [route.client, route.server].iter().flat_map(octets).chain([u8::from(route.secured)]).collect()
}

/// The host of such a name.
pub(crate) fn of_name(name: &[u8]) -> Option<Route> {
    let (client, rest) = name.split_first_chunk::<16>()?;
    let (server, secured) = rest.split_first_chunk::<16>()?;
    let address = |octets: [u8; 16]| IpAddr::from(octets).to_canonical();
    Some(Route { client: address(*client), server: address(*server), secured: secured == [1] })
}

fn octets(address: &IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => [0; 16],
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(client: u8) -> Route {
        Route { client: [10, 0, 0, client].into(), server: [10, 0, 1, 1].into(), secured: client == 2 }
    }

    #[test]
    fn hosts_are_names_and_back() {
        for host in [route(1), route(2), Route { client: "fe80::1".parse().unwrap(), ..route(1) }] {
            assert_eq!(of_name(&to_name(&host)), Some(host));
        }
        let unknown = Route { server: Ipv4Addr::UNSPECIFIED.into(), ..route(1) };
        assert!(of_name(&to_name(&unknown)).unwrap().server.is_unspecified());
        assert_eq!(of_name(b"short"), None);
    }

    #[test]
    fn who_does_not_come_back_is_forgotten_after_the_grace_period() {
        let monitor = Monitor::after(vec![route(1), route(2)]);
        monitor.note(route(2));
        monitor.note(route(3));
        assert_eq!(monitor.known(), [route(1), route(2), route(3)]);
        let changes = monitor.changes();
        monitor.grace_ended();
        assert_eq!(monitor.known(), [route(2), route(3)]);
        assert!(monitor.changes() > changes);
    }
}
