//! What a finding is.

use benchmaster_record::results::RunKey;
pub use benchmaster_record::results::{Evidence, EvidenceUnit};
use serde::{Deserialize, Serialize};

use crate::explanation;
pub use crate::remedy::{Need, Remedy, Setup};

/// A condition that was found, with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Which condition; see [`crate::catalogue::explain`].
    pub id: &'static str,
    /// What it is, in a sentence with its numbers.
    pub what: String,
    /// Where it was found, in words: clients and mounts, or the runs of a study.
    pub place: String,
    /// Where and when in the stored results of a study; `None` for what was not stored.
    pub at: Option<At>,
    /// The numbers that show it.
    pub evidence: Vec<Evidence>,
    /// The tests that it rests on, if it rests on some.
    pub tests: Vec<Test>,
    /// How sure it is.
    pub confidence: Confidence,
    /// What it takes, as far as can be estimated.
    pub cost: Option<Cost>,
    /// What to do.
    pub remedy: Remedy,
    /// Other workloads in which it was found, the costliest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Also>,
}

/// Costs below it are shown as 0.0 %.
const NEGLIGIBLE: f64 = 0.0005;

/// Another workload in which a condition was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Also {
    /// The workload.
    pub workload: String,
    /// What it is there, in a sentence with its numbers.
    pub what: String,
    /// Where it was found there, in words.
    pub place: String,
    /// What it takes there, from 0 to 1.
    pub share: Option<f64>,
}

impl Finding {
    /// What it takes, from 0 to 1; 0 where that is not known.
    pub(crate) fn share(&self) -> f64 {
        self.cost.as_ref().map_or(0.0, |cost| cost.share)
    }

    /// Whether it costs next to nothing, as far as that is known.
    pub(crate) fn is_negligible(&self) -> bool {
        self.cost.as_ref().is_some_and(|cost| cost.share < NEGLIGIBLE && !cost.is_at_least())
    }

    /// Without a cost that would be shown as 0.0 %: one that is known to be at least so much.
    pub(crate) fn without_nothing(mut self) -> Self {
        self.cost = self.cost.filter(|cost| cost.share >= NEGLIGIBLE);
        self
    }

    /// The workloads in which it was found; none for what is about whole runs or the study.
    pub fn workloads(&self) -> impl Iterator<Item = &str> {
        let at = self.at.as_ref().and_then(|at| at.workload.as_deref());
        at.into_iter().chain(self.also.iter().map(|also| also.workload.as_str()))
    }

    /// A finding without evidence yet. What it is called is added by [`Self::of`], where it was found by who looks at all
    /// runs or mounts.
    pub(crate) fn new(confidence: Confidence, what: impl Into<String>) -> Self {
        Self {
            id: "",
            what: what.into(),
            place: String::new(),
            at: Some(At::default()),
            evidence: Vec::new(),
            tests: Vec::new(),
            confidence,
            cost: None,
            remedy: Remedy::default(),
            also: Vec::new(),
        }
    }

    /// That of a rule: with its name, and with what its explanation says of cost, plot and remedy unless it says so itself; of
    /// the remedy what helps in the set-up.
    #[must_use]
    pub(crate) fn of(mut self, id: &'static str, setup: Option<&Setup>) -> Self {
        self.id = id;
        if let Some(explanation) = explanation::find(id) {
            if let (Some(cost), Some(known)) = (&mut self.cost, &explanation.cost)
                && cost.estimate.is_empty()
            {
                *cost = Cost { share: cost.share, ..known.clone() };
            }
            if let Some(at) = &mut self.at {
                at.plot = at.plot.or(explanation.plot);
            }
            if self.remedy == Remedy::default() {
                self.remedy = explanation.remedy.clone();
            }
        }
        if let Some(setup) = setup {
            self.remedy = self.remedy.fit(setup);
        }
        self
    }

    /// With a remedy of its own: one that depends on what was found.
    #[must_use]
    pub(crate) fn advised(self, remedy: Remedy) -> Self {
        Self { remedy, ..self }
    }

    /// With numbers that show it.
    #[must_use]
    pub(crate) fn with(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        self.evidence.extend(evidence);
        self
    }

    /// With a test that it rests on.
    #[must_use]
    pub(crate) fn tested(
        mut self,
        name: impl Into<String>,
        p: impl Into<Option<f64>>,
        interval: impl Into<Option<TestInterval>>,
    ) -> Self {
        self.tests.push(Test { name: name.into(), p: p.into(), interval: interval.into() });
        self
    }

    /// With what it takes, estimated as the explanation has it.
    #[must_use]
    pub(crate) fn costs(self, share: f64) -> Self {
        self.costs_as(share, CostOf::Result, "")
    }

