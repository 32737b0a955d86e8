use std::collections::HashMap;

use benchmaster_record::recording::{EncodedHistogram, latency_histogram};
use benchmaster_record::results::{RunRecord, Severity, StudyRecord, StudyResults};
use benchmaster_testkit as synthetic;
use benchmaster_testkit::study_results;
use parquet::basic::LogicalType;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use tempfile::tempdir;

use super::table::{Table, Values};
use super::*;
use crate::details::{Details, NoDetails};

/// Results with what is seldom there: a failed run, an empty series, texts that CSV has to quote.
fn results() -> StudyResults {
    let mut results = study_results(3, 4, 2);
    results.study.factors[1].name = "unit".into();
    results.study.treatments[1].label = "io_size=\"64KiB\", sync=off\nsecond line".into();
    synthetic::fail(&mut results.runs[2], "agent \"c1\", died");
    let series = &mut results.runs[4].recordings[1].series[0];
    series.total = Default::default();
    series.total.latency = EncodedHistogram::encode(&latency_histogram());
    series.service = None;
    series.intervals.truncate(1);
    series.intervals[0].stats = Default::default();
    results
}

/// The rows of a CSV file as maps from column to field.
fn rows(text: &[u8]) -> Vec<HashMap<String, String>> {
    csv::Reader::from_reader(text).deserialize().map(|row| row.unwrap()).collect()
}

#[test]
fn responses_are_tidy() {
    let results = results();
    let mut text = Vec::new();
    responses_csv(&results, &mut text).unwrap();
    let header = String::from_utf8(text.clone()).unwrap().lines().next().unwrap().to_owned();
    assert_eq!(header, "treatment,label,io_size,factor_unit,replicate,position,response,value,unit,severity");
    let rows = rows(&text);
    let expected: Vec<_> =
        results.runs.iter().flat_map(|run| run.responses.iter().map(move |r| (run, r))).collect();
    assert_eq!(rows.len(), expected.len());
    assert!(
        expected.iter().any(|(run, _)| run.key.treatment == 1),
        "a label with quotes and a line break is there"
    );
    for (row, (run, response)) in rows.iter().zip(expected) {
        let treatment = &results.study.treatments[run.key.treatment as usize];
        assert_eq!(row["treatment"], run.key.treatment.to_string());
        assert_eq!(row["label"], treatment.label);
        assert_eq!(row["io_size"], results.study.factors[0].levels[treatment.levels[0] as usize]);
        assert_eq!(row["factor_unit"], results.study.factors[1].levels[treatment.levels[1] as usize]);
        assert_eq!(row["replicate"], run.key.replicate.to_string());
        assert_eq!(row["response"], response.name);
        assert_eq!(row["value"].parse::<f64>().unwrap(), response.value);
        assert_eq!(row["unit"], response.unit.symbol());
    }
    let severity =
        |position: &str| rows.iter().find(|row| row["position"] == position).unwrap()["severity"].clone();
    assert_eq!([severity("0"), severity("1"), severity("7")], ["warning", "", "invalid"]);
}

