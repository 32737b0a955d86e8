//! The list of all message types, for the tests that no decoder may escape.

/// Calls `$visit! { family { Type, … } … }` with every type that is decoded from the wire, as paths relative to this
/// crate's modules. The round-trip properties and the fuzz targets are made from this list: a new message belongs here.
#[doc(hidden)]
#[macro_export]
macro_rules! every_message {
    ($visit:ident) => {
        $visit! {
            rpc { rpc::OpaqueAuth<'_>, rpc::AuthSys<'_>, rpc::AuthFlavor, rpc::AuthStat }
            portmap {
                portmap::Mapping, portmap::PmapList<'_>, portmap::CallArgs<'_>, portmap::CallResult<'_>,
                portmap::Rpcb<'_>, portmap::RpcbList<'_>, portmap::RmtCallRes<'_>, portmap::RpcbEntryList<'_>,
                portmap::Netbuf<'_>, portmap::RpcbStatByVers<'_>
            }
            mount {
                mount::DirPath<'_>, mount::FhStatus, mount::MountRes3<'_>, mount::MountList<'_>, mount::Exports<'_>,
                mount::Ppathcnf
            }
            nlm {
                nlm::Res<'_>, nlm::ShareArgs<'_>, nlm::ShareRes<'_>, nlm::Notify<'_>,
                nlm::v1::LockArgs<'_>, nlm::v1::CancelArgs<'_>, nlm::v1::TestArgs<'_>, nlm::v1::UnlockArgs<'_>,
                nlm::v1::TestRes<'_>,
                nlm::v4::LockArgs<'_>, nlm::v4::CancelArgs<'_>, nlm::v4::TestArgs<'_>, nlm::v4::UnlockArgs<'_>,
                nlm::v4::TestRes<'_>
            }
            nsm {
                nsm::SmName<'_>, nsm::Mon<'_>, nsm::MonId<'_>, nsm::MyId<'_>, nsm::SmStat, nsm::SmStatRes,
                nsm::StatChge<'_>, nsm::Status<'_>
            }
            v2 {
                v2::Fhandle, v2::AttrRes, v2::SetattrArgs, v2::DirOpArgs<'_>, v2::DirOpRes, v2::ReadlinkRes<'_>,
                v2::ReadArgs, v2::ReadRes<'_>, v2::WriteArgs<'_>, v2::CreateArgs<'_>, v2::RenameArgs<'_>,
                v2::LinkArgs<'_>, v2::SymlinkArgs<'_>, v2::ReaddirArgs, v2::ReaddirRes<'_>, v2::StatfsRes,
                v2::Nfsstat2
            }
            v3 {
                v3::GetattrArgs<'_>, v3::GetattrRes, v3::SetattrArgs<'_>, v3::SetattrRes, v3::LookupArgs<'_>,
                v3::LookupRes<'_>, v3::AccessArgs<'_>, v3::AccessRes, v3::ReadlinkArgs<'_>, v3::ReadlinkRes<'_>,
                v3::ReadArgs<'_>, v3::ReadRes<'_>, v3::WriteArgs<'_>, v3::WriteRes, v3::CreateArgs<'_>,
                v3::CreateRes<'_>, v3::MkdirArgs<'_>, v3::SymlinkArgs<'_>, v3::MknodArgs<'_>, v3::RemoveArgs<'_>,
                v3::RemoveRes, v3::RenameArgs<'_>, v3::RenameRes, v3::LinkArgs<'_>, v3::LinkRes, v3::ReaddirArgs<'_>,
                v3::ReaddirRes<'_>, v3::ReaddirplusArgs<'_>, v3::ReaddirplusRes<'_>, v3::FsArgs<'_>, v3::FsstatRes,
                v3::FsinfoRes, v3::PathconfArgs<'_>, v3::PathconfRes, v3::CommitArgs<'_>, v3::CommitRes
            }
        }
    };
}
