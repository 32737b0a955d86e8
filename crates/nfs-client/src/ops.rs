//! Names of what is counted apart: the procedures of every RPC program, and for NFSv4 the operation that a compound is
//! for, named as Linux names it in `mountstats`.

/// What a call is counted under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Op(pub(crate) u16);

impl Op {
    /// Number of different ones.
    pub const COUNT: usize = NAMES.len();

    /// All of them, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT as u16).map(Self)
    }

    /// The program: `NFSv2`, `NFSv3`, `NFSv4` (all minor versions), `MOUNT`, `NLM`, `PORTMAP`.
    pub fn program(self) -> &'static str {
        NAMES[usize::from(self.0)].0
    }

    /// The name within the program: `READ`, `OPEN_NOATTR`.
    pub fn name(self) -> &'static str {
        NAMES[usize::from(self.0)].1
    }
}

/// Declares one module of constants per program, numbered through.
macro_rules! programs {
    ($($(#[$doc:meta])* $module:ident $program:literal { $($name:ident)* })*) => {
        const NAMES: &[(&str, &str)] = &[$($(($program, stringify!($name)),)*)*];
        programs!(@modules 0; $($(#[$doc])* $module { $($name)* })*);
    };
    (@modules $from:expr; $(#[$doc:meta])* $module:ident { $($name:ident)* } $($rest:tt)*) => {
        $(#[$doc])*
        #[allow(missing_docs)]
        pub mod $module {
            use super::Op;
            #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
            #[allow(dead_code)]
            enum Index { $($name,)* END }
            $(pub const $name: Op = Op(FROM + Index::$name as u16);)*
            pub(super) const FROM: u16 = $from;
            #[allow(dead_code)]
            pub(super) const END: u16 = FROM + Index::END as u16;
        }
        programs!(@modules super::$module::END; $($rest)*);
    };
    (@modules $from:expr;) => {};
}

programs! {
    /// NFSv2 (RFC 1094).
    v2 "NFSv2" {
        NULL GETATTR SETATTR ROOT LOOKUP READLINK READ WRITECACHE WRITE CREATE REMOVE RENAME LINK SYMLINK MKDIR RMDIR
        READDIR STATFS
    }
    /// NFSv3 (RFC 1813).
    v3 "NFSv3" {
        NULL GETATTR SETATTR LOOKUP ACCESS READLINK READ WRITE CREATE MKDIR SYMLINK MKNOD REMOVE RMDIR RENAME LINK READDIR
        READDIRPLUS FSSTAT FSINFO PATHCONF COMMIT
    }
    /// NFSv4 (RFC 7530, 8881, 7862, 8276), by what a compound is for. `OPEN` asks for attributes, `OPEN_NOATTR`
    /// (after a delegation was recalled) does not; `LOOKUP_ROOT` finds the root; `CREATE` is a directory, symbolic
    /// link or node.
    v4 "NFSv4" {
        NULL READ WRITE COMMIT OPEN OPEN_CONFIRM OPEN_NOATTR OPEN_DOWNGRADE CLOSE SETATTR FSINFO RENEW SETCLIENTID
        SETCLIENTID_CONFIRM LOCK LOCKT LOCKU ACCESS GETATTR LOOKUP LOOKUP_ROOT REMOVE RENAME LINK SYMLINK CREATE PATHCONF
        STATFS READLINK READDIR SERVER_CAPS DELEGRETURN GETACL SETACL FS_LOCATIONS RELEASE_LOCKOWNER SECINFO FSID_PRESENT
        EXCHANGE_ID CREATE_SESSION DESTROY_SESSION SEQUENCE GET_LEASE_TIME RECLAIM_COMPLETE LAYOUTGET GETDEVICEINFO
        LAYOUTCOMMIT LAYOUTRETURN SECINFO_NO_NAME TEST_STATEID FREE_STATEID GETDEVICELIST BIND_CONN_TO_SESSION
        DESTROY_CLIENTID SEEK ALLOCATE DEALLOCATE LAYOUTSTATS CLONE COPY OFFLOAD_CANCEL LOOKUPP LAYOUTERROR COPY_NOTIFY
        GETXATTR SETXATTR LISTXATTRS REMOVEXATTR READ_PLUS
    }
    /// MOUNT (RFC 1813 appendix I, RFC 1094 appendix A).
    mount "MOUNT" { NULL MNT DUMP UMNT UMNTALL EXPORT }
    /// Network lock manager (RFC 1813 appendix II).
    nlm "NLM" { NULL TEST LOCK CANCEL UNLOCK GRANTED FREE_ALL }
    /// Port mapper (RFC 1833).
    portmap "PORTMAP" { NULL GETPORT GETADDR }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_and_names_agree() {
        assert_eq!((v2::NULL.program(), v2::NULL.name()), ("NFSv2", "NULL"));
        assert_eq!((v3::READ.program(), v3::READ.name()), ("NFSv3", "READ"));
        assert_eq!((v4::READ_PLUS.program(), v4::READ_PLUS.name()), ("NFSv4", "READ_PLUS"));
        assert_eq!((mount::MNT.program(), mount::MNT.name()), ("MOUNT", "MNT"));
        assert_eq!((portmap::GETADDR.program(), portmap::GETADDR.name()), ("PORTMAP", "GETADDR"));
        assert_eq!(usize::from(portmap::GETADDR.0) + 1, Op::COUNT);
    }
}
