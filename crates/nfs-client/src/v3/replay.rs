//! What to make of a request whose repetition failed, although the first transmission may have been carried out.
//!
//! A request that is sent again has the same transaction number, so that a server answers it from its cache of
//! replies. A server that restarted has lost that cache: if it had carried out the request before, it says to the
//! repetition that the name exists already, or not any more. The protocol cannot tell this from a request that failed
//! in the first place. The client takes the operation as done only if
//!
//! * the request was sent more than once, and its connection broke between;
//! * the server did restart: COMMIT of a file written before brings another verifier than the WRITE did, and no
//!   connection had been re-established between that and the request (nothing to be compared: the error stands);
//! * things are as the operation would have left them: the name is a directory of this user with the mode asked for, a
//!   symbolic link with that content, a link to that file, a file where it was to be renamed to;
//! * that came to be after the request was first sent, as far as the server's times show: every such operation sets the
//!   time of the last change of object and directory, so the object must not have changed earlier, before the directory's
//!   last change, than the request is old; nor at any time that an answer had shown before the request was sent.
//!
//! Where the server is known to have restarted, but not whether before the request or after, and for REMOVE and
//! RMDIR, after which there is nothing to look at, whether the operation was carried out is unknown, and
//! [`NfsError::StateLost`] says so. An object that somebody else made at that very time, in the same way and for the
//! same user, cannot be distinguished. Errors of version 2, which has no verifiers, always stand. Exclusive CREATE
//! needs nothing of this: the server knows the repetition by its verifier.

use std::future::Future;
use std::time::{Duration, Instant};

use super::{Client, File};
use crate::counters::Event;
use crate::error::NfsError;
use crate::protocol::{NfsResult, Protocol};
use crate::rpc::History;
use crate::types::{Attributes, Handle, Range, Time, Verifier};

/// A server's instance, as its answer to a WRITE or COMMIT showed it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    file: Handle,
    verifier: Verifier,
    /// [`Rpc::generations`](crate::rpc::Rpc::generations) then.
    generations: u64,
}

/// Whether the server restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Restart {
    /// Not that it is known.
    No,
    /// After the request was first sent, or while that was on its way.
    Since,
    /// Perhaps before the request was first sent.
    Sometime,
}

/// The reply is lost with the server's memory of it.
const UNKNOWN: NfsError = NfsError::StateLost("the reply to a change, in a restart of the server");

/// A request that might be carried out without its reply being seen.
#[derive(Debug)]
pub(super) struct Doubt {
    pub(super) history: History,
    begun: Instant,
    generations: u64,
    /// The latest time of the server that was known.
    known: Time,
}

impl Doubt {
    pub(super) fn new(client: &Client) -> Self {
        let rpc = client.export.rpc();
        Self {
            history: History::default(),
            begun: rpc.reactor().now(),
            generations: rpc.generations(),
            known: client.latest.get(),
        }
    }

    /// Whether `result` is an error that a repetition may have brought about.
    fn about<T>(&self, result: &NfsResult<T>, expected: impl Fn(&NfsError) -> bool) -> bool {
        self.history.reconnected() && self.history.transmissions() > 1 && result.as_ref().is_err_and(expected)
    }

    /// The result, or instead of an error what `look` finds to have been carried out: asked only if a repetition may have
    /// brought about the error, and the server restarted since the request was first sent.
    async fn resolve<T>(
        &self,
        client: &Client,
        result: NfsResult<T>,
        expected: impl Fn(&NfsError) -> bool,
        look: impl Future<Output = NfsResult<Option<T>>>,
    ) -> NfsResult<T> {
        if !self.about(&result, expected) {
            return result;
        }
        match client.restart(self).await {
            Ok(Restart::No) | Err(_) => return result,
            Ok(Restart::Sometime) => return Err(UNKNOWN),
            Ok(Restart::Since) => {}
        }
        let Ok(Some(done)) = look.await else { return result };
        client.export.counters().event(Event::ReplayAccepted);
        Ok(done)
    }

    /// What has the name, if it can have changed since the request was first sent.
    async fn recent(
        &self,
        client: &Client,
        place: (&Handle, &[u8]),
    ) -> NfsResult<Option<(Handle, Attributes)>> {
        let since = client.export.rpc().reactor().now().saturating_duration_since(self.begun);
        self.within(client, place, since).await
    }

