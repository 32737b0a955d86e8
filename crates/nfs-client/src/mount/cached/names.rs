//! Names: walking, opening, attributes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::{Mount, NOENT, Node, parts};
use crate::cache::Name;
use crate::error::NfsError;
use crate::mount::file::Open;
use crate::mount::node::Slot;
use crate::mount::{Client, ClientFile, is_stale};
use crate::protocol::{NfsResult, Opened, Protocol};
use crate::types::{AccessBits, Attributes, Create, Handle, OpenHow, SetAttributes};

impl Mount {
    fn absent<R>(&self) -> NfsResult<R> {
        Err(self.0.client.error(NOENT))
    }

    /// The directory of a clean path: every name on the way is known and believed, or looked up; every directory on the
    /// way may be searched.
    pub(in crate::mount) async fn walk(&self, path: &[u8]) -> NfsResult<Rc<Node>> {
        let mut node = self.0.nodes.get(&self.0.client.root());
        for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            self.permit(&node, AccessBits::LOOKUP).await?;
            let handle = self.child(&node, name).await?;
            node = self.0.nodes.get(&handle);
        }
        self.permit(&node, AccessBits::LOOKUP).await?;
        Ok(node)
    }

    /// What is known of a name in a directory, if it is to be believed: the directory has not changed since. A
    /// delegation of the file says by itself that the name is right.
    async fn known_child(&self, directory: &Node, name: &[u8]) -> NfsResult<Option<Name>> {
        let cached = parts(directory)?;
        let last = cached.names.borrow().last(name);
        if let Some(Name::File(handle)) = last
            && self.0.client.delegation(&handle).is_some()
        {
            return Ok(last);
        }
        let change = self.fresh(directory, false).await?.change;
        Ok(cached.names.borrow().valid(name, change))
    }

    /// The file of a name: LOOKUP if it is not known.
    async fn child(&self, directory: &Node, name: &[u8]) -> NfsResult<Handle> {
        match self.known_child(directory, name).await? {
            Some(Name::File(handle)) => Ok(handle),
            Some(Name::Absent) => self.absent(),
            None => self.look_up(directory, name).await,
        }
    }

    async fn look_up(&self, directory: &Node, name: &[u8]) -> NfsResult<Handle> {
        let change = self.fresh(directory, false).await?.change;
        let changes = self.changes();
        let found = self.0.client.lookup(&directory.handle, name).await;
        let names = &parts(directory)?.names;
        match found {
            Ok((handle, attributes)) => {
                names.borrow_mut().keep(name, Name::File(handle), change);
                if let Some(attributes) = attributes {
                    self.learn_since(&self.0.nodes.get(&handle), attributes, changes);
                }
                Ok(handle)
            }
            Err(error) => {
                if error.is_absent() {
                    names.borrow_mut().keep(name, Name::Absent, change)
                } else {
                    names.borrow_mut().forget(name)
                }
                Err(error)
            }
        }
    }

    pub(in crate::mount) async fn find_cached(&self, directory: &Handle, name: &[u8]) -> NfsResult<Handle> {
        self.child(&self.0.nodes.get(directory), name).await
    }

    /// Attributes by handle; what is dirty is flushed first, so that they are those of the server.
    pub(in crate::mount) async fn stat_cached(&self, handle: &Handle) -> NfsResult<Attributes> {
        let node = self.0.nodes.get(handle);
        self.flush_any(&node).await?;
        self.fresh(&node, false).await
    }

    /// A name in a directory was changed by us.
    pub(in crate::mount) fn name_changed(&self, directory: &Handle, name: &[u8]) {
        let Some(directory) = self.0.cache.as_ref().and_then(|_| self.0.nodes.find(directory)) else {
            return;
        };
        let Some(cached) = &directory.cached else { return };
        let mut names = cached.names.borrow_mut();
        if let Some(Name::File(file)) = names.last(name)
            && let Some(file) = self.0.nodes.find(&file)
        {
            self.attributes_set(&file);
        }
        names.forget(name);
        cached.known.borrow_mut().changed_by_us();
    }

    /// Forgets the names on a path, because one of the directories is stale.
    pub(in crate::mount) fn forget_names(&self, path: &[u8]) {
        let mut node = Some(self.0.nodes.get(&self.0.client.root()));
        for name in path.split(|byte| *byte == b'/') {
            let Some(cached) = node.as_ref().and_then(|node| node.cached.as_ref()) else { return };
            let mut names = cached.names.borrow_mut();
            let next = match names.last(name) {
                Some(Name::File(handle)) => self.0.nodes.find(&handle),
                _ => None,
            };
            names.forget(name);
            cached.known.borrow_mut().invalidate();
            drop(names);
            node = next;
        }
    }

    /// Opens a file. Close-to-open: its attributes are asked for, by GETATTR (version 3, and 4.1 where the file is
    /// known) or with the OPEN, and show whether the cached data are still those of the file. With a delegation
    /// nothing is sent.
    pub(in crate::mount) async fn open_cached(
        &self,
        directory: &Handle,
        name: &[u8],
        how: &OpenHow,
        owner: u64,
    ) -> NfsResult<(Open, Rc<Node>)> {
        self.make_space();
        let directory = self.0.nodes.get(directory);
        let (open, node) = if self.0.options.version.has_state() {
            self.open_stateful(&directory, name, how).await?
        } else {
            self.open_stateless(&directory, name, how).await?
        };
        let slot = Rc::new(Slot {
            how: OpenHow { create: Create::No, truncate: false, ..*how },
            directory: directory.handle,
            name: name.into(),
            owner,
            readahead: RefCell::default(),
            reported: Cell::new(parts(&node)?.failures.get().0),
            open: RefCell::default(),
        });
        *slot.open.borrow_mut() = open.map(|open| self.file_of(&slot, open));
        parts(&node)?.slots.borrow_mut().push(slot.clone());
        Ok((Open::Cached(slot), node))
    }

    /// OPEN, unless a delegation lets us do it here: then there is no file at the server.
    async fn open_stateful(
        &self,
        directory: &Rc<Node>,
        name: &[u8],
        how: &OpenHow,
    ) -> NfsResult<(Option<ClientFile>, Rc<Node>)> {
        if how.create != Create::Exclusive {
            match self.known_child(directory, name).await? {
                Some(Name::Absent) if how.create == Create::No => return self.absent(),
                Some(Name::File(handle)) => {
                    let node = self.0.nodes.get(&handle);
                    if self.may_open(directory, &node, name, how).await? {
                        return Ok((None, node));
                    }
                }
                _ => {}
            }
        }
        let change = self.fresh(directory, false).await?.change;
        let changes = self.changes();
        let Opened { file, attributes, created } =
            self.0.client.open(&directory.handle, name, how).await.inspect_err(|error| {
                let Some(cached) = &directory.cached else { return };
                if error.is_absent() {
                    cached.names.borrow_mut().keep(name, Name::Absent, change);
                } else if how.create == Create::No {
                    cached.names.borrow_mut().forget(name);
                } else {
                    // The file may be there all the same (Linux: `nfs_atomic_open` drops the name).
                    self.name_changed(&directory.handle, name);
                }
            })?;
        let node = self.0.nodes.get(&Client::handle(&file));
        let cached = parts(&node)?;
        let current = self.changes() == changes && !cached.pages.borrow().is_dirty();
        if created {
            self.name_changed(&directory.handle, name);
        }
        parts(directory)?.names.borrow_mut().keep(name, Name::File(node.handle), change);
        if how.truncate {
            self.cut(&node, 0);
        }
        match attributes {
            Some(attributes) if current => self.learn(&node, attributes, created || how.truncate),
            _ => cached.known.borrow_mut().invalidate(),
        }
        // The OPEN asks for access too, and succeeded.
        let granted = AccessBits(wanted(how));
        if cached.access.borrow().granted(granted.0, self.now(), None).is_none() {
            cached.access.borrow_mut().learn(granted, granted, self.now());
        }
        Ok((Some(file), node))
    }

    /// What is done before a file that is known is opened. Whether it may be opened here only.
    async fn may_open(
        &self,
        directory: &Node,
        node: &Rc<Node>,
        name: &[u8],
        how: &OpenHow,
    ) -> NfsResult<bool> {
        let delegation = self.0.client.delegation(&node.handle);
        let enough = self.is_enough(node, how);
        if enough && !how.truncate {
            self.permit(node, wanted(how)).await?;
            // It may have been recalled meanwhile.
            return Ok(self.0.client.delegation(&node.handle) == delegation);
        }
        if delegation.is_some() && !enough {
            // Linux gives back what is in the way of its own open.
            self.give_back(node).await?;
        }
        if self.0.options.version.has_sessions() {
            match self.fresh(node, true).await {
                Err(error) if is_stale(&error) => {
                    parts(directory)?.names.borrow_mut().forget(name);
                    return Ok(false);
                }
                result => result?,
            };
        }
        self.permit(node, wanted(how)).await?;
        Ok(false)
    }

    /// Versions 2 and 3: LOOKUP or GETATTR, and ACCESS; CREATE for a file that does not exist.
    async fn open_stateless(
        &self,
        directory: &Rc<Node>,
        name: &[u8],
        how: &OpenHow,
    ) -> NfsResult<(Option<ClientFile>, Rc<Node>)> {
        let existing = match how.create {
            Create::Exclusive => None,
            _ => self.existing(directory, name).await?,
        };
        let Some(node) = existing else {
            if how.create == Create::No {
                return self.absent();
            }
            let opened = self.0.client.open(&directory.handle, name, how).await;
            self.name_changed(&directory.handle, name);
            let Opened { file, attributes, .. } = opened?;
            let node = self.0.nodes.get(&Client::handle(&file));
            if how.truncate {
                self.cut(&node, 0);
            }
            if let Some(attributes) = attributes {
                self.learn(&node, attributes, true);
            }
            return Ok((Some(file), node));
        };
        self.permit(&node, wanted(how)).await?;
        if how.truncate {
            let set = SetAttributes { size: Some(0), ..SetAttributes::default() };
            let _alone = node.writing.alone().await;
            self.0.client.setattr(&node.handle, None, &set).await?;
            self.cut(&node, 0);
        }
        let file = self.0.client.file_of(&node.handle);
        Ok((Some(file.ok_or(NfsError::Unsupported("a file without state"))?), node))
    }

    /// A file that exists, with attributes as they are now.
    async fn existing(&self, directory: &Node, name: &[u8]) -> NfsResult<Option<Rc<Node>>> {
        match self.known_child(directory, name).await? {
            Some(Name::Absent) => return Ok(None),
            Some(Name::File(handle)) => {
                let node = self.0.nodes.get(&handle);
                match self.fresh(&node, true).await {
                    Err(error) if is_stale(&error) => {}
                    result => return result.map(|_| Some(node)),
                }
            }
            None => {}
        }
        match self.look_up(directory, name).await {
            Ok(handle) => {
                let node = self.0.nodes.get(&handle);
                self.fresh(&node, false).await?;
                Ok(Some(node))
            }
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Access that an open needs.
fn wanted(how: &OpenHow) -> u32 {
    let read = if how.read { AccessBits::READ } else { 0 };
    let write = if how.write { AccessBits::MODIFY | AccessBits::EXTEND } else { 0 };
    read | write
}
