//! Clients of NFSv4.0, which are dialled.

use super::*;

/// A callback service on a socket.
struct Service {
    listener: TcpListener,
}

impl Service {
    fn new() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").unwrap() }
    }

    fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    fn accept(&self) -> TcpStream {
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }
}

fn receive(stream: &mut TcpStream) -> Call {
    let mut header = [0; 4];
    stream.read_exact(&mut header).unwrap();
    let mut message = vec![0; (u32::from_be_bytes(header) & !LAST_FRAGMENT) as usize];
    stream.read_exact(&mut message).unwrap();
    parse(&message)
}

/// Sends a message in so many fragments.
fn respond(stream: &mut TcpStream, message: &[u8], fragments: usize) {
    let pieces: Vec<&[u8]> = message.chunks(message.len().div_ceil(fragments)).collect();
    for (at, piece) in pieces.iter().enumerate() {
        let last = if at + 1 == pieces.len() { LAST_FRAGMENT } else { 0 };
        stream.write_all(&(last | piece.len() as u32).to_be_bytes()).unwrap();
        stream.write_all(piece).unwrap();
    }
}

#[test]
fn a_client_of_40_is_dialled_probed_and_recalled() {
    let server = Server::with_lease(Duration::from_secs(60));
    let service = Service::new();
    let client = server.client40(Some(service.address()), 42);
    let mut stream = service.accept();
    let probe = receive(&mut stream);
    assert_eq!((probe.procedure, probe.program), (0, PROGRAM));
    assert!(!server.up(client), "not before the answer");
    respond(&mut stream, &reply(&probe, Nfsstat4::OK, Nfsstat4::OK), 3);
    eventually("up", || server.up(client));
    server.recall(client, 1);
    let recall = receive(&mut stream);
    assert_eq!((recall.minor, recall.ident), (0, 42));
    assert_eq!(recall.operation, Some(Operation::Recall(stateid(1), true)));
    respond(&mut stream, &reply(&recall, Nfsstat4::OK, Nfsstat4::DELAY), 1);
    let again = receive(&mut stream);
    assert_eq!(again.operation, recall.operation);
    // The connection breaks: the path is down until the next one answers.
    drop(stream);
    eventually("down", || !server.up(client));
    let mut stream = service.accept();
    let again = receive(&mut stream);
    assert_eq!(again.operation, recall.operation);
    respond(&mut stream, &reply(&again, Nfsstat4::OK, Nfsstat4::OK), 1);
    eventually("up again", || server.up(client));
}

#[test]
fn a_client_of_40_that_cannot_be_reached_is_down() {
    let server = Server::new();
    // Nobody listens; nobody answers; no address.
    let closed = {
        let service = Service::new();
        service.address()
    };
    let silent = Service::new();
    for address in [Some(closed), Some(silent.address()), None] {
        let client = server.client40(address, 1);
        server.state.all().clients().callback_probed(client, true);
        server.callbacks.submit(client, Callback::Probe);
        eventually("down", || !server.up(client));
        server.change(|all, effects| all.drop_client(client, effects));
    }
}

#[test]
fn garbage_from_a_client_of_40_ends_its_connection_only() {
    let server = Server::with_lease(Duration::from_secs(60));
    let service = Service::new();
    let client = server.client40(Some(service.address()), 1);
    let mut stream = service.accept();
    receive(&mut stream);
    stream.write_all(&[0x7f; 100]).unwrap();
    eventually("closed", || matches!(stream.read(&mut [0; 100]), Ok(0) | Err(_)));
    // The probe is repeated once.
    let mut stream = service.accept();
    let probe = receive(&mut stream);
    respond(&mut stream, &[0; 8], 1);
    respond(&mut stream, &reply(&probe, Nfsstat4::OK, Nfsstat4::OK), 1);
    eventually("up", || server.up(client));
}
