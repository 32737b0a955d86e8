//! Delegations: what is open here only, and recalls.

use std::rc::Rc;

use super::{Mount, Node, parts};
use crate::cache::Name;
use crate::mount::ClientFile;
use crate::mount::node::Slot;
use crate::protocol::{NfsResult, Protocol};
use crate::types::Handle;

impl Mount {
    /// From now on recalls are answered: what is open here only is opened at the server and its locks taken there, and
    /// what is dirty is flushed, before the delegation is given back.
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
    /// them apart); then locks and dirty data go there.
    async fn take_to_server(&self, node: &Node) -> NfsResult<()> {
        let cached = parts(node)?;
        let mut result = Ok(());
        {
            let _alone = cached.opening.alone().await;
            let slots = cached.slots.borrow().clone();
            for slot in slots {
                let Slot { how, directory, name, .. } = &*slot;
                match self.0.client.open_delegated(&node.handle, directory, name, how).await {
                    Ok(file) => {
                        let old = slot.open.borrow_mut().replace(Rc::new(file));
                        if let Some(old) = old.and_then(Rc::into_inner) {
                            // The server has one open for both.
                            result = result.and(self.0.client.close(old).await);
                        }
                        result = result.and(self.lock_there(node, &slot).await);
                    }
                    Err(error) => result = result.and(Err(error)),
                }
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
        let file = Rc::new(self.0.client.open_delegated(&node.handle, directory, name, how).await?);
        *slot.open.borrow_mut() = Some(file.clone());
        self.lock_there(node, slot).await?;
        Ok(file)
    }
}
