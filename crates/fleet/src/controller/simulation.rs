//! A fleet on virtual time: ten thousand agents with clocks that are wrong and drift, slow and lossy networks, and deaths.
//!
//! Everything that decides is the code of the controller and of aggregators: groups, turns, rounds of exchanges, clocks,
//! stages, and how clocks and starts are stated in the end. Simulated are time, messages, processes and processor time. What
//! was stated is compared with the truth, which only the simulation knows.

use std::time::Duration;

use benchmaster_workload::conduct::{Start, Step};

use super::barrier::Point;
use super::clocks::{AT_ONCE, Known, Measured, Round};
use super::group::GREETED;
use super::run::DELIVERY_EACH;
use super::stage::{Said, Stage};
use super::top::answer;
use crate::clock::{Exchange, Relation};
use crate::merge::gathered::{chained, start_facts};
use crate::protocol::Instruction;
use crate::tree::{FAN_OUT, Turns, groups};

const US: i64 = 1_000;
const MS: i64 = 1_000 * US;
const SECOND: i64 = 1_000 * MS;

/// Processor time of a leading process for a message: ten times what a release build takes.
const COST: i64 = 100 * US;

/// The steps before the measured phase.
const STEPS: [Step; 4] = [Step::Cleared, Step::Prepared, Step::Released, Step::Settled];

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From `low` to below `high`.
    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() % high.abs_diff(low).max(1)).cast_signed()
    }

    fn below(&mut self, high: usize) -> usize {
        (self.next() % high as u64) as usize
    }

    /// One time in this number.
    fn one_in(&mut self, times: u64) -> bool {
        self.next().is_multiple_of(times)
    }
}

/// A clock: what it shows at a time of the simulation, and the other way round.
#[derive(Clone, Copy)]
struct Clock {
    ahead: i64,
    /// Gained in a thousand million nanoseconds.
    drift: i64,
}

impl Clock {
    fn draw(dice: &mut Dice) -> Self {
        Self {
            ahead: dice.between(-100_000 * SECOND, 100_000 * SECOND),
            drift: dice.between(-50_000, 50_000),
        }
    }

    fn at(self, time: i64) -> i64 {
        time + self.ahead + time * self.drift / 1_000_000_000
    }

    fn when(self, shown: i64) -> i64 {
        let mut time = shown - self.ahead;
        for _ in 0..3 {
            time -= self.at(time) - shown;
        }
        time
    }
}

/// The network between a process and the one that leads it.
#[derive(Clone, Copy)]
struct Link {
    there: i64,
    back: i64,
    jitter: i64,
    /// One message in this number is sent again.
    loss: u64,
}

impl Link {
    fn draw(dice: &mut Dice, loss: u64) -> Self {
        let slow = if dice.one_in(50) { 10 * MS } else { 500 * US };
        Self { there: dice.between(US, slow), back: dice.between(US, slow), jitter: slow / 2, loss }
    }

    fn pass(self, dice: &mut Dice, way: i64) -> i64 {
        let drawn = dice.next();
        // Short delays are more frequent than long ones.
        let (a, b) = ((drawn & 1023).cast_signed(), (drawn >> 10 & 1023).cast_signed());
        let mut took = way + self.jitter * a * b / (1024 * 1024);
        let mut lost = (drawn >> 20).is_multiple_of(self.loss);
        let mut timeout = 200 * MS;
        while lost {
            took += timeout;
            timeout *= 2;
            lost = dice.one_in(self.loss);
        }
        took
    }

    fn down(self, dice: &mut Dice) -> i64 {
        self.pass(dice, self.there)
    }

    fn up(self, dice: &mut Dice) -> i64 {
        self.pass(dice, self.back)
    }
}

/// A process that is led by another one.
struct Process {
    clock: Clock,
    link: Link,
    /// When it is there to be greeted.
    there: i64,
    /// It does nothing after this.
    dies: i64,
    /// What the process that leads it knows of its clock.
    known: Option<Known>,
    relation: Option<Relation>,
    /// When it was asked to start, on its clock.
    starts: i64,
}

impl Process {
    fn draw(dice: &mut Dice, loss: u64) -> Self {
        Self {
            clock: Clock::draw(dice),
            link: Link::draw(dice, loss),
            there: dice.between(100 * MS, 3 * SECOND),
            dies: i64::MAX,
            known: None,
            relation: None,
            starts: 0,
        }
    }
}

