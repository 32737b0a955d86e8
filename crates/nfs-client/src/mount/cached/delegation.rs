//! Delegations: what is open here only, and recalls.

use std::rc::Rc;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};

use super::{Mount, Node, parts};
use crate::cache::Name;
use crate::mount::ClientFile;
use crate::mount::node::{Cached, Slot};
use crate::protocol::{NfsResult, Protocol};
use crate::types::Handle;
use crate::v4::Surrender;

impl Mount {
    /// From now on recalls are answered: what is open here only is opened at the server and its locks taken there, and
    /// what is dirty is flushed, before the delegation is given back. What is kept under one that is lost is recovered.
    pub(in crate::mount) fn answer_recalls(&self) {
        let core = Rc::downgrade(&self.0);
        self.0.client.set_recall_hook(Rc::new(move |handle| {
            let core = core.clone();
            Box::pin(async move {
                let Some(mount) = core.upgrade().map(Mount) else { return };
                let Some(cache) = &mount.0.cache else { return };
                let _answering = cache.recalls.shared().await;
                if let Some(node) = mount.0.nodes.find(&handle) {
                    // What cannot be opened is counted, and fails where it is used.
                    let _ = mount.take_to_server(&node).await;
                    if let Some(cached) = &node.cached {
                        cached.known.borrow_mut().invalidate();
                    }
                }
            })
        }));
        let core = Rc::downgrade(&self.0);
        self.0.client.set_surrender_hook(Rc::new(move |handle, what| {
            let Some(mount) = core.upgrade().map(Mount) else { return };
            if let Some(node) = mount.0.nodes.find(handle)
                && let Some(cached) = &node.cached
            {
                mount.surrender(&node, cached, what);
            }
        }));
    }

    /// What was kept under a delegation is known to the client from now on, which recovers it or takes it for lost.
    fn surrender(&self, node: &Node, cached: &Cached, what: Surrender) {
        let locks = match what {
            Surrender::Opens => Vec::new(),
            Surrender::Locks | Surrender::LostLocks => cached.locks.borrow_mut().take_all(),
            Surrender::Nothing => return cached.locks.borrow_mut().returned(),
        };
        for slot in cached.slots.borrow().iter() {
            let mut own = locks.iter().filter(|lock| lock.owner == slot.owner).peekable();
            if what != Surrender::Opens && own.peek().is_none() {
                continue;
            }
            let Slot { how, directory, name, .. } = &**slot;
            let mut open = slot.open.borrow_mut();
            if open.is_none() {
                let file = self.0.client.assume_open(&node.handle, directory, name, how);
                *open = file.map(|file| self.file_of(slot, file));
            }
            if let Some(open) = &*open {
                own.for_each(|lock| self.0.client.assume_lock(open, lock, what == Surrender::LostLocks));
            }
        }
        if !locks.is_empty() {
            cached.locked_there.set(true);
        }
    }

    /// Gives back the delegation of a file that is about to lose or change its name, as Linux does.
    pub(in crate::mount) async fn give_back_name(&self, directory: &Handle, name: &[u8]) -> NfsResult<()> {
        let Some(directory) = self.0.nodes.find(directory) else { return Ok(()) };
        let known = parts(&directory)?.names.borrow().last(name);
        match known {
            Some(Name::File(file)) => self.give_back(&self.0.nodes.get(&file)).await,
            _ => Ok(()),
        }
    }

    /// Gives back the delegation of a file, if there is one: it is in the way of something that we do.
    pub(in crate::mount) async fn give_back(&self, node: &Node) -> NfsResult<()> {
        if node.cached.is_none() || !self.is_delegated(node) {
            return Ok(());
        }
        self.take_to_server(node).await?;
        self.0.client.return_delegation(&node.handle).await
    }

    /// Every open file is opened at the server under the delegation, those too that are open there (Linux does not tell
    /// them apart); then locks and dirty data go there. Files that were lost stay so until they are closed.
    async fn take_to_server(&self, node: &Node) -> NfsResult<()> {
        let cached = parts(node)?;
        let mut result = Ok(());
        {
            let _alone = cached.opening.alone().await;
            for slot in cached.users() {
                let Slot { how, directory, name, .. } = &**slot;
                let old = slot.open.borrow().clone();
                if old.as_ref().is_some_and(|old| self.0.client.is_lost(old)) {
                    continue;
                }
                let opened = self.0.client.open_delegated(&node.handle, directory, name, how, old.as_deref());
                let opened = opened.await;
                drop(old);
                let open = match opened {
                    Ok(file) => self.put(&slot, file).await,
                    Err(error) => Err(error),
                };
                match open {
                    Ok(open) if is_broken(Mutant::KeptLocksNotTaken) => drop(open),
                    Ok(open) => result = result.and(self.lock_there(cached, &slot, &open).await),
                    Err(error) => result = result.and(Err(error)),
                }
            }
            if result.is_err() {
                // Those of files that could not be opened.
                self.surrender(node, cached, Surrender::LostLocks);
            }
        }
        result.and(self.flush_any(node).await)
    }

    /// An open file as the server knows it: what is open here only is opened there first.
    pub(in crate::mount) async fn at_server(&self, node: &Node, slot: &Slot) -> NfsResult<Rc<ClientFile>> {
        if let Some(open) = &*slot.open.borrow() {
            return Ok(open.clone());
        }
        let _alone = parts(node)?.opening.alone().await;
        if let Some(open) = &*slot.open.borrow() {
            return Ok(open.clone());
        }
        let Slot { how, directory, name, .. } = slot;
        let file = self.0.client.open_delegated(&node.handle, directory, name, how, None).await?;
        self.put(slot, file).await
    }

    /// A file at the server of an open file, under whose locks data are read and written.
    pub(super) fn file_of(&self, slot: &Slot, file: ClientFile) -> Rc<ClientFile> {
        self.0.client.set_locker(&file, slot.owner);
        Rc::new(file)
    }

    /// An open file was opened at the server. It may have been open there before, perhaps only since a recovery: one open, with
    /// its locks, stays.
    async fn put(&self, slot: &Slot, file: ClientFile) -> NfsResult<Rc<ClientFile>> {
        let client = &self.0.client;
        let old = slot.open.borrow().clone().filter(|old| !client.is_same_open(old, &file));
        if let Some(old) = old {
            client.close(file).await?;
            return Ok(old);
        }
        let open = self.file_of(slot, file);
        let old = slot.open.borrow_mut().replace(open.clone());
        if let Some(old) = old.and_then(Rc::into_inner) {
            client.close(old).await?;
        }
        Ok(open)
    }
}
