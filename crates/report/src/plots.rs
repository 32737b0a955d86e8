//! Plots as data; the page's scripts draw them.

pub(crate) mod bound;
pub(crate) mod compare;
pub(crate) mod effects;
pub(crate) mod figure;
pub(crate) mod load;
mod stack;
mod trace;
mod workloads;

use benchmaster_analysis::Analysis;
use benchmaster_record::results::StudyResults;

use self::figure::Figure;
pub(crate) use self::stack::Drawn;
pub(crate) use self::workloads::CHOICES;
use crate::details::Details;
use crate::overview;

#[derive(Default)]
pub(crate) struct Plots {
    pub(crate) effects: Vec<Figure>,
    pub(crate) load: Vec<Figure>,
    /// Workload after workload.
    pub(crate) workloads: Vec<Figure>,
    /// What commands printed in the runs that are drawn.
    pub(crate) printed: Vec<Drawn>,
    /// What could not be read.
    pub(crate) problems: Vec<String>,
}

impl Plots {
    pub(crate) fn of_study(results: &StudyResults, analysis: &Analysis, details: &dyn Details) -> Self {
        let mut figures = workloads::figures(results, analysis);
        let mut problems = trace::figures(results, analysis, details, &mut figures);
        let (printed, unread) = stack::figures(results, analysis, details, &mut figures);
        problems.extend(unread);
        Self {
            effects: analysis.effects.experiment().map(effects::of_experiment).unwrap_or_default(),
            load: load::figures(analysis),
            workloads: figures,
            printed,
            problems,
        }
    }

    /// The picture of the answer, which is then in no other place: the load curve, or the response that is asked about by
    /// treatment, where there are several.
    pub(crate) fn take_picture(&mut self, results: &StudyResults, analysis: &Analysis) -> Option<Figure> {
        if !self.load.is_empty() {
            return Some(self.load.remove(0));
        }
        let id = format!("response-{}", overview::asked(results, analysis));
        let at = self.workloads.iter().position(|figure| figure.id == id);
        at.filter(|_| analysis.treatments.len() > 1).map(|at| self.workloads.remove(at))
    }

    pub(crate) fn figures(&self) -> impl DoubleEndedIterator<Item = &Figure> {
        self.effects.iter().chain(&self.load).chain(&self.workloads)
    }
}