/// A run that ended before its time: the name of the process that was lost.
type Lost = String;

/// A process that leads others, which are the controller, or an aggregator.
struct Level {
    clock: Clock,
    /// Its processor is busy until then.
    busy: i64,
    members: Vec<Process>,
    stage: Stage,
    /// The number of its first member in the whole.
    first: usize,
    kind: &'static str,
    /// The start of the measured phase on its clock.
    start_ns: i64,
}

impl Level {
    fn new(clock: Clock, members: Vec<Process>, first: usize, kind: &'static str) -> Self {
        let stage = Stage::new(std::iter::repeat_n(true, members.len()));
        Self { clock, busy: 0, members, stage, first, kind, start_ns: 0 }
    }

    fn name(&self, member: usize) -> String {
        format!("{} {}", self.kind, self.first + member)
    }

    /// The processor is taken for a message at this time; gives when it is done.
    fn handle(&mut self, time: i64) -> i64 {
        self.busy = self.busy.max(time) + COST;
        self.busy
    }

    /// Sends something to all members; gives when they have it.
    fn send(&mut self, dice: &mut Dice, now: i64) -> Vec<i64> {
        let of = self.members.len();
        let arrive = |member: usize| {
            let sent = self.handle(now);
            sent + self.members[member].link.down(dice)
        };
        (0..of).map(arrive).collect()
    }

    /// Members say something at these times; gives when each was heard, in the order of arrival.
    fn hear(&mut self, dice: &mut Dice, said: &[i64]) -> Result<Vec<(i64, usize)>, Lost> {
        let mut arrivals = Vec::with_capacity(said.len());
        for (member, (process, time)) in self.members.iter().zip(said).enumerate() {
            if *time <= process.dies {
                arrivals.push((time + process.link.up(dice), member));
            }
        }
        arrivals.sort_unstable();
        for (time, _) in &mut arrivals {
            *time = self.handle(*time);
        }
        match (0..said.len()).find(|member| said[*member] > self.members[*member].dies) {
            Some(dead) if !self.goes_on_without(dead, &arrivals) => Err(self.name(dead)),
            Some(dead) => panic!("{} is dead, and the run goes on", self.name(dead)),
            None => Ok(arrivals),
        }
    }

    /// Whether the others would go on, as they must not.
    fn goes_on_without(&mut self, dead: usize, others: &[(i64, usize)]) -> bool {
        let point = Point::Step(Step::Released);
        let mut said = others.iter().filter(|(_, member)| *member != dead);
        said.any(|(_, member)| self.stage.waits(*member, point, Duration::ZERO).is_ok_and(|s| s.is_some()))
    }

    /// All members come to a point at these times; gives when the last was heard, and what is said of it.
    fn meet(&mut self, dice: &mut Dice, point: Point, times: &[i64]) -> Result<(i64, Said), Lost> {
        let lead = if matches!(point, Point::Start(_)) { Duration::from_micros(50) } else { Duration::ZERO };
        self.come(dice, point, times, &vec![lead; times.len()])
    }

    fn come(
        &mut self,
        dice: &mut Dice,
        point: Point,
        times: &[i64],
        leads: &[Duration],
    ) -> Result<(i64, Said), Lost> {
        let delivery = self.delivery();
        let mut outcome = None;
        for (time, member) in self.hear(dice, times)? {
            assert!(outcome.is_none(), "the last one was there");
            outcome = self.stage.waits(member, point, leads[member]).unwrap().map(|said| (time, said));
        }
        Ok(match outcome.unwrap() {
            (time, Said::Ready { phase, lead }) => (time, Said::Ready { phase, lead: lead + delivery }),
            other => other,
        })
    }

    /// As a group takes it for a start.
    fn delivery(&self) -> Duration {
        let trips = self.members.iter().filter_map(|process| process.known).map(|known| known.round_trip);
        Duration::from_millis(3) + trips.max().unwrap_or_default() + DELIVERY_EACH * self.members.len() as u32
    }

    /// Processes are greeted from a time on, when they are there.
    fn greet(&mut self, dice: &mut Dice, begin: i64) -> Result<i64, Lost> {
        in_turns(begin, GREETED, self.members.len(), |index, now| {
            let process = &self.members[index];
            let there = now.max(begin + process.there);
            let over = there + process.link.down(dice) + process.link.up(dice) + COST;
            if over > process.dies { Err(self.name(index)) } else { Ok(over) }
        })
    }

