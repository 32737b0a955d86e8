//! The checks: a table for each group.

use benchmaster_nfs_proto::v4::{
    Argop, Attributes, Bitmap4, Createtype4, Ftype4, Nfsstat4, Nfstime4, Resop, fattr4,
};
use benchmaster_record::nfs::NfsVersion;

use super::client4::{Answer, Client4};
use super::ops::{getattr, lookup, putfh};
use super::trial::Trial;
use crate::{Check, Stop, Tried};

/// Defines a table of checks: name, versions, force, places of the rule with the versions they are for, the rule, the
/// function.
macro_rules! checks {
    ($(#[$m:meta])* $list:ident, $group:ident; $(
        $name:literal $versions:ident $force:ident [$( $of:ident $text:tt $section:literal ),+] $says:literal
            => $run:expr;
    )*) => {
        $(#[$m])*
        pub(super) const $list: &[crate::Check<crate::nfs::trial::Trial>] = &[$(
            crate::Check {
                name: $name,
                group: crate::Group::$group,
                versions: crate::nfs::checks::$versions,
                force: crate::Force::$force,
                rule: crate::Rule {
                    places: &[$( (crate::nfs::checks::$of, crate::Place {
                        text: checks!(@text $text),
                        section: $section,
                    }) ),+],
                    says: $says,
                },
                run: $run,
            },
        )*];
    };
    (@text xnfs) => { crate::Text::Xnfs };
    (@text linux) => { crate::Text::Linux };
    (@text posix) => { crate::Text::Posix };
    (@text $number:literal) => { crate::Text::Rfc($number) };
}

mod acl4;
mod attributes3;
mod attributes4;
mod compound4;
mod data3;
mod delegation4;
mod directory4;
mod io4;
mod list4;
mod lock4;
mod names3;
mod names4;
mod nlm;
mod open4;
mod readdir4;
mod rpc;
mod session4;
mod slots4;
mod stateid4;
mod trunk4;
mod udp;
mod v2;
mod v42;

/// All tables.
pub(super) const ALL: &[&[Check<Trial>]] = &[
    names3::NAMES,
    attributes3::ATTRIBUTES,
    attributes3::READDIR,
    data3::IO,
    data3::LIMITS,
    rpc::RPC,
    udp::LIST,
    rpc::MOUNT,
    rpc::PORTMAP,
    nlm::LIST,
    v2::NAMES,
    v2::ATTRIBUTES,
    v2::IO,
    names4::LIST,
    attributes4::LIST,
    acl4::LIST,
    io4::LIST,
    open4::LIST,
    stateid4::LIST,
    lock4::LIST,
    session4::LIST,
    trunk4::LIST,
    slots4::LIST,
    compound4::LIST,
    readdir4::LIST,
    delegation4::LIST,
    directory4::LIST,
    delegation4::LEASES,
    v42::SPARSE,
    v42::COPY,
    v42::XATTR,
];

const ALL_VERSIONS: &[NfsVersion] = NfsVersion::ALL;
const V2: &[NfsVersion] = &[NfsVersion::V2];
const V3: &[NfsVersion] = &[NfsVersion::V3];
const V23: &[NfsVersion] = &[NfsVersion::V2, NfsVersion::V3];
const V40: &[NfsVersion] = &[NfsVersion::V40];
const V41: &[NfsVersion] = &[NfsVersion::V41, NfsVersion::V42];
const V4: &[NfsVersion] = &[NfsVersion::V40, NfsVersion::V41, NfsVersion::V42];
const V42: &[NfsVersion] = &[NfsVersion::V42];

/// What there is at a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Dir,
    Symlink,
    Fifo,
}

/// Attributes of an object that many checks look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    kind: Ftype4,
    change: u64,
    size: u64,
    fileid: u64,
    mode: u32,
    links: u32,
    accessed: Nfstime4,
    modified: Nfstime4,
    changed: Nfstime4,
}

/// The attributes of a [`Stat`].
const STAT: &[u32] = &[
    fattr4::TYPE,
    fattr4::CHANGE,
    fattr4::SIZE,
    fattr4::FILEID,
    fattr4::MODE,
    fattr4::NUMLINKS,
    fattr4::TIME_ACCESS,
    fattr4::TIME_METADATA,
    fattr4::TIME_MODIFY,
];

