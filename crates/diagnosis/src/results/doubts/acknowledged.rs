//! What was acknowledged as stable and did not survive.

use benchmaster_record::witness::{CutKind, Witness};
use benchmaster_units::format::count as grouped;

use crate::prelude::*;

pub(super) const DETECTOR: Detector = Detector { id: "acknowledged-lost", detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    let Some(witness) = &measured.recording.witness else { return Verdict::Irrelevant };
    let (acknowledged, missing) = (witness.acknowledged(), witness.missing());
    match witness.cut.as_ref().map_or(CutKind::None, |cut| cut.kind) {
        _ if missing > 0 => {}
        CutKind::None => {
            return Verdict::Unknown("nothing was cut; `failure = \"power\"` in `[run]` tells it".into());
        }
        _ if acknowledged == 0 => {
            return Verdict::Unknown(
                "nothing was acknowledged as stable: flush in the flow, or write synchronously".into(),
            );
        }
        CutKind::Power | CutKind::Process => return Verdict::Clear,
    }
    let rewritten =
        measured.recording.rpc.as_ref().map(|rpc| {
            rpc.phases.iter().filter_map(|phase| phase.events.get("rewritten")).sum::<u64>() as f64
        });
    let mut evidence = vec![
        Evidence::number("acknowledged as stable, blocks and names", acknowledged as f64),
        Evidence::number("of them lost", witness.lost as f64),
        Evidence::number("an earlier state in their place", witness.old as f64),
        Evidence::number("torn", witness.torn as f64),
    ];
    evidence.extend(
        witness.by.iter().map(|(by, count)| Evidence::number(format!("promised by {by}"), *count as f64)),
    );
    evidence.extend(
        rewritten.map(|count| {
            Evidence::number("times that a changed verifier made the client write again", count)
        }),
    );
    Verdict::Found(
        Finding::new(Confidence::Certain, told(witness))
            .with(evidence)
            .costs(missing as f64 / acknowledged.max(missing) as f64),
    )
}

/// What was found, in words.
fn told(witness: &Witness) -> String {
    let kind = witness.cut.as_ref().map_or(CutKind::None, |cut| cut.kind);
    let after = if kind == CutKind::None { "although" } else { "after" };
    let mut what = format!(
        "What the server called stable is not: {} of {} acknowledged blocks and names are not there {after} {}",
        grouped(witness.missing()),
        grouped(witness.acknowledged()),
        kind.told()
    );
    let parts = [(witness.lost, "lost"), (witness.old, "older than promised"), (witness.torn, "torn")];
    let parts = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{} {word}", grouped(*count)));
    what += &format!(": {}.", parts.collect::<Vec<_>>().join(", "));
    if let Some(first) = witness.broken.first() {
        let place = first.offset.map_or(String::new(), |offset| format!(", offset {offset}"));
        what += &format!(
            " One of them: {}{place}, promised by {} at {}: {}.",
            first.file,
            first.promise,
            time(first.at_ns as f64),
            first.found
        );
    }
    what
}

#[cfg(test)]
mod tests {
    use benchmaster_record::witness::{Broken, CutRecord, Promise};

    use super::*;
    use crate::results::testing::Made;

    fn verdict(witness: Witness) -> Verdict {
        let mut made = Made::served();
        made.recording().witness = Some(witness);
        made.verdict(&DETECTOR)
    }

    #[test]
    fn what_is_missing_is_told_with_the_first_of_it() {
        let cut = Some(CutRecord { kind: CutKind::Power, how: "test".into(), outage_ns: 1 });
        let kept = Witness { cut, blocks: 2990, names: 10, ..Witness::default() };
        assert_eq!(verdict(kept.clone()), Verdict::Clear);
        let broken = Broken {
            file: "data/c0/f00000000".into(),
            offset: Some(8192),
            promise: Promise::Fsync,
            at_ns: 2_000_000_000,
            found: "generation 3 was promised, there is zeros".into(),
        };
        let lost = Witness { lost: 200, old: 12, broken: vec![broken], ..kept.clone() };
        let Verdict::Found(found) = verdict(lost) else { panic!("nothing was found") };
        assert!(found.what.contains("212 of 3000 acknowledged"), "{}", found.what);
        assert!(found.what.contains("200 lost, 12 older than promised"), "{}", found.what);
        assert!(found.what.contains("offset 8192, promised by fsync at 2 s"), "{}", found.what);
        assert!(
            matches!(verdict(Witness { cut: None, ..kept.clone() }), Verdict::Unknown(why) if why.contains("power"))
        );
        let nothing = Witness { blocks: 0, names: 0, ..kept };
        assert!(matches!(verdict(nothing), Verdict::Unknown(why) if why.contains("flush")));
        assert_eq!(Made::served().verdict(&DETECTOR), Verdict::Irrelevant);
    }
}