    /// Rounds with all members, before a run or after it.
    fn rounds(&mut self, dice: &mut Dice, now: i64) -> Result<i64, Lost> {
        in_turns(now, AT_ONCE, self.members.len(), |index, now| {
            let measured = round(dice, self.clock, &self.members[index], now);
            let (measured, over) = measured.ok_or_else(|| self.name(index))?;
            let process = &mut self.members[index];
            match &mut process.known {
                Some(known) => process.relation = Some(known.renew(Some(measured), self.clock.at(over))),
                None => process.known = Some(Known::new(false, measured)),
            }
            Ok(over)
        })
    }
}

/// Does something with each of some processes in turns, from a time on: `act` gives when it is over. Gives when all is.
fn in_turns(
    begin: i64,
    at_once: usize,
    of: usize,
    mut act: impl FnMut(usize, i64) -> Result<i64, Lost>,
) -> Result<i64, Lost> {
    let mut turns = Turns::new(0..of, at_once);
    let mut under_way: Vec<i64> = Vec::new();
    let (mut now, mut end) = (begin, begin);
    loop {
        while let Some(next) = turns.next() {
            let over = act(next, now)?;
            end = end.max(over);
            under_way.push(over);
        }
        let first = under_way.iter().copied().enumerate().min_by_key(|(_, over)| *over);
        let Some((first, over)) = first else { return Ok(end) };
        under_way.swap_remove(first);
        now = over;
        turns.done();
    }
}

/// A round of exchanges from a time on; `None` when the process dies.
fn round(dice: &mut Dice, leader: Clock, process: &Process, mut now: i64) -> Option<(Measured, i64)> {
    let mut round = Round::default();
    loop {
        let sent = leader.at(now);
        now += process.link.down(dice);
        let received = process.clock.at(now);
        now += dice.between(US, 20 * US);
        if now > process.dies {
            return None;
        }
        let replied = process.clock.at(now);
        now += process.link.up(dice) + dice.between(0, 50 * US);
        let exchange = Exchange { sent, received, replied, returned: leader.at(now) };
        if let Some(measured) = round.note(exchange) {
            return Some((measured, now));
        }
    }
}

/// What came of a run.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    /// When the last agent began its first operation, on virtual time.
    begun: i64,
    /// As stated.
    spread_ns: u64,
    bound_ns: u64,
}

struct World {
    dice: Dice,
    controller: Level,
    groups: Vec<Level>,
}

impl World {
    /// A fleet whose every chance follows from a seed. In one of four, a process dies.
    fn new(agents: usize, seed: u64) -> Self {
        let mut dice = Dice(seed);
        let loss = [100, 1_000, 10_000][(seed % 3) as usize];
        let mut members =
            |count: usize| -> Vec<Process> { (0..count).map(|_| Process::draw(&mut dice, loss)).collect() };
        let ranges = groups(agents, FAN_OUT);
        let mut heads = members(ranges.len());
        let mut groups: Vec<Level> = heads
            .iter()
            .zip(ranges)
            .map(|(head, range)| Level::new(head.clock, members(range.len()), range.start, "agent"))
            .collect();
        if seed % 4 == 3 {
            let when = dice.between(0, 20 * SECOND);
            let group = dice.below(groups.len());
            let member = dice.below(groups[group].members.len());
            if dice.one_in(3) {
                heads[group].dies = when;
            } else {
                groups[group].members[member].dies = when;
            }
        }
        let controller = Level::new(Clock::draw(&mut dice), heads, 0, "aggregator");
        Self { dice, controller, groups }
    }

    /// The process that is to die, and when.
    fn doomed(&self) -> Option<(String, i64)> {
        let levels = std::iter::once(&self.controller).chain(&self.groups);
        let mut doomed = levels.flat_map(|level| {
            let dies = |(member, process): (usize, &Process)| (level.name(member), process.dies);
            level.members.iter().enumerate().map(dies)
        });
        doomed.find(|(_, dies)| *dies < i64::MAX)
    }

