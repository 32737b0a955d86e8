//! Which security flavours an export allows: SECINFO, SECINFO_NO_NAME, and WRONGSEC (RFC 7530 §3.3.3, RFC 8881 §2.6.3.1).

use benchmaster_nfs_proto::rpc::AuthFlavor;
use benchmaster_nfs_proto::v4::{Nfsstat4, Opnum, RpcsecGssInfo, Secinfo4, SecinfoArgs, SecinfoStyle4};
use benchmaster_nfs_proto::xdr::Opaque;
use benchmaster_rpc_gss::flavor::KRB5_OID;

use super::file_ops::parent;
use super::names::check_name;
use super::{Compound, OpResult};
use crate::fs::Kind;
use crate::handle::FileId;

/// Before an operation: whether it may use the current file handle, and the saved one where it uses it too. Those that only lead
/// to other files are looked at [afterwards](after).
#[cold]
pub(crate) fn before(c: &Compound<'_>, op: Opnum) -> OpResult {
    if leads_on(op) || is_secinfo(op) {
        return Ok(());
    }
    let allowed =
        |file: Option<FileId>| file.is_none_or(|file| c.server.exports.allows(file.export, c.flavor));
    let both = matches!(op, Opnum::RENAME | Opnum::LINK | Opnum::COPY | Opnum::CLONE);
    let fine = needs_no_file(op) || (allowed(c.current) && (!both || allowed(c.saved)));
    if fine { Ok(()) } else { Err(Nfsstat4::WRONGSEC.into()) }
}

/// After an operation that led to a file. One that puts a file handle fails only where nothing else would: what comes next is
/// looked at itself (RFC 8881 §2.6.3.1.1), and SECINFO is for those who must learn what is allowed.
#[cold]
pub(crate) fn after(c: &Compound<'_>, op: Opnum) -> OpResult {
    let Some(file) = c.current else { return Ok(()) };
    if !leads_on(op) || c.server.exports.allows(file.export, c.flavor) {
        return Ok(());
    }
    let puts =
        matches!(op, Opnum::PUTFH | Opnum::PUTROOTFH | Opnum::PUTPUBFH | Opnum::RESTOREFH | Opnum::SAVEFH);
    match c.next {
        None if puts => Ok(()),
        Some(next) if puts && (leads_on(next) || is_secinfo(next) || next == Opnum::OPEN) => Ok(()),
        _ => Err(Nfsstat4::WRONGSEC.into()),
    }
}

fn leads_on(op: Opnum) -> bool {
    matches!(
        op,
        Opnum::PUTFH
            | Opnum::PUTROOTFH
            | Opnum::PUTPUBFH
            | Opnum::RESTOREFH
            | Opnum::SAVEFH
            | Opnum::LOOKUP
            | Opnum::LOOKUPP
    )
}

fn is_secinfo(op: Opnum) -> bool {
    matches!(op, Opnum::SECINFO | Opnum::SECINFO_NO_NAME)
}

/// Operations of clients and sessions.
fn needs_no_file(op: Opnum) -> bool {
    matches!(
        op,
        Opnum::SEQUENCE
            | Opnum::EXCHANGE_ID
            | Opnum::CREATE_SESSION
            | Opnum::DESTROY_SESSION
            | Opnum::DESTROY_CLIENTID
            | Opnum::BIND_CONN_TO_SESSION
            | Opnum::BACKCHANNEL_CTL
            | Opnum::RECLAIM_COMPLETE
            | Opnum::SETCLIENTID
            | Opnum::SETCLIENTID_CONFIRM
            | Opnum::RENEW
            | Opnum::RELEASE_LOCKOWNER
            | Opnum::TEST_STATEID
            | Opnum::FREE_STATEID
    )
}

/// SECINFO (RFC 7530 §16.31, RFC 8881 §18.29).
pub(crate) fn secinfo(c: &mut Compound<'_>, args: SecinfoArgs<'_>) -> OpResult {
    let dir = c.file()?;
    let name = check_name(args.name)?;
    let (file, _) = c.server.exports.lookup(c.who, dir, name)?;
    put_flavors(c, file)
}

