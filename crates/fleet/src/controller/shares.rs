//! Which clients each agent is.

use std::collections::{HashMap, HashSet};

use benchmaster_workload::conduct::Share;

use crate::protocol::Role;

/// Divides clients among agents on the hosts of these names, in their order: as evenly as can be, the first ones with one
/// more.
pub(super) fn divide(clients: u32, hosts: &[&str]) -> Vec<Role> {
    let processes = u32::try_from(hosts.len()).unwrap_or(u32::MAX).max(1);
    let (each, more) = (clients / processes, clients % processes);
    let mut on_host: HashMap<&str, u32> = HashMap::new();
    for host in hosts {
        *on_host.entry(host).or_default() += 1;
    }
    let mut first = 0;
    let mut seen = HashSet::new();
    (0..processes)
        .zip(hosts)
        .map(|(process, host)| {
            let count = each + u32::from(process < more);
            let first_on_host = seen.insert(*host);
            let lead = process == 0;
            let share = Share { first, count, total: clients, process, processes, lead, first_on_host };
            first += count;
            let neighbours = on_host.get(host).copied().unwrap_or(1);
            Role { share: Some(share), neighbours, looks: first_on_host }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_divided_evenly_and_hosts_counted() {
        let roles = divide(11, &["a", "a", "b", "a"]);
        let of = |f: fn(&Role) -> u32| roles.iter().map(f).collect::<Vec<_>>();
        assert_eq!(of(|role| role.share.unwrap().count), [3, 3, 3, 2]);
        assert_eq!(of(|role| role.share.unwrap().first), [0, 3, 6, 9]);
        assert_eq!(of(|role| u32::from(role.share.unwrap().first_on_host)), [1, 0, 1, 0]);
        assert_eq!(of(|role| u32::from(role.share.unwrap().lead)), [1, 0, 0, 0]);
        assert_eq!(of(|role| role.neighbours), [3, 3, 1, 3]);
        assert!(
            roles.iter().filter_map(|role| role.share).all(|share| share.total == 11 && share.processes == 4)
        );
    }
}
