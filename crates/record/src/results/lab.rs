//! The machines in user space in which a run was done.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The lab of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LabRecord {
    /// What the machines were: `qemu-kvm`, `uml`, `qemu-tcg`, `uml-virtual-time`, `namespaces`.
    pub back_end: String,
    /// How its clock moved.
    pub time: LabTime,
    /// Who served: `knfsd`, `memory`, `ganesha`, or a host.
    pub server: String,
    /// Whether a wire with delay, bandwidth and loss was between clients and server.
    pub emulated: bool,
    /// SHA-256 of the image that the machines had as their root, in hexadecimal digits.
    pub image: String,
    /// Packets per second and interface that were sent against lost wake-ups; 0 where none are needed.
    pub wake_ups: f64,
    /// The machines: the server first, if it was one.
    pub machines: Vec<LabMachine>,
}

words! {
    /// How time passes in a lab.
    #[derive(Default, schemars::JsonSchema)]
    LabTime {
        /// As it does on the host.
        #[default]
        Real = "real",
        /// Only when all machines wait, in one kernel: latencies and counts are exact, and rates mean nothing.
        Virtual = "virtual",
    }
}

/// A machine of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LabMachine {
    /// `server`, `c1`, `c2`, ….
    pub name: String,
    /// Release of its kernel, as `uname -r` says.
    pub kernel: String,
    /// SHA-256 of the kernel's file, in hexadecimal digits.
    pub kernel_hash: String,
    /// Where the kernel was from, in words.
    pub kernel_origin: String,
    /// Memory in bytes.
    pub memory: u64,
    /// From its start until it served, in nanoseconds.
    pub boot_ns: u64,
    /// What it printed on its console, relative to the results directory; kept when the run failed.
    pub console: Option<String>,
}

impl LabRecord {
    /// Whether latencies are exact, and rates mean nothing.
    pub fn is_virtual(&self) -> bool {
        self.time == LabTime::Virtual
    }

    /// The kernels of the clients.
    pub fn client_kernels(&self) -> BTreeSet<&str> {
        let clients = self.machines.iter().filter(|machine| machine.name != "server");
        clients.map(|machine| machine.kernel.as_str()).collect()
    }

    /// The kernel of the server, if it was a machine.
    pub fn server_kernel(&self) -> Option<&str> {
        Some(self.machines.iter().find(|machine| machine.name == "server")?.kernel.as_str())
    }
}

impl fmt::Display for LabRecord {
    /// `2 clients with Linux 6.1.176 and a server (knfsd) with Linux 6.12.88 on uml`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clients = self.machines.iter().filter(|machine| machine.name != "server").count();
        let kernels = self.client_kernels().into_iter().collect::<Vec<_>>().join(", ");
        let plural = if clients == 1 { "" } else { "s" };
        write!(f, "{clients} client{plural}")?;
        if !kernels.is_empty() {
            write!(f, " with Linux {kernels}")?;
        }
        match (self.server_kernel(), self.server.as_str()) {
            (Some(kernel), server) => write!(f, " and a server ({server}) with Linux {kernel}")?,
            (None, "memory") => f.write_str(" and the embedded server")?,
            (None, server) => write!(f, " and the server {server}")?,
        }
        write!(f, " on {}", self.back_end)?;
        if self.is_virtual() { f.write_str(", on virtual time") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labs_in_words() {
        let machine = |name: &str, kernel: &str| LabMachine {
            name: name.into(),
            kernel: kernel.into(),
            ..LabMachine::default()
        };
        let lab = LabRecord {
            back_end: "uml".into(),
            time: LabTime::Real,
            server: "knfsd".into(),
            machines: vec![machine("server", "6.12.88"), machine("c1", "6.1.176"), machine("c2", "6.1.176")],
            ..LabRecord::default()
        };
        assert_eq!(
            lab.to_string(),
            "2 clients with Linux 6.1.176 and a server (knfsd) with Linux 6.12.88 on uml"
        );
        let one = LabRecord {
            server: "memory".into(),
            time: LabTime::Virtual,
            machines: vec![machine("c1", "6.1.176")],
            ..lab
        };
        assert_eq!(
            one.to_string(),
            "1 client with Linux 6.1.176 and the embedded server on uml, on virtual time"
        );
    }
}
