//! Lines of numbers whose names are known by their places.

/// Numbers of a line. Older kernels write fewer than there are names; those of newer ones have no names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Numbers {
    names: &'static [&'static str],
    /// As written; some can be negative, and some were written as unsigned although they were.
    pub(super) values: Vec<i128>,
}

impl Numbers {
    /// Names of the events (`enum nfs_stat_eventcounters`); the last two came with pNFS.
    pub const EVENTS: &'static [&'static str] = &[
        "inode_revalidate",
        "dentry_revalidate",
        "data_invalidate",
        "attr_invalidate",
        "vfs_open",
        "vfs_lookup",
        "vfs_access",
        "vfs_update_page",
        "vfs_read_page",
        "vfs_read_pages",
        "vfs_write_page",
        "vfs_write_pages",
        "vfs_getdents",
        "vfs_setattr",
        "vfs_flush",
        "vfs_fsync",
        "vfs_lock",
        "vfs_release",
        "congestion_wait",
        "setattr_trunc",
        "extend_write",
        "silly_rename",
        "short_read",
        "short_write",
        "delay",
        "pnfs_read",
        "pnfs_write",
    ];

    /// Names of the bytes (`enum nfs_stat_bytecounters`).
    pub const BYTES: &'static [&'static str] = &[
        "normal_read",
        "normal_written",
        "direct_read",
        "direct_written",
        "server_read",
        "server_written",
        "pages_read",
        "pages_written",
    ];

    /// Names of the pages of FS-Cache.
    pub const CACHE: &'static [&'static str] =
        &["pages_read_ok", "pages_read_fail", "pages_written_ok", "pages_written_fail", "pages_uncached"];

    /// Names of a transport's numbers (`print_stats` of `struct rpc_xprt_ops`); none for kinds that are not known.
    /// Connect and idle time are in seconds since the last one.
    pub fn transport(kind: &str) -> &'static [&'static str] {
        match kind {
            "tcp" => &[
                "port",
                "binds",
                "connects",
                "connect_time",
                "idle_time",
                "sends",
                "receives",
                "bad_xids",
                "req_u",
                "backlog_u",
                "max_slots",
                "sending_u",
                "pending_u",
            ],
            "udp" => &[
                "port",
                "binds",
                "sends",
                "receives",
                "bad_xids",
                "req_u",
                "backlog_u",
                "max_slots",
                "sending_u",
                "pending_u",
            ],
            "local" => &[
                "binds",
                "connects",
                "connect_time",
                "idle_time",
                "sends",
                "receives",
                "bad_xids",
                "req_u",
                "backlog_u",
                "max_slots",
                "sending_u",
                "pending_u",
            ],
            "rdma" => &[
                "port",
                "binds",
                "connects",
                "connect_time",
                "idle_time",
                "sends",
                "receives",
                "bad_xids",
                "req_u",
                "backlog_u",
                "read_segments",
                "write_segments",
                "reply_segments",
                "total_rdma_req",
                "total_rdma_rep",
                "pullup",
                "fixup",
                "hardway",
                "failed_marshal",
                "bad_reply",
                "nomsg_calls",
                "mrs_recycled",
                "mrs_orphaned",
                "mrs_allocated",
                "local_invalidates",
                "empty_sendctx_q",
                "reply_waits_for_send",
            ],
            _ => &[],
        }
    }

    /// Numbers for all names, for clients of which the kernel has no file.
    pub fn named_by(names: &'static [&'static str], value: impl Fn(&str) -> u64) -> Self {
        Self { names, values: names.iter().map(|name| value(name).into()).collect() }
    }

    pub(super) fn new(names: &'static [&'static str], values: Vec<i128>) -> Self {
        Self { names, values }
    }

    /// A number by name; `None` where this kernel does not write it.
    pub fn get(&self, name: &str) -> Option<i128> {
        let at = self.names.iter().position(|other| *other == name)?;
        self.values.get(at).copied()
    }

    /// All of them in order, as written.
    pub fn values(&self) -> &[i128] {
        &self.values
    }

    /// Those with names.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, i128)> {
        self.names.iter().copied().zip(self.values.iter().copied())
    }

    /// Places of what is no count but a state now.
    pub(super) fn is_state(&self, at: usize) -> bool {
        matches!(self.names.get(at), Some(&("port" | "connect_time" | "idle_time" | "max_slots")))
    }
}
