//! What a guest says of itself.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Where process 1 leaves what the control server tells.
pub(super) const BOOT: &str = "/run/benchmaster/boot.json";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuestFacts {
    /// The kernel's release, such as `6.1.176`.
    pub release: String,
    pub host_name: String,
    /// Time since the kernel started.
    pub uptime: Duration,
    /// The kernel's clock source.
    pub clock_source: Option<String>,
    /// When what was done since the kernel started; empty where there is no machine.
    pub boot: Vec<BootStep>,
}

/// A step of process 1 that was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootStep {
    pub done: String,
    /// When, since the kernel started.
    pub at: Duration,
}

impl GuestFacts {
    /// Those of this machine.
    pub(super) fn collect() -> Self {
        let system = rustix::system::uname();
        let text = |bytes: &std::ffi::CStr| bytes.to_string_lossy().into_owned();
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let boot = fs::read_to_string(BOOT).ok().and_then(|text| serde_json::from_str(&text).ok());
        Self {
            release: text(system.release()),
            host_name: text(system.nodename()),
            uptime: uptime(),
            clock_source: fs::read_to_string(Path::new(source)).ok().map(|text| text.trim().to_owned()),
            boot: boot.unwrap_or_default(),
        }
    }
}

/// Time since the kernel started.
pub(super) fn uptime() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}
