//! What a curve says as a whole: its peak, its knee and its overall response time.

use benchmaster_stats::random::Generator;

use super::judge::Point;

/// Resamples of the runs.
const RESAMPLES: usize = 2_000;

/// A number with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Resampled {
    pub(super) value: f64,
    pub(super) interval: Option<(f64, f64)>,
}

/// Rate and response time of a load.
#[derive(Debug, Clone, Copy)]
struct LoadPoint {
    load: f64,
    rate: f64,
    response: f64,
}

/// A statistic of the points of a curve.
type Statistic = fn(&[LoadPoint]) -> Option<f64>;

/// The load at which the power, the rate divided by the response time, is greatest (Giessler et al. 1978; Kleinrock 1979):
/// beyond it the response time grows faster than the rate.
fn knee(points: &[LoadPoint]) -> Option<f64> {
    let power = |point: &LoadPoint| point.rate / point.response;
    points.iter().max_by(|a, b| power(a).total_cmp(&power(b))).map(|point| point.load)
}

/// The area under the response time over the achieved rate, up to the peak, divided by the peak: the mean response time of a
/// system that spends as much time at every rate. Below the lowest load its response time is taken.
fn overall(points: &[LoadPoint]) -> Option<f64> {
    let mut points: Vec<_> = points.to_vec();
    points.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    let (first, peak) = (points.first()?, points.last()?.rate);
    let mut area = first.rate * first.response;
    for pair in points.windows(2) {
        area += (pair[1].rate - pair[0].rate) * (pair[0].response + pair[1].response) / 2.0;
    }
    (peak > 0.0).then(|| area / peak)
}

/// A load with rate and response time of each of its runs.
type Runs = (f64, Vec<(f64, f64)>);

fn points(loads: &[Runs], mut pick: impl FnMut(&[(f64, f64)], usize) -> (f64, f64)) -> Vec<LoadPoint> {
    let point = |(load, runs): &Runs| {
        let picked = (0..runs.len()).map(|index| pick(runs, index));
        let (rate, response) =
            picked.fold((0.0, 0.0), |(rate, response), run| (rate + run.0, response + run.1));
        let n = runs.len() as f64;
        LoadPoint { load: *load, rate: rate / n, response: response / n }
    };
    loads.iter().map(point).collect()
}

/// A statistic with its percentile interval when the runs of each load are resampled from those that were done.
fn resampled(
    loads: &[Runs],
    statistic: Statistic,
    confidence: f64,
    seed: u64,
    what: &str,
) -> Option<Resampled> {
    let value = statistic(&points(loads, |runs, index| runs[index]))?;
    let mut generator = Generator::new(seed, what);
    let mut draw = || statistic(&points(loads, |runs, _| runs[generator.below(runs.len())]));
    let mut drawn: Vec<f64> = (0..RESAMPLES).filter_map(|_| draw()).collect();
    drawn.sort_by(f64::total_cmp);
    let at = |share: f64| drawn.get((share * drawn.len() as f64) as usize).or(drawn.last()).copied();
    let tail = (1.0 - confidence) / 2.0;
    let several = loads.iter().all(|(_, runs)| runs.len() > 1);
    let interval = at(tail).zip(at(1.0 - tail)).filter(|_| several);
    Some(Resampled { value, interval })
}

/// Knee and overall response time of the loads, which are in ascending order and all have runs.
pub(super) fn whole(
    points: &[(f64, &Point)],
    confidence: f64,
    seed: u64,
) -> (Option<Resampled>, Option<Resampled>) {
    let of = |point: &Point| point.runs.iter().map(|run| (run.achieved, run.response_ns)).collect();
    let loads: Vec<Runs> = points.iter().map(|(load, point)| (*load, of(point))).collect();
    let knee = resampled(&loads, knee, confidence, seed, "knee");
    let overall = resampled(&loads, overall, confidence, seed, "overall response time");
    (knee, overall)
}

#[cfg(test)]
mod tests {
    use super::super::judge::Observation;
    use super::*;

    fn point(rate: f64, response_ns: f64) -> Point {
        let run =
            |factor: f64| Observation { achieved: rate * factor, response_ns, ..Observation::default() };
        Point { runs: vec![run(0.99), run(1.0), run(1.01)], ..Point::default() }
    }

    /// A queue with one server and service time 1 ms: the response time is 1 ms/(1 − ρ), so that the power is ρ(1 − ρ)/ms²,
    /// greatest at half the capacity; the overall response time up to ρ = 0.9 is −ln(0.1)/0.9 ms.
    #[test]
    fn knee_and_overall_response_time_of_a_queue() {
        let loads: Vec<f64> = (1..=90).map(|percent| f64::from(percent) * 10.0).collect();
        let points: Vec<Point> = loads.iter().map(|load| point(*load, 1e6 / (1.0 - load / 1000.0))).collect();
        let both: Vec<_> = loads.iter().copied().zip(&points).collect();
        let (knee, overall) = whole(&both, 0.95, 1);
        let (knee, overall) = (knee.unwrap(), overall.unwrap());
        assert_eq!(knee.value, 500.0);
        let (low, high) = knee.interval.unwrap();
        assert!(low < 500.0 && high > 500.0 && low > 400.0 && high < 600.0, "{low} {high}");
        let expected = -(0.1f64.ln()) / 0.9 * 1e6;
        assert!((overall.value / expected - 1.0).abs() < 0.01, "{} {expected}", overall.value);
        let (low, high) = overall.interval.unwrap();
        assert!(low < overall.value && overall.value < high);
        assert_eq!(whole(&both, 0.95, 1).0, Some(knee), "the same seed gives the same interval");
    }

    #[test]
    fn one_run_has_no_interval() {
        let one = Point {
            runs: vec![Observation { achieved: 1.0, response_ns: 1.0, ..Default::default() }],
            ..Default::default()
        };
        let (knee, overall) = whole(&[(1.0, &one)], 0.95, 1);
        assert_eq!((knee.unwrap().interval, overall.unwrap().interval), (None, None));
    }
}
