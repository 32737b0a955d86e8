//! Cutting the power of the server machine.

use std::fs::File;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::Failure;
use super::hold::Shared;
use crate::config::{FileSystem, ServerKind};
use crate::cut::survivors::{at_risk, take_back};
use crate::cut::{CutDisk, CutFacts, LogError, PowerCut, Survivors, log};
use crate::guest::{Request, knfsd};
use crate::machine::MachineSpec;

/// How long the server may take to serve again: a repair of its file system, too.
const SERVE_AGAIN: Duration = Duration::from_secs(240);

impl Shared {
    /// Cuts the power of the server machine, makes its disk what it could be then, and has it serve again.
    pub(super) fn cut_server(&self, cut: PowerCut) -> Result<CutFacts, Failure> {
        let _turn = self.turn.lock();
        let refused = |reason: &str| Err(Failure::NoPowerCut { reason: reason.to_owned() });
        let config = self.config.lock().clone();
        let ServerKind::Knfsd(knfsd) = config.server else {
            return Err(Failure::NoKnfsd(config.server.to_string()));
        };
        if !config.power_cuts {
            return refused("its disk has no log; bring the lab up with `power_cuts`");
        }
        if knfsd.file_system == FileSystem::Tmpfs {
            return refused("it exports `tmpfs`, of which nothing would be left; choose `ext4` or `xfs`");
        }
        let server = self.machine("server")?;
        let start = Instant::now();
        let (disk, killed, boot) =
            server.cut_power(self.plan.back_end, |machine| lose(machine, cut).map_err(damaged))?;
        let again: knfsd::Recovered = server.ask(&Request::RecoverServer(knfsd), SERVE_AGAIN)?;
        let (repaired, grace) = (again.repaired, again.grace);
        Ok(CutFacts { killed, outage: start.elapsed(), boot, disk, repaired, grace })
    }
}

fn damaged(error: LogError) -> Failure {
    Failure::Other(format!(
        "the power of the machine `server` was cut, and it was not started again: {error}"
    ))
}

/// Takes the writes back that did not survive.
fn lose(machine: &MachineSpec, cut: PowerCut) -> Result<Survivors, LogError> {
    if cut.disk == CutDisk::Durable {
        return Ok(Survivors::default());
    }
    let now = clock_gettime(ClockId::Monotonic);
    let now = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    let (Some(disk), Some(logs)) = (machine.disks.first(), &machine.disk_log) else {
        return Err(LogError::Empty);
    };
    let open = |file| File::open(file).map_err(LogError::Read);
    let disk = File::options().read(true).write(true).open(disk).map_err(LogError::Read)?;
    let logs = [open(&logs[0])?, open(&logs[1])?];
    let entries = log::read([&logs[0], &logs[1]], disk.metadata()?.len())?;
    let risk = at_risk(&entries, cut.disk, now);
    take_back(&disk, &logs, &entries[risk], cut.seed)
}