    /// From the start of the first process to the end of a run.
    fn run(&mut self) -> Result<Outcome, Lost> {
        let mut now = self.launch()?;
        // The hosts' environments, the working directories of the first and of the others, the beginning of a run.
        for _ in 0..4 {
            now = self.call(now)?;
        }
        let mut times = self.send(now);
        for step in STEPS {
            times.iter_mut().for_each(|time| *time += self.dice.between(0, 100 * MS));
            times = self.meet(Point::Step(step), &times)?;
        }
        let starts = self.meet(Point::Start(Start::Measure), &times)?;
        let first: Vec<i64> = starts.iter().map(|at| at + self.dice.between(0, 2 * MS)).collect();
        let over: Vec<i64> = first.iter().map(|first| first + 2 * SECOND).collect();
        let times = self.meet(Point::Step(Step::Measured), &over)?;
        let times = self.meet(Point::Step(Step::TornDown), &times)?;
        self.bring_home(&times)?;
        Ok(self.state(&first))
    }

    /// Processes are started and greeted, and clocks are measured. Gives when all of it is over.
    fn launch(&mut self) -> Result<i64, Lost> {
        let Self { dice, controller, groups } = self;
        let greeted = controller.greet(dice, 0)?;
        let begun = controller.send(dice, greeted);
        let mut led = Vec::with_capacity(groups.len());
        for (group, begun) in groups.iter_mut().zip(begun) {
            let greeted = group.greet(dice, begun)?;
            led.push(group.rounds(dice, greeted)?);
        }
        let heard = controller.hear(dice, &led)?;
        controller.rounds(dice, last(&heard))
    }

    /// Sends something to all agents; gives when they have it.
    fn send(&mut self, now: i64) -> Vec<i64> {
        let Self { dice, controller, groups } = self;
        let arrived = controller.send(dice, now);
        groups.iter_mut().zip(arrived).flat_map(|(group, time)| group.send(dice, time)).collect()
    }

    /// Asks all agents for something; gives when all answers are there.
    fn call(&mut self, now: i64) -> Result<i64, Lost> {
        let mut times = self.send(now);
        times.iter_mut().for_each(|time| *time += self.dice.between(MS, 50 * MS));
        let Self { dice, controller, groups } = self;
        let mut answered = Vec::with_capacity(groups.len());
        for group in groups {
            let heard = group.hear(dice, &times[group.first..group.first + group.members.len()])?;
            answered.push(last(&heard));
        }
        Ok(last(&controller.hear(dice, &answered)?))
    }

    /// All agents come to a point at these times; gives when each goes on.
    fn meet(&mut self, point: Point, times: &[i64]) -> Result<Vec<i64>, Lost> {
        let Self { dice, controller, groups } = self;
        let (mut said, mut leads) = (Vec::new(), Vec::new());
        for group in groups.iter_mut() {
            let own = &times[group.first..group.first + group.members.len()];
            let (time, spoken) = group.meet(dice, point, own)?;
            leads.push(if let Said::Ready { lead, .. } = spoken { lead } else { Duration::ZERO });
            said.push(time);
        }
        let (time, said) = controller.come(dice, point, &said, &leads)?;
        let order = answer(said, controller.clock.at(time)).unwrap();
        let mut go_on = Vec::with_capacity(times.len());
        assert_eq!(controller.stage.go(point).len(), groups.len());
        let arrived = controller.send(dice, time);
        for (number, (group, arrived)) in groups.iter_mut().zip(arrived).enumerate() {
            assert_eq!(group.stage.go(point).len(), group.members.len());
            let order = match order {
                Instruction::StartAt(instant) => {
                    controller.start_ns = instant;
                    group.start_ns = controller.members[number].known.unwrap().to_agent(instant);
                    Some(group.start_ns)
                }
                _ => None,
            };
            let arrived = group.send(dice, arrived);
            for (member, arrived) in group.members.iter_mut().zip(arrived) {
                let Some(start) = order else {
                    go_on.push(arrived);
                    continue;
                };
                member.starts = member.known.unwrap().to_agent(start);
                go_on.push(member.clock.when(member.starts).max(arrived));
            }
        }
        Ok(go_on)
    }

