//! Names: everything that is done by path.

use super::file::{File, Open, OpenFlags};
use super::paths::{clean, split};
use super::{Client, Mount, is_stale};
use crate::error::NfsError;
use crate::protocol::{NfsResult, Opened, Protocol};
use crate::types::{Attributes, Entry, Handle, SetAttributes, Space};

/// Directory and name that a path leads to; `None` for the export itself.
fn target(path: &[u8]) -> NfsResult<Option<(&[u8], &[u8])>> {
    clean(path).map(split).ok_or(NfsError::NameTooLong)
}

fn name(path: &[u8]) -> NfsResult<(&[u8], &[u8])> {
    target(path)?.ok_or(NfsError::Unsupported("the exported directory itself has no name"))
}

impl Mount {
    /// Filehandle of a directory by its clean path: every name on the way that is not known is looked up.
    pub(super) async fn directory(&self, path: &[u8]) -> NfsResult<Handle> {
        if self.0.cache.is_some() {
            return Ok(Box::pin(self.walk(path)).await?.handle);
        }
        if let Some(handle) = self.0.paths.get(path) {
            return Ok(handle);
        }
        let mut handle = self.0.client.root();
        let mut begin = 0;
        while begin < path.len() {
            let end = path[begin..].iter().position(|byte| *byte == b'/').map_or(path.len(), |at| begin + at);
            handle = match self.0.paths.get(&path[..end]) {
                Some(known) => known,
                None => {
                    let (found, _) = self.0.client.lookup(&handle, &path[begin..end]).await?;
                    self.0.paths.keep(&path[..end], found);
                    found
                }
            };
            begin = end + 1;
        }
        Ok(handle)
    }

    /// Does something in a directory, and once more, with the handles looked up again, if one was stale.
    async fn in_directory<R>(
        &self,
        directory: &[u8],
        mut perform: impl AsyncFnMut(&Handle) -> NfsResult<R>,
    ) -> NfsResult<R> {
        let first = match self.directory(directory).await {
            Ok(handle) => perform(&handle).await,
            Err(error) => Err(error),
        };
        match first {
            Err(error) if is_stale(&error) && !directory.is_empty() => {
                self.forget_way(directory);
                perform(&self.directory(directory).await?).await
            }
            result => result,
        }
    }

    /// Forgets the directories on a path, which are stale.
    fn forget_way(&self, path: &[u8]) {
        match &self.0.cache {
            Some(_) => self.forget_names(path),
            None => self.0.paths.forget_way(path),
        }
    }

    /// Does something that changes a name in a directory.
    async fn change<R>(
        &self,
        directory: &[u8],
        name: &[u8],
        perform: impl AsyncFn(&Handle) -> NfsResult<R>,
    ) -> NfsResult<R> {
        self.in_directory(directory, async |handle| {
            if self.0.cache.is_some() {
                Box::pin(self.give_back_name(handle, name)).await?;
            }
            let result = perform(handle).await;
            self.name_changed(handle, name);
            result
        })
        .await
    }

    pub(super) async fn find(&self, path: &[u8]) -> NfsResult<(Handle, Option<Attributes>)> {
        match target(path)? {
            None => Ok((self.0.client.root(), None)),
            Some((directory, name)) => {
                self.in_directory(directory, async |handle| match &self.0.cache {
                    Some(_) => Ok((Box::pin(self.find_cached(handle, name)).await?, None)),
                    None => self.0.client.lookup(handle, name).await,
                })
                .await
            }
        }
    }

    /// Opens a file: OPEN; in versions 2 and 3 LOOKUP or CREATE, and SETATTR to truncate.
    ///
    /// # Errors
    /// Those of these requests.
    pub async fn open(&self, path: &[u8], flags: &OpenFlags) -> NfsResult<File> {
        let (directory, name) = name(path)?;
        let how = flags.how();
        let owner = self.0.next_owner.get();
        self.0.next_owner.set(owner + 1);
        let (open, node) = self
            .in_directory(directory, async |handle| {
                if self.0.cache.is_some() {
                    return Box::pin(self.open_cached(handle, name, &how, owner)).await;
                }
                let Opened { file, .. } = self.0.client.open(handle, name, &how).await?;
                let node = self.0.nodes.get(&Client::handle(&file));
                if flags.truncate {
                    self.cut(&node, 0);
                }
                Ok((Open::Server(file), node))
            })
            .await?;
        Ok(File::new(open, node, flags, self.0.options.sync, owner))
    }

    /// Attributes by name: LOOKUP, and GETATTR where they do not come with it. A symbolic link is not followed.
    ///
    /// # Errors
    /// Those of these requests.
    pub async fn stat(&self, path: &[u8]) -> NfsResult<Attributes> {
        match self.find(path).await? {
            (_, Some(attributes)) => Ok(attributes),
            (handle, None) if self.0.cache.is_some() => Box::pin(self.stat_cached(&handle)).await,
            (handle, None) => self.0.client.getattr(&handle).await,
        }
    }

    /// Sets attributes by name: LOOKUP and SETATTR.
    ///
    /// # Errors
    /// Those of these requests.
    pub async fn set_attributes(&self, path: &[u8], set: &SetAttributes) -> NfsResult<()> {
        let (handle, _) = self.find(path).await?;
        let node = self.0.nodes.find(&handle);
        if let Some(node) = &node {
            self.flush_any(node).await?;
            if set.mode.is_some() || set.uid.is_some() || set.gid.is_some() {
                Box::pin(self.give_back(node)).await?;
            }
        }
        let _alone = match &node {
            Some(node) => Some(node.writing.alone().await),
            None => None,
        };
        self.0.client.setattr(&handle, None, set).await?;
        if let Some(node) = &node {
            self.attributes_set(node);
            if let Some(size) = set.size {
                self.cut(node, size);
            }
        }
        Ok(())
    }

