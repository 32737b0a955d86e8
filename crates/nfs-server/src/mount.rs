//! MOUNT versions 1, 2 and 3 (RFC 1813 appendix I): handles of directories, and who asked for them. The pseudo file
//! system above the exports can be mounted, too, though it is not listed: LOOKUP leads from it to the exports.

use benchmaster_nfs_proto::mount::{
    DirPath, ExportNode, FhStatus, MountBody, MountOk3, MountRes3, Mountstat3, Ppathcnf, Proc, VERSION_2,
    VERSION_3,
};
use benchmaster_nfs_proto::rpc::AuthFlavor;
use benchmaster_nfs_proto::xdr::{Chain, Encode, List};
use benchmaster_rpc_gss::Flavor;

use crate::call::{Call, Refusal, Served};
use crate::fs::{FsError, Kind, LINK_MAX, NAME_MAX, PATH_MAX};
use crate::handle::FileId;

pub(crate) mod mounts;

pub(crate) fn serve(call: &mut Call<'_>) -> Served {
    match Proc(call.procedure) {
        Proc::NULL => Ok(0),
        Proc::MNT => {
            let path: DirPath<'_> = call.args()?;
            Ok(mount(call, path.0).0)
        }
        Proc::DUMP => {
            let server = call.server;
            server.mounts.for_each(|host, path| {
                let host = host.to_string();
                put_next(call, &MountBody { hostname: host[..].into(), directory: path.into() });
            });
            call.reply.encoder.put(&false);
            Ok(0)
        }
        Proc::UMNT => {
            let path: DirPath<'_> = call.args()?;
            call.server.mounts.remove(call.peer.address.ip(), path.0);
            Ok(0)
        }
        Proc::UMNTALL => {
            call.server.mounts.remove_all(call.peer.address.ip());
            Ok(0)
        }
        Proc::EXPORT => export(call),
        Proc::EXPORTALL if call.version < VERSION_3 => export(call),
        Proc::PATHCONF if call.version == VERSION_2 => {
            let _: DirPath<'_> = call.args()?;
            call.reply.encoder.put(&pathconf());
            Ok(0)
        }
        _ => Err(Refusal::ProcUnavail),
    }
}

fn mount(call: &mut Call<'_>, path: &[u8]) -> Mountstat3 {
    let found = directory(call, path);
    let status = match found {
        Ok(_) => Mountstat3::OK,
        Err(error) => status(error),
    };
    // AUTH_NONE is the anonymous user of AUTH_SYS.
    let none = |flavor| (flavor == Flavor::Sys).then_some(AuthFlavor::NONE.0);
    let export = found.ok().and_then(|id| call.server.exports.get(id.export).ok());
    let allowed = export.into_iter().flat_map(|export| export.flavors.strongest_first());
    let flavors: Vec<u32> =
        allowed.flat_map(|flavor| [Some(flavor.number()), none(flavor)]).flatten().collect();
    let handle = found.map(|id| call.handle(id));
    if handle.is_ok() {
        call.server.mounts.add(call.peer.address.ip(), path);
    }
    let e = &mut call.reply.encoder;
    match handle {
        Ok(handle) if call.version < VERSION_3 => e.put(&FhStatus::Ok(handle)),
        Ok(handle) => {
            let auth_flavors = List::Items(&flavors[..]);
            e.put(&MountRes3::Ok(MountOk3 { fhandle: handle[..].into(), auth_flavors }));
        }
        // The numbers of UNIX errors are the same.
        Err(_) => e.put(&status),
    }
    status
}

fn directory(call: &Call<'_>, path: &[u8]) -> Result<FileId, FsError> {
    let id = call.server.exports.walk(call.who, path)?;
    match call.attr(id)?.kind {
        Kind::Directory => Ok(id),
        _ => Err(FsError::NotDirectory),
    }
}

fn status(error: FsError) -> Mountstat3 {
    match error {
        FsError::NotFound => Mountstat3::NOENT,
        FsError::NotOwner | FsError::Access => Mountstat3::ACCES,
        FsError::NotDirectory => Mountstat3::NOTDIR,
        FsError::NameTooLong => Mountstat3::NAMETOOLONG,
        FsError::BadName | FsError::Invalid | FsError::IsSymlink => Mountstat3::INVAL,
        _ => Mountstat3::SERVERFAULT,
    }
}

fn export(call: &mut Call<'_>) -> Served {
    for (path, _) in call.server.exports.mountable() {
        put_next(call, &ExportNode { dir: path.into(), groups: Chain::default() });
    }
    call.reply.encoder.put(&false);
    Ok(0)
}

fn put_next(call: &mut Call<'_>, node: &impl Encode) {
    call.reply.encoder.put(&true);
    call.reply.encoder.put(node);
}

fn pathconf() -> Ppathcnf {
    // Terminals and pipes are the client's own affair: 0 and the mask say so.
    Ppathcnf {
        link_max: LINK_MAX as i32,
        max_canon: 0,
        max_input: 0,
        name_max: NAME_MAX as i32,
        path_max: PATH_MAX as i32,
        pipe_buf: 0,
        vdisable: 0,
        xxx: 0,
        mask: PC_MAX_CANON | PC_MAX_INPUT | PC_PIPE_BUF | PC_VDISABLE,
        mask_high: 0,
    }
}

