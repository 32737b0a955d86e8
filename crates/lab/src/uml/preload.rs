//! What is preloaded into user-mode Linux: on processors whose extended state is larger than its buffer `wide_state.c`, with
//! virtual time `same_random.c`, and where power is to be cut `disk_log.c`.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use crate::cache;

/// The buffer of user-mode Linux, in bytes: `HOST_FP_SIZE` of arch/x86/um/user-offsets.c, up to Linux 6.12.
const BUFFER: u32 = 2696;

/// The libraries to preload, as `LD_PRELOAD` has them; empty for none.
pub(super) fn preload(virtual_time: bool, disk_log: bool) -> io::Result<OsString> {
    let wanted = [
        (extended_state() > BUFFER, "wide-state", WIDE_STATE),
        (virtual_time, "same-random", SAME_RANDOM),
        (disk_log, "disk-log", DISK_LOG),
    ];
    let mut list = OsString::new();
    for (_, name, content) in wanted.into_iter().filter(|(wanted, ..)| *wanted) {
        if !list.is_empty() {
            list.push(":");
        }
        list.push(install(name, content)?);
    }
    Ok(list)
}

/// A library in the cache.
fn install(name: &str, content: &[u8]) -> io::Result<PathBuf> {
    let directory = cache::directory();
    let file = directory.join(format!("{name}-{}.so", cache::key(content)));
    if !file.exists() {
        fs::create_dir_all(&directory)?;
        let mut temporary = tempfile::NamedTempFile::new_in(&directory)?;
        temporary.write_all(content)?;
        temporary.persist(&file).map_err(|error| error.error)?;
    }
    Ok(file)
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
const WIDE_STATE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/wide_state.so"));
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
const SAME_RANDOM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/same_random.so"));
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
const DISK_LOG: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/disk_log.so"));

/// There is no user-mode Linux for others.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
const WIDE_STATE: &[u8] = &[];
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
const SAME_RANDOM: &[u8] = &[];
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
const DISK_LOG: &[u8] = &[];

/// Bytes of the extended state of a process, as XSAVE writes it with everything that this host has switched on: CPUID leaf 13.
#[cfg(target_arch = "x86_64")]
fn extended_state() -> u32 {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    match __cpuid(0).eax {
        0..13 => 0,
        _ => __cpuid_count(13, 0).ebx,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn extended_state() -> u32 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_with_tiles_have_a_large_state() {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap();
        assert_eq!(extended_state() > BUFFER, info.contains("amx_tile"), "{} bytes", extended_state());
    }
}
