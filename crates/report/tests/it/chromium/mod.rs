//! A page as headless Chromium shows it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Chromium, or `None` after saying loudly that the test is skipped.
pub(crate) fn chromium() -> Option<PathBuf> {
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
pub(crate) struct Seen {
    /// What the page and the probe wrote down.
    pub(crate) data: BTreeMap<String, String>,
    /// Requests that the page made.
    pub(crate) requests: Vec<String>,
}

impl Seen {
    pub(crate) fn text(&self, name: &str) -> &str {
        self.data.get(name).unwrap_or_else(|| panic!("the page did not write down {name}: {self:?}"))
    }

    pub(crate) fn number(&self, name: &str) -> usize {
        self.text(name).parse().unwrap_or_else(|_| panic!("{name} is not a number: {self:?}"))
    }

    pub(crate) fn assert_whole(&self, width: usize) {
        assert_eq!(self.text("errors"), "", "errors on the page: {self:?}");
        assert_eq!(self.text("done"), "true", "not everything was drawn: {self:?}");
        assert_eq!(self.number("plots"), self.number("expected"), "{self:?}");
        assert_eq!(self.number("svgs"), self.number("expected"), "plots without a drawing: {self:?}");
        assert_eq!(self.number("sheets"), self.number("expected"), "plots that are not on paper: {self:?}");
        assert_eq!(self.text("unfolded"), "0", "folds that printing opens");
        assert_eq!(self.requests, [""; 0], "the page used the network");
        assert_eq!(self.number("viewport"), width, "{self:?}");
        assert!(self.number("scrollWidth") <= width, "wider than {width}: {self:?}");
    }

    /// Question, answer, picture and table are seen without scrolling; of the table on a narrow screen the beginning.
    pub(crate) fn assert_first_screen(&self) {
        let width = self.number("viewport");
        let (last, height) = (if width > 600 { "table" } else { "row" }, screen(width));
        assert!((1..=height).contains(&self.number(last)), "the {last} ends below the screen: {self:?}");
        assert_eq!(
            self.number("sideways"),
            0,
            "a table without a picture beside it is wider than the screen: {self:?}"
        );
        assert!(self.number("picture") <= height, "the picture ends below the screen: {self:?}");
    }

    /// Readable, usable by the keyboard, its links lead somewhere, and its plots can be saved.
    pub(crate) fn assert_usable(&self) {
        let contrast: f64 = self.text("contrast").parse().unwrap();
        assert!(contrast >= 4.5, "contrast of {contrast} at `{}`", self.text("faintest"));
        assert!(self.number("texts") > 50, "{self:?}");
        assert_eq!(self.text("first"), "a.skip", "the first stop of the tab key: {self:?}");
        assert_eq!(self.text("jumps"), "", "stops of the tab key out of order");
        assert_eq!(self.text("nameless"), "", "stops of the tab key without a name");
        assert_eq!(self.text("unmarked"), "", "stops of the tab key whose focus is not seen");
        assert_eq!(self.text("nowhere"), "", "links that lead nowhere");
        assert_eq!(self.text("unproven"), "", "links of findings that do not show their plot");
        assert_eq!(self.text("hides"), "true", "a click into the legend: {self:?}");
        assert_ne!(self.text("tip"), "", "no value at the pointer: {self:?}");
        if self.number("viewport") > 600 {
            assert_eq!(self.text("zooms"), "true", "{self:?}");
        }
        assert_eq!(self.text("svg"), "image/svg+xml <svg", "{self:?}");
        assert_eq!(self.text("png"), "image/png \u{fffd}PNG", "{self:?}");
        assert!(self.text("csv").starts_with("text/csv panel,series,"), "{self:?}");
        assert!(self.number("rows") >= 2, "{self:?}");
    }
}

/// Pixels of the height of a screen of this width: a laptop's or a phone's.
fn screen(width: usize) -> usize {
    if width > 600 { 900 } else { 844 }
}

/// Headless windows are at least 500 pixels wide, so the page is shown in a frame of the width wanted. The probe makes
/// every choice of the page, sorts a table, follows its links, saves a plot, and writes down what it sees.
const PROBE: &str = include_str!("probe.html");

pub(crate) fn visit(chromium: &Path, directory: &Path, width: usize, dark: bool) -> Seen {
    let probe = directory.join("probe.html");
    fs::write(
        &probe,
        PROBE.replace("WIDTH", &width.to_string()).replace("SCREEN", &screen(width).to_string()),
    )
    .unwrap();
    let profile = tempfile::tempdir().unwrap();
    let log = profile.path().join("net.json");
    let dom = profile.path().join("dom.html");
    let mut command = Command::new(chromium);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--allow-file-access-from-files", "--virtual-time-budget=600000", "--dump-dom"])
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
    let seen = dom
        .split_once(r#"<pre id="seen">SEEN"#)
        .and_then(|(_, rest)| rest.split_once("END"))
        .map(|(seen, _)| seen);
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
