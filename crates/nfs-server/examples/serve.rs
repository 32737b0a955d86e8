//! The server with its defaults, for measuring it from outside: `serve ADDRESS:PORT`, until standard input ends.

#![allow(clippy::print_stderr, reason = "an example")]

use std::io::Read;

use benchmaster_nfs_server::{Server, ServerConfig};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:2049".into());
    let server = Server::start(ServerConfig { listen: address.parse()?, ..ServerConfig::default() })?;
    eprintln!("serving /export on {}", server.address());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(server.stop()?)
}
