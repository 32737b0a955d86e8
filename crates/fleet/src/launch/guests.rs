//! Agents that others have started, in machines of a lab for example: what is known of each is a stream on which it serves.

use std::net::TcpStream;
use std::sync::Arc;

use super::{LastLines, LaunchError, Started};

/// An agent that was started, at the other end of a connection.
#[derive(Debug, Clone)]
pub struct Opened {
    /// Its name in the study.
    pub name: String,
    /// The connection. It is the fleet's from now on.
    pub stream: Arc<TcpStream>,
}

impl Opened {
    /// An agent at the other end of a connection.
    pub fn new(name: impl Into<String>, stream: TcpStream) -> Self {
        Self { name: name.into(), stream: Arc::new(stream) }
    }
}

/// Takes agents over. Their process is not the controller's: it ends with the connection.
///
/// # Errors
/// When a connection cannot be used.
pub fn take(opened: &[Opened]) -> Result<Vec<Started>, LaunchError> {
    opened.iter().map(one).collect()
}

fn one(opened: &Opened) -> Result<Started, LaunchError> {
    let failed = |error: std::io::Error| LaunchError::new(&opened.name, format!("its connection: {error}"));
    let stream = opened.stream.try_clone().map_err(failed)?;
    stream.set_nonblocking(true).map_err(failed)?;
    // Requests are small, and clocks are compared by their round trips.
    stream.set_nodelay(true).map_err(failed)?;
    let stream = tokio::net::TcpStream::from_std(stream).map_err(failed)?;
    Ok(Started {
        name: opened.name.clone(),
        stream: Box::new(stream),
        process: None,
        errors: LastLines::default(),
        keep: None,
        leads: None,
    })
}
