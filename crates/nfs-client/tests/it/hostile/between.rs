//! Stands between a client and a server, and changes what the server says.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use benchmaster_nfs_proto::record::LAST_FRAGMENT;

/// From a reply without record mark to what is sent instead; `None` closes the connection.
pub(super) type Change = Box<dyn FnMut(Vec<u8>) -> Option<Vec<u8>> + Send>;

pub(super) struct Between {
    pub(super) address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Between {
    /// `change` is made for every connection, which are counted from 1.
    pub(super) fn start(server: SocketAddr, change: impl Fn(u64) -> Change + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        std::thread::spawn(move || {
            for (number, stream) in (1..).zip(listener.incoming()) {
                let Ok(mut client) = stream else { return };
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(mut server) = TcpStream::connect(server) else { return };
                for stream in [&client, &server] {
                    stream.set_nodelay(true).unwrap();
                }
                let (mut to_server, from_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut &from_client, &mut to_server);
                    let _ = to_server.shutdown(Shutdown::Both);
                });
                let mut change = change(number);
                std::thread::spawn(move || {
                    let _ = replies(&mut server, &mut client, &mut change);
                    let _ = client.shutdown(Shutdown::Both);
                    let _ = server.shutdown(Shutdown::Both);
                });
            }
        });
        Self { address, stop }
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn replies(server: &mut TcpStream, client: &mut TcpStream, change: &mut Change) -> std::io::Result<()> {
    loop {
        let mut mark = [0; 4];
        server.read_exact(&mut mark)?;
        let mut message = vec![0; (u32::from_be_bytes(mark) & !LAST_FRAGMENT) as usize];
        server.read_exact(&mut message)?;
        match change(message) {
            Some(bytes) => client.write_all(&bytes)?,
            None => return Ok(()),
        }
    }
}
