//! READDIR and READDIRPLUS: a directory in pages.

use std::cell::RefCell;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use benchmaster_nfs_proto::v3::{
    Cookieverf3, Nfsstat3, Proc3, ReaddirArgs, ReaddirRes, ReaddirplusArgs, ReaddirplusRes, Res,
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

/// What a page was.
enum Page {
    /// Entries, and then more.
    Entries,
    /// The last entries.
    End,
    /// None: the server said this.
    Refused(Nfsstat3),
}

impl Client {
    pub(super) async fn list(
        &self,
        directory: &Handle,
        plus: bool,
        visit: &mut dyn FnMut(&Entry<'_>),
    ) -> NfsResult<()> {
        let mut plus = plus && self.plus.get();
        let (mut at, mut verifier) = (Progress::default(), Cookieverf3::default());
        let (mut names, mut restarted) = (Names::default(), false);
        // Entries are handed out of here, and not of the connection's buffer: `visit` may do what it likes.
        let page = RefCell::new(Vec::new());
        loop {
            let procedure = if plus { Proc3::READDIRPLUS } else { Proc3::READDIR };
            self.fetch(directory, (at.cookie, verifier), procedure, &page).await?;
            let page = page.borrow();
            let mut d = Decoder::new(&page);
            let read = if plus {
                page_plus(&mut d, &mut at, &mut verifier, &mut names, visit)
            } else {
                page_plain(&mut d, &mut at, &mut verifier, &mut names, visit)
            };
            match read? {
                Page::End => return Ok(()),
                Page::Entries => at.next_page()?,
                Page::Refused(Nfsstat3::BAD_COOKIE) if at.cookie != 0 && !restarted => {
                    restarted = true;
                    verifier = Cookieverf3::default();
                    at.restart();
                    names.restart();
                }
                Page::Refused(Nfsstat3::NOTSUPP) if plus => {
                    plus = false;
                    self.plus.set(false);
                }
                Page::Refused(status) => return Err(NfsError::V3(status)),
            }
        }
    }

    /// Puts the results of one request into `page`, whatever its status is but [`Nfsstat3::JUKEBOX`].
    async fn fetch(
        &self,
        directory: &Handle,
        (cookie, cookieverf): (u64, Cookieverf3),
        procedure: Proc3,
        page: &RefCell<Vec<u8>>,
    ) -> NfsResult<()> {
        let (dir, count) = (fh(directory), self.directory_size);
        let keep = |d: &mut Decoder<'_>| -> Result<Result<(), Nfsstat3>, XdrError> {
            let mut page = page.borrow_mut();
            page.clear();
            page.extend_from_slice(d.rest());
            Ok(match d.get()? {
                Nfsstat3::OK => Ok(()),
                status => Err(status),
            })
        };
        let fetched = match procedure {
            Proc3::READDIRPLUS => {
                let args = ReaddirplusArgs { dir, cookie, cookieverf, dircount: count, maxcount: count };
                self.call(procedure, &args, keep).await
            }
            _ => self.call(procedure, &ReaddirArgs { dir, cookie, cookieverf, count }, keep).await,
        };
        match fetched {
            // The caller reads it from the page.
            Ok(()) | Err(NfsError::V3(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn page_plus(
    d: &mut Decoder<'_>,
    at: &mut Progress,
    verifier: &mut Cookieverf3,
    names: &mut Names,
    visit: &mut dyn FnMut(&Entry<'_>),
) -> NfsResult<Page> {
    let ok = match d.get::<ReaddirplusRes<'_>>()? {
        Res::Ok(ok) => ok,
        Res::Err(status, _) => return Ok(Page::Refused(status)),
    };
    *verifier = ok.cookieverf;
    for entry in ok.entries.iter() {
        at.entry(entry.cookie)?;
        let name = entry.name.0;
        if is_dots(name) || !names.is_new(name) {
            continue;
        }
        let attributes = entry.name_attributes.as_ref().map(convert::attributes);
        let handle = entry.name_handle.map(handle_of).transpose()?;
        let (attributes, handle) = (attributes.as_ref(), handle.as_ref());
        visit(&Entry { name, fileid: entry.fileid, attributes, handle });
    }
    Ok(if ok.eof { Page::End } else { Page::Entries })
}

fn page_plain(
    d: &mut Decoder<'_>,
    at: &mut Progress,
    verifier: &mut Cookieverf3,
    names: &mut Names,
    visit: &mut dyn FnMut(&Entry<'_>),
) -> NfsResult<Page> {
    let ok = match d.get::<ReaddirRes<'_>>()? {
        Res::Ok(ok) => ok,
        Res::Err(status, _) => return Ok(Page::Refused(status)),
    };
    *verifier = ok.cookieverf;
    for entry in ok.entries.iter() {
        at.entry(entry.cookie)?;
        let name = entry.name.0;
        if !is_dots(name) && names.is_new(name) {
            visit(&Entry { name, fileid: entry.fileid, attributes: None, handle: None });
        }
    }
    Ok(if ok.eof { Page::End } else { Page::Entries })
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
