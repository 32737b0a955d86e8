//! READs and WRITEs that the server made smaller than the client asked for.

use benchmaster_units::ByteSize;

use super::observed::asked;
use crate::prelude::*;

pub(super) const DETECTOR: Detector = Detector { id: "transfer-size-cut", detect };

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
            Confidence::Certain,
            format!("The server allows smaller transfers than were asked for: {}.", words.join("; ")),
        )
        .with(evidence)
        .costs(share(lost, all as f64)),
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
