//! A client of versions 2 and 3, and of the protocols beside them.

use std::fmt::{Debug, Display};
use std::marker::PhantomData;

use benchmaster_nfs_proto::rpc::RpcReply;
use benchmaster_nfs_proto::xdr::{Bulk, Decode, Decoder, Encode, Encoder};
use benchmaster_nfs_proto::{mount, portmap, v2, v3};
use benchmaster_record::nfs::NfsVersion;

use super::connection::{Connection, Procedure, User};
use super::words::brief;
use crate::{Stop, Tried, Trouble};

/// Arguments that say which procedure they are of.
pub(crate) trait Call: Encode + Debug {
    /// The procedure.
    const PROCEDURE: Procedure;
    /// Its name.
    const NAME: &'static str;
    /// Its results.
    type Results<'r>: Decode<'r> + Debug + Answered;
}

/// Results with a status.
pub(crate) trait Answered {
    /// Its type.
    type Status: Copy + PartialEq + Display + Debug;
    /// That of success.
    const OK: Self::Status;
    /// The status.
    fn status(&self) -> Self::Status;
}

impl<T, F> Answered for v3::Res<T, F> {
    type Status = v3::Nfsstat3;
    const OK: v3::Nfsstat3 = v3::Nfsstat3::OK;
    fn status(&self) -> v3::Nfsstat3 {
        self.status()
    }
}

impl<T> Answered for v2::Res<T> {
    type Status = v2::Nfsstat2;
    const OK: v2::Nfsstat2 = v2::Nfsstat2::OK;
    fn status(&self) -> v2::Nfsstat2 {
        self.status()
    }
}

/// Version 2 has a procedure whose result is a status alone.
impl Answered for v2::Nfsstat2 {
    type Status = Self;
    const OK: Self = Self::OK;
    fn status(&self) -> Self {
        *self
    }
}

/// Arguments that several procedures have, each a type of its own.
macro_rules! arguments {
    ($($name:ident of $inner:ty;)*) => { $(
        /// Arguments of the procedure of this name.
        #[derive(Debug, Clone, Copy)]
        pub(crate) struct $name<'a>(pub(crate) $inner, pub(crate) PhantomData<&'a ()>);
        impl<'a> $name<'a> {
            pub(crate) fn of(inner: $inner) -> Self {
                Self(inner, PhantomData)
            }
        }
        impl Encode for $name<'_> {
            fn encode(&self, e: &mut Encoder) {
                self.0.encode(e);
            }
        }
    )* };
}

arguments! {
    Rmdir3 of v3::RemoveArgs<'a>;
    Fsstat3 of v3::FsArgs<'a>;
    Getattr2 of v2::Fhandle;
    Readlink2 of v2::Fhandle;
    Statfs2 of v2::Fhandle;
    Remove2 of v2::DirOpArgs<'a>;
    Rmdir2 of v2::DirOpArgs<'a>;
    Mkdir2 of v2::CreateArgs<'a>;
}

macro_rules! calls {
    ($version:ident, $numbers:ident; $($args:ty, $number:ident -> $results:ty;)*) => { $(
        impl Call for $args {
            const PROCEDURE: Procedure = Procedure {
                program: $version::PROGRAM,
                version: $version::VERSION,
                number: $version::$numbers::$number.0,
            };
            const NAME: &'static str = stringify!($number);
            type Results<'r> = $results;
        }
    )* };
}

