//! COMPOUND: operations written one after the other, results read one by one, both without allocation.

use benchmaster_nfs_proto::v4::{
    CompoundResHeader, GetattrArgs, GetattrOk, Nfsstat4, Opnum, PutfhArgs, SequenceArgs, SequenceOk,
};
use benchmaster_nfs_proto::xdr::{Decode, Decoder, Encode, Encoder, Mark, XdrError};

use super::attrs;
use crate::error::NfsError;
use crate::types::{Attributes, Handle};

/// The operations of a request under way.
pub(super) struct Ops<'e> {
    e: &'e mut Encoder,
    at: Mark,
    count: u32,
}

impl<'e> Ops<'e> {
    /// Begins a COMPOUND without tag.
    pub(super) fn begin(e: &'e mut Encoder, minor: u32) -> Self {
        e.raw(&(u64::from(minor)).to_be_bytes());
        let at = e.mark();
        e.put(&0u32);
        Self { e, at, count: 0 }
    }

    /// SEQUENCE, which every request begins with: written as one piece.
    #[inline]
    pub(super) fn sequence(&mut self, args: &SequenceArgs) {
        let mut bytes = [0; 36];
        bytes[..4].copy_from_slice(&Opnum::SEQUENCE.0.to_be_bytes());
        bytes[4..20].copy_from_slice(&args.sessionid);
        bytes[20..24].copy_from_slice(&args.sequenceid.to_be_bytes());
        bytes[24..28].copy_from_slice(&args.slotid.to_be_bytes());
        bytes[28..32].copy_from_slice(&args.highest_slotid.to_be_bytes());
        bytes[35] = args.cachethis.into();
        self.e.raw(&bytes);
        self.count += 1;
    }

    #[inline]
    pub(super) fn put<A: Encode + ?Sized>(&mut self, op: Opnum, arguments: &A) -> &mut Self {
        self.e.put(&op);
        self.e.put(arguments);
        self.count += 1;
        self
    }

    /// PUTFH: what follows is about this file.
    #[inline]
    pub(super) fn on(&mut self, file: &Handle) -> &mut Self {
        self.put(Opnum::PUTFH, &PutfhArgs { object: file.bytes().into() })
    }

    /// GETATTR of all that [`Attributes`](crate::types::Attributes) has.
    #[inline]
    pub(super) fn attributes(&mut self) -> &mut Self {
        self.put(Opnum::GETATTR, &GetattrArgs { attr_request: attrs::WANTED })
    }

    /// Writes their number.
    pub(super) fn end(self) {
        self.e.patch_u32(self.at, self.count);
    }
}

/// Why results end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// They do not decode.
    Xdr(XdrError),
    /// An operation failed.
    Status(Nfsstat4),
    /// They make no sense.
    Nonsense(&'static str),
}

impl From<XdrError> for Failure {
    fn from(error: XdrError) -> Self {
        Self::Xdr(error)
    }
}

impl From<Nfsstat4> for Failure {
    fn from(status: Nfsstat4) -> Self {
        Self::Status(status)
    }
}

impl From<Failure> for NfsError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Xdr(error) => error.into(),
            Failure::Status(status) => Self::V4(status),
            Failure::Nonsense(what) => Self::Nonsense(what),
        }
    }
}

/// The result of an operation after the one that counts, whose failure changes nothing.
pub(super) fn appended<T>(result: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Failure::Status(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// What a successful SEQUENCE says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sequenced {
    /// Highest slot that the server takes.
    pub(super) highest_slotid: u32,
    /// Highest slot that it wants to be used.
    pub(super) target_highest_slotid: u32,
    pub(super) status_flags: u32,
}

/// Results of a request.
pub(super) struct Results<'d, 'a> {
    d: &'d mut Decoder<'a>,
    /// Status of the last operation.
    pub(super) status: Nfsstat4,
    left: u32,
}

impl<'d, 'a> Results<'d, 'a> {
    pub(super) fn begin(d: &'d mut Decoder<'a>) -> Result<Self, XdrError> {
        let CompoundResHeader { status, count, .. } = d.get()?;
        Ok(Self { d, status, left: count })
    }

    /// The result of an operation, which has to be the next.
    #[inline]
    pub(super) fn take<T: Decode<'a>>(&mut self, op: Opnum) -> Result<T, Failure> {
        self.result::<Result<T, Nfsstat4>>(op)?.map_err(Failure::Status)
    }

    /// The same where the result has another shape than body or status.
    #[inline]
    pub(super) fn result<T: Decode<'a>>(&mut self, op: Opnum) -> Result<T, Failure> {
        let Some(left) = self.left.checked_sub(1) else {
            return Err(match self.status {
                Nfsstat4::OK => Failure::Nonsense("results are missing"),
                status => Failure::Status(status),
            });
        };
        self.left = left;
        match self.d.get::<Opnum>()? {
            number if number == op => Ok(self.d.get()?),
            Opnum::ILLEGAL => Err(Failure::Status(self.d.get()?)),
            _ => Err(Failure::Nonsense("the result of another operation than the one called")),
        }
    }

    /// The result of a SEQUENCE with these arguments.
    #[inline]
    pub(super) fn sequence(&mut self, args: &SequenceArgs) -> Result<Sequenced, Failure> {
        let ok: SequenceOk = self.take(Opnum::SEQUENCE)?;
        if (ok.sessionid, ok.slotid, ok.sequenceid) != (args.sessionid, args.slotid, args.sequenceid) {
            return Err(Failure::Nonsense("the reply is for another slot"));
        }
        let SequenceOk { highest_slotid, target_highest_slotid, status_flags, .. } = ok;
        Ok(Sequenced { highest_slotid, target_highest_slotid, status_flags })
    }

    /// PUTFH was carried out.
    #[inline]
    pub(super) fn on(&mut self) -> Result<(), Failure> {
        self.take(Opnum::PUTFH)
    }

    /// The result of [`Ops::attributes`].
    #[inline]
    pub(super) fn attributes(&mut self) -> Result<Attributes, Failure> {
        let got: GetattrOk<'_> = self.take(Opnum::GETATTR)?;
        attrs::decode(&got.obj_attributes)?.all()
    }

    /// Whether results are left.
    pub(super) fn more(&self) -> bool {
        self.left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_is_written_as_the_protocol_says() {
        for cachethis in [false, true] {
            let sessionid = std::array::from_fn(|at| at as u8 + 1);
            let (sequenceid, slotid, highest_slotid) = (0x0102_0304, 5, 0x0607_0809);
            let args = SequenceArgs { sessionid, sequenceid, slotid, highest_slotid, cachethis };
            let [mut own, mut generic] = [(); 2].map(|()| Encoder::new());
            let mut ops = Ops::begin(&mut own, 1);
            ops.sequence(&args);
            ops.end();
            [0, 1, 1].iter().for_each(|word: &u32| generic.put(word));
            generic.put(&Opnum::SEQUENCE);
            generic.put(&args);
            assert_eq!(own.buffer(), generic.buffer());
        }
    }
}
