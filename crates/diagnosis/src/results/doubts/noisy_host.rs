//! Other load on the host of the clients: virtual machines that took its processors, programs that used them.

use benchmaster_record::recording::HostSamples;
use benchmaster_record::results::Emulator;

use crate::prelude::*;

/// Share of all processors' time that other programs used.
const OTHERS: f64 = 0.15;
/// Share of time in which a program waited for a processor.
const WAITED: f64 = 0.1;
/// Share of all processors' time with work, where waiting is not counted.
const BUSY: f64 = 0.9;

pub(crate) static RULE: Rule =
    Rule { check, finding: Follows::Detector(detect), ..Rule::of(CheckKind::NoisyHost) };

fn detect(measured: &Measured<'_>) -> Verdict {
    if let Some(check) = stored(measured, RULE.kind) {
        let steal = check.number("steal").unwrap_or(0.0);
        let finding = Finding::new(Confidence::Certain, &check.message)
            .with([Evidence::number(
                "share of the CPU time that the hypervisor gave to other machines",
                steal,
            )])
            .costs(steal);
        return Verdict::Found(finding);
    }
    if measured.network().is_some_and(|network| network.emulator == Emulator::Wire) {
        // The wire's own program is no other one, and what it uses is not counted.
        return match measured.recording.host.host_steal {
            Some(_) => Verdict::Clear,
            None => Verdict::Unknown("the host does not report stolen time (`/proc/stat`)".into()),
        };
    }
    let mut worst: Option<Others> = None;
    for host in measured.clients() {
        let Some(others) = others(measured, host) else { continue };
        if worst.as_ref().is_none_or(|worst| others.share > worst.share) {
            worst = Some(others);
        }
    }
    let Some(worst) = worst else {
        return Verdict::Unknown(
            "what other programs used is not known: leave `[sampling]` on, with the samplers `cpu` and `pressure`".into(),
        );
    };
    let waited = worst.waited.map_or(worst.busy >= BUSY, |waited| waited >= WAITED);
    if worst.share < OTHERS || !waited {
        return Verdict::Clear;
    }
    let meanwhile = match worst.waited {
        Some(waited) => format!("programs waited for a processor in {:.0} % of the time", waited * 100.0),
        None => format!("the processors were {:.0} % busy", worst.busy * 100.0),
    };
    let what = format!(
        "Other programs used {:.1} of the {:.0} processors of {} in user mode, and {meanwhile}.",
        worst.share * worst.processors,
        worst.processors,
        worst.agent
    );
    let mut evidence = vec![
        Evidence::number("processors that other programs used, in user mode", worst.share * worst.processors),
        Evidence::number("share of all processors' time with work (cpu.busy)", worst.busy),
    ];
    evidence.extend(worst.waited.map(|waited| {
        Evidence::number(
            "share of time in which a program waited for a processor (pressure.cpu.some)",
            waited,
        )
    }));
    let finding = Finding::new(Confidence::Likely, what)
        .with(evidence)
        .costs_as(
            worst.share,
            CostOf::Throughput,
            "at most the share of the CPU time that other programs used",
        )
        .of_clients([worst.agent]);
    Verdict::Found(finding)
}

/// While the run is made: only what the hypervisor took, for which no samples are needed.
fn check(s: Subject<'_>) -> Option<Check> {
    let steal = s.recording.host.host_steal.filter(|steal| *steal > 0.05)?;
    let message =
        format!("The hypervisor gave {} of this host's CPU time to other machines.", percent(steal));
    failed(s, RULE.kind, Severity::Warning, message, [Evidence::number("steal", steal)])
}

struct Others {
    agent: String,
    /// Of all processors' time, in user mode.
    share: f64,
    busy: f64,
    waited: Option<f64>,
    processors: f64,
}

/// What programs other than this one used of a client's host; `None` when it was not sampled.
fn others(measured: &Measured<'_>, host: &HostSamples) -> Option<Others> {
    let derived = measured.derived(host);
    let number = |name: &str| derived.get(name).map(|derived| derived.value);
    let (user, busy) = (number("cpu.user")?, number("cpu.busy")?);
    let per_processor = host.samples.of("cpu", "user").filter(|series| !series.key.instance.is_empty());
    let processors = per_processor.count().max(1) as f64;
    let recording = measured.recording;
    // Agents on one host see the same processors; without agents it is this process.
    let at = recording.agents.iter().find(|agent| agent.name == host.agent);
    let own: u64 = match at {
        None => recording.host.process_user_ns,
        Some(at) => {
            let same = recording.agents.iter().filter(|agent| agent.host == at.host);
            same.map(|agent| agent.host_use.process_user_ns).sum()
        }
    };
    // The embedded server may be in a process of its own; its time is not told apart by mode.
    let server = measured.server().and_then(|server| server.cpu_ns).unwrap_or(0);
    let own = (own + server) as f64 / recording.length_ns.max(1) as f64;
    let share = (user - own / processors).max(0.0);
    Some(Others { agent: host.agent.clone(), share, busy, waited: number("pressure.cpu.some"), processors })
}

/// Whether others took processors of a client, which is in every latency.
pub(in crate::results) fn is_noisy(measured: &Measured<'_>) -> bool {
    matches!(detect(measured), Verdict::Found(_))
}
