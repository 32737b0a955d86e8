//! Which connection was hashed to which transmit queue of the server, where that was sampled.

use std::collections::BTreeMap;

use benchmaster_record::recording::Recording;
use benchmaster_record::samples::{Point, Samples};
use benchmaster_stats::fairness::TwoClusters;
use benchmaster_stats::{mean as mean_of, standard_deviation};
use benchmaster_telemetry::derived::growth;

/// By how much a queue's rate may differ from the mean of all.
const MOST_DIFFERENCE: f64 = 0.15;
/// Of winners' and losers' rates.
const LEAST_RATIO: f64 = 1.5;
/// A connection with less of the bytes of its client's largest moves nothing that matters.
const LEAST_PART: f64 = 0.1;

/// The transmit queues of the connections over which the server sends to clients.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hashed {
    /// By client, counted from 0: the queue over time.
    clients: BTreeMap<u32, Vec<Point>>,
    length_ns: i64,
}

impl Hashed {
    /// `None` where it was not sampled, where a client has several connections, and where what was moved did not leave the
    /// server.
    pub(super) fn of(recording: &Recording) -> Option<Self> {
        let length_ns = i64::try_from(recording.length_ns).ok()?;
        let samples = recording.samples.iter().map(|host| &host.samples);
        let samples = samples.into_iter().find(|host| host.of(SAMPLER, "flow_queue").next().is_some())?;
        let mut clients: BTreeMap<u32, Vec<(f64, &[Point])>> = BTreeMap::new();
        for series in samples.of(SAMPLER, "flow_queue") {
            let mut words = series.key.instance.split_ascii_whitespace();
            let (Some("server"), Some(client)) = (words.next(), words.next()) else { continue };
            let client = client.parse::<u32>().ok()?.checked_sub(1)?;
            let sent = sent(samples, &series.key.instance, length_ns).unwrap_or(0.0);
            clients.entry(client).or_default().push((sent, &series.points));
        }
        let moved: u64 = recording.series.iter().map(|series| series.total.bytes).sum();
        let all: f64 = clients.values().flatten().map(|(sent, _)| sent).sum();
        if all < moved as f64 / 2.0 {
            return None;
        }
        let one = |(client, mut flows): (u32, Vec<(f64, &[Point])>)| {
            flows.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
            match &flows[..] {
                [(largest, _), (next, _), ..] if *next >= LEAST_PART * largest => None,
                [(_, points), ..] => Some((client, points.to_vec())),
                [] => None,
            }
        };
        let clients: BTreeMap<u32, Vec<Point>> = clients.into_iter().map(one).collect::<Option<_>>()?;
        (clients.len() > 1).then_some(Self { clients, length_ns })
    }

    /// The queue of a client's connection at the end, when all are at work.
    fn queue(&self, client: u32) -> Option<u32> {
        let points = self.clients.get(&client)?.iter();
        points.take_while(|point| point.time_ns <= self.length_ns).last().map(|point| point.value as u32)
    }

    /// The clients of each queue, by queue.
    fn queues(&self) -> BTreeMap<u32, Vec<u32>> {
        let mut queues: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for client in self.clients.keys() {
            queues.entry(self.queue(*client).unwrap_or(0)).or_default().push(*client);
        }
        queues
    }

    /// Winners, whose queue has the fewest connections, and losers, if queues have different numbers of them and move the
    /// same; by rates of clients.
    pub(super) fn divide(&self, rates: &[(u32, f64)]) -> Option<TwoClusters> {
        let mut queues: BTreeMap<u32, (usize, f64)> = BTreeMap::new();
        let of: Vec<u32> = rates.iter().map(|(client, _)| self.queue(*client)).collect::<Option<_>>()?;
        for (queue, (_, rate)) in of.iter().zip(rates) {
            let (connections, moved) = queues.entry(*queue).or_default();
            (*connections, *moved) = (*connections + 1, *moved + rate);
        }
        let mean = queues.values().map(|(_, moved)| moved).sum::<f64>() / queues.len() as f64;
        let alike = queues.values().all(|(_, moved)| (moved / mean - 1.0).abs() <= MOST_DIFFERENCE);
        let least = queues.values().map(|(connections, _)| *connections).min()?;
        let wins =
            |index: &usize| queues.get(&of[*index]).is_some_and(|(connections, _)| *connections == least);
        let (winners, losers): (Vec<usize>, Vec<usize>) = (0..rates.len()).partition(wins);
        let values = |indices: &[usize]| indices.iter().map(|index| rates[*index].1).collect::<Vec<f64>>();
        let (won, lost) = (values(&winners), values(&losers));
        let (winners_mean, losers_mean) = (mean_of(&won)?, mean_of(&lost)?);
        let variation = |values: &[f64], mean: f64| standard_deviation(values).unwrap_or(0.0) / mean;
        let variation = variation(&won, winners_mean).max(variation(&lost, losers_mean));
        let found = TwoClusters { losers, winners, losers_mean, winners_mean, variation };
        (alike && found.ratio() >= LEAST_RATIO && found.ratio().is_finite()).then_some(found)
    }

