//! GETATTR, SETATTR, ACCESS, FSSTAT, FSINFO, PATHCONF.

use benchmaster_nfs_proto::v3::{
    AccessArgs, AccessOk, FsArgs, FsinfoOk, FsstatOk, GetattrArgs, GetattrOk, Nfsstat3, Nfstime3,
    PathconfArgs, PathconfOk, SetattrArgs, SetattrOk, access as bits, fsf,
};

use super::convert::{fattr, no_directory, set_attr, time, wcc};
use crate::call::Call;
use crate::fs::{Attr, Kind, LINK_MAX, NAME_MAX, access as rights, permits};
use crate::state::Conflict;

/// Largest READDIR that clients should ask for.
const PREFERRED_LISTING: u32 = 64 << 10;
/// Offsets are signed in clients.
pub(super) const MAX_FILE_SIZE: u64 = i64::MAX as u64;

pub(super) fn getattr(call: &mut Call<'_>, args: GetattrArgs<'_>) -> Result<(), Nfsstat3> {
    let id = call.object(args.object.0)?;
    call.conflict(id, Conflict::Read)?;
    let obj_attributes = fattr(id.export, &call.attr(id)?);
    call.ok(&GetattrOk { obj_attributes })
}

pub(super) fn setattr(call: &mut Call<'_>, args: SetattrArgs<'_>) -> Result<(), Nfsstat3> {
    let id = call.object(args.object.0)?;
    call.server.exports.file_mut(id)?;
    let set = set_attr(&args.new_attributes)?;
    let guard = args.guard.map(time).transpose()?;
    if set.size.is_some_and(|size| size > MAX_FILE_SIZE) {
        return Err(Nfsstat3::INVAL);
    }
    let changed = call.change(id, &set, guard).map_err(|error| match no_directory(error.into()) {
        Nfsstat3::FBIG => Nfsstat3::INVAL,
        status => status,
    })?;
    call.ok(&SetattrOk { obj_wcc: wcc(id.export, &changed) })
}

pub(super) fn access(call: &mut Call<'_>, args: AccessArgs<'_>) -> Result<(), Nfsstat3> {
    let id = call.object(args.object.0)?;
    let attr = call.attr(id)?;
    let read_only = call.server.exports.get(id.export)?.read_only;
    let allowed = allowed(&attr, read_only, |wanted| permits(&attr, call.who, wanted));
    call.ok(&AccessOk { obj_attributes: call.post_op(id, &attr), access: args.access & allowed })
}

/// Bits of ACCESS that apply to this kind of object and are permitted.
fn allowed(attr: &Attr, read_only: bool, permitted: impl Fn(u32) -> bool) -> u32 {
    let directory = attr.kind == Kind::Directory;
    let mut allowed = 0;
    if permitted(rights::READ) {
        allowed |= bits::READ;
    }
    if permitted(rights::EXECUTE) {
        allowed |= if directory { bits::LOOKUP } else { bits::EXECUTE };
    }
    if !read_only && permitted(rights::WRITE) {
        allowed |= bits::MODIFY | bits::EXTEND;
    }
    if !read_only && directory && permitted(rights::REMOVE_ENTRY) {
        allowed |= bits::DELETE;
    }
    allowed
}

pub(super) fn fsstat(call: &mut Call<'_>, args: FsArgs<'_>) -> Result<(), Nfsstat3> {
    let id = call.object(args.fsroot.0)?;
    let (fs, node) = call.server.exports.file(id)?;
    let obj_attributes = call.post_op(id, &fs.attr(node)?);
    let stat = fs.stat();
    call.ok(&FsstatOk {
        obj_attributes,
        tbytes: stat.total_bytes,
        fbytes: stat.free_bytes,
        abytes: stat.free_bytes,
        tfiles: stat.total_files,
        ffiles: stat.free_files,
        afiles: stat.free_files,
        invarsec: 0,
    })
}

pub(super) fn fsinfo(call: &mut Call<'_>, args: FsArgs<'_>) -> Result<(), Nfsstat3> {
    let id = call.object(args.fsroot.0)?;
    let obj_attributes = call.post_op(id, &call.attr(id)?);
    let config = &call.server.config;
    let delta = config.change_granularity.unwrap_or_default();
    let max = call.max_io();
    call.ok(&FsinfoOk {
        obj_attributes,
        rtmax: max,
        rtpref: max,
        rtmult: 4096,
        wtmax: max,
        wtpref: max,
        wtmult: 4096,
        dtpref: max.min(PREFERRED_LISTING),
        maxfilesize: MAX_FILE_SIZE,
        time_delta: Nfstime3 {
            seconds: delta.as_secs().try_into().unwrap_or(u32::MAX),
            nseconds: if delta.is_zero() { 1 } else { delta.subsec_nanos() },
        },
        properties: fsf::LINK | fsf::SYMLINK | fsf::HOMOGENEOUS | fsf::CANSETTIME,
    })
}

pub(super) fn pathconf(call: &mut Call<'_>, args: PathconfArgs<'_>) -> Result<(), Nfsstat3> {
    let id = call.object(args.object.0)?;
    let obj_attributes = call.post_op(id, &call.attr(id)?);
    call.ok(&PathconfOk {
        obj_attributes,
        linkmax: LINK_MAX,
        name_max: NAME_MAX as u32,
        no_trunc: true,
        chown_restricted: true,
        case_insensitive: false,
        case_preserving: true,
    })
}
