//! Rules as users write them: `READ delay=1ms`, `OPEN error=NFS4ERR_DELAY p=0.01`, `* disconnect every=10s`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use benchmaster_nfs_proto::v2::Nfsstat2;
use benchmaster_nfs_proto::v3::{Nfsstat3, Proc3};
use benchmaster_nfs_proto::v4::Nfsstat4;
use benchmaster_units::{Bandwidth, TimeSpan};

use crate::stats::{ClientIndex, Operation};

/// One rule: which operations it strikes, when, and what they suffer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rule {
    text: String,
    /// Name of the operation in capitals; `None`: every NFS call.
    operation: Option<String>,
    pub(super) client: Option<ClientIndex>,
    pub(super) probability: Option<f64>,
    pub(super) count: Option<u64>,
    /// Requests that pass before the rule strikes.
    pub(super) after: u64,
    /// Of every `nth` requests that match, the last one is struck.
    pub(super) nth: Option<u64>,
    pub(super) every: Option<Duration>,
    pub(super) delay: Option<Duration>,
    /// How long everything waits at the beginning of each `every`.
    pub(super) stall: Option<Duration>,
    pub(super) bandwidth: Option<f64>,
    /// Requests a second.
    pub(super) rate: Option<f64>,
    pub(super) error: Option<InjectedError>,
    pub(super) drop_reply: bool,
    pub(super) disconnect: bool,
    pub(super) corrupt: bool,
    pub(super) lie: bool,
    pub(super) keep_verifier: bool,
}

/// An error by version; `None` where the version has no such code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InjectedError {
    v2: Option<u32>,
    v3: Option<u32>,
    v4: Option<u32>,
}

/// Why a rule could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rule `{rule}`: {problem}")]
pub struct RuleError {
    rule: String,
    problem: String,
}

impl InjectedError {
    pub(super) fn of(&self, operation: Operation) -> Option<u32> {
        match operation {
            Operation::V2(_) => self.v2,
            Operation::V3(_) => self.v3,
            Operation::V4(_) => self.v4,
            _ => None,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if let Ok(number) = text.parse() {
            return Some(Self { v2: Some(number), v3: Some(number), v4: Some(number) });
        }
        let prefixed = ["NFSERR_", "NFS3ERR_", "NFS4ERR_"].iter().any(|prefix| text.starts_with(prefix));
        let of = |prefix: &str| !prefixed || text.starts_with(prefix);
        let error = Self {
            v2: of("NFSERR_").then(|| text.parse::<Nfsstat2>().ok()).flatten().map(|s| s.0),
            v3: of("NFS3ERR_").then(|| text.parse::<Nfsstat3>().ok()).flatten().map(|s| s.0),
            v4: of("NFS4ERR_").then(|| text.parse::<Nfsstat4>().ok()).flatten().map(|s| s.0),
        };
        (error.v2.or(error.v3).or(error.v4).is_some_and(|status| status != 0)).then_some(error)
    }
}

impl Rule {
    /// How long a reply is held back whenever the rule strikes; `None` where that depends on what else is under way.
    pub fn held(&self) -> Option<Duration> {
        let depends = self.stall.is_some() || self.bandwidth.is_some() || self.rate.is_some();
        (!depends).then(|| self.delay.unwrap_or_default())
    }

    /// Whether the rule strikes by the clock, and not with a request: `disconnect every=`.
    pub(super) fn is_timer(&self) -> bool {
        self.every.is_some() && self.stall.is_none()
    }

    /// Whether the rule strikes requests: not by the clock, nor how the server is as a whole.
    pub(super) fn strikes_requests(&self) -> bool {
        !self.is_timer() && !self.keep_verifier
    }

