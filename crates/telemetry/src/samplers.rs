//! The samplers: each a pure parser of one of the kernel's formats, a thin reader, and a list of metrics.

use std::fmt;
use std::time::Duration;

use crate::sampling::text::Malformed;
use crate::sampling::{Reading, Registered, SampleError, Sampler, SamplingConfig, Sink, Source};

pub mod cgroup;
pub mod cpu;
pub mod diskstats;
pub mod ethtool;
pub mod interrupts;
pub mod jbd2;
pub mod memory;
pub mod mountstats;
pub mod net;
pub mod nfsd;
mod parsers;
pub mod pressure;
pub mod process;
pub mod slab;
pub mod softnet;
pub mod tcp_info;
#[cfg(test)]
mod testing;
pub mod vmstat;

pub use parsers::{PARSERS, Parser};

/// In the order in which they are read.
pub(crate) const ALL: &[Registered] = &[
    cpu::REGISTERED,
    memory::REGISTERED,
    vmstat::REGISTERED,
    diskstats::REGISTERED,
    net::REGISTERED,
    ethtool::REGISTERED,
    tcp_info::REGISTERED,
    softnet::REGISTERED,
    interrupts::REGISTERED,
    mountstats::REGISTERED,
    nfsd::REGISTERED,
    jbd2::REGISTERED,
    slab::REGISTERED,
    pressure::REGISTERED,
    cgroup::REGISTERED,
    process::REGISTERED,
];

/// A file below `/proc` that every system has.
fn in_proc(config: &SamplingConfig, path: &str) -> Source {
    Source::new(config.places.proc.join(path), "is /proc mounted?")
}

type Parse = Box<dyn FnMut(&str, &mut Reading<'_>) -> Result<(), Malformed> + Send>;

/// A sampler of one or more files that are always in the same places.
struct Files {
    registered: &'static Registered,
    files: Vec<(Source, Parse)>,
    least_interval: Duration,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("sampler", &self.registered.name).finish_non_exhaustive()
    }
}

impl Files {
    fn new(registered: &'static Registered) -> Self {
        Self { registered, files: Vec::new(), least_interval: Duration::ZERO }
    }

    /// Files that the kernel takes long to write, and that change slowly.
    fn not_more_often_than(self, least_interval: Duration) -> Self {
        Self { least_interval, ..self }
    }

    /// One more file.
    fn and(
        mut self,
        file: Source,
        parse: impl FnMut(&str, &mut Reading<'_>) -> Result<(), Malformed> + Send + 'static,
    ) -> Self {
        self.files.push((file, Box::new(parse)));
        self
    }
}

impl Sampler for Files {
    fn name(&self) -> &'static str {
        self.registered.name
    }

    fn least_interval(&self) -> Duration {
        self.least_interval
    }

    fn read(&mut self, out: &mut Reading<'_>) -> Result<(), SampleError> {
        for (file, parse) in &mut self.files {
            let Some(text) = file.text(out) else { continue };
            if let Err(fault) = parse(text, out) {
                out.problem(&file.fault(fault));
            }
        }
        Ok(())
    }
}
