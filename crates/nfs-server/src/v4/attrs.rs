//! File attributes: encoded straight from the file system's, and decoded into what is to be set.

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{
    ACL_SUPPORT_ALLOW, ACL_SUPPORT_DENY, AttrError, Attributes, Bitmap4, ChangeAttrType4,
    FS_CHARSET_CAP_ALLOWS_ONLY_UTF8, Fattr4, Fsid4, Ftype4, KNOWN_ATTRS, Nfsstat4, Nfstime4, OpenArguments4,
    Settime4, Specdata4, V40_ATTRS, V41_ATTRS, WRITE_ONLY_ATTRS, fattr4,
};
use benchmaster_nfs_proto::xdr::Encoder;

use super::names::number;
use super::{Failure, acl};
use crate::fs::{Attr, FsStat, Kind, LINK_MAX, NAME_MAX, SetAttr, SetTime, Time};
use crate::handle::{self, FileId};
use crate::shared::Shared;

/// Everything this server supports. Named attributes, quotas, labels, retention, layouts are not among them.
const SUPPORTED: Bitmap4 = KNOWN_ATTRS
    .without(fattr4::ARCHIVE)
    .without(fattr4::HIDDEN)
    .without(fattr4::MIMETYPE)
    .without(fattr4::QUOTA_AVAIL_HARD)
    .without(fattr4::QUOTA_AVAIL_SOFT)
    .without(fattr4::QUOTA_USED)
    .without(fattr4::SYSTEM)
    .without(fattr4::TIME_BACKUP)
    .without(fattr4::OFFLINE);

/// Times that the holder of a delegation sets (RFC 9754 §5).
const DELEGATED_TIMES: Bitmap4 = Bitmap4::of(&[fattr4::TIME_DELEG_ACCESS, fattr4::TIME_DELEG_MODIFY]);

/// What OPEN takes (RFC 9754 §3). Wants are not remembered, and no delegation outlives a client's restart.
const OPEN_ARGUMENTS: OpenArguments4 = OpenArguments4 {
    // READ, WRITE, BOTH.
    share_access: Bitmap4::of(&[1, 2, 3]),
    // NONE, READ, WRITE, BOTH.
    share_deny: Bitmap4::of(&[0, 1, 2, 3]),
    // ANY_DELEG, NO_DELEG, CANCEL, DELEG_TIMESTAMPS, OPEN_XOR_DELEGATION.
    share_access_want: Bitmap4::of(&[3, 4, 5, 20, 21]),
    // NULL, PREVIOUS, DELEGATE_CUR, FH, DELEG_CUR_FH.
    open_claim: Bitmap4::of(&[0, 1, 2, 4, 5]),
    // UNCHECKED4, GUARDED4, EXCLUSIVE4, EXCLUSIVE4_1.
    create_mode: Bitmap4::of(&[0, 1, 2, 3]),
};

/// What can be set at all.
const SETTABLE: Bitmap4 = Bitmap4::of(&[
    fattr4::SIZE,
    fattr4::ACL,
    fattr4::MODE,
    fattr4::OWNER,
    fattr4::OWNER_GROUP,
    fattr4::TIME_ACCESS_SET,
    fattr4::TIME_CREATE,
    fattr4::TIME_MODIFY_SET,
    fattr4::DACL,
    fattr4::MODE_SET_MASKED,
    fattr4::MODE_UMASK,
    fattr4::TIME_DELEG_ACCESS,
    fattr4::TIME_DELEG_MODIFY,
]);

/// Attributes of the whole file system, which need a look at its counters.
const COUNTED: Bitmap4 = Bitmap4::of(&[
    fattr4::FILES_AVAIL,
    fattr4::FILES_FREE,
    fattr4::FILES_TOTAL,
    fattr4::SPACE_AVAIL,
    fattr4::SPACE_FREE,
    fattr4::SPACE_TOTAL,
]);

/// What a client with a write delegation may know better than the server (RFC 8881 §18.7.4).
const DELEGATED: Bitmap4 = Bitmap4::of(&[
    fattr4::CHANGE,
    fattr4::SIZE,
    fattr4::SPACE_USED,
    fattr4::TIME_ACCESS,
    fattr4::TIME_METADATA,
    fattr4::TIME_MODIFY,
]);

