//! The disk of the server, or of the host whose directory is measured.

use std::collections::BTreeMap;

use benchmaster_record::environment::TargetEnvironment;
use benchmaster_record::recording::HostSamples;
use benchmaster_telemetry::derived::Derived;

use crate::prelude::*;

/// Share of the time with requests in flight from which on a disk is the limit.
const FULL: f64 = 0.8;
/// Requests under way in the mean: less leaves it waiting for work.
const LEAST_QUEUE: f64 = 0.8;
/// Fewer requests a second say little.
const LEAST_RATE: f64 = 10.0;

pub(super) const DETECTOR: Detector = Detector { id: "server-disk", detect };

/// A device and what it did.
struct Disk {
    name: String,
    utilization: f64,
    queue: f64,
    wait_ns: f64,
    rate: f64,
}

fn detect(measured: &Measured<'_>) -> Verdict {
    if measured.is_virtual() || measured.is_embedded() && !measured.has_modelled_disk() {
        return Verdict::Irrelevant;
    }
    let (host, whose) = if measured.is_nfs() {
        (measured.server_host(), "server's disk")
    } else {
        (measured.clients().next(), "disk")
    };
    if !measured.is_nfs() && memory(measured) {
        return Verdict::Irrelevant;
    }
    let Some(host) = host else {
        return Verdict::Unknown(if measured.is_nfs() {
            measured.without_server()
        } else {
            "the host's disks were not sampled: keep `[sampling]` on, with the sampler `diskstats`".into()
        });
    };
    if host.samples.of("diskstats", "busy_time").next().is_none() {
        return Verdict::Unknown("no disk was sampled: keep the sampler `diskstats` in `[sampling]`; machines without one have no disk".into());
    }
    let Some(disk) = busiest(measured, host) else { return Verdict::Clear };
    if disk.utilization < FULL || disk.queue < LEAST_QUEUE || disk.rate < LEAST_RATE {
        return Verdict::Clear;
    }
    let confidence = if disk.queue >= 1.0 { Confidence::Likely } else { Confidence::Possible };
    let Disk { name, utilization, queue, wait_ns, rate } = disk;
    let what = format!(
        "The {whose} {name} had requests in flight {} of the time, {queue:.1} on average; each took {}.",
        percent(utilization),
        time(wait_ns)
    );
    Verdict::Found(
        Finding::new(confidence, what)
            .with([
                Evidence::number("share of the time with requests in flight (%util)", utilization),
                Evidence::number("requests in flight on average (aqu-sz)", queue),
                Evidence::nanoseconds("time of a request (await)", wait_ns),
                Evidence::per_second("requests per second", rate),
            ])
            .costs(utilization),
    )
}

/// Whether the directory lies in memory.
fn memory(measured: &Measured<'_>) -> bool {
    let hosts = measured.environments().into_iter().flat_map(|hosts| hosts.values());
    hosts.filter_map(|host| host.target.as_ref()).any(TargetEnvironment::is_memory)
}

/// The device that was busy most; of partitions and what is stacked upon others the one that is named first.
fn busiest(measured: &Measured<'_>, host: &HostSamples) -> Option<Disk> {
    let derived = measured.derived(host);
    let names = derived.keys().filter_map(|name| name.strip_prefix("disk.")?.strip_suffix(".utilization"));
    let disk = |name: &str| {
        let number = |what: &str| value(&derived, &format!("disk.{name}.{what}"));
        Disk {
            name: name.to_owned(),
            utilization: number("utilization").min(1.0),
            queue: number("queue"),
            wait_ns: number("wait"),
            rate: number("reads") + number("writes"),
        }
    };
    names.map(disk).reduce(|most, other| if other.utilization > most.utilization { other } else { most })
}

fn value(derived: &BTreeMap<String, Derived>, name: &str) -> f64 {
    derived.get(name).map_or(0.0, |derived| derived.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::Made;
    use benchmaster_record::results::ServedBy;

    /// A device of the server with these shares of time busy and queue.
    fn made(utilization: f64, queue: f64, writes: f64) -> Made {
        let mut made = Made::spread();
        made.run().service.as_mut().unwrap().server = ServedBy::Knfsd;
        disk(&mut made, "server", utilization, queue, writes);
        made
    }

    fn disk(made: &mut Made, agent: &str, utilization: f64, queue: f64, writes: f64) {
        let length = made.recording().length_ns as f64;
        for (metric, growth) in [
            ("reads", 0.0),
            ("writes", writes * length / 1e9),
            ("busy_time", utilization * length),
            ("queue_time", queue * length),
            ("write_time", queue * length),
        ] {
            made.sample(agent, "diskstats", metric, "vdb", growth);
        }
    }

    #[test]
    fn busy_disks_with_a_queue_are_found() {
        let found = made(0.81, 4.0, 400.0).found(&DETECTOR);
        assert_eq!(found.confidence, Confidence::Likely);
        assert!(found.what.contains("vdb had requests in flight 81 % of the time, 4.0"), "{}", found.what);
        assert!(found.what.contains("each took 10.0 ms"), "{}", found.what);
        assert_eq!(made(0.95, 0.95, 400.0).found(&DETECTOR).confidence, Confidence::Possible);
    }

    #[test]
    fn idle_disks_are_none() {
        for (utilization, queue, writes) in [(0.79, 4.0, 400.0), (0.9, 0.7, 400.0), (0.9, 2.0, 9.0)] {
            assert_eq!(made(utilization, queue, writes).verdict(&DETECTOR), Verdict::Clear);
        }
    }

    #[test]
    fn of_a_directory_the_host_s_own_disks_count() {
        let mut local = Made::new();
        assert!(matches!(local.verdict(&DETECTOR), Verdict::Unknown(why) if why.contains("diskstats")));
        disk(&mut local, "vm", 0.9, 3.0, 100.0);
        assert!(local.found(&DETECTOR).what.starts_with("The disk vdb"));
        let mut memory = Made::new();
        for session in &mut memory.results.sessions {
            let hosts = session.environment.values_mut();
            hosts.for_each(|host| host.target.as_mut().unwrap().file_system = "tmpfs".into());
        }
        assert_eq!(memory.verdict(&DETECTOR), Verdict::Irrelevant);
        assert_eq!(Made::served().verdict(&DETECTOR), Verdict::Irrelevant);
    }

    #[test]
    fn servers_that_were_not_looked_at_are_not_known() {
        let mut unseen = made(0.9, 4.0, 400.0);
        unseen.recording().samples.retain(|host| host.agent != "server");
        assert!(matches!(unseen.verdict(&DETECTOR), Verdict::Unknown(_)));
        let mut diskless = made(0.9, 4.0, 400.0);
        let server = diskless.recording().samples.iter_mut().find(|host| host.agent == "server").unwrap();
        server.samples.series.retain(|series| series.key.sampler != "diskstats");
        assert!(matches!(diskless.verdict(&DETECTOR), Verdict::Unknown(why) if why.contains("diskstats")));
    }
}
