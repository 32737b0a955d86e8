//! Status, operation and callback operation numbers.

xdr_code! {
    /// Status of an operation or compound (`nfsstat4`).
    pub struct Nfsstat4("NFS4ERR_") {
        /// Done.
        OK = 0,
        /// Caller is not privileged.
        PERM = 1,
        /// No such file or directory.
        NOENT = 2,
        /// Hard I/O error.
        IO = 5,
        /// No such device.
        NXIO = 6,
        /// Access denied.
        ACCESS = 13,
        /// File exists.
        EXIST = 17,
        /// Different file systems.
        XDEV = 18,
        /// Not a directory.
        NOTDIR = 20,
        /// Is a directory.
        ISDIR = 21,
        /// Invalid argument.
        INVAL = 22,
        /// File would exceed the server's maximum.
        FBIG = 27,
        /// No space on the file system.
        NOSPC = 28,
        /// Read-only file system.
        ROFS = 30,
        /// Too many hard links.
        MLINK = 31,
        /// Name exceeds the server's maximum.
        NAMETOOLONG = 63,
        /// Directory is not empty.
        NOTEMPTY = 66,
        /// Hard quota reached.
        DQUOT = 69,
        /// File no longer exists.
        STALE = 70,
        /// Illegal filehandle.
        BADHANDLE = 10001,
        /// READDIR cookie is stale.
        BAD_COOKIE = 10003,
        /// Operation not supported.
        NOTSUPP = 10004,
        /// Response limit exceeded.
        TOOSMALL = 10005,
        /// Undefined server error.
        SERVERFAULT = 10006,
        /// Type is invalid for CREATE.
        BADTYPE = 10007,
        /// Busy: try again later.
        DELAY = 10008,
        /// NVERIFY: attributes are the same.
        SAME = 10009,
        /// Lock is held by another owner.
        DENIED = 10010,
        /// Lease has expired.
        EXPIRED = 10011,
        /// I/O failed because of a lock.
        LOCKED = 10012,
        /// Server is in its grace period.
        GRACE = 10013,
        /// Filehandle has expired.
        FHEXPIRED = 10014,
        /// Share reservation conflicts.
        SHARE_DENIED = 10015,
        /// Wrong security flavour.
        WRONGSEC = 10016,
        /// Client id is in use by another principal.
        CLID_INUSE = 10017,
        /// Server is out of resources (4.0 only).
        RESOURCE = 10018,
        /// File system was moved.
        MOVED = 10019,
        /// Current filehandle is not set.
        NOFILEHANDLE = 10020,
        /// Minor version is not supported.
        MINOR_VERS_MISMATCH = 10021,
        /// Client id is not of this server instance.
        STALE_CLIENTID = 10022,
        /// Stateid is not of this server instance.
        STALE_STATEID = 10023,
        /// Stateid has an old seqid.
        OLD_STATEID = 10024,
        /// No such stateid.
        BAD_STATEID = 10025,
        /// Owner's request is out of sequence.
        BAD_SEQID = 10026,
        /// VERIFY: attributes differ.
        NOT_SAME = 10027,
        /// Overlapping lock range.
        LOCK_RANGE = 10028,
        /// Is a symbolic link.
        SYMLINK = 10029,
        /// No saved filehandle.
        RESTOREFH = 10030,
        /// A file system moved.
        LEASE_MOVED = 10031,
        /// Attribute not supported.
        ATTRNOTSUPP = 10032,
        /// Reclaim outside of grace.
        NO_GRACE = 10033,
        /// Nothing to reclaim.
        RECLAIM_BAD = 10034,
        /// Reclaim conflicts.
        RECLAIM_CONFLICT = 10035,
        /// XDR does not decode.
        BADXDR = 10036,
        /// Locks are held.
        LOCKS_HELD = 10037,
        /// Open mode does not permit the I/O.
        OPENMODE = 10038,
        /// Owner name does not translate.
        BADOWNER = 10039,
        /// UTF-8 character not supported.
        BADCHAR = 10040,
        /// Name not supported.
        BADNAME = 10041,
        /// Lock range not supported.
        BAD_RANGE = 10042,
        /// No atomic upgrade or downgrade.
        LOCK_NOTSUPP = 10043,
        /// Undefined operation.
        OP_ILLEGAL = 10044,
        /// Locks would deadlock.
        DEADLOCK = 10045,
        /// An open file blocks the operation.
        FILE_OPEN = 10046,
        /// State was revoked by an administrator.
        ADMIN_REVOKED = 10047,
        /// Callback path is down.
        CB_PATH_DOWN = 10048,
        /// Bad I/O mode.
        BADIOMODE = 10049,
        /// Bad layout.
        BADLAYOUT = 10050,
        /// Bad digest of SET_SSV.
        BAD_SESSION_DIGEST = 10051,
        /// No such session.
        BADSESSION = 10052,
        /// Slot beyond the table.
        BADSLOT = 10053,
        /// RECLAIM_COMPLETE was done before.
        COMPLETE_ALREADY = 10054,
        /// Connection is not bound to the session.
        CONN_NOT_BOUND_TO_SESSION = 10055,
        /// The delegation is wanted already.
        DELEG_ALREADY_WANTED = 10056,
        /// Requests are outstanding on the back channel.
        BACK_CHAN_BUSY = 10057,
        /// Layout temporarily unavailable.
        LAYOUTTRYLATER = 10058,
        /// No layouts for this file.
        LAYOUTUNAVAILABLE = 10059,
        /// No layout matches the recall.
        NOMATCHING_LAYOUT = 10060,
        /// A recall conflicts.
        RECALLCONFLICT = 10061,
        /// Layout type is not known.
        UNKNOWN_LAYOUTTYPE = 10062,
        /// Unexpected sequence id.
        SEQ_MISORDERED = 10063,
        /// SEQUENCE is not the first operation.
        SEQUENCE_POS = 10064,
        /// Request is too big.
        REQ_TOO_BIG = 10065,
        /// Reply is too big.
        REP_TOO_BIG = 10066,
        /// Reply is too big for the reply cache.
        REP_TOO_BIG_TO_CACHE = 10067,
        /// Retry of a request whose reply was not cached.
        RETRY_UNCACHED_REP = 10068,
        /// Retry or recovery is too hard.
        UNSAFE_COMPOUND = 10069,
        /// Too many operations in the compound.
        TOO_MANY_OPS = 10070,
        /// Operation needs SEQUENCE before it.
        OP_NOT_IN_SESSION = 10071,
        /// Hash algorithm not supported.
        HASH_ALG_UNSUPP = 10072,
        /// Client id has state.
        CLIENTID_BUSY = 10074,
        /// I/O to a hole of a sparse layout.
        PNFS_IO_HOLE = 10075,
        /// Retry differs from the original request.
        SEQ_FALSE_RETRY = 10076,
        /// Highest slot of the request is bad.
        BAD_HIGH_SLOT = 10077,
        /// New request on a dead session.
        DEADSESSION = 10078,
        /// Encryption algorithm not supported.
        ENCR_ALG_UNSUPP = 10079,
        /// I/O without a layout.
        PNFS_NO_LAYOUT = 10080,
        /// Operation must be alone in its compound.
        NOT_ONLY_OP = 10081,
        /// Done with a wrong credential.
        WRONG_CRED = 10082,
        /// Object has a wrong type.
        WRONG_TYPE = 10083,
        /// No directory delegation.
        DIRDELEG_UNAVAIL = 10084,
        /// Callback rejected the delegation.
        REJECT_DELEG = 10085,
        /// Layout was asked for before another was returned.
        RETURNCONFLICT = 10086,
        /// Delegation or layout was revoked.
        DELEG_REVOKED = 10087,
        /// Server-to-server copy not supported.
        PARTNER_NOTSUPP = 10088,
        /// Server-to-server copy not authorised.
        PARTNER_NO_AUTH = 10089,
        /// Arm of the union not supported.
        UNION_NOTSUPP = 10090,
        /// Destination does not allow the copy.
        OFFLOAD_DENIED = 10091,
        /// Label format not supported.
        WRONG_LFS = 10092,
        /// Label is incorrect.
        BADLABEL = 10093,
        /// Copy requirements are not met.
        OFFLOAD_NO_REQS = 10094,
        /// No such extended attribute (RFC 8276).
        NOXATTR = 10095,
        /// Value of an extended attribute is too big (RFC 8276).
        XATTR2BIG = 10096,
    }
    /// Operation number (`nfs_opnum4`).
    pub struct Opnum("OP_") {
        /// Checks access rights.
        ACCESS = 3,
        /// Closes an open.
        CLOSE = 4,
        /// Makes written data stable.
        COMMIT = 5,
        /// Creates an object that is no regular file.
        CREATE = 6,
        /// Purges delegations that await recovery.
        DELEGPURGE = 7,
        /// Returns a delegation.
        DELEGRETURN = 8,
        /// Reads attributes.
        GETATTR = 9,
        /// Reads the current filehandle.
        GETFH = 10,
        /// Makes a hard link.
        LINK = 11,
        /// Takes a byte-range lock.
        LOCK = 12,
        /// Tests for a lock.
        LOCKT = 13,
        /// Releases a lock.
        LOCKU = 14,
        /// Looks up a name.
        LOOKUP = 15,
        /// Goes to the parent directory.
        LOOKUPP = 16,
        /// Goes on if attributes differ.
        NVERIFY = 17,
        /// Opens a regular file.
        OPEN = 18,
        /// Opens the named attribute directory.
        OPENATTR = 19,
        /// Confirms an open (4.0).
        OPEN_CONFIRM = 20,
        /// Reduces access of an open.
        OPEN_DOWNGRADE = 21,
        /// Sets the current filehandle.
        PUTFH = 22,
        /// Sets the public filehandle.
        PUTPUBFH = 23,
        /// Sets the root filehandle.
        PUTROOTFH = 24,
        /// Reads data.
        READ = 25,
        /// Reads a directory.
        READDIR = 26,
        /// Reads a symbolic link.
        READLINK = 27,
        /// Removes a name.
        REMOVE = 28,
        /// Renames.
        RENAME = 29,
        /// Renews the lease (4.0).
        RENEW = 30,
        /// Restores the saved filehandle.
        RESTOREFH = 31,
        /// Saves the current filehandle.
        SAVEFH = 32,
        /// Asks for security of a name.
        SECINFO = 33,
        /// Sets attributes.
        SETATTR = 34,
        /// Introduces a client (4.0).
        SETCLIENTID = 35,
        /// Confirms a client (4.0).
        SETCLIENTID_CONFIRM = 36,
        /// Goes on if attributes are the same.
        VERIFY = 37,
        /// Writes data.
        WRITE = 38,
        /// Forgets a lock owner (4.0).
        RELEASE_LOCKOWNER = 39,
        /// Changes the back channel.
        BACKCHANNEL_CTL = 40,
        /// Binds a connection to a session.
        BIND_CONN_TO_SESSION = 41,
        /// Introduces a client (4.1).
        EXCHANGE_ID = 42,
        /// Creates a session.
        CREATE_SESSION = 43,
        /// Destroys a session.
        DESTROY_SESSION = 44,
        /// Frees a stateid without locks.
        FREE_STATEID = 45,
        /// Asks for a directory delegation.
        GET_DIR_DELEGATION = 46,
        /// Asks for a pNFS device.
        GETDEVICEINFO = 47,
        /// Asks for all pNFS devices (4.1 only).
        GETDEVICELIST = 48,
        /// Commits writes of a layout.
        LAYOUTCOMMIT = 49,
        /// Asks for a layout.
        LAYOUTGET = 50,
        /// Returns a layout.
        LAYOUTRETURN = 51,
        /// Asks for security of an object.
        SECINFO_NO_NAME = 52,
        /// Takes a slot of a session.
        SEQUENCE = 53,
        /// Changes the secret state verifier.
        SET_SSV = 54,
        /// Tests stateids.
        TEST_STATEID = 55,
        /// Asks for a delegation.
        WANT_DELEGATION = 56,
        /// Destroys a client id.
        DESTROY_CLIENTID = 57,
        /// Ends reclaiming.
        RECLAIM_COMPLETE = 58,
        /// Reserves space.
        ALLOCATE = 59,
        /// Copies a range.
        COPY = 60,
        /// Announces a copy by another server.
        COPY_NOTIFY = 61,
        /// Punches a hole.
        DEALLOCATE = 62,
        /// Gives I/O hints.
        IO_ADVISE = 63,
        /// Reports errors of a layout.
        LAYOUTERROR = 64,
        /// Reports statistics of a layout.
        LAYOUTSTATS = 65,
        /// Stops an asynchronous copy.
        OFFLOAD_CANCEL = 66,
        /// Asks for progress of a copy.
        OFFLOAD_STATUS = 67,
        /// Reads data and holes.
        READ_PLUS = 68,
        /// Finds data or a hole.
        SEEK = 69,
        /// Writes a pattern.
        WRITE_SAME = 70,
        /// Clones a range.
        CLONE = 71,
        /// Reads an extended attribute (RFC 8276).
        GETXATTR = 72,
        /// Sets an extended attribute.
        SETXATTR = 73,
        /// Lists extended attributes.
        LISTXATTRS = 74,
        /// Removes an extended attribute.
        REMOVEXATTR = 75,
        /// Result number for operations that do not exist.
        ILLEGAL = 10044,
    }
    /// Callback operation number (`nfs_cb_opnum4`).
    pub struct CbOpnum("OP_CB_") {
        /// Asks for attributes of a write-delegated file.
        GETATTR = 3,
        /// Recalls a delegation.
        RECALL = 4,
        /// Recalls layouts.
        LAYOUTRECALL = 5,
        /// Notifies of changes in a directory.
        NOTIFY = 6,
        /// Offers a delegation.
        PUSH_DELEG = 7,
        /// Asks for some objects back.
        RECALL_ANY = 8,
        /// Says that resources for delegations or layouts are available.
        RECALLABLE_OBJ_AVAIL = 9,
        /// Asks for slots back.
        RECALL_SLOT = 10,
        /// Takes a slot of the back channel.
        SEQUENCE = 11,
        /// Cancels wants.
        WANTS_CANCELLED = 12,
        /// Says that a lock may be available.
        NOTIFY_LOCK = 13,
        /// Notifies of changed devices.
        NOTIFY_DEVICEID = 14,
        /// Reports the end of an asynchronous copy.
        OFFLOAD = 15,
        /// Result number for operations that do not exist.
        ILLEGAL = 10044,
    }
}

