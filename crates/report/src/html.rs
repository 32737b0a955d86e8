//! The report page: one HTML file with everything in it, which opens offline.

mod bound;
mod compare;
mod effects;
mod figure;
mod hash_cast;
mod load;
mod page;
mod plots;
mod stack;
mod standalone;
mod trace;

use benchmaster_analysis::Analysis;
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_record::results::StudyResults;
use minijinja::HtmlEscape;
use minijinja::value::Serde;
use minijinja::{Environment, Value, context};
use serde::Serialize;

use self::figure::Figure;
use crate::details::Details;

pub use compare::{Compared, compare, history};
pub use hash_cast::{HashCast, HashCastCurve, HashCastPoint, HashCastPoints, hash_cast};
pub use standalone::experiment;

/// Treatments that can be chosen in plots over time and of latencies.
pub(crate) use plots::CHOICES as TREATMENTS_DRAWN;

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
}

/// Makes the report page of a study.
///
/// # Errors
/// Only on defects of this program; whatever is wrong with the results is shown on the page.
pub fn render(
    results: &StudyResults,
    analysis: &Analysis,
    diagnosis: &Diagnosis,
    details: &dyn Details,
) -> Result<String, HtmlError> {
    let mut figures = load::figures(analysis);
    figures.extend(plots::figures(results, analysis));
    let mut problems = trace::figures(results, analysis, details, &mut figures);
    let (drawn, unread) = stack::figures(results, analysis, details, &mut figures);
    problems.extend(unread);
    let of_effects = analysis.effects.experiment().map(effects::of_experiment).unwrap_or_default();
    let page = page::page(results, analysis, diagnosis, &of_effects, &figures, &drawn, problems);
    // In the order in which they stand on the page.
    let all: Vec<_> = of_effects.iter().chain(&figures).collect();
    let title = format!("{} – Benchmaster report", results.study.name);
    document("report.html", &title, &all, &page)
}

/// The scripts that draw plots and let the pointer read them.
const PLOT: [&str; 2] = [include_str!("../templates/plot.js"), include_str!("../templates/pointer.js")];

/// A page by one of the templates, with everything in it.
fn document(
    template: &str,
    title: &str,
    figures: &[&Figure],
    page: &impl Serialize,
) -> Result<String, HtmlError> {
    let mut environment = Environment::new();
    environment.add_filter("coded", |text: &str| Value::from_safe_string(coded(text)));
    environment.add_template("base.html", include_str!("../templates/base.html"))?;
    environment.add_template("macros.html", include_str!("../templates/macros.html"))?;
    environment.add_template("report.html", include_str!("../templates/report.html"))?;
    environment.add_template("compare.html", include_str!("../templates/compare.html"))?;
    environment.add_template("figures.html", include_str!("../templates/figures.html"))?;
    // A line of JSON for each figure, so that the script reads those alone that are looked at.
    let lines: Vec<String> = figures.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
    let data = json_for_script(&lines.join("\n"));
    Ok(environment.get_template(template)?.render(context! {
        title,
        page => Value::from(Serde(page)),
        css => Value::from_safe_string(include_str!("../templates/report.css").into()),
        js => Value::from_safe_string(include_str!("../templates/report.js").into()),
        plot_js => Value::from_safe_string(PLOT.concat()),
        data => Value::from_safe_string(data),
    })?)
}

/// A text as HTML, in which what stands between backticks is code.
fn coded(text: &str) -> String {
    let escaped = |part: &str| HtmlEscape(part).to_string();
    let mut parts = text.split('`');
    let mut html = parts.next().map(escaped).unwrap_or_default();
    while let Some(code) = parts.next() {
        match parts.next() {
            Some(rest) => html.push_str(&format!("<code>{}</code>{}", escaped(code), escaped(rest))),
            // The last of an odd number is none of a pair.
            None => html.push_str(&format!("`{}", escaped(code))),
        }
    }
    html
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
    fn scripts_cannot_end_their_element() {
        let page_script = include_str!("../templates/report.js");
        for script in PLOT.iter().chain([&page_script]) {
            assert!(!script.contains("</script") && !script.contains("<!--"));
        }
    }

    #[test]
    fn what_stands_between_backticks_is_code() {
        assert_eq!(coded("use `sync`, or <wait>"), "use <code>sync</code>, or &lt;wait&gt;");
        assert_eq!(coded("`a<b` and `c`"), "<code>a&lt;b</code> and <code>c</code>");
        assert_eq!(coded("one ` alone, two `` none"), "one <code> alone, two </code>` none");
        assert_eq!(coded("alone ` <"), "alone ` &lt;");
        assert_eq!(coded(""), "");
    }

    #[test]
    fn data_cannot_leave_its_script() {
        let json = serde_json::to_string("</script><!-- & \u{2028}").unwrap();
        let safe = json_for_script(&json);
        assert!(!safe.contains(['<', '>', '&', '\u{2028}']));
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), "</script><!-- & \u{2028}");
    }
}
