//! Agents that dial the controller and have their place behind an aggregator: the first agent of each group becomes one, and
//! the others get its address.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use zeroize::Zeroizing;

use super::greeting::Elsewhere;

/// How long an agent waits for its aggregator's address before it is to ask again.
const HOLD: Duration = Duration::from_secs(5);

/// An aggregator's address and credentials, once they are known.
type Post = watch::Sender<Option<(SocketAddr, Zeroizing<String>)>>;

/// The groups of a launch, as the listener has them.
pub(super) struct Groups {
    ranges: Vec<Range<u32>>,
    pub(super) posts: Arc<Vec<Post>>,
    /// Names that were given to agents.
    names: Mutex<HashSet<String>>,
}

/// The same as the controller has them. Dropping it ends the redirection.
pub(crate) struct Aggregators {
    pub(super) posts: Arc<Vec<Post>>,
    pub(super) task: Option<AbortHandle>,
}

impl std::fmt::Debug for Aggregators {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Aggregators")
    }
}

impl Aggregators {
    /// Redirection goes on in this task.
    pub(crate) fn served_by(&mut self, task: AbortHandle) {
        self.task = Some(task);
    }

    /// The aggregator of a group listens.
    pub(crate) fn post(&self, group: usize, address: SocketAddr, credentials: Zeroizing<String>) {
        if let Some(post) = self.posts.get(group) {
            post.send_replace(Some((address, credentials)));
        }
    }
}

impl Drop for Aggregators {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

impl Groups {
    pub(super) fn new(ranges: Vec<Range<u32>>) -> Self {
        let posts = ranges.iter().map(|_| watch::channel(None).0).collect();
        Self { ranges, posts: Arc::new(posts), names: Mutex::default() }
    }

    /// The group of a rank that does not lead it.
    pub(super) fn behind(&self, rank: u32) -> Option<usize> {
        self.ranges.iter().position(|group| group.contains(&rank) && group.start != rank)
    }

    /// Where an agent of a group is to join; `None`: that is not known in time.
    pub(super) async fn place(&self, group: usize, rank: u32, host: &str) -> Option<Elsewhere> {
        let mut post = self.posts.get(group)?.subscribe();
        let known = tokio::time::timeout(HOLD, post.wait_for(Option::is_some)).await.ok()?.ok()?;
        let (address, credentials) = known.as_ref()?;
        let (address, credentials) = (address.to_string(), credentials.clone());
        Some(Elsewhere { address, name: self.name(rank, host), credentials })
    }

    /// The name of an agent: that of its host, with its rank from the second one there on.
    pub(super) fn name(&self, rank: u32, host: &str) -> String {
        if self.names.lock().insert(host.to_owned()) { host.to_owned() } else { format!("{host}-{rank}") }
    }
}
