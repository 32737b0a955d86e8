//! In-memory NFS server.
