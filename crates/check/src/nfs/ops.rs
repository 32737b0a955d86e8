//! Short forms of the operations of version 4, and attributes to send.

use benchmaster_nfs_proto::v4::{
    self, Argop, Attributes, Bitmap4, Createtype4, Fattr4, Nfsstat4, StableHow4, Stateid4,
};
use benchmaster_nfs_proto::xdr::{Bulk, Decoder, Encoder};

/// Attributes to send: which, and the bytes of their values, which may be wrong.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attrs {
    pub(crate) mask: Bitmap4,
    pub(crate) values: Vec<u8>,
}

impl Attrs {
    pub(crate) fn of(attributes: &Attributes<'_>) -> Self {
        let mut e = Encoder::new();
        e.put(attributes);
        let whole = Decoder::new(e.buffer()).get::<Fattr4<'_>>();
        whole
            .map(|whole| Self { mask: whole.attrmask, values: whole.attr_vals.0.to_vec() })
            .unwrap_or_default()
    }

    pub(crate) fn none() -> Self {
        Self::default()
    }

    pub(crate) fn mode(mode: u32) -> Self {
        Self::of(&Attributes { mode: Some(mode), ..Attributes::default() })
    }

    pub(crate) fn size(size: u64) -> Self {
        Self::of(&Attributes { size: Some(size), ..Attributes::default() })
    }

    pub(crate) fn fattr(&self) -> Fattr4<'_> {
        Fattr4 { attrmask: self.mask, attr_vals: (&self.values[..]).into() }
    }
}

pub(crate) fn putfh(fh: &[u8]) -> Argop<'_> {
    Argop::Putfh(v4::PutfhArgs { object: fh.into() })
}

pub(crate) fn lookup(name: &str) -> Argop<'_> {
    lookup_bytes(name.as_bytes())
}

pub(crate) fn lookup_bytes(name: &[u8]) -> Argop<'_> {
    Argop::Lookup(v4::LookupArgs { objname: name.into() })
}

pub(crate) fn getattr(bits: &[u32]) -> Argop<'static> {
    Argop::Getattr(v4::GetattrArgs { attr_request: Bitmap4::of(bits) })
}

pub(crate) fn setattr(stateid: Stateid4, attrs: &Attrs) -> Argop<'_> {
    Argop::Setattr(v4::SetattrArgs { stateid, obj_attributes: attrs.fattr() })
}

pub(crate) fn create<'a>(objtype: Createtype4<'a>, name: &'a [u8], attrs: &'a Attrs) -> Argop<'a> {
    Argop::Create(v4::CreateArgs { objtype, objname: name.into(), createattrs: attrs.fattr() })
}

pub(crate) fn remove(name: &str) -> Argop<'_> {
    Argop::Remove(v4::RemoveArgs { target: name.into() })
}

pub(crate) fn rename<'a>(old: &'a str, new: &'a str) -> Argop<'a> {
    Argop::Rename(v4::RenameArgs { oldname: old.into(), newname: new.into() })
}

pub(crate) fn link(new: &str) -> Argop<'_> {
    Argop::Link(v4::LinkArgs { newname: new.into() })
}

pub(crate) fn access(access: u32) -> Argop<'static> {
    Argop::Access(v4::AccessArgs { access })
}

pub(crate) fn read(stateid: Stateid4, offset: u64, count: u32) -> Argop<'static> {
    Argop::Read(v4::ReadArgs { stateid, offset, count })
}

pub(crate) fn write(stateid: Stateid4, offset: u64, data: &[u8]) -> Argop<'_> {
    write_how(stateid, offset, StableHow4::FileSync, data)
}

pub(crate) fn write_how(stateid: Stateid4, offset: u64, stable: StableHow4, data: &[u8]) -> Argop<'_> {
    Argop::Write(v4::WriteArgs { stateid, offset, stable, data: Bulk::Bytes(data) })
}

pub(crate) fn commit(offset: u64, count: u32) -> Argop<'static> {
    Argop::Commit(v4::CommitArgs { offset, count })
}

pub(crate) fn readdir(cookie: u64, cookieverf: v4::Verifier4, maxcount: u32, bits: &[u32]) -> Argop<'static> {
    let attr_request = Bitmap4::of(bits);
    Argop::Readdir(v4::ReaddirArgs { cookie, cookieverf, dircount: maxcount, maxcount, attr_request })
}

pub(crate) fn verify(attrs: &Attrs) -> Argop<'_> {
    Argop::Verify(v4::VerifyArgs { obj_attributes: attrs.fattr() })
}

pub(crate) fn nverify(attrs: &Attrs) -> Argop<'_> {
    Argop::Nverify(v4::VerifyArgs { obj_attributes: attrs.fattr() })
}

/// The name of a status, or of several.
pub(crate) fn names(statuses: &[Nfsstat4]) -> String {
    let names: Vec<String> = statuses.iter().map(ToString::to_string).collect();
    names.join(" or ")
}
