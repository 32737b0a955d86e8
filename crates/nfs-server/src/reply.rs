//! A reply under construction: encoded bytes, and pages of files that are sent from where they are.

use std::borrow::Cow;

use benchmaster_nfs_proto::xdr::{Encoder, Mark};

use crate::fs::PageSlice;
use crate::inject::Decision;

/// Encoded replies (several, when one receive brought several calls) and the pages that belong into the encoder's cuts.
#[derive(Debug, Default)]
pub struct Reply {
    /// Encoded bytes; its `n`-th cut is the place of `pages[n]`.
    pub encoder: Encoder,
    pages: Vec<PageSlice>,
    scratch: Vec<PageSlice>,
    /// Which byte of the next data is to be another one.
    corrupt: Option<u64>,
    /// The operation is to answer that something is stable, and not make it so.
    lie: bool,
}

/// A position in a [`Reply`].
pub type ReplyMark = Mark;

impl Reply {
    /// An empty reply; its buffer grows as needed and is kept by [`Reply::clear`].
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets content, keeps memory, releases pages.
    pub fn clear(&mut self) {
        self.encoder.clear();
        self.pages.clear();
    }

    /// The pages, one per cut of the encoder.
    pub fn pages(&self) -> &[PageSlice] {
        &self.pages
    }

    /// Length in bytes, pages included.
    pub fn len(&self) -> usize {
        self.encoder.len()
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.encoder.is_empty()
    }

    /// Where the reply stands.
    pub fn mark(&self) -> ReplyMark {
        self.encoder.mark()
    }

    /// Takes back everything after `mark`.
    pub fn rollback(&mut self, mark: ReplyMark) {
        self.encoder.rollback(mark);
        self.pages.truncate(self.encoder.cuts().len());
    }

    /// What of a decision makes the operation that is about to be executed answer or store something wrong.
    pub(crate) fn falsify(&mut self, decision: &Decision) {
        self.corrupt = decision.corrupt;
        self.lie = decision.lie;
    }

    /// Whether the operation that is executed calls stable what is not.
    pub(crate) fn lies(&mut self) -> bool {
        std::mem::take(&mut self.lie)
    }

