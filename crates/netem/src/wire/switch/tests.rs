use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::interface::Discipline;
use crate::namespace::MacAddress;
use crate::wire::flow::Flow;

const MILLISECOND: u64 = 1_000_000;

/// A frame of this many bytes on the wire.
fn frame(on_wire: u64) -> Frame {
    Frame { to: MacAddress([0; 6]), frames: 1, bytes: on_wire - 24, flow: Flow::default() }
}

/// All that leaves until then, each at its time: where, when, what.
fn all<T>(switch: &mut Switch<T>, until: u64) -> Vec<(Route, u64, T)> {
    let mut left = Vec::new();
    while let Some(next) = switch.next().filter(|next| *next <= until) {
        while let Some(popped) = switch.pop(next) {
            if let Ok(Departure { way, due, frame }) = popped {
                left.push((way, due, frame));
            }
        }
    }
    left
}

#[test]
fn both_directions_take_the_delay() {
    let links = [Link::of_delay(Duration::from_millis(3)), Link::of_delay(Duration::from_millis(1))];
    let mut switch = Switch::new(&links, None, None, 0);
    switch.send(Route::ToServer(0), 10, &frame(100), 'a').unwrap();
    switch.send(Route::ToClient(1), 20, &frame(100), 'b').unwrap();
    switch.send(Route::ToServer(1), 30, &frame(100), 'c').unwrap();
    assert_eq!(switch.next(), Some(MILLISECOND + 20));
    assert_eq!(switch.pop(MILLISECOND + 19), None);
    assert_eq!(
        all(&mut switch, u64::MAX),
        [
            (Route::ToClient(1), MILLISECOND + 20, 'b'),
            (Route::ToServer(1), MILLISECOND + 30, 'c'),
            (Route::ToServer(0), 3 * MILLISECOND + 10, 'a'),
        ]
    );
}

#[test]
fn clients_share_the_servers_port_in_the_order_of_arrival() {
    // 1,000 bytes take 8 µs each at 1 Gbit/s. The second client is nearer.
    let links = [Link::of_delay(Duration::from_millis(2)), Link::of_delay(Duration::from_millis(1))];
    let mut switch = Switch::new(&links, Some(1_000_000_000), None, 0);
    for _ in 0..3 {
        switch.send(Route::ToServer(0), 0, &frame(1_000), 0).unwrap();
        switch.send(Route::ToServer(1), MILLISECOND, &frame(1_000), 1).unwrap();
    }
    let left = all(&mut switch, u64::MAX);
    let times: Vec<u64> = left.iter().map(|(_, due, _)| due - 2 * MILLISECOND).collect();
    assert_eq!(times, [8_000, 16_000, 24_000, 32_000, 40_000, 48_000]);
    // From the server the port comes first.
    switch.send(Route::ToClient(0), 10 * MILLISECOND, &frame(1_000), 2).unwrap();
    switch.send(Route::ToClient(1), 10 * MILLISECOND, &frame(1_000), 3).unwrap();
    let times: Vec<(u64, i32)> = all(&mut switch, u64::MAX).iter().map(|left| (left.1, left.2)).collect();
    assert_eq!(times, [(11 * MILLISECOND + 16_000, 3), (12 * MILLISECOND + 8_000, 2)]);
}

#[test]
fn many_frames_at_once_at_a_slow_port_are_no_trouble() {
    let links = [Link { queue: Some(u64::MAX), ..Link::default() }];
    let mut switch = Switch::new(&links, None, None, 0);
    // No bandwidth: all arrive at once; then a port is put in front.
    for number in 0..200_000 {
        switch.send(Route::ToServer(0), 0, &frame(100), number).unwrap();
    }
    switch.set_server(Some(1_000_000), &links);
    let left = all(&mut switch, u64::MAX);
    let queue = Link { bandwidth: Some(1_000_000), ..Link::default() }.queue();
    assert_eq!(left.len() as u64 + switch.losses(Route::ToServer(0)).no_room, 200_000);
    assert!((queue / 100..queue / 100 + 2).contains(&(left.len() as u64)), "{}", left.len());
}

fn links() -> impl Strategy<Value = Link> {
    (0u64..5_000, 0u64..5_000, prop::option::of(100_000u64..1_000_000_000), 0f64..0.5).prop_map(
        |(delay, jitter, bandwidth, loss)| Link {
            delay: Duration::from_micros(delay),
            jitter: Duration::from_micros(jitter.min(delay)),
            bandwidth,
            loss,
            queue: None,
        },
    )
}

fn interfaces() -> impl Strategy<Value = Interface> {
    (1u32..9, 0usize..3, 0u64..20_000, prop::option::of(10u64..50), prop::option::of(0u64..5_000)).prop_map(
        |(queues, discipline, limit, rehash, flow_limit)| Interface {
            discipline: Discipline::ALL[discipline],
            limit: Some(limit),
            rehash: rehash.map(Duration::from_millis),
            flow_limit,
            ..Interface::new(queues)
        },
    )
}

proptest! {
    #[test]
    fn every_frame_leaves_once_in_order_or_is_counted(
        links in prop::collection::vec(links(), 1..4),
        server in prop::option::of(100_000u64..1_000_000_000),
        interface in prop::option::of(interfaces()),
        seed: u64,
        frames in prop::collection::vec((0usize..8, 0u64..200_000, 84u64..1_600), 1..300),
        changes in prop::collection::vec((0usize..300, links(), 0usize..4), 0..4),
    ) {
        let run = || {
            let mut switch = Switch::new(&links, server, interface.as_ref(), seed);
            let (mut now, mut left, mut dropped) = (0, Vec::new(), Vec::new());
            for (number, (way, gap, size)) in frames.iter().enumerate() {
                for (at, link, client) in &changes {
                    if *at == number && *client < links.len() {
                        switch.set(*client, *link);
                    }
                }
                now += gap;
                left.extend(all(&mut switch, now));
                let client = way / 2 % links.len();
                let way = if way % 2 == 0 { Route::ToServer(client) } else { Route::ToClient(client) };
                if let Err(frame) = switch.send(way, now, &frame(*size), (number, now)) {
                    dropped.push(frame);
                }
            }
            left.extend(all(&mut switch, u64::MAX));
            let losses: Vec<Losses> = (0..links.len())
                .flat_map(|client| [switch.losses(Route::ToServer(client)), switch.losses(Route::ToClient(client))])
                .collect();
            (left, losses)
        };
        let (left, losses) = run();
        let counted: u64 = losses.iter().map(|losses| losses.lost + losses.no_room).sum();
        prop_assert_eq!(left.len() as u64 + counted, frames.len() as u64);
        for client in 0..links.len() {
            for way in [Route::ToServer(client), Route::ToClient(client)] {
                let one: Vec<_> = left.iter().filter(|left| left.0 == way).collect();
                prop_assert!(one.is_sorted_by_key(|left| left.2.0), "frames overtake each other");
                prop_assert!(one.is_sorted_by_key(|left| left.1));
                prop_assert!(one.iter().all(|left| left.1 >= left.2.1), "before it was sent");
            }
        }
        prop_assert_eq!(run(), (left, losses), "not the same again");
    }
}
