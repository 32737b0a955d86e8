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

/// The overall response time of SPECstorage: the area under the response time over the achieved rate, from the first load to
/// the peak, divided by the difference of their rates. Loads beyond the peak have no part in it, and nothing is assumed
/// below the first; a single load has none.
fn overall(points: &[LoadPoint]) -> Option<f64> {
    let peak = points.iter().enumerate().max_by(|a, b| a.1.rate.total_cmp(&b.1.rate))?.0;
    let points = &points[..=peak];
    let trapezoid = |pair: &[LoadPoint]| {
        (pair[1].rate - pair[0].rate) * f64::midpoint(pair[0].response, pair[1].response)
    };
    let area: f64 = points.windows(2).map(trapezoid).sum();
    let span = points.last()?.rate - points.first()?.rate;
    (span > 0.0).then(|| area / span)
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
    /// greatest at half the capacity; the overall response time from ρ = 0.01 to ρ = 0.9 is ln(0.99/0.1)/0.89 ms.
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
        let expected = 9.9f64.ln() / 0.89 * 1e6;
        assert!((overall.value / expected - 1.0).abs() < 1e-3, "{} {expected}", overall.value);
        let (low, high) = overall.interval.unwrap();
        assert!(low < overall.value && overall.value < high);
        assert_eq!(whole(&both, 0.95, 1).0, Some(knee), "the same seed gives the same interval");
    }

    fn once(rate: f64, response_ns: f64) -> Point {
        Point {
            runs: vec![Observation { achieved: rate, response_ns, ..Default::default() }],
            ..Default::default()
        }
    }

    fn overall_of(points: &[(f64, f64)]) -> Option<f64> {
        let points: Vec<Point> = points.iter().map(|&(rate, response)| once(rate, response)).collect();
        let loads: Vec<_> = (1..).map(f64::from).zip(&points).collect();
        whole(&loads, 0.95, 1).1.map(|overall| overall.value)
    }

    /// By hand: (100·1 + 100·1.5 + 100·3)/300 = 550/300.
    #[test]
    fn the_overall_response_time_is_the_area_from_the_first_to_the_last_load_over_their_difference() {
        let curve = [(100.0, 1.0), (200.0, 1.0), (300.0, 2.0), (400.0, 4.0)];
        assert_eq!(overall_of(&curve), Some(550.0 / 300.0));
        // Ten loads in equal steps, as results are published: (0.3/2 + 0.4 + 0.4 + 0.5 + 0.5 + 0.6 + 0.7 + 0.9 + 1.2 + 1.8/2)/9.
        let responses = [0.3, 0.4, 0.4, 0.5, 0.5, 0.6, 0.7, 0.9, 1.2, 1.8];
        let published: Vec<_> = (1..).map(|step| 1000.0 * f64::from(step)).zip(responses).collect();
        assert!((overall_of(&published).unwrap() - 6.25 / 9.0).abs() < 1e-12);
        // What is below the first load is not assumed: a curve that begins at half the peak is not half the area.
        assert_eq!(overall_of(&[(500.0, 2.0), (1000.0, 4.0)]), Some(3.0));
    }

    #[test]
    fn loads_beyond_the_peak_have_no_part_in_the_overall_response_time() {
        let up = [(100.0, 1.0), (200.0, 1.0), (300.0, 2.0)];
        let beyond = [&up[..], &[(250.0, 50.0)]].concat();
        assert_eq!(overall_of(&beyond), overall_of(&up));
        assert_eq!(overall_of(&beyond), Some(1.25));
    }

    #[test]
    fn one_run_has_no_interval_and_one_load_no_overall_response_time() {
        let (first, second) = (once(1.0, 1.0), once(2.0, 1.0));
        let (knee, overall) = whole(&[(1.0, &first), (2.0, &second)], 0.95, 1);
        assert_eq!((knee.unwrap().interval, overall.unwrap().interval), (None, None));
        assert_eq!(whole(&[(1.0, &first)], 0.95, 1).1, None);
    }
}