    /// Agents bring home what they recorded, and clocks are measured again.
    fn bring_home(&mut self, times: &[i64]) -> Result<(), Lost> {
        let Self { dice, controller, groups } = self;
        let mut gathered = Vec::with_capacity(groups.len());
        for group in groups {
            let heard = group.hear(dice, &times[group.first..group.first + group.members.len()])?;
            gathered.push(group.rounds(dice, last(&heard))?);
        }
        let heard = controller.hear(dice, &gathered)?;
        controller.rounds(dice, last(&heard)).map(drop)
    }

    /// What is stated in the end, compared with the truth.
    fn state(&self, first: &[i64]) -> Outcome {
        let Self { controller, groups, .. } = self;
        let instant = controller.start_ns;
        let truly = controller.clock.when(instant);
        let (mut bounds, mut stated) = (Vec::new(), Vec::new());
        for (head, group) in controller.members.iter().zip(groups) {
            let outer = head.relation.unwrap();
            for agent in &group.members {
                let inner = agent.relation.unwrap();
                let facts = chained(outer.facts(instant), inner.facts(group.start_ns));
                let error = (facts.offset_ns - (agent.clock.at(truly) - instant)).unsigned_abs();
                assert!(error <= facts.bound_ns + ROUNDED, "off by {error}: {facts:?}");
                let number = stated.len();
                let began = outer.to_controller(inner.to_controller(agent.clock.at(first[number])));
                stated.push((number as u32, began - instant));
                bounds.push(facts.bound_ns);
            }
        }
        let facts = start_facts(bounds.into_iter(), &stated, 0).unwrap();
        let (earliest, latest) = (first.iter().min().unwrap(), first.iter().max().unwrap());
        let truth = (controller.clock.at(*latest) - controller.clock.at(*earliest)).unsigned_abs();
        let error = truth.abs_diff(facts.spread_ns);
        assert!(error <= facts.bound_ns + ROUNDED, "off by {error} from {truth}: {facts:?}");
        Outcome { begun: *latest, spread_ns: facts.spread_ns, bound_ns: facts.bound_ns }
    }
}

/// What whole nanoseconds and the drift within one exchange may add to an error.
const ROUNDED: u64 = 50;

fn last(heard: &[(i64, usize)]) -> i64 {
    heard.iter().map(|(time, _)| *time).max().unwrap_or_default()
}

/// A fleet either begins in time and states the truth, or names the process that was lost.
fn lives_up_to_it(agents: usize, seed: u64) -> Option<Outcome> {
    let mut world = World::new(agents, seed);
    match (world.run(), world.doomed()) {
        (Ok(outcome), doomed) => {
            assert!(outcome.begun <= 30 * SECOND, "seed {seed}: {outcome:?}");
            assert!(doomed.is_none_or(|(_, dies)| dies > outcome.begun), "seed {seed}: {outcome:?}");
            Some(outcome)
        }
        (Err(lost), Some((name, _))) => {
            assert_eq!(lost, name, "seed {seed}");
            None
        }
        (Err(lost), None) => panic!("seed {seed}: {lost} is well"),
    }
}

#[test]
fn ten_thousand_agents_begin_in_time_and_what_is_stated_is_true() {
    let lost = (0..4).filter(|seed| lives_up_to_it(10_000, *seed).is_none()).count();
    assert_eq!(lost, 1);
    let lost = (0..100).filter(|seed| lives_up_to_it(150, *seed).is_none()).count();
    assert!((10..=25).contains(&lost), "{lost}");
}

#[test]
#[ignore = "full tier: minutes of processor time"]
#[allow(clippy::print_stdout, reason = "figures for docs/performance.md")]
fn a_thousand_fleets_of_ten_thousand_agents_begin_in_time_and_what_is_stated_is_true() {
    let outcomes: Vec<Option<Outcome>> = (0..1_000).map(|seed| lives_up_to_it(10_000, seed)).collect();
    let fine: Vec<Outcome> = outcomes.iter().copied().flatten().collect();
    let most = |of: fn(&Outcome) -> u64| fine.iter().map(of).max().unwrap();
    println!(
        "{} of {} ran; begun within {:.1} s; spread at most {:.1} ms; bound at most {:.1} ms",
        fine.len(),
        outcomes.len(),
        most(|outcome| outcome.begun.unsigned_abs()) as f64 / 1e9,
        most(|outcome| outcome.spread_ns) as f64 / 1e6,
        most(|outcome| outcome.bound_ns) as f64 / 1e6,
    );
    assert!((750..900).contains(&fine.len()), "{}", fine.len());
}
