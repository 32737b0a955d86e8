//! Access rights by name, and what only version 4.2 has: copies within the server, reserved space, where data are,
//! extended attributes. With other versions the error of these is `EOPNOTSUPP`.

use std::ops::Deref;
use std::rc::Rc;

use super::file::{File, Open, OpenFlags};
use super::{ClientFile, Mount};
use crate::error::NfsError;
use crate::protocol::{NfsResult, Protocol};
use crate::types::{AccessBits, Handle, Range, Stability};

/// An open file as the server knows it.
pub(super) enum There<'f> {
    Uncached(&'f ClientFile),
    Cached(Rc<ClientFile>),
}

impl Deref for There<'_> {
    type Target = ClientFile;

    fn deref(&self) -> &ClientFile {
        match self {
            Self::Uncached(file) => file,
            Self::Cached(file) => file,
        }
    }
}

impl Mount {
    /// Which of these bits are granted on a file, by name: LOOKUP and ACCESS.
    ///
    /// # Errors
    /// Those of these requests.
    pub async fn access(&self, path: &[u8], wanted: AccessBits) -> NfsResult<AccessBits> {
        let (handle, _) = self.find(path).await?;
        Ok(self.0.client.access(&handle, wanted).await?.0)
    }

    /// Copies a file within the server over another, which is created if it does not exist: OPEN of both, GETATTR,
    /// COPY, CLOSE. Bytes copied; they are stable.
    ///
    /// # Errors
    /// Those of these requests.
    pub async fn copy(&self, from: &[u8], to: &[u8]) -> NfsResult<u64> {
        let source = self.open(from, &OpenFlags::READ).await?;
        let copied = match self.open(to, &OpenFlags::CREATE).await {
            Ok(destination) => {
                let copied = self.copy_open(&source, &destination).await;
                let closed = self.close(destination).await;
                copied.and_then(|bytes| closed.map(|()| bytes))
            }
            Err(error) => Err(error),
        };
        let closed = self.close(source).await;
        copied.and_then(|bytes| closed.map(|()| bytes))
    }

    async fn copy_open(&self, source: &File, destination: &File) -> NfsResult<u64> {
        let size = self.stat_file(source).await?.size;
        let (from, to) = (self.there(source).await?, self.there(destination).await?);
        let mut done = 0;
        while done < size {
            let copied = self.0.client.copy((&from, done), (&to, done), size - done).await?;
            if copied == 0 {
                return Err(NfsError::Nonsense("empty COPY before the end of the file"));
            }
            done += copied;
        }
        self.attributes_set(&destination.node);
        Ok(done)
    }

    /// Reserves space for a range, and makes the file long enough to hold it: ALLOCATE.
    ///
    /// # Errors
    /// Those of ALLOCATE.
    pub async fn allocate(&self, file: &File, range: Range) -> NfsResult<()> {
        let open = self.there(file).await?;
        self.0.client.allocate(&open, range).await?;
        self.attributes_set(&file.node);
        Ok(())
    }

    /// Where there are data from an offset on; `None`: nowhere. SEEK.
    ///
    /// # Errors
    /// Those of SEEK.
    pub async fn seek_data(&self, file: &File, offset: u64) -> NfsResult<Option<u64>> {
        let open = self.there(file).await?;
        self.0.client.seek_data(&open, offset).await
    }

    /// The open file as the server knows it, with all that was written through the cache.
    pub(super) async fn there<'f>(&self, file: &'f File) -> NfsResult<There<'f>> {
        match &file.open {
            Open::Server(open) => Ok(There::Uncached(open)),
            Open::Cached(slot) => {
                self.flush(&file.node, slot, Stability::Unstable).await?;
                Ok(There::Cached(self.at_server(&file.node, slot).await?))
            }
        }
    }

    /// An extended attribute of the namespace `user`, by the name without it: LOOKUP and GETXATTR.
    ///
    /// # Errors
    /// Those of these requests.
    pub async fn get_xattr(&self, path: &[u8], name: &[u8]) -> NfsResult<Vec<u8>> {
        let (handle, _) = self.find(path).await?;
        self.0.client.get_xattr(&handle, name).await
    }

    /// Sets an extended attribute: LOOKUP and SETXATTR.
    ///
    /// # Errors
    /// Those of these requests.
    pub async fn set_xattr(&self, path: &[u8], name: &[u8], value: &[u8]) -> NfsResult<()> {
        let (handle, _) = self.find(path).await?;
        self.0.client.set_xattr(&handle, name, value).await?;
        self.touched(&handle);
        Ok(())
    }

    /// Lists the names of the extended attributes: LOOKUP and LISTXATTRS.
    ///
    /// # Errors
    /// Those of these requests.
    pub async fn list_xattrs(&self, path: &[u8], visit: &mut dyn FnMut(&[u8])) -> NfsResult<()> {
        let (handle, _) = self.find(path).await?;
        self.0.client.list_xattrs(&handle, visit).await
    }

    /// Removes an extended attribute: LOOKUP and REMOVEXATTR.
    ///
    /// # Errors
    /// Those of these requests.
    pub async fn remove_xattr(&self, path: &[u8], name: &[u8]) -> NfsResult<()> {
        let (handle, _) = self.find(path).await?;
        self.0.client.remove_xattr(&handle, name).await?;
        self.touched(&handle);
        Ok(())
    }

    /// The attributes of a file, if they are known, are no longer as they were.
    fn touched(&self, handle: &Handle) {
        if let Some(node) = self.0.nodes.find(handle) {
            self.attributes_set(&node);
        }
    }
}
