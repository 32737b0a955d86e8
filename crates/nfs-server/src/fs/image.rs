//! Writing a file system out and reading it back: inode by inode, by ascending number, integers in little-endian order.
//!
//! Numbers, generations (of free numbers too), cookies, times, change attributes, holes and hard links are kept. Files
//! without a name are not: whoever had them open is gone when this is read.

use std::io::{self, Read, Write};
use std::sync::Arc;

use super::data::{Data, SIZE_MAX};
use super::directory::Directory;
use super::extra::{Extra, Xattr};
use super::inode::{Body, Inode, Stamp};
use super::namespace::check_name;
use super::page::{self, PAGE, PAGE_U64, Page};
use super::types::CAPACITY;
use super::{
    ACES_MAX, Ace, Acl, FileSystem, FsConfig, Kind, NAME_MAX, Node, PATH_MAX, Time, Who, XATTR_SIZE_MAX,
};

const FREE: u8 = 0;
pub(super) const REGULAR: u8 = 1;
pub(super) const DIRECTORY: u8 = 2;
const SYMLINK: u8 = 3;
/// Kinds of special files are numbered from here.
const SPECIAL: u8 = 4;
const SPECIAL_KINDS: [Kind; 4] = [Kind::Block, Kind::Character, Kind::Fifo, Kind::Socket];

/// Lengths are followed by that many bytes; where there are none, by this for the page of zeros.
const ZERO_PAGE: u32 = u32::MAX;

/// Why a file system cannot be read back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImageError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It says what no file system can be.
    #[error("{0}")]
    Content(&'static str),
}

pub(super) fn ensure(holds: bool, otherwise: &'static str) -> Result<(), ImageError> {
    if holds { Ok(()) } else { Err(ImageError::Content(otherwise)) }
}

impl FileSystem {
    /// Writes everything to `out`. Nothing may change meanwhile, or names may be without their files.
    pub(crate) fn save(&self, out: &mut dyn Write) -> io::Result<()> {
        let end = self.table.end();
        put_u64(out, end)?;
        for ino in 1..end {
            match self.table.peek(ino) {
                Some(inode) => save_inode(out, &inode)?,
                // Given out to a thread that has not used it.
                None => save_inode(out, &Inode::free())?,
            }
        }
        Ok(())
    }

    /// Reads what [`FileSystem::save`] wrote; [`FileSystem::complete`] comes after it.
    pub(crate) fn load(config: FsConfig, input: &mut dyn Read) -> Result<Self, ImageError> {
        let fs = Self::without_root(config);
        let end = get_u64(input)?;
        ensure((2..=CAPACITY).contains(&end), "impossible number of files")?;
        for ino in 1..end {
            let inode = load_inode(&fs, input)?;
            *fs.table.restore_at(ino).ok_or(ImageError::Content("impossible file number"))? = inode;
        }
        Ok(fs)
    }

    /// Counts and checks what was read. `crashed`: caches of clients must not take change attributes of lost changes for those
    /// of later ones.
    pub(crate) fn complete(&self, crashed: bool) -> Result<(), ImageError> {
        /// More than a file is changed between two starts.
        const LEAP: u64 = 1 << 32;
        let end = self.table.end();
        for ino in 1..end {
            let Some(mut inode) = self.table.restore_at(ino) else { continue };
            if inode.nlink == 0 {
                // Whoever had it open is gone. That was one use of the number more.
                let used = !matches!(inode.body, Body::Free);
                let generation = inode.generation.saturating_add(u32::from(used));
                *inode = Inode { generation, ..Inode::free() };
                continue;
            }
            // Coarse changes follow the clock.
            if crashed && self.config.change_granularity.is_none() {
                inode.change = inode.change.saturating_add(LEAP);
            }
            let data = inode.regular().map_or(0, Data::used);
            let extra = inode.extra.as_ref().map_or(0, |extra| extra.cost());
            self.space.restore(data + extra, inode.names_cost());
        }
        self.table.recount();
        self.check_links(end)
    }

    /// Whether every name leads to a file that has as many links as names lead to it.
    fn check_links(&self, end: u64) -> Result<(), ImageError> {
        let directory = self.table.read(self.root).is_ok_and(|root| root.is_directory());
        ensure(directory, "no root directory")?;
        let mut links = vec![0u32; end as usize];
        for ino in 1..end {
            let Some(inode) = self.table.peek(ino) else { continue };
            let Ok(dir) = inode.directory() else { continue };
            let node = Node { ino, generation: inode.generation };
            let mut dirs = 0;
            for found in dir.after(0) {
                // No lock but this one is held by anyone: the file system is not in use yet.
                let child = self.table.read(found.node).ok();
                ensure(child.is_some() && found.node != node, "a name without its file")?;
                if let Some(parent) =
                    child.as_ref().and_then(|child| child.directory().ok()).map(|it| it.parent)
                {
                    ensure(parent == node, "a directory in the wrong place")?;
                    dirs += 1;
                }
                if let Some(links) = links.get_mut(found.node.ino as usize) {
                    *links += 1;
                }
            }
            ensure(inode.nlink == dirs + 2, "a directory with a wrong number of links")?;
        }
        for (ino, links) in (0..).zip(links).skip(1) {
            let Some(inode) = self.table.peek(ino) else { continue };
            let expected = match &inode.body {
                Body::Free => 0,
                Body::Directory(_) => u32::from(ino != self.root.ino),
                _ => inode.nlink,
            };
            ensure(links == expected, "a file with a wrong number of links")?;
        }
        Ok(())
    }
}