calls! {
    v3, Proc3;
    v3::GetattrArgs<'_>, GETATTR -> v3::GetattrRes;
    v3::SetattrArgs<'_>, SETATTR -> v3::SetattrRes;
    v3::LookupArgs<'_>, LOOKUP -> v3::LookupRes<'r>;
    v3::AccessArgs<'_>, ACCESS -> v3::AccessRes;
    v3::ReadlinkArgs<'_>, READLINK -> v3::ReadlinkRes<'r>;
    v3::ReadArgs<'_>, READ -> v3::ReadRes<'r>;
    v3::WriteArgs<'_>, WRITE -> v3::WriteRes;
    v3::CreateArgs<'_>, CREATE -> v3::CreateRes<'r>;
    v3::MkdirArgs<'_>, MKDIR -> v3::CreateRes<'r>;
    v3::SymlinkArgs<'_>, SYMLINK -> v3::CreateRes<'r>;
    v3::MknodArgs<'_>, MKNOD -> v3::CreateRes<'r>;
    v3::RemoveArgs<'_>, REMOVE -> v3::RemoveRes;
    Rmdir3<'_>, RMDIR -> v3::RemoveRes;
    v3::RenameArgs<'_>, RENAME -> v3::RenameRes;
    v3::LinkArgs<'_>, LINK -> v3::LinkRes;
    v3::ReaddirArgs<'_>, READDIR -> v3::ReaddirRes<'r>;
    v3::ReaddirplusArgs<'_>, READDIRPLUS -> v3::ReaddirplusRes<'r>;
    v3::PathconfArgs<'_>, PATHCONF -> v3::PathconfRes;
    v3::CommitArgs<'_>, COMMIT -> v3::CommitRes;
    Fsstat3<'_>, FSSTAT -> v3::FsstatRes;
    v3::FsArgs<'_>, FSINFO -> v3::FsinfoRes;
}

calls! {
    v2, Proc2;
    v2::SetattrArgs, SETATTR -> v2::AttrRes;
    v2::DirOpArgs<'_>, LOOKUP -> v2::DirOpRes;
    Remove2<'_>, REMOVE -> v2::Nfsstat2;
    Rmdir2<'_>, RMDIR -> v2::Nfsstat2;
    v2::ReadArgs, READ -> v2::ReadRes<'r>;
    v2::WriteArgs<'_>, WRITE -> v2::AttrRes;
    v2::CreateArgs<'_>, CREATE -> v2::DirOpRes;
    Mkdir2<'_>, MKDIR -> v2::DirOpRes;
    v2::RenameArgs<'_>, RENAME -> v2::Nfsstat2;
    v2::LinkArgs<'_>, LINK -> v2::Nfsstat2;
    v2::SymlinkArgs<'_>, SYMLINK -> v2::Nfsstat2;
    v2::ReaddirArgs, READDIR -> v2::ReaddirRes<'r>;
    Getattr2<'_>, GETATTR -> v2::AttrRes;
    Readlink2<'_>, READLINK -> v2::ReadlinkRes<'r>;
    Statfs2<'_>, STATFS -> v2::StatfsRes;
}

/// The results of a call, which decode.
#[derive(Debug, Clone)]
pub(crate) struct Answer<C> {
    pub(crate) sent: String,
    bytes: Vec<u8>,
    call: PhantomData<C>,
}

impl<C: Call> Answer<C> {
    /// The results.
    pub(crate) fn get(&self) -> Result<C::Results<'_>, Stop> {
        let mut d = Decoder::new(&self.bytes);
        let results = d.get().map_err(|error| {
            Stop::failed(self.sent.clone(), format!("the results cannot be decoded: {error}"))
        })?;
        match d.rest() {
            [] => Ok(results),
            rest => Err(Stop::failed(self.sent.clone(), format!("{} bytes after the results", rest.len()))),
        }
    }

    /// What came is wrong, and what would be right.
    pub(crate) fn wrong(&self, right: impl Into<String>) -> Stop {
        let came = match self.get() {
            Ok(results) if results.status() == <C::Results<'_> as Answered>::OK => {
                brief(&format!("{results:?}"))
            }
            Ok(results) => results.status().to_string(),
            Err(stop) => return stop,
        };
        Stop::failed(self.sent.clone(), format!("{came}; {}", right.into()))
    }
}

/// The body of results that succeeded, or the check has failed.
macro_rules! good {
    ($answer:expr) => {{
        let answer = &$answer;
        match answer.get()?.ok() {
            Ok(body) => body,
            Err(_) => return Err(answer.wrong("success is right")),
        }
    }};
}
pub(crate) use good;

/// A client without state.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) connection: Connection,
    pub(crate) user: User,
    pub(crate) version: NfsVersion,
}

/// Statuses that mean "later".
const LATER: v3::Nfsstat3 = v3::Nfsstat3::JUKEBOX;

