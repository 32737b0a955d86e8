//! Other load on the host of the clients: virtual machines that took its processors, programs that used them.

use benchmaster_record::recording::HostSamples;
use benchmaster_record::results::{Check, CheckKind, Emulator, Severity};

use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Evidence, Finding, Need, Plot, Remedy};
use crate::measured::Measured;
use crate::validity::rule::{Follows, Rule, Subject, failed, stored};
use crate::words::percent;

/// Share of all processors' time that other programs used.
const OTHERS: f64 = 0.15;
/// Share of time in which a program waited for a processor.
const WAITED: f64 = 0.1;
/// Share of all processors' time with work, where waiting is not counted.
const BUSY: f64 = 0.9;

pub(crate) static RULE: Rule = Rule {
    kind: CheckKind::NoisyHost,
    explanation: EXPLANATION,
    check,
    remedy: |_| remedy(),
    finding: Follows::Detector(detect),
};

const EXPLANATION: Explanation = Explanation {
    id: "noisy-host",
    group: Group::Doubt,
    title: "Other programs or machines used the processors of a client's host",
    mechanism: "A client that waits for a processor because a hypervisor gave it to another machine, or because another program has it, sends its requests \
                later. The time is in every latency, and looks like a slow server; it differs from run to run.",
    formula: "found when the hypervisor stole > 5 % of the CPU time, or other programs used ≥ 15 % of all processors' time in user mode while a program waited for a \
              processor in ≥ 10 % of the time (pressure; where that is not counted: while the processors were ≥ 90 % busy); cost at most = that share of the CPU time",
    source: "the check `noisy-host`; proc(5), `steal`; Documentation/accounting/psi.rst of Linux; D. G. Feitelson, Workload Modeling (2015), chapter 9, on disturbances",
};

fn detect(measured: &Measured<'_>) -> Verdict {
    if let Some(check) = stored(measured, RULE.kind) {
        let steal = check.number("steal").unwrap_or(0.0);
        let finding = Finding::new(&EXPLANATION, Confidence::Certain, &check.message, remedy())
            .with([Evidence::number(
                "share of the CPU time that the hypervisor gave to other machines",
                steal,
            )])
            .costs(steal, CostOf::Throughput, "at most the share of the CPU time that was stolen")
            .shown_by(Plot::Counters);
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
    let finding = Finding::new(&EXPLANATION, Confidence::Likely, what, remedy())
        .with(evidence)
        .costs(worst.share, CostOf::Throughput, "at most the share of the CPU time that other programs used")
        .of_clients([worst.agent])
        .shown_by(Plot::Counters);
    Verdict::Found(finding)
}

/// While the run is made: only what the hypervisor took, for which no samples are needed.
fn check(s: Subject<'_>) -> Option<Check> {
    let steal = s.recording.host.host_steal.filter(|steal| *steal > 0.05)?;
    let message =
        format!("The hypervisor gave {} of this host's CPU time to other machines.", percent(steal));
    failed(s, RULE.kind, Severity::Warning, message, [Evidence::number("steal", steal)])
}

fn remedy() -> Remedy {
    Remedy::new("Stop other programs on the client, or measure while it is idle; give a virtual machine processors of its own.")
        .by(Need::Anywhere, "top -b -n 1 | head -20; cat /proc/pressure/cpu; grep '^cpu ' /proc/stat   # the 8th number is stolen time")
        .confirmed_by("the same study on the idle host: `benchmaster compare THIS QUIET`")
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
