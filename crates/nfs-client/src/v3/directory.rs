//! READDIR and READDIRPLUS: a directory in pages.

use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use benchmaster_nfs_proto::v3::{
    Cookieverf3, Nfsstat3, Proc3, ReaddirArgs, ReaddirRes, ReaddirplusArgs, ReaddirplusRes,
};
use benchmaster_nfs_proto::xdr::{Decoder, XdrError};

use super::{Client, convert, fh, handle_of};
use crate::error::NfsError;
use crate::listing::{Progress, is_dots};
use crate::protocol::NfsResult;
use crate::types::{Entry, Handle};

/// Hashes of names, to know them again when the listing has to start over.
#[derive(Debug, Default)]
pub(crate) struct Names {
    hasher: RandomState,
    listed: Vec<u64>,
    /// Those of the listing that was broken off.
    before: HashSet<u64>,
}

impl Names {
    /// Notes a name; `false` when it was handed out before the listing started over.
    fn is_new(&mut self, name: &[u8]) -> bool {
        let hash = self.hasher.hash_one(name);
        let new = !self.before.contains(&hash);
        if new {
            self.listed.push(hash);
        }
        new
    }

    /// The listing starts over.
    fn restart(&mut self) {
        self.before.extend(self.listed.drain(..));
    }
}

/// A listing under way.
#[derive(Debug, Default)]
struct Listing {
    at: Progress,
    verifier: Cookieverf3,
    names: Names,
}

impl Listing {
    /// Hands out the entries of a page. Returns whether it is the last one.
    fn page(&mut self, page: &[u8], plus: bool, visit: &mut dyn FnMut(&Entry<'_>)) -> NfsResult<bool> {
        let mut d = Decoder::new(page);
        if plus {
            let ok = d.get::<ReaddirplusRes<'_>>()?.ok().map_err(NfsError::V3)?;
            self.verifier = ok.cookieverf;
            for entry in ok.entries.iter() {
                let (name, fileid) = (entry.name.0, entry.fileid);
                if self.takes(entry.cookie, name)? {
                    let attributes = entry.name_attributes.as_ref().map(convert::attributes);
                    let handle = entry.name_handle.map(handle_of).transpose()?;
                    let (attributes, handle) = (attributes.as_ref(), handle.as_ref());
                    visit(&Entry { name, fileid, attributes, handle });
                }
            }
            return Ok(ok.eof);
        }
        let ok = d.get::<ReaddirRes<'_>>()?.ok().map_err(NfsError::V3)?;
        self.verifier = ok.cookieverf;
        for entry in ok.entries.iter() {
            let (name, fileid) = (entry.name.0, entry.fileid);
            if self.takes(entry.cookie, name)? {
                visit(&Entry { name, fileid, attributes: None, handle: None });
            }
        }
        Ok(ok.eof)
    }

    /// Whether an entry is to be handed out.
    fn takes(&mut self, cookie: u64, name: &[u8]) -> NfsResult<bool> {
        self.at.entry(cookie)?;
        Ok(!is_dots(name) && self.names.is_new(name))
    }

    fn restart(&mut self) {
        self.verifier = Cookieverf3::default();
        self.at.restart();
        self.names.restart();
    }
}

impl Client {
    pub(super) async fn list(
        &self,
        directory: &Handle,
        plus: bool,
        visit: &mut dyn FnMut(&Entry<'_>),
    ) -> NfsResult<()> {
        let mut plus = plus && self.plus.get();
        let (mut listing, mut restarted) = (Listing::default(), false);
        // Entries are handed out of here, and not of the connection's buffer: `visit` may do what it likes.
        let page = RefCell::new(Vec::new());
        loop {
            let fetched = self.fetch(directory, &listing, plus, &page).await;
            match fetched.and_then(|()| listing.page(&page.borrow(), plus, visit)) {
                Ok(true) => return Ok(()),
                Ok(false) => listing.at.next_page()?,
                Err(NfsError::V3(Nfsstat3::BAD_COOKIE)) if listing.at.cookie != 0 && !restarted => {
                    restarted = true;
                    listing.restart();
                }
                Err(NfsError::V3(Nfsstat3::NOTSUPP)) if plus => {
                    plus = false;
                    self.plus.set(false);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Puts the results of one request into `page`.
    async fn fetch(
        &self,
        directory: &Handle,
        listing: &Listing,
        plus: bool,
        page: &RefCell<Vec<u8>>,
    ) -> NfsResult<()> {
        let (dir, count) = (fh(directory), self.directory_size);
        let (cookie, cookieverf) = (listing.at.cookie, listing.verifier);
        let keep = |d: &mut Decoder<'_>| -> Result<Result<(), Nfsstat3>, XdrError> {
            let mut page = page.borrow_mut();
            page.clear();
            page.extend_from_slice(d.rest());
            Ok(match d.get()? {
                Nfsstat3::OK => Ok(()),
                status => Err(status),
            })
        };
        if plus {
            let args = ReaddirplusArgs { dir, cookie, cookieverf, dircount: count, maxcount: count };
            self.call(Proc3::READDIRPLUS, &args, keep).await
        } else {
            self.call(Proc3::READDIR, &ReaddirArgs { dir, cookie, cookieverf, count }, keep).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_handed_out_before_a_restart_are_known() {
        let mut names = Names::default();
        assert_eq!((names.is_new(b"a"), names.is_new(b"b")), (true, true));
        names.restart();
        assert_eq!([b"b", b"c", b"a"].map(|name| names.is_new(name)), [false, true, false]);
    }
}
