//! The embedded server, and a reactor to call it from.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::{Duration, Instant};

use benchmaster_nfs_client::counters::Counters;
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_server::{Server, ServerConfig};

/// Longer than any test takes: what hangs fails.
const PATIENCE: Duration = Duration::from_secs(120);

/// A server at a free port with these rules of injection.
pub(crate) fn server(rules: &[&str]) -> Server {
    server_with(rules, |_| {})
}

/// The same, configured further.
pub(crate) fn server_with(rules: &[&str], change: impl FnOnce(&mut ServerConfig)) -> Server {
    let mut config = ServerConfig {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        threads: 2,
        rules: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
        ..ServerConfig::default()
    };
    change(&mut config);
    Server::start(config).unwrap()
}

/// Runs a future with a reactor and counters.
pub(crate) fn run<F: Future>(test: impl FnOnce(Reactor, Rc<Counters>) -> F) -> F::Output {
    let reactor = Reactor::new().unwrap();
    let counters = Rc::new(Counters::new());
    let test = test(reactor.clone(), counters.clone());
    let deadline = Instant::now() + PATIENCE;
    let result = reactor.block_on(reactor.until(deadline, test)).unwrap();
    result.expect("the test hangs")
}