fn save_inode(out: &mut dyn Write, inode: &Inode) -> io::Result<()> {
    let used = !matches!(inode.body, Body::Free);
    if !used || inode.nlink == 0 {
        out.write_all(&[FREE])?;
        // A file that is not written is one use of the number more.
        return put_u32(out, inode.generation.saturating_add(u32::from(used)));
    }
    save_attributes(out, inode)?;
    save_extra(out, inode.extra.as_deref())?;
    match &inode.body {
        Body::Regular(data) => save_data(out, data),
        Body::Directory(dir) => save_directory(out, dir),
        other => save_small(out, other),
    }
}

/// What kind of file it is, and its attributes.
pub(super) fn save_attributes(out: &mut dyn Write, inode: &Inode) -> io::Result<()> {
    let tag = match &inode.body {
        Body::Free => FREE,
        Body::Regular(_) => REGULAR,
        Body::Directory(_) => DIRECTORY,
        Body::Symlink(_) => SYMLINK,
        Body::Special(kind, _) => {
            SPECIAL + SPECIAL_KINDS.iter().position(|it| it == kind).unwrap_or_default() as u8
        }
    };
    out.write_all(&[tag])?;
    for value in [inode.generation, inode.nlink, inode.uid, inode.gid, u32::from(inode.mode)] {
        put_u32(out, value)?;
    }
    put_u64(out, inode.change)?;
    for stamp in [inode.atime, inode.mtime, inode.ctime, inode.birth] {
        let time = Time::from(stamp);
        put_u64(out, time.seconds as u64)?;
        put_u32(out, time.nanos)?;
    }
    Ok(())
}

/// What is in a file that is neither regular nor a directory.
pub(super) fn save_small(out: &mut dyn Write, body: &Body) -> io::Result<()> {
    match body {
        Body::Free | Body::Regular(_) | Body::Directory(_) => Ok(()),
        Body::Symlink(target) => put_bytes(out, target),
        Body::Special(_, (major, minor)) => {
            put_u32(out, *major)?;
            put_u32(out, *minor)
        }
    }
}

fn load_inode(fs: &FileSystem, input: &mut dyn Read) -> Result<Inode, ImageError> {
    let tag = get_u8(input)?;
    if tag == FREE {
        return Ok(Inode { generation: get_u32(input)?, ..Inode::free() });
    }
    let mut inode = load_attributes(input)?;
    ensure(inode.nlink > 0, "impossible attributes")?;
    inode.extra = load_extra(input)?;
    inode.body = match tag {
        REGULAR => Body::Regular(load_data(input)?),
        DIRECTORY => Body::Directory(Box::new(load_directory(fs, input)?)),
        tag => load_small(tag, input)?,
    };
    Ok(inode)
}

/// What a file of this kind is, if it is neither regular nor a directory.
pub(super) fn load_small(tag: u8, input: &mut dyn Read) -> Result<Body, ImageError> {
    if tag == SYMLINK {
        return Ok(Body::Symlink(get_bytes(input, PATH_MAX)?.into()));
    }
    let kind = tag.checked_sub(SPECIAL).and_then(|kind| SPECIAL_KINDS.get(usize::from(kind)));
    let kind = *kind.ok_or(ImageError::Content("unknown kind of file"))?;
    Ok(Body::Special(kind, (get_u32(input)?, get_u32(input)?)))
}

/// Attributes, after the kind of file.
pub(super) fn load_attributes(input: &mut dyn Read) -> Result<Inode, ImageError> {
    let generation = get_u32(input)?;
    let [nlink, uid, gid, mode] = [get_u32(input)?, get_u32(input)?, get_u32(input)?, get_u32(input)?];
    ensure(mode <= 0o7777, "impossible attributes")?;
    let change = get_u64(input)?;
    let [atime, mtime, ctime, birth] =
        [get_time(input)?, get_time(input)?, get_time(input)?, get_time(input)?];
    let mode = mode as u16;
    Ok(Inode { generation, nlink, uid, gid, mode, change, atime, mtime, ctime, birth, ..Inode::free() })
}

