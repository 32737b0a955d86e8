//! Slots of sessions, and of the connections' tables.

use crate::prelude::*;

/// Fewer calls say little.
const LEAST_CALLS: u64 = 100;
/// Share of the calls' time from which on it is worth a finding.
const LEAST_SHARE: f64 = 0.1;
/// Less than this is the client's own work.
const LEAST_MEAN_NS: f64 = 200_000.0;
/// Calls that wait for a slot whenever one is sent.
const LEAST_BACKLOG: f64 = 1.0;

pub(crate) static RULE: Rule =
    Rule { check, finding: Follows::Detector(detect), ..Rule::of(CheckKind::SlotsExhausted) };

fn detect(measured: &Measured<'_>) -> Verdict {
    let Some((rpc, _)) = measured.rpcs() else { return Verdict::Irrelevant };
    let Some(calls) = measured.calls().filter(|calls| calls.ops >= LEAST_CALLS) else {
        return Verdict::Irrelevant;
    };
    let checked = stored(measured, RULE.kind);
    let sessions = rpc.connection.version.is_some_and(NfsVersion::has_sessions);
    match (checked, rpc.source) {
        (Some(_), _) => Verdict::Found(finding(measured, &calls, Confidence::Certain, sessions)),
        (None, RpcSource::Client) => Verdict::Clear,
        (None, RpcSource::Kernel) => of_kernel(measured, &calls, sessions),
    }
}

/// The kernel does not tell of waits for slots; the queue of its table is sampled.
fn of_kernel(measured: &Measured<'_>, calls: &RpcRow, sessions: bool) -> Verdict {
    let part = share(calls.queue_ns as f64, calls.execute_ns as f64);
    if part < LEAST_SHARE || (calls.queue_ns as f64) < LEAST_MEAN_NS * calls.ops as f64 {
        return Verdict::Clear;
    }
    let grown = |metric| measured.clients_growth("mountstats", metric);
    let (Some(sends), Some(backlog)) = (grown("sends"), grown("backlog_u")) else {
        return Verdict::Unknown(
            "calls wait before they are sent, and whether for slots is not known: add `[sampling]` with the sampler `mountstats`".into(),
        );
    };
    if backlog >= LEAST_BACKLOG * sends.max(1.0) {
        Verdict::Found(finding(measured, calls, Confidence::Likely, sessions))
    } else if sessions {
        // Waiting for the socket, or for a slot of the session, which the kernel does not tell apart.
        Verdict::Found(finding(measured, calls, Confidence::Possible, sessions))
    } else {
        Verdict::Clear
    }
}

fn finding(measured: &Measured<'_>, calls: &RpcRow, confidence: Confidence, sessions: bool) -> Finding {
    let ops = calls.ops as f64;
    let (queue, round_trip) = (calls.queue_ns as f64 / ops, calls.rtt_ns as f64 / ops);
    let outstanding = calls.rtt_ns as f64 / measured.recording.length_ns.max(1) as f64;
    let part = share(calls.queue_ns as f64, calls.execute_ns as f64);
    let connection = measured.rpcs().map(|(rpc, _)| &rpc.connection);
    let slots = connection.and_then(|c| Some(f64::from(c.slots?) * f64::from(c.clients.max(1))));
    let of = match slots {
        Some(slots) => {
            format!("{outstanding:.1} calls were outstanding on average, of {slots:.0} allowed")
        }
        None => format!("{outstanding:.1} calls were outstanding on average"),
    };
    let mut evidence = vec![
        Evidence::nanoseconds("mean time before sending (queue / ops)", queue),
        Evidence::nanoseconds("mean round trip time (rtt / ops)", round_trip),
        Evidence::number("calls outstanding (sum of rtt / time)", outstanding),
        Evidence::per_second("calls per second", ops / measured.seconds().max(1e-9)),
    ];
    if let Some(slots) = slots {
        evidence.push(Evidence::number("slots of all clients", slots));
        evidence.push(Evidence::per_second(
            "slots / round trip: the most calls per second",
            slots * 1e9 / round_trip.max(1.0),
        ));
    }
    let remedy = remedy(measured, calls, sessions);
    let remedy = remedy.confirmed_by(
        "a load curve over workers (`studies/load-curve-closed.toml`): the rate stays, and the latency grows, from as many on as there \
         are slots",
    );
    let what = format!(
        "Calls wait for a slot: {of}, and {} of a call's time is waiting to be sent: {} beside {} until the reply.",
        percent(part),
        time(queue),
        time(round_trip)
    );
    Finding::new(confidence, what).advised(remedy).with(evidence).costs(part)
}

