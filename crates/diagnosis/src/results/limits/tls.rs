//! TLS, at the clients.

use crate::prelude::*;

/// Share of the threads' time from which on the cipher is worth telling of.
const LEAST: f64 = 0.1;

pub(super) const DETECTOR: Detector = Detector { id: "tls-cost", detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    let Some((rpc, phase)) = measured.rpcs() else { return Verdict::Irrelevant };
    let Some(suite) = &rpc.connection.tls else { return Verdict::Irrelevant };
    let event = |name: &str| phase.events.get(name).copied().unwrap_or(0) as f64;
    let sum = |names: [&str; 2]| names.into_iter().map(event).sum::<f64>();
    let cipher_ns = event("tls-cipher-us") * 1e3;
    let threads = f64::from(rpc.connection.threads.unwrap_or(1).max(1));
    let part = share(cipher_ns, threads * measured.seconds() * 1e9);
    if part < LEAST {
        return Verdict::Clear;
    }
    let bytes = sum(["tls-bytes-sent", "tls-bytes-received"]);
    let calls = phase.total().ops as f64;
    let (user, system) = rpc.client_cpu_ns;
    let evidence = [
        Evidence::number(
            "share of the clients' CPU time in the cipher",
            share(cipher_ns, (user + system) as f64),
        ),
        Evidence::nanoseconds("time of the cipher per KiB of records", share(cipher_ns, bytes / 1024.0)),
        Evidence::nanoseconds("time of the cipher per call", share(cipher_ns, calls)),
        Evidence::number("records", sum(["tls-records-sent", "tls-records-received"])),
    ];
    let what = format!(
        "The clients encrypted and decrypted {} of the time of their {}, with {suite}; the server does the same once more.",
        percent(part),
        plural(threads as usize, "thread"),
    );
    Verdict::Found(Finding::new(Confidence::Certain, what).with(evidence).costs(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::Made;
    use benchmaster_record::phase::Phase;

    fn made(part: f64) -> Made {
        let mut made = Made::served();
        let recording = made.recording();
        let length = recording.length_ns as f64;
        let rpc = recording.rpc.as_mut().unwrap();
        rpc.connection.tls = Some("TLS13_AES_256_GCM_SHA384".into());
        let threads = f64::from(rpc.connection.threads.unwrap_or(1).max(1));
        let phase = rpc.phases.iter_mut().find(|phase| phase.phase == Phase::Measure).unwrap();
        phase.events.insert("tls-cipher-us".into(), (part * threads * length / 1e3) as u64);
        phase.events.insert("tls-bytes-received".into(), 1 << 30);
        made
    }

    #[test]
    fn the_cipher_is_found_by_the_time_that_it_took() {
        let found = made(0.3).found(&DETECTOR);
        assert!((found.cost.unwrap().share - 0.3).abs() < 1e-3);
        assert!(found.what.contains("30 % of the time"), "{}", found.what);
        assert_eq!(made(0.05).verdict(&DETECTOR), Verdict::Clear);
        assert_eq!(Made::served().verdict(&DETECTOR), Verdict::Irrelevant);
    }
}
