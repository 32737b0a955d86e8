//! Messages to clients in the version that they speak.

use benchmaster_nfs_proto::nlm::{Netobj, v1, v4};
use benchmaster_nfs_proto::xdr::Encoder;

/// A lock for a callback in the client's version; what does not fit 32 bits was never asked for in them.
pub(super) fn put_granted(e: &mut Encoder, version: u32, args: v4::TestArgs<'_>) {
    if version >= v4::VERSION {
        return e.put(&args);
    }
    let v4::TestArgs { cookie, exclusive, alock } = args;
    let v4::Lock { caller_name, fh, oh, svid, l_offset, l_len } = alock;
    let alock = v1::Lock { caller_name, fh, oh, svid, l_offset: clamp(l_offset), l_len: clamp(l_len) };
    e.put(&v1::TestArgs { cookie, exclusive, alock });
}

/// The result of TEST in the client's version; a holder beyond its 32 bits is shown up to there.
pub(super) fn put_test_res(e: &mut Encoder, version: u32, cookie: Netobj<'_>, stat: v4::TestReply<'_>) {
    if version >= v4::VERSION {
        return e.put(&v4::TestRes { cookie, stat });
    }
    let stat = match stat {
        v4::TestReply::Other(stat) => v1::TestReply::Other(stat),
        v4::TestReply::Denied(v4::Holder { exclusive, svid, oh, l_offset, l_len }) => {
            v1::TestReply::Denied(v1::Holder {
                exclusive,
                svid,
                oh,
                l_offset: clamp(l_offset),
                l_len: clamp(l_len),
            })
        }
    };
    e.put(&v1::TestRes { cookie, stat });
}

fn clamp(value: u64) -> u32 {
    value.try_into().unwrap_or(u32::MAX)
}
