//! TCP between agents and controller for launchers that have no byte stream of their own, as Slurm.
//!
//! The controller listens and agents dial. Each launch has a key and a token of its own ([`Credentials`]), which
//! reach the agents over standard input or a file that only their user can read; never by command line, environment or log.
//!
//! * TLS 1.3 keeps the stream private. The agent takes the one public key whose SHA-256 it was given, and nothing else is
//!   trusted, so it makes no difference which address was dialled. The key is shown as it is (RFC 7250), without a
//!   certificate around it.
//! * Inside TLS the agent shows the token (256 random bits, compared in constant time) with its rank; the controller takes each
//!   rank once, and only agents of the very same program as its own (see [`build::identity`]).
//! * A peer that shows anything else, or nothing in time, is refused before a byte of it reaches the control protocol.
//!   Everything is bounded: connections in the handshake, its time, its bytes.
//!
//! More agents than one process leads are sent on, inside TLS, to the aggregator of their group, which has a key and a token
//! of its own. The listener is open only while agents are awaited. Agents that something else starts get a key and token that were made
//! before ([`ControllerKey`]), and keep them for all launches.

pub mod build;
mod controller_key;
mod credentials;
mod dial;
mod greeting;
mod groups;
mod key;
mod listener;

pub use controller_key::{ControllerKey, KeyError};
pub use credentials::{Credentials, CredentialsError};
pub use dial::{AgentOptions, DialError, RANKS, TRY_FOR, agent_stream, dial};
pub(crate) use groups::Aggregators;
pub(crate) use listener::Handshakes;
pub use listener::{Admitted, HANDSHAKE, Joined, ListenError, Listener, MOST_WAITING, Missing, Refusal};
