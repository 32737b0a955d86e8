//! Security flavours as exports and mounts name them (RFC 2623 §2.7, RFC 8881 §3.3 for the pseudo flavours of Kerberos).

use std::fmt;
use std::str::FromStr;

use benchmaster_nfs_proto::v4::RpcGssSvc;

/// The mechanism Kerberos 5, as an object identifier in DER without tag and length: 1.2.840.113554.1.2.2.
pub const KRB5_OID: &[u8] = b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02";

/// How a call shows who makes it, and what protects it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Flavor {
    /// User numbers that are believed (AUTH_SYS).
    Sys,
    /// Kerberos: who calls.
    Krb5,
    /// And nothing that is said can be changed.
    Krb5i,
    /// And it cannot be read.
    Krb5p,
}

impl Flavor {
    /// All of them, weakest first.
    pub const ALL: [Self; 4] = [Self::Sys, Self::Krb5, Self::Krb5i, Self::Krb5p];

    /// Its name, as `sec=` has it (nfs(5)).
    pub fn name(self) -> &'static str {
        match self {
            Self::Sys => "sys",
            Self::Krb5 => "krb5",
            Self::Krb5i => "krb5i",
            Self::Krb5p => "krb5p",
        }
    }

    /// Its number in lists of MOUNT.
    pub fn number(self) -> u32 {
        match self {
            Self::Sys => 1,
            Self::Krb5 => 390_003,
            Self::Krb5i => 390_004,
            Self::Krb5p => 390_005,
        }
    }

    /// The service of RPCSEC_GSS; `None` for AUTH_SYS.
    pub fn service(self) -> Option<RpcGssSvc> {
        match self {
            Self::Sys => None,
            Self::Krb5 => Some(RpcGssSvc::None),
            Self::Krb5i => Some(RpcGssSvc::Integrity),
            Self::Krb5p => Some(RpcGssSvc::Privacy),
        }
    }

    /// Kerberos with this service.
    pub fn of(service: RpcGssSvc) -> Self {
        match service {
            RpcGssSvc::None => Self::Krb5,
            RpcGssSvc::Integrity => Self::Krb5i,
            RpcGssSvc::Privacy => Self::Krb5p,
        }
    }
}

/// A set of flavours: those of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Flavors(u8);

impl Flavors {
    /// AUTH_SYS alone.
    pub const SYS: Self = Self(1);
    /// None.
    pub const EMPTY: Self = Self(0);

    /// Whether it is one of them.
    pub fn contains(self, flavor: Flavor) -> bool {
        self.0 & 1 << flavor as u8 != 0
    }

    /// The set with one more.
    #[must_use]
    pub fn with(self, flavor: Flavor) -> Self {
        Self(self.0 | 1 << flavor as u8)
    }

    /// What is in either.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those in it, strongest first, as lists for clients have them.
    pub fn strongest_first(self) -> impl Iterator<Item = Flavor> {
        Flavor::ALL.into_iter().rev().filter(move |flavor| self.contains(*flavor))
    }

    /// Whether one of them is Kerberos.
    pub fn need_kerberos(self) -> bool {
        self.0 & !Self::SYS.0 != 0
    }
}

impl FromIterator<Flavor> for Flavors {
    fn from_iter<I: IntoIterator<Item = Flavor>>(flavors: I) -> Self {
        flavors.into_iter().fold(Self::EMPTY, Self::with)
    }
}

impl fmt::Display for Flavors {
    /// As `sec=` has them: `sys:krb5p`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> =
            Flavor::ALL.into_iter().filter(|flavor| self.contains(*flavor)).map(Flavor::name).collect();
        f.write_str(&names.join(":"))
    }
}

impl FromStr for Flavors {
    type Err = String;

    /// Names with colons between them.
    fn from_str(text: &str) -> Result<Self, String> {
        let flavor = |name: &str| {
            let found = Flavor::ALL.into_iter().find(|flavor| flavor.name() == name);
            found.ok_or_else(|| {
                format!(
                    "`{name}` is no security flavour; write some of sys, krb5, krb5i, krb5p, as in sys:krb5p"
                )
            })
        };
        text.split(':').map(flavor).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_written_as_they_are_read() {
        for text in ["sys", "krb5p", "sys:krb5", "krb5:krb5i:krb5p", "sys:krb5:krb5i:krb5p"] {
            assert_eq!(text.parse::<Flavors>().unwrap().to_string(), text);
        }
        let both: Flavors = "krb5p:sys".parse().unwrap();
        assert_eq!(both.strongest_first().collect::<Vec<_>>(), [Flavor::Krb5p, Flavor::Sys]);
        assert!(both.need_kerberos() && !Flavors::SYS.need_kerberos());
        for bad in ["", "sys:", "krb4", "krb5,krb5p"] {
            assert!(bad.parse::<Flavors>().is_err(), "{bad}");
        }
    }
}