const PC_MAX_CANON: i32 = 1 << 1;
const PC_MAX_INPUT: i32 = 1 << 2;
const PC_PIPE_BUF: i32 = 1 << 5;
const PC_VDISABLE: i32 = 1 << 8;

#[cfg(test)]
mod tests {
    use benchmaster_nfs_proto::mount::{Exports, MountList, PROGRAM};

    use super::*;
    use crate::call::testing::{Caller, decode};
    use crate::config::{ExportConfig, ServerConfig};
    use crate::cred::Credentials;
    use crate::v4::testing;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[test]
    fn mounting_and_what_is_told_of_it() {
        let export = |path: &str| ExportConfig { path: path.into(), ..ExportConfig::default() };
        let exports = vec![export("/a"), export("/b/c")];
        let server = testing::server(ServerConfig { exports, ..ServerConfig::default() });
        let mut caller = Caller::new(&server, 0);
        let mount = |caller: &mut Caller<'_>, path: &str| {
            let results = caller.call((PROGRAM, serve), (3, Proc::MNT.0), &DirPath::from(path));
            match decode::<MountRes3<'_>>(&results) {
                MountRes3::Ok(ok) => {
                    assert_eq!(ok.auth_flavors.iter().next(), Some(AuthFlavor::SYS.0));
                    Ok(ok.fhandle.0.to_vec())
                }
                MountRes3::Err(status) => Err(Mountstat3(status)),
            }
        };
        let handle = mount(&mut caller, "/a").unwrap();
        let (_, root) = server.exports.mountable().next().unwrap();
        assert_eq!(crate::handle::decode(&handle), Ok((server.instance, root)));
        assert!(mount(&mut caller, "/b/c").is_ok());
        assert!(mount(&mut caller, "/").is_ok());
        assert_eq!(mount(&mut caller, "/none"), Err(Mountstat3::NOENT));
        // Version 1 has the same handle without a count.
        let old = caller.call((PROGRAM, serve), (1, Proc::MNT.0), &DirPath::from("/a"));
        assert_eq!(decode::<FhStatus>(&old), FhStatus::Ok(handle.try_into().unwrap()));

        let dump = |caller: &mut Caller<'_>| {
            let results = caller.call((PROGRAM, serve), (3, Proc::DUMP.0), &());
            let list: MountList<'_> = decode(&results);
            list.iter().map(|m| (text(m.hostname.0), text(m.directory.0))).collect::<Vec<_>>()
        };
        let here = |path: &str| ("127.0.0.1".to_owned(), path.to_owned());
        assert_eq!(dump(&mut caller), [here("/"), here("/a"), here("/b/c")]);
        caller.call((PROGRAM, serve), (3, Proc::UMNT.0), &DirPath::from("/a"));
        assert_eq!(dump(&mut caller), [here("/"), here("/b/c")]);
        caller.call((PROGRAM, serve), (3, Proc::UMNTALL.0), &());
        assert_eq!(dump(&mut caller), []);

        let results = caller.call((PROGRAM, serve), (3, Proc::EXPORT.0), &());
        let list: Exports<'_> = decode(&results);
        let paths: Vec<_> = list.iter().map(|node| text(node.dir.0)).collect();
        assert_eq!(paths, ["/a", "/b/c"]);
        assert_eq!(caller.call((PROGRAM, serve), (1, Proc::EXPORTALL.0), &()), results);
        assert_eq!(caller.refused((PROGRAM, serve), (3, Proc::EXPORTALL.0), b""), Refusal::ProcUnavail);
        let limits: Ppathcnf =
            decode(&caller.call((PROGRAM, serve), (2, Proc::PATHCONF.0), &DirPath::from("/a")));
        assert_eq!(limits.name_max, 255);
    }

    #[test]
    fn only_directories_and_bounded_memory() {
        let server = testing::server(ServerConfig::default());
        let mut caller = Caller::new(&server, 0);
        let (_, root) = server.exports.mountable().next().unwrap();
        let (fs, node) = server.exports.file(root).unwrap();
        let (who, now) = (Credentials::root(), caller.now.wall);
        fs.create(&who, node, b"file", crate::fs::NewFile::Regular, &Default::default(), None, now).unwrap();
        let results = caller.call((PROGRAM, serve), (3, Proc::MNT.0), &DirPath::from("/export/file"));
        assert_eq!(decode::<MountRes3<'_>>(&results), MountRes3::Err(Mountstat3::NOTDIR.0));
        assert_eq!(caller.refused((PROGRAM, serve), (3, Proc::MNT.0), &[0, 0, 4, 1]), Refusal::GarbageArgs);
        // "/export", "//export", "///export" … are different texts for one directory.
        for n in 1..=1000 {
            let path = "/".repeat(n) + "export";
            caller.call((PROGRAM, serve), (3, Proc::MNT.0), &DirPath::from(&path[..]));
        }
        let mut remembered = 0;
        server.mounts.for_each(|_, _| remembered += 1);
        assert_eq!(remembered, mounts::MOST_OF_HOST);
    }
}