#[test]
fn every_number_of_the_csv_tables_is_that_of_the_results() {
    let results = results();
    let directory = tempdir().unwrap();
    let out = directory.path().join("new/csv");
    let files = export(&results, &NoDetails, Format::Csv, &out).unwrap();
    let names: Vec<_> = files.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "runs.csv",
            "responses.csv",
            "recordings.csv",
            "operations.csv",
            "intervals.csv",
            "workers.csv",
            "rpcs.csv",
            "services.csv",
            "checks.csv",
            "agents.csv",
            "clients.csv",
            "starts.csv",
            "retries.csv",
            "samplings.csv",
            "baselines.csv",
            "hooks.csv",
            "environment.csv",
            "samples.csv",
            "collected.csv"
        ]
    );
    assert_eq!(fs::read_dir(&out).unwrap().count(), files.len(), "nothing else is left");
    let table = |name: &str| rows(&fs::read(out.join(name)).unwrap());

    let runs = table("runs.csv");
    assert_eq!(runs.len(), 8);
    assert_eq!(runs[2]["failure"], "agent \"c1\", died");
    assert_eq!(runs[2]["started"], results.runs[2].started.to_string());

    let recordings = table("recordings.csv");
    assert_eq!(recordings.len(), 15, "the failed run has one only");
    let step = results.runs[0].recordings[1].host.clock_step_ns;
    assert_eq!(recordings[1]["clock_step_ns"], step.to_string());

    let operations = table("operations.csv");
    let series = || {
        let recordings = results.runs.iter().flat_map(|run| run.recordings.iter().map(move |r| (run, r)));
        recordings.flat_map(|(run, recording)| recording.series.iter().map(move |s| (run, recording, s)))
    };
    assert_eq!(operations.len(), series().count());
    for (row, (run, recording, series)) in operations.iter().zip(series()) {
        let histogram = series.total.latency.decode().unwrap();
        assert_eq!(row["position"], run.position.to_string());
        assert_eq!([&row["workload"], &row["series"]], [&recording.workload, &series.key.label]);
        assert_eq!(row["count"], series.total.count.to_string());
        assert_eq!(row["sum_ns"], series.total.sum_ns.to_string());
        let p99 =
            if histogram.is_empty() { String::new() } else { histogram.value_at_quantile(0.99).to_string() };
        assert_eq!(row["p99_ns"], p99);
        let service =
            series.service.as_ref().map(|s| s.decode().unwrap().max().to_string()).unwrap_or_default();
        assert_eq!(row["service_max_ns"], service);
    }

    let intervals = table("intervals.csv");
    let counts = |counted: &str| -> u64 {
        let of_first_write = intervals
            .iter()
            .filter(|row| row["position"] == "0" && row["series"] == "write" && row["counted"] == counted);
        of_first_write.map(|row| row["count"].parse::<u64>().unwrap()).sum()
    };
    let write = &results.runs[0].recordings[0].series[0];
    let cut: u64 = write.intervals[..2].iter().map(|i| i.stats.count).sum();
    assert_eq!((counts("false"), counts("true")), (cut, write.total.count - cut));
    let last = intervals.iter().find(|row| row["interval"] == "19").unwrap();
    assert_eq!(last["end_ns"], results.runs[0].recordings[0].length_ns.to_string());

    let workers = table("workers.csv");
    let of_workers = |run: &RunRecord| -> usize {
        run.recordings.iter().flat_map(|r| &r.workers).map(|w| w.series.len()).sum()
    };
    assert_eq!(workers.len(), results.runs.iter().map(of_workers).sum::<usize>());
    assert_eq!([&workers[0]["group"], &workers[0]["stop"]], ["main", "time"]);
    assert_eq!(workers[9]["cpu_user_ns"], "", "the last worker's CPU time is not known");

    let checks = table("checks.csv");
    let severities: Vec<_> = checks.iter().map(|row| row["severity"].as_str()).collect();
    assert_eq!(severities, ["warning", "note", "invalid"]);
    let evidence: HashMap<String, f64> = serde_json::from_str(&checks[0]["evidence"]).unwrap();
    assert_eq!(evidence["fileset_bytes"], 4_294_967_296.0);

    let environment = table("environment.csv");
    let fact = |name: &str| &environment.iter().find(|row| row["name"] == name).unwrap()["value"];
    assert_eq!(fact("target.file_system"), "nfs4");
    assert_eq!(fact("sysctl.net.ipv4.tcp_rmem"), "4096\t131072\t6291456");
}

