//! Changes in the log (`--durability`), and the way back: what a record says about files, so that following records in order
//! makes of an old file system the one that was lost.
//!
//! Records say what is after a change, not what was done: attributes, names with their cookies, data. Data of UNSTABLE writes
//! are in the log when they become stable; until then [`Logged::dirty`] knows where they are.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;

use super::data::{Data, Growth, Piece, SIZE_MAX};
use super::directory::Directory;
use super::image::{self, get_bytes, get_node, get_u8, get_u64, put_bytes, put_node, put_u32, put_u64};
use super::inode::{Body, Inode};
use super::page::PAGE_U64;
use super::runs::Runs;
use super::{FileSystem, FsError, ImageError, NAME_MAX, Node};
use crate::wal::{Room, Wal};

const ATTRIBUTES: u8 = 1;
const XATTRS: u8 = 2;
const VERIFIER: u8 = 3;
const NAME: u8 = 4;
const NO_NAME: u8 = 5;
const DATA: u8 = 6;
const HOLE: u8 = 7;
const RESERVED: u8 = 8;
const ACL: u8 = 9;

/// Room for what a change says beside data and extended attributes: attributes of four files, two of them links of the longest
/// kind, two names, and an access control list.
const CHANGE: u64 = (12 << 10) + image::ACL_ROOM;
/// Room for the extended attributes of a file.
const XATTR_ROOM: u64 = (1 << 20) + (128 << 10);
/// Data of one record.
const PART: u64 = 4 << 20;
const PIECES: usize = (PART / PAGE_U64) as usize;
/// Bytes that a record says about a piece of data beside it.
const PIECE: u64 = 32;

/// Where a file system's changes are logged.
#[derive(Debug)]
pub(super) struct Logged {
    wal: Arc<Wal>,
    export: u32,
    /// Ranges that were written and are not in the log.
    dirty: Mutex<HashMap<Node, Runs>>,
}

/// A record under construction.
pub(super) struct Record<'r>(&'r mut Vec<u8>);

/// Writing to memory does not fail.
fn sure(_: io::Result<()>) {}

impl Record<'_> {
    fn tag(&mut self, tag: u8, ino: u64) {
        self.0.push(tag);
        sure(put_u64(self.0, ino));
    }

    /// All attributes of a file, its size, and what it is.
    pub(super) fn attributes(&mut self, ino: u64, inode: &Inode) {
        self.tag(ATTRIBUTES, ino);
        sure(image::save_attributes(self.0, inode));
        match &inode.body {
            Body::Regular(data) => sure(put_u64(self.0, data.size)),
            Body::Directory(dir) => sure(put_node(self.0, dir.parent)),
            _ => sure(image::save_small(self.0, &inode.body)),
        }
    }

    /// The verifier of exclusive creation that a file has, or has no more.
    pub(super) fn verifier(&mut self, ino: u64, inode: &Inode) {
        if let Some(extra) = &inode.extra {
            self.tag(VERIFIER, ino);
            self.0.push(u8::from(extra.verifier.is_some()));
            sure(put_u64(self.0, extra.verifier.unwrap_or_default()));
        }
    }

    /// The access control list that a file has, or has no more.
    pub(super) fn acl(&mut self, ino: u64, inode: &Inode) {
        if let Some(extra) = &inode.extra {
            self.tag(ACL, ino);
            sure(image::save_acl(self.0, extra.acl.as_deref()));
        }
    }

    /// Attributes, extended ones too.
    pub(super) fn all(&mut self, ino: u64, inode: &Inode) {
        self.attributes(ino, inode);
        self.tag(XATTRS, ino);
        sure(image::save_extra(self.0, inode.extra.as_deref()));
    }

    /// A name leads to a file; it may have led to another one.
    pub(super) fn name(&mut self, dir: u64, cookie: u64, name: &[u8], node: Node) {
        self.tag(NAME, dir);
        sure(put_u64(self.0, cookie));
        sure(put_node(self.0, node));
        sure(put_bytes(self.0, name));
    }

    pub(super) fn no_name(&mut self, dir: u64, name: &[u8]) {
        self.tag(NO_NAME, dir);
        sure(put_bytes(self.0, name));
    }

    pub(super) fn hole(&mut self, ino: u64, range: &Range<u64>) {
        self.range(HOLE, ino, range);
    }

    pub(super) fn reserved(&mut self, ino: u64, range: &Range<u64>) {
        self.range(RESERVED, ino, range);
    }

    fn range(&mut self, tag: u8, ino: u64, range: &Range<u64>) {
        self.tag(tag, ino);
        sure(put_u64(self.0, range.start));
        sure(put_u64(self.0, range.end));
    }

    fn data(&mut self, ino: u64, offset: u64, bytes: &[u8]) {
        self.tag(DATA, ino);
        sure(put_u64(self.0, offset));
        sure(put_bytes(self.0, bytes));
    }
}

