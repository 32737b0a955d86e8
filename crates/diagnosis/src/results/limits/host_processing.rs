//! Client, server and emulated network on the processors of one host.

use super::client_cpu::is_full;
use super::{generator, server_cpu};
use crate::prelude::*;
use crate::results::account::{Account, Part};
use crate::results::doubts::noisy_host::is_noisy;
use crate::results::rule::Judge;

/// Share of the calls' time from which on it is the limit.
const LEAST_SHARE: f64 = 0.3;

pub(super) const DETECTOR: Detector = Detector { id: "host-processing", detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    if !measured.is_embedded() {
        return Verdict::Irrelevant;
    }
    let Some(account) = Account::of(measured) else { return Verdict::Irrelevant };
    let part = account.share(Part::Host);
    let said_elsewhere = is_full(measured)
        || matches!(server_cpu::DETECTOR.look(measured), Verdict::Found(_))
        || matches!(generator::RULE.look(measured), Verdict::Found(_));
    if part < LEAST_SHARE || said_elsewhere {
        return Verdict::Clear;
    }
    let calls = account.calls as f64;
    let used = Processors::of(measured);
    let emulated = measured.network().is_some_and(|network| network.is_emulated());
    let wire = if emulated { ", the emulated network" } else { "" };
    let delay = match account.ns(Part::Path) / calls {
        0.0 => "no delay".to_owned(),
        delay => format!("{} of delay", time(delay)),
    };
    let mut what = format!(
        "{} of the time of calls is processing on this host, {} for each: the server's own code takes {} of a call, and the study asks for {delay}.",
        percent(part),
        time(account.ns(Part::Host) / calls),
        time(account.ns(Part::Server) / calls),
    );
    what += &format!(
        " Clients, server{wire} and recording used {:.2} of {} processors.",
        used.program, measured.recording.host.processors
    );
    let mut evidence = vec![
        Evidence::nanoseconds("processing of a call on this host", account.ns(Part::Host) / calls),
        Evidence::nanoseconds("the server's own time for a call", account.ns(Part::Server) / calls),
        Evidence::nanoseconds("emulated delay of a call", account.ns(Part::Path) / calls),
        Evidence::number("processors that this program used", used.program),
        Evidence::number("of them the clients' threads", used.clients),
    ];
    evidence.extend(used.server.map(|server| Evidence::number("of them the server's threads", server)));
    let confidence = if is_noisy(measured) { Confidence::Possible } else { Confidence::Likely };
    Verdict::Found(Finding::new(confidence, what).with(evidence).costs(part))
}

/// Processors that were used on average.
struct Processors {
    program: f64,
    clients: f64,
    server: Option<f64>,
}

impl Processors {
    fn of(measured: &Measured<'_>) -> Self {
        let length = measured.recording.length_ns.max(1) as f64;
        let host = &measured.recording.host;
        let (user, system) = measured.rpcs().map_or((0, 0), |(rpc, _)| rpc.client_cpu_ns);
        Self {
            program: host.process_ns() as f64 / length,
            clients: (user + system) as f64 / length,
            server: measured.server().and_then(|used| used.cpu_ns).map(|ns| ns as f64 / length),
        }
    }
}

#[cfg(test)]
mod tests {
    use benchmaster_record::results::ServedBy;

    use super::*;
    use crate::results::testing::Made;

    /// 1,000 READs of this round trip, of which the server took 5 µs, through a wire of this delay.
    fn made(rtt_ns: u64, delay_ns: u64) -> Made {
        let mut made = Made::served();
        let rows = made.rows();
        rows.truncate(1);
        let row = &mut rows[0];
        (row.program, row.operation) = ("NFSv3".into(), "READ".into());
        (row.ops, row.transmissions, row.queue_ns) = (1000, 1000, 0);
        (row.rtt_ns, row.execute_ns) = (1000 * rtt_ns, 1000 * rtt_ns);
        (row.bytes_sent, row.bytes_received) = (0, 0);
        let service = made.run().service.as_mut().unwrap();
        service.server = ServedBy::Embedded;
        (service.network.base_rtt_ns, service.network.bandwidth, service.network.loss) = (None, None, 0.0);
        service.network.delay_ns = delay_ns;
        for used in &mut made.run().server_use {
            used.operations.truncate(1);
            used.operations
                .iter_mut()
                .for_each(|one| (one.operation, one.service_ns) = ("READ".into(), 5_000_000));
            used.held_ns = Some(0);
        }
        made
    }

    #[test]
    fn without_delays_a_call_is_the_work_of_the_host() {
        let found = made(240_000, 0).found(&DETECTOR);
        assert!((found.cost.as_ref().unwrap().share - 235.0 / 240.0).abs() < 1e-9, "{:?}", found.cost);
        assert!(
            found.what.contains("235 µs for each") && found.what.contains("takes 5 µs of a call"),
            "{}",
            found.what
        );
        assert!(found.remedy.command.unwrap().starts_with("benchmaster serve"));
        // 0.3 of 2 ms + 0.3 / 0.7 · 2.005 ms.
        assert!(matches!(made(2_870_000, 1_000_000).verdict(&DETECTOR), Verdict::Found(_)));
        assert_eq!(made(2_860_000, 1_000_000).verdict(&DETECTOR), Verdict::Clear);
    }

    #[test]
    fn what_was_asked_for_is_no_processing() {
        let mut held = made(8_240_000, 0);
        held.run().server_use.iter_mut().for_each(|used| used.held_ns = Some(8_000_000_000));
        assert_eq!(held.verdict(&DETECTOR), Verdict::Clear);
        let mut lossy = made(240_000, 0);
        lossy.run().service.as_mut().unwrap().network.loss = 0.01;
        assert_eq!(lossy.verdict(&DETECTOR), Verdict::Clear);
        let mut elsewhere = made(240_000, 0);
        elsewhere.run().service.as_mut().unwrap().server = ServedBy::External;
        assert_eq!(elsewhere.verdict(&DETECTOR), Verdict::Irrelevant);
    }
}