    /// With what it takes, estimated in a way of its own.
    #[must_use]
    pub(crate) fn costs_as(mut self, share: f64, of: CostOf, estimate: impl Into<String>) -> Self {
        self.cost = Some(Cost { share: share.clamp(0.0, 1.0), of, estimate: estimate.into() });
        self
    }

    /// At some of the clients only.
    #[must_use]
    pub(crate) fn of_clients(mut self, clients: impl IntoIterator<Item = String>) -> Self {
        self.at.get_or_insert_default().clients.extend(clients);
        self
    }

    /// In a part of the measured phase only, in nanoseconds from its start.
    #[must_use]
    pub(crate) fn between(mut self, from_ns: u64, to_ns: u64) -> Self {
        self.at.get_or_insert_default().interval_ns = Some((from_ns, to_ns));
        self
    }

    /// With the plot that proves it.
    #[must_use]
    pub(crate) fn shown_by(mut self, plot: Plot) -> Self {
        self.at.get_or_insert_default().plot = Some(plot);
        self
    }
}

/// Where and when something was found in the stored results of a study.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct At {
    /// The workload; `None` when it is about whole runs or the study.
    pub workload: Option<String>,
    /// The treatments in which it was found, the costliest first.
    pub treatments: Vec<AtTreatment>,
    /// Clients, if it is about some of them: numbers or hosts.
    pub clients: Vec<String>,
    /// From when to when, in nanoseconds from the start of the measured phase, if not all of it.
    pub interval_ns: Option<(u64, u64)>,
    /// The run that the sentence tells of; the evidence is of all runs of its treatment.
    pub shown: Option<RunKey>,
    /// The plot that proves it.
    pub plot: Option<Plot>,
}

/// A treatment in which something was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AtTreatment {
    /// Its index in standard order.
    pub treatment: u32,
    /// Its label.
    pub label: String,
    /// The runs in which it was found.
    pub runs: Vec<RunKey>,
    /// Runs in which it could have been found.
    pub of: usize,
    /// What it takes there, mean over the runs in which it was found.
    pub cost: Option<f64>,
}

/// A kind of plot of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plot {
    /// The response of every treatment.
    Response,
    /// Throughput over time.
    Time,
    /// Latency: percentiles, histogram.
    Latency,
    /// Every operation of a traced run.
    Trace,
    /// Workers and clients beside each other.
    Clients,
    /// Counters of the system over time.
    Counters,
    /// The load curve.
    Load,
    /// Effects of the factors.
    Effects,
}

/// A statistical test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Test {
    /// Its name, and of what: `Mann-Whitney, latencies of both halves`.
    pub name: String,
    /// Its p value, if it has one.
    pub p: Option<f64>,
    /// What was estimated, with its interval: value, lower, upper, level of confidence.
    pub interval: Option<TestInterval>,
}

/// An estimate with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TestInterval {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
    /// Level of confidence, 0.95.
    pub confidence: f64,
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Other causes would look the same.
    Possible,
    /// Other causes are rare.
    Likely,
    /// The counters say it themselves.
    Certain,
}

impl Confidence {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Certain => "certain",
        }
    }

    /// How often such a finding is right, at least: for the order of findings. Of possible ones, 20 of 50 were in planted
    /// conditions (docs/diagnose.md).
    pub(crate) fn probability(self) -> f64 {
        match self {
            Self::Possible => 0.4,
            Self::Likely => 0.8,
            Self::Certain => 0.98,
        }
    }
}

/// What a condition takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// From 0 to 1, of `of`.
    #[serde(skip_deserializing)]
    pub share: f64,
    /// Of what.
    pub of: CostOf,
    /// How it was estimated.
    pub estimate: String,
}

impl Cost {
    /// Whether it may be more.
    fn is_at_least(&self) -> bool {
        self.estimate.starts_with("at least")
    }
}

/// What a [`Cost`] is a share of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CostOf {
    /// The time that calls took, from their beginning to their end.
    CallTime,
    /// Calls.
    Calls,
    /// Bytes that came from or went to the server.
    WireBytes,
    /// What the throughput could be without it.
    Throughput,
    /// The time that operations of the workload took.
    OperationTime,
    /// The length of the measured phase.
    Time,
    /// The number that was reported: so much of it is not what it seems to be.
    Result,
}

impl CostOf {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::CallTime => "of the time of all calls",
            Self::Calls => "of all calls",
            Self::WireBytes => "of the bytes on the wire",
            Self::Throughput => "of the throughput that there would be without it",
            Self::OperationTime => "of the time of all operations",
            Self::Time => "of the measured time",
            Self::Result => "of the reported numbers in doubt",
        }
    }
}
