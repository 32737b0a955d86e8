//! MOUNT (RFC 1813 appendix I, RFC 1094 appendix A): the filehandle of an exported directory.

use std::net::SocketAddr;

use benchmaster_nfs_proto::mount::{DirPath, FhStatus, MountRes3, Mountstat3, PROGRAM, Proc, VERSION_1};
use benchmaster_nfs_proto::xdr::{Decoder, XdrError};
use benchmaster_rpc_gss::{Flavor, Flavors};

use crate::error::NfsError;
use crate::ops;
use crate::portmap::{ConnectError, PATIENCE, Site};
use crate::rpc::Call;
use crate::types::Handle;

/// Longest path of MOUNT.
const MAX_PATH: usize = 1024;

/// An entry in the server's list of mounts.
#[derive(Debug)]
pub(crate) struct Mounted {
    /// The exported directory.
    pub(crate) root: Handle,
    version: u32,
    address: SocketAddr,
    path: Vec<u8>,
}

/// Asks for the filehandle of `path`; with version 1 of MOUNT one of NFSv2, with 3 one of NFSv3.
pub(crate) async fn mount(
    site: &Site,
    version: u32,
    port: Option<u16>,
    path: &[u8],
) -> Result<Mounted, ConnectError> {
    if path.len() > MAX_PATH {
        return Err(NfsError::NameTooLong.into());
    }
    let rpc = site.service(PROGRAM, version, ops::mount::NULL, port).await?;
    let call = Call::new(ops::mount::MNT, PROGRAM, version, Proc::MNT.0).sys();
    let decode = if version == VERSION_1 { result_1 } else { result_3 };
    let answer = rpc.call(call, |e, _| e.put(&DirPath::from(path)), decode).await?;
    let (root, allowed) = answer.map_err(|status| {
        rpc.counters().error(ops::mount::MNT);
        NfsError::Mount(status)
    })?;
    let root = root.ok_or(NfsError::Nonsense("an empty filehandle"))?;
    let mounted = Mounted { root, version, address: rpc.options().address, path: path.to_owned() };
    let wanted = site.nfs.options().gss.as_ref().map_or(Flavor::Sys, |gss| Flavor::of(gss.service));
    match allowed.filter(|allowed| !allowed.contains(wanted)) {
        None => Ok(mounted),
        Some(allowed) => {
            mounted.unmount(site).await;
            Err(NfsError::WrongSecurity { wanted, allowed }.into())
        }
    }
}

/// Filehandle, and the flavours that may be used, where the server says so.
type MountReply = Result<(Option<Handle>, Option<Flavors>), Mountstat3>;

fn result_1(d: &mut Decoder<'_>) -> Result<MountReply, XdrError> {
    Ok(match d.get()? {
        FhStatus::Ok(handle) => Ok((Handle::new(&handle), None)),
        FhStatus::Err(status) => Err(Mountstat3(status)),
    })
}

fn result_3(d: &mut Decoder<'_>) -> Result<MountReply, XdrError> {
    Ok(match d.get()? {
        MountRes3::Ok(ok) => {
            let handle = Handle::new(ok.fhandle.0).filter(|handle| !handle.bytes().is_empty());
            // Old servers leave the list empty.
            let known = |number| Flavor::ALL.into_iter().find(|flavor| flavor.number() == number);
            let allowed = (!ok.auth_flavors.is_empty())
                .then(|| ok.auth_flavors.iter().filter_map(known).collect::<Flavors>());
            Ok((handle, allowed))
        }
        MountRes3::Err(status) => Err(Mountstat3(status)),
    })
}

impl Mounted {
    /// Lets the server forget the mount. It is only a note for its administrator (RFC 1813 §5.2.3), so a server that
    /// does not answer is not waited for, and a failure only counted.
    pub(crate) async fn unmount(&self, site: &Site) {
        let call = Call::new(ops::mount::UMNT, PROGRAM, self.version, Proc::UMNT.0).sys();
        let call = async {
            if let Ok(rpc) = site.briefly(self.address).await {
                let _ = rpc.call(call, |e, _| e.put(&DirPath::from(&self.path[..])), |_| Ok(())).await;
            }
        };
        let reactor = site.nfs.reactor();
        reactor.until(reactor.now() + PATIENCE, call).await;
    }
}
