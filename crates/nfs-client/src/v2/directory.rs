//! READDIR: a directory in pages.

use std::cell::RefCell;

use benchmaster_nfs_proto::v2::{MAX_DATA, Nfsstat2, Proc2, ReaddirArgs, ReaddirRes, Res};
use benchmaster_nfs_proto::xdr::{Decoder, XdrError};

use super::{Client, fhandle};
use crate::error::NfsError;
use crate::protocol::NfsResult;
use crate::types::{Entry, Handle};
use crate::v3::directory::{MOST_ENTRIES, is_dots};

impl Client {
    pub(super) async fn list(&self, directory: &Handle, visit: &mut dyn FnMut(&Entry<'_>)) -> NfsResult<()> {
        let (mut cookie, mut entries) = (0, 0);
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
            let ok = match Decoder::new(&page).get::<ReaddirRes<'_>>()? {
                Res::Ok(ok) => ok,
                Res::Err(status) => return Err(NfsError::V2(status)),
            };
            let from = cookie;
            for entry in ok.entries.iter() {
                cookie = entry.cookie;
                entries += 1;
                if !is_dots(entry.name.0) {
                    let (name, fileid) = (entry.name.0, entry.fileid.into());
                    visit(&Entry { name, fileid, attributes: None, handle: None });
                }
            }
            if ok.eof {
                return Ok(());
            }
            if cookie == from {
                return Err(NfsError::Nonsense("an empty directory page that is not the last"));
            }
            if entries > MOST_ENTRIES {
                return Err(NfsError::TooManyEntries(MOST_ENTRIES));
            }
        }
    }
}
