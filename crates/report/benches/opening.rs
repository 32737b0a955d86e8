//! How long a report page takes to open in Chromium, and how much of that is work of the page itself.
//!
//! `cargo bench -p benchmaster-report --bench opening [-- FILE.html...]`
//!
//! Each page is opened in a browser of its own with nothing kept from before, several times; without names of files those of
//! a study of 20 runs and of one of 1,000 runs, which are made up. Milliseconds on the clock depend on what else the machine
//! does; those of processor time on the page's main thread (`TaskDuration` and its parts in Chromium's `threadTicks`) do not,
//! or little. `first paint` is the answer on the screen, `usable` when tables sort and links work, `drawn` when all plots in
//! the window are there. `rest` is the processor time of drawing all others, as printing does.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use benchmaster_analysis::analyze;
use benchmaster_diagnosis::results::diagnose;
use benchmaster_record::results::StudyResults;
use benchmaster_report::details::NoDetails;
use benchmaster_report::pages;
use benchmaster_testkit::{serve, study_results};
use serde_json::{Value, json};

/// Times that each page is opened.
const TIMES: usize = 5;
/// A page that is not drawn by then is not shown as if it were.
const TIME_LIMIT: Duration = Duration::from_secs(60);

fn main() {
    let directory = tempfile::tempdir().unwrap();
    let mut pages: Vec<PathBuf> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).map(PathBuf::from).collect();
    if pages.is_empty() {
        let mut served = study_results(7, 4, 5);
        serve(&mut served);
        for (name, results) in [("20-runs", served), ("1000-runs", study_results(2, 500, 2))] {
            let path = directory.path().join(format!("{name}.html"));
            fs::write(&path, page(&results)).unwrap();
            pages.push(path);
        }
    }
    println!(
        "medians of {TIMES}, in ms; cpu is of the page's main thread until all plots in a window of 1400 x 900 are drawn"
    );
    println!(
        "{:<28} {:>6} {:>12} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9}",
        "page", "MB", "first paint", "usable", "drawn", "cpu", "script", "layout", "rest", "plots"
    );
    for path in pages {
        let path = fs::canonicalize(path).unwrap();
        let seen: Vec<Opened> = (0..TIMES).map(|_| open(&path)).collect();
        let median = |of: fn(&Opened) -> f64| {
            let mut values: Vec<f64> = seen.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[TIMES / 2]
        };
        println!(
            "{:<28} {:>6.2} {:>12.0} {:>8.0} {:>8.0} {:>8.0} {:>8.0} {:>8.0} {:>8.0} {:>9}",
            name(&path),
            fs::metadata(&path).unwrap().len() as f64 / 1e6,
            median(|o| o.first_paint),
            median(|o| o.usable),
            median(|o| o.drawn),
            median(|o| o.cpu),
            median(|o| o.script),
            median(|o| o.layout),
            median(|o| o.rest),
            format!("{:.0}/{:.0}", median(|o| o.plots), median(|o| o.figures)),
        );
    }
}

fn page(results: &StudyResults) -> String {
    let analysis = analyze(results);
    pages::study(results, &analysis, &diagnose(results, &analysis, &NoDetails), Some(&NoDetails))
        .page()
        .unwrap()
}

/// `factorial/report.html`, since most pages are called the same.
fn name(path: &Path) -> String {
    let parts: Vec<_> = path.iter().rev().take(2).collect();
    let shown = if parts[0] == "report.html" { parts[1] } else { parts[0] };
    shown.to_string_lossy().into_owned()
}

/// One opening, in milliseconds.
struct Opened {
    first_paint: f64,
    usable: f64,
    drawn: f64,
    cpu: f64,
    script: f64,
    layout: f64,
    rest: f64,
    plots: f64,
    figures: f64,
}

fn open(path: &Path) -> Opened {
    let mut browser = Browser::start();
    browser.call("Page.enable", &json!({}));
    browser.call("Performance.enable", &json!({ "timeDomain": "threadTicks" }));
    browser.call("Page.navigate", &json!({ "url": format!("file://{}", path.display()) }));
    let started = Instant::now();
    while browser.evaluate("document.documentElement?.dataset.done || ''") != "true" {
        assert!(started.elapsed() < TIME_LIMIT, "{} is not drawn after {TIME_LIMIT:?}", path.display());
        std::thread::sleep(Duration::from_millis(20));
    }
    let at_drawn = browser.metrics();
    let of_page = |browser: &mut Browser, what: &str| browser.evaluate(what).as_f64().unwrap();
    let data = "+document.documentElement.dataset";
    let first_paint = "performance.getEntriesByName('first-contentful-paint').map((e) => e.startTime)[0]";
    let opened = Opened {
        first_paint: of_page(&mut browser, first_paint),
        usable: of_page(&mut browser, &format!("{data}.readable")),
        drawn: of_page(&mut browser, &format!("{data}.millis")),
        plots: of_page(&mut browser, &format!("{data}.plots")),
        figures: of_page(&mut browser, &format!("{data}.expected")),
        cpu: at_drawn("TaskDuration"),
        script: at_drawn("ScriptDuration"),
        layout: at_drawn("LayoutDuration") + at_drawn("RecalcStyleDuration"),
        rest: 0.0,
    };
    browser.evaluate("window.dispatchEvent(new Event('beforeprint'))");
    let at_end = browser.metrics();
    Opened { rest: at_end("TaskDuration") - at_drawn("TaskDuration"), ..opened }
}

/// Chromium with one page, spoken to over pipes by the DevTools protocol.
struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    last: u64,
    profile: tempfile::TempDir,
}

impl Browser {
    fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        // Chromium reads commands from descriptor 3 and answers on 4.
        let mut child = Command::new("sh")
            .args(["-c", r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#, "sh", "chromium"])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--remote-debugging-pipe",
            ])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--window-size=1400,900", "about:blank"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut browser = Self { child, to, from, session: None, last: 0, profile };
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", &attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        browser
    }

    /// Messages end with a zero byte; events in between are passed over.
    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let mut answer = Vec::new();
            self.from.read_until(0, &mut answer).unwrap();
            assert_eq!(answer.pop(), Some(0), "chromium ended at {method}");
            let mut answer: Value = serde_json::from_slice(&answer).unwrap();
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
        }
    }

    fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true });
        self.call("Runtime.evaluate", &parameters)["result"]["value"].take()
    }

    /// Processor time of the page's main thread by kind, in milliseconds.
    fn metrics(&mut self) -> impl Fn(&str) -> f64 + use<> {
        let metrics = self.call("Performance.getMetrics", &json!({}))["metrics"].take();
        move |name| {
            let all = metrics.as_array().unwrap();
            all.iter().find(|m| m["name"] == name).unwrap()["value"].as_f64().unwrap() * 1e3
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session = None;
        self.call("Browser.close", &json!({}));
        self.child.wait().unwrap();
        // Named so that the profile is removed only after the browser has ended.
        let _ = self.profile.path();
    }
}
