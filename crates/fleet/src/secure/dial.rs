//! The agent's side: connects to the controller that it was given credentials for.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_rustls::TlsConnector;

use super::build::{self, Unreadable};
use super::credentials::{Credentials, CredentialsError};
use super::greeting::{self, Verdict};
use super::key;
use crate::launch::ByteStream;

/// How long an agent tries to reach the controller that started it. Less than the controller waits, so that the agent can
/// still say why.
pub const TRY_FOR: Duration = Duration::from_secs(25);

/// Pause before another attempt: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// Variables of the environment in which programs that start agents number them: Slurm, Open MPI, other launchers of MPI (PMIx,
/// PMI), an Indexed Job of Kubernetes.
pub const RANKS: [&str; 5] =
    ["SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "JOB_COMPLETION_INDEX"];

/// What an agent that dials was asked to do.
#[derive(Debug, Clone)]
pub struct AgentOptions {
    /// `HOST:PORT` of the controller.
    pub dial: String,
    /// Its number among the agents of the launch; `None`: that of whatever started it (see [`RANKS`]).
    pub rank: Option<u32>,
    /// How long it stands by for a controller that wants it. `None`: the controller has started it, and waits; it tries for
    /// [`TRY_FOR`], and a rank that is not wanted is an error.
    pub wait: Option<Duration>,
    /// File with the credentials; `None`: the first line of standard input.
    pub credentials: Option<PathBuf>,
}

/// Why an agent could not join its controller.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error(
        "cannot reach the controller at {address} within {within:?}: {source}; \
         an address of the controller that this host can reach must be given in the study"
    )]
    Reach { address: String, within: Duration, source: io::Error },
    /// Another program answers.
    #[error(
        "the process at {address} is not the controller that started this agent (its key differs); nothing was sent to it"
    )]
    Key { address: String },
    /// The controller does not want this agent.
    #[error("the controller at {address} refused this agent: {reason}")]
    Refused { address: String, reason: String },
    #[error("give this agent's number in the launch by `--rank`, or in one of {}{found}", RANKS.join(", "))]
    Rank {
        /// What stands in one of them instead.
        found: String,
    },
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// The program's own file, which identifies its build.
    #[error(transparent)]
    Program(#[from] Unreadable),
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// The stream of `benchmaster agent --dial`: reads the credentials, connects, and joins. What it returns is to be served on.
///
/// # Errors
/// See [`DialError`].
pub async fn agent_stream(options: &AgentOptions) -> Result<Box<dyn ByteStream>, DialError> {
    let rank = match options.rank {
        Some(rank) => rank,
        None => rank_in(|name| std::env::var(name).ok())?,
    };
    let credentials = match &options.credentials {
        Some(path) => Credentials::read_file(path)?,
        None => from_standard_input().await?,
    };
    dial(&options.dial, &credentials, rank, &host(), options.wait).await
}

/// Reads standard input in a thread of its own, which no runtime waits for when nothing comes.
async fn from_standard_input() -> Result<Credentials, CredentialsError> {
    const PLACE: &str = "standard input";
    let (tell, line) = oneshot::channel();
    let failed = |source| CredentialsError::Read { place: PLACE.to_owned(), source };
    std::thread::Builder::new()
        .name("credentials".into())
        .spawn(move || tell.send(Credentials::read(io::stdin().lock(), PLACE)))
        .map_err(failed)?;
    match timeout(TRY_FOR, line).await {
        Ok(Ok(read)) => read,
        Ok(Err(_)) | Err(_) => Err(failed(io::Error::from(io::ErrorKind::TimedOut))),
    }
}

fn rank_in(variable: impl Fn(&str) -> Option<String>) -> Result<u32, DialError> {
    let Some((name, text)) = RANKS.iter().find_map(|name| Some((name, variable(name)?))) else {
        return Err(DialError::Rank { found: String::new() });
    };
    text.parse().map_err(|_| DialError::Rank { found: format!(" ({name} is `{text}`)") })
}

/// The name of this host: Slurm's for the node, else the kernel's.
fn host() -> String {
    let node = std::env::var("SLURMD_NODENAME").ok().filter(|name| !name.is_empty());
    node.unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned())
}

/// Connects to a controller and joins its launch. Tries again while nothing answers, or with `wait` while no launch has a place
/// for this rank; see [`AgentOptions::wait`].
///
/// # Errors
/// When the controller cannot be reached or refuses, or another program answers.
pub async fn dial(
    address: &str,
    credentials: &Credentials,
    rank: u32,
    host: &str,
    wait: Option<Duration>,
) -> Result<Box<dyn ByteStream>, DialError> {
    let to = match place(address, credentials, rank, host, wait).await? {
        Place::Here(stream) => return Ok(stream),
        Place::Elsewhere(to) => to,
    };
    let credentials = Credentials::read(to.credentials.as_bytes(), "the controller's answer")?;
    let refused = |reason: String| DialError::Refused { address: address.to_owned(), reason };
    match place(&to.address, &credentials, rank, &to.name, None).await {
        Ok(Place::Here(stream)) => Ok(stream),
        Ok(Place::Elsewhere(_)) => Err(refused("its aggregator leads to another one".to_owned())),
        Err(error) => Err(refused(format!("it names its aggregator, but {error}"))),
    }
}

/// Where an agent has its place.
enum Place {
    Here(Box<dyn ByteStream>),
    /// Behind an aggregator.
    Elsewhere(greeting::Elsewhere),
}

