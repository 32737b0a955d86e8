//! What was found of the rules that a server or a directory has to keep.

use serde::Serialize;

use crate::nfs::NfsVersion;

words! {
    /// How binding a rule is.
    Force {
        /// The document demands it, or a client cannot work without it.
        Must = "must",
        /// The document recommends it, or leaves a choice of which one is usual.
        Should = "should",
        /// No document demands it; Linux does it so, and programs expect it.
        Linux = "linux",
    }
}

words! {
    /// What checks are about: what can be chosen.
    Group {
        /// The remote procedure call protocol and damaged messages.
        Rpc = "rpc",
        /// The portmapper.
        Portmap = "portmap",
        /// MOUNT.
        Mount = "mount",
        /// Clients: who they are, leases.
        Client = "client",
        /// Sessions and slots.
        Session = "session",
        /// The rules of COMPOUND.
        Compound = "compound",
        /// Filehandles.
        Handle = "handle",
        /// Names and directories.
        Names = "names",
        /// Attributes and access rights.
        Attributes = "attributes",
        /// Access control lists.
        Acl = "acl",
        /// Listing directories.
        Readdir = "readdir",
        /// Reading and writing.
        Io = "io",
        /// Opens and share reservations.
        Open = "open",
        /// Byte-range locks.
        Lock = "lock",
        /// Delegations and callbacks.
        Delegation = "delegation",
        /// Holes and space.
        Sparse = "sparse",
        /// COPY and CLONE.
        Copy = "copy",
        /// Extended attributes.
        Xattr = "xattr",
        /// Security flavours and users.
        Security = "security",
        /// Limits of the file system.
        Limits = "limits",
        /// Memory maps.
        Mmap = "mmap",
        /// Two clients at once.
        Coherence = "coherence",
    }
}

/// What was found of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum Verdict {
    /// It is kept.
    Pass,
    /// It is broken.
    Fail {
        /// What was asked.
        sent: String,
        /// What was answered, and what would be right.
        came: String,
    },
    /// It does not apply.
    NotApplicable {
        /// Why not.
        why: String,
    },
}

/// A check that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the check.
    pub name: String,
    /// What it is about.
    pub group: Group,
    /// How binding the rule is.
    pub force: Force,
    /// Where the rule is written.
    pub place: String,
    /// The rule.
    pub rule: String,
    /// What was found.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// What was found of a server in one version, or of a directory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Checked {
    /// The version of NFS; none: a directory.
    pub version: Option<NfsVersion>,
    /// What the server says of itself, where it does.
    pub implementation: Option<String>,
    /// A finding for each check that was made.
    pub findings: Vec<Finding>,
    /// How long it took, in seconds.
    pub elapsed_s: f64,
    /// What was left behind, and why.
    pub left_behind: Option<String>,
}

impl Checked {
    /// How many checks passed, failed and did not apply.
    pub fn counts(&self) -> [usize; 3] {
        let count = |which: fn(&Verdict) -> bool| self.findings.iter().filter(|f| which(&f.verdict)).count();
        [
            count(|verdict| matches!(verdict, Verdict::Pass)),
            count(|verdict| matches!(verdict, Verdict::Fail { .. })),
            count(|verdict| matches!(verdict, Verdict::NotApplicable { .. })),
        ]
    }

    /// Findings of broken rules, the most binding first.
    pub fn broken(&self) -> Vec<&Finding> {
        let failed = |finding: &&Finding| matches!(finding.verdict, Verdict::Fail { .. });
        let mut broken: Vec<&Finding> = self.findings.iter().filter(failed).collect();
        broken.sort_by_key(|finding| finding.force);
        broken
    }
}
