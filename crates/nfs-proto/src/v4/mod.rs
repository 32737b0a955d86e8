//! NFS version 4
