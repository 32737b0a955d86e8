//! READDIR.

use std::rc::Rc;

use benchmaster_nfs_proto::v4::{Entry4, Nfsstat4, Opnum, PutfhArgs, ReaddirArgs, ReaddirOk};
use benchmaster_nfs_proto::xdr::Chain;

use super::Inner;
use super::attrs;
use super::request::Kind;
use crate::error::NfsError;
use crate::ops::v4 as ops;
use crate::protocol::NfsResult;
use crate::types::{Entry, Handle};
use crate::v3::directory::MOST_ENTRIES;

/// Bytes asked for at a time.
const PAGE: u32 = 128 << 10;

impl Inner {
    pub(super) async fn readdir(
        self: &Rc<Self>,
        directory: &Handle,
        plus: bool,
        visit: &mut dyn FnMut(&Entry<'_>),
    ) -> NfsResult<()> {
        let maxcount = self.limits.get().max_read.clamp(512, PAGE);
        let attr_request = if plus { attrs::OF_ENTRIES } else { attrs::OF_NAMES };
        let (mut cookie, mut cookieverf, mut count) = (0, [0; 8], 0);
        loop {
            let args = ReaddirArgs { cookie, cookieverf, dircount: maxcount / 2, maxcount, attr_request };
            let (verifier, entries, eof) = self
                .request(
                    Kind::reading(ops::READDIR),
                    |ops| {
                        ops.put(Opnum::PUTFH, &PutfhArgs { object: directory.bytes().into() });
                        ops.put(Opnum::READDIR, &args);
                    },
                    |results| {
                        results.take::<()>(Opnum::PUTFH)?;
                        let ok: ReaddirOk<'_> = results.take(Opnum::READDIR)?;
                        let entries = match ok.entries {
                            Chain::Wire(bytes) => bytes.to_vec(),
                            Chain::Items(_) => Vec::new(),
                        };
                        Ok((ok.cookieverf, entries, ok.eof))
                    },
                )
                .await?;
            let last = cookie;
            for entry in Chain::<'_, Entry4<'_>>::Wire(&entries).iter() {
                (cookie, count) = (entry.cookie, count + 1);
                if matches!(entry.name.0, b"." | b"..") {
                    continue;
                }
                let got = attrs::decode(&entry.attrs).map_err(NfsError::from)?;
                let attributes = got.usable().filter(|_| plus && got.error.is_none());
                visit(&Entry {
                    name: entry.name.0,
                    fileid: got.attributes.fileid,
                    attributes: attributes.as_ref(),
                    handle: got.handle.as_ref(),
                });
            }
            if eof {
                return Ok(());
            }
            if cookie == last {
                // Nothing fits, or the server goes in circles.
                return if entries.is_empty() {
                    Err(NfsError::V4(Nfsstat4::TOOSMALL))
                } else {
                    Err(NfsError::Nonsense("a directory listing that makes no progress"))
                };
            }
            if count > MOST_ENTRIES {
                return Err(NfsError::TooManyEntries(MOST_ENTRIES));
            }
            cookieverf = verifier;
        }
    }
}
