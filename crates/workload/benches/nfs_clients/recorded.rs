//! Our client under the executor: workers, latencies of every call, intervals, the RPC table.

use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, anyhow, ensure};
use benchmaster_record::model::{OperationKind, Workload};
use benchmaster_workload::area::WorkArea;
use benchmaster_workload::cache::CacheControl;
use benchmaster_workload::conduct::{Alone, Share};
use benchmaster_workload::execute::{Options, execute};
use benchmaster_workload::target::{NfsTarget, Target};

use super::job::{DATA_SIZE, Job, Operation, Outcome};

/// Does the job as a workload of one client. CPU time is that of its reactor thread. What it made stays on the server, which
/// ends soon.
pub(crate) fn run(job: &Job) -> Result<Outcome> {
    let target = Target::Nfs(NfsTarget::new(job.url().parse()?));
    let mut area = WorkArea::create(&target, &format!("bench-{}", std::process::id()))?;
    let (workload, kind) = workload(job)?;
    let options = Options {
        share: Share::all(1),
        stagger: std::time::Duration::ZERO,
        neighbours: 1,
        seed: 1,
        fileset_seed: 1,
        interval_ns: 1_000_000_000,
        cache: CacheControl::Keep,
        hook: None,
        max_errors: 0,
        ledgers: std::path::Path::new("/tmp"),
        stop: &AtomicBool::new(false),
    };
    let recording = execute(&mut area, "w", &workload, &options, &mut Alone, None, &mut |_| {})?;
    ensure!(recording.error_details.is_empty(), "{}", recording.error_details.join("; "));
    let rpc = recording.rpc.context("no RPCs were recorded")?;
    let (user, system) = rpc.client_cpu_ns;
    let calls = recording.series.iter().filter(|series| series.key.operation == kind);
    Ok(Outcome {
        calls: calls.map(|series| series.total.count).sum(),
        seconds: recording.length_ns as f64 / 1e9,
        cpu: (user + system) as f64 / 1e9,
    })
}

/// The workload, and which of its operations counts.
fn workload(job: &Job) -> Result<(Workload, OperationKind)> {
    let (files, size, until) = (job.outstanding, job.size, format!("duration = '{}s'", job.seconds));
    let data = format!("files = 1, size = '{DATA_SIZE}B'");
    let (kind, fileset, group) = match job.operation {
        Operation::Read => (
            OperationKind::Read,
            data,
            format!(
                "setup = [{{ op = 'open' }}]\nflow = [{{ op = 'read', io_size = '{size}B', offset = 'random' }}]"
            ),
        ),
        Operation::Write => (
            OperationKind::Write,
            format!("files = {files}, size = '{}B'", size * 16),
            format!(
                "setup = [{{ op = 'open', file = 'own', flags = ['write'] }}]\n\
                 flow = [{{ op = 'write', io_size = '{size}B', offset = 'sequential' }}]"
            ),
        ),
        Operation::Getattr => {
            (OperationKind::Stat, "files = 1, size = '4KiB'".into(), "flow = [{ op = 'stat' }]".into())
        }
        Operation::Create => (
            OperationKind::Create,
            "files = 2000000, size = '0B', prefill = 0.0".into(),
            "flow = [{ op = 'create', file = 'new', flags = ['write'] }, { op = 'close' }]".into(),
        ),
    };
    let text = format!(
        "until = {{ {until} }}\nwarm_up = '{}s'\nclaims = 'cache'\nfilesets.data = {{ {fileset} }}\n\
         [[groups]]\nname = 'bench'\nworkers = {}\n{group}\n",
        job.seconds / 10.0,
        job.outstanding,
    );
    let workload = toml::from_str(&text).map_err(|error| anyhow!("{error}\n{text}"))?;
    Ok((workload, kind))
}
