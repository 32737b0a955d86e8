//! Arguments of all versions in the form of version 4.

use benchmaster_nfs_proto::nlm::{v1, v4};

use crate::call::{Call, Refusal};

pub(super) fn lock<'r>(call: &mut Call<'r>) -> Result<v4::LockArgs<'r>, Refusal> {
    if call.version >= v4::VERSION {
        return call.args();
    }
    let v1::LockArgs { cookie, block, exclusive, alock, reclaim, state } = call.args()?;
    Ok(v4::LockArgs { cookie, block, exclusive, alock: widen(alock), reclaim, state })
}

pub(super) fn cancel<'r>(call: &mut Call<'r>) -> Result<v4::CancelArgs<'r>, Refusal> {
    if call.version >= v4::VERSION {
        return call.args();
    }
    let v1::CancelArgs { cookie, block, exclusive, alock } = call.args()?;
    Ok(v4::CancelArgs { cookie, block, exclusive, alock: widen(alock) })
}

pub(super) fn test<'r>(call: &mut Call<'r>) -> Result<v4::TestArgs<'r>, Refusal> {
    if call.version >= v4::VERSION {
        return call.args();
    }
    let v1::TestArgs { cookie, exclusive, alock } = call.args()?;
    Ok(v4::TestArgs { cookie, exclusive, alock: widen(alock) })
}

pub(super) fn unlock<'r>(call: &mut Call<'r>) -> Result<v4::UnlockArgs<'r>, Refusal> {
    if call.version >= v4::VERSION {
        return call.args();
    }
    let v1::UnlockArgs { cookie, alock } = call.args()?;
    Ok(v4::UnlockArgs { cookie, alock: widen(alock) })
}

fn widen(lock: v1::Lock<'_>) -> v4::Lock<'_> {
    let v1::Lock { caller_name, fh, oh, svid, l_offset, l_len } = lock;
    // All ones is "to the end" in either width.
    let l_len = if l_len == u32::MAX { 0 } else { l_len.into() };
    v4::Lock { caller_name, fh, oh, svid, l_offset: l_offset.into(), l_len }
}