#[test]
fn parquet_holds_what_csv_holds() {
    let results = results();
    let directory = tempdir().unwrap();
    let files = export(&results, &NoDetails, Format::Parquet, directory.path()).unwrap();
    let tables = tables::all(&results).unwrap();
    assert_eq!(files.len(), tables.len() + 2, "and those of single runs");
    for (path, table) in files.iter().zip(&tables) {
        assert_eq!(path.extension().unwrap(), "parquet");
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        let schema = reader.metadata().file_metadata().schema();
        let names: Vec<_> = schema.get_fields().iter().map(|field| field.name()).collect();
        let expected: Vec<_> = table.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, expected);
        let mut count = 0;
        for (index, row) in reader.get_row_iter(None).unwrap().enumerate() {
            for ((_, field), column) in row.unwrap().get_column_iter().zip(&table.columns) {
                assert_eq!(field, &cell(&column.values, index), "{path:?} {} {index}", column.name);
            }
            count += 1;
        }
        assert_eq!(count, table.rows());
    }
    let text = reader_field(&files[1], "response");
    assert_eq!(text, Some(LogicalType::String));
}

fn cell(values: &Values, row: usize) -> Field {
    match values {
        Values::Text(v) => v[row].clone().map(Field::Str),
        Values::Unsigned(v) => v[row].map(Field::ULong),
        Values::Signed(v) => v[row].map(Field::Long),
        Values::Real(v) => v[row].map(Field::Double),
        Values::Flag(v) => v[row].map(Field::Bool),
    }
    .unwrap_or(Field::Null)
}

fn reader_field(path: &Path, name: &str) -> Option<LogicalType> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let schema = reader.metadata().file_metadata().schema();
    let field = schema.get_fields().iter().find(|field| field.name() == name).unwrap();
    field.get_basic_info().logical_type_ref().cloned()
}

#[test]
fn a_factor_has_the_same_column_in_every_table() {
    let results = results();
    let factors = ["io_size", "factor_unit"];
    for Table { name, columns } in tables::all(&results).unwrap() {
        let unknown: Vec<_> = columns
            .iter()
            .map(|column| column.name.as_str())
            .filter(|column| !tables::fixed_columns().contains(column) && !factors.contains(column))
            .collect();
        assert!(unknown.is_empty(), "{name} has {unknown:?}");
    }
}

#[test]
fn json_holds_everything() {
    let results = results();
    let directory = tempdir().unwrap();
    let files = export(&results, &NoDetails, Format::Json, directory.path()).unwrap();
    assert_eq!(files, ["results.json", "samples.jsonl"].map(|name| directory.path().join(name)));
    let document = export_json(&results, &found(&results, &NoDetails).1).unwrap();
    assert!(document["diagnosis"]["findings"].is_array());
    let text = fs::read_to_string(&files[0]).unwrap();
    assert!(text == format!("{document}\n"), "the file is not the document");
    let keys: Vec<_> = document.as_object().unwrap().keys().collect();
    let expected = [
        "format",
        "format_version",
        "study",
        "interruptions",
        "sessions",
        "baselines",
        "hooks",
        "runs",
        "diagnosis",
    ];
    assert_eq!(keys, expected);
    assert_eq!(serde_json::from_value::<StudyRecord>(document["study"].clone()).unwrap(), results.study);
    assert_eq!(document["interruptions"], 1);
    assert_eq!(document["sessions"][1]["outcome"], "complete");
    assert_eq!(document["sessions"][0]["ended"], serde_json::Value::Null);

    let run = &results.runs[0];
    let found = &document["runs"][0];
    assert_eq!(found["severity"], "warning");
    assert_eq!(found["levels"].as_object().unwrap().keys().collect::<Vec<_>>(), ["io_size", "unit"]);
    assert_eq!(found["responses"][0]["value"].as_f64().unwrap(), run.responses[0].value);
    assert_eq!(run.checks[0].severity, Severity::Warning);
    let total = &found["recordings"][0]["series"][0]["total"];
    let histogram = run.recordings[0].series[0].total.latency.decode().unwrap();
    assert_eq!(total["latency"]["percentiles"]["p99.9"], histogram.value_at_quantile(0.999));
    // The buckets make the same histogram again.
    let mut again = latency_histogram();
    for bucket in total["latency"]["buckets"].as_array().unwrap() {
        again.record_n(bucket[0].as_u64().unwrap(), bucket[1].as_u64().unwrap()).unwrap();
    }
    assert_eq!(again, histogram);
    assert_eq!(found["recordings"][0]["series"][0]["intervals"].as_array().unwrap().len(), 20);
    let empty = &document["runs"][4]["recordings"][1]["series"][0];
    assert!(empty["total"]["latency"].is_null() && empty["intervals"][0]["latency"].is_null());
}

