//! Attributes as this client asks for them, reads them and sets them.

use std::io::Write;

use benchmaster_nfs_proto::v4::{
    Bitmap4, Fattr4, Fh4, Fsid4, Ftype4, Nfsstat4, Nfstime4, Specdata4, Utf8, fattr4,
};
use benchmaster_nfs_proto::xdr::{Decoder, Encode, Encoder};

use super::compound::Failure;
use crate::types::{Attributes, FileType, Handle, SetAttributes, SetTime, Time};

/// What GETATTR asks for, as Linux does.
pub(super) const WANTED: Bitmap4 = Bitmap4::of(&[
    fattr4::TYPE,
    fattr4::CHANGE,
    fattr4::SIZE,
    fattr4::FSID,
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
    fattr4::MOUNTED_ON_FILEID,
]);

/// What must be there for [`Attributes`].
const NEEDED: Bitmap4 = Bitmap4::of(&[fattr4::TYPE, fattr4::CHANGE, fattr4::SIZE, fattr4::FSID]);

/// What READDIR asks for when only names are wanted.
pub(super) const OF_NAMES: Bitmap4 = Bitmap4::of(&[fattr4::FILEID, fattr4::MOUNTED_ON_FILEID]);

/// What READDIR asks for when attributes are wanted.
pub(super) const OF_ENTRIES: Bitmap4 =
    WANTED.union(&Bitmap4::of(&[fattr4::RDATTR_ERROR, fattr4::FILEHANDLE]));

/// User and group of an owner that is no number.
const NOBODY: u32 = 65_534;

/// Attributes as they came, with what [`Attributes`] has no place for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Received {
    pub(super) attributes: Attributes,
    mask: Bitmap4,
    pub(super) handle: Option<Handle>,
    pub(super) error: Option<Nfsstat4>,
}

impl Received {
    /// The attributes, when enough of them came.
    pub(super) fn usable(&self) -> Option<Attributes> {
        NEEDED.is_subset(&self.mask).then_some(self.attributes)
    }

    /// The same where they were asked for by themselves.
    pub(super) fn all(&self) -> Result<Attributes, Failure> {
        self.usable().ok_or(Failure::Nonsense("attributes are missing"))
    }
}

