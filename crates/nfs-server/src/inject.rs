//! Behaviour on demand: delays, errors, lost replies, disconnects, bandwidth, wrong bytes, all drawn from a seed.
//!
//! The ground truth that measurements and diagnosis are tested against: a server known to answer READ 1 ms late, to
//! lose one reply in a thousand, or to serve one client at 20 MB/s.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::disk::Job;
use crate::stats::{ClientIndex, Operation};

mod rule;

pub use rule::{Rule, RuleError};

/// What a request is to suffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Decision {
    /// The reply leaves so much later.
    pub delay: Duration,
    /// The operation is not executed; this status (of the operation's version) is its result.
    pub error: Option<u32>,
    /// The operation is executed, its reply is not sent.
    pub drop_reply: bool,
    /// The operation is executed, then the connection is closed without a reply.
    pub disconnect: bool,
    /// One byte of the data read or written, the one that this number modulo their length tells, is another one.
    pub corrupt: Option<u64>,
    /// What the operation says to be stable is not made so.
    pub lie: bool,
    /// The reply leaves when the disk has done this.
    pub disk: Option<Job>,
}

impl Decision {
    /// Both decisions: delays add up, the first error counts.
    pub fn and(self, other: Self) -> Self {
        Self {
            delay: self.delay + other.delay,
            error: self.error.or(other.error),
            drop_reply: self.drop_reply || other.drop_reply,
            disconnect: self.disconnect || other.disconnect,
            corrupt: self.corrupt.or(other.corrupt),
            lie: self.lie || other.lie,
            disk: self.disk.or(other.disk),
        }
    }
}

/// The rules of a server and what has become of them.
#[derive(Debug)]
pub struct Injector {
    rules: Vec<Active>,
    keeps_verifier: bool,
}

#[derive(Debug)]
struct Active {
    rule: Rule,
    progress: Mutex<Progress>,
}

#[derive(Debug)]
struct Progress {
    random: ChaCha8Rng,
    /// How often the rule has struck.
    struck: u64,
    /// `after`: requests that have passed.
    passed: u64,
    /// `nth`: requests that were counted.
    matched: u64,
    /// `stall`: the beginning of the first period.
    began: Option<Instant>,
    /// `bandwidth`, `rate`: when what was let through so far is paid for.
    busy_until: Option<Instant>,
    /// `disconnect every`: the next time.
    next: Option<Instant>,
}

impl Injector {
    /// Rules in order of precedence; each draws from its own stream of `seed`.
    pub fn new(rules: Vec<Rule>, seed: u64) -> Self {
        let active = |(stream, rule): (usize, Rule)| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(stream as u64);
            Active {
                rule,
                progress: Mutex::new(Progress {
                    random,
                    struck: 0,
                    passed: 0,
                    matched: 0,
                    began: None,
                    busy_until: None,
                    next: None,
                }),
            }
        };
        let keeps_verifier = rules.iter().any(|rule| rule.keep_verifier);
        Self { rules: rules.into_iter().enumerate().map(active).collect(), keeps_verifier }
    }

    /// Whether the verifier of WRITE and COMMIT is the same after a crash: `keep-verifier`.
    pub(crate) fn keeps_verifier(&self) -> bool {
        self.keeps_verifier
    }

    /// Whether there is no rule at all.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.rules.is_empty()
    }

    /// What `operation` of `client` is to suffer; `bytes` is the length it asks for (READ) or brings (WRITE), else 0.
    #[inline]
    pub fn decide(&self, operation: Operation, client: ClientIndex, bytes: u64, now: Instant) -> Decision {
        if self.is_idle() {
            return Decision::default();
        }
        self.rules
            .iter()
            .filter(|active| active.rule.strikes_requests() && active.rule.matches(operation, client))
            .map(|active| active.strike(operation, bytes, now))
            .fold(Decision::default(), Decision::and)
    }

    /// Whose connections are to be closed now by rules `disconnect every=…`: a client, or all (`None`).
    pub fn disconnects_due(&self, now: Instant) -> Vec<Option<ClientIndex>> {
        let due = |active: &Active| {
            let every = active.rule.every.filter(|_| active.rule.is_timer())?;
            let mut progress = active.progress.lock();
            let next = *progress.next.get_or_insert(now + every);
            if now < next || active.rule.count.is_some_and(|count| progress.struck >= count) {
                return None;
            }
            progress.struck += 1;
            progress.next = Some(now + every);
            Some(active.rule.client)
        };
        self.rules.iter().filter_map(due).collect()
    }

    /// The rules as written, with how often each has struck.
    pub fn struck(&self) -> Vec<(String, u64)> {
        self.rules.iter().map(|active| (active.rule.to_string(), active.progress.lock().struck)).collect()
    }
}