#[test]
fn a_failed_export_leaves_what_was_there() {
    let mut results = study_results(1, 2, 1);
    let directory = tempdir().unwrap();
    export(&results, &NoDetails, Format::Csv, directory.path()).unwrap();
    let before = fs::read(directory.path().join("operations.csv")).unwrap();

    results.runs[1].recordings[1].series[0].total.latency.0.truncate(10);
    for format in [Format::Csv, Format::Json, Format::Parquet] {
        let error = export(&results, &NoDetails, format, directory.path()).unwrap_err();
        assert!(error.to_string().starts_with("run 1, workload `read`, series `open`: "), "{error}");
    }
    assert_eq!(fs::read(directory.path().join("operations.csv")).unwrap(), before);

    let results = study_results(1, 2, 1);
    std::os::unix::fs::symlink("/dev/full", directory.path().join("runs.csv.partial")).unwrap();
    let error = export(&results, &NoDetails, Format::Csv, directory.path()).unwrap_err();
    assert!(
        matches!(&error, ExportError::Io { path, source }
        if path.ends_with("runs.csv") && source.kind() == io::ErrorKind::StorageFull),
        "{error}"
    );
    let left = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().ends_with(".partial")));
}

#[test]
fn rpcs_and_services_are_tidy() {
    let mut results = study_results(3, 2, 2);
    let lines = |results: &StudyResults, name: &str| {
        let directory = tempdir().unwrap();
        export(results, &NoDetails, Format::Csv, directory.path()).unwrap();
        rows(&fs::read(directory.path().join(format!("{name}.csv"))).unwrap())
    };
    assert!(lines(&results, "rpcs").is_empty() && lines(&results, "services").is_empty());
    synthetic::serve(&mut results);
    let phases = |run: &RunRecord| {
        let rpcs = run.recordings.iter().flat_map(|recording| recording.rpc.iter());
        rpcs.flat_map(|rpc| &rpc.phases).map(|phase| phase.rows.len()).sum::<usize>()
    };
    let rpcs = lines(&results, "rpcs");
    assert_eq!(rpcs.len(), results.runs.iter().map(phases).sum::<usize>());
    let first = &results.runs[0].recordings[0].rpc.as_ref().unwrap().phases[0].rows[0];
    assert_eq!((rpcs[0]["phase"].as_str(), &rpcs[0]["operation"]), ("set-up", &first.operation));
    assert_eq!(rpcs[0]["rtt_ns"], first.rtt_ns.to_string());
    let services = lines(&results, "services");
    assert_eq!(services.len(), results.runs.iter().map(|run| run.recordings.len()).sum::<usize>());
    assert_eq!((&services[0]["network"][..], &services[0]["delay_ns"][..]), ("tcp-relay", "1000000"));
    assert_eq!(services[0]["server_calls"], results.runs[0].server_use[0].calls.to_string());
    let json = export_json(&results, &crate::made_up::diagnosis()).unwrap();
    assert_eq!(json["runs"][0]["service"]["server"], "embedded");
    assert_eq!(json["runs"][0]["recordings"][0]["rpc"]["connection"]["version"], "4.1");
}

/// Runs that are whole are read from here; those of the results have no samples.
struct Whole(StudyResults);

impl Details for Whole {
    fn trace(
        &self,
        _: &RunRecord,
        _: &str,
        _: &mut dyn FnMut(&[benchmaster_record::recording::TraceRecord]),
    ) -> Option<Result<(), String>> {
        None
    }

