//! A faster server that makes its clients slower.

use super::levels::{Axis, axes, name, placed, points, ratio};
use super::tools::{digits, p_text};
use crate::prelude::*;

/// The server's throughput, and that of the calls of the client, as ratios.
const LEAST_FASTER: f64 = 1.1;
const MOST_OF_CALLS: f64 = 0.98;
const MOST_P: f64 = 0.01;

pub(super) const COMPARISON: Comparison = Comparison { id: "faster-server-slower-client", compare };

fn compare(whole: &Whole<'_>) -> Compared {
    let axes = axes(whole, is_of_server);
    let study = &whole.results.study;
    let has = |name: &str| {
        whole.results.runs.iter().any(|run| run.responses.iter().any(|response| response.name == name))
    };
    let of_workload = |workload: &str| {
        let write = format!("{workload}.write_throughput");
        let all = ["close_throughput", "flush_throughput"].map(|what| format!("{workload}.{what}"));
        Some((write, all.into_iter().find(|name| has(name))?)).filter(|(write, _)| has(write))
    };
    let workloads: Vec<_> = study
        .workloads
        .iter()
        .filter_map(|workload| Some((&workload.name, of_workload(&workload.name)?)))
        .collect();
    let mut compared =
        Compared { irrelevant: axes.is_empty() || workloads.is_empty(), ..Compared::default() };
    let mut judged = false;
    for axis in &axes {
        for (workload, (write, all)) in &workloads {
            let levels = axis.factor.levels.len();
            for (slow, fast) in
                (0..levels).flat_map(|a| (0..levels).map(move |b| (a, b))).filter(|(a, b)| a != b)
            {
                let (written, done) = (points(whole, axis, write, &[]), points(whole, axis, all, &[]));
                let (Some(done), Some(written)) =
                    (ratio(&done, slow, fast, 0.95), ratio(&written, slow, fast, 0.95))
                else {
                    continue;
                };
                judged = true;
                let faster = done.1.value >= LEAST_FASTER && done.0.p() <= MOST_P;
                if faster && written.1.value <= MOST_OF_CALLS && written.0.p() <= MOST_P {
                    compared.found.push(placed(
                        whole,
                        finding(axis, (slow, fast), done.1, written.1, written.0.p()),
                        Some(workload),
                        axis,
                        fast,
                    ));
                }
            }
        }
    }
    if !judged && !compared.irrelevant {
        compared.unknown = Some("two runs or more at each level tell it: more `replicates`".into());
    }
    compared
}

/// Whether a parameter says which server is measured, or what it or the network does. Options of the mount change the
/// client.
fn is_of_server(path: &str) -> bool {
    match path.split_once('.') {
        Some(("workload" | "clients", _)) => false,
        Some(("target", key)) => matches!(key, "path" | "url" | "mount"),
        _ => true,
    }
}

fn finding(
    axis: &Axis<'_>,
    (slow, fast): (usize, usize),
    done: TestInterval,
    written: TestInterval,
    p: f64,
) -> Finding {
    let what = format!(
        "With {} all data are there {} times as fast as with {}, but the calls of the program write {} times as fast (95 % interval {} to {}; {}).",
        name(axis, fast),
        digits(done.value),
        name(axis, slow),
        digits(written.value),
        digits(written.lower),
        digits(written.upper),
        p_text(p)
    );
    Finding::new(Confidence::Certain, what)
        .with([
            Evidence::number("throughput until all is there, ratio", done.value),
            Evidence::number("throughput of the calls, ratio", written.value),
        ])
        .tested("t test of ln(write_throughput), within the other factors", p, written)
        .tested("ln(throughput until all is there)", None, done)
        .costs(1.0 - written.value)
}

#[cfg(test)]
mod tests {
    use benchmaster_record::results::Unit;

    use super::super::made;
    use super::*;

    fn verdict(fast: (f64, f64), spread: f64) -> Compared {
        let mut results = made::factor(
            ("write", "write-latency"),
            "bandwidth",
            "network.bandwidth",
            &["\"208Mbit/s\"", "\"304Mbit/s\""],
            "[target]\nurl = \"nfs://{server}/export\"\n",
        );
        for (level, (write, close)) in [(138.0, 26.0), fast].into_iter().enumerate() {
            for wobble in [1.0 - spread, 1.0, 1.0 + spread] {
                let unit = Unit::BytesPerSecond;
                made::add(
                    &mut results,
                    level as u32,
                    vec![],
                    &[
                        ("write.write_throughput", write * wobble, unit),
                        ("write.close_throughput", close * wobble, unit),
                    ],
                );
            }
        }
        made::compare(&results, compare)
    }

    #[test]
    fn options_of_the_mount_make_no_other_server() {
        for (path, is) in [
            ("network.server_bandwidth", true),
            ("server.threads", true),
            ("target.url", true),
            ("target.max_request_soft", false),
            ("workload.write.io_size", false),
            ("clients.count", false),
        ] {
            assert_eq!(is_of_server(path), is, "{path}");
        }
    }

    #[test]
    fn faster_until_the_close_and_slower_to_write() {
        let found = verdict((115.0, 38.0), 0.01);
        let [finding] = &found.found[..] else { panic!("{found:?}") };
        assert!(
            finding.what.contains(
                "1.46 times as fast as with 208Mbit/s, but the calls of the program write 0.833 times"
            ),
            "{}",
            finding.what
        );
        // Faster in both, slower in both, and what runs cannot tell.
        assert!(verdict((150.0, 38.0), 0.01).found.is_empty());
        assert!(verdict((115.0, 20.0), 0.01).found.is_empty());
        assert!(verdict((136.5, 38.0), 0.001).found.is_empty());
        assert!(verdict((125.0, 38.0), 0.2).found.is_empty());
    }
}
