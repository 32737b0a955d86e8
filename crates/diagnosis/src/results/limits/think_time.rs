//! Workers that pause between operations: nothing else has to be at its end.

use super::client_cpu::is_full;
use super::laws::{pauses, under_way, waits_for_others};
use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Evidence, Finding, Plot, Remedy};
use crate::measured::Measured;
use crate::results::rule::Detector;
use crate::validity::rule::stored;
use crate::words::{percent, time};
use benchmaster_record::results::CheckKind;

/// Share of the workers' time outside of operations.
const LEAST_SHARE: f64 = 0.5;
const LEAST_OPERATIONS: u64 = 20;

pub(super) const DETECTOR: Detector = Detector { explanation: &EXPLANATION, detect };

const EXPLANATION: Explanation = Explanation {
    id: "think-time",
    group: Group::Limit,
    title: "The pauses of the workload are the limit",
    mechanism: "A worker that pauses between its operations, as users think and programs compute, asks for no more than it does, whatever the file \
                system is capable of: X = N / (R + Z). A faster server then changes latencies, and hardly the rate.",
    formula: "closed loops with `pause` in their flow: Z share = 1 − sum of latencies / time of the workers, found from 50 % and 20 operations on; \
              not where workers also wait for each other (`meet`, `take`) or the processors were at their end. Cost = that share",
    source: "response time law R = N/X − Z (Jain 1991, §33.4); the flow of the study, latencies of its operations",
};

fn detect(measured: &Measured<'_>) -> Verdict {
    let Some(workload) = measured.workload else { return Verdict::Irrelevant };
    if measured.is_virtual() || measured.recording.is_open_loop() || !pauses(workload) {
        return Verdict::Irrelevant;
    }
    let operations = measured.operations();
    if operations < LEAST_OPERATIONS || waits_for_others(workload) {
        return Verdict::Irrelevant;
    }
    let (under_way, most) = under_way(measured, workload);
    let part = 1.0 - under_way / most.max(1e-9);
    if part < LEAST_SHARE || is_full(measured) || stored(measured, CheckKind::GeneratorLimit).is_some() {
        return Verdict::Clear;
    }
    let mean = measured.operation_ns() as f64 / operations as f64;
    Verdict::Found(
        Finding::new(
            &EXPLANATION,
            Confidence::Certain,
            format!(
                "Workers pause {} of their time, as the workload has it; operations take {} on average. Nothing else needs to be faster for this rate.",
                percent(part),
                time(mean)
            ),
            Remedy::new("Nothing, if users who think are what is studied: look at latencies then. For what the file system is capable of leave the pauses out, or use more workers.")
                .confirmed_by("a factor over the workers: the rate grows with them and the latencies stay"),
        )
        .with([
            Evidence::number("operations under way (rate · mean latency)", under_way),
            Evidence::number("workers · queue depth", most),
            Evidence::nanoseconds("mean latency", mean),
        ])
        .costs(part, CostOf::Time, "1 − sum of latencies / time of the workers")
        .shown_by(Plot::Clients),
    )
}

#[cfg(test)]
mod tests {
    use benchmaster_study::file::StudyFile;
    use benchmaster_study::plan::Plan;

    use super::*;
    use crate::results::testing::Made;

    /// Workers whose operations of 1 ms take this part of their time, with or without a pause in the flow of the study.
    fn flowing(part: f64, paused: bool) -> Made {
        let mut made = Made::new();
        let group = made.recording().workers[0].group.clone();
        let pause = if paused { ", { pause = \"5ms\" }" } else { "" };
        let text = format!(
            "[study]\nname = \"paused\"\n[target]\npath = \"/mnt/x\"\n[workload.write]\nuntil = {{ duration = \"20s\" }}\n\
             filesets.data = {{ files = 8, size = \"1MiB\" }}\n[[workload.write.groups]]\nname = \"{group}\"\nworkers = 4\n\
             setup = [{{ op = \"open\", file = \"next\", flags = [\"write\"] }}]\n\
             flow = [{{ repeat = 2, flow = [{{ op = \"write\", io_size = \"4KiB\" }}{pause}] }}]\n"
        );
        let file = StudyFile::parse("paused.toml", &text).unwrap_or_else(|problems| panic!("{problems}"));
        made.results.study = Plan::from_study(&file, "0.0.0").unwrap().study;
        made.working(part)
    }

    fn made(part: f64) -> Made {
        flowing(part, true)
    }

    #[test]
    fn pauses_that_take_most_of_the_time_are_the_limit() {
        let found = made(0.1).found(&DETECTOR);
        assert!((found.cost.as_ref().unwrap().share - 0.9).abs() < 0.01, "{:?}", found.cost);
        assert!(found.what.starts_with("Workers pause 90 % of their time"), "{}", found.what);
        assert!(matches!(made(0.49).verdict(&DETECTOR), Verdict::Found(_)));
        assert_eq!(made(0.51).verdict(&DETECTOR), Verdict::Clear);
    }

    #[test]
    fn without_pauses_or_with_full_processors_it_is_something_else() {
        let mut full = made(0.1);
        let workload = full.recording().workload.clone();
        full.checked(CheckKind::CpuLimit, &workload, &[("host_busy", 0.5), ("worker_cpu", 0.96)]);
        assert_eq!(full.verdict(&DETECTOR), Verdict::Clear);
        assert_eq!(flowing(0.1, false).verdict(&DETECTOR), Verdict::Irrelevant);
        assert_eq!(Made::new().reading().verdict(&DETECTOR), Verdict::Irrelevant, "an open loop");
    }
}