fn more_slots() -> Remedy {
    Remedy::new("Use more slots, or more clients, each of which has a session of its own.")
}

/// As many slots as calls wait for and hold on average, and no fewer than the workers of a client have operations at once.
fn wanted(measured: &Measured<'_>, calls: &RpcRow, granted: u32) -> u32 {
    let clients = measured.rpcs().map_or(1, |(rpc, _)| rpc.connection.clients.max(1));
    let waiting = calls.queue_ns as f64 / measured.recording.length_ns.max(1) as f64 / f64::from(clients);
    let at_once = measured.workload.map_or(0, |workload| {
        let groups = workload.groups.iter();
        groups.map(|group| group.workers.saturating_mul(group.queue_depth.max(1))).sum::<u32>()
    });
    (granted + (waiting.ceil() as u32).max(1)).max(at_once)
}

/// Who keeps the slots few is asked for more: the client that asked for no more, or the server that granted no more.
fn remedy(measured: &Measured<'_>, calls: &RpcRow, sessions: bool) -> Remedy {
    if !sessions {
        return Remedy::new("Let the connection's table grow, or use more connections.")
            .by(Need::KernelClient, "sysctl sunrpc.tcp_max_slot_table_entries=65536; mount -o nconnect=8");
    }
    let remedy = more_slots();
    let Some(granted) = measured.rpcs().and_then(|(rpc, _)| rpc.connection.slots) else {
        return remedy.by(
            Need::KernelClient,
            "options nfs max_session_slots=180   # in /etc/modprobe.d; or mount -o nconnect=8",
        );
    };
    let wanted = wanted(measured, calls, granted);
    let parameters = &measured.run.parameters;
    let by_client = parameters.slots_asked.is_none_or(|asked| asked <= granted);
    let by_server = parameters.slots_granted.is_some_and(|most| most <= granted);
    let refused = format!("The server granted {granted} of the slots that were asked for.");
    let clients =
        wanted.div_ceil(granted.max(1)) * measured.rpcs().map_or(1, |(rpc, _)| rpc.connection.clients.max(1));
    let asked = format!("--set target.slots={wanted}");
    match (by_client, by_server) {
        (true, true) => remedy.by(Need::OwnClient, format!("{asked} --set server.slots={wanted}")),
        (false, true) => remedy
            .also(Need::OwnClient, refused)
            .by(Need::EmbeddedServer, format!("--set server.slots={wanted}")),
        (true, false) => remedy.by(Need::OwnClient, asked),
        (false, false) => remedy
            .also(Need::OwnClient, refused)
            .by(Need::OwnClient, format!("--set clients.count={clients}")),
    }
    .by(
        Need::KernelClient,
        format!("options nfs max_session_slots={wanted}   # in /etc/modprobe.d; or mount -o nconnect=8"),
    )
}

