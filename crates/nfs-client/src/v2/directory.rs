//! READDIR: a directory in pages.

use std::cell::RefCell;

use benchmaster_nfs_proto::v2::{MAX_DATA, Nfsstat2, Proc2, ReaddirArgs, ReaddirRes};
use benchmaster_nfs_proto::xdr::{Decoder, XdrError};

use super::{Client, fhandle};
use crate::error::NfsError;
use crate::listing::{Progress, is_dots};
use crate::protocol::NfsResult;
use crate::types::{Entry, Handle};

impl Client {
    pub(super) async fn list(&self, directory: &Handle, visit: &mut dyn FnMut(&Entry<'_>)) -> NfsResult<()> {
        let (mut at, mut cookie) = (Progress::default(), 0);
        // Entries are handed out of here, and not of the connection's buffer: `visit` may do what it likes.
        let page = RefCell::new(Vec::new());
        loop {
            let args = ReaddirArgs { dir: fhandle(directory)?, cookie, count: MAX_DATA };
            let keep = |d: &mut Decoder<'_>| -> Result<Result<(), Nfsstat2>, XdrError> {
                let mut page = page.borrow_mut();
                page.clear();
                page.extend_from_slice(d.rest());
                Ok(match d.get()? {
                    Nfsstat2::OK => Ok(()),
                    status => Err(status),
                })
            };
            self.call(Proc2::READDIR, &args, keep).await?;
            let page = page.borrow();
            let ok = Decoder::new(&page).get::<ReaddirRes<'_>>()?.ok().map_err(NfsError::V2)?;
            for entry in ok.entries.iter() {
                cookie = entry.cookie;
                at.entry(cookie.into())?;
                if !is_dots(entry.name.0) {
                    let (name, fileid) = (entry.name.0, entry.fileid.into());
                    visit(&Entry { name, fileid, attributes: None, handle: None });
                }
            }
            if ok.eof {
                return Ok(());
            }
            at.next_page()?;
        }
    }
}
