//! The controller's side: admits the agents of a launch, and no other peer.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use super::build::{self, Unreadable};
use super::controller_key::{ControllerKey, KeyError};
use super::credentials::{Credentials, Token};
use super::greeting::{self, Verdict};
use super::groups::{Aggregators, Groups};
use super::key;
use crate::launch::ByteStream;

/// Most connections that have not shown a token yet; more are closed at once, and agents try again.
pub const MOST_WAITING: usize = 512;

/// How long a connection may take until it has shown the token.
pub const HANDSHAKE: Duration = Duration::from_secs(10);

/// Refusals that are kept to be reported.
const MOST_REFUSALS: usize = 20;

/// Waits for the agents of one launch.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    handshake: Duration,
    door: Arc<Door>,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("address", &self.address).finish_non_exhaustive()
    }
}

/// What the handshakes share.
struct Door {
    tls: TlsAcceptor,
    token: Token,
    identity: &'static str,
    /// Ranks that are there.
    taken: Mutex<HashSet<u32>>,
    /// Groups of ranks whose first one leads the others: these are sent there.
    groups: Option<Groups>,
}

/// Connections that have not shown a token yet, or wait to be sent elsewhere.
pub(crate) type Handshakes = JoinSet<Result<Option<Joined>, Refusal>>;

/// Why no agents can be awaited.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address is in use, or not one of this host.
    #[error("cannot listen for agents on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The program's own file, which identifies its build.
    #[error(transparent)]
    Program(#[from] Unreadable),
}

/// An agent that has shown the token.
#[derive(Debug)]
pub struct Joined {
    /// Its number among the agents of the launch, from 0.
    pub rank: u32,
    /// The name that it gives its host.
    pub host: String,
    /// Where it connected from.
    pub peer: SocketAddr,
    pub stream: Box<dyn ByteStream>,
}

/// A connection that was turned away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub peer: SocketAddr,
    pub reason: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused a connection from {}: {}", self.peer, self.reason)
    }
}

/// All agents of a launch are there.
#[derive(Debug)]
pub struct Admitted {
    /// In the order of their ranks.
    pub joined: Vec<Joined>,
    /// The first connections that were turned away meanwhile.
    pub refused: Vec<Refusal>,
}

/// Not all agents came in time.
#[derive(Debug)]
pub struct Missing {
    pub joined: Vec<Joined>,
    /// Ranks of the others, ascending.
    pub missing: Vec<u32>,
    /// The first connections that were turned away meanwhile.
    pub refused: Vec<Refusal>,
}

impl Listener {
    /// Listens with a new key and token; port 0 takes a free one. An address that is not a loopback one lets
    /// others try, which the token is there for.
    ///
    /// # Errors
    /// When the address cannot be listened on, or there are no keys.
    pub async fn bind(address: SocketAddr) -> Result<(Self, Credentials), ListenError> {
        let key = ControllerKey::generate()?;
        Ok((Self::bind_with(address, &key).await?, key.credentials()?))
    }

    /// Listens with a key and token that agents were given before.
    ///
    /// # Errors
    /// When the address cannot be listened on, or it is no key for TLS.
    pub async fn bind_with(address: SocketAddr, key: &ControllerKey) -> Result<Self, ListenError> {
        let (tls, _) = key::server(&key.pkcs8).map_err(KeyError)?;
        let identity = build::identity()?;
        let failed = |source| ListenError::Listen { address, source };
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let tls = TlsAcceptor::from(Arc::new(tls));
        let door =
            Arc::new(Door { tls, token: key.token.clone(), identity, taken: Mutex::default(), groups: None });
        Ok(Self { socket, address, handshake: HANDSHAKE, door })
    }