    /// What has the name, if it changed no longer than `time` before its directory did, and later than all that was known
    /// before the request was sent.
    async fn within(
        &self,
        client: &Client,
        (directory, name): (&Handle, &[u8]),
        time: Duration,
    ) -> NfsResult<Option<(Handle, Attributes)>> {
        let (handle, attributes) = client.lookup(directory, name).await?;
        let attributes = match attributes {
            Some(attributes) => attributes,
            None => client.getattr(&handle).await?,
        };
        let parent = client.getattr(directory).await?;
        let recent = attributes.changed > self.known && is_within(attributes.changed, parent.modified, time);
        Ok(recent.then_some((handle, attributes)))
    }

    /// Result of an operation that makes `name`; where it seems to exist already, `is` looks whether it is what was to
    /// be made. `done` makes the result of what was found.
    pub(super) async fn of_making<T>(
        &self,
        client: &Client,
        result: NfsResult<T>,
        name: (&Handle, &[u8]),
        is: impl AsyncFn(&Handle, &Attributes) -> NfsResult<bool>,
        done: impl Fn(Handle) -> T,
    ) -> NfsResult<T> {
        let look = async {
            let Some((handle, attributes)) = self.recent(client, name).await? else { return Ok(None) };
            Ok(is(&handle, &attributes).await?.then(|| done(handle)))
        };
        self.resolve(client, result, NfsError::is_present, look).await
    }

    /// Result of a RENAME; where the old name seems not to exist, looks whether the file is at the new one.
    pub(super) async fn of_renaming(
        &self,
        client: &Client,
        result: NfsResult<()>,
        from: (&Handle, &[u8]),
        to: (&Handle, &[u8]),
    ) -> NfsResult<()> {
        let look = async {
            match client.lookup(from.0, from.1).await {
                Err(error) if error.is_absent() => {}
                Ok(_) | Err(_) => return Ok(None),
            }
            // A rename changes the file and both directories at the same instant: one that changed later says nothing.
            Ok(self.within(client, to, Duration::ZERO).await?.map(drop))
        };
        self.resolve(client, result, NfsError::is_absent, look).await
    }

    /// Result of REMOVE or RMDIR.
    pub(super) async fn of_removing(&self, client: &Client, result: NfsResult<()>) -> NfsResult<()> {
        if !self.about(&result, NfsError::is_absent) {
            return result;
        }
        match client.restart(self).await {
            Ok(Restart::Since | Restart::Sometime) => Err(UNKNOWN),
            Ok(Restart::No) | Err(_) => result,
        }
    }
}

impl Client {
    /// Notes the server's instance, from an answer to WRITE or COMMIT.
    pub(super) fn saw(&self, file: &Handle, verifier: Verifier) {
        let generations = self.export.rpc().generations();
        let mut seen = self.seen.borrow_mut();
        if seen.as_ref().is_none_or(|seen| (seen.verifier, seen.generations) != (verifier, generations)) {
            *seen = Some(Box::new(Seen { file: *file, verifier, generations }));
        }
    }

    /// Whether the server is known to have restarted, as far as it is known.
    async fn restart(&self, doubt: &Doubt) -> NfsResult<Restart> {
        let seen = self.seen.borrow().as_deref().copied();
        let Some(seen) = seen else { return Ok(Restart::No) };
        let verifier = self.commit(&File { handle: seen.file }, Range::WHOLE).await?;
        Ok(if verifier == seen.verifier {
            Restart::No
        } else if seen.generations == doubt.generations {
            Restart::Since
        } else {
            Restart::Sometime
        })
    }
}

/// Whether `time` is not earlier before `reference` than `by`: whether an object that changed then, in a directory that
/// did at `reference`, can have changed since the request was first sent, that long ago.
fn is_within(time: Time, reference: Time, by: Duration) -> bool {
    let nanos = |time: Time| i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
    nanos(reference) - nanos(time) <= by.as_nanos().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_compared_across_seconds() {
        let time = |seconds, nanos| Time { seconds, nanos };
        let second = Duration::from_secs(1);
        assert!(is_within(time(9, 500), time(10, 500), second));
        assert!(!is_within(time(9, 499), time(10, 500), second));
        assert!(is_within(time(11, 0), time(10, 0), Duration::ZERO));
        assert!(!is_within(time(9, 999_999_999), time(10, 0), Duration::ZERO));
    }
}