    fn whole(&self, run: &RunRecord) -> Result<Option<RunRecord>, String> {
        match run.position {
            3 => Err("it is gone".into()),
            _ => Ok(self.0.runs.iter().find(|whole| whole.key == run.key).cloned()),
        }
    }
}

#[test]
fn what_many_clients_add_is_exported() {
    let mut whole = study_results(5, 2, 1);
    synthetic::serve(&mut whole);
    synthetic::spread(&mut whole);
    let results = synthetic::as_loaded(&whole);
    let details = Whole(whole.clone());
    let directory = tempdir().unwrap();
    export(&results, &details, Format::Csv, directory.path()).unwrap();
    let lines = |name: &str| rows(&fs::read(directory.path().join(format!("{name}.csv"))).unwrap());
    let run = &whole.runs[0];
    let write = &run.recordings[0];

    let agents = lines("agents");
    assert_eq!(agents.len(), 2 * 2 * 3);
    assert_eq!((&agents[1]["agent"][..], &agents[1]["host"][..]), ("c2", "node-2"));
    assert_eq!(agents[1]["offset_ns"], write.agents[1].clock.offset_ns.to_string());
    let clients = lines("clients");
    assert_eq!((clients.len(), &clients[3]["agent"][..]), (2 * 2 * 4, "c2"));
    let bytes: u64 = clients[..4].iter().map(|row| row["bytes"].parse::<u64>().unwrap()).sum();
    assert_eq!(bytes, write.series.iter().map(|series| series.total.bytes).sum::<u64>());
    assert_eq!(lines("starts")[0]["spread_ns"], write.start.unwrap().spread_ns.to_string());
    assert_eq!(lines("baselines")[1]["fairness"], "0.987");
    assert_eq!(lines("hooks")[0]["succeeded"], "true");
    assert_eq!(lines("retries")[0]["agent"], "c2");
    assert_eq!(lines("services")[0]["bandwidth"], "10000000000");
    assert!(lines("samplings")[0]["problems"].starts_with("nfsd: "));
    assert_eq!(lines("collected")[0]["output"].as_bytes(), write.collected[0].output);

    let samples = lines("samples");
    let series = |run: &RunRecord| {
        let hosts: Vec<_> = run.recordings.iter().flat_map(|r| r.samples.clone()).collect();
        hosts.into_iter().flat_map(|host| host.samples.series).collect::<Vec<_>>()
    };
    let count: usize = whole.runs.iter().flat_map(series).map(|series| series.points.len()).sum();
    assert_eq!(samples.len(), count);
    let first = &write.samples[0].samples.series[0];
    assert_eq!((&samples[0]["metric"], &samples[0]["kind"][..]), (&first.key.metric, "counter"));
    assert_eq!(samples[1]["value"], first.points[1].value.to_string());
    assert_eq!(samples[1]["time_ns"], first.points[1].time_ns.to_string());

    export(&results, &details, Format::Json, directory.path()).unwrap();
    let text = fs::read_to_string(directory.path().join("samples.jsonl")).unwrap();
    assert_eq!(text.lines().count(), whole.runs.iter().flat_map(series).count());
    let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!((&line["agent"], &line["unit"]), (&"c1".into(), &"ns".into()));
    assert_eq!(line["points"][1][0], first.points[1].time_ns);

    export(&results, &details, Format::Parquet, directory.path()).unwrap();
    let file = File::open(directory.path().join("samples.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    assert_eq!(reader.metadata().file_metadata().num_rows(), count as i64);
}

#[test]
fn samples_that_cannot_be_read_are_named() {
    let mut whole = study_results(6, 2, 2);
    synthetic::spread(&mut whole);
    let directory = tempdir().unwrap();
    let error =
        export(&synthetic::as_loaded(&whole), &Whole(whole), Format::Csv, directory.path()).unwrap_err();
    assert_eq!(error.to_string(), "the samples of run 3 cannot be read: it is gone");
    assert!(!directory.path().join("samples.csv").exists());
}
