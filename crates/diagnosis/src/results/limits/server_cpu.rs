//! The processors of the server.

use super::client_cpu::own_share;
use crate::prelude::*;

/// Busy share of the server's processors from which on they are the limit.
const FULL: f64 = 0.9;
/// The same of the busiest of them.
const ONE_FULL: f64 = 0.97;
/// Part of the busiest processor's time that is the kernel's when it is that of NFS or of the network.
const KERNEL: f64 = 0.5;
/// Share of what this program took of a full host that the embedded server must have had.
const EMBEDDED: f64 = 0.5;

pub(super) const DETECTOR: Detector = Detector { id: "server-cpu", detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    if !measured.is_nfs() || measured.is_virtual() {
        return Verdict::Irrelevant;
    }
    if measured.is_embedded() {
        return embedded(measured);
    }
    let Some(server) = measured.server_host() else {
        return Verdict::Unknown(measured.without_server());
    };
    let derived = measured.derived(server);
    let number = |name: &str| derived.get(name).map(|derived| derived.value);
    let Some(busy) = number("cpu.busy") else {
        return Verdict::Unknown(
            "the server's processors were not sampled: add the sampler `cpu` to `[sampling]`".into(),
        );
    };
    let busiest = number("cpu.busiest").unwrap_or(busy);
    let kernel = number("cpu.system").unwrap_or(0.0);
    let one = busiest >= ONE_FULL && kernel >= KERNEL * busy;
    if busy < FULL && !one {
        return Verdict::Clear;
    }
    let taken = busy.max(busiest);
    let what = if busy >= FULL {
        format!(
            "The server's processors were {} busy, {} of the time in the kernel.",
            percent(busy),
            percent(kernel)
        )
    } else {
        format!(
            "One of the server's processors was {} busy while all together were {}: one queue or thread does the work.",
            percent(busiest),
            percent(busy)
        )
    };
    let remedy = if busy >= FULL { case("server-cpu", "all") } else { case("server-cpu", "one") };
    let evidence = [
        Evidence::number("busy share of the server's processors", busy),
        Evidence::number("busy share of the busiest processor", busiest),
        Evidence::number("share of the time in the kernel", kernel),
    ];
    Verdict::Found(finding(what, remedy, taken, "busy share").with(evidence))
}

fn embedded(measured: &Measured<'_>) -> Verdict {
    let Some(cpu) = measured.server().and_then(|server| server.cpu_ns) else {
        return Verdict::Unknown("the CPU time of the embedded server was not recorded".into());
    };
    let full = stored(measured, CheckKind::CpuLimit).and_then(|check| check.number("host_busy"));
    let host = &measured.recording.host;
    let own = host.process_ns() as f64;
    let part = share(cpu as f64, own);
    // A host that others filled is not the server's.
    let load = full.is_some_and(|busy| busy >= 0.95 && own_share(measured) >= 0.5 * busy);
    if !load || part < EMBEDDED {
        return Verdict::Clear;
    }
    let processors = cpu as f64 / measured.recording.length_ns.max(1) as f64;
    let taken = share(processors, f64::from(host.processors.max(1)));
    let what = format!(
        "The embedded server took {processors:.2} of the {} processors, {} of what this program took of a host that had none left.",
        host.processors,
        percent(part)
    );
    let remedy = case("server-cpu", "embedded");
    let evidence = [
        Evidence::number("processors that the server took", processors),
        Evidence::number("share of this program's CPU time", part),
    ];
    Verdict::Found(
        finding(what, remedy, taken, "CPU time of the server / (processors · time)").with(evidence),
    )
}

fn finding(what: String, remedy: Remedy, taken: f64, estimate: &str) -> Finding {
    Finding::new(Confidence::Likely, what).advised(remedy).costs_as(taken, CostOf::Time, estimate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::Made;
    use benchmaster_record::results::ServedBy;

    /// A kernel's server whose two processors were busy for these shares, all of it in the kernel.
    fn made(first: f64, second: f64) -> Made {
        let mut made = Made::spread();
        made.run().service.as_mut().unwrap().server = ServedBy::Knfsd;
        let server = made.recording().samples.iter_mut().find(|host| host.agent == "server").unwrap();
        server.samples.series.retain(|series| series.key.sampler != "cpu");
        let length = made.recording().length_ns as f64;
        for (processor, busy) in [("0", first), ("1", second), ("", first + second)] {
            let whole = if processor.is_empty() { 2.0 } else { 1.0 };
            for (metric, share) in [("user", 0.0), ("system", busy), ("idle", whole - busy)] {
                made.sample("server", "cpu", metric, processor, share * length);
            }
        }
        made
    }

    #[test]
    fn full_processors_are_found_and_one_of_them_as_well() {
        let found = made(0.91, 0.9).found(&DETECTOR);
        assert!(
            found.what.contains("processors were 90 % busy") || found.what.contains("91 % busy"),
            "{}",
            found.what
        );
        let one = made(0.98, 0.1).found(&DETECTOR);
        assert!(one.what.starts_with("One of the server's processors was 98 %"), "{}", one.what);
        assert!((one.cost.unwrap().share - 0.98).abs() < 1e-6);
        assert_eq!(made(0.89, 0.88).verdict(&DETECTOR), Verdict::Clear);
        assert_eq!(made(0.96, 0.1).verdict(&DETECTOR), Verdict::Clear);
    }

    #[test]
    fn a_server_that_nobody_looked_at_is_not_known() {
        let mut unseen = made(1.0, 1.0);
        unseen.recording().samples.retain(|host| host.agent != "server");
        assert!(matches!(unseen.verdict(&DETECTOR), Verdict::Unknown(_)));
        assert_eq!(Made::new().verdict(&DETECTOR), Verdict::Irrelevant);
    }

    #[test]
    fn the_embedded_server_shares_a_full_host() {
        let embedded = |busy: f64, server: f64| {
            let mut made = Made::served();
            let recording = made.recording();
            let all = recording.length_ns as f64 * f64::from(recording.host.processors);
            (recording.host.process_user_ns, recording.host.process_system_ns) = (0, (all * 0.9) as u64);
            made.run().server_use[0].cpu_ns = Some((all * 0.9 * server) as u64);
            made.checked(CheckKind::CpuLimit, "write", &[("host_busy", busy), ("worker_cpu", 0.2)]);
            made
        };
        assert!(matches!(embedded(0.96, 0.51).verdict(&DETECTOR), Verdict::Found(_)));
        assert_eq!(embedded(0.96, 0.49).verdict(&DETECTOR), Verdict::Clear);
        assert_eq!(embedded(0.5, 0.9).verdict(&DETECTOR), Verdict::Clear);
    }
}
