//! Times of reading and writing, noted as close to the wire as a program can.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll, ready};

use benchmaster_telemetry::clock::monotonic_ns;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// When a stream was used, in nanoseconds of the monotonic clock.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    /// After the last read that gave something.
    read: AtomicI64,
    /// Before the first write since [`Stamps::mark`]; 0 without one.
    written: AtomicI64,
}

impl Stamps {
    /// After the last read that gave something.
    pub(crate) fn last_read(&self) -> i64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Forgets the writes so far.
    pub(crate) fn mark(&self) {
        self.written.store(0, Ordering::Relaxed);
    }

    /// Before the first write since then, if there was one.
    pub(crate) fn first_write(&self) -> Option<i64> {
        Some(self.written.load(Ordering::Relaxed)).filter(|time| *time != 0)
    }
}

/// A stream whose uses are noted.
#[derive(Debug)]
pub(crate) struct Stamped<S> {
    inner: S,
    stamps: Arc<Stamps>,
}

impl<S> Stamped<S> {
    pub(crate) fn new(inner: S) -> (Self, Arc<Stamps>) {
        let stamps = Arc::new(Stamps::default());
        (Self { inner, stamps: Arc::clone(&stamps) }, stamps)
    }

    fn writing(&self) {
        if self.stamps.written.load(Ordering::Relaxed) == 0 {
            self.stamps.written.store(monotonic_ns(), Ordering::Relaxed);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stamped<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = ready!(Pin::new(&mut self.inner).poll_read(cx, buffer));
        if buffer.filled().len() > before {
            self.stamps.read.store(monotonic_ns(), Ordering::Relaxed);
        }
        Poll::Ready(result)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stamped<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.writing();
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.writing();
        Pin::new(&mut self.inner).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