/// Bytes that pieces take in records.
fn cost(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|piece| piece.bytes().len() as u64 + PIECE).sum::<u64>() + PIECE
}

impl FileSystem {
    /// From now on changes are logged.
    pub(crate) fn log_to(&mut self, wal: &Arc<Wal>, export: u32) {
        self.logged = Some(Box::new(Logged { wal: Arc::clone(wal), export, dirty: Mutex::default() }));
    }

    /// Takes room in the log for a change; `None` without a log. Before any file is locked.
    #[inline]
    pub(super) fn room(&self) -> Result<Option<Room<'_>>, FsError> {
        self.room_for(CHANGE)
    }

    /// The same for a change of extended attributes.
    pub(super) fn room_for_xattrs(&self) -> Result<Option<Room<'_>>, FsError> {
        self.room_for(CHANGE + XATTR_ROOM)
    }

    fn room_for(&self, bytes: u64) -> Result<Option<Room<'_>>, FsError> {
        self.logged.as_ref().map(|logged| logged.wal.room(bytes)).transpose()
    }

    /// Logs a change, whose files are still locked.
    #[inline]
    pub(super) fn log(&self, room: Option<Room<'_>>, describe: impl FnOnce(&mut Record<'_>)) {
        if let Some((logged, room)) = self.logged.as_ref().zip(room) {
            room.append(|out| logged.record(out, describe));
        }
    }

    /// Data were written that are not to be logged yet. The file is locked.
    #[inline]
    pub(super) fn note_dirty(&self, file: Node, range: Range<u64>) {
        if let Some(logged) = &self.logged {
            let mut dirty = logged.dirty.lock();
            let runs = dirty.entry(file).or_default();
            runs.remove(range.clone());
            runs.insert(range);
        }
    }

    /// The reply speaks of changes of others, which may not be safe yet.
    pub(super) fn speak_of_all(&self) {
        if let Some(logged) = &self.logged {
            logged.wal.require_all();
        }
    }

    /// A file is gone.
    pub(super) fn forget_dirty(&self, file: Node) {
        if let Some(logged) = &self.logged {
            logged.dirty.lock().remove(&file);
        }
    }

    /// Logs what is in `range` of a file.
    pub(super) fn log_range(&self, file: Node, range: Range<u64>) -> Result<(), FsError> {
        let Some(logged) = &self.logged else { return Ok(()) };
        if let Some(runs) = logged.dirty.lock().get_mut(&file) {
            runs.remove(range.clone());
        }
        let logging = self.log_runs(logged, file, std::slice::from_ref(&range));
        if logging.is_err() {
            self.note_dirty(file, range);
        }
        logging
    }

    /// Logs what was written to a file and is not in the log.
    pub(super) fn log_dirty(&self, file: Node) -> Result<(), FsError> {
        let Some(logged) = &self.logged else { return Ok(()) };
        // In the log already, perhaps by another thread, whose reply has not left.
        logged.wal.require_all();
        let Some(dirty) = logged.dirty.lock().remove(&file) else { return Ok(()) };
        let runs: Vec<Range<u64>> = dirty.iter().collect();
        let logging = self.log_runs(logged, file, &runs);
        if logging.is_err() {
            runs.into_iter().for_each(|run| self.note_dirty(file, run));
        }
        logging
    }

    fn log_runs(&self, logged: &Logged, file: Node, runs: &[Range<u64>]) -> Result<(), FsError> {
        let mut need = CHANGE + runs.iter().map(|run| PIECE + (run.end - run.start).min(PART)).sum::<u64>();
        loop {
            let mut room = logged.wal.room(need)?;
            let inode = self.table.read(file)?;
            let content = inode.regular()?;
            let clipped = runs.iter().map(|run| run.start..run.end.min(content.size));
            let runs: Vec<_> =
                clipped.filter(|run| !run.is_empty()).map(|run| (content.pieces(run.clone()), run)).collect();
            // Every part of the data is a record.
            let parts = |pieces: &[Piece]| 32 * (pieces.len() as u64 / PIECES as u64 + 2);
            let now = CHANGE + runs.iter().map(|(pieces, _)| cost(pieces) + parts(pieces)).sum::<u64>();
            if !room.holds(now) {
                need = now;
                continue;
            }
            room.add(|out| {
                logged.record(out, |record| {
                    record.attributes(file.ino, &inode);
                    for (pieces, run) in &runs {
                        let held: u64 = pieces.iter().map(|piece| piece.bytes().len() as u64).sum();
                        if held < run.end - run.start {
                            record.hole(file.ino, run);
                        }
                    }
                });
            });
            for (pieces, run) in &runs {
                let mut left = &pieces[..];
                while !left.is_empty() {
                    // Pieces are pages or less.
                    let (part, rest) = left.split_at(left.len().min(PIECES));
                    left = rest;
                    room.add(|out| {
                        logged.record(out, |record| {
                            part.iter()
                                .for_each(|piece| record.data(file.ino, run.start + piece.at, piece.bytes()));
                        });
                    });
                }
            }
            return Ok(());
        }
    }
}

