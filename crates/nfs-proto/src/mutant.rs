//! Rules of the client and the server of this project that can be broken on purpose, each a mistake that real ones had: what
//! shows that an oracle notices. Only programs with debug assertions can break them.

#[cfg(debug_assertions)]
use std::cell::Cell;

macro_rules! mutants {
    ($($name:ident = $about:literal,)+) => {
        /// A rule that is broken.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "`about` says what each is")]
        pub enum Mutant { $($name,)+ }

        impl Mutant {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// What is wrong.
            pub fn about(self) -> &'static str {
                match self { $(Self::$name => $about,)+ }
            }
        }
    };
}

mutants! {
    RepliesNotKept = "server, v3: a call that comes twice is executed twice",
    ReplyOfAnother = "server, v3: a reply is found by the number of the call alone",
    SessionExecutesAgain = "server, v4.1: a request that comes again on its slot is executed again",
    SequenceUnchecked = "server, v4.1: any sequence number of a slot is taken",
    SameVerifier = "server: the verifier of WRITE and COMMIT survives a restart",
    CommitDoesNothing = "server: COMMIT answers without making anything stable",
    UnstableIsCalledStable = "server: WRITE with UNSTABLE is answered as FILE_SYNC",
    LocksInGrace = "server, v4: new locks are given while others may reclaim theirs",
    ReclaimAfterGrace = "server, v4: locks and opens are reclaimed at any time",
    LocksAlwaysGranted = "server, v4: a lock is given although another has it",
    NlmAlwaysGranted = "server, v3: a lock is given although another has it",
    UnlockForgotten = "server, v4: LOCKU is answered and unlocks nothing",
    LeasesNeverEnd = "server, v4: what a silent client holds is never given up",
    LeasesEndEarly = "server, v4: a lease ends after a tenth of its time",
    AnyStateid = "server, v4: data are written with a stateid that names nothing",
    RecallNotAwaited = "server, v4: a conflicting open goes on before the delegation is returned",
    RecallNotSent = "server, v4: a delegation is never recalled and never revoked",
    DelegationBesideWriter = "server, v4: a delegation is given although others have the file open",
    UncheckedTruncates = "server, v3: CREATE of a file that exists empties it",
    RenameToItself = "server: a RENAME to the same name removes the file",
    TailReturns = "server: what a truncation cut off comes back when the file grows",
    HalfWritten = "server: half of a WRITE is stored, all of it is answered",
    ChangeStands = "server: a WRITE changes neither the change attribute nor the times",
    SizeOfBefore = "server: attributes after a WRITE are those of before it",
    RestartForgetsClients = "server: no client may reclaim after a restart",
    VerifierIgnored = "client: another verifier of COMMIT is not noticed",
    LostLocksIgnored = "client, v4: data are written although the locks were lost",
    LocksNotReclaimed = "client, v4: locks are not reclaimed after a restart",
    DelegationBeforeData = "client, v4: a delegation is returned before the data that are dirty",
    CloseWithoutFlush = "client: dirty data are not written when a file is closed",
    OpenWithoutLook = "client: an open does not ask whether the file has changed",
    NewNumberOnResend = "client: a call that is sent again gets a new number",
    LeaseNotRenewed = "client, v4: the lease is not renewed",
    RewriteForgetsLast = "client: of what is written again after a restart the last piece is left out",
    LockWithoutLook = "client: what is cached is taken for right after a lock was given",
    WriteErrorSwallowed = "server: a WRITE that the disk fails is answered as done",
    CommitErrorSwallowed = "server: a COMMIT that the disk fails is answered as done",
    FullDiskSwallowed = "server: a WRITE for which there is no room is answered as done",
    VerifierStaysAfterError = "server: the verifier stays when a COMMIT loses data",
    RecallNotRepeated = "server, v4: a callback whose connection breaks is not sent again",
    ShortWriteCounted = "client: a WRITE that was done in part is counted in full",
    CommitErrorIgnored = "client: a COMMIT that fails is taken for done",
    WriteBackErrorForgotten = "client: what write-back in the background could not write is forgotten",
    RecallIgnored = "client, v4: a recall is answered, and the delegation is not returned",
    KeptLocksNotTaken = "client, v4: locks kept under a delegation are not taken to the server when it is returned",
    KeptOpensNotReclaimed = "client, v4: what is open only under a delegation is not reclaimed after a restart",
    RevokedUnnoticed = "client, v4: locks kept under a delegation that was revoked are taken for held",
    ReclaimNotComplete = "client, v4.1: RECLAIM_COMPLETE is not sent after a restart",
}

#[cfg(debug_assertions)]
thread_local! {
    static BROKEN: Cell<Option<Mutant>> = const { Cell::new(None) };
}

/// Breaks a rule in this thread from now on, or none. Does nothing without debug assertions.
pub fn break_rule(rule: Option<Mutant>) {
    #[cfg(debug_assertions)]
    BROKEN.set(rule);
    #[cfg(not(debug_assertions))]
    let _ = rule;
}

/// Whether this rule is broken.
#[inline]
pub fn is_broken(rule: Mutant) -> bool {
    #[cfg(debug_assertions)]
    return BROKEN.get() == Some(rule);
    #[cfg(not(debug_assertions))]
    {
        let _ = rule;
        false
    }
}