impl Client {
    /// Calls a procedure; again while the server puts it off.
    pub(crate) fn call<C: Call>(&mut self, args: &C) -> Result<Answer<C>, Stop> {
        let sent = brief(&format!("{} {args:?}", C::NAME));
        let mut tries = 0;
        loop {
            let bytes = self.results(C::PROCEDURE, &sent, |e| e.put(args))?;
            let later = C::PROCEDURE.version == 3 && bytes.starts_with(&LATER.0.to_be_bytes());
            tries += 1;
            if !later || tries > 100 {
                let answer = Answer { sent, bytes, call: PhantomData };
                answer.get()?;
                return Ok(answer);
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    /// The results of a call, as bytes.
    pub(crate) fn results(
        &mut self,
        procedure: Procedure,
        sent: &str,
        args: impl FnOnce(&mut Encoder),
    ) -> Result<Vec<u8>, Stop> {
        let user = Some(self.user);
        results(&mut self.connection, procedure, user, sent, args)
    }

    /// Calls, and fails where the status is not one of these.
    pub(crate) fn gives<C: Call, S>(&mut self, args: &C, allowed: &[S]) -> Tried
    where
        S: Copy + PartialEq + Display,
        for<'r> C::Results<'r>: Answered<Status = S>,
    {
        let answer = self.call(args)?;
        if allowed.contains(&answer.get()?.status()) {
            return Ok(());
        }
        let names: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        Err(answer.wrong(format!("{} is right", names.join(" or "))))
    }

    /// A handle of version 2.
    pub(crate) fn fh2(fh: &[u8]) -> v2::Fhandle {
        fh.try_into().unwrap_or([0; 32])
    }

    /// A new directory.
    pub(crate) fn mkdir(&mut self, dir: &[u8], name: &str) -> Result<Vec<u8>, Stop> {
        if self.version == NfsVersion::V2 {
            let where_ = v2::DirOpArgs { dir: Self::fh2(dir), name: name.into() };
            let attributes = v2::Sattr { mode: 0o755, ..v2::Sattr::NONE };
            let answer = self.call(&Mkdir2::of(v2::CreateArgs { where_, attributes }))?;
            return Ok(good!(answer).file.to_vec());
        }
        let where_ = v3::DirOpArgs { dir: dir.into(), name: name.into() };
        let attributes = v3::Sattr3 { mode: Some(0o755), ..v3::Sattr3::NONE };
        let answer = self.call(&v3::MkdirArgs { where_, attributes })?;
        let made = good!(answer);
        self.made(made.obj.map(|fh| fh.0.to_vec()), dir, name)
    }

    /// The handle of what was made; a server need not give it.
    fn made(&mut self, given: Option<Vec<u8>>, dir: &[u8], name: &str) -> Result<Vec<u8>, Stop> {
        given.map_or_else(|| self.lookup(dir, name), Ok)
    }

    /// The handle of a name.
    pub(crate) fn lookup(&mut self, dir: &[u8], name: &str) -> Result<Vec<u8>, Stop> {
        if self.version == NfsVersion::V2 {
            let answer = self.call(&v2::DirOpArgs { dir: Self::fh2(dir), name: name.into() })?;
            return Ok(good!(answer).file.to_vec());
        }
        let what = v3::DirOpArgs { dir: dir.into(), name: name.into() };
        let answer = self.call(&v3::LookupArgs { what })?;
        Ok(good!(answer).object.0.to_vec())
    }

    /// A new file with content, mode 0644.
    pub(crate) fn file(&mut self, dir: &[u8], name: &str, content: &[u8]) -> Result<Vec<u8>, Stop> {
        if self.version == NfsVersion::V2 {
            let where_ = v2::DirOpArgs { dir: Self::fh2(dir), name: name.into() };
            let attributes = v2::Sattr { mode: 0o644, ..v2::Sattr::NONE };
            let answer = self.call(&v2::CreateArgs { where_, attributes })?;
            let file = good!(answer).file;
            if !content.is_empty() {
                let data = Bulk::Bytes(content);
                let write = v2::WriteArgs { file, beginoffset: 0, offset: 0, totalcount: 0, data };
                let answer = self.call(&write)?;
                good!(answer);
            }
            return Ok(file.to_vec());
        }
        let where_ = v3::DirOpArgs { dir: dir.into(), name: name.into() };
        let how = v3::CreateHow::Guarded(v3::Sattr3 { mode: Some(0o644), ..v3::Sattr3::NONE });
        let answer = self.call(&v3::CreateArgs { where_, how })?;
        let obj = good!(answer).obj.map(|fh| fh.0.to_vec());
        let fh = self.made(obj, dir, name)?;
        if !content.is_empty() {
            self.write3(&fh, 0, content)?;
        }
        Ok(fh)
    }

    /// Writes, stable, all of it.
    pub(crate) fn write3(&mut self, fh: &[u8], offset: u64, content: &[u8]) -> Tried {
        let answer = self.call(&write3(fh, offset, v3::StableHow::FileSync, content))?;
        let count = good!(answer).count as usize;
        if count == content.len() {
            return Ok(());
        }
        Err(answer.wrong(format!("all {} bytes are to be written", content.len())))
    }

    /// All names in a directory.
    pub(crate) fn names(&mut self, dir: &[u8]) -> Result<Vec<Vec<u8>>, Stop> {
        let (mut cookie, mut cookieverf, mut all) = (0, [0; 8], Vec::new());
        loop {
            let before = cookie;
            let eof = if self.version == NfsVersion::V2 {
                let cookie2 = cookie as u32;
                let answer =
                    self.call(&v2::ReaddirArgs { dir: Self::fh2(dir), cookie: cookie2, count: 4096 })?;
                let page = good!(answer);
                for entry in page.entries.iter() {
                    all.push(entry.name.0.to_vec());
                    cookie = u64::from(entry.cookie);
                }
                page.eof
            } else {
                let answer =
                    self.call(&v3::ReaddirArgs { dir: dir.into(), cookie, cookieverf, count: 8192 })?;
                let page = good!(answer);
                for entry in page.entries.iter() {
                    all.push(entry.name.0.to_vec());
                    cookie = entry.cookie;
                }
                cookieverf = page.cookieverf;
                page.eof
            };
            if eof {
                return Ok(all);
            }
            if before == cookie {
                return Err(Stop::failed("READDIR", "no entries, and not the end"));
            }
        }
    }

    /// Removes a directory with all that is in it.
    pub(crate) fn remove_tree(&mut self, dir: &[u8], name: &[u8]) -> Tried {
        let text = String::from_utf8_lossy(name).into_owned();
        let Ok(fh) = self.lookup(dir, &text) else { return Ok(()) };
        self.allow(&fh)?;
        for child in self.names(&fh)? {
            if matches!(&child[..], b"." | b"..") {
                continue;
            }
            match self.remove(&fh, &child)? {
                0 => {}
                _ => self.remove_tree(&fh, &child)?,
            }
        }
        match self.rmdir(dir, name)? {
            0 => Ok(()),
            status => Err(Stop::failed(format!("RMDIR {text}"), format!("status {status}; 0 is right"))),
        }
    }

    /// A check may have taken away its own rights.
    fn allow(&mut self, fh: &[u8]) -> Tried {
        if self.version == NfsVersion::V2 {
            let attributes = v2::Sattr { mode: 0o700, ..v2::Sattr::NONE };
            return self.call(&v2::SetattrArgs { file: Self::fh2(fh), attributes }).map(|_| ());
        }
        let new_attributes = v3::Sattr3 { mode: Some(0o700), ..v3::Sattr3::NONE };
        self.call(&v3::SetattrArgs { object: fh.into(), new_attributes, guard: None }).map(|_| ())
    }

    /// REMOVE; gives the number of the status.
    fn remove(&mut self, dir: &[u8], name: &[u8]) -> Result<u32, Stop> {
        if self.version == NfsVersion::V2 {
            let what = v2::DirOpArgs { dir: Self::fh2(dir), name: name.into() };
            return Ok(self.call(&Remove2::of(what))?.get()?.status().0);
        }
        let object = v3::DirOpArgs { dir: dir.into(), name: name.into() };
        Ok(self.call(&v3::RemoveArgs { object })?.get()?.status().0)
    }

    /// RMDIR; gives the number of the status.
    fn rmdir(&mut self, dir: &[u8], name: &[u8]) -> Result<u32, Stop> {
        if self.version == NfsVersion::V2 {
            let what = v2::DirOpArgs { dir: Self::fh2(dir), name: name.into() };
            return Ok(self.call(&Rmdir2::of(what))?.get()?.status().0);
        }
        let object = v3::DirOpArgs { dir: dir.into(), name: name.into() };
        Ok(self.call(&Rmdir3::of(v3::RemoveArgs { object }))?.get()?.status().0)
    }
}

/// The arguments of WRITE of version 3.
pub(crate) fn write3<'a>(
    fh: &'a [u8],
    offset: u64,
    stable: v3::StableHow,
    content: &'a [u8],
) -> v3::WriteArgs<'a> {
    let data = Bulk::Bytes(content);
    v3::WriteArgs { file: fh.into(), offset, count: content.len() as u32, stable, data }
}

/// The results of a call that must be carried out.
pub(crate) fn results(
    connection: &mut Connection,
    procedure: Procedure,
    user: Option<User>,
    sent: &str,
    args: impl FnOnce(&mut Encoder),
) -> Result<Vec<u8>, Stop> {
    let stop = |trouble| Stop::Trouble { sent: sent.to_owned(), trouble };
    let xid = connection.send(procedure, user, args).map_err(stop)?;
    let reply = connection.receive(xid).map_err(stop)?;
    match reply.rpc().map_err(stop)? {
        (RpcReply::Success(_), results) => Ok(results.to_vec()),
        (other, _) => Err(Stop::failed(sent, format!("{other:?}; results are right"))),
    }
}

/// Whether a program is there in a version.
pub(crate) fn null(connection: &mut Connection, program: u32, version: u32) -> Result<bool, Trouble> {
    let xid = connection.send(Procedure { program, version, number: 0 }, None, |_| {})?;
    Ok(matches!(connection.receive(xid)?.rpc()?, (RpcReply::Success(_), _)))
}

/// The TCP port of a program, by the portmapper.
pub(crate) fn port(connection: &mut Connection, program: u32, version: u32) -> Result<Option<u16>, Stop> {
    let getport = Procedure {
        program: portmap::PROGRAM,
        version: portmap::VERSION_2,
        number: portmap::PmapProc::GETPORT.0,
    };
    let mapping = portmap::Mapping { prog: program, vers: version, prot: portmap::IPPROTO_TCP, port: 0 };
    let sent = format!("GETPORT {mapping:?}");
    let bytes = results(connection, getport, None, &sent, |e| e.put(&mapping))?;
    let port: u32 = Decoder::new(&bytes)
        .get()
        .map_err(|error| Stop::failed(sent, format!("the result cannot be decoded: {error}")))?;
    Ok(u16::try_from(port).ok().filter(|port| *port != 0))
}

/// MNT: the handle of an export.
pub(crate) fn mount(
    connection: &mut Connection,
    version: NfsVersion,
    user: User,
    path: &[u8],
) -> Result<Vec<u8>, Stop> {
    let old = version == NfsVersion::V2;
    let number = mount::Proc::MNT.0;
    let version = if old { mount::VERSION_1 } else { mount::VERSION_3 };
    let sent = format!("MNT {}", String::from_utf8_lossy(path));
    let procedure = Procedure { program: mount::PROGRAM, version, number };
    let bytes = results(connection, procedure, Some(user), &sent, |e| e.put(&mount::DirPath::from(path)))?;
    let wrong = |came: String| Stop::failed(sent.clone(), came);
    let malformed = |error| wrong(format!("the result cannot be decoded: {error}"));
    let mut d = Decoder::new(&bytes);
    if old {
        return match d.get().map_err(malformed)? {
            mount::FhStatus::Ok(fh) => Ok(fh.to_vec()),
            mount::FhStatus::Err(status) => Err(wrong(mount::Mountstat3(status).to_string())),
        };
    }
    match d.get().map_err(malformed)? {
        mount::MountRes3::Ok(ok) => Ok(ok.fhandle.0.to_vec()),
        mount::MountRes3::Err(status) => Err(wrong(mount::Mountstat3(status).to_string())),
    }
}