impl Nfsstat4 {
    /// Whether a request of 4.0 with this result leaves its owner's sequence number as it was (RFC 7530 §9.1.7).
    pub fn keeps_seqid(self) -> bool {
        matches!(
            self,
            Self::STALE_CLIENTID
                | Self::STALE_STATEID
                | Self::BAD_STATEID
                | Self::BAD_SEQID
                | Self::BADXDR
                | Self::RESOURCE
                | Self::NOFILEHANDLE
                | Self::MOVED
        )
    }
}

impl Opnum {
    /// First minor version that has the operation.
    pub const fn min_minor(self) -> u32 {
        match self.0 {
            40..=58 => 1,
            59..=75 => 2,
            _ => 0,
        }
    }

    /// Last minor version that has the operation; in later ones it is mandatory not to implement.
    pub const fn max_minor(self) -> u32 {
        match self {
            Self::OPEN_CONFIRM
            | Self::RENEW
            | Self::SETCLIENTID
            | Self::SETCLIENTID_CONFIRM
            | Self::RELEASE_LOCKOWNER => 0,
            Self::GETDEVICELIST => 1,
            _ => u32::MAX,
        }
    }
}

impl CbOpnum {
    /// First minor version that has the callback operation.
    pub const fn min_minor(self) -> u32 {
        match self.0 {
            5..=14 => 1,
            15 => 2,
            _ => 0,
        }
    }
}
