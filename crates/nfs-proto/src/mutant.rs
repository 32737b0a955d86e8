//! Rules of the client and the server of this project that can be broken on purpose, each a mistake that real ones had: what
//! shows that an oracle notices. Only programs with debug assertions can break them.

#[cfg(debug_assertions)]
use std::cell::Cell;

macro_rules! mutants {
    ($($name:ident = $about:literal,)+; $($plain:ident = $what:literal,)+) => {
        /// A rule that is broken.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "`about` says what each is")]
        pub enum Mutant { $($name,)+ $($plain,)+ }

        impl Mutant {
            /// Those that show under faults.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];
            /// Those of the server that its answers show, without a fault.
            pub const PLAIN: &'static [Self] = &[$(Self::$plain,)+];

            /// What is wrong.
            pub fn about(self) -> &'static str {
                match self { $(Self::$name => $about,)+ $(Self::$plain => $what,)+ }
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
    ;
    DotIsAName = "server, v4: `.` and `..` are taken as names",
    EmptyNameMissing = "server, v4: a name without characters is answered as missing",
    LongNameMissing = "server, v4: a name that is too long is answered as missing",
    FileTypeInvalid = "server, v4: CREATE of a file is answered as an invalid argument",
    DirectoryLinkInvalid = "server, v4: LINK of a directory is answered as an invalid argument",
    FullDirectoryRemoved = "server: a directory with entries is removed",
    MoveBelowItselfExists = "server: RENAME of a directory into itself is answered as a name that exists",
    ReservedCookies = "server, v4: READDIR takes the reserved cookies",
    PageOverflows = "server, v4: READDIR gives more bytes than were asked for",
    ChangeInfoSwapped = "server, v4: change information has before and after swapped",
    VerifyAgrees = "server, v4: VERIFY is always the same",
    NverifyDiffers = "server, v4: NVERIFY always differs",
    BadHandleMissing = "server, v4: a handle that is none is answered as missing",
    SymlinkIsNoDirectory = "server, v4: LOOKUP in a symbolic link is answered as in a file",
    RootHasParent = "server, v4: the root is its own parent",
    AccessGrantsAll = "server, v4: ACCESS says that everybody may everything",
    EndNeverSaid = "server, v4: READ never gives the end of the file",
    EndAlwaysSaid = "server, v4: READ always gives the end of the file",
    CommitHasOtherVerifier = "server, v4: COMMIT gives another verifier than WRITE",
    DirectoryReadInvalid = "server, v4: READ of a directory is answered as an invalid argument",
    UnsupportedIsInvalid = "server, v4: SETATTR of what is not supported is answered as an invalid argument",
    ReadOnlyIsUnsupported = "server, v4: SETATTR of what can only be read is answered as not supported",
    NanosecondsUnchecked = "server, v4: any number of nanoseconds is taken",
    ErrorsCompared = "server, v4: VERIFY compares rdattr_error",
    WriteOnlyRead = "server, v4: GETATTR is asked for what can only be set, and leaves it out",
    GuardedIsUnchecked = "server, v4: GUARDED creation opens what is there",
    ExclusiveVerifierIgnored = "server, v4: exclusive creation takes any verifier for its own",
    OpenKeepsContent = "server, v4: OPEN with size 0 leaves the content",
    OpenUnchecked = "server, v4: OPEN does not ask for rights",
    DenyIgnored = "server, v4: what is denied is opened",
    DowngradeUnchecked = "server, v4: OPEN_DOWNGRADE takes any modes",
    OldStateidTaken = "server, v4: a stateid with an earlier number is taken",
    OldStateidIsBad = "server, v4: a stateid with an earlier number is answered as bad",
    DenyOpenToAnonymous = "server, v4: data are read and written without a stateid against a deny",
    WriteByReader = "server, v4: an open for reading writes",
    StateidOfAnother = "server, v4.1: a stateid of another client is taken",
    LockByReader = "server, v4: an open for reading locks for writing",
    FreeOfHeldLocks = "server, v4.1: FREE_STATEID of what is held is answered as done",
    MisorderedIsBadSlot = "server, v4.1: a sequence number out of order is answered as a bad slot",
    RequestSizeUnchecked = "server, v4.1: requests may be larger than the session allows",
    OperationsUnchecked = "server, v4.1: compounds may have more operations than the session allows",
    NotAlone = "server, v4.1: what must be alone in a compound need not be",
    OutOfSessionInvalid = "server, v4.1: an operation without a session is answered as an invalid argument",
    LaterSequenceInvalid = "server, v4.1: SEQUENCE that is not first is answered as an invalid argument",
    ClientFlagsUnchecked = "server, v4.1: EXCHANGE_ID takes any flags",
    UpdateMakesClient = "server, v4.1: an update of a client that is not there makes one",
    AnyConfirmation = "server, v4.0: SETCLIENTID_CONFIRM takes any verifier",
    OwnersUncounted = "server, v4.0: requests of owners are taken in any order",
    OwnersNotReplayed = "server, v4.0: a request of an owner that comes again is refused",
    LinkChangesNothing = "server: LINK leaves the change attribute of the file",
    AnyContentIsData = "server, v4.2: SEEK takes any kind of content",
    XattrReplaceCreates = "server, v4.2: SETXATTR that replaces creates",
    XattrCreateReplaces = "server, v4.2: SETXATTR that creates replaces",
    ClientRestartIgnored = "server, v3: SM_NOTIFY and FREE_ALL of a host free none of its locks",
    GuardIgnored = "server, v3: SETATTR does not look at its guard",
    AnybodySetsModes = "server: anybody sets the mode of a file",
    RightsUnchecked = "server: directories are searched and changed without rights",
    ChangesNotNotified = "server, v4.1: holders of directories get no notifications of changes",
    NotificationsUnasked = "server, v4.1: delegations of directories have notifications that were not asked for",
    ExistRecalls = "server, v4.1: a name that is taken recalls the delegation of its directory",
    SlotsNotRecalled = "server, v4.1: fewer slots are to be used, and clients are not called for it",
    OwnerOfAddress = "server, v4.1: each address is another server owner",
    SessionOfAddress = "server, v4.1: a session cannot be used over another address",
    AclUnchecked = "server, v4: access control lists are kept and do not count",
    LastEntryDecides = "server, v4: of an access control list the last entry decides",
    ModeLeavesAcl = "server, v4: a new mode leaves the access control list as it is",
    AclNotInherited = "server, v4: new files inherit no access control list",
    InheritanceGoesOn = "server, v4: entries that are not to be passed on are inherited below",
    FileEntriesBindDirectories = "server, v4: entries for new files count for new directories, too",
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

/// The rule that is broken in this thread, for threads that it starts.
pub fn broken() -> Option<Mutant> {
    #[cfg(debug_assertions)]
    return BROKEN.get();
    #[cfg(not(debug_assertions))]
    None
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