/// Reads attributes of [`OF_ENTRIES`].
pub(super) fn decode(attrs: &Fattr4<'_>) -> Result<Received, Failure> {
    let mask = attrs.attrmask;
    if !mask.is_subset(&OF_ENTRIES) {
        return Err(Failure::Nonsense("attributes that were not requested"));
    }
    let mut d = Decoder::new(attrs.attr_vals.0);
    let mut out = Attributes {
        kind: FileType::Other,
        mode: 0,
        links: 1,
        uid: NOBODY,
        gid: NOBODY,
        size: 0,
        used: 0,
        fsid: (0, 0),
        fileid: 0,
        accessed: Time::default(),
        modified: Time::default(),
        changed: Time::default(),
        change: 0,
    };
    let (mut handle, mut error, mut mounted_on) = (None, None, None);
    for bit in mask.iter() {
        match bit {
            fattr4::TYPE => {
                out.kind = match d.get::<Ftype4>()? {
                    Ftype4::Reg | Ftype4::NamedAttr => FileType::Regular,
                    Ftype4::Dir | Ftype4::AttrDir => FileType::Directory,
                    Ftype4::Lnk => FileType::Symlink,
                    Ftype4::Blk | Ftype4::Chr | Ftype4::Sock | Ftype4::Fifo => FileType::Other,
                }
            }
            fattr4::CHANGE => out.change = d.get()?,
            fattr4::SIZE => out.size = d.get()?,
            fattr4::FSID => {
                let Fsid4 { major, minor } = d.get()?;
                out.fsid = (major, minor);
            }
            fattr4::RDATTR_ERROR => error = Some(d.get::<Nfsstat4>()?).filter(|s| *s != Nfsstat4::OK),
            fattr4::FILEHANDLE => handle = Handle::new(d.get::<Fh4<'_>>()?.0),
            fattr4::FILEID => out.fileid = d.get()?,
            fattr4::MODE => out.mode = d.get::<u32>()? & 0o7777,
            fattr4::NUMLINKS => out.links = d.get()?,
            fattr4::OWNER => out.uid = number(d.get::<Utf8<'_>>()?.0),
            fattr4::OWNER_GROUP => out.gid = number(d.get::<Utf8<'_>>()?.0),
            fattr4::RAWDEV => {
                let _: Specdata4 = d.get()?;
            }
            fattr4::SPACE_USED => out.used = d.get()?,
            fattr4::TIME_ACCESS => out.accessed = time(d.get()?),
            fattr4::TIME_METADATA => out.changed = time(d.get()?),
            fattr4::TIME_MODIFY => out.modified = time(d.get()?),
            fattr4::MOUNTED_ON_FILEID => mounted_on = Some(d.get()?),
            _ => return Err(Failure::Nonsense("attributes that were not requested")),
        }
    }
    if !d.rest().is_empty() {
        return Err(Failure::Nonsense("bytes after the attributes"));
    }
    if let Some(fileid) = mounted_on.filter(|_| !mask.contains(fattr4::FILEID)) {
        out.fileid = fileid;
    }
    Ok(Received { attributes: out, mask, handle, error })
}

fn time(Nfstime4 { seconds, nseconds }: Nfstime4) -> Time {
    Time { seconds, nanos: nseconds }
}

/// An owner as a number (RFC 7530 §5.9), else 65534.
fn number(owner: &[u8]) -> u32 {
    std::str::from_utf8(owner).ok().and_then(|text| text.parse().ok()).unwrap_or(NOBODY)
}

/// Attributes to set, encoded in place: a `fattr4`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Encoded {
    pub(super) mask: Bitmap4,
    bytes: [u8; 96],
    len: usize,
}

impl Encoded {
    /// Those that `set` has.
    pub(super) fn new(set: &SetAttributes) -> Self {
        let mut this = Self { mask: Bitmap4::EMPTY, bytes: [0; 96], len: 0 };
        if let Some(size) = set.size {
            this.add(fattr4::SIZE, &size.to_be_bytes());
        }
        if let Some(mode) = set.mode {
            this.add(fattr4::MODE, &mode.to_be_bytes());
        }
        if let Some(uid) = set.uid {
            this.owner(fattr4::OWNER, uid);
        }
        if let Some(gid) = set.gid {
            this.owner(fattr4::OWNER_GROUP, gid);
        }
        if let Some(time) = set.accessed {
            this.time(fattr4::TIME_ACCESS_SET, time);
        }
        if let Some(time) = set.modified {
            this.time(fattr4::TIME_MODIFY_SET, time);
        }
        this
    }

    /// Only a mode.
    pub(super) fn mode(mode: u32) -> Self {
        Self::new(&SetAttributes { mode: Some(mode), ..Default::default() })
    }

    fn add(&mut self, number: u32, bytes: &[u8]) {
        self.mask.set(number);
        self.append(bytes);
    }

    fn append(&mut self, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            place.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }

    fn owner(&mut self, number: u32, id: u32) {
        let mut digits = [0; 10];
        let mut rest = &mut digits[..];
        // Ten digits are enough for any number.
        let _ = write!(rest, "{id}");
        let left = rest.len();
        let text = &digits[..digits.len() - left];
        self.add(number, &(text.len() as u32).to_be_bytes());
        self.append(text);
        self.append(&[0; 3][..text.len().wrapping_neg() & 3]);
    }

    fn time(&mut self, number: u32, time: SetTime) {
        match time {
            SetTime::Now => self.add(number, &0u32.to_be_bytes()),
            SetTime::To(Time { seconds, nanos }) => {
                self.add(number, &1u32.to_be_bytes());
                self.append(&seconds.to_be_bytes());
                self.append(&nanos.to_be_bytes());
            }
        }
    }

    /// As a message has it.
    pub(super) fn fattr(&self) -> Fattr4<'_> {
        Fattr4 { attrmask: self.mask, attr_vals: self.bytes[..self.len].into() }
    }
}

impl Encode for Encoded {
    fn encode(&self, e: &mut Encoder) {
        e.put(&self.fattr());
    }
}

#[cfg(test)]
mod tests {
    use benchmaster_nfs_proto::v4::{self, Settime4};

    use super::*;

    #[test]
    fn what_is_set_is_what_the_protocol_says() {
        let set = SetAttributes {
            mode: Some(0o640),
            uid: Some(u32::MAX),
            gid: Some(7),
            size: Some(1 << 40),
            accessed: Some(SetTime::Now),
            modified: Some(SetTime::To(Time { seconds: -5, nanos: 6 })),
        };
        let encoded = Encoded::new(&set);
        let attrs = v4::Attributes::decode(&encoded.fattr()).unwrap();
        assert_eq!((attrs.mode, attrs.size), (Some(0o640), Some(1 << 40)));
        assert_eq!(attrs.owner.unwrap().0, b"4294967295");
        assert_eq!(attrs.owner_group.unwrap().0, b"7");
        assert_eq!(attrs.time_access_set, Some(Settime4::ServerTime));
        let to = Settime4::ClientTime(Nfstime4 { seconds: -5, nseconds: 6 });
        assert_eq!(attrs.time_modify_set, Some(to));
        assert_eq!(Encoded::new(&SetAttributes::default()).fattr().attr_vals.0, b"");
    }

    #[test]
    fn what_comes_is_read_as_the_protocol_says() {
        let sent = v4::Attributes {
            file_type: Some(Ftype4::Dir),
            change: Some(9),
            size: Some(8),
            fsid: Some(Fsid4 { major: 1, minor: 2 }),
            fileid: Some(3),
            mode: Some(0o40755),
            numlinks: Some(4),
            owner: Some("1000".into()),
            owner_group: Some("staff@example.org".into()),
            space_used: Some(4096),
            time_modify: Some(Nfstime4 { seconds: 1, nseconds: 2 }),
            mounted_on_fileid: Some(77),
            ..Default::default()
        };
        let mut e = Encoder::new();
        e.put(&sent);
        let fattr = Decoder::new(e.buffer()).get::<Fattr4<'_>>().unwrap();
        let got = decode(&fattr).unwrap().all().unwrap();
        assert_eq!((got.kind, got.change, got.size, got.fsid), (FileType::Directory, 9, 8, (1, 2)));
        assert_eq!((got.fileid, got.mode, got.links, got.used), (3, 0o755, 4, 4096));
        assert_eq!((got.uid, got.gid), (1000, NOBODY));
        assert_eq!(got.modified, Time { seconds: 1, nanos: 2 });
        let short = Fattr4 { attr_vals: fattr.attr_vals.0[..20].into(), ..fattr };
        assert!(matches!(decode(&short), Err(Failure::Xdr(_))));
        let alien = Fattr4 { attrmask: fattr.attrmask.with(fattr4::ACL), ..fattr };
        assert!(matches!(decode(&alien), Err(Failure::Nonsense(_))));
    }
}
