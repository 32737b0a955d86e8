//! What does not leave with the receive that brought it: replies that are held back, and requests that wait for other clients.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::record;
use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};

use super::Worker;
use crate::disk::Job;
use crate::dispatch::{self, Disposition, LOOK_AGAIN};
use crate::moment::Moment;
use crate::net::connection::Connection;
use crate::net::delayed::{DelayedReplies, Destination};
use crate::net::output::Flushed;
use crate::reply::Reply;
use crate::shared::Shared;

impl Worker {
    /// Handles requests again that wait for other clients.
    pub(super) fn look_again(&mut self) {
        let now = Moment::now();
        for _ in 0..self.waiting.len() {
            let Some(mut waiting) = self.waiting.pop_front() else { return };
            if waiting.due > now.instant {
                self.waiting.push_back(waiting);
                continue;
            }
            let Some((index, mut connection)) = self.take(waiting.token) else { continue };
            let Connection { peer, conversation, .. } = &mut *connection;
            conversation.may_wait = now.instant < waiting.until;
            let mark = record::begin(&mut self.reply.encoder);
            let shared = &self.shared;
            let handled =
                dispatch::handle(shared, peer, conversation, &waiting.message, &mut self.reply, now);
            // Received once, however often it is handled.
            conversation.take_calls();
            if handled == Disposition::Again {
                self.reply.rollback(mark);
                waiting.due = now.instant + LOOK_AGAIN;
                self.waiting.push_back(waiting);
                self.connections[index].connection = Some(connection);
                continue;
            }
            connection.held.resume();
            if handled == Disposition::Send {
                record::end(&mut self.reply.encoder, mark);
            } else if let Disposition::Hold(delay, job) = handled {
                record::end(&mut self.reply.encoder, mark);
                let (reply, to) = (self.reply.split_off(mark), Destination::Connection(waiting.token));
                connection.held.add(&reply);
                hold(&self.shared, self.number, &mut self.delayed, now.instant, (delay, job), to, reply);
                self.reply.rollback(mark);
            } else {
                self.reply.rollback(mark);
            }
            let safe = self.shared.flush();
            if !safe {
                self.reply.clear();
            }
            let sent = connection.output.send(&mut connection.stream, &mut self.reply);
            let open = safe && sent != Flushed::Broken && handled != Disposition::Disconnect;
            self.put_back(index, connection, open);
        }
    }

    /// Sends replies whose time has come.
    pub(super) fn release_delayed(&mut self) {
        let mut count = [0; 8];
        // How often the timer went off does not matter.
        let _ = rustix::io::read(&self.timer, &mut count);
        self.timer_at = None;
        self.look_again();
        let now = Instant::now();
        self.delayed.look(self.shared.disk.as_ref(), self.number, now);
        let mut due: VecDeque<(Destination, Reply)> = std::iter::from_fn(|| self.delayed.pop(now)).collect();
        while let Some((destination, reply)) = due.pop_front() {
            match destination {
                Destination::Datagram(socket, to) => {
                    if let Some(socket) = self.sockets.get(socket) {
                        socket.send(&reply, to);
                    }
                }
                Destination::Connection(token) => {
                    let Some((index, mut connection)) = self.take(token) else { continue };
                    connection.held.remove(&reply);
                    self.reply.append(reply);
                    // Those for the same connection leave together.
                    while let Some((_, next)) = due.pop_front_if(|(to, _)| *to == destination) {
                        connection.held.remove(&next);
                        self.reply.append(next);
                    }
                    let sent = connection.output.send(&mut connection.stream, &mut self.reply);
                    self.put_back(index, connection, sent != Flushed::Broken);
                }
            }
        }
    }

    /// Sets the timer for the first delayed reply or waiting request.
    pub(super) fn set_timer(&mut self) {
        if let Some(disk) = &self.shared.disk {
            self.delayed.look(Some(disk), self.number, Instant::now());
        }
        let due = self.delayed.due().into_iter().chain(self.waiting.front().map(|waiting| waiting.due)).min();
        let Some(due) = due.filter(|due| Some(*due) != self.timer_at) else { return };
        // Zero would turn the timer off.
        let wait = due.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let value = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) };
        let once = Itimerspec { it_interval: Timespec::default(), it_value: value };
        match timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once) {
            Ok(_) => self.timer_at = Some(due),
            Err(error) => log::error!("timer: {error}"),
        }
    }
}

/// Keeps a reply until its time has come and the disk has done its part.
pub(super) fn hold(
    shared: &Shared,
    thread: usize,
    delayed: &mut DelayedReplies,
    now: Instant,
    (delay, job): (Duration, Option<Job>),
    to: Destination,
    reply: Reply,
) {
    match job.filter(|job| shared.disk.as_ref().is_some_and(|disk| disk.hold(*job, thread))) {
        Some(job) => delayed.wait(now, (delay, job), to, reply),
        None => delayed.push(now + delay, to, reply),
    }
}