impl Active {
    fn strike(&self, operation: Operation, bytes: u64, now: Instant) -> Decision {
        let rule = &self.rule;
        let mut progress = self.progress.lock();
        if rule.count.is_some_and(|count| progress.struck >= count) {
            return Decision::default();
        }
        if progress.passed < rule.after {
            progress.passed += 1;
            return Decision::default();
        }
        if let Some((stall, every)) = rule.stall.zip(rule.every) {
            let since = now.saturating_duration_since(*progress.began.get_or_insert(now));
            let into = Duration::from_nanos((since.as_nanos() % every.as_nanos()) as u64);
            // The first period begins with the first request, and has no stall: else a study's files were made in it.
            if since < every || into >= stall {
                return Decision::default();
            }
            progress.struck += 1;
            return Decision { delay: stall - into, ..Decision::default() };
        }
        if let Some(nth) = rule.nth {
            progress.matched += 1;
            if !progress.matched.is_multiple_of(nth) {
                return Decision::default();
            }
        }
        if let Some(p) = rule.probability {
            // 53 bits: a uniform number in [0, 1).
            let uniform = (progress.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            if uniform >= p {
                return Decision::default();
            }
        }
        let mut delay = rule.delay.unwrap_or_default();
        let paces = [rule.bandwidth.map(|bandwidth| bytes as f64 / bandwidth), rule.rate.map(f64::recip)];
        if let Some(takes) = paces.into_iter().flatten().reduce(f64::max) {
            let start = progress.busy_until.map_or(now, |until| until.max(now));
            let until = start + Duration::from_secs_f64(takes);
            progress.busy_until = Some(until);
            delay += until - now;
        }
        progress.struck += 1;
        let error = rule.error.as_ref().and_then(|error| error.of(operation));
        let corrupt = rule.corrupt.then(|| progress.random.next_u64());
        Decision {
            delay,
            error,
            drop_reply: rule.drop_reply,
            disconnect: rule.disconnect,
            corrupt,
            lie: rule.lie,
            disk: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use benchmaster_nfs_proto::v3::{Nfsstat3, Proc3};
    use benchmaster_nfs_proto::v4::{Nfsstat4, Opnum};

    use super::*;

    const READ3: Operation = Operation::V3(Proc3::READ);
    const READ4: Operation = Operation::V4(Opnum::READ);
    const ONE: ClientIndex = ClientIndex(1);
    const TWO: ClientIndex = ClientIndex(2);

    fn injector(rules: &[&str]) -> Injector {
        Injector::new(rules.iter().map(|text| text.parse().unwrap()).collect(), 7)
    }

    #[test]
    fn a_delay_strikes_its_operation_in_every_version_and_no_other() {
        let injector = injector(&["READ delay=1ms", "READ delay=2ms client=2"]);
        let now = Instant::now();
        for operation in [READ3, READ4] {
            assert_eq!(injector.decide(operation, ONE, 0, now).delay, Duration::from_millis(1));
            assert_eq!(injector.decide(operation, TWO, 0, now).delay, Duration::from_millis(3));
        }
        assert_eq!(injector.decide(Operation::V4(Opnum::WRITE), TWO, 0, now), Decision::default());
        assert_eq!(injector.decide(Operation::Compound, TWO, 0, now), Decision::default());
    }

    #[test]
    fn an_error_is_that_of_the_version() {
        let injector = injector(&["READ error=NFS4ERR_DELAY", "READ error=NFS3ERR_IO"]);
        let now = Instant::now();
        assert_eq!(injector.decide(READ4, ONE, 0, now).error, Some(Nfsstat4::DELAY.0));
        assert_eq!(injector.decide(READ3, ONE, 0, now).error, Some(Nfsstat3::IO.0));
    }

    #[test]
    fn probability_is_kept_and_the_same_seed_draws_the_same() {
        let draw = || {
            let injector = injector(&["* drop-reply p=0.1"]);
            let now = Instant::now();
            let hits: Vec<bool> =
                (0..10_000).map(|_| injector.decide(READ3, ONE, 0, now).drop_reply).collect();
            hits
        };
        let hits = draw();
        assert_eq!(hits, draw());
        let struck = hits.iter().filter(|hit| **hit).count();
        // Binomial, standard deviation 30: five of them.
        assert!((850..1150).contains(&struck), "{struck}");
    }

    #[test]
    fn everything_means_whole_calls_and_for_errors_operations() {
        let now = Instant::now();
        let drop = injector(&["* drop-reply"]);
        assert!(drop.decide(Operation::Compound, ONE, 0, now).drop_reply);
        assert!(!drop.decide(READ4, ONE, 0, now).drop_reply);
        assert!(!drop.decide(Operation::Mount, ONE, 0, now).drop_reply);
        let error = injector(&["* error=IO"]);
        assert_eq!(error.decide(Operation::Compound, ONE, 0, now).error, None);
        assert_eq!(error.decide(READ4, ONE, 0, now).error, Some(Nfsstat4::IO.0));
    }

    #[test]
    fn bandwidth_spaces_requests_by_their_bytes() {
        let injector = injector(&["READ bandwidth=1MB/s client=2"]);
        let now = Instant::now();
        let delays: Vec<_> = (0..3).map(|_| injector.decide(READ4, TWO, 10_000, now).delay).collect();
        assert_eq!(delays, [10, 20, 30].map(Duration::from_millis));
        assert_eq!(injector.decide(READ4, ONE, 10_000, now).delay, Duration::ZERO);
        let later = now + Duration::from_secs(1);
        assert_eq!(injector.decide(READ4, TWO, 10_000, later).delay, Duration::from_millis(10));
    }

    #[test]
    fn a_rate_spaces_requests_and_every_nth_is_struck() {
        let injector = injector(&["* rate=200", "READ delay=20ms nth=3"]);
        let now = Instant::now();
        let delay = |operation| injector.decide(operation, ONE, 10_000, now).delay.as_millis();
        assert_eq!([Operation::Compound; 3].map(delay), [5, 10, 15]);
        assert_eq!([READ4; 7].map(delay), [0, 0, 20, 0, 0, 20, 0]);
    }

    #[test]
    fn count_ends_a_rule() {
        let injector = injector(&["WRITE disconnect count=2"]);
        let write = Operation::V3(Proc3::WRITE);
        let now = Instant::now();
        let hits = (0..5).filter(|_| injector.decide(write, ONE, 0, now).disconnect).count();
        assert_eq!(hits, 2);
        assert_eq!(injector.struck(), [("WRITE disconnect count=2".to_owned(), 2)]);
    }

    #[test]
    fn requests_pass_before_a_rule_strikes() {
        let injector = injector(&["READ delay=1ms after=2 count=1"]);
        let now = Instant::now();
        let delays: Vec<_> = (0..5).map(|_| injector.decide(READ4, ONE, 0, now).delay.as_millis()).collect();
        assert_eq!(delays, [0, 0, 1, 0, 0]);
        assert_eq!(injector.struck()[0].1, 1);
    }

    #[test]
    fn everything_waits_for_the_end_of_a_stall() {
        let injector = injector(&["* stall=1s every=5s"]);
        let start = Instant::now();
        let delay = |ms: u64| {
            let now = start + Duration::from_millis(ms);
            injector.decide(READ3, ONE, 0, now).delay.as_millis()
        };
        let delays: Vec<_> = [0, 500, 4_999, 5_000, 5_250, 5_999, 6_000, 10_400].map(delay).into();
        assert_eq!(delays, [0, 0, 0, 1000, 750, 1, 0, 600]);
        assert_eq!(injector.struck()[0].1, 4);
        // It closes no connections.
        assert!(injector.disconnects_due(start + Duration::from_secs(60)).is_empty());
        assert!(injector.disconnects_due(start + Duration::from_secs(120)).is_empty());
    }

    #[test]
    fn wrong_bytes_are_at_places_of_the_seed() {
        let draw = || {
            let injector = injector(&["READ corrupt count=3", "WRITE corrupt p=0.5"]);
            let now = Instant::now();
            let reads: Vec<_> = (0..5).map(|_| injector.decide(READ4, ONE, 100, now).corrupt).collect();
            let write = Operation::V3(Proc3::WRITE);
            let writes: Vec<_> = (0..100).map(|_| injector.decide(write, ONE, 100, now).corrupt).collect();
            (reads, writes)
        };
        let (reads, writes) = draw();
        assert_eq!((reads.clone(), writes.clone()), draw());
        assert_eq!(reads.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, true, false, false]);
        assert!(reads[0] != reads[1]);
        assert!((25..75).contains(&writes.iter().flatten().count()));
    }

    #[test]
    fn lies_strike_requests_and_a_verifier_is_kept_without_any() {
        let injector = injector(&["COMMIT lie count=1", "* keep-verifier"]);
        let (commit, now) = (Operation::V3(Proc3::COMMIT), Instant::now());
        let lies: Vec<_> = (0..2).map(|_| injector.decide(commit, ONE, 0, now).lie).collect();
        assert_eq!(lies, [true, false]);
        assert!(!injector.decide(READ3, ONE, 0, now).lie);
        assert!(injector.keeps_verifier());
        assert_eq!(injector.struck()[1].1, 0);
    }

    #[test]
    fn connections_are_closed_every_so_often() {
        let injector = injector(&["* disconnect every=10s"]);
        let start = Instant::now();
        let closed: Vec<u64> = (0..35)
            .filter(|s| !injector.disconnects_due(start + Duration::from_secs(*s)).is_empty())
            .collect();
        assert_eq!(closed, [10, 20, 30]);
        assert_eq!(injector.decide(READ3, ONE, 0, start), Decision::default());
    }
}
