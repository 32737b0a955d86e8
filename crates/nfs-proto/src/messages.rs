//! The list of all message types, for the tests that no decoder may escape.

/// Calls `$visit! { family { Type, … } … }` with every type that is decoded from the wire, as paths relative to this
/// crate's modules. The round-trip properties and the fuzz targets are made from this list: a new message belongs here.
#[doc(hidden)]
#[macro_export]
macro_rules! every_message {
    ($visit:ident) => {
        $visit! {
            rpc { rpc::OpaqueAuth<'_>, rpc::AuthSys<'_>, rpc::AuthFlavor, rpc::AuthStat }
            gss { gss::GssProc, gss::GssCredential<'_>, gss::GssInitResult<'_>, gss::GssIntegrity<'_> }
            portmap {
                portmap::Mapping, portmap::PmapList<'_>, portmap::Rpcb<'_>, portmap::RpcbList<'_>,
                portmap::RpcbEntryList<'_>, portmap::Netbuf<'_>
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
            v4 {
                v4::AccessArgs, v4::AccessOk, v4::Acetype4, v4::AllocateArgs, v4::Argop<'_>,
                v4::BackchannelCtlArgs<'_>, v4::BindConnToSessionArgs, v4::BindConnToSessionOk, v4::Bitmap4,
                v4::CallbackSecParms4<'_>, v4::CbArgop<'_>, v4::CbClient4<'_>, v4::CbCompoundHeader<'_>,
                v4::CbGetattrArgs<'_>, v4::CbGetattrOk<'_>, v4::CbNotifyArgs<'_>, v4::CbNotifyLockArgs<'_>, v4::CbOpnum,
                v4::CbPushDelegArgs<'_>, v4::CbRecallAnyArgs, v4::CbRecallArgs<'_>, v4::CbRecallSlotArgs,
                v4::CbResop<'_>, v4::CbSequenceArgs<'_>, v4::CbSequenceOk, v4::CbWantsCancelledArgs,
                v4::ChangeAttrType4, v4::ChangeInfo4, v4::ChannelAttrs4, v4::ChannelDirFromClient4,
                v4::ChannelDirFromServer4, v4::ClientOwner4<'_>, v4::CloneArgs, v4::CloseArgs, v4::CloseOk,
                v4::CommitArgs, v4::CommitOk, v4::CompoundHeader<'_>, v4::CompoundResHeader<'_>, v4::CopyArgs<'_>,
                v4::CopyOk, v4::CopyRequirements4, v4::CopyRes, v4::CreateArgs<'_>, v4::CreateOk,
                v4::CreateSessionArgs<'_>, v4::CreateSessionOk, v4::Createhow4<'_>, v4::Createtype4<'_>,
                v4::Creatverfattr<'_>, v4::Data4<'_>, v4::DataContent4, v4::DataInfo4, v4::DeallocateArgs,
                v4::DelegClaim4, v4::DelegpurgeArgs, v4::DelegreturnArgs, v4::DestroyClientidArgs,
                v4::DestroySessionArgs, v4::Entry4<'_>, v4::ExchangeIdArgs<'_>, v4::ExchangeIdOk<'_>,
                v4::ExistLockOwner4, v4::Fattr4<'_>, v4::FreeStateidArgs, v4::FsLocation4<'_>, v4::FsLocations4<'_>,
                v4::Fsid4, v4::Ftype4, v4::DirDelegation4, v4::GetDirDelegationArgs, v4::GetDirDelegationOk, v4::GetattrArgs, v4::GetattrOk<'_>, v4::GetfhOk<'_>, v4::GetxattrArgs<'_>,
                v4::GetxattrOk<'_>, v4::GssCbHandles4<'_>, v4::IoAdvise4, v4::IoAdviseArgs, v4::IoAdviseOk,
                v4::LinkArgs<'_>, v4::LinkOk, v4::ListxattrsArgs, v4::ListxattrsOk<'_>, v4::LockArgs<'_>,
                v4::LockDenied<'_>, v4::LockOk, v4::LockRes<'_>, v4::LockType4, v4::Locker4<'_>, v4::LocktArgs<'_>,
                v4::LocktRes<'_>, v4::LockuArgs, v4::LockuOk, v4::LookupArgs<'_>, v4::ModeMasked4, v4::ModeUmask4,
                v4::ModifiedLimit4, v4::Netaddr4<'_>, v4::Netloc4<'_>, v4::NfsClientId4<'_>, v4::NfsImplId4<'_>,
                v4::Nfsace4<'_>, v4::Nfsacl41<'_>, v4::NotifyAdd4<'_>, v4::NotifyRename4<'_>, v4::Nfsstat4, v4::Nfstime4, v4::OpenArgs<'_>, v4::OpenArguments4,
                v4::OpenClaim4<'_>, v4::OpenClaimDelegateCur4<'_>, v4::OpenConfirmArgs, v4::OpenConfirmOk,
                v4::OpenDelegation4<'_>, v4::OpenDelegationType4, v4::OpenDowngradeArgs, v4::OpenDowngradeOk,
                v4::OpenNoneDelegation4, v4::OpenOk<'_>, v4::OpenReadDelegation4<'_>, v4::OpenToLockOwner4<'_>,
                v4::OpenWriteDelegation4<'_>, v4::OpenattrArgs, v4::Openflag4<'_>, v4::Opnum, v4::PutfhArgs<'_>,
                v4::ReadArgs, v4::ReadOk<'_>, v4::ReadPlusArgs, v4::ReadPlusContent<'_>, v4::ReadPlusOk<'_>,
                v4::ReaddirArgs, v4::ReaddirOk<'_>, v4::ReadlinkOk<'_>, v4::ReclaimCompleteArgs, v4::ReferringCall4,
                v4::ReferringCallList4<'_>, v4::ReleaseLockownerArgs<'_>, v4::RemoveArgs<'_>, v4::RemoveOk,
                v4::RemovexattrArgs<'_>, v4::RemovexattrOk, v4::RenameArgs<'_>, v4::RenameOk, v4::RenewArgs,
                v4::Resop<'_>, v4::RpcGssSvc, v4::RpcsecGssInfo<'_>, v4::Secinfo4<'_>, v4::SecinfoArgs<'_>,
                v4::SecinfoOk<'_>, v4::SecinfoStyle4, v4::SeekArgs, v4::SeekOk, v4::SequenceArgs, v4::SequenceOk,
                v4::ServerOwner4<'_>, v4::SetSsvArgs<'_>, v4::SetSsvOk<'_>, v4::SetattrArgs<'_>, v4::SetattrRes,
                v4::SetclientidArgs<'_>, v4::SetclientidConfirmArgs, v4::SetclientidOk, v4::SetclientidRes<'_>,
                v4::Settime4, v4::SetxattrArgs<'_>, v4::SetxattrOk, v4::SetxattrOption4, v4::SpaceLimit4,
                v4::Specdata4, v4::SsvProtInfo4<'_>, v4::SsvSpParms4<'_>, v4::StableHow4, v4::StateOwner4<'_>,
                v4::StateProtect4A<'_>, v4::StateProtect4R<'_>, v4::StateProtectOps4, v4::Stateid4,
                v4::TestStateidArgs<'_>, v4::TestStateidOk<'_>, v4::VerifyArgs<'_>, v4::WantDelegationArgs,
                v4::WriteArgs<'_>, v4::WriteOk, v4::WriteResponse4
            }
        }
    };
}
