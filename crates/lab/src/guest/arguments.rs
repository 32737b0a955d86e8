//! The arguments of process 1 of a guest: words `benchmaster.NAME=VALUE` of the kernel's command line.

use std::net::Ipv4Addr;

use benchmaster_netem::namespace::MacAddress;

/// What begins every name.
const PREFIX: &str = "benchmaster.";

/// Where a guest's programs are: what the kernel does not know itself goes into the environment of process 1.
pub(super) const PATH: &str = "/sbin:/usr/sbin:/usr/bin:/bin";

/// The arguments of process 1 of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arguments {
    /// The host name: NFS version 4 clients with the same one take each other's leases.
    pub name: String,
    /// The interface for NFS.
    pub data: Option<Address>,
    /// The interface for requests.
    pub control: Option<Address>,
    /// How many clients the lab has.
    pub clients: u32,
    /// The disk with what a server has to remember of its clients over a power cut.
    pub state: Option<String>,
}

/// What an interface is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    pub address: Ipv4Addr,
    /// Bits of the network.
    pub prefix: u8,
    /// The Ethernet address by which it is found.
    pub mac: MacAddress,
}

impl Arguments {
    /// Reads the kernel's command line. Words that are not ours, or make no sense, are left out.
    pub fn parse(line: &str) -> Self {
        let mut arguments = Self::default();
        for word in line.split_ascii_whitespace() {
            let Some((name, value)) = word.strip_prefix(PREFIX).and_then(|word| word.split_once('=')) else {
                continue;
            };
            match name {
                "name" => arguments.name = value.into(),
                "data" => arguments.data = interface(value),
                "control" => arguments.control = interface(value),
                "state" => arguments.state = Some(value.into()),
                "clients" => arguments.clients = value.parse().unwrap_or_default(),
                _ => {}
            }
        }
        arguments
    }

    /// The words, as names and values.
    pub fn words(&self) -> Vec<(String, String)> {
        let mut words = vec![("name", self.name.clone())];
        for (name, interface) in [("data", self.data), ("control", self.control)] {
            if let Some(Address { address, prefix, mac }) = interface {
                words.push((name, format!("{address}/{prefix},{mac}")));
            }
        }
        words.push(("clients", self.clients.to_string()));
        words.extend(self.state.iter().map(|state| ("state", state.clone())));
        let ours = words.into_iter().map(|(name, value)| (format!("{PREFIX}{name}"), value));
        ours.chain([("PATH".to_owned(), PATH.to_owned())]).collect()
    }
}

/// `10.77.1.1/16,02:62:6d:00:00:01`
fn interface(text: &str) -> Option<Address> {
    let (network, mac) = text.split_once(',')?;
    let (address, prefix) = network.split_once('/')?;
    Some(Address { address: address.parse().ok()?, prefix: prefix.parse().ok()?, mac: mac_address(mac)? })
}

pub(super) fn mac_address(text: &str) -> Option<MacAddress> {
    let mut parts = text.trim().split(':').map(|part| u8::from_str_radix(part, 16).ok());
    let mut mac = [0; 6];
    for byte in &mut mac {
        *byte = parts.next()??;
    }
    parts.next().is_none().then_some(MacAddress(mac))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lead_back_to_arguments() {
        let mac = |last| MacAddress([2, 0x62, 0x6d, 0, 0, last]);
        let arguments = Arguments {
            name: "c1".into(),
            data: Some(Address { address: Ipv4Addr::new(10, 77, 1, 1), prefix: 16, mac: mac(1) }),
            control: Some(Address { address: Ipv4Addr::new(10, 78, 1, 1), prefix: 16, mac: mac(2) }),
            clients: 5,
            state: Some("/dev/ubdc".into()),
        };
        let line: Vec<String> =
            arguments.words().iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(Arguments::parse(&format!("mem=1M {} quiet\n", line.join(" "))), arguments);
    }

    #[test]
    fn what_makes_no_sense_is_left_out() {
        let line =
            "benchmaster.data=10.77.1.1,02: benchmaster.clients=x benchmaster. name=c2 benchmaster.name";
        assert_eq!(Arguments::parse(line), Arguments::default());
        assert_eq!(mac_address("02:62:6d:00:00"), None);
        assert_eq!(mac_address("02:62:6d:00:00:01:02"), None);
    }
}