async fn place(
    address: &str,
    credentials: &Credentials,
    rank: u32,
    host: &str,
    wait: Option<Duration>,
) -> Result<Place, DialError> {
    let identity = build::identity()?;
    let connector = TlsConnector::from(Arc::new(key::client(credentials.fingerprint)?));
    let within = wait.unwrap_or(TRY_FOR);
    let deadline = Instant::now() + within;
    let mut pause = PAUSES.0;
    let mut last = io::Error::from(io::ErrorKind::TimedOut);
    loop {
        let joined = join(address, &connector, credentials, rank, host, identity);
        match timeout_at(deadline, joined).await {
            Ok(Ok(place)) => return Ok(place),
            Ok(Err(Attempt::NoPlace(error))) if wait.is_some() => last = io::Error::other(error),
            Ok(Err(Attempt::NoPlace(error) | Attempt::Final(error))) => return Err(error),
            Ok(Err(Attempt::Again(error))) => last = error,
            Err(_) => break,
        }
        if Instant::now() + pause >= deadline {
            break;
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSES.1);
    }
    Err(DialError::Reach { address: address.to_owned(), within, source: last })
}

/// How an attempt failed.
enum Attempt {
    /// Another may do better.
    Again(io::Error),
    /// This launch has no place for the rank; the next one may have.
    NoPlace(DialError),
    Final(DialError),
}

async fn join(
    address: &str,
    connector: &TlsConnector,
    credentials: &Credentials,
    rank: u32,
    host: &str,
    identity: &str,
) -> Result<Place, Attempt> {
    let stream = connect(address).await.map_err(Attempt::Again)?;
    stream.set_nodelay(true).map_err(Attempt::Again)?;
    let name = key::name()
        .map_err(|error| Attempt::Final(DialError::Tls(rustls::Error::General(error.to_string()))))?;
    let mut stream = connector.connect(name, stream).await.map_err(|error| {
        let alert = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match alert {
            // Another protocol, or another key.
            Some(_) => Attempt::Final(DialError::Key { address: address.to_owned() }),
            None => Attempt::Again(error),
        }
    })?;
    let error = |reason: String| DialError::Refused { address: address.to_owned(), reason };
    let refused = |reason: String| Attempt::Final(error(reason));
    let no_place = |reason: String| Attempt::NoPlace(error(reason));
    // Without a verdict: a launch that has its agents closes the connections of others, and the next one may have a place.
    let broken = |error: io::Error| no_place(format!("it ended the connection ({error})"));
    greeting::send(&mut stream, &credentials.token, rank, host, identity).await.map_err(Attempt::Again)?;
    let (verdict, theirs) = greeting::decision(&mut stream).await.map_err(broken)?;
    match verdict {
        Verdict::Accepted => Ok(Place::Here(Box::new(stream))),
        Verdict::Elsewhere => {
            greeting::elsewhere(&mut stream).await.map(Place::Elsewhere).map_err(Attempt::Again)
        }
        Verdict::Later => Err(Attempt::Again(io::Error::other("the agent's aggregator has not come"))),
        Verdict::Token => Err(refused("the token is not that of its launch".to_owned())),
        Verdict::Build => Err(refused(format!(
            "its build ({theirs}) differs from this one ({identity}); all hosts need the same file"
        ))),
        Verdict::Taken => Err(no_place(format!("an agent of rank {rank} is already connected"))),
        Verdict::Rank => Err(no_place(format!("it has no rank {rank}"))),
    }
}

/// The first address that answers.
async fn connect(address: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let candidates: Vec<SocketAddr> = lookup_host(address).await?.collect();
    for candidate in candidates {
        match TcpStream::connect(candidate).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::super::controller_key::ControllerKey;
    use super::*;

    #[tokio::test]
    async fn a_launch_that_ends_meanwhile_is_no_refusal_for_an_agent_that_waits() {
        let key = ControllerKey::generate().unwrap();
        let (tls, _) = key::server(&key.pkcs8).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let credentials = key.credentials().unwrap();
        let serve = async |verdict: Option<Verdict>| {
            let (stream, _) = socket.accept().await.unwrap();
            let mut stream = acceptor.accept(stream).await.unwrap();
            greeting::receive(&mut stream).await.unwrap();
            if let Some(verdict) = verdict {
                greeting::answer(&mut stream, verdict, "").await.unwrap();
            }
        };
        let twice = async {
            serve(None).await;
            serve(Some(Verdict::Accepted)).await;
        };
        let wait = Some(Duration::from_secs(60));
        let (joined, ()) = tokio::join!(dial(&address, &credentials, 1, "host", wait), twice);
        assert!(joined.is_ok());
        // The controller that started an agent ends: there is no other one.
        let (joined, ()) = tokio::join!(dial(&address, &credentials, 1, "host", None), serve(None));
        assert!(matches!(joined, Err(DialError::Refused { .. })));
    }

    #[test]
    fn ranks_come_from_whatever_started_the_agent() {
        let set = |name: &'static str, value: &'static str| {
            move |asked: &str| (asked == name).then(|| value.to_owned())
        };
        for name in RANKS {
            assert_eq!(rank_in(set(name, "12")).unwrap(), 12);
        }
        let absent = rank_in(set("RANK", "1")).unwrap_err().to_string();
        assert!(absent.ends_with("PMI_RANK, JOB_COMPLETION_INDEX"), "{absent}");
        let wrong = rank_in(set("PMI_RANK", "-1")).unwrap_err().to_string();
        assert!(wrong.ends_with(" (PMI_RANK is `-1`)"), "{wrong}");
    }
}
