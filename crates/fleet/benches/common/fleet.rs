//! A fleet of the bench's own executable.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use benchmaster_fleet::agent;
use benchmaster_fleet::controller::{Fleet, FleetConfig, Launch};
use benchmaster_fleet::job::Job;
use benchmaster_fleet::stream::stdio;
use benchmaster_fleet::tree::FAN_OUT;
use benchmaster_workload::cache::CacheControl;

/// Serves a controller when this process is an agent; then there is nothing else to do.
pub(crate) fn is_agent() -> bool {
    if std::env::args().nth(1).as_deref() != Some("agent") {
        return false;
    }
    let ended = agent::serve(async || stdio::take());
    std::process::exit(if ended.is_ok() { 0 } else { 1 });
}

/// Agents with one client each, no more than this number behind one process.
pub(crate) fn launch(agents: u32, fan_out: u32) -> Fleet {
    let own = std::env::current_exe().unwrap();
    start(agents, own, vec!["agent".into()], fan_out)
}

/// Agents whose clocks differ from the controller's: each has a time namespace of its own, which takes root.
#[allow(dead_code, reason = "one bench uses it")]
pub(crate) fn launch_with_other_clocks(agents: u32) -> Option<Fleet> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let own = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    let unshare = ["--time", "--monotonic", "86400", "--fork", "--kill-child", "--"].map(str::to_owned);
    let arguments = unshare.into_iter().chain([own, "agent".into()]).collect();
    Some(start(agents, "unshare".into(), arguments, FAN_OUT))
}

fn start(agents: u32, binary: PathBuf, arguments: Vec<String>, fan_out: u32) -> Fleet {
    let local = Launch::Local { processes: agents, namespaces: Vec::new() };
    let patience = Duration::from_secs(30);
    let config = FleetConfig { arguments, patience, fan_out, ..FleetConfig::new(local, agents, binary) };
    Fleet::launch(&config, &AtomicBool::new(false), &mut |_| {}).unwrap()
}

/// One iteration of a group with this flow, on a file of its own for each client.
pub(crate) fn job(group: &str) -> Job {
    let workload = format!(
        r#"
        until = {{ iterations = 1 }}
        [filesets.data]
        files = 1
        size = "4KiB"
        [[groups]]
        name = "g"
        {group}
        "#
    );
    Job {
        name: "one".into(),
        workload: toml::from_str(&workload).unwrap(),
        stagger: Duration::ZERO,
        seed: 1,
        fileset_seed: 1,
        interval_ns: 1_000_000_000,
        cache: CacheControl::Keep,
        hook: None,
        max_errors: 1,
        ledgers: None,
        trace: false,
        sampling: None,
        collect: Vec::new(),
    }
}
