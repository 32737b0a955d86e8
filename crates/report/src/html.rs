//! The report page: one HTML file with everything in it, which opens offline.

mod figure;
mod page;
mod plots;
mod table;
mod trace;

use std::path::PathBuf;

use benchmaster_store::record::{RunRecord, StudyResults};
use benchmaster_store::trace as stored;
use benchmaster_study::analysis::Analysis;
use benchmaster_workload::recording::TraceRecord;
use minijinja::value::Serde;
use minijinja::{Environment, Value, context};

/// Why a page could not be made.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    /// The page's template does not fit its data: a defect of this program.
    #[error(
        "the report page could not be put together: {0}; this is a defect of the program, please report it"
    )]
    Template(#[from] minijinja::Error),
    /// The data of the plots could not be written as JSON: a defect of this program.
    #[error(
        "the data of the plots could not be written: {0}; this is a defect of the program, please report it"
    )]
    Data(#[from] serde_json::Error),
    /// The plot library is not where it is expected in the `plotly` crate.
    #[error("the plot library was not found in the `plotly` crate; its version must have changed")]
    PlotLibrary,
}

/// Where the traces of runs come from.
pub trait TraceSource {
    /// Hands the trace of a workload of a run to `take`, batch by batch. `None` when there is none; `Some(Err)` with the
    /// reason when it cannot be read, which the page then shows.
    fn each(
        &self,
        run: &RunRecord,
        workload: &str,
        take: &mut dyn FnMut(&[TraceRecord]),
    ) -> Option<Result<(), String>>;
}

/// The trace files of a results directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultsDirectory(pub PathBuf);

impl TraceSource for ResultsDirectory {
    fn each(
        &self,
        run: &RunRecord,
        workload: &str,
        take: &mut dyn FnMut(&[TraceRecord]),
    ) -> Option<Result<(), String>> {
        let path = self.0.join(run.traces.get(workload)?);
        Some(stored::read(&path, take).map(drop).map_err(|e| e.to_string()))
    }
}

/// No traces, for results without a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoTraces;

impl TraceSource for NoTraces {
    fn each(&self, _: &RunRecord, _: &str, _: &mut dyn FnMut(&[TraceRecord])) -> Option<Result<(), String>> {
        None
    }
}

/// Makes the report page of a study.
///
/// # Errors
/// Only on defects of this program; whatever is wrong with the results is shown on the page.
pub fn render(
    results: &StudyResults,
    analysis: &Analysis,
    traces: &dyn TraceSource,
) -> Result<String, HtmlError> {
    let mut figures = plots::figures(results, analysis);
    let trace_problems = trace::figures(results, analysis, traces, &mut figures);
    let page = page::page(results, analysis, &figures, trace_problems);
    let data = json_for_script(&serde_json::to_string(&figures)?);

    let mut environment = Environment::new();
    environment.add_template("report.html", include_str!("../templates/report.html"))?;
    Ok(environment.get_template("report.html")?.render(context! {
        page => Value::from(Serde(&page)),
        css => Value::from_safe_string(include_str!("../templates/report.css").into()),
        js => Value::from_safe_string(include_str!("../templates/report.js").into()),
        plotly => Value::from_safe_string(plot_library()?),
        data => Value::from_safe_string(data),
    })?)
}

/// The text of plotly.js, which the `plotly` crate gives only within a script element and together with MathJax.
fn plot_library() -> Result<String, HtmlError> {
    let mut scripts = plotly::Plot::offline_js_sources();
    let end = scripts.find("</script>").ok_or(HtmlError::PlotLibrary)?;
    scripts.truncate(end);
    let start = scripts.find("<script").and_then(|tag| Some(tag + scripts[tag..].find('>')? + 1));
    let library = scripts.split_off(start.ok_or(HtmlError::PlotLibrary)?);
    if library.contains("plotly.js v") { Ok(library) } else { Err(HtmlError::PlotLibrary) }
}

/// JSON that may stand within a script element: nothing in it can end the element or open a comment.
fn json_for_script(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plot_library_is_whole_and_alone() {
        let library = plot_library().unwrap();
        assert!(library.trim_start().starts_with("/**\n* plotly.js v3"), "{}", &library[..80]);
        assert!(!library.contains("</script") && library.contains("Plotly"));
        assert!((3_000_000..5_000_000).contains(&library.len()), "{}", library.len());
    }

    #[test]
    fn data_cannot_leave_its_script() {
        let json = serde_json::to_string("</script><!-- & \u{2028}").unwrap();
        let safe = json_for_script(&json);
        assert!(!safe.contains(['<', '>', '&', '\u{2028}']));
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), "</script><!-- & \u{2028}");
    }
}