impl Client4 {
    /// Calls, and fails where the status is not one of these.
    fn gives(&mut self, ops: &[Argop<'_>], allowed: &[Nfsstat4]) -> Tried {
        self.compound(ops)?.is(allowed)
    }

    /// Calls on an object, and fails where the status is not one of these.
    fn on(&mut self, fh: &[u8], ops: &[Argop<'_>], allowed: &[Nfsstat4]) -> Tried {
        self.gives(&[&[putfh(fh)], ops].concat(), allowed)
    }

    /// Calls on an object, which must succeed.
    fn done(&mut self, fh: &[u8], ops: &[Argop<'_>]) -> Result<Answer, Stop> {
        self.compound(&[&[putfh(fh)], ops].concat())?.ok()
    }

    /// Calls with a saved and a current filehandle.
    fn between(&mut self, from: &[u8], to: &[u8], op: Argop<'_>) -> Result<Answer, Stop> {
        self.compound(&[putfh(from), Argop::Savefh, putfh(to), op])
    }

    /// A new object.
    fn new_object(&mut self, dir: &[u8], name: &str, kind: Kind) -> Result<Vec<u8>, Stop> {
        match kind {
            Kind::File => self.file(dir, name, b"content"),
            Kind::Dir => self.mkdir(dir, name),
            Kind::Symlink => self.make(dir, name, Createtype4::Lnk("target".into())),
            Kind::Fifo => self.make(dir, name, Createtype4::Fifo),
        }
    }

    /// The handle of a name, if it is there.
    fn find(&mut self, dir: &[u8], name: &str) -> Result<Option<Vec<u8>>, Stop> {
        let answer = self.compound(&[putfh(dir), lookup(name), Argop::Getfh])?;
        answer.is(&[Nfsstat4::OK, Nfsstat4::NOENT])?;
        Ok(answer.fh().ok())
    }

    /// Attributes of an object.
    fn stat(&mut self, fh: &[u8]) -> Result<Stat, Stop> {
        let answer = self.done(fh, &[getattr(STAT)])?;
        let attributes = self.decoded(&answer)?;
        let read = || {
            Some(Stat {
                kind: attributes.file_type?,
                change: attributes.change?,
                size: attributes.size?,
                fileid: attributes.fileid?,
                mode: attributes.mode?,
                links: attributes.numlinks?,
                accessed: attributes.time_access?,
                modified: attributes.time_modify?,
                changed: attributes.time_metadata?,
            })
        };
        read().ok_or_else(|| Stop::not_applicable("the server lacks one of mode, fileid, links and times"))
    }

    /// The attributes that GETATTR gave.
    fn decoded<'a>(&self, answer: &'a Answer) -> Result<Attributes<'a>, Stop> {
        let all = answer.all();
        let found = all.iter().rev().find_map(|result| match result {
            Resop::Getattr(Ok(ok)) => Some(ok.obj_attributes),
            _ => None,
        });
        let given = found.ok_or_else(|| answer.wrong("GETATTR is to succeed"))?;
        Attributes::decode(&given)
            .map_err(|error| answer.wrong(format!("the attributes are damaged: {error}")))
    }

    /// All attributes that the server has of an object; with what was sent.
    fn every_attribute(&mut self, fh: &[u8]) -> Result<(Answer, Bitmap4), Stop> {
        let answer = self.done(fh, &[getattr(&[fattr4::SUPPORTED_ATTRS])])?;
        let supported = self.decoded(&answer)?.supported_attrs;
        supported.map(|set| (answer.clone(), set)).ok_or_else(|| answer.wrong("supported_attrs is required"))
    }

    /// An attribute that must be supported for the check to make sense.
    fn needs(&mut self, fh: &[u8], attribute: u32, name: &str) -> Tried {
        let (_, supported) = self.every_attribute(fh)?;
        if supported.contains(attribute) {
            return Ok(());
        }
        Err(Stop::not_applicable(format!("the server does not support {name}")))
    }
}

impl Trial {
    /// Calls on the directory of the check.
    fn at_dir(&mut self, ops: &[Argop<'_>], allowed: &[Nfsstat4]) -> Tried {
        let dir = self.dir();
        self.a()?.on(&dir, ops, allowed)
    }

    /// A new object, `x` in the directory of the check.
    fn object(&mut self, kind: Kind) -> Result<Vec<u8>, Stop> {
        let dir = self.dir();
        self.a()?.new_object(&dir, "x", kind)
    }

    /// Calls on a new object.
    fn at(&mut self, kind: Kind, ops: &[Argop<'_>], allowed: &[Nfsstat4]) -> Tried {
        let fh = self.object(kind)?;
        self.a()?.on(&fh, ops, allowed)
    }

    /// The longest name, where the server says it.
    fn longest_name(&mut self) -> Result<usize, Stop> {
        let dir = self.dir();
        let client = self.a()?;
        client.needs(&dir, fattr4::MAXNAME, "maxname")?;
        let answer = client.done(&dir, &[getattr(&[fattr4::MAXNAME])])?;
        Ok(client.decoded(&answer)?.maxname.unwrap_or(255) as usize)
    }
}