impl Logged {
    fn record(&self, out: &mut Vec<u8>, describe: impl FnOnce(&mut Record<'_>)) {
        sure(put_u32(out, self.export));
        describe(&mut Record(out));
    }
}

/// Following records, when a file system was read and before it is used.
impl FileSystem {
    /// Does what a record says, after its export number.
    pub(crate) fn follow(&self, record: &mut &[u8]) -> Result<(), ImageError> {
        while !record.is_empty() {
            let (tag, ino) = (get_u8(record)?, get_u64(record)?);
            let mut inode =
                self.table.restore_at(ino).ok_or(ImageError::Content("impossible file number"))?;
            match tag {
                ATTRIBUTES => follow_attributes(record, &mut inode)?,
                XATTRS => inode.extra = image::load_extra(record)?,
                VERIFIER => {
                    let verified = get_u8(record)? != 0;
                    let verifier = Some(get_u64(record)?).filter(|_| verified);
                    inode.extra.get_or_insert_default().verifier = verifier;
                }
                ACL => inode.set_acl(image::load_acl(record)?),
                NAME => {
                    let (cookie, node) = (get_u64(record)?, get_node(record)?);
                    let name = get_bytes(record, NAME_MAX)?;
                    let dir =
                        inode.directory_mut().map_err(|_| ImageError::Content("a name in no directory"))?;
                    match dir.find(&self.hasher, &name).map(|found| found.cookie) {
                        Some(cookie) => dir.replace(cookie, node),
                        None => {
                            let fits = dir.restore(&self.hasher, cookie, &name, node);
                            image::ensure(fits, "cookies out of order")?;
                        }
                    }
                }
                NO_NAME => {
                    let name = get_bytes(record, NAME_MAX)?;
                    let dir =
                        inode.directory_mut().map_err(|_| ImageError::Content("a name in no directory"))?;
                    image::ensure(dir.remove(&self.hasher, &name), "a name that goes and was not there")?;
                }
                DATA => {
                    let (offset, bytes) = (get_u64(record)?, get_bytes(record, PART as usize)?);
                    let end = offset.checked_add(bytes.len() as u64).filter(|end| *end <= SIZE_MAX);
                    image::ensure(end.is_some(), "data beyond what a file can hold")?;
                    regular(&mut inode)?.write(offset, &bytes, Growth::Roomy);
                }
                HOLE | RESERVED => {
                    let range = get_u64(record)?..get_u64(record)?;
                    image::ensure(range.start <= range.end && range.end <= SIZE_MAX, "an impossible range")?;
                    let content = regular(&mut inode)?;
                    if tag == HOLE { content.punch(range) } else { content.allocate(range) }
                }
                _ => return Err(ImageError::Content("an unknown change")),
            }
        }
        Ok(())
    }
}

fn regular(inode: &mut Inode) -> Result<&mut Data, ImageError> {
    inode.regular_mut().map_err(|_| ImageError::Content("data of no regular file"))
}

fn follow_attributes(record: &mut &[u8], inode: &mut Inode) -> Result<(), ImageError> {
    let old = std::mem::replace(inode, Inode::free());
    let same = |new: &Inode| old.generation == new.generation;
    let tag = get_u8(record)?;
    let mut new = image::load_attributes(record)?;
    if tag == image::REGULAR {
        let size = get_u64(record)?;
        image::ensure(size <= SIZE_MAX, "impossible file size")?;
        let mut data = match old.body {
            Body::Regular(data) if same(&new) => data,
            _ => Data::default(),
        };
        data.resize(size);
        // Without a name it cannot be found after a start.
        new.body = Body::Regular(if new.nlink == 0 { Data::default() } else { data });
    } else if tag == image::DIRECTORY {
        let parent = get_node(record)?;
        let mut dir = match old.body {
            Body::Directory(dir) if old.generation == new.generation => dir,
            _ => Box::new(Directory::new(parent)),
        };
        dir.parent = parent;
        new.body = Body::Directory(dir);
    } else {
        new.body = image::load_small(tag, record)?;
    }
    if old.generation == new.generation {
        new.extra = old.extra;
    }
    *inode = new;
    Ok(())
}