pub(super) fn save_extra(out: &mut dyn Write, extra: Option<&Extra>) -> io::Result<()> {
    let Some(extra) = extra else { return out.write_all(&[0]) };
    out.write_all(&[1, u8::from(extra.verifier.is_some())])?;
    put_u64(out, extra.verifier.unwrap_or_default())?;
    save_acl(out, extra.acl.as_deref())?;
    put_u64(out, extra.last_cookie)?;
    put_u32(out, extra.xattrs.len() as u32)?;
    for xattr in &extra.xattrs {
        put_u64(out, xattr.cookie)?;
        put_bytes(out, &xattr.name)?;
        put_bytes(out, &xattr.value)?;
    }
    Ok(())
}

pub(super) fn load_extra(input: &mut dyn Read) -> Result<Option<Box<Extra>>, ImageError> {
    if get_u8(input)? == 0 {
        return Ok(None);
    }
    let verified = get_u8(input)? != 0;
    let verifier = Some(get_u64(input)?).filter(|_| verified);
    let acl = load_acl(input)?;
    let mut extra = Extra { verifier, acl, last_cookie: get_u64(input)?, xattrs: Vec::new() };
    let mut last = 0;
    for _ in 0..get_u32(input)? {
        let cookie = get_u64(input)?;
        ensure(cookie > last && cookie <= extra.last_cookie, "extended attributes out of order")?;
        last = cookie;
        let name = get_bytes(input, NAME_MAX)?.into();
        let value = get_bytes(input, XATTR_SIZE_MAX)?.into();
        extra.xattrs.push(Xattr { cookie, name, value });
    }
    Ok(Some(Box::new(extra)))
}

/// Most entries of a list that is kept: setting a mode splits those that are both effective and inherited, and adds five.
const ACES_KEPT: usize = 2 * ACES_MAX + 5;
/// Bytes of an entry.
const ACE: u64 = 13;
/// Room for the longest list.
pub(super) const ACL_ROOM: u64 = 64 + ACE * ACES_KEPT as u64;

/// Number of entries and 1, or 0 without a list; flags, entries.
pub(super) fn save_acl(out: &mut dyn Write, acl: Option<&Acl>) -> io::Result<()> {
    let Some(acl) = acl else { return put_u32(out, 0) };
    put_u32(out, acl.aces.len() as u32 + 1)?;
    put_u32(out, acl.flags)?;
    for ace in &acl.aces {
        let (who, number) = match ace.who {
            Who::Owner => (0, 0),
            Who::Group => (1, 0),
            Who::Everyone => (2, 0),
            Who::User(user) => (3, user),
            Who::Members(group) => (4, group),
        };
        out.write_all(&[who << 1 | u8::from(ace.deny)])?;
        for value in [ace.flags, ace.mask, number] {
            put_u32(out, value)?;
        }
    }
    Ok(())
}

pub(super) fn load_acl(input: &mut dyn Read) -> Result<Option<Arc<Acl>>, ImageError> {
    let Some(len) = (get_u32(input)? as usize).checked_sub(1) else { return Ok(None) };
    ensure(len <= ACES_KEPT, "too long an access control list")?;
    let flags = get_u32(input)?;
    let aces: Result<Box<[Ace]>, ImageError> = (0..len).map(|_| load_ace(input)).collect();
    Ok(Some(Arc::new(Acl { flags, aces: aces? })))
}

fn load_ace(input: &mut dyn Read) -> Result<Ace, ImageError> {
    let kind = get_u8(input)?;
    let [flags, mask, number] = [get_u32(input)?, get_u32(input)?, get_u32(input)?];
    let who = match kind >> 1 {
        0 => Who::Owner,
        1 => Who::Group,
        2 => Who::Everyone,
        3 => Who::User(number),
        4 => Who::Members(number),
        _ => return Err(ImageError::Content("an access control entry for an unknown kind of user")),
    };
    Ok(Ace { deny: kind & 1 != 0, flags, mask, who })
}

fn save_data(out: &mut dyn Write, data: &Data) -> io::Result<()> {
    put_u64(out, data.size)?;
    for (index, page) in data.pages() {
        put_u64(out, index)?;
        if Page::ptr_eq(page, page::zeros()) {
            put_u32(out, ZERO_PAGE)?;
        } else {
            put_bytes(out, page)?;
        }
    }
    put_u64(out, u64::MAX)?;
    for run in data.reserved() {
        put_u64(out, run.start)?;
        put_u64(out, run.end)?;
    }
    put_u64(out, u64::MAX)
}

