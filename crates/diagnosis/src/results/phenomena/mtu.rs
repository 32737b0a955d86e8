//! What larger frames do.

use super::levels::{Axis, Point, axes, name, placed, points, rates, ratio};
use super::tools::{digits, p_text};
use crate::prelude::*;

/// A ratio of so much, or its reverse.
const LEAST: f64 = 1.1;
const MOST_P: f64 = 0.02;

pub(super) const COMPARISON: Comparison = Comparison { id: "mtu-effect", compare };

fn compare(whole: &Whole<'_>) -> Compared {
    let is = |text: &str| {
        let text = text.to_ascii_lowercase();
        text.contains("mtu") || text.contains("jumbo")
    };
    let study = &whole.results.study;
    let mut all = axes(whole, is);
    // Named so, whatever it sets.
    let named = axes(whole, |_| true).into_iter().filter(|axis| is(&axis.factor.name));
    all.extend(named.filter(|axis| is(&study.factors[axis.number].name)).collect::<Vec<_>>());
    all.dedup_by_key(|axis| axis.number);
    let mut compared = Compared::nothing(!all.is_empty());
    for axis in &all {
        match judge(whole, axis) {
            Ok(found) => compared.found.extend(found),
            Err(why) => compared.unknown = Some(why),
        }
    }
    compared
}

fn judge(whole: &Whole<'_>, axis: &Axis<'_>) -> Result<Option<Finding>, String> {
    let responses = whole.results.study.workloads.iter().filter_map(|workload| rates(whole, &workload.name));
    let points: Vec<Point> =
        responses.flat_map(|response| points(whole, axis, &response, &[CheckKind::CachedReads])).collect();
    let of = |other: usize| Some((other, ratio(&points, 0, other, 0.95)?));
    let ratios: Vec<_> = (1..axis.factor.levels.len()).filter_map(of).collect();
    if ratios.is_empty() {
        return Err("runs with two sizes of frames are needed, three or more that count".into());
    }
    let magnitude = |interval: &TestInterval| interval.value.max(1.0 / interval.value);
    let found = ratios
        .into_iter()
        .filter(|(_, (slope, interval))| slope.p() <= MOST_P && magnitude(interval) >= LEAST);
    let most = found.max_by(|a, b| magnitude(&a.1.1).total_cmp(&magnitude(&b.1.1)));
    Ok(most.map(|(other, (slope, interval))| {
        let what = format!(
            "With {} the throughput is {} times that with {} (95 % interval {} to {}; {}), over all workloads.",
            name(axis, other),
            digits(interval.value),
            name(axis, 0),
            digits(interval.lower),
            digits(interval.upper),
            p_text(slope.p())
        );
        let (better, slower) = if interval.value > 1.0 { (other, 0) } else { (0, other) };
        let remedy = Remedy::new(format!("Use {} on all hosts and switches of a network that is NFS's own; one with smaller frames in between loses or cuts all larger ones.", name(axis, better)))
            .by(Need::EmulatedNetwork, "--set network.mtu=9000")
            .by(Need::RealNetwork, "ip link set dev DEVICE mtu 9000; ping -M do -s 8972 SERVER   # the second proves the way")
            .confirmed_by("the same study with both sizes and a look at the processors (`cpu.busy`)");
        let finding = Finding::new(Confidence::Certain, what).advised(remedy)
            .with([
                Evidence::number("ratio of the rates", interval.value),
                Evidence::number("runs compared", points.len() as f64),
            ])
            .tested("t test of ln(rate), within the other factors", slope.p(), interval)
            .costs(1.0 - 1.0 / magnitude(&interval));
        placed(whole, finding, None, axis, slower)
    }))
}

#[cfg(test)]
mod tests {
    use benchmaster_record::results::Unit;

    use super::super::made;
    use super::*;

    /// Of a factor that a hook sets.
    const BY_HOOK: &str = "[study]\nname = \"made\"\n[target]\npath = \"/mnt/x\"\n[factors.mtu.levels]\n1500 = { \"run.cache_hook\" = \"ip link set dev eth0 mtu 1500\" }\n\
             9000 = { \"run.cache_hook\" = \"ip link set dev eth0 mtu 9000\" }\n[workload.write]\nuse = \"sequential-write\"\nduration = \"1s\"\n";
    /// Of a factor that the emulated network has, whatever it is called.
    const BY_NETWORK: &str = "[study]\nname = \"made\"\n[target]\nurl = \"nfs://{server}/export\"\n[factors.frames]\nparameter = \"network.mtu\"\nlevels = [1500, 9000]\n\
             [workload.write]\nuse = \"sequential-write\"\nduration = \"1s\"\n";

    fn verdict(small: &[f64], large: &[f64]) -> Compared {
        of(BY_HOOK, small, large)
    }

    fn of(study: &str, small: &[f64], large: &[f64]) -> Compared {
        let mut results = made::study(study);
        for (level, of) in (0..).zip([small, large]) {
            for rate in of {
                made::add(&mut results, level, vec![], &[("write.throughput", *rate, Unit::BytesPerSecond)]);
            }
        }
        made::compare(&results, compare)
    }

    #[test]
    fn larger_frames_that_help_and_that_do_not() {
        let found = verdict(&[100.0, 101.0, 99.0], &[160.0, 161.0, 162.0]);
        let [finding] = &found.found[..] else { panic!("{found:?}") };
        assert!(
            finding.what.starts_with("With 9000 the throughput is 1.61 times that with 1500"),
            "{}",
            finding.what
        );
        assert!((finding.cost.as_ref().unwrap().share - 0.379).abs() < 0.002);
        assert_eq!(finding.at.as_ref().unwrap().treatments[0].treatment, 0);
        assert!(verdict(&[100.0, 101.0, 99.0], &[108.0, 109.0, 107.0]).found.is_empty());
        assert!(verdict(&[100.0, 160.0, 70.0], &[160.0, 90.0, 200.0]).found.is_empty());
        assert!(verdict(&[100.0], &[160.0]).unknown.is_some());
        let found = of(BY_NETWORK, &[100.0, 101.0, 99.0], &[160.0, 161.0, 162.0]);
        let [finding] = &found.found[..] else { panic!("{found:?}") };
        assert!(finding.what.contains("is 1.61 times that with"), "{}", finding.what);
    }
}
