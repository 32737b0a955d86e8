//! The journal of the server's file system.

use benchmaster_record::samples::{Samples, Series};

use crate::prelude::*;

/// Share of the time in commits from which on the journal is the limit.
const FULL: f64 = 0.5;
/// Commits a second: one each five seconds is what an idle journal does.
const LEAST_RATE: f64 = 5.0;

pub(super) const DETECTOR: Detector = Detector { id: "server-journal", detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    if measured.is_virtual() || measured.is_embedded() && !measured.has_modelled_disk() {
        return Verdict::Irrelevant;
    }
    let host = if measured.is_nfs() { measured.server_host() } else { measured.clients().next() };
    let Some(host) = host else {
        return Verdict::Unknown(if measured.is_nfs() {
            measured.without_server()
        } else {
            "journals were not sampled: keep `[sampling]` on, with the sampler `jbd2`".into()
        });
    };
    let seconds = measured.seconds().max(1e-9);
    let journal = |series: &Series| {
        let (commits, mean) = commit_ns(measured, &host.samples, &series.key.instance)?;
        Some((commits, mean, series.key.instance.clone()))
    };
    let busy = |(commits, mean, _): &(f64, f64, String)| commits * mean;
    let journals = host.samples.of("jbd2", "transactions").filter_map(journal);
    let Some(most) = journals.max_by(|a, b| busy(a).total_cmp(&busy(b))) else {
        // Other file systems have no such journal.
        return Verdict::Irrelevant;
    };
    let part = share(busy(&most), seconds * 1e9);
    let (commits, mean, name) = most;
    let per_second = commits / seconds;
    if part < FULL || per_second < LEAST_RATE {
        return Verdict::Clear;
    }
    let blocks =
        host.samples.find("jbd2", "mean_logged_blocks", &name).and_then(|series| measured.mean_of(series));
    let operations = measured.operations();
    let mut evidence = vec![
        Evidence::per_second("commits per second", per_second),
        Evidence::nanoseconds("time of a commit", mean),
        Evidence::number("share of the time in commits", part),
    ];
    if operations > 0 {
        evidence.push(Evidence::number("commits per operation", commits / operations as f64));
    }
    evidence
        .extend(blocks.map(|blocks| Evidence::number("blocks written to the journal for a commit", blocks)));
    let what = format!(
        "The journal of {name} was committing {} of the time: {per_second:.0} commits a second of {} each.",
        percent(part),
        time(mean)
    );
    Verdict::Found(Finding::new(Confidence::Likely, what).with(evidence).costs(part))
}

/// Commits of a journal in the measured phase, and what one took: the kernel's mean is a moving one of the last few commits,
/// whose mean over the phase is that of its commits.
pub(in crate::results) fn commit_ns(
    measured: &Measured<'_>,
    samples: &Samples,
    journal: &str,
) -> Option<(f64, f64)> {
    let commits = measured.growth(samples.find("jbd2", "transactions", journal)?)?;
    Some((commits, measured.mean_of(samples.find("jbd2", "mean_commit", journal)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::Made;
    use benchmaster_record::results::ServedBy;

    fn made(per_second: f64, mean_ns: f64) -> Made {
        let mut made = Made::spread();
        made.run().service.as_mut().unwrap().server = ServedBy::Knfsd;
        let seconds = made.recording().length_ns as f64 / 1e9;
        made.sample("server", "jbd2", "transactions", "vdb-8", per_second * seconds);
        made.gauge("server", "jbd2", "mean_commit", "vdb-8", mean_ns);
        made
    }

    #[test]
    fn a_journal_that_commits_all_the_time_is_found() {
        let found = made(100.0, 5_100_000.0).found(&DETECTOR);
        assert!((found.cost.unwrap().share - 0.51).abs() < 1e-6);
        assert!(found.what.contains("vdb-8 was committing 51 % of the time: 100 commits"), "{}", found.what);
        assert_eq!(made(100.0, 4_900_000.0).verdict(&DETECTOR), Verdict::Clear);
        assert_eq!(made(4.0, 200_000_000.0).verdict(&DETECTOR), Verdict::Clear);
    }

    #[test]
    fn without_a_journal_there_is_none_and_without_samples_nothing_is_known() {
        let mut other = made(100.0, 5e6);
        let server = other.recording().samples.iter_mut().find(|host| host.agent == "server").unwrap();
        server.samples.series.retain(|series| series.key.sampler != "jbd2");
        assert_eq!(other.verdict(&DETECTOR), Verdict::Irrelevant);
        other.recording().samples.clear();
        other.recording().agents.retain(|agent| agent.clients > 0);
        assert!(matches!(other.verdict(&DETECTOR), Verdict::Unknown(_)));
        assert_eq!(Made::served().verdict(&DETECTOR), Verdict::Irrelevant);
    }
}
