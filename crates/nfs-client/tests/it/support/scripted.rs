//! A server whose every reply is written by a test, byte for byte.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use benchmaster_nfs_proto::record::LAST_FRAGMENT;

/// What the server does with a message.
pub(crate) enum Act {
    /// Sends bytes as they are.
    Send(Vec<u8>),
    /// Closes the connection.
    Close,
}

/// A message as the server receives it.
pub(crate) struct Seen<'a> {
    /// Number of the connection.
    pub(crate) connection: usize,
    /// Number of the message on it.
    pub(crate) number: usize,
    pub(crate) xid: u32,
    /// The whole message, without record mark.
    pub(crate) message: &'a [u8],
    /// Arguments of a call with AUTH_NONE.
    pub(crate) args: &'a [u8],
}

/// Serves every connection on a thread of its own, until dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn start(act: impl Fn(&Seen<'_>) -> Vec<Act> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, act) = (Arc::new(AtomicBool::new(false)), Arc::new(act));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let (act, stream) = (act.clone(), stream.unwrap());
                std::thread::spawn(move || serve(connection, stream, &*act));
            }
        });
        Self { address, stop, thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn serve(connection: usize, mut stream: TcpStream, act: &dyn Fn(&Seen<'_>) -> Vec<Act>) {
    for number in 0.. {
        let mut mark = [0; 4];
        if stream.read_exact(&mut mark).is_err() {
            return;
        }
        let mut message = vec![0; (u32::from_be_bytes(mark) & !LAST_FRAGMENT) as usize];
        if stream.read_exact(&mut message).is_err() {
            return;
        }
        let xid = u32::from_be_bytes(message[..4].try_into().unwrap());
        // Before the arguments: xid, CALL, 2, program, version, procedure, AUTH_NONE twice.
        let args = message.get(40..).unwrap_or_default();
        for action in act(&Seen { connection, number, xid, message: &message, args }) {
            match action {
                Act::Send(bytes) if stream.write_all(&bytes).is_err() => return,
                Act::Send(_) => {}
                Act::Close => return,
            }
        }
    }
}

/// An accepted and successful reply with results, in one record.
pub(crate) fn reply(xid: u32, results: &[u8]) -> Vec<u8> {
    record(&body(xid, results))
}

/// The same without record mark.
pub(crate) fn body(xid: u32, results: &[u8]) -> Vec<u8> {
    let mut bytes = words(&[xid, 1, 0, 0, 0, 0]);
    bytes.extend_from_slice(results);
    bytes
}

/// A record of one fragment.
pub(crate) fn record(bytes: &[u8]) -> Vec<u8> {
    let mut record = words(&[LAST_FRAGMENT | bytes.len() as u32]);
    record.extend_from_slice(bytes);
    record
}

/// Words as XDR has them.
pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}