    /// Sets the size of a file by name.
    ///
    /// # Errors
    /// As [`Self::set_attributes`].
    pub async fn truncate(&self, path: &[u8], size: u64) -> NfsResult<()> {
        self.set_attributes(path, &SetAttributes { size: Some(size), ..SetAttributes::default() }).await
    }

    /// Renames: RENAME.
    ///
    /// # Errors
    /// Those of RENAME.
    pub async fn rename(&self, from: &[u8], to: &[u8]) -> NfsResult<()> {
        let ((from_directory, from_name), (to_directory, to_name)) = (name(from)?, name(to)?);
        self.change(from_directory, from_name, async |from| {
            self.change(to_directory, to_name, async |to| {
                self.0.client.rename((from, from_name), (to, to_name)).await
            })
            .await
        })
        .await?;
        for path in [from, to] {
            self.0.paths.forget(clean(path).unwrap_or_default());
        }
        Ok(())
    }

    /// Removes a file: REMOVE.
    ///
    /// # Errors
    /// Those of REMOVE.
    pub async fn remove(&self, path: &[u8]) -> NfsResult<()> {
        let (directory, name) = name(path)?;
        self.change(directory, name, async |handle| self.0.client.remove(handle, name).await).await
    }

    /// Makes a directory: MKDIR (CREATE in version 4).
    ///
    /// # Errors
    /// Those of MKDIR.
    pub async fn mkdir(&self, path: &[u8], mode: u32) -> NfsResult<()> {
        let (directory, name) = name(path)?;
        let made = self
            .change(directory, name, async |handle| self.0.client.mkdir(handle, name, mode).await)
            .await?;
        if let (Some(handle), Some(path), None) = (made, clean(path), &self.0.cache) {
            self.0.paths.keep(path, handle);
        }
        Ok(())
    }

    /// Makes a directory and those on the way to it, as far as they do not exist.
    ///
    /// # Errors
    /// Those of MKDIR and LOOKUP.
    pub async fn create_dirs(&self, path: &[u8]) -> NfsResult<()> {
        let path = clean(path).ok_or(NfsError::NameTooLong)?;
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            let part = &path[..end];
            if part.is_empty() || self.0.paths.get(part).is_some() {
                continue;
            }
            match self.mkdir(part, 0o755).await {
                Err(error) if !error.is_present() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes an empty directory: RMDIR (REMOVE in version 4).
    ///
    /// # Errors
    /// Those of RMDIR.
    pub async fn rmdir(&self, path: &[u8]) -> NfsResult<()> {
        let (directory, name) = name(path)?;
        self.change(directory, name, async |handle| self.0.client.rmdir(handle, name).await).await?;
        self.0.paths.forget(clean(path).unwrap_or_default());
        Ok(())
    }

    /// Makes a symbolic link: SYMLINK (CREATE in version 4).
    ///
    /// # Errors
    /// Those of SYMLINK.
    pub async fn symlink(&self, target: &[u8], path: &[u8]) -> NfsResult<()> {
        let (directory, name) = name(path)?;
        self.change(directory, name, async |handle| self.0.client.symlink(handle, name, target).await).await
    }

    /// Where a symbolic link leads: LOOKUP and READLINK.
    ///
    /// # Errors
    /// Those of these requests.
    pub async fn readlink(&self, path: &[u8]) -> NfsResult<Vec<u8>> {
        let (handle, _) = self.find(path).await?;
        self.0.client.readlink(&handle).await
    }

    /// Gives a file another name: LOOKUP and LINK.
    ///
    /// # Errors
    /// Those of these requests.
    pub async fn link(&self, existing: &[u8], path: &[u8]) -> NfsResult<()> {
        let (file, _) = self.find(existing).await?;
        let (directory, name) = name(path)?;
        if let Some(file) = self.0.nodes.find(&file) {
            Box::pin(self.give_back(&file)).await?;
            self.attributes_set(&file);
        }
        self.change(directory, name, async |handle| self.0.client.link(&file, handle, name).await).await
    }

    /// Lists a directory, all entries but `.` and `..`: READDIR. The directory itself is looked up only if it is not
    /// known.
    ///
    /// # Errors
    /// Those of READDIR and LOOKUP.
    pub async fn readdir(&self, path: &[u8], visit: &mut dyn FnMut(&Entry<'_>)) -> NfsResult<()> {
        self.list(path, false, visit).await
    }

    /// As [`Self::readdir`], with attributes and filehandles where the version has them: READDIRPLUS in version 3.
    ///
    /// # Errors
    /// As [`Self::readdir`].
    pub async fn readdir_plus(&self, path: &[u8], visit: &mut dyn FnMut(&Entry<'_>)) -> NfsResult<()> {
        self.list(path, true, visit).await
    }

    async fn list(&self, path: &[u8], plus: bool, visit: &mut dyn FnMut(&Entry<'_>)) -> NfsResult<()> {
        let path = clean(path).ok_or(NfsError::NameTooLong)?;
        self.in_directory(path, async |handle| self.0.client.readdir(handle, plus, &mut *visit).await).await
    }

    /// Space of the file system.
    ///
    /// # Errors
    /// Those of FSSTAT, STATFS or GETATTR.
    pub async fn space(&self) -> NfsResult<Space> {
        self.0.client.space().await
    }
}
