//! The report page in headless Chromium: it draws every plot, without an error, without the network, at both widths.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use benchmaster_report::html::{self, NoTraces, TraceSource};
use benchmaster_store::record::{RunRecord, StudyResults};
use benchmaster_store::synthetic::{fail, study_results, trace_records};
use benchmaster_study::analysis::analyze;
use benchmaster_workload::recording::TraceRecord;

const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Traces of the workload `write`.
struct MadeUp;

impl TraceSource for MadeUp {
    fn each(
        &self,
        run: &RunRecord,
        workload: &str,
        take: &mut dyn FnMut(&[TraceRecord]),
    ) -> Option<Result<(), String>> {
        if workload != "write" {
            return None;
        }
        let mut records = trace_records(u64::from(run.key.treatment), 20_000);
        records.iter_mut().for_each(|r| r.start_ns *= 1_000);
        records.chunks(999).for_each(take);
        Some(Ok(()))
    }
}

#[test]
fn a_study_with_factors_and_traces() {
    let Some(chromium) = chromium() else { return };
    let results = study_results(7, 4, 3);
    let directory = written(&results, &MadeUp);
    for (width, dark) in [(390, false), (1400, false), (1400, true)] {
        let seen = visit(&chromium, directory.path(), width, dark);
        // Of two workloads: response, time, histogram, percentiles, workers; and the trace of one.
        assert_eq!(seen.number("expected"), 11, "{seen:?}");
        seen.assert_whole(width);
        // The first header of the first table was pressed twice, and every choice was made.
        assert_eq!(seen.text("sorted"), "descending", "{seen:?}");
        assert_eq!(seen.number("choices"), 9, "{seen:?}");
    }
}

#[test]
fn a_single_run() {
    let Some(chromium) = chromium() else { return };
    let directory = written(&study_results(1, 1, 1), &NoTraces);
    let seen = visit(&chromium, directory.path(), 390, true);
    seen.assert_whole(390);
}

#[test]
fn a_study_with_hostile_names_and_nothing_but_failures() {
    let Some(chromium) = chromium() else { return };
    let mut results = study_results(1, 2, 2);
    let hostile = "</script><script>throw new Error('escaped')</script><b>&amp;\"'\u{2028}";
    results.study.name = hostile.into();
    results.study.description = Some(hostile.into());
    results.study.text = hostile.into();
    for treatment in &mut results.study.treatments {
        treatment.label = format!("{} {hostile}", treatment.label);
    }
    for run in &mut results.runs {
        run.checks.iter_mut().for_each(|c| c.message = hostile.into());
    }
    let directory = written(&results, &MadeUp);
    let seen = visit(&chromium, directory.path(), 390, false);
    seen.assert_whole(390);
    assert_eq!(seen.text("title"), hostile);

    results.runs.iter_mut().for_each(|run| fail(run, hostile));
    let directory = written(&results, &NoTraces);
    visit(&chromium, directory.path(), 1400, false).assert_whole(1400);
}

#[test]
fn many_runs() {
    let Some(chromium) = chromium() else { return };
    let directory = written(&study_results(3, 30, 7), &NoTraces);
    let seen = visit(&chromium, directory.path(), 390, false);
    seen.assert_whole(390);
}

/// What catches requests catches them: a page that asks for something is found out.
#[test]
fn requests_would_be_noticed() {
    let Some(chromium) = chromium() else { return };
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("report.html"), "<html><img src='http://127.0.0.1:9/x.png'></html>")
        .unwrap();
    let seen = visit(&chromium, directory.path(), 390, false);
    assert_eq!(seen.requests, ["http://127.0.0.1:9/x.png"]);
}

/// A directory with the page of a study.
fn written(results: &StudyResults, traces: &dyn TraceSource) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let page = html::render(results, &analyze(results), traces).unwrap();
    fs::write(directory.path().join("report.html"), page).unwrap();
    directory
}

/// Chromium, or `None` after saying loudly that the test is skipped.
fn chromium() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories = std::env::split_paths(&path);
    let found = directories.find_map(|d| names.iter().map(|n| d.join(n)).find(|p| p.is_file()));
    if found.is_none() {
        let message = "chromium was not found in PATH; install it (Debian: apt-get install chromium)";
        assert!(std::env::var_os("BENCHMASTER_REQUIRE_CHROMIUM").is_none_or(|v| v != "1"), "{message}");
        eprintln!("\n*** SKIPPED: {message}. The report page was NOT tested in a browser. ***\n");
    }
    found
}

/// What was seen of a page.
#[derive(Debug)]
struct Seen {
    /// What the page and the probe wrote down.
    data: BTreeMap<String, String>,
    /// Requests that the page made.
    requests: Vec<String>,
}

impl Seen {
    fn text(&self, name: &str) -> &str {
        self.data.get(name).unwrap_or_else(|| panic!("the page did not write down {name}: {self:?}"))
    }

    fn number(&self, name: &str) -> usize {
        self.text(name).parse().unwrap_or_else(|_| panic!("{name} is not a number: {self:?}"))
    }

