//! Prints one run of a results directory as it is kept for tests of findings: the study, what was recorded without its course
//! over time, and of the samples those series that are named.
//!
//! `cargo run -p benchmaster-diagnosis --example evidence -- DIRECTORY TREATMENT REPLICATE [SAMPLER/METRIC …]`

use std::error::Error;
use std::io::Write;
use std::path::Path;

use benchmaster_record::results::RunKey;
use benchmaster_store::Store;
use serde_json::json;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, treatment, replicate, wanted @ ..] = &arguments[..] else {
        return Err("DIRECTORY TREATMENT REPLICATE [SAMPLER/METRIC …]".into());
    };
    let results = Store::load(Path::new(directory))?;
    let key = RunKey { treatment: treatment.parse()?, replicate: replicate.parse()? };
    let mut run = Store::load_run(Path::new(directory), key)?.ok_or("there is no such run")?;
    for recording in &mut run.recordings {
        recording.series.iter_mut().for_each(|series| series.intervals.clear());
        recording.phases.clear();
        for host in &mut recording.samples {
            let is = |name: &String, series: &benchmaster_record::samples::Series| {
                *name == format!("{}/{}", series.key.sampler, series.key.metric)
            };
            host.samples.series.retain(|series| wanted.iter().any(|name| is(name, series)));
            host.samples.problems.clear();
        }
        recording.samples.retain(|host| !host.samples.series.is_empty());
        recording.collected.clear();
    }
    let kept = json!({
        "text": results.study.text,
        "treatment": key.treatment,
        "recordings": run.recordings,
        "checks": run.checks,
        "service": run.service,
        "lab": run.lab,
    });
    Ok(writeln!(std::io::stdout(), "{kept}")?)
}
