//! The control server of a guest.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use super::protocol::{answer, read_request};
use super::{GuestFacts, Request, ganesha, knfsd, programs, terminal};

/// How long a request may take to come.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves requests on an address, each connection on a thread of its own.
///
/// # Errors
/// When the address cannot be listened on; it never returns otherwise.
pub fn serve(address: SocketAddr) -> io::Result<()> {
    let listener = TcpListener::bind(address)?;
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                // Without a thread the connection is closed, and the other side says so.
                let _ = thread::Builder::new().name("request".into()).spawn(move || connection(&stream));
            }
            // The other side has gone already, or there are too many descriptors for now.
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Serves the one request of a connection.
fn connection(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let Ok(request) = read_request(stream, PATIENCE) else { return };
    let _ = stream.set_read_timeout(None);
    let request = match benchmaster_frames::decode(&request) {
        Ok(request) => request,
        Err(error) => {
            let reason = format!("the guest's build does not know this request: {error}");
            return answer(stream, Err::<(), _>(reason));
        }
    };
    match request {
        Request::Stream { argv } => programs::stream(stream, &argv),
        Request::Run(command) => answer(stream, programs::run(&command)),
        Request::Shell { argv, rows, columns } => terminal::serve(stream, &argv, rows, columns),
        Request::Facts => answer(stream, Ok(GuestFacts::collect())),
        Request::StartServer(config) => answer(stream, knfsd::start(&config).map_err(text)),
        Request::RecoverServer(config) => answer(stream, knfsd::recover(&config).map_err(text)),
        Request::StopServer => answer(stream, knfsd::stop().map_err(text)),
        Request::ServerStatistics => answer(stream, knfsd::statistics().map_err(text)),
        Request::StartGanesha => answer(stream, ganesha::start().map_err(text)),
        Request::PowerOff => power_off(stream),
    }
}

fn text(error: impl std::error::Error) -> String {
    error.to_string()
}

fn power_off(stream: &TcpStream) {
    if std::process::id() == 1 || rustix::process::getppid() != rustix::process::Pid::from_raw(1) {
        return answer(stream, Err::<(), _>("only a machine can be switched off".to_owned()));
    }
    answer(stream, Ok(()));
    rustix::fs::sync();
    // Process 1 ends with the machine.
    if let Err(error) = rustix::system::reboot(rustix::system::RebootCommand::PowerOff) {
        answer(stream, Err::<(), _>(error.to_string()));
    }
}