    /// Whether the rule concerns this operation of this client.
    pub(super) fn matches(&self, operation: Operation, client: ClientIndex) -> bool {
        if self.client.is_some_and(|only| only != client) {
            return false;
        }
        match &self.operation {
            Some(name) => name == operation.name(),
            // Errors belong to operations, everything else to whole calls.
            None => match operation {
                Operation::V4(_) => self.error.is_some(),
                Operation::Compound => self.error.is_none(),
                Operation::V3(procedure) => procedure != Proc3::NULL,
                Operation::V2(procedure) => procedure.0 != 0,
                Operation::Mount | Operation::Nlm | Operation::Portmap => false,
            },
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Rule {
    type Err = RuleError;

    /// `OPERATION ACTION… [CONDITION…]`, separated by blanks.
    fn from_str(text: &str) -> Result<Self, RuleError> {
        let fail = |problem: String| RuleError { rule: text.to_owned(), problem };
        let mut words = text.split_whitespace();
        let operation = words.next().ok_or_else(|| {
            fail("is empty; write an operation and what happens to it, such as `READ delay=1ms`".into())
        })?;
        let name = operation.to_ascii_uppercase();
        if operation != "*" && !Operation::is_known(&name) {
            return Err(fail(format!(
                "unknown operation `{operation}`; expected one such as READ, OPEN, COMPOUND, or * for every call"
            )));
        }
        let mut rule = Self {
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
            operation: (operation != "*").then_some(name),
            ..Self::default()
        };
        for word in words {
            rule.set(word).map_err(fail)?;
        }
        rule.check().map_err(fail)?;
        Ok(rule)
    }
}

impl Rule {
    fn set(&mut self, word: &str) -> Result<(), String> {
        let (key, value) = match word.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (word, None),
        };
        let duration = |value: &str| value.parse::<TimeSpan>().map(|span| span.0).map_err(|e| e.to_string());
        match (key, value) {
            ("delay", Some(value)) => self.delay = Some(duration(value)?),
            ("stall", Some(value)) => self.stall = Some(duration(value)?),
            ("every", Some(value)) => self.every = Some(duration(value)?),
            ("bandwidth", Some(value)) => {
                self.bandwidth = Some(value.parse::<Bandwidth>().map_err(|e| e.to_string())?.0);
            }
            ("rate", Some(value)) => {
                let rate = value.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate > 0.0);
                self.rate = Some(rate.ok_or_else(|| {
                    format!("invalid `rate={value}`; expected requests per second, such as `rate=200`")
                })?);
            }
            ("nth", Some(value)) => {
                let nth = value.parse().ok().filter(|nth| *nth > 0);
                self.nth = Some(nth.ok_or_else(|| {
                    format!("invalid `nth={value}`; expected a whole number, such as `nth=64` for one request in 64")
                })?);
            }
            ("error", Some(value)) => {
                self.error = Some(InjectedError::parse(value).ok_or_else(|| {
                    format!("unknown NFS error `{value}`; expected one such as NFS4ERR_DELAY or NFS3ERR_IO")
                })?);
            }
            ("p", Some(value)) => {
                let p = value.parse::<f64>().ok().filter(|p| *p > 0.0 && *p <= 1.0);
                self.probability = Some(p.ok_or_else(|| {
                    format!("invalid probability `p={value}`; expected a number above 0, up to 1")
                })?);
            }
            ("client", Some(value)) => {
                let number = value.parse::<u32>().ok().filter(|n| *n > 0);
                self.client = Some(ClientIndex(number.ok_or_else(|| {
                    format!("invalid `client={value}`; clients are counted from 1 in order of arrival")
                })?));
            }
            ("count", Some(value)) => {
                self.count =
                    Some(value.parse().map_err(|_| format!("`count={value}` is not a whole number"))?);
            }
            ("after", Some(value)) => {
                self.after = value.parse().map_err(|_| format!("`after={value}` is not a whole number"))?;
            }
            ("drop-reply", None) => self.drop_reply = true,
            ("disconnect", None) => self.disconnect = true,
            ("corrupt", None) => self.corrupt = true,
            ("lie", None) => self.lie = true,
            ("keep-verifier", None) => self.keep_verifier = true,
            _ => {
                return Err(format!(
                    "unknown word `{word}`; actions are delay=TIME, stall=TIME, error=NAME, drop-reply, \
                     disconnect, bandwidth=RATE, rate=NUMBER, corrupt, lie, keep-verifier, conditions p=NUMBER, nth=N, client=N, \
                     count=N, after=N, every=TIME"
                ));
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        if self.keep_verifier {
            return self.check_keep_verifier();
        }
        let paced = self.bandwidth.is_some() || self.rate.is_some();
        let acts = self.delay.is_some() || paced || self.error.is_some();
        if !acts && self.stall.is_none() && !self.drop_reply && !self.disconnect && !self.falsifies() {
            return Err(
                "has no action; add delay=, stall=, error=, bandwidth=, rate=, drop-reply, disconnect, corrupt, \
                        lie or keep-verifier"
                    .into(),
            );
        }
        if self.lie && !matches!(self.operation.as_deref(), Some("WRITE" | "COMMIT")) {
            return Err(
                "`lie` is about data that are called stable; write `WRITE` or `COMMIT` before it".into()
            );
        }
        if self.corrupt && !matches!(self.operation.as_deref(), Some("READ" | "READ_PLUS" | "WRITE")) {
            return Err("`corrupt` changes data; write `READ`, `READ_PLUS` or `WRITE` before it".into());
        }
        if self.every.is_some_and(|every| every.is_zero()) {
            return Err("`every` must be greater than zero".into());
        }
        if let Some(stall) = self.stall {
            return self.check_stall(stall, acts);
        }
        if self.every.is_some()
            && (!self.disconnect || acts || self.drop_reply || self.falsifies() || self.probability.is_some())
        {
            return Err("`every` goes with `disconnect` or `stall` alone; use p= for the others".into());
        }
        if self.every.is_some() && self.operation.is_some() {
            return Err("`disconnect every=` closes connections, not operations; write `*`".into());
        }
        if self.every.is_some() && (self.after > 0 || self.nth.is_some()) {
            return Err(
                "`after` and `nth` count requests, which `disconnect every=` does not wait for; leave them out".into()
            );
        }
        Ok(())
    }

    /// Whether it makes what is stored or answered wrong.
    fn falsifies(&self) -> bool {
        self.corrupt || self.lie
    }

    fn check_keep_verifier(&self) -> Result<(), String> {
        let alone = Self { text: self.text.clone(), keep_verifier: true, ..Self::default() };
        if *self == alone {
            return Ok(());
        }
        Err("`keep-verifier` is about the server, not about requests; write `* keep-verifier` as a rule of its own".into())
    }

    fn check_stall(&self, stall: Duration, acts: bool) -> Result<(), String> {
        let alone = !acts && !self.drop_reply && !self.disconnect && !self.falsifies();
        let some = self.probability.is_some() || self.nth.is_some() || self.count.is_some();
        if !alone || some || self.after > 0 {
            return Err(
                "`stall` goes with `every=` and `client=` alone; write the rest as a rule of its own".into(),
            );
        }
        match self.every {
            Some(every) if stall < every && !stall.is_zero() => Ok(()),
            _ => Err("`stall` needs `every=` with a longer time, such as `* stall=1s every=5s`".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(text: &str) -> String {
        text.parse::<Rule>().unwrap_err().to_string()
    }

    #[test]
    fn the_examples_of_the_documentation_are_rules() {
        for text in [
            "READ delay=1ms",
            "OPEN error=NFS4ERR_DELAY p=0.01",
            "WRITE drop-reply p=0.001",
            "* disconnect every=10s",
            "READ bandwidth=20MB/s client=2",
            "setattr error=NFS3ERR_JUKEBOX count=3",
            "CREATE error=28",
            "READ corrupt count=1",
            "WRITE corrupt p=0.0001",
            "* stall=1s every=5s",
            "READ delay=2ms after=1000",
            "WRITE delay=20ms nth=64",
            "* rate=200",
            "COMMIT lie",
            "WRITE lie p=0.01",
            "* keep-verifier",
        ] {
            assert_eq!(text.parse::<Rule>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn mistakes_are_named_with_the_fix() {
        assert!(error("").contains("is empty"));
        assert!(error("FLY delay=1ms").contains("unknown operation `FLY`"));
        assert!(error("READ").contains("has no action"));
        assert!(error("READ delay=1").contains("write `1s`"), "{}", error("READ delay=1"));
        assert!(error("READ error=NFS4ERR_NONSENSE").contains("unknown NFS error"));
        assert!(error("READ error=NFS4_OK").contains("unknown NFS error"));
        assert!(error("READ delay=1ms p=2").contains("invalid probability"));
        assert!(error("READ delay=1ms client=0").contains("counted from 1"));
        assert!(error("READ delay=1ms every=1s").contains("goes with `disconnect`"));
        assert!(error("* disconnect every=1s after=3").contains("leave them out"));
        assert!(error("* disconnect every=1s nth=3").contains("leave them out"));
        assert!(error("READ delay=1ms nth=0").contains("whole number"));
        assert!(error("READ rate=0").contains("requests per second"));
        assert!(error("READ delay=1ms after=x").contains("not a whole number"));
        assert!(error("READ stall=1s").contains("needs `every=`"));
        assert!(error("READ stall=1s every=1s").contains("longer time"));
        assert!(error("READ stall=1s every=2s p=0.5").contains("rule of its own"));
        assert!(error("READ stall=1s every=2s delay=1ms").contains("rule of its own"));
        assert!(error("READ disconnect every=1s").contains("write `*`"));
        assert!(error("* disconnect every=0s").contains("greater than zero"));
        assert!(error("OPEN corrupt").contains("changes data"));
        assert!(error("READ lie").contains("`WRITE` or `COMMIT`"));
        assert!(error("COMMIT lie every=1s").contains("goes with `disconnect`"));
        assert!(error("COMMIT keep-verifier").contains("`* keep-verifier`"));
        assert!(error("* keep-verifier p=0.5").contains("rule of its own"));
        assert!(error("READ jump").contains("unknown word `jump`"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = text.parse::<Rule>();
        }
    }
}
