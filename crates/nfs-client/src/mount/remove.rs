//! Removing a directory with all that is in it.

use super::paths::clean;
use super::{Mount, lanes};
use crate::error::NfsError;
use crate::protocol::NfsResult;
use crate::types::FileType;

impl Mount {
    /// Removes a file or a directory with all that is in it, several files at a time. What is gone already is no error.
    ///
    /// # Errors
    /// Those of the requests it takes. The exported directory itself is emptied and stays.
    pub async fn remove_tree(&self, path: &[u8]) -> NfsResult<()> {
        let path = clean(path).ok_or(NfsError::NameTooLong)?;
        if !path.is_empty() {
            match self.stat(path).await {
                Err(error) if error.is_absent() => return Ok(()),
                Err(error) => return Err(error),
                Ok(found) if found.kind != FileType::Directory => return gone(self.remove(path).await),
                Ok(_) => {}
            }
        }
        // Every directory stands before those in it.
        let mut directories = vec![path.to_vec()];
        let mut next = 0;
        while let Some(directory) = directories.get(next).cloned() {
            next += 1;
            let mut entries = Vec::new();
            self.readdir_plus(&directory, &mut |entry| {
                let mut path = directory.clone();
                if !path.is_empty() {
                    path.push(b'/');
                }
                path.extend_from_slice(entry.name);
                entries.push((path, entry.attributes.map(|attributes| attributes.kind)));
            })
            .await?;
            let mut files = Vec::new();
            for (path, kind) in entries {
                let kind = match kind {
                    Some(kind) => kind,
                    None => match self.stat(&path).await {
                        Ok(found) => found.kind,
                        Err(error) if error.is_absent() => continue,
                        Err(error) => return Err(error),
                    },
                };
                match kind {
                    FileType::Directory => directories.push(path),
                    _ => files.push(path),
                }
            }
            lanes::all(files.into_iter(), |path| async move { gone(self.remove(&path).await) }).await?;
        }
        for directory in directories.iter().rev().filter(|directory| !directory.is_empty()) {
            gone(self.rmdir(directory).await)?;
        }
        Ok(())
    }
}

fn gone(result: NfsResult<()>) -> NfsResult<()> {
    match result {
        Err(error) if error.is_absent() => Ok(()),
        result => result,
    }
}
