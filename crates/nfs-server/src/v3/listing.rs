//! READDIR and READDIRPLUS. The file system's cookies begin above 2; 1 and 2 are those of "." and "..".

use benchmaster_nfs_proto::v3::{Entry, EntryPlus, Nfsstat3, PostOpAttr, ReaddirArgs, ReaddirplusArgs};
use benchmaster_nfs_proto::xdr::Encoder;

use super::convert::fattr;
use crate::call::Call;
use crate::handle::{self, FileId, HANDLE_LEN};

const DOT: u64 = 1;
const DOT_DOT: u64 = 2;

/// Encoded length of attributes with their TRUE, of a handle with its TRUE and count.
const ATTRIBUTES: usize = 4 + 84;
const HANDLE: usize = 4 + 4 + HANDLE_LEN;
/// Encoded length of `resok` without entries: attributes, verifier, last FALSE, `eof`.
const FRAME: usize = ATTRIBUTES + 8 + 4 + 4;
/// Encoded length of the smallest entry.
const SMALLEST: usize = 4 + 8 + 4 + 4 + 8;

pub(super) fn readdir(call: &mut Call<'_>, args: ReaddirArgs<'_>) -> Result<(), Nfsstat3> {
    let dir = call.object(args.dir.0)?;
    list(call, dir, (args.cookie, args.cookieverf), args.count, None)
}

pub(super) fn readdirplus(call: &mut Call<'_>, args: ReaddirplusArgs<'_>) -> Result<(), Nfsstat3> {
    let dir = call.object(args.dir.0)?;
    list(call, dir, (args.cookie, args.cookieverf), args.maxcount, Some(args.dircount))
}

/// Lists a directory from a cookie on. `count` bounds the whole of `resok`; `dircount` the names, numbers and cookies
/// of READDIRPLUS.
fn list(
    call: &mut Call<'_>,
    dir: FileId,
    (cookie, verifier): (u64, [u8; 8]),
    count: u32,
    dircount: Option<u32>,
) -> Result<(), Nfsstat3> {
    let exports = &call.server.exports;
    let (fs, node) = exports.file(dir)?;
    let valid = fs.cookie_verifier(node)?.to_be_bytes();
    if cookie != 0 && verifier != valid {
        return Err(Nfsstat3::BAD_COOKIE);
    }
    let attr = fs.attr(node)?;
    let (instance, plus) = (call.server.instance, dircount.is_some());
    let room = (count.min(call.max_io()) as usize).checked_sub(FRAME).ok_or(Nfsstat3::TOOSMALL)?;
    let parent = exports.parent(dir)?.unwrap_or(dir);
    let dots = [(DOT, &b"."[..], dir), (DOT_DOT, b"..", parent)];
    // The parent's attributes before the listing begins, which holds the directory's lock.
    let dots = dots.map(|(cookie, name, id)| {
        let more = if plus {
            call.attr(id).ok().map(|attr| More::new(instance, id, Some(fattr(id.export, &attr))))
        } else {
            None
        };
        (cookie, name, id, more)
    });

    let server = call.server;
    let after = if cookie <= DOT_DOT { 0 } else { cookie };
    // Looked up before the listing, which holds the directory's lock: nothing of the state is locked under that.
    let mut held = Vec::new();
    if plus && server.config.delegations && server.state.delegates_for_writing() {
        fs.read_dir(call.who, node, after, false, call.now.wall, &mut |entry| {
            held.push(FileId::new(dir.export, entry.node));
            held.len() < room / SMALLEST
        })?;
        held.retain(|id| server.state.write_delegated(*id));
    }
    call.ok(&Some(fattr(dir.export, &attr)))?;
    let e = &mut call.reply.encoder;
    e.put(&valid);
    let names = dircount.map_or(usize::MAX, |dircount| dircount as usize);
    let mut page = Page { e, room, names, plus, any: false };
    let fits = dots
        .iter()
        .filter(|dot| dot.0 > cookie)
        .all(|(cookie, name, id, more)| page.put(id.ino, name, *cookie, more.as_ref()));
    let eof = fits && {
        fs.read_dir(call.who, node, after, plus, call.now.wall, &mut |entry| {
            // A mount point is another file than what is mounted there: LOOKUP tells.
            let id = FileId::new(dir.export, entry.node);
            let attr = entry.attr.as_ref().filter(|_| exports.cross(dir.export, entry.node) == id);
            // The holder of a write delegation may know better: GETATTR recalls it.
            let more = attr
                .map(|attr| More::new(instance, id, (!held.contains(&id)).then(|| fattr(dir.export, attr))));
            page.put(entry.node.ino, entry.name, entry.cookie, more.as_ref())
        })?
    };
    if !page.any && !eof {
        return Err(Nfsstat3::TOOSMALL);
    }
    page.e.put(&false);
    page.e.put(&eof);
    Ok(())
}

/// What READDIRPLUS tells of an entry.
struct More {
    attributes: PostOpAttr,
    handle: [u8; HANDLE_LEN],
}

impl More {
    fn new(instance: u32, id: FileId, attributes: PostOpAttr) -> Self {
        Self { attributes, handle: handle::encode(instance, id) }
    }
}

/// The entries written so far, and how much room there is for more.
struct Page<'e> {
    e: &'e mut Encoder,
    room: usize,
    names: usize,
    plus: bool,
    any: bool,
}

impl Page<'_> {
    /// Appends an entry; `false` when it does not fit.
    fn put(&mut self, fileid: u64, name: &[u8], cookie: u64, more: Option<&More>) -> bool {
        let base = 8 + 4 + name.len().next_multiple_of(4) + 8;
        let len = 4
            + base
            + match more {
                _ if !self.plus => 0,
                Some(More { attributes: Some(_), .. }) => ATTRIBUTES + HANDLE,
                Some(_) => 4 + HANDLE,
                None => 4 + 4,
            };
        // One entry at least, however small `dircount` is.
        if len > self.room || base > self.names && self.any {
            return false;
        }
        self.room -= len;
        self.names = self.names.saturating_sub(base);
        self.any = true;
        self.e.put(&true);
        if self.plus {
            let name_attributes = more.and_then(|more| more.attributes);
            let name_handle = more.map(|more| more.handle[..].into());
            self.e.put(&EntryPlus { fileid, name: name.into(), cookie, name_attributes, name_handle });
        } else {
            self.e.put(&Entry { fileid, name: name.into(), cookie });
        }
        true
    }
}
