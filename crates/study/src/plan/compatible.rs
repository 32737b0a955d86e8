//! Whether a study file still describes the study that a results directory was made for.

use std::fmt;

use benchmaster_record::results::StudyRecord;
use toml::{Table, Value};

use super::screen::screening;
use super::study::Plan;
use crate::diagnostics::Diagnostics;
use crate::file::StudyFile;

/// The first difference between the stored study and the one at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What differs: a path in the study file, or a part of the plan.
    pub path: String,
    /// As stored; `None` when it is not there.
    pub stored: Option<String>,
    /// As it is now; `None` when it is not there.
    pub now: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the study has changed since these results were begun: `{}` ", self.path)?;
        match (&self.stored, &self.now) {
            (Some(stored), Some(now)) => write!(f, "was {stored} and is now {now}")?,
            (Some(stored), None) => write!(f, "was {stored} and is gone")?,
            (None, Some(now)) => write!(f, "is new ({now})")?,
            (None, None) => write!(f, "differs")?,
        }
        f.write_str(
            "; results of different studies do not mix: give another directory with -o, or undo the change",
        )
    }
}

impl std::error::Error for Difference {}

/// Whether results of the stored study can be continued by the plan at hand. Comments, white space and the way in which
/// a value is written do not matter; everything else does.
///
/// # Errors
/// The first difference.
pub fn compatible(stored: &StudyRecord, now: &Plan) -> Result<(), Difference> {
    let unreadable = |what: &str| Difference {
        path: format!("the {what} study file"),
        stored: Some("readable TOML".into()),
        now: None,
    };
    let before: Table = stored.text.parse().map_err(|_| unreadable("stored"))?;
    let after: Table = now.study.text.parse().map_err(|_| unreadable("present"))?;
    if let Some(difference) = tables("", &before, &after) {
        return Err(difference);
    }
    // The same text can mean another plan in another version of the program.
    let meaning = |study: &StudyRecord| {
        [
            ("screening", study.design_details.screen.to_string()),
            ("random generator", study.generator.clone()),
            ("replicates", format!("{:?}", study.replicates)),
            ("order", study.order.clone()),
            ("primary response", study.primary_response.clone()),
            (
                "treatments",
                study
                    .treatments
                    .iter()
                    // Stages that were added are no part of the file.
                    .filter(|treatment| treatment.stage == 0)
                    .map(|t| format!("{} ({:?})", t.label, t.levels))
                    .collect::<Vec<_>>()
                    .join(", "),
            ),
        ]
    };
    for ((what, stored), (_, now)) in meaning(stored).into_iter().zip(meaning(&now.study)) {
        if stored != now {
            return Err(Difference { path: what.into(), stored: Some(stored), now: Some(now) });
        }
    }
    Ok(())
}

impl Plan {
    /// The plan of a stored study, its stages included, from the study file that was stored with it.
    ///
    /// # Errors
    /// When this version of the program cannot run the stored file, or makes another design of it.
    pub fn of_results(stored: &StudyRecord) -> Result<Self, OfResultsError> {
        let mut file = StudyFile::parse("study.toml", &stored.text)?;
        if stored.design_details.screen {
            screening(&mut file);
        }
        let plan = Self::from_study(&file, &stored.version)?;
        compatible(stored, &plan).map_err(Box::new)?;
        Ok(plan.with_stages(stored)?)
    }
}