    /// Gives each connection another time than [`HANDSHAKE`] to show the token.
    #[must_use]
    pub fn handshake_within(mut self, time: Duration) -> Self {
        self.handshake = time;
        self
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends all but the first rank of each group to that one, once [`Aggregators`] know its address.
    pub(crate) fn with_groups(mut self, groups: Vec<Range<u32>>) -> (Self, Aggregators) {
        let groups = Groups::new(groups);
        let aggregators = Aggregators { posts: Arc::clone(&groups.posts), task: None };
        if let Some(door) = Arc::get_mut(&mut self.door) {
            door.groups = Some(groups);
        }
        (self, aggregators)
    }

    /// Waits until agents of all ranks below `ranks` are there. Dropping the future ends it and closes what has come.
    ///
    /// # Errors
    /// [`Missing`] when some are not there at the deadline.
    pub async fn accept_ranked(&self, ranks: u32, deadline: Instant) -> Result<Admitted, Missing> {
        self.accept(0..ranks, ranks, deadline, &mut Handshakes::new()).await
    }

    /// The same for some of the ranks; the handshakes of others go on in between, and in the next call.
    pub(crate) async fn accept(
        &self,
        wanted: impl Iterator<Item = u32> + Clone,
        ranks: u32,
        deadline: Instant,
        handshakes: &mut Handshakes,
    ) -> Result<Admitted, Missing> {
        let expected = wanted.clone().count();
        let mut joined: Vec<Joined> = Vec::new();
        let mut refused = Vec::new();
        let mut refuse = |refusal| {
            if refused.len() < MOST_REFUSALS {
                refused.push(refusal);
            }
        };
        while joined.len() < expected {
            tokio::select! {
                // What has come is looked at before more is let in.
                biased;
                Some(done) = handshakes.join_next() => match done {
                    Ok(Ok(agent)) => joined.extend(agent),
                    Ok(Err(refusal)) => refuse(refusal),
                    // A handshake that panicked or was cancelled: its connection is closed.
                    Err(_) => {}
                },
                () = sleep_until(deadline) => break,
                accepted = self.socket.accept() => match accepted {
                    Ok((_, peer)) if handshakes.len() >= MOST_WAITING => {
                        refuse(Refusal { peer, reason: format!("{MOST_WAITING} connections have not shown a token yet") });
                    }
                    Ok((stream, peer)) => {
                        let door = Arc::clone(&self.door);
                        let handshake = self.handshake;
                        handshakes.spawn(async move {
                            let reason = match timeout(handshake, door.admit(stream, peer, ranks)).await {
                                Ok(Ok(agent)) => return Ok(agent),
                                Ok(Err(reason)) => reason,
                                Err(_) => format!("it did not show a token within {handshake:?}"),
                            };
                            Err(Refusal { peer, reason })
                        });
                    }
                    // No descriptors left, or a connection that ended in the queue: others may do better.
                    Err(_) => sleep(Duration::from_millis(20)).await,
                },
            }
        }
        joined.sort_by_key(|agent| agent.rank);
        if joined.len() == expected {
            return Ok(Admitted { joined, refused });
        }
        let there: HashSet<u32> = joined.iter().map(|agent| agent.rank).collect();
        let missing = wanted.filter(|rank| !there.contains(rank)).collect();
        Err(Missing { joined, missing, refused })
    }
}

impl Door {
    /// Takes a connection in, or says why not; `None`: it was sent elsewhere.
    async fn admit(&self, stream: TcpStream, peer: SocketAddr, ranks: u32) -> Result<Option<Joined>, String> {
        let broken = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => "it left before it had shown a token".to_owned(),
            _ => error.to_string(),
        };
        // A start instant is a message that must not wait for another one.
        stream.set_nodelay(true).map_err(broken)?;
        let mut stream = self.tls.accept(stream).await.map_err(broken)?;
        let greeting = greeting::receive(&mut stream).await.map_err(broken)?;
        let verdict = self.judge(&greeting, ranks);
        let groups = self.groups.as_ref().filter(|_| verdict == Verdict::Accepted);
        if let Some((groups, group)) = groups.and_then(|groups| Some((groups, groups.behind(greeting.rank)?)))
        {
            self.taken.lock().remove(&greeting.rank);
            let sent = match groups.place(group, greeting.rank, &greeting.host).await {
                Some(to) => greeting::redirect(&mut stream, self.identity, &to).await,
                None => greeting::answer(&mut stream, Verdict::Later, self.identity).await,
            };
            return sent.map(|()| None).map_err(broken);
        }
        let identity = if verdict == Verdict::Token { "" } else { self.identity };
        let answered = greeting::answer(&mut stream, verdict, identity).await;
        let (rank, mut host) = (greeting.rank, greeting.host);
        if let Some(groups) = &self.groups
            && verdict == Verdict::Accepted
        {
            host = groups.name(rank, &host);
        }
        match verdict {
            Verdict::Accepted => match answered {
                Ok(()) => Ok(Some(Joined { rank, host, peer, stream: Box::new(stream) })),
                Err(error) => {
                    // It does not know that it was taken, and may come again.
                    self.taken.lock().remove(&rank);
                    Err(broken(error))
                }
            },
            Verdict::Token => Err("its token is not that of this launch".to_owned()),
            Verdict::Build => Err(format!(
                "rank {rank} on {host} runs a different build of Benchmaster ({}) than the controller ({})",
                greeting.identity, self.identity
            )),
            Verdict::Taken => Err(format!("{host} reports rank {rank}, which is already connected")),
            Verdict::Later | Verdict::Elsewhere => {
                Err(format!("rank {rank} on {host} has its place elsewhere"))
            }
            Verdict::Rank => {
                Err(format!("{host} says it is rank {rank}, but the ranks of this launch are below {ranks}"))
            }
        }
    }

    /// The token first: who does not have it learns nothing. A rank is taken by this.
    fn judge(&self, greeting: &greeting::Greeting, ranks: u32) -> Verdict {
        if !self.token.is(greeting.token.as_slice()) {
            Verdict::Token
        } else if greeting.identity != self.identity {
            Verdict::Build
        } else if greeting.rank >= ranks {
            Verdict::Rank
        } else if !self.taken.lock().insert(greeting.rank) {
            Verdict::Taken
        } else {
            Verdict::Accepted
        }
    }
}
