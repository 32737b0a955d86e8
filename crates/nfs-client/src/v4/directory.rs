//! READDIR.

use std::rc::Rc;

use benchmaster_nfs_proto::v4::{Entry4, Nfsstat4, Opnum, ReaddirArgs, ReaddirOk};
use benchmaster_nfs_proto::xdr::Chain;

use super::Inner;
use super::attrs;
use super::request::Kind;
use crate::error::NfsError;
use crate::listing::{Progress, is_dots};
use crate::ops::v4 as ops;
use crate::protocol::NfsResult;
use crate::types::{Entry, Handle};

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
        let (mut at, mut cookieverf) = (Progress::default(), [0; 8]);
        loop {
            let args =
                ReaddirArgs { cookie: at.cookie, cookieverf, dircount: maxcount / 2, maxcount, attr_request };
            let (verifier, entries, eof) = self
                .request(
                    Kind::reading(ops::READDIR),
                    |ops| {
                        ops.on(directory);
                        ops.put(Opnum::READDIR, &args);
                    },
                    |results| {
                        results.on()?;
                        let ok: ReaddirOk<'_> = results.take(Opnum::READDIR)?;
                        let entries = match ok.entries {
                            Chain::Wire(bytes) => bytes.to_vec(),
                            Chain::Items(_) => Vec::new(),
                        };
                        Ok((ok.cookieverf, entries, ok.eof))
                    },
                )
                .await?;
            for entry in Chain::<'_, Entry4<'_>>::Wire(&entries).iter() {
                at.entry(entry.cookie)?;
                if is_dots(entry.name.0) {
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
            if entries.is_empty() {
                // Nothing fits.
                return Err(NfsError::V4(Nfsstat4::TOOSMALL));
            }
            at.next_page()?;
            cookieverf = verifier;
        }
    }
}