/// While the run is made: waits that the user-space client counted.
fn check(s: Subject<'_>) -> Option<Check> {
    let rpc = s.recording.rpc.as_ref()?;
    let phase = rpc.phase(Phase::Measure)?;
    let waits = *phase.events.get("slot-wait").filter(|waits| **waits > 0)?;
    let total = phase.total();
    let (calls, part) = (total.ops as f64, total.queue_ns as f64 / (total.execute_ns as f64).max(1.0));
    if part < LEAST_SHARE {
        return None;
    }
    let slots = rpc.connection.slots.map_or_else(String::new, |slots| format!(" ({slots})"));
    let message = format!(
        "All session slots{slots} were in use: {} of the calls waited for one, and calls spent {} of their time waiting to be \
         sent; the number of slots is measured as much as the server.",
        percent(waits as f64 / calls.max(1.0)),
        percent(part)
    );
    let evidence = [
        Evidence::number("waits", waits as f64),
        Evidence::number("calls", calls),
        Evidence::number("queue_share", part),
    ];
    failed(s, RULE.kind, Severity::Warning, message, evidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::Made;
    use benchmaster_record::results::ServedBy;

    fn made(queue_ns: u64, rtt_ns: u64) -> Made {
        let mut made = Made::served();
        for row in made.rows() {
            (row.queue_ns, row.rtt_ns) = (row.ops * queue_ns, row.ops * rtt_ns);
            row.execute_ns = row.queue_ns + row.rtt_ns;
        }
        made
    }

    #[test]
    fn the_stored_check_tells_of_the_own_client() {
        let mut made = made(9_000_000, 1_000_000);
        assert_eq!(made.verdict(&RULE), Verdict::Clear);
        made.checked(CheckKind::SlotsExhausted, "write", &[("waits", 1000.0), ("queue_share", 0.9)]);
        let found = made.found(&RULE);
        assert_eq!(found.confidence, Confidence::Certain);
        assert!((found.cost.unwrap().share - 0.9).abs() < 1e-9);
        assert!(found.what.contains("of 128 allowed"), "{}", found.what);
    }

    #[test]
    fn who_keeps_the_slots_few_is_asked_for_as_many_as_are_needed() {
        // Of 4 workers; 9 of 10 calls wait on average.
        let command = |asked: u32, granted: u32, server: Option<u32>| {
            let mut made = made(9_000_000, 1_000_000);
            let length = made.recording().length_ns;
            let rows = made.rows().len() as u64;
            made.rows().iter_mut().for_each(|row| row.queue_ns = 90 * length / rows);
            let service = made.run().service.as_mut().unwrap();
            (service.server, service.url) = (ServedBy::Embedded, "nfs://{server}/export".into());
            let connection = &mut made.recording().rpc.as_mut().unwrap().connection;
            (connection.slots, connection.clients) = (Some(granted), 1);
            let parameters = &mut made.run().parameters;
            (parameters.slots_asked, parameters.slots_granted) = (Some(asked), server);
            made.checked(CheckKind::SlotsExhausted, "write", &[("waits", 1000.0), ("queue_share", 0.9)]);
            made.found(&RULE).remedy.command.unwrap()
        };
        assert_eq!(command(160, 160, Some(160)), "--set target.slots=250 --set server.slots=250");
        assert_eq!(command(64, 64, Some(160)), "--set target.slots=154");
        assert_eq!(command(64, 1, Some(1)), "--set server.slots=91");
        assert_eq!(command(64, 10, None), "--set clients.count=10");
    }

    #[test]
    fn of_the_kernel_s_client_the_queue_of_its_table_is_needed() {
        let mut made = made(9_000_000, 1_000_000);
        made.recording().rpc.as_mut().unwrap().source = RpcSource::Kernel;
        assert!(matches!(made.verdict(&RULE), Verdict::Unknown(why) if why.contains("[sampling]")));
        made.sample("c1", "mountstats", "sends", "/mnt/x xprt 0 tcp", 10_000.0);
        made.sample("c1", "mountstats", "backlog_u", "/mnt/x xprt 0 tcp", 20_000.0);
        assert_eq!(made.found(&RULE).confidence, Confidence::Likely);
        made.recording().samples[0].samples.series.truncate(1);
        made.sample("c1", "mountstats", "backlog_u", "/mnt/x xprt 0 tcp", 9_000.0);
        assert_eq!(made.found(&RULE).confidence, Confidence::Possible);
        made.recording().rpc.as_mut().unwrap().connection.version = Some(NfsVersion::V3);
        assert_eq!(made.verdict(&RULE), Verdict::Clear);
    }

    #[test]
    fn short_queues_and_few_calls_are_none() {
        let mut short = made(90_000, 910_000);
        short.recording().rpc.as_mut().unwrap().source = RpcSource::Kernel;
        assert_eq!(short.verdict(&RULE), Verdict::Clear);
        let mut few = made(9_000_000, 1_000_000);
        few.rows().iter_mut().for_each(|row| row.ops = 10);
        assert_eq!(few.verdict(&RULE), Verdict::Irrelevant);
        assert_eq!(Made::new().verdict(&RULE), Verdict::Irrelevant);
    }
}