    fn assert_whole(&self, width: usize) {
        assert_eq!(self.text("errors"), "", "errors on the page: {self:?}");
        assert_eq!(self.text("done"), "true", "not everything was drawn: {self:?}");
        assert_eq!(self.number("plots"), self.number("expected"), "{self:?}");
        assert_eq!(self.number("svgs"), self.number("expected"), "plots without a drawing: {self:?}");
        assert_eq!(self.requests, [""; 0], "the page used the network");
        assert_eq!(self.number("viewport"), width, "{self:?}");
        assert!(self.number("scrollWidth") <= width, "wider than {width}: {self:?}");
    }
}

/// Headless windows are at least 500 pixels wide, so the page is shown in a frame of the width wanted. The probe makes
/// every choice of the page, sorts a table, and writes down what it sees.
const PROBE: &str = r#"<!DOCTYPE html><html><body style="margin:0">
<iframe id="f" src="report.html" style="border:0;width:WIDTHpx;height:2400px"></iframe>
<pre id="seen"></pre><script>
const frame = document.getElementById("f");
let waited = 0;
function look() {
  const page = frame.contentDocument, root = page && page.documentElement;
  waited += 100;
  if ((!root || root.dataset.done !== "true") && waited < 9000) return setTimeout(look, 100);
  const seen = Object.assign({}, root.dataset);
  const selects = Array.from(page.querySelectorAll("select"));
  let choices = 0;
  for (const select of selects) {
    choices += 1;
    for (const option of Array.from(select.options).slice(0, 5)) {
      select.value = option.value;
      select.dispatchEvent(new Event("change"));
    }
  }
  const button = page.querySelector("th button");
  if (button) { button.click(); button.click(); seen.sorted = button.parentElement.getAttribute("aria-sort"); }
  setTimeout(() => {
    seen.errors = root.dataset.errors;
    seen.choices = choices;
    seen.title = (page.querySelector("h1") || {}).textContent;
    seen.svgs = Array.from(page.querySelectorAll(".js-plotly-plot")).filter((p) => p.querySelector("svg.main-svg .trace")).length;
    seen.scrollWidth = Math.max(root.scrollWidth, page.body.scrollWidth);
    seen.viewport = frame.contentWindow.innerWidth;
    document.getElementById("seen").textContent = "SEEN" + encodeURIComponent(JSON.stringify(seen)) + "END";
  }, 200);
}
look();
</script></body></html>"#;

fn visit(chromium: &Path, directory: &Path, width: usize, dark: bool) -> Seen {
    let probe = directory.join("probe.html");
    fs::write(&probe, PROBE.replace("WIDTH", &width.to_string())).unwrap();
    let profile = tempfile::tempdir().unwrap();
    let log = profile.path().join("net.json");
    let dom = profile.path().join("dom.html");
    let mut command = Command::new(chromium);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--allow-file-access-from-files", "--virtual-time-budget=10000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--log-net-log={}", log.display()))
        .arg(format!("--window-size={},2400", width.max(500)))
        .args(dark.then_some("--blink-settings=preferredColorScheme=0"))
        .arg(format!("file://{}", probe.display()))
        .stdin(Stdio::null())
        .stdout(fs::File::create(&dom).unwrap())
        .stderr(Stdio::null());
    wait(command.spawn().unwrap());
    let dom = fs::read_to_string(dom).unwrap();
    let seen = dom.split_once("SEEN").and_then(|(_, rest)| rest.split_once("END")).map(|(seen, _)| seen);
    let seen = decoded(
        seen.unwrap_or_else(|| panic!("the probe wrote nothing down: {}", &dom[..dom.len().min(2000)])),
    );
    let values: BTreeMap<String, serde_json::Value> = serde_json::from_str(&seen).unwrap();
    let text = |value: serde_json::Value| value.as_str().map_or(value.to_string(), str::to_owned);
    Seen {
        data: values.into_iter().map(|(name, value)| (name, text(value))).collect(),
        requests: requests(&fs::read_to_string(log).unwrap()),
    }
}

fn wait(mut child: Child) {
    let started = Instant::now();
    loop {
        match child.try_wait().unwrap() {
            Some(status) => return assert!(status.success(), "chromium ended with {status}"),
            None if started.elapsed() > TIME_LIMIT => {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("chromium did not end within {TIME_LIMIT:?}");
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Requests that a page made, from Chromium's log: those over a network that have an origin. The browser's own have none.
fn requests(log: &str) -> Vec<String> {
    let log: serde_json::Value = serde_json::from_str(log).unwrap();
    let of_page = |event: &serde_json::Value| {
        let url = event["params"]["url"].as_str()?;
        let initiator = event["params"]["initiator"].as_str()?;
        let local = ["file:", "data:", "blob:", "chrome:"].iter().any(|scheme| url.starts_with(scheme));
        (initiator != "not an origin" && !local).then(|| url.to_owned())
    };
    log["events"].as_array().unwrap().iter().filter_map(of_page).collect()
}

/// Undoes `encodeURIComponent`.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if let (b'%', [high, low, tail @ ..]) = (first, tail) {
            let digits = [*high, *low];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
            rest = tail;
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).unwrap()
}
