use proptest::prelude::*;

use super::*;

const MILLISECOND: u64 = 1_000_000;

fn arrivals(link: Link, seed: u64, frames: u64, gap: u64) -> Vec<Fate> {
    let mut path = Path::new(link, seed, 3);
    (0..frames).map(|frame| path.send(frame * gap, 1_538)).collect()
}

#[test]
fn impossible_links_are_refused_with_the_reason() {
    let delay = Duration::from_millis(2);
    let jitter = Duration::from_millis(3);
    for (link, said) in [
        (Link::of_delay(Duration::from_secs(11)), "exceeds the maximum"),
        (Link { jitter, ..Link::of_delay(delay) }, "more than the delay"),
        (Link { bandwidth: Some(0), ..Link::default() }, "0 bit/s is below"),
        (Link { loss: 1.1, ..Link::default() }, "1.1 is not"),
        (Link { loss: f64::NAN, ..Link::default() }, "NaN is not"),
    ] {
        assert!(link.check().unwrap_err().to_string().contains(said), "{link:?}");
    }
    assert_eq!(Link { jitter: delay, loss: 1.0, ..Link::of_delay(delay) }.check(), Ok(()));
}

#[test]
fn the_queue_is_what_the_bandwidth_carries_in_a_round_trip() {
    let link = Link { bandwidth: Some(1_000_000_000), ..Link::of_delay(Duration::from_millis(10)) };
    assert_eq!(link.queue(), 2_500_000 + 65_536);
    assert_eq!(Link { queue: Some(7), ..link }.queue(), 7);
}

#[test]
fn jitter_is_even_around_the_delay_and_keeps_the_order() {
    let (delay, jitter) = (Duration::from_millis(10), Duration::from_millis(4));
    let link = Link { jitter, ..Link::of_delay(delay) };
    // So far apart that none waits for the one before it.
    let gap = 20 * MILLISECOND;
    let delays: Vec<f64> = (arrivals(link, 1, 20_000, gap).iter().enumerate())
        .map(|(frame, fate)| match fate {
            Fate::Arrives(at) => (at - frame as u64 * gap) as f64 / 1e6,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(delays.iter().all(|delay| (6.0..=14.0).contains(delay)));
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    // The standard error of the mean is 4 / √3 / √20,000 = 0.016.
    assert!((mean - 10.0).abs() < 0.08, "{mean}");
    let below = delays.iter().filter(|delay| **delay < 8.0).count();
    assert!((4_700..5_300).contains(&below), "a quarter is below 8 ms: {below}");
    // Close together, they would overtake.
    let mut last = 0;
    for fate in arrivals(link, 1, 20_000, 10_000) {
        let Fate::Arrives(at) = fate else { panic!("{fate:?}") };
        assert!(at >= last);
        last = at;
    }
}

#[test]
fn as_many_frames_are_lost_as_asked_for_and_the_same_with_the_same_seed() {
    const FRAMES: u64 = 200_000;
    for loss in [0.0, 0.0001, 0.01, 0.3, 1.0] {
        let link = Link { loss, ..Link::default() };
        let fates = arrivals(link, 42, FRAMES, 1_000);
        let lost = fates.iter().filter(|fate| **fate == Fate::Lost).count() as f64;
        let expected = loss * FRAMES as f64;
        let deviation = (expected * (1.0 - loss)).sqrt();
        assert!((lost - expected).abs() <= 4.0 * deviation, "{lost} of {expected}");
        assert_eq!(fates, arrivals(link, 42, FRAMES, 1_000));
        if loss == 0.3 {
            assert_ne!(fates, arrivals(link, 43, FRAMES, 1_000));
            // Losses are independent: after a loss as likely as ever.
            let after = fates.windows(2).filter(|pair| pair[0] == Fate::Lost);
            let [all, again] = after.fold([0.0, 0.0], |[all, again], pair| {
                [all + 1.0, again + f64::from(u8::from(pair[1] == Fate::Lost))]
            });
            assert!((again / all - 0.3_f64).abs() < 0.01, "{again} of {all}");
        }
    }
}

#[test]
fn chance_treats_a_frame_by_its_number_whatever_the_link_does_else() {
    let plain = Link { loss: 0.2, ..Link::default() };
    let slow = Link { bandwidth: Some(100_000_000), queue: Some(20_000), ..plain };
    let [plain, slow] = [plain, slow].map(|link| arrivals(link, 7, 10_000, 50_000));
    assert!(slow.contains(&Fate::NoRoom));
    for (plain, slow) in plain.iter().zip(&slow) {
        assert!(*slow == Fate::NoRoom || (*slow == Fate::Lost) == (*plain == Fate::Lost));
    }
}

#[test]
fn a_bandwidth_spaces_frames_and_drops_what_finds_no_room() {
    // 1,538 bytes take 12.304 µs at 1 Gbit/s; 65,536 bytes may wait.
    let link = Link { bandwidth: Some(1_000_000_000), ..Link::of_delay(Duration::ZERO) };
    let mut path = Path::new(link, 0, 0);
    let fates: Vec<Fate> = (0..60).map(|_| path.send(0, 1_538)).collect();
    for (number, fate) in fates.iter().take(42).enumerate() {
        assert_eq!(*fate, Fate::Arrives((number as u64 + 1) * 12_304));
    }
    assert!(fates[42..].iter().all(|fate| *fate == Fate::NoRoom));
    // An idle line takes any frame, and owes nothing for its idleness.
    assert_eq!(path.send(MILLISECOND, 100_000), Fate::Arrives(MILLISECOND + 800_000));
}

#[test]
fn a_new_link_is_for_new_frames_and_never_overtakes() {
    let mut path = Path::new(Link::of_delay(Duration::from_millis(10)), 0, 0);
    assert_eq!(path.send(0, 100), Fate::Arrives(10 * MILLISECOND));
    path.set(Link::of_delay(Duration::from_millis(1)));
    assert_eq!(path.send(MILLISECOND, 100), Fate::Arrives(10 * MILLISECOND));
    assert_eq!(path.send(20 * MILLISECOND, 100), Fate::Arrives(21 * MILLISECOND));
}

proptest! {
    #[test]
    fn no_more_passes_than_the_bandwidth_carries(
        bandwidth in LEAST_BANDWIDTH..100_000_000_000,
        queue in 0u64..10_000_000,
        frames in prop::collection::vec((0u64..1_000_000, 84u64..70_000), 2..200),
    ) {
        let mut line = Line::new(Some(bandwidth), queue);
        let (mut now, mut passed, mut last) = (0, 0, 0);
        for (gap, bytes) in frames {
            now += gap;
            let Some(at) = line.pass(now, bytes) else { continue };
            passed += bytes;
            prop_assert!(at >= now && at >= last);
            last = at;
            // All bits that passed fit into the time since the start.
            let bits = at as f64 * bandwidth as f64 / 1e9;
            prop_assert!(passed as f64 * 8.0 <= bits * (1.0 + 1e-9) + bandwidth as f64 / 1e9 + 8.0);
            // And none waits longer than the queue takes, and its own time.
            let longest = (queue + bytes) as f64 * 8e9 / bandwidth as f64;
            prop_assert!((at - now) as f64 <= longest + 2.0);
        }
    }
}
