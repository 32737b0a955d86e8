//! The checks: a table for each group.

use benchmaster_nfs_proto::v4::Nfsstat4;
use benchmaster_record::nfs::NfsVersion;

use super::client4::Client4;
use super::trial::Trial;
use crate::{Check, Tried};

/// Defines a table of checks: name, versions, force, places of the rule with the versions they are for, the rule, the
/// function.
macro_rules! checks {
    ($(#[$m:meta])* $list:ident, $group:ident; $(
        $name:literal $versions:ident $force:ident [$( $of:ident $text:tt $section:literal ),+] $says:literal
            => $run:expr;
    )*) => {
        $(#[$m])*
        pub(super) const $list: &[crate::Check<crate::nfs::trial::Trial>] = &[$(
            crate::Check {
                name: $name,
                group: crate::Group::$group,
                versions: crate::nfs::checks::$versions,
                force: crate::Force::$force,
                rule: crate::Rule {
                    places: &[$( (crate::nfs::checks::$of, crate::Place {
                        text: checks!(@text $text),
                        section: $section,
                    }) ),+],
                    says: $says,
                },
                run: $run,
            },
        )*];
    };
    (@text xnfs) => { crate::Text::Xnfs };
    (@text linux) => { crate::Text::Linux };
    (@text posix) => { crate::Text::Posix };
    (@text $number:literal) => { crate::Text::Rfc($number) };
}

mod names4;

/// All tables.
pub(super) const ALL: &[&[Check<Trial>]] = &[names4::LIST];

const ALL_VERSIONS: &[NfsVersion] = NfsVersion::ALL;
const V2: &[NfsVersion] = &[NfsVersion::V2];
const V3: &[NfsVersion] = &[NfsVersion::V3];
const V23: &[NfsVersion] = &[NfsVersion::V2, NfsVersion::V3];
const V40: &[NfsVersion] = &[NfsVersion::V40];
const V41: &[NfsVersion] = &[NfsVersion::V41, NfsVersion::V42];
const V4: &[NfsVersion] = &[NfsVersion::V40, NfsVersion::V41, NfsVersion::V42];
const V42: &[NfsVersion] = &[NfsVersion::V42];

impl Client4 {
    /// Calls, and fails where the status is not one of these.
    fn gives(&mut self, ops: &[benchmaster_nfs_proto::v4::Argop<'_>], allowed: &[Nfsstat4]) -> Tried {
        self.compound(ops)?.is(allowed)
    }
}
