//! A reply under construction: encoded bytes, and pages of files that are sent from where they are.

use benchmaster_nfs_proto::xdr::{Encoder, Mark};

use crate::fs::PageSlice;

/// Encoded replies (several, when one receive brought several calls) and the pages that belong into the encoder's cuts.
#[derive(Debug, Default)]
pub struct Reply {
    /// Encoded bytes; its `n`-th cut is the place of `pages[n]`.
    pub encoder: Encoder,
    pages: Vec<PageSlice>,
    scratch: Vec<PageSlice>,
}

/// A position in a [`Reply`].
pub type ReplyMark = Mark;

impl Reply {
    /// An empty reply.
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

    /// Appends counted opaque data (READ's): pages by reference, small pieces copied.
    pub fn put_data(&mut self, slices: impl IntoIterator<Item = PageSlice>) {
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

    /// Gives the bytes from position `from` of the whole message on, piece by piece, to `visit` until it returns `false`.
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

    /// All bytes, pages copied in.
    pub(crate) fn copy_all(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len());
        self.pieces(0, |piece| {
            out.extend_from_slice(piece);
            true
        });
        out
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