/// Attributes in notifications to holders of directories.
pub(crate) const NOTIFIED: Bitmap4 = Bitmap4::of(&[
    fattr4::TYPE,
    fattr4::CHANGE,
    fattr4::SIZE,
    fattr4::FSID,
    fattr4::FILEHANDLE,
    fattr4::FILEID,
    fattr4::MODE,
    fattr4::NUMLINKS,
    fattr4::OWNER,
    fattr4::OWNER_GROUP,
    fattr4::RAWDEV,
    fattr4::SPACE_USED,
    fattr4::TIME_ACCESS,
    fattr4::TIME_METADATA,
    fattr4::TIME_MODIFY,
]);

/// What of [`NOTIFIED`] SETATTR of these changes in a directory; `None`: more than that.
pub(crate) fn changed_by_setting(set: Bitmap4) -> Option<Bitmap4> {
    let mut shown = set.iter().map(|attribute| match attribute {
        fattr4::MODE | fattr4::MODE_SET_MASKED => Some(fattr4::MODE),
        fattr4::OWNER => Some(fattr4::OWNER),
        fattr4::OWNER_GROUP => Some(fattr4::OWNER_GROUP),
        fattr4::TIME_ACCESS_SET => Some(fattr4::TIME_ACCESS),
        fattr4::TIME_MODIFY_SET => Some(fattr4::TIME_MODIFY),
        _ => None,
    });
    shown.try_fold(Bitmap4::of(&[fattr4::CHANGE]), |all, shown| Some(all.with(shown?)))
}

/// Attributes supported in a minor version.
pub(crate) fn supported(minor: u32) -> Bitmap4 {
    const V40: Bitmap4 = SUPPORTED.intersection(&V40_ATTRS);
    const V41: Bitmap4 = SUPPORTED.intersection(&V41_ATTRS);
    match minor {
        0 => V40,
        1 => V41,
        _ => SUPPORTED,
    }
}

/// Attributes that an exclusive create of 4.1 can set at once (`suppattr_exclcreat`): the verifier has a place of its
/// own, so all.
pub(crate) fn exclusive_create(minor: u32) -> Bitmap4 {
    SETTABLE & supported(minor) & !DELEGATED_TIMES
}

/// Times of the holder of a delegation: of access, and of the last change of data.
pub(crate) type DelegatedTimes = (Option<Time>, Option<Time>);

/// The times of a delegation's holder in attributes to be set, if any are.
pub(crate) fn delegated_times(attrs: &Fattr4<'_>) -> Result<Option<DelegatedTimes>, Failure> {
    if !attrs.attrmask.intersects(&DELEGATED_TIMES) {
        return Ok(None);
    }
    let given = Attributes::decode(attrs).map_err(AttrError::status)?;
    let (access, modify) = (given.time_deleg_access.map(to_time), given.time_deleg_modify.map(to_time));
    Ok(Some((access.transpose()?, modify.transpose()?)))
}

/// Refuses to read what can only be written (RFC 8881 §5.5).
pub(crate) fn check_readable(requested: Bitmap4, minor: u32) -> Result<(), Failure> {
    if requested.intersects(&(WRITE_ONLY_ATTRS & supported(minor))) && !is_broken(Mutant::WriteOnlyRead) {
        return Err(Nfsstat4::INVAL.into());
    }
    Ok(())
}

/// Whether another client's write delegation makes the server's own knowledge of these doubtful.
pub(crate) fn concern_delegations(requested: Bitmap4) -> bool {
    requested.intersects(&DELEGATED)
}

/// Attributes of one file as a client sees them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    server: &'a Shared,
    minor: u32,
    mask: Bitmap4,
    counts: Option<FsStat>,
}

impl<'a> View<'a> {
    /// Prepares for the `requested` attributes of files of the export `export`; those not supported are left out.
    pub(crate) fn new(server: &'a Shared, minor: u32, export: u32, requested: Bitmap4) -> Self {
        let mask = requested & supported(minor);
        let counted = || server.exports.get(export).ok().map(|export| export.fs.stat());
        let counts = if mask.intersects(&COUNTED) { counted() } else { None };
        Self { server, minor, mask, counts }
    }

