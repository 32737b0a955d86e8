//! Workers that pause between operations: nothing else has to be at its end.

use super::client_cpu::is_full;
use super::laws::{pauses, under_way, waits_for_others};
use crate::prelude::*;

/// Share of the workers' time outside of operations.
const LEAST_SHARE: f64 = 0.5;
const LEAST_OPERATIONS: u64 = 20;

pub(super) const DETECTOR: Detector = Detector { id: "think-time", detect };

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
    let what = format!(
        "Workers pause {} of their time, as the workload has it; operations take {} on average. Nothing else needs to be faster for this rate.",
        percent(part),
        time(mean)
    );
    Verdict::Found(
        Finding::new(Confidence::Certain, what)
            .with([
                Evidence::number("operations under way (rate · mean latency)", under_way),
                Evidence::number("workers · queue depth", most),
                Evidence::nanoseconds("mean latency", mean),
            ])
            .costs(part),
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