fn load_data(input: &mut dyn Read) -> Result<Data, ImageError> {
    let mut data = Data::default();
    data.size = get_u64(input)?;
    ensure(data.size <= SIZE_MAX, "impossible file size")?;
    let mut least = 0;
    loop {
        let index = get_u64(input)?;
        if index == u64::MAX {
            return load_reserved(input, data);
        }
        ensure(index >= least && index < data.size.div_ceil(PAGE_U64), "data out of place")?;
        least = index + 1;
        let len = get_u32(input)?;
        if len == ZERO_PAGE {
            data.insert(index, page::zeros().clone());
            continue;
        }
        let len = len as usize;
        ensure(len > 0 && len <= PAGE && page::tight(len) == len, "impossible length of data")?;
        let mut page = page::zeroed(len);
        if let Some(bytes) = Page::get_mut(&mut page) {
            input.read_exact(bytes)?;
        }
        let held = data.size - index * PAGE_U64;
        let rest = usize::try_from(held).ok().and_then(|held| page.get(held..)).unwrap_or_default();
        ensure(rest.iter().all(|byte| *byte == 0), "data after the end of a file")?;
        data.insert(index, page);
    }
}

/// The runs of pages that are reserved, none of which was written.
fn load_reserved(input: &mut dyn Read, mut data: Data) -> Result<Data, ImageError> {
    let (mut least, pages) = (0, data.size.div_ceil(PAGE_U64));
    loop {
        let start = get_u64(input)?;
        if start == u64::MAX {
            return Ok(data);
        }
        let end = get_u64(input)?;
        ensure(start >= least && start < end && end <= pages, "reserved space out of place")?;
        ensure(!data.is_written(start..end), "reserved space that is written")?;
        least = end;
        data.reserve(start..end);
    }
}

fn save_directory(out: &mut dyn Write, dir: &Directory) -> io::Result<()> {
    put_node(out, dir.parent)?;
    put_u64(out, dir.next_cookie())?;
    put_u64(out, dir.len() as u64)?;
    for found in dir.after(0) {
        put_u64(out, found.cookie)?;
        put_node(out, found.node)?;
        put_bytes(out, found.name)?;
    }
    Ok(())
}

fn load_directory(fs: &FileSystem, input: &mut dyn Read) -> Result<Directory, ImageError> {
    let mut dir = Directory::new(get_node(input)?);
    let next_cookie = get_u64(input)?;
    for _ in 0..get_u64(input)? {
        let cookie = get_u64(input)?;
        let node = get_node(input)?;
        let name = get_bytes(input, NAME_MAX)?;
        let new = check_name(&name).is_ok() && dir.find(&fs.hasher, &name).is_none();
        ensure(new && !matches!(&name[..], b"." | b".."), "impossible name")?;
        ensure(dir.restore(&fs.hasher, cookie, &name, node), "cookies out of order")?;
    }
    ensure(dir.restore_next_cookie(next_cookie), "cookies out of order")?;
    Ok(dir)
}

pub(crate) fn put_u32(out: &mut dyn Write, value: u32) -> io::Result<()> {
    out.write_all(&value.to_le_bytes())
}

pub(crate) fn put_u64(out: &mut dyn Write, value: u64) -> io::Result<()> {
    out.write_all(&value.to_le_bytes())
}

/// Bytes after their length.
pub(crate) fn put_bytes(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    put_u32(out, bytes.len() as u32)?;
    out.write_all(bytes)
}

pub(super) fn put_node(out: &mut dyn Write, node: Node) -> io::Result<()> {
    put_u64(out, node.ino)?;
    put_u32(out, node.generation)
}

fn get<const N: usize>(input: &mut dyn Read) -> Result<[u8; N], ImageError> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

pub(super) fn get_u8(input: &mut dyn Read) -> Result<u8, ImageError> {
    Ok(get::<1>(input)?[0])
}

pub(crate) fn get_u32(input: &mut dyn Read) -> Result<u32, ImageError> {
    Ok(u32::from_le_bytes(get(input)?))
}

pub(crate) fn get_u64(input: &mut dyn Read) -> Result<u64, ImageError> {
    Ok(u64::from_le_bytes(get(input)?))
}

/// Bytes after their length, which is bounded: damaged files must not fill memory.
pub(crate) fn get_bytes(input: &mut dyn Read, most: usize) -> Result<Vec<u8>, ImageError> {
    let len = get_u32(input)? as usize;
    ensure(len <= most, "impossible length")?;
    let mut bytes = vec![0; len];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

pub(super) fn get_node(input: &mut dyn Read) -> Result<Node, ImageError> {
    Ok(Node { ino: get_u64(input)?, generation: get_u32(input)? })
}

fn get_time(input: &mut dyn Read) -> Result<Stamp, ImageError> {
    let time = Time { seconds: get_u64(input)? as i64, nanos: get_u32(input)? };
    ensure(time.nanos < 1_000_000_000, "impossible time")?;
    Ok(time.into())
}