    /// Appends mask and values (`fattr4`).
    pub(crate) fn put(&self, e: &mut Encoder, file: FileId, attr: &Attr) {
        e.put(&self.mask);
        let len = e.mark();
        e.put(&0u32);
        let start = e.mark();
        for bit in self.mask.iter() {
            self.put_value(e, bit, file, attr);
        }
        e.patch_u32(len, e.len_since(start) as u32);
    }

    /// Appends one value.
    #[inline]
    fn put_value(&self, e: &mut Encoder, bit: u32, file: FileId, attr: &Attr) {
        let config = &self.server.config;
        let count = |of: fn(&FsStat) -> u64| self.counts.as_ref().map_or(0, of);
        match bit {
            fattr4::SUPPORTED_ATTRS => e.put(&supported(self.minor)),
            fattr4::TYPE => e.put(&file_type(attr.kind)),
            // Handles never expire.
            fattr4::FH_EXPIRE_TYPE => e.put(&0u32),
            fattr4::CHANGE => e.put(&attr.change),
            fattr4::SIZE => e.put(&attr.size),
            fattr4::FSID => {
                e.put(&Fsid4 { major: u64::from(self.server.instance), minor: u64::from(file.export) + 1 });
            }
            fattr4::LEASE_TIME => e.put(&u32::try_from(config.lease.as_secs()).unwrap_or(u32::MAX)),
            fattr4::RDATTR_ERROR => e.put(&Nfsstat4::OK),
            fattr4::ACL => acl::put(e, attr),
            fattr4::DACL => acl::put_dacl(e, attr),
            fattr4::ACLSUPPORT => e.put(&(ACL_SUPPORT_ALLOW | ACL_SUPPORT_DENY)),
            fattr4::LINK_SUPPORT
            | fattr4::SYMLINK_SUPPORT
            | fattr4::UNIQUE_HANDLES
            | fattr4::CANSETTIME
            | fattr4::CASE_PRESERVING
            | fattr4::CHOWN_RESTRICTED
            | fattr4::HOMOGENEOUS
            | fattr4::NO_TRUNC
            | fattr4::XATTR_SUPPORT => e.put(&true),
            fattr4::NAMED_ATTR | fattr4::CASE_INSENSITIVE => e.put(&false),
            fattr4::FILEHANDLE => e.opaque(&handle::encode(self.server.instance, file)),
            fattr4::FILEID => e.put(&attr.node.ino),
            fattr4::FILES_AVAIL | fattr4::FILES_FREE => e.put(&count(|stat| stat.free_files)),
            fattr4::FILES_TOTAL => e.put(&count(|stat| stat.total_files)),
            fattr4::FS_LOCATIONS => self.put_fs_locations(e, file),
            fattr4::MAXFILESIZE => e.put(&MAX_FILE_SIZE),
            fattr4::MAXLINK => e.put(&LINK_MAX),
            fattr4::MAXNAME => e.put(&(NAME_MAX as u32)),
            fattr4::MAXREAD | fattr4::MAXWRITE => e.put(&u64::from(config.max_io)),
            fattr4::MODE => e.put(&(attr.mode & MODE_BITS)),
            fattr4::NUMLINKS => e.put(&attr.nlink),
            fattr4::OWNER => put_number(e, attr.uid),
            fattr4::OWNER_GROUP => put_number(e, attr.gid),
            fattr4::RAWDEV => e.put(&Specdata4 { specdata1: attr.device.0, specdata2: attr.device.1 }),
            fattr4::SPACE_AVAIL | fattr4::SPACE_FREE => e.put(&count(|stat| stat.free_bytes)),
            fattr4::SPACE_TOTAL => e.put(&count(|stat| stat.total_bytes)),
            fattr4::SPACE_USED => e.put(&attr.used),
            fattr4::TIME_ACCESS => e.put(&time(attr.atime)),
            fattr4::TIME_CREATE => e.put(&time(attr.birth)),
            fattr4::TIME_METADATA => e.put(&time(attr.ctime)),
            fattr4::TIME_MODIFY => e.put(&time(attr.mtime)),
            fattr4::TIME_DELTA => {
                let step = config.change_granularity.unwrap_or(std::time::Duration::from_nanos(1));
                let seconds = i64::try_from(step.as_secs()).unwrap_or(i64::MAX);
                e.put(&Nfstime4 { seconds, nseconds: step.subsec_nanos() });
            }
            fattr4::MOUNTED_ON_FILEID => e.put(&self.server.exports.mounted_on(file)),
            fattr4::SUPPATTR_EXCLCREAT => e.put(&exclusive_create(self.minor)),
            fattr4::FS_CHARSET_CAP => e.put(&FS_CHARSET_CAP_ALLOWS_ONLY_UTF8),
            // Ranges of any alignment can be cloned.
            fattr4::CLONE_BLKSIZE => e.put(&1u32),
            fattr4::SPACE_FREED => e.put(&if attr.nlink > 1 { 0 } else { attr.used }),
            fattr4::CHANGE_ATTR_TYPE => e.put(&ChangeAttrType4::MonotonicIncr),
            fattr4::OPEN_ARGUMENTS => e.put(&OPEN_ARGUMENTS),
            // Of SUPPORTED only the write-only ones are left, which `check_readable` keeps out.
            _ => {}
        }
    }