    /// Data that a WRITE brought, as they are to be stored.
    pub(crate) fn stored<'d>(&mut self, data: &'d [u8]) -> Cow<'d, [u8]> {
        match self.corrupt.take().filter(|_| !data.is_empty()) {
            Some(place) => {
                let mut data = data.to_vec();
                let at = (place % data.len() as u64) as usize;
                data[at] = !data[at];
                Cow::Owned(data)
            }
            None => Cow::Borrowed(data),
        }
    }

    /// As [`Self::put_data`], with one wrong byte. The pages stay as they are.
    #[cold]
    fn put_wrong_data(&mut self, place: u64, slices: impl IntoIterator<Item = PageSlice>) {
        let mut data = Vec::new();
        slices.into_iter().for_each(|slice| data.extend_from_slice(slice.as_slice()));
        if !data.is_empty() {
            let at = (place % data.len() as u64) as usize;
            data[at] = !data[at];
        }
        self.encoder.opaque(&data);
    }

    /// Appends counted opaque data (READ's): pages by reference, small pieces copied.
    pub fn put_data(&mut self, slices: impl IntoIterator<Item = PageSlice>) {
        if let Some(place) = self.corrupt.take() {
            return self.put_wrong_data(place, slices);
        }
        /// Below this, copying costs less than one more element of the vectored send.
        const COPY_BELOW: usize = 512;
        let count = self.encoder.mark();
        self.encoder.put(&0u32);
        let mut len = 0;
        for slice in slices {
            let bytes = slice.as_slice();
            len += bytes.len();
            if bytes.len() < COPY_BELOW {
                self.encoder.raw(bytes);
            } else {
                self.encoder.cut(bytes.len());
                self.pages.push(slice);
            }
        }
        self.encoder.pad(len);
        self.encoder.patch_u32(count, len as u32);
    }

    /// An empty vector to read pages into; [`Reply::put_pages`] takes it back, so that its memory serves again.
    pub fn scratch(&mut self) -> Vec<PageSlice> {
        std::mem::take(&mut self.scratch)
    }

    /// As [`Reply::put_data`], emptying a vector that came from [`Reply::scratch`].
    pub fn put_pages(&mut self, mut pages: Vec<PageSlice>) {
        self.put_data(pages.drain(..));
        self.scratch = pages;
    }

    /// Gives the bytes from position `from` of the whole message on, piece by piece, to `visit` until it returns
    /// `false`.
    pub(crate) fn pieces<'r>(&'r self, from: usize, mut visit: impl FnMut(&'r [u8]) -> bool) {
        let buffer = self.encoder.buffer();
        let mut skip = from;
        let mut give = |piece: &'r [u8]| {
            let skipped = skip.min(piece.len());
            skip -= skipped;
            skipped == piece.len() || visit(&piece[skipped..])
        };
        let mut at = 0;
        for (cut, page) in self.encoder.cuts().iter().zip(&self.pages) {
            if !give(&buffer[at..cut.at]) || !give(page.as_slice()) {
                return;
            }
            at = cut.at;
        }
        give(&buffer[at..]);
    }

    /// Moves everything after `mark` into a reply of its own: encoded bytes are copied, pages are not.
    pub(crate) fn split_off(&mut self, mark: ReplyMark) -> Self {
        let mut tail = Self::new();
        tail.copy_encoded(self, mark);
        tail.pages.extend(self.pages.drain(mark.cuts..));
        self.rollback(mark);
        tail
    }

    /// Appends all of `other`: encoded bytes are copied, pages are not.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.copy_encoded(&other, Self::new().mark());
        self.pages.append(&mut other.pages);
    }

    fn copy_encoded(&mut self, from: &Self, mark: ReplyMark) {
        let (buffer, mut at) = (from.encoder.buffer(), mark.buffer);
        for cut in &from.encoder.cuts()[mark.cuts..] {
            self.encoder.raw(&buffer[at..cut.at]);
            self.encoder.cut(cut.len);
            at = cut.at;
        }
        self.encoder.raw(&buffer[at..]);
    }

    /// The bytes after `mark`, pages copied in: what a reply cache keeps.
    pub fn copy_since(&self, mark: ReplyMark) -> Vec<u8> {
        let mut out = Vec::new();
        self.copy_since_into(mark, &mut out);
        out
    }

    /// Appends to `out` the bytes after `mark`, pages copied in.
    pub fn copy_since_into(&self, mark: ReplyMark, out: &mut Vec<u8>) {
        out.reserve(self.encoder.len_since(mark));
        let mut from = mark.buffer;
        for (cut, page) in self.encoder.cuts().iter().zip(&self.pages).skip(mark.cuts) {
            out.extend_from_slice(&self.encoder.buffer()[from..cut.at]);
            out.extend_from_slice(page.as_slice());
            from = cut.at;
        }
        out.extend_from_slice(&self.encoder.buffer()[from..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerConfig;
    use crate::cred::Credentials;
    use crate::exports::Exports;
    use crate::fs::{NewFile, SetAttr, Time};

    fn bytes(reply: &Reply, from: usize) -> Vec<u8> {
        let mut out = Vec::new();
        reply.pieces(from, |piece| {
            assert!(!piece.is_empty());
            out.extend_from_slice(piece);
            true
        });
        out
    }

    /// Pages of a file of `len` bytes.
    fn pages(len: u32) -> Vec<PageSlice> {
        let now = Time { seconds: 0, nanos: 0 };
        let exports = Exports::new(&ServerConfig::default(), now).unwrap();
        let (who, path) = (Credentials::root(), b"/export");
        let (fs, dir) = exports.file(exports.walk(&who, path).unwrap()).unwrap();
        let created = fs.create(&who, dir, b"f", NewFile::Regular, &SetAttr::default(), None, now).unwrap();
        let data: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        fs.write(&who, created.attr.node, 0, &data, now).unwrap();
        let mut out = Vec::new();
        fs.read(created.attr.node, 0, len, &mut out, now).unwrap();
        out
    }

    #[test]
    fn a_tail_taken_off_and_put_back_is_the_same_and_copies_no_page() {
        let mut reply = Reply::new();
        reply.encoder.put(&1u32);
        reply.put_data(pages(5000));
        let mark = reply.mark();
        reply.encoder.put(&2u32);
        reply.put_data(pages(200_001));
        reply.encoder.put(&3u32);
        let whole = bytes(&reply, 0);
        let copied = reply.copy_since(mark);
        let places: Vec<*const u8> = reply.pages().iter().map(|page| page.as_slice().as_ptr()).collect();
        let tail = reply.split_off(mark);
        assert_eq!(bytes(&tail, 0), copied);
        assert_eq!((reply.len(), tail.len()), (whole.len() - copied.len(), copied.len()));
        assert_eq!(bytes(&reply, 0), whole[..reply.len()]);
        reply.append(tail);
        assert_eq!(bytes(&reply, 0), whole);
        for from in [1, 4, 9, 4096, 5001, 100_000, whole.len() - 1, whole.len()] {
            assert_eq!(bytes(&reply, from), whole[from..], "from {from}");
        }
        let after: Vec<*const u8> = reply.pages().iter().map(|page| page.as_slice().as_ptr()).collect();
        assert_eq!(after, places);
    }
}
