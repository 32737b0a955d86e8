//! Waiting for other workers inside a flow.

use super::{Job, Lane, Outcome, WorkerContext};
use crate::engine::Engine;
use crate::program::Instruction;
use crate::recording::StopReason;
use crate::rendezvous::{Bell, Readiness};
use benchmaster_clock::Ticks;

impl<H> Lane<H> {
    /// Comes to a meeting, or has its turn at a counter. Where a phase ends meanwhile, the instruction is to be done once
    /// more in the next one.
    #[cold]
    pub(super) async fn wait_for_others<E>(
        &mut self,
        job: &Job<'_, '_, E>,
        instruction: &Instruction,
        in_flow: bool,
    ) -> Outcome
    where
        E: Engine<Handle = H>,
    {
        let Some(rendezvous) = job.context.rendezvous.filter(|_| !self.gone) else {
            return Outcome::Finished;
        };
        self.carry = 0;
        let client = job.context.client;
        match *instruction {
            Instruction::Meet(meeting) => {
                let awaited = self.awaited.take().unwrap_or_else(|| rendezvous.arrive(meeting));
                let bell = rendezvous.bell_of_meeting(meeting);
                let held =
                    || if rendezvous.was_held(meeting, awaited) { Readiness::Done } else { Readiness::Wait };
                let outcome = wait(job, bell, held).await;
                if outcome == Outcome::Stop(StopReason::Time) {
                    self.awaited = Some(awaited);
                }
                outcome
            }
            Instruction::Post { counter, count, limit } => {
                let bell = rendezvous.bell_of_counter(client, counter);
                wait(job, bell, || rendezvous.post(client, counter, count, limit, in_flow)).await
            }
            Instruction::Take { counter, count } => {
                let bell = rendezvous.bell_of_counter(client, counter);
                wait(job, bell, || rendezvous.take(client, counter, count, in_flow)).await
            }
            _ => Outcome::Finished,
        }
    }

    /// Takes no further part in what others may wait for in `code`.
    pub(crate) fn leave(&mut self, context: &WorkerContext<'_>, code: &[Instruction], in_flow: bool) {
        if let Some(rendezvous) = context.rendezvous
            && !self.gone
        {
            rendezvous.leave(context.client, code, in_flow);
            // Meetings of the set-up are others than those of the flow.
            self.gone = in_flow;
        }
    }

    /// The next instruction on the way from `at` on at which others wait for this stream, after an operation that failed:
    /// what lies between is skipped. `None`: there is none in this repetition.
    #[cold]
    pub(super) fn next_meeting<E>(
        &mut self,
        job: &Job<'_, '_, E>,
        code: &[Instruction],
        mut at: usize,
    ) -> Option<usize> {
        let joins = |instruction: &Instruction| {
            matches!(instruction, Instruction::Meet(_) | Instruction::Post { .. } | Instruction::Take { .. })
        };
        let within = |from: usize, to: usize| code.get(from..to).is_some_and(|body| body.iter().any(joins));
        job.context.rendezvous?;
        loop {
            let instruction = code.get(at)?;
            at = match instruction {
                _ if joins(instruction) => return Some(at),
                // A repetition that holds a meeting goes on from its start; others are given up.
                Instruction::LoopEnd { body, .. }
                | Instruction::TimeEnd { body, .. }
                | Instruction::FileEnd { body, .. }
                    if within(*body as usize, at) =>
                {
                    let next = self.jump(job, instruction, at + 1);
                    if next <= at {
                        return Some(next);
                    }
                    next
                }
                Instruction::LoopBegin { exit, .. } | Instruction::FileBegin { exit, .. }
                    if !within(at, *exit as usize) =>
                {
                    *exit as usize
                }
                Instruction::LoopBegin { .. }
                | Instruction::FileBegin { .. }
                | Instruction::TimeBegin { .. }
                | Instruction::Choose { .. }
                | Instruction::Jump(_) => self.jump(job, instruction, at + 1),
                _ => at + 1,
            };
        }
    }
}

/// Waits until `look` says that there is nothing to wait for.
async fn wait<E: Engine>(job: &Job<'_, '_, E>, bell: &Bell, mut look: impl FnMut() -> Readiness) -> Outcome {
    let Job { engine, context, limits, .. } = job;
    let clock = context.clock;
    loop {
        let seen = bell.rings();
        match look() {
            Readiness::Done => return Outcome::Finished,
            Readiness::Never => return Outcome::Stop(StopReason::Work),
            Readiness::Wait => {}
        }
        let (now, deadline): (Ticks, Ticks) = (clock.now(), limits.deadline());
        if now >= deadline {
            return Outcome::Stop(StopReason::Time);
        }
        // The deadline may be moved while this waits.
        engine.listen(bell, seen, clock, deadline.min(clock.after(now, context.nap_ns))).await;
    }
}