    /// The path of the export, and no other place (RFC 8881 §11.16): the client is where the data is.
    fn put_fs_locations(&self, e: &mut Encoder, file: FileId) {
        let path = self.server.exports.get(file.export).map_or("", |export| export.path.as_str());
        let names = || path.split('/').filter(|name| !name.is_empty());
        e.put(&(names().count() as u32));
        names().for_each(|name| e.opaque(name.as_bytes()));
        e.put(&0u32);
    }
}

/// Largest file: what the Linux client and POSIX can address.
pub(crate) const MAX_FILE_SIZE: u64 = i64::MAX as u64;

/// Permission bits, set-user-ID, set-group-ID, sticky.
const MODE_BITS: u32 = 0o7777;

/// Type of a file on the wire.
pub(crate) fn file_type(kind: Kind) -> Ftype4 {
    match kind {
        Kind::Regular => Ftype4::Reg,
        Kind::Directory => Ftype4::Dir,
        Kind::Symlink => Ftype4::Lnk,
        Kind::Block => Ftype4::Blk,
        Kind::Character => Ftype4::Chr,
        Kind::Fifo => Ftype4::Fifo,
        Kind::Socket => Ftype4::Sock,
    }
}

fn time(time: Time) -> Nfstime4 {
    Nfstime4 { seconds: time.seconds, nseconds: time.nanos }
}

/// Users and groups are their numbers in decimal (RFC 7530 §5.9): AUTH_SYS knows no names.
pub(super) fn put_number(e: &mut Encoder, number: u32) {
    let mut digits = [0; 10];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    e.opaque(&digits[at..]);
}

/// What attributes are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A new regular file (OPEN).
    NewFile,
    /// A new directory (CREATE).
    NewDirectory,
    /// Another new object (CREATE).
    NewObject,
    /// A new symbolic link (CREATE): the umask leaves its mode alone, as POSIX has it for symlink().
    NewLink,
    /// A file that is there, with this mode.
    Existing {
        /// Its mode, to which MODE_SET_MASKED applies.
        mode: u32,
        /// Whether it is a directory.
        directory: bool,
    },
}

