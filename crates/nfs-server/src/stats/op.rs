//! What is counted and what rules name: procedures of NFS v2 and v3, operations of v4, whole calls of other programs.

use benchmaster_nfs_proto::v2::Proc2;
use benchmaster_nfs_proto::v3::Proc3;
use benchmaster_nfs_proto::v4::Opnum;

/// An operation that is counted: a procedure of RPC, or an operation of COMPOUND.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// A procedure of NFS version 2.
    V2(Proc2),
    /// A procedure of NFS version 3.
    V3(Proc3),
    /// An operation within a COMPOUND of NFS version 4, any minor version.
    V4(Opnum),
    /// A whole COMPOUND of NFS version 4.
    Compound,
    /// Any call of MOUNT.
    Mount,
    /// Any call of NLM.
    Nlm,
    /// Any call of portmap or rpcbind.
    Portmap,
}

const V2: usize = 0;
const V3: usize = V2 + 18;
const V4: usize = V3 + 22;
const OTHERS: usize = V4 + 77;

impl Operation {
    /// Number of different indices.
    pub(crate) const COUNT: usize = OTHERS + 4;

    /// A dense number. Procedures outside the RFCs share their version's 0 (NULL, or an illegal operation).
    #[inline]
    pub(crate) fn index(self) -> usize {
        let within = |number: u32, limit: usize| if (number as usize) < limit { number as usize } else { 0 };
        match self {
            Self::V2(procedure) => V2 + within(procedure.0, V3 - V2),
            Self::V3(procedure) => V3 + within(procedure.0, V4 - V3),
            Self::V4(op) => V4 + within(op.0, OTHERS - V4),
            Self::Compound => OTHERS,
            Self::Mount => OTHERS + 1,
            Self::Nlm => OTHERS + 2,
            Self::Portmap => OTHERS + 3,
        }
    }

    /// The operation of an index.
    pub(crate) fn of_index(index: usize) -> Self {
        match index {
            V2..V3 => Self::V2(Proc2((index - V2) as u32)),
            V3..V4 => Self::V3(Proc3((index - V3) as u32)),
            V4..OTHERS => Self::V4(Opnum((index - V4) as u32)),
            OTHERS => Self::Compound,
            i if i == OTHERS + 1 => Self::Mount,
            i if i == OTHERS + 2 => Self::Nlm,
            _ => Self::Portmap,
        }
    }

    /// Protocol, as statistics name it: `v2`, `v3`, `v4`, `mount`, `nlm`, `portmap`.
    pub fn protocol(self) -> &'static str {
        match self {
            Self::V2(_) => "v2",
            Self::V3(_) => "v3",
            Self::V4(_) | Self::Compound => "v4",
            Self::Mount => "mount",
            Self::Nlm => "nlm",
            Self::Portmap => "portmap",
        }
    }

    /// Name in capitals without prefix, as in mountstats: `READ`.
    pub fn name(self) -> &'static str {
        match self {
            Self::V2(procedure) => procedure.name().unwrap_or("ILLEGAL"),
            Self::V3(procedure) => procedure.name().unwrap_or("ILLEGAL"),
            Self::V4(op) => op.name().unwrap_or("ILLEGAL"),
            Self::Compound => "COMPOUND",
            Self::Mount | Self::Nlm | Self::Portmap => "CALL",
        }
    }

    /// Whether this is a whole RPC, not a part of one.
    pub fn is_call(self) -> bool {
        !matches!(self, Self::V4(_))
    }

    /// Whether anything served bears this name (without prefix, in capitals).
    pub(crate) fn is_known(name: &str) -> bool {
        (0..Self::COUNT).any(|index| Self::of_index(index).name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_are_dense_and_come_back() {
        for index in 0..Operation::COUNT {
            assert_eq!(Operation::of_index(index).index(), index);
        }
        assert_eq!(Operation::V4(Opnum(10_044)).index(), Operation::V4(Opnum(0)).index());
    }

    #[test]
    fn names_are_those_of_the_field() {
        assert_eq!(Operation::V4(Opnum::READ).name(), "READ");
        assert_eq!(Operation::V3(Proc3::READDIRPLUS).name(), "READDIRPLUS");
        assert!(
            Operation::is_known("SETXATTR") && Operation::is_known("COMPOUND") && !Operation::is_known("FLY")
        );
    }
}
