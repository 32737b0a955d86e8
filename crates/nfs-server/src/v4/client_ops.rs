//! Operations of clients of 4.0: SETCLIENTID, SETCLIENTID_CONFIRM, RENEW (RFC 7530 §16.28, §16.33, §16.34).

use std::net::SocketAddr;

use benchmaster_nfs_proto::portmap::UniversalAddress;
use benchmaster_nfs_proto::v4::{
    Netaddr4, Nfsstat4, RenewArgs, SetclientidArgs, SetclientidConfirmArgs, SetclientidOk,
};

use benchmaster_rpc_gss::Flavor;

use super::{Compound, Failure, OpResult};
use crate::peer::{Peer, Protection};
use crate::state::ClientId;
use crate::state::client::{CallbackTarget, ClidInUse, Principal, SetClientId};

/// SETCLIENTID. CLID_INUSE has a body: who uses the name.
pub(crate) fn setclientid(c: &mut Compound<'_>, args: SetclientidArgs<'_>) -> OpResult {
    let location = args.callback.cb_location;
    // No network id or address is longer; XDR sets no limit.
    let kept = |text: &[u8]| text.get(..128).unwrap_or(text).to_vec();
    let callback = CallbackTarget {
        program: args.callback.cb_program,
        ident: args.callback_ident,
        netid: kept(location.r_netid.0),
        universal: kept(location.r_addr.0),
        address: callback_address(&location, c.peer).filter(|_| c.flavor == Flavor::Sys),
    };
    let (verifier, owner, host) =
        (args.client.verifier, args.client.id.0, c.peer.address.ip().to_canonical());
    let request = SetClientId { verifier, owner, host, callback };
    let outcome = {
        let mut all = c.server.state.all();
        let (clients, files) = all.split();
        clients.setclientid(files, request, Principal::from(c.who), c.now.instant, c.effects)
    };
    match outcome {
        Ok((client, setclientid_confirm)) => {
            c.client = Some(client);
            c.answer(&SetclientidOk { clientid: client.0, setclientid_confirm })
        }
        Err(ClidInUse::By(netid, universal)) => {
            let using = Netaddr4 { r_netid: netid.as_slice().into(), r_addr: universal.as_slice().into() };
            c.reply.encoder.put(&using);
            Err(Failure { status: Nfsstat4::CLID_INUSE, keep_body: true })
        }
        Err(ClidInUse::Full) => Err(Nfsstat4::RESOURCE.into()),
    }
}

pub(crate) fn setclientid_confirm(c: &mut Compound<'_>, args: SetclientidConfirmArgs) -> OpResult {
    let (id, confirm) = (ClientId(args.clientid), args.setclientid_confirm);
    {
        let mut all = c.server.state.all();
        let (clients, files) = all.split();
        clients.setclientid_confirm(files, id, confirm, Principal::from(c.who), c.now.instant, c.effects)?;
    }
    c.client = Some(id);
    Ok(())
}

pub(crate) fn renew(c: &mut Compound<'_>, args: RenewArgs) -> OpResult {
    let id = ClientId(args.clientid);
    let mut all = c.server.state.all();
    let (clients, files) = all.split();
    clients.renew_operation(files, id, Principal::from(c.who), c.now.instant)?;
    c.client = Some(id);
    Ok(())
}

/// Where the server will connect to: only to the address that the client comes from, so that it cannot be made to
/// connect to others. Port 0 is no address: clients that take no callbacks give it. A client that came over TLS is not
/// called: the connection would be another one, in the clear, and RFC 9289 §5.1.1 knows only calls within the session. Nor is
/// one that came with Kerberos: the server has no ticket for it (RFC 7530 §3.4.1).
fn callback_address(location: &Netaddr4<'_>, peer: &Peer) -> Option<SocketAddr> {
    let UniversalAddress(address) = UniversalAddress::from_bytes(location.r_addr.0).ok()?;
    let family = match location.r_netid.0 {
        b"tcp" => address.is_ipv4(),
        b"tcp6" => address.is_ipv6(),
        _ => false,
    };
    let own = address.ip().to_canonical() == peer.address.ip().to_canonical();
    let plain = peer.protection == Protection::Plain;
    (family && own && plain && address.port() != 0).then_some(address)
}

#[cfg(test)]
mod tests {
    use benchmaster_nfs_proto::v4::{Argop, CbClient4, NfsClientId4, Resop, SetclientidRes};

    use super::*;
    use crate::config::ServerConfig;
    use crate::state::{Callback, Effect};
    use crate::v4::testing::{Client, open_something, server};

