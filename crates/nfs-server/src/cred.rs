//! Who calls.

use benchmaster_nfs_proto::rpc::{AuthFlavor, AuthStat, OpaqueAuth};
use smallvec::SmallVec;

/// User of calls without a credential, and of user 0 where root is squashed.
pub const NOBODY: u32 = 65534;

/// User and groups in whose name a request is executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Supplementary group ids.
    pub gids: SmallVec<[u32; 16]>,
    /// Flavour that said so.
    pub flavor: AuthFlavor,
    /// Tells principals of Kerberos apart, also those that are one user; 0 where there is none.
    pub principal: u64,
}

impl Credentials {
    /// The superuser, for what the server does by itself and for tests.
    pub fn root() -> Self {
        Self { uid: 0, gid: 0, gids: SmallVec::new(), flavor: AuthFlavor::SYS, principal: 0 }
    }

    /// From a call's credential: AUTH_NONE maps to uid 65534, AUTH_SYS is trusted, others are refused.
    pub fn from_rpc(auth: &OpaqueAuth<'_>, root_squash: bool) -> Result<Self, AuthStat> {
        match auth.flavor {
            AuthFlavor::NONE => {
                Ok(Self { uid: NOBODY, gid: NOBODY, flavor: AuthFlavor::NONE, ..Self::root() })
            }
            AuthFlavor::SYS => {
                let sys = auth.sys().map_err(|_| AuthStat::BADCRED)?;
                let squash = |id: u32| if root_squash && id == 0 { NOBODY } else { id };
                Ok(Self {
                    uid: squash(sys.uid),
                    gid: squash(sys.gid),
                    gids: sys.gids.iter().map(squash).collect(),
                    flavor: AuthFlavor::SYS,
                    principal: 0,
                })
            }
            _ => Err(AuthStat::REJECTEDCRED),
        }
    }

    /// Whether the caller is in `group`.
    pub fn in_group(&self, group: u32) -> bool {
        self.gid == group || self.gids.contains(&group)
    }
}