/// Why there is no plan of a stored study.
#[derive(Debug, thiserror::Error)]
pub enum OfResultsError {
    /// Its file cannot be run.
    #[error("{0}")]
    Invalid(Diagnostics),
    /// It means something else now.
    #[error(transparent)]
    Different(#[from] Box<Difference>),
}

impl From<Diagnostics> for OfResultsError {
    fn from(found: Diagnostics) -> Self {
        Self::Invalid(found)
    }
}

fn tables(path: &str, before: &Table, after: &Table) -> Option<Difference> {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let text = |value: Option<&Value>| value.map(ToString::to_string);
    for (key, value) in before {
        let there = after.get(key);
        let difference = there.map_or_else(
            || Some(Difference { path: below(key), stored: text(Some(value)), now: None }),
            |there| values(&below(key), value, there),
        );
        if difference.is_some() {
            return difference;
        }
    }
    if let Some((key, value)) = after.iter().find(|(key, _)| !before.contains_key(*key)) {
        return Some(Difference { path: below(key), stored: None, now: text(Some(value)) });
    }
    let keys = |table: &Table| table.keys().cloned().collect::<Vec<_>>().join(", ");
    // The order of workloads, factors and levels is part of the study; that of other keys is not.
    let ordered = path == "workload"
        || path == "factors"
        || (path.starts_with("factors.") && path.ends_with(".levels"));
    (ordered && keys(before) != keys(after)).then(|| Difference {
        path: format!("order of {path}"),
        stored: Some(keys(before)),
        now: Some(keys(after)),
    })
}

fn values(path: &str, before: &Value, after: &Value) -> Option<Difference> {
    match (before, after) {
        (Value::Table(before), Value::Table(after)) => tables(path, before, after),
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut pairs = one.iter().zip(other).enumerate();
            pairs.find_map(|(index, (one, other))| values(&format!("{path}[{index}]"), one, other))
        }
        _ => (before != after).then(|| Difference {
            path: path.to_owned(),
            stored: Some(before.to_string()),
            now: Some(after.to_string()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
[study]
name = "s"
[target]
path = "/mnt/x"
[factors.size]
parameter = "workload.w.io_size"
levels = ["64KiB", "1MiB"]
[workload.w]
use = "sequential-write"
file_size = "10MiB"
[workload.m]
use = "metadata"
"#;

    fn plan(text: &str) -> Plan {
        Plan::from_study(&StudyFile::parse("s.toml", text).unwrap(), "1").unwrap()
    }

    fn difference(edit: impl Fn(&str) -> String) -> String {
        let edited = edit(TEXT);
        assert_ne!(edited, TEXT, "the edit did nothing");
        compatible(&plan(TEXT).study, &plan(&edited)).unwrap_err().to_string()
    }

    #[test]
    fn comments_and_layout_do_not_matter() {
        let other = "# a comment\n".to_owned()
            + &TEXT.replace("levels = [\"64KiB\", ", "levels = [\n  '64KiB', # small\n ");
        compatible(&plan(TEXT).study, &plan(&other)).unwrap();
        let (first, second) = TEXT.split_at(TEXT.find("[target]").unwrap());
        let (target, rest) = second.split_at(second.find("[factors").unwrap());
        compatible(&plan(TEXT).study, &plan(&format!("{target}{first}{rest}"))).unwrap();
    }

    #[test]
    fn the_first_difference_is_named() {
        let changed = difference(|text| text.replace("10MiB", "20MiB"));
        assert!(changed.contains("`workload.w.file_size` was \"10MiB\" and is now \"20MiB\""), "{changed}");
        assert!(changed.contains("-o"), "{changed}");
        let level = difference(|text| text.replace("1MiB\"]", "2MiB\"]"));
        assert!(level.contains("`factors.size.levels[1]`"), "{level}");
        let added = difference(|text| text.to_owned() + "workers = 2\n");
        assert!(added.contains("`workload.m.workers` is new (2)"), "{added}");
        let gone = difference(|text| text.replace("file_size = \"10MiB\"\n", ""));
        assert!(gone.contains("`workload.w.file_size` was \"10MiB\" and is gone"), "{gone}");
    }

    #[test]
    fn the_order_of_workloads_matters() {
        let swapped = difference(|text| {
            let (head, workloads) = text.split_at(text.find("[workload.w]").unwrap());
            let (w, m) = workloads.split_at(workloads.find("[workload.m]").unwrap());
            // With its response written, the study differs in nothing but the order.
            format!("{head}{m}{w}")
        });
        assert!(swapped.contains("`order of workload` was w, m and is now m, w"), "{swapped}");
    }

    #[test]
    fn a_plan_that_means_something_else_is_refused() {
        let mut stored = plan(TEXT).study;
        stored.primary_response = "w.operations".into();
        let difference = compatible(&stored, &plan(TEXT)).unwrap_err();
        assert_eq!(difference.path, "primary response");
    }
}
