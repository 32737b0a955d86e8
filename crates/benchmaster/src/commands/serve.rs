//! `serve`: the in-memory NFS server.

use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context;
use benchmaster_nfs_server::disk::ExportMode;
use benchmaster_nfs_server::users::Users;
use benchmaster_nfs_server::{Durability, Server, ServerConfig, ServerKerberos};
use benchmaster_rpc_gss::{Acceptor, Flavor, Flavors};
use signal_hook::consts::SIGUSR1;
use signal_hook::iterator::Signals;

use crate::cli::{KeptThrough, ServeArgs};
use crate::failure::{Failure, Result, Status};
use crate::output;
use crate::signals;

/// Serves until SIGINT or SIGTERM.
pub(crate) fn serve(args: &ServeArgs) -> Result<Status> {
    let config = config(args)?;
    log::set_max_level(args.log);
    // Only the first logger of a process is taken; there is no other.
    let _ = log::set_logger(&StandardError);
    // Before the first thread: signals are then handled here alone.
    let mut signals = Signals::new(signals::ending().into_iter().chain([SIGUSR1]))?;
    let exports: Vec<_> = config.exports.iter().map(|export| export.path.clone()).collect();
    let server = Arc::new(Server::start(config).map_err(Failure::wrong_input)?);
    let socket = match &args.stats_socket {
        Some(path) => Some(StatsSocket::open(path, &server)?),
        None => None,
    };
    let addresses: Vec<_> = server.addresses().iter().map(SocketAddr::to_string).collect();
    output::note(&format!("serving {} on {}", exports.join(", "), addresses.join(", ")));
    if let Some(portmap) = server.portmap_address() {
        output::note(&format!("portmapper on {portmap}"));
    }
    for signal in signals.forever() {
        if signal != SIGUSR1 {
            break;
        }
        statistics(args, &server)?;
    }
    drop(socket);
    let stopped = server.stop();
    // Statistics even when the state could not be written.
    statistics(args, &server)?;
    stopped?;
    Ok(Status::Fine)
}

fn config(args: &ServeArgs) -> Result<ServerConfig> {
    let flavors = args.export.iter().map(|export| export.security.unwrap_or(args.sec));
    let flavors = flavors.fold(Flavors::EMPTY, Flavors::or);
    let Some((&listen, also_listen)) = args.listen.split_first() else {
        return Err(Failure::wrong("give `--listen` an address, such as 127.0.0.1:2049"));
    };
    let portmap = args.portmap.map(|given| given.unwrap_or(SocketAddr::new(listen.ip(), 111)));
    let remote = args.listen.iter().copied().chain(portmap).find(|a| !a.ip().is_loopback());
    if let Some(address) = remote {
        if !args.allow_remote {
            return Err(Failure::wrong(format!(
                "{address} can be reached from other hosts; add --allow-remote if that is intended"
            )));
        }
        if flavors.contains(Flavor::Sys) {
            output::note(&format!(
                "warning: every host that reaches {address} can read and change all files: AUTH_SYS user ids are trusted"
            ));
        }
    }
    let mut paths: Vec<_> = args.export.iter().map(|export| &export.path).collect();
    paths.sort();
    if let Some(twice) = paths.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Failure::wrong(format!("export `{}` is given twice", twice[0])));
    }
    let kerberos = flavors.need_kerberos().then(|| kerberos(args)).transpose()?;
    let defaults = ServerConfig::default();
    Ok(ServerConfig {
        listen,
        also_listen: also_listen.to_vec(),
        portmap,
        exports: args.export.clone(),
        threads: args.threads.map_or(defaults.threads, usize::from),
        lease: args.lease.0,
        slots: args.slots,
        requests: args.requests,
        max_io: args.max_io.bytes() as u32,
        delegations: !args.no_delegations,
        write_delegations: args.write_delegations,
        null_data: args.null_data,
        change_granularity: args.change_granularity.map(|span| span.0),
        volatile: false,
        disk: args.disk,
        export: if args.asynchronous { ExportMode::Async } else { ExportMode::Sync },
        rules: args.inject.clone(),
        seed: args.seed,
        state: args.state.clone(),
        durability: match args.durability {
            KeptThrough::None => Durability::None,
            KeptThrough::Process => Durability::Process,
            KeptThrough::Power => Durability::Power,
        },
        root_squash: args.root_squash,
        nagle: args.nagle,
        udp: args.udp || remote.is_none(),
        tls: args.tls.clone(),
        require_tls: args.require_tls,
        security: args.sec,
        kerberos,
        memory: defaults.memory,
    })
}

/// The server's keys, and the map of users.
fn kerberos(args: &ServeArgs) -> Result<ServerKerberos> {
    let acceptor = Acceptor::new(args.keytab.as_deref()).map_err(Failure::wrong_input)?;
    let users = args.map.as_deref().map(Users::read).transpose().map_err(Failure::wrong_input)?;
    Ok(ServerKerberos { mechanism: Arc::new(acceptor), users: users.unwrap_or_default() })
}

/// Writes what the server logs to standard error: time, level, module, message.
struct StandardError;

impl log::Log for StandardError {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let time = jiff::Timestamp::now();
        output::note(&format!("{time:.6} {:>5} {}: {}", record.level(), record.target(), record.args()));
    }

    fn flush(&self) {}
}

/// Prints the statistics, or writes them to the file chosen for them.
fn statistics(args: &ServeArgs, server: &Server) -> Result<()> {
    let text = serde_json::to_string(&server.report())?;
    match &args.stats {
        None => output::print(&text),
        Some(path) => output::replace(path, &format!("{text}\n"))
            .with_context(|| format!("cannot write statistics to {}", path.display()))
            .map_err(Failure::failed),
    }
}

/// The Unix socket that gives out statistics; dropping it removes it.
struct StatsSocket {
    path: PathBuf,
    closing: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl StatsSocket {
    fn open(path: &Path, server: &Arc<Server>) -> Result<Self> {
        let listener = bind(path)
            .with_context(|| format!("cannot listen on {}", path.display()))
            .map_err(Failure::wrong_input)?;
        let closing = Arc::new(AtomicBool::new(false));
        let (server, stop) = (Arc::clone(server), Arc::clone(&closing));
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::Acquire) {
                    return;
                }
                let (Ok(mut stream), Ok(text)) = (stream, serde_json::to_string(&server.report())) else {
                    continue;
                };
                // A reader that does not read must not hold up the next one for long.
                let _ = stream.set_write_timeout(Some(std::time::Duration::from_secs(1)));
                let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.write_all(b"\n"));
            }
        });
        Ok(Self { path: path.to_owned(), closing, thread: Some(thread) })
    }
}

/// Binds the socket; one left behind by a process that was killed is replaced, one in use is not.
fn bind(path: &Path) -> std::io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            let abandoned = std::os::unix::net::UnixStream::connect(path)
                .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
            if !abandoned {
                return Err(error);
            }
            std::fs::remove_file(path)?;
            UnixListener::bind(path)
        }
        bound => bound,
    }
}

impl Drop for StatsSocket {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        // Wakes the thread out of accept.
        let _ = std::os::unix::net::UnixStream::connect(&self.path);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let _ = std::fs::remove_file(&self.path);
    }
}
