//! What operations on opens and locks have locked, and the sequences of 4.0 owners in which they run.

use std::hash::Hasher as _;

use benchmaster_nfs_proto::v4::{Nfsstat4, Opnum};

use super::{Compound, Failure, OpResult};
use crate::handle::FileId;
use crate::reply::ReplyMark;
use crate::state::client::Clients;
use crate::state::file::Files;
use crate::state::owner::{OwnerId, Replay, SeqidCheck};
use crate::state::shards::All;
use crate::state::{ClientId, Stop};

/// What an operation has locked: the part of its file, or in 4.0, where owners have sequences, everything.
pub(super) enum Held<'h, 'a> {
    Part(&'h mut Files),
    All(&'h mut All<'a>, FileId),
}

impl Held<'_, '_> {
    /// What is held on the file.
    pub(super) fn files(&mut self) -> &mut Files {
        match self {
            Self::Part(files) => files,
            Self::All(all, file) => all.files().part(*file),
        }
    }
}

impl Compound<'_> {
    /// The client of an operation that names an owner: that of the session, or in 4.0 the one named, whose lease is
    /// renewed.
    pub(crate) fn client_of(&mut self, clients: &Clients, named: u64) -> Result<ClientId, Failure> {
        if self.minor > 0 {
            return self.client.ok_or(Nfsstat4::OP_NOT_IN_SESSION.into());
        }
        let client = ClientId(named);
        clients.check(client)?;
        clients.renew(client, self.now.instant);
        self.client = Some(client);
        Ok(client)
    }

    /// Renews the lease of a state's client (4.0).
    pub(crate) fn renew(&mut self, all: &mut All<'_>, file: FileId, at: u32) {
        let (clients, files) = all.split();
        if let Some(client) = files.part(file).client_of(at) {
            clients.renew(client, self.now.instant);
            self.client = Some(client);
        }
    }

    /// Runs an operation of 4.0 in its owner's sequence: a repetition gets the reply of before.
    ///
    /// A failed OPEN is repeated only by the same request: some clients (libnfs) do not count it, and send another
    /// OPEN with its sequence number.
    pub(crate) fn in_turn(
        &mut self,
        all: &mut All<'_>,
        owner: OwnerId,
        turn: SeqidCheck,
        seqid: u32,
        op: Opnum,
        run: impl FnOnce(&mut Self, &mut All<'_>) -> OpResult,
    ) -> OpResult {
        let request = if op == Opnum::OPEN { self.fingerprint() } else { 0 };
        if let SeqidCheck::Replay(replay) = turn
            && (replay.status == Nfsstat4::OK || replay.request == request)
        {
            return self.replay(&replay);
        }
        let mark = self.reply.mark();
        let outcome = run(self, all);
        let replay = self.replay_of(op, request, mark, &outcome);
        all.files().record_turn(owner, seqid, replay, self.now.instant);
        outcome
    }

    /// The reply of before, once more.
    pub(crate) fn replay(&mut self, replay: &Replay) -> OpResult {
        self.server.repeats();
        self.reply.encoder.raw(&replay.body);
        if let Some(file) = replay.file {
            self.set_current(file);
        }
        match replay.status {
            Nfsstat4::OK => Ok(()),
            status => Err(Failure { status, keep_body: !replay.body.is_empty() }),
        }
    }

    /// What has to be kept of an operation whose result starts at `mark`.
    pub(crate) fn replay_of(&self, op: Opnum, request: u64, mark: ReplyMark, outcome: &OpResult) -> Replay {
        let (status, body) = match outcome {
            Ok(()) => (Nfsstat4::OK, self.reply.copy_since(mark)),
            Err(failure) if failure.keep_body => (failure.status, self.reply.copy_since(mark)),
            Err(failure) => (failure.status, Vec::new()),
        };
        let file = if op == Opnum::OPEN && status == Nfsstat4::OK { self.current } else { None };
        Replay { op, request, status, body, file }
    }

    /// Tells the request from others.
    fn fingerprint(&self) -> u64 {
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write(self.args);
        hasher.finish()
    }
}

/// The status for what could not be cleared away. Who holds as much as it may comes back when it holds less.
pub(crate) fn refused(minor: u32, stop: Stop) -> Failure {
    match stop {
        Stop::Status(status) => status.into(),
        Stop::Room(_) if minor == 0 => Nfsstat4::RESOURCE.into(),
        Stop::Room(_) | Stop::Courtesy(_) => Nfsstat4::DELAY.into(),
    }
}