/// Decodes attributes to be set: ATTRNOTSUPP for what is not supported, INVAL for what cannot be set or makes no sense,
/// BADOWNER for names that are no numbers. The mask of `attrs` is what will have been set on success.
pub(crate) fn to_set(attrs: &Fattr4<'_>, minor: u32, purpose: Purpose) -> Result<SetAttr, Failure> {
    if !attrs.attrmask.is_subset(&supported(minor)) {
        return Err(if is_broken(Mutant::UnsupportedIsInvalid) {
            Nfsstat4::INVAL
        } else {
            Nfsstat4::ATTRNOTSUPP
        }
        .into());
    }
    if !attrs.attrmask.is_subset(&SETTABLE) {
        return Err(if is_broken(Mutant::ReadOnlyIsUnsupported) {
            Nfsstat4::ATTRNOTSUPP
        } else {
            Nfsstat4::INVAL
        }
        .into());
    }
    let given = Attributes::decode(attrs).map_err(AttrError::status)?;
    let existing = matches!(purpose, Purpose::Existing { .. });
    let others = matches!(purpose, Purpose::NewDirectory | Purpose::NewObject | Purpose::NewLink);
    if given.size.is_some() && others || attrs.attrmask.intersects(&DELEGATED_TIMES) && !existing {
        return Err(Nfsstat4::INVAL.into());
    }
    let (before, directory) = match purpose {
        Purpose::Existing { mode, directory } => (mode & MODE_BITS, directory),
        _ => (0, purpose == Purpose::NewDirectory),
    };
    let mut umask = 0;
    let mode = match (given.mode, given.mode_set_masked, given.mode_umask) {
        (None, None, None) => None,
        (Some(mode), None, None) => Some(mode),
        (None, Some(masked), None) => {
            if masked.value_to_set & !masked.mask_bits != 0 || masked.mask_bits & !MODE_BITS != 0 {
                return Err(Nfsstat4::INVAL.into());
            }
            Some(before & !masked.mask_bits | masked.value_to_set)
        }
        // RFC 8275 §4.2: only of use for new objects.
        (None, None, Some(new)) if !matches!(purpose, Purpose::Existing { .. }) => {
            if new.umask & !0o777 != 0 {
                return Err(Nfsstat4::INVAL.into());
            }
            umask = if purpose == Purpose::NewLink { 0 } else { new.umask };
            Some(new.mode)
        }
        // More than one of them (RFC 8881 §6.2.5, RFC 8275 §4.2).
        _ => return Err(Nfsstat4::INVAL.into()),
    };
    if mode.is_some_and(|mode| mode & !MODE_BITS != 0) {
        return Err(Nfsstat4::INVAL.into());
    }
    let acl = match (given.acl, given.dacl) {
        (Some(acl), None) => Some(acl::of_acl(&acl, directory)?),
        (None, Some(dacl)) => Some(acl::of_dacl(&dacl, directory)?),
        // RFC 8881 §6.4.1.
        (Some(_), Some(_)) => return Err(Nfsstat4::ATTRNOTSUPP.into()),
        (None, None) => None,
    };
    Ok(SetAttr {
        mode,
        umask,
        acl,
        uid: given.owner.map(number).transpose()?,
        gid: given.owner_group.map(number).transpose()?,
        size: given.size,
        atime: given.time_access_set.map(set_time).transpose()?,
        mtime: given.time_modify_set.map(set_time).transpose()?,
        birth: given.time_create.map(to_time).transpose()?,
    })
}

fn to_time(time: Nfstime4) -> Result<Time, Failure> {
    if time.nseconds >= 1_000_000_000 && !is_broken(Mutant::NanosecondsUnchecked) {
        return Err(Nfsstat4::INVAL.into());
    }
    Ok(Time { seconds: time.seconds, nanos: time.nseconds })
}

fn set_time(time: Settime4) -> Result<SetTime, Failure> {
    match time {
        Settime4::ServerTime => Ok(SetTime::Now),
        Settime4::ClientTime(time) => to_time(time).map(SetTime::To),
    }
}

/// Checks the attributes of VERIFY and NVERIFY: those that can be compared (RFC 8881 §18.31.3).
pub(crate) fn check_comparable(given: &Fattr4<'_>, minor: u32) -> Result<(), Failure> {
    let mask = given.attrmask;
    if !mask.is_subset(&supported(minor)) {
        return Err(Nfsstat4::ATTRNOTSUPP.into());
    }
    if mask.intersects(&WRITE_ONLY_ATTRS)
        || (mask.contains(fattr4::RDATTR_ERROR) && !is_broken(Mutant::ErrorsCompared))
    {
        return Err(Nfsstat4::INVAL.into());
    }
    let values = Attributes::decode(given).map_err(AttrError::status)?;
    // RFC 7530 §6.2.4.
    if values.mode.is_some_and(|mode| mode & !MODE_BITS != 0) {
        return Err(Nfsstat4::INVAL.into());
    }
    Ok(())
}
