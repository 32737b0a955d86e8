//! Writes that fill a cache and then stand still.

use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Plot, Remedy};
use crate::results::stored::{Could, Stored, when};
use benchmaster_record::model::OperationKind;

/// Seconds: what stands still for less waits for a server or a processor, and not for a cache to be written out.
const LEAST_STALL: f64 = 0.1;

/// The stored check tells of it.
pub(super) static BURSTS: Stored = Stored {
    check: "burst-and-flush",
    explanation: Explanation {
        id: "burst-and-flush",
        group: Group::Phenomenon,
        title: "Writes go in bursts into a cache, and stand still while it is written out",
        mechanism: "Without O_SYNC a write only fills the client's memory, at its speed, until too many pages are dirty; then writers wait until they are written out, and begin anew. A \
                    run shows more than the network can carry for seconds and nothing for up to minutes, and its mean depends on how many whole cycles it had.",
        formula: "intervals up to 5 % of the bursts' level are stalls, from 25 % on bursts (Ridler and Calvard on logarithms); found when from the first burst on ≥ 20 % of the intervals \
                  and three or more are stalls, the longest of 0.1 s or more, and at most a third lie between; cost = share of the intervals that are stalls",
        source: "the check `burst-and-flush`; docs/metrics.md, \"Bursts and flushes\"; paper 000 §6 (more than 1 GB/s, then 0 for up to five minutes)",
    },
    confidence: Confidence::Certain,
    could: |measured| {
        if measured.of_kind(OperationKind::Write).any(|series| series.total.count > 0) {
            when(true)
        } else {
            Could::Never
        }
    },
    worth: |told| told.number("longest_stall_s").is_none_or(|longest| longest >= LEAST_STALL),
    numbers: &[
        ("burst_rate", "rate in bursts", "B/s"),
        ("stall_rate", "rate in stalls", "B/s"),
        ("stall_share", "share of the intervals that are stalls", "1"),
        ("period_s", "from burst to burst", "s"),
        ("longest_stall_s", "longest stall", "s"),
        ("cycles", "whole cycles", "1"),
    ],
    cost: |told| {
        Some((
            told.number("stall_share")?,
            CostOf::Time,
            "share of the intervals in which next to nothing was written",
        ))
    },
    remedy: |told| {
        let period = told.number("period_s").filter(|period| *period > 0.0);
        let longer = period.map_or(String::new(), |period| format!(", at least {:.0} s", period * 10.0));
        Remedy::new(format!("Measure what reaches the server: with `sync`, or with a flush in the flow, or over ten whole cycles{longer}. For steadier writes let writing out begin earlier."))
            .by("sysctl vm.dirty_background_bytes=67108864 vm.dirty_bytes=268435456   # on the client")
            .confirmed_by("`studies/paper000-unsynchronised-write.toml`; the same workload with `sync = \"o_sync\"`")
    },
    plot: Some(Plot::Time),
};

#[cfg(test)]
mod tests {
    use super::super::made;
    use super::*;
    use crate::diagnosis::Verdict;

    #[test]
    fn the_stored_check_is_told_with_its_numbers() {
        let mut results = made::study(
            "[study]\nname = \"made\"\n[target]\npath = \"/mnt/x\"\n[workload.write]\nuse = \"random-write\"\nduration = \"1s\"\n",
        );
        let recording = |kind| {
            let mut recording = made::recording("write", 100.0);
            made::series(&mut recording, kind, 65_536, &[(50_000, 1000)]);
            recording
        };
        made::add(&mut results, 0, vec![recording(OperationKind::Write)], &[]);
        made::add(&mut results, 0, vec![recording(OperationKind::Write)], &[]);
        made::add(&mut results, 0, vec![recording(OperationKind::Read)], &[]);
        let check = |longest| {
            let numbers = [
                ("burst_rate", 1.1e9),
                ("stall_share", 0.8),
                ("period_s", 30.0),
                ("longest_stall_s", longest),
            ];
            made::check("burst-and-flush", "write", &numbers)
        };
        results.runs[1].checks.push(check(0.1));
        made::add(&mut results, 0, vec![recording(OperationKind::Write)], &[]);
        results.runs[3].checks.push(check(0.099));
        let verdict =
            |run| made::judge_run(&results, run, &made::Traces::default(), |measured| BURSTS.look(measured));
        assert_eq!(verdict(0), Verdict::Clear);
        assert_eq!(verdict(2), Verdict::Irrelevant);
        assert_eq!(verdict(3), Verdict::Clear);
        let Verdict::Found(found) = verdict(1) else { panic!() };
        assert_eq!((found.cost.unwrap().share, found.evidence[0].value), (0.8, 1.1e9));
        assert!(found.remedy.text.contains("at least 300 s"));
    }
}
