//! READs and WRITEs that the server made smaller than the client asked for.

use benchmaster_units::ByteSize;

use super::observed::asked;
use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Evidence, Finding, Need, Plot, Remedy};
use crate::measured::Measured;
use crate::results::rule::Detector;
use crate::words::{share, size};

pub(super) const DETECTOR: Detector = Detector { explanation: &EXPLANATION, detect };

const EXPLANATION: Explanation = Explanation {
    id: "transfer-size-cut",
    group: Group::Condition,
    title: "The server allows smaller READs or WRITEs than the client asked for",
    mechanism: "Client and server agree on the smaller of what each can do. A server with little memory, or one that is set so, cuts what was asked for: the same data \
                take more calls, each with its costs on both sides, and its round trip where few are outstanding.",
    formula: "found when the rsize or wsize agreed on is at most half of what was asked for (1 MiB unless options say otherwise), and 50 or more calls were half as \
              large as it or larger; cost at most = (1 − agreed / asked) · execute time of these calls / of all calls",
    source: "nfs(5), `rsize`, `wsize`; RFC 1813, section 3.3.19 (FSINFO); RFC 8881, section 18.36 (ca_maxresponsesize); /proc/fs/nfsd/max_block_size of Linux servers",
};

/// What clients ask for unless they are told otherwise.
const USUAL: u64 = 1 << 20;
/// Calls.
const LEAST: u64 = 50;

/// A size that was cut.
struct Cut {
    option: &'static str,
    operation: &'static str,
    asked: u64,
    agreed: u64,
    calls: u64,
    execute_ns: u64,
}

/// Sizes that were cut, and are used.
fn cuts(measured: &Measured<'_>) -> Option<Vec<Cut>> {
    let (rpc, _) = measured.rpcs()?;
    let options = asked(measured);
    let wanted = |name: &str| -> u64 {
        let text = options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='));
        text.and_then(|text| text.parse::<ByteSize>().ok()).map_or(USUAL, |size| size.0)
    };
    let of = |option, operation, agreed: u64, received: bool| {
        let row = measured.rpc(operation)?;
        let bytes = if received { row.bytes_received } else { row.bytes_sent };
        let asked = wanted(option);
        let used = row.ops >= LEAST && bytes as f64 / row.ops as f64 >= agreed as f64 / 2.0;
        let cut = agreed > 0 && agreed * 2 <= asked;
        (used && cut).then_some(Cut {
            option,
            operation,
            asked,
            agreed,
            calls: row.ops,
            execute_ns: row.execute_ns,
        })
    };
    let both =
        [of("rsize", "READ", rpc.connection.rsize, true), of("wsize", "WRITE", rpc.connection.wsize, false)];
    Some(both.into_iter().flatten().collect())
}

/// Whether it is told here that calls are small.
pub(super) fn told(measured: &Measured<'_>) -> bool {
    cuts(measured).is_some_and(|cuts| !cuts.is_empty())
}

fn detect(measured: &Measured<'_>) -> Verdict {
    let (Some(cuts), Some((_, phase))) = (cuts(measured), measured.rpcs()) else {
        return Verdict::Irrelevant;
    };
    if cuts.is_empty() {
        return Verdict::Clear;
    }
    let words: Vec<String> = cuts
        .iter()
        .map(|cut| {
            let (asked, agreed) = (size(cut.asked as f64), size(cut.agreed as f64));
            format!(
                "{} of {asked} was asked for and {agreed} agreed on ({} {}s)",
                cut.option, cut.calls, cut.operation
            )
        })
        .collect();
    let all = phase.total().execute_ns;
    let lost: f64 =
        cuts.iter().map(|cut| (1.0 - cut.agreed as f64 / cut.asked as f64) * cut.execute_ns as f64).sum();
    let mut evidence = Vec::new();
    for cut in &cuts {
        evidence.push(Evidence::bytes(format!("{} asked for", cut.option), cut.asked as f64));
        evidence.push(Evidence::bytes(format!("{} agreed on", cut.option), cut.agreed as f64));
        evidence.push(Evidence::number(format!("{}s", cut.operation), cut.calls as f64));
    }
    Verdict::Found(
        Finding::new(
            &EXPLANATION,
            Confidence::Certain,
            format!("The server allows smaller transfers than were asked for: {}.", words.join("; ")),
            Remedy::new("Let the server allow more; a Linux server does so by itself with more memory.")
                .by(Need::LinuxServer, "systemctl stop nfs-server; echo 1048576 > /proc/fs/nfsd/max_block_size; systemctl start nfs-server")
                .by(Need::EmbeddedServer, "[server] max_io = \"1MiB\"")
                .confirmed_by("studies/lab-transfer-size.toml shows what sizes cost"),
        )
        .with(evidence)
        .costs(share(lost, all as f64), CostOf::CallTime, "at most: the calls that larger ones would save, each as long as now")
        .shown_by(Plot::Response),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::Made;

    fn made(agreed: u64, ops: u64) -> Made {
        let mut made = Made::served();
        made.recording().rpc.as_mut().unwrap().connection.wsize = agreed;
        let write = made.rows().iter_mut().find(|row| row.operation == "WRITE").unwrap();
        (write.ops, write.bytes_sent) = (ops, ops * (agreed + 200));
        made
    }

    #[test]
    fn what_was_asked_for_is_compared_with_what_was_agreed_on() {
        let found = made(32 << 10, 4000).found(&DETECTOR);
        assert!(
            found.what.contains("wsize of 1 MiB was asked for and 32 KiB agreed on (4000 WRITEs)"),
            "{}",
            found.what
        );
        assert!(found.cost.unwrap().share > 0.5);
        assert_eq!(made(1 << 20, 4000).verdict(&DETECTOR), Verdict::Clear);
        assert_eq!(made(32 << 10, 49).verdict(&DETECTOR), Verdict::Clear);
        // Half is a cut, more is not.
        assert!(matches!(made(512 << 10, 400).verdict(&DETECTOR), Verdict::Found(_)));
        assert_eq!(made(513 << 10, 400).verdict(&DETECTOR), Verdict::Clear);
        let mut asked = made(32 << 10, 4000);
        asked.run().service.as_mut().unwrap().url = "nfs://{server}/export?wsize=32KiB".into();
        assert_eq!(asked.verdict(&DETECTOR), Verdict::Clear);
        assert_eq!(Made::new().verdict(&DETECTOR), Verdict::Irrelevant);
    }
}
