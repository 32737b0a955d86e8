//! Counters of network devices, those of each queue among them: what `ethtool -S` shows.

use std::time::Duration;

use super::{Reading, Registered, SampleError, Sampler, SamplingConfig, Sink};
use crate::sampling::{Metric, MetricInfo};

mod ioctl;

use ioctl::{Counters, Device};

/// What it reads: names are the driver's.
pub const METRICS: &[MetricInfo] = &[MetricInfo::counter(
    "…",
    "1",
    "interface",
    "every name of the driver: `rx_queue_0_packets`, `tx0_bytes`, `rx_missed_errors`, …; the driver's documentation \
     defines them, and some are not counters",
)];

pub(crate) const REGISTERED: Registered = Registered {
    name: "ethtool",
    about: "Counters of network device drivers, as shown by `ethtool -S`. Devices without any are skipped, including \
            loopback.",
    metrics: METRICS,
    make: |config| Box::new(Ethtool::new(config)),
};

/// Devices come and go less often than they count.
const LOOK_AGAIN_NS: i64 = Duration::from_secs(1).as_nanos() as i64;

/// Asks the drivers.
#[derive(Debug)]
struct Ethtool {
    classes: std::path::PathBuf,
    counters: Option<Counters>,
    devices: Vec<Device>,
    again_ns: i64,
}

impl Ethtool {
    fn new(config: &SamplingConfig) -> Self {
        let classes = config.places.sys.join("class/net");
        Self { classes, counters: None, devices: Vec::new(), again_ns: i64::MIN }
    }

    fn look(&mut self) -> Result<(), SampleError> {
        let fail = |source| SampleError::Read { path: self.classes.clone(), source };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.classes).map_err(fail)? {
            names.extend(entry.map_err(fail)?.file_name().into_string());
        }
        names.sort();
        self.devices.retain(|device| names.iter().any(|name| name == device.name()));
        for name in names {
            if !self.devices.iter().any(|device| device.name() == name) {
                self.devices.extend(Device::new(&name));
            }
        }
        Ok(())
    }
}

impl Sampler for Ethtool {
    fn name(&self) -> &'static str {
        REGISTERED.name
    }

    fn read(&mut self, out: &mut Reading<'_>) -> Result<(), SampleError> {
        if out.time_ns() >= self.again_ns {
            self.again_ns = out.time_ns().saturating_add(LOOK_AGAIN_NS);
            self.look()?;
        }
        let counters = match &mut self.counters {
            Some(counters) => counters,
            none => none.insert(Counters::open().map_err(|error| {
                SampleError::Other(format!("no socket could be made to ask network devices: {error}"))
            })?),
        };
        for device in &mut self.devices {
            match counters.ask_for(device) {
                Ok(()) => {
                    for (name, value) in counters.values(device) {
                        out.put(Metric::counter(name, "1"), device.name(), value as f64);
                    }
                }
                // Most virtual devices have none, and one may just have gone away.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENODEV)) => {}
                Err(error) => out.problem(&SampleError::Other(format!(
                    "the counters of {} cannot be read: {error}",
                    device.name()
                ))),
            }
        }
        Ok(())
    }
}

/// Names of counters: 32 bytes each, ended by a zero byte where they are shorter.
pub fn names(bytes: &[u8]) -> impl Iterator<Item = String> {
    bytes.chunks_exact(NAME).map(|name| {
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
        String::from_utf8_lossy(name.get(..end).unwrap_or_default()).trim().to_owned()
    })
}

/// Length of a name (`ETH_GSTRING_LEN`).
const NAME: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samplers::testing::sampled;

    #[test]
    fn names_end_with_zero_or_after_32_bytes() {
        let mut bytes = vec![0; 96];
        bytes[..10].copy_from_slice(b"rx_packets");
        bytes[32..64].fill(b'x');
        bytes[64..67].copy_from_slice(b" a\xff");
        // What is left over is no name.
        bytes.extend([1; 31]);
        let found: Vec<_> = names(&bytes).collect();
        assert_eq!(found, ["rx_packets".to_owned(), "x".repeat(32), "a\u{fffd}".to_owned()]);
    }

    #[test]
    fn this_host_is_read_as_ethtool_reads_it() {
        let samples = sampled(&REGISTERED, &SamplingConfig::default(), &[&|| (), &|| ()]);
        assert_eq!(samples.problems, []);
        assert!(samples.series.iter().all(|series| series.key.instance != "lo"));
        // The same names as the program prints, where it is installed and there are devices with counters.
        let Some(device) = samples.series.first().map(|series| series.key.instance.clone()) else {
            println!("skipped: no device here has counters");
            return;
        };
        let Ok(shown) = std::process::Command::new("ethtool").args(["-S", &device]).output() else {
            println!("skipped: ethtool is not installed");
            return;
        };
        let text = String::from_utf8_lossy(&shown.stdout);
        let shown: Vec<_> =
            text.lines().skip(1).filter_map(|line| Some(line.rsplit_once(": ")?.0.trim())).collect();
        let own: Vec<_> = samples
            .series
            .iter()
            .filter(|series| series.key.instance == device)
            .map(|series| series.key.metric.as_str())
            .collect();
        assert_eq!(own, shown);
    }

    #[test]
    fn a_host_without_devices_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let config = crate::samplers::testing::config_in(root.path());
        let samples = sampled(&REGISTERED, &config, &[&|| (), &|| ()]);
        assert_eq!(samples.problems.len(), 1, "{:?}", samples.problems);
    }
}
