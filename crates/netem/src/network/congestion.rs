//! The congestion control of TCP connections over a network.
//!
//! It is an attribute of the route between the namespaces (`congctl` of ip-route(8)), which both ends of a connection
//! take from it. The setting of a whole namespace (`net.ipv4.tcp_congestion_control`) would refuse what the host does
//! not allow every user, `cubic` where `bbr` is the default for example; and the host's own is never touched.

use std::io;
use std::net::Ipv4Addr;

use crate::namespace::{Namespace, NamespaceError};
use crate::wire::{INTERFACE, NETWORK_BITS};

/// Of the kernel (`TCP_CA_NAME_MAX`), with the end.
const LONGEST_NAME: usize = 16;

/// Why TCP cannot have a congestion control.
#[derive(Debug, thiserror::Error)]
pub enum CongestionError {
    /// The kernel has none of this name, or it could be none's.
    #[error("the congestion control `{name}` is not available on this host; available: {available}")]
    Unavailable {
        name: String,
        /// What the kernel has, as it says it.
        available: String,
    },
    /// The kernel refused for another reason.
    #[error("cannot set the congestion control `{name}`: {source}")]
    Refused { name: String, source: NamespaceError },
    /// The namespace could not be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
}

/// Whether a congestion control could have this name: up to 15 letters, digits and signs, without spaces.
pub fn is_congestion_control(name: &str) -> bool {
    (1..LONGEST_NAME).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Has connections over the network that begin or end at this address be controlled by `name`, from now on.
pub(super) fn control(namespace: &Namespace, address: Ipv4Addr, name: &str) -> Result<(), CongestionError> {
    if !is_congestion_control(name) {
        return Err(unavailable(namespace, name)?);
    }
    let interfaces = namespace.interfaces()?;
    match interfaces.set_congestion(INTERFACE, address, NETWORK_BITS, name) {
        Ok(()) => Ok(()),
        // That is how the kernel says that it does not know the name.
        Err(NamespaceError::Interface { source, .. }) if source.raw_os_error() == Some(libc::EINVAL) => {
            Err(unavailable(namespace, name)?)
        }
        Err(source) => Err(CongestionError::Refused { name: name.to_owned(), source }),
    }
}

fn unavailable(namespace: &Namespace, name: &str) -> Result<CongestionError, NamespaceError> {
    const LIST: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let list: io::Result<String> = namespace.run(|| std::fs::read_to_string(LIST))?;
    let available = match list {
        Ok(list) => list.split_ascii_whitespace().collect::<Vec<_>>().join(", "),
        Err(error) => format!("not known ({LIST}: {error})"),
    };
    Ok(CongestionError::Unavailable { name: name.to_owned(), available })
}