    fn set(verifier: u8) -> Argop<'static> {
        let location = Netaddr4 { r_netid: "tcp".into(), r_addr: "127.0.0.1.3.4".into() };
        Argop::Setclientid(SetclientidArgs {
            client: NfsClientId4 { verifier: [verifier; 8], id: b"owner"[..].into() },
            callback: CbClient4 { cb_program: 5, cb_location: location },
            callback_ident: 6,
        })
    }

    #[test]
    fn a_client_sets_confirms_and_renews_its_id() {
        let server = server(ServerConfig::default());
        let mut client = Client::new(&server, 0, 1);
        let results = client.run(&[set(1)]);
        let Resop::Setclientid(SetclientidRes::Ok(SetclientidOk { clientid, setclientid_confirm })) =
            results.last()
        else {
            panic!("{results:?}")
        };
        let renew = Argop::Renew(RenewArgs { clientid });
        assert_eq!(client.run(&[renew]).status(), Nfsstat4::STALE_CLIENTID);
        let confirm = Argop::SetclientidConfirm(SetclientidConfirmArgs { clientid, setclientid_confirm });
        assert_eq!(client.run(&[confirm]).status(), Nfsstat4::OK);
        assert_eq!(client.effects, [Effect::Call(ClientId(clientid), Callback::Probe)]);
        assert_eq!(client.run(&[renew]).status(), Nfsstat4::OK);
        assert_eq!(client.done.client, Some(ClientId(clientid)));
        let tables = server.state.clients();
        let target = tables.clients().callback_target(ClientId(clientid)).unwrap();
        assert_eq!((target.program, target.ident), (5, 6));
        assert_eq!(target.address, Some("127.0.0.1:772".parse().unwrap()));
        drop(tables);

        let mut other = Client::new(&server, 0, 2);
        other.who.uid = 5;
        // Without anything open the name is free for another principal, until then the record stays.
        assert_eq!(other.run(&[set(1)]).status(), Nfsstat4::OK);
        assert_eq!(client.run(&[renew]).status(), Nfsstat4::OK);
        open_something(&server, ClientId(clientid));
        let results = other.run(&[set(1)]);
        let Resop::Setclientid(SetclientidRes::ClidInuse(using)) = results.last() else {
            panic!("{results:?}")
        };
        assert_eq!((using.r_netid.0, using.r_addr.0), (&b"tcp"[..], &b"127.0.0.1.3.4"[..]));
        assert_eq!(other.run(&[confirm]).status(), Nfsstat4::CLID_INUSE);
        server.state.all().files().purge_client(ClientId(clientid), &mut Vec::new());
        assert_eq!(other.run(&[renew]).status(), Nfsstat4::ACCESS);
    }

    #[test]
    fn callbacks_go_to_the_client_itself_over_tcp() {
        let cases: [(&str, &str, &str, Option<&str>); 9] = [
            ("tcp", "127.0.0.1.8.1", "127.0.0.1:700", Some("127.0.0.1:2049")),
            ("tcp", "127.0.0.2.8.1", "127.0.0.1:700", None),
            ("tcp", "10.0.0.7.8.1", "10.0.0.7:700", Some("10.0.0.7:2049")),
            ("tcp", "10.0.0.7.8.1", "[::ffff:10.0.0.7]:700", Some("10.0.0.7:2049")),
            ("tcp6", "fd00::7.8.1", "[fd00::7]:700", Some("[fd00::7]:2049")),
            ("tcp", "10.0.0.8.8.1", "10.0.0.7:700", None),
            ("tcp", "127.0.0.1.8.1", "10.0.0.7:700", None),
            ("tcp", "10.0.0.7.0.0", "10.0.0.7:700", None),
            ("udp", "10.0.0.7.8.1", "10.0.0.7:700", None),
        ];
        let server = server(ServerConfig::default());
        let client = Client::new(&server, 0, 1);
        for (netid, universal, peer, expected) in cases {
            let location = Netaddr4 { r_netid: netid.into(), r_addr: universal.into() };
            let address: SocketAddr = peer.parse().unwrap();
            for protection in [Protection::Tls, Protection::MutualTls] {
                let secured = Peer { address, protection, ..client.peer.clone() };
                assert_eq!(callback_address(&location, &secured), None, "not in the clear");
            }
            let address = callback_address(&location, &Peer { address, ..client.peer.clone() });
            assert_eq!(
                address,
                expected.map(|text| text.parse().unwrap()),
                "{netid} {universal} from {peer}"
            );
        }
    }
}
