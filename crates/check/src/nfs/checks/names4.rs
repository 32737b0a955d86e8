//! Names and directories of version 4.

use benchmaster_nfs_proto::v4::Nfsstat4 as S;

use crate::nfs::ops::*;

checks! {
    /// Names and directories.
    LIST, Names;
    "lookup-missing" V4 Must [V40 7530 "16.13", V41 8881 "18.13"]
        "LOOKUP of a name that is not there is NFS4ERR_NOENT." => |t| {
            let dir = t.dir();
            t.a()?.gives(&[putfh(&dir), lookup("missing")], &[S::NOENT])
        };
    "remove-missing" V4 Must [V40 7530 "16.26", V41 8881 "18.25"]
        "REMOVE of a name that is not there is NFS4ERR_NOENT." => |t| {
            let dir = t.dir();
            t.a()?.gives(&[putfh(&dir), remove("missing")], &[S::NOENT])
        };
}