    /// `1 and 3 in queue 4`, for each queue with more than one client.
    pub(super) fn sharing(&self) -> Vec<String> {
        let shared = self.queues().into_iter().filter(|(_, clients)| clients.len() > 1);
        let name = |(queue, clients): (u32, Vec<u32>)| {
            let names: Vec<String> = clients.iter().map(|client| (client + 1).to_string()).collect();
            match names.split_last() {
                Some((last, others)) => format!("{} and {last} in queue {queue}", others.join(", ")),
                None => String::new(),
            }
        };
        shared.map(name).collect()
    }

    /// Whether a connection changed its queue within a twentieth of the run from that time.
    pub(super) fn hashed_again_near(&self, at_ns: u64, length_ns: u64) -> bool {
        let near = |point: &Point| (point.time_ns as f64 - at_ns as f64).abs() <= length_ns as f64 / 20.0;
        self.clients.values().any(|points| {
            points.windows(2).any(|pair| pair[0].value != pair[1].value && (near(&pair[0]) || near(&pair[1])))
        })
    }
}

fn sent(samples: &Samples, flow: &str, length_ns: i64) -> Option<f64> {
    growth(&samples.find(SAMPLER, "flow_sent_bytes", flow)?.points, 0, length_ns)
}

const SAMPLER: &str = "transmit_queues";

#[cfg(test)]
pub(super) mod tests {
    use benchmaster_record::model::OperationKind;
    use benchmaster_record::samples::Kind;

    use super::super::made;
    use super::*;

    /// Adds samples of 60 s in which the server sends this number of bytes to each client, over connections in these queues: before
    /// and after 30 s.
    pub(in super::super) fn sample(recording: &mut Recording, queues: &[(u32, u32)], sent: f64) {
        for (client, (before, after)) in (1..).zip(queues) {
            let name = format!("server {client} 10.77.0.1:2049-10.77.1.{client}:900");
            let mut add = |metric: &str, kind, points: &[(f64, f64)]| {
                made::sample(recording, "embedded server", (SAMPLER, metric, &name), kind, points);
            };
            let [before, after] = [before, after].map(|queue| f64::from(*queue));
            add("flow_queue", Kind::Gauge, &[(0.0, before), (30.0, before), (31.0, after), (60.0, after)]);
            add("flow_sent_bytes", Kind::Counter, &[(0.0, 0.0), (60.0, sent)]);
        }
    }

    fn hashed(queues: &[(u32, u32)], sent: f64) -> Option<Hashed> {
        let mut recording = made::recording("read", 60.0);
        made::series(&mut recording, OperationKind::Read, 1 << 20, &[(1_000_000, 5_000)]);
        sample(&mut recording, queues, sent);
        Hashed::of(&recording)
    }

    #[test]
    fn losers_share_their_queues_with_more_than_winners() {
        let found = hashed(&[(4, 4), (2, 2), (4, 4), (1, 1), (6, 6)], 1e9).unwrap();
        assert_eq!(found.sharing(), ["1 and 3 in queue 4"]);
        let rates = |rates: [f64; 5]| (0..).zip(rates).collect::<Vec<(u32, f64)>>();
        // However those who share a queue divide it.
        for of in [[14.0, 28.0, 14.1, 28.2, 27.9], [22.7, 28.0, 7.6, 28.1, 27.9]] {
            let divided = found.divide(&rates(of)).unwrap();
            assert_eq!((divided.winners, divided.losers), (vec![1, 3, 4], vec![0, 2]));
        }
        // The queues do not move the same: something else divides the clients.
        assert_eq!(found.divide(&rates([28.0, 14.0, 28.0, 14.0, 28.0])), None);
        assert_eq!(found.divide(&rates([22.0; 5])), None);
        // A client that is not known.
        assert_eq!(found.divide(&[(0, 14.0), (2, 14.0), (9, 28.0)]), None);
        // As many in each.
        let apart = hashed(&[(4, 4), (2, 2), (3, 3), (1, 1), (6, 6)], 1e9).unwrap();
        assert_eq!(apart.divide(&rates([14.0, 28.0, 14.1, 28.2, 27.9])), None);
        let three = hashed(&[(4, 4), (2, 2), (4, 4), (4, 4), (6, 6)], 1e9).unwrap();
        assert_eq!(three.sharing(), ["1, 3 and 4 in queue 4"]);
        assert!(!found.hashed_again_near(30_000_000_000, 60_000_000_000));
    }

    #[test]
    fn changes_of_queue_have_a_time() {
        let found = hashed(&[(4, 5), (2, 2), (4, 4)], 1e9).unwrap();
        assert!(found.hashed_again_near(31_000_000_000, 60_000_000_000));
        assert!(found.hashed_again_near(28_000_000_000, 60_000_000_000));
        assert!(!found.hashed_again_near(20_000_000_000, 60_000_000_000));
        // At the end the first has a queue of its own.
        assert_eq!(found.sharing(), Vec::<String>::new());
    }

    #[test]
    fn without_samples_or_where_the_server_sends_little_nothing_is_known() {
        assert_eq!(Hashed::of(&made::recording("read", 1.0)), None);
        assert_eq!(hashed(&[(4, 4), (4, 4)], 1e6), None);
        assert_eq!(hashed(&[(4, 4)], 1e10), None);
    }
}
