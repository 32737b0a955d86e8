//! What a check is, and what comes of it.

use std::fmt;

use benchmaster_record::conformance::{Finding, Force, Group, Verdict};
use benchmaster_record::nfs::NfsVersion;

/// A document in which rules are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Text {
    /// An RFC, by number.
    Rfc(u16),
    /// The Open Group's Protocols for Interworking: XNFS, C702.
    Xnfs,
    /// POSIX.1-2017.
    Posix,
    /// A manual page of Linux, such as `open(2)`.
    Linux,
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rfc(number) => write!(f, "RFC {number}"),
            Self::Xnfs => f.write_str("XNFS"),
            Self::Posix => f.write_str("POSIX"),
            Self::Linux => f.write_str("Linux"),
        }
    }
}

/// A section of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The document.
    pub text: Text,
    /// Number or name of the section.
    pub section: &'static str,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, section } = self;
        match text {
            Text::Rfc(_) => write!(f, "{text} §{section}"),
            _ => write!(f, "{text} {section}"),
        }
    }
}

/// A rule, in our own words, and where it is written.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Places, with the versions that each is for; empty: all.
    pub places: &'static [(&'static [NfsVersion], Place)],
    /// What it says.
    pub says: &'static str,
}

impl Rule {
    /// Where it is written for a version.
    pub fn place(&self, version: Option<NfsVersion>) -> Option<Place> {
        let fits = |versions: &[NfsVersion]| {
            versions.is_empty() || version.is_none_or(|version| versions.contains(&version))
        };
        self.places.iter().find(|(versions, _)| fits(versions)).map(|(_, place)| *place)
    }
}

/// A rule, and how it is tried in an environment `E`.
#[derive(Debug)]
pub struct Check<E> {
    /// Its name: words with hyphens, and stable.
    pub name: &'static str,
    /// What it is about.
    pub group: Group,
    /// Versions of NFS that have the rule; empty where versions do not matter.
    pub versions: &'static [NfsVersion],
    /// How binding the rule is.
    pub force: Force,
    /// The rule.
    pub rule: Rule,
    /// Tries it.
    pub run: fn(&mut E) -> Tried,
}

/// What came of a check: nothing, or why it ended before its end.
pub type Tried = Result<(), Stop>;

/// Why a check ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The rule is broken.
    Failed {
        /// What was asked.
        sent: String,
        /// What was answered, and what would be right.
        came: String,
    },
    /// The rule does not apply here, and why.
    NotApplicable(String),
    /// There was no answer that could be judged.
    Trouble {
        /// What was asked.
        sent: String,
        /// What happened.
        trouble: Trouble,
    },
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// No connection.
    #[error("no connection to {address}: {why}")]
    Connect {
        /// Where to.
        address: String,
        /// What the system says.
        why: String,
    },
    /// Nothing came in time.
    #[error("no reply within {waited:?}")]
    Silence {
        /// How long was waited.
        waited: std::time::Duration,
    },
    /// The other end closed the connection.
    #[error("the server closed the connection")]
    Closed,
    /// What came is no reply.
    #[error("the reply cannot be decoded: {0}")]
    Malformed(String),
    /// The system failed.
    #[error("{0}")]
    System(String),
}

impl Stop {
    /// A broken rule.
    pub fn failed(sent: impl Into<String>, came: impl Into<String>) -> Self {
        Self::Failed { sent: sent.into(), came: came.into() }
    }

    /// A rule that does not apply.
    pub fn not_applicable(why: impl Into<String>) -> Self {
        Self::NotApplicable(why.into())
    }

    /// What this says of the rule.
    fn verdict(self) -> Verdict {
        match self {
            Self::Failed { sent, came } => Verdict::Fail { sent, came },
            Self::NotApplicable(why) => Verdict::NotApplicable { why },
            Self::Trouble { sent, trouble } => Verdict::Fail { sent, came: trouble.to_string() },
        }
    }
}

/// Where checks are made.
pub trait Environment {
    /// Version of NFS, where one matters.
    fn version(&self) -> Option<NfsVersion>;

    /// Makes everything ready for a check: a directory of its own, and no state of earlier ones.
    ///
    /// # Errors
    /// When that is not possible; then the check has failed.
    fn begin(&mut self, name: &str) -> Tried;

    /// Takes away what the check made, also where it failed.
    ///
    /// # Errors
    /// When something is left, which is a finding of the check unless it has one.
    fn end(&mut self) -> Tried;
}

/// Makes those of `checks` that hold for the environment's version and that `wanted` chooses, in order, until one is not
/// to be made because `go_on` says so, or nothing can be reached any more: then the last finding says why. `seen` gets
/// each finding.
pub fn run<E: Environment>(
    checks: &[&[Check<E>]],
    environment: &mut E,
    wanted: &dyn Fn(&Check<E>) -> bool,
    go_on: &dyn Fn() -> bool,
    seen: &mut dyn FnMut(&Finding),
) -> Vec<Finding> {
    let version = environment.version();
    let holds = |check: &&Check<E>| {
        (check.versions.is_empty() || version.is_some_and(|version| check.versions.contains(&version)))
            && wanted(check)
    };
    let mut findings = Vec::new();
    for check in checks.iter().copied().flatten().filter(holds) {
        if !go_on() {
            break;
        }
        let tried = environment.begin(check.name).and_then(|()| (check.run)(environment));
        let ended = environment.end();
        let gone = matches!(&ended, Err(Stop::Trouble { trouble: Trouble::Connect { .. }, .. }));
        let mut verdict = tried.and(ended).map_or_else(Stop::verdict, |()| Verdict::Pass);
        if let Verdict::Fail { came, .. } = &mut verdict
            && gone
        {
            came.push_str(
                "; after this check it could not be reached any more, and the others were not made",
            );
        }
        let finding = Finding {
            name: check.name.to_owned(),
            group: check.group,
            force: if gone { Force::Must } else { check.force },
            place: check.rule.place(version).map(|place| place.to_string()).unwrap_or_default(),
            rule: check.rule.says.to_owned(),
            verdict,
        };
        seen(&finding);
        findings.push(finding);
        if gone {
            break;
        }
    }
    findings
}
