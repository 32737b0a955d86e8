//! Changes of directories that other clients may have delegations of: recalled before, or notified after (RFC 8881 §10.9, §20.4).

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{Bitmap4, Nfsstat4, notify};
use benchmaster_nfs_proto::xdr::Encoder;

use super::attrs::View;
use super::{Compound, Failure, OpResult};
use crate::fs::{Attr, FileSystem, FsError, Node};
use crate::handle::FileId;
use crate::shared::Shared;
use crate::state::shards::All;
use crate::state::watch::Notifications;

/// An entry of a directory.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) cookie: u64,
    pub(crate) attr: Attr,
}

/// What happened in a directory.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// A new entry, and what had the name before.
    Added(Entry<'a>, Option<Attr>),
    /// An entry is gone.
    Removed(Entry<'a>),
    /// An entry has another name: as it was, as it is, and what had this name before.
    Renamed(Entry<'a>, Entry<'a>, Option<Attr>),
    /// The directory has other attributes.
    Attributes,
}

/// What a holder must be notified of so that no recall is needed before a change of entries of this kind.
pub(crate) fn needs(kind: u32) -> Notifications {
    Notifications { kinds: Bitmap4::of(&[kind]), ..Notifications::default() }
}

impl Compound<'_> {
    /// Changes directories, after the delegations of others are recalled that are in the way: DELAY until they are back.
    /// `needs` says which directories, and what spares a recall; `change` gets whether a holder is to be notified, and returns
    /// what happened, in which directory. `all`: in 4.0's OPEN, everything, which is locked already.
    pub(crate) fn change_directories<'e, T>(
        &mut self,
        all: Option<&mut All<'_>>,
        needs: &[(FileId, Notifications)],
        change: impl FnOnce(bool) -> Result<Change<'e, T>, Failure>,
    ) -> Result<T, Failure> {
        let state = &self.server.state;
        let dirs = || needs.iter().map(|(dir, _)| *dir);
        if !self.server.config.delegations {
            return Ok(change(false)?.0);
        }
        // No other request changes them meanwhile, so that notifications have the order of the changes.
        match all {
            Some(all) => {
                let parts = all.files();
                if dirs().any(|dir| parts.part(dir).delegated(dir)) {
                    self.change_and_notify(all, needs, change)
                } else {
                    Ok(change(false)?.0)
                }
            }
            None if dirs().any(|dir| state.delegated(dir)) => {
                self.change_and_notify(&mut state.all(), needs, change)
            }
            None => Ok(change(false)?.0),
        }
    }

    fn change_and_notify<'e, T>(
        &mut self,
        all: &mut All<'_>,
        needs: &[(FileId, Notifications)],
        change: impl FnOnce(bool) -> Result<Change<'e, T>, Failure>,
    ) -> Result<T, Failure> {
        let (server, client, now) = (self.server, self.client, self.now.instant);
        let (clients, files) = all.split();
        for (dir, needs) in needs {
            files.part(*dir).recall_uncovered(clients, *dir, needs, client, now, self.effects)?;
        }
        let (changed, events) = change(true)?;
        for (dir, event) in &events {
            let own = !matches!(event, Event::Attributes);
            let describe =
                |granted: &Notifications| describe(server, *dir, event, granted).unwrap_or_default();
            files.part(*dir).notify(*dir, (client, own), self.effects, describe);
        }
        Ok(changed)
    }
}

/// What a change gives, and what happened where.
type Change<'e, T> = (T, Vec<(FileId, Event<'e>)>);

/// The notifications (`notify4`, encoded) of an event for a holder to whom `granted` was granted.
fn describe(
    server: &Shared,
    dir: FileId,
    event: &Event<'_>,
    granted: &Notifications,
) -> Result<Vec<Vec<u8>>, FsError> {
    let (fs, node) = server.exports.file(dir)?;
    let writer = Writer { server, fs, dir, node, child: granted.child };
    let mut notes = Vec::new();
    let mut note = |kind: u32, put: &dyn Fn(&mut Encoder) -> Result<(), FsError>| {
        if granted.kinds.contains(kind) {
            let (mut values, mut e) = (Encoder::new(), Encoder::new());
            put(&mut values)?;
            e.put(&Bitmap4::of(&[kind]));
            e.opaque(values.buffer());
            notes.push(e.buffer().to_vec());
        }
        Ok(())
    };
    match event {
        Event::Added(entry, old) => note(notify::ADD_ENTRY, &|e| writer.add(e, entry, old.as_ref()))?,
        Event::Removed(entry) => note(notify::REMOVE_ENTRY, &|e| {
            writer.remove(e, entry);
            Ok(())
        })?,
        Event::Renamed(from, to, old) => note(notify::RENAME_ENTRY, &|e| {
            writer.remove(e, from);
            writer.add(e, to, old.as_ref())
        })?,
        Event::Attributes => {}
    }
    note(notify::CHANGE_DIR_ATTRS, &|e| {
        e.opaque(b"");
        View::new(server, MINOR, dir.export, granted.dir).put(e, dir, &fs.attr(node)?);
        Ok(())
    })?;
    Ok(notes)
}

/// Notifications do not depend on the minor version of their holder.
const MINOR: u32 = 2;

struct Writer<'s> {
    server: &'s Shared,
    fs: &'s FileSystem,
    dir: FileId,
    node: Node,
    child: Bitmap4,
}

impl Writer<'_> {
    /// `notify_entry4`.
    fn entry(&self, e: &mut Encoder, name: &[u8], attr: &Attr) {
        e.opaque(name);
        let file = FileId::new(self.dir.export, attr.node);
        View::new(self.server, MINOR, file.export, self.child).put(e, file, attr);
    }

    /// `notify_remove4`.
    fn remove(&self, e: &mut Encoder, entry: &Entry<'_>) {
        self.entry(e, entry.name, &entry.attr);
        e.put(&entry.cookie);
    }

    /// `notify_add4`.
    fn add(&self, e: &mut Encoder, entry: &Entry<'_>, old: Option<&Attr>) -> Result<(), FsError> {
        e.put(&u32::from(old.is_some()));
        if let Some(old) = old {
            self.remove(e, &Entry { attr: old.clone(), ..*entry });
        }
        self.entry(e, entry.name, &entry.attr);
        e.put(&1u32);
        e.put(&entry.cookie);
        let (before, last) = self.fs.beside(self.node, entry.cookie)?;
        e.put(&u32::from(before.is_some()));
        if let Some(before) = before {
            let attr = self.fs.attr(before.node)?;
            self.remove(e, &Entry { name: &before.name, cookie: before.cookie, attr });
        }
        e.put(&last);
        Ok(())
    }
}

/// EXIST where a name is taken, before anything is recalled for a change that fails.
pub(crate) fn check_free(c: &Compound<'_>, fs: &FileSystem, dir: Node, name: &[u8]) -> OpResult {
    if fs.lookup(c.who, dir, name).is_ok() && !is_broken(Mutant::ExistRecalls) {
        return Err(Nfsstat4::EXIST.into());
    }
    Ok(())
}