/// SECINFO_NO_NAME (RFC 8881 §18.45).
pub(crate) fn secinfo_no_name(c: &mut Compound<'_>, style: SecinfoStyle4) -> OpResult {
    let mut file = c.file()?;
    let (_, _, attr) = c.look(file)?;
    if style == SecinfoStyle4::Parent {
        // NOTDIR, whatever is no directory (RFC 8881 §15.2).
        if attr.kind == Kind::Symlink {
            return Err(Nfsstat4::NOTDIR.into());
        }
        file = parent(c)?;
    }
    put_flavors(c, file)
}

/// The flavours of a file's export, best first. From 4.1 on the question uses up the current file handle (RFC 8881
/// §2.6.3.1.1.8).
fn put_flavors(c: &mut Compound<'_>, file: FileId) -> OpResult {
    let mut flavors = Vec::new();
    for flavor in c.server.exports.get(file.export)?.flavors.strongest_first() {
        match flavor.service() {
            Some(service) => {
                flavors.push(Secinfo4::RpcsecGss(RpcsecGssInfo { oid: Opaque(KRB5_OID), qop: 0, service }));
            }
            // AUTH_NONE is the anonymous user of AUTH_SYS.
            None => {
                flavors.extend([AuthFlavor::SYS, AuthFlavor::NONE].map(|flavor| Secinfo4::Flavor(flavor.0)))
            }
        }
    }
    c.reply.encoder.put(&(flavors.len() as u32));
    flavors.iter().for_each(|flavor| c.reply.encoder.put(flavor));
    if c.minor > 0 {
        c.current = None;
        c.current_stateid = None;
    }
    Ok(())
}

/// What the pairs of operations of RFC 8881 §2.6.3.1.1 get in an export of Kerberos alone.
#[cfg(test)]
mod tests {
    use benchmaster_nfs_proto::v4::{Argop, Bitmap4, GetattrArgs, LookupArgs, PutfhArgs, Resop};

    use benchmaster_rpc_gss::Flavor;

    use super::*;
    use crate::config::{ExportConfig, ServerConfig};
    use crate::v4::testing::{Client, server};

    #[test]
    fn an_export_of_kerberos_is_seen_and_not_entered() {
        let export = |path: &str, security: &str| ExportConfig {
            path: path.into(),
            security: Some(security.parse().unwrap()),
            ..ExportConfig::default()
        };
        let exports = vec![export("/open", "sys"), export("/safe", "krb5i:krb5p")];
        let server = server(ServerConfig { exports, ..ServerConfig::default() });
        let mut client = Client::new(&server, 0, 0);
        let lookup = |name: &'static str| Argop::Lookup(LookupArgs { objname: name.into() });
        let getattr = Argop::Getattr(GetattrArgs { attr_request: Bitmap4::default() });
        let secinfo = |name: &'static str| Argop::Secinfo(SecinfoArgs { name: name.into() });
        let root = Argop::Putrootfh;
        assert_eq!(client.run(&[root, lookup("open"), getattr]).status(), Nfsstat4::OK);
        assert_eq!(client.run(&[root, lookup("safe")]).status(), Nfsstat4::WRONGSEC);
        let (_, safe) = server.exports.mountable().find(|(path, _)| *path == "/safe").unwrap();
        let handle = crate::handle::encode(server.instance, safe);
        let put = Argop::Putfh(PutfhArgs { object: handle[..].into() });
        for (ops, status) in [
            (&[put][..], Nfsstat4::OK),
            (&[put, root, getattr], Nfsstat4::OK),
            (&[put, getattr], Nfsstat4::WRONGSEC),
            (&[put, Argop::Getfh], Nfsstat4::WRONGSEC),
            (&[put, lookup("x")], Nfsstat4::NOENT),
            (&[put, Argop::Lookupp, lookup("open")], Nfsstat4::OK),
            (&[put, Argop::Savefh, Argop::Restorefh, getattr], Nfsstat4::WRONGSEC),
            (&[put, secinfo("x")], Nfsstat4::NOENT),
        ] {
            assert_eq!(client.run(ops).status(), status, "{ops:?}");
        }
        let results = client.run(&[root, secinfo("safe")]);
        let Resop::Secinfo(Ok(found)) = results.last() else { panic!("{results:?}") };
        let found: Vec<_> = found.flavors.iter().collect();
        let krb5 = |flavor: Flavor| {
            let service = flavor.service().unwrap();
            Secinfo4::RpcsecGss(RpcsecGssInfo { oid: Opaque(KRB5_OID), qop: 0, service })
        };
        assert_eq!(found, [krb5(Flavor::Krb5p), krb5(Flavor::Krb5i)]);
    }
}
