//! The dynamic linker's cache, `/etc/ld.so.cache`: without it each program that starts looks for each of its libraries in some sixty
//! directories, which costs a guest of user-mode Linux more than the rest of its start.
//!
//! The form is that of glibc 2.2 and later: a header, entries in falling order of names, and strings.

use std::cmp::Ordering;

const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
/// Bytes before the first entry, and of an entry.
const HEADER: usize = 48;
const ENTRY: usize = 24;
/// Numbers are little-endian.
const LITTLE_ENDIAN: u8 = 2;
/// A library for glibc on x86-64.
const LIBRARY: u32 = 0x0303;

/// The cache of libraries, given by their paths in guests.
pub(super) fn cache<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<u8> {
    let mut found: Vec<(&str, &str)> =
        paths.filter_map(|path| Some((path.rsplit_once('/')?.1, path))).collect();
    found.sort_by(|(one, _), (other, _)| order(other.as_bytes(), one.as_bytes()));
    let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes();
    let (mut entries, mut strings) = (Vec::new(), Vec::new());
    let begin = HEADER + found.len() * ENTRY;
    for (name, path) in &found {
        // The name is the end of the path.
        let value = begin + strings.len();
        let key = value + path.len() - name.len();
        strings.extend(path.bytes().chain([0]));
        entries.extend(LIBRARY.to_le_bytes());
        entries.extend(number(key).into_iter().chain(number(value)));
        // No version of a kernel and no processor is asked for.
        entries.extend([0; 12]);
    }
    let mut cache = MAGIC.to_vec();
    cache.extend(number(found.len()).into_iter().chain(number(strings.len())));
    cache.push(LITTLE_ENDIAN);
    cache.resize(HEADER, 0);
    cache.extend(entries.into_iter().chain(strings));
    cache
}

/// As the linker orders names: digits are numbers, and come after all else.
fn order(mut one: &[u8], mut other: &[u8]) -> Ordering {
    loop {
        match (one.first(), other.first()) {
            (Some(first), Some(second)) if first.is_ascii_digit() && second.is_ascii_digit() => {
                let (a, b);
                (a, one) = digits(one);
                (b, other) = digits(other);
                if a != b {
                    return a.cmp(&b);
                }
            }
            (Some(first), Some(second)) => {
                let of = |byte: &u8| (byte.is_ascii_digit(), *byte);
                if first != second {
                    return of(first).cmp(&of(second));
                }
                (one, other) = (&one[1..], &other[1..]);
            }
            (first, second) => return first.cmp(&second),
        }
    }
}

/// The number at the front, and what follows it.
fn digits(text: &[u8]) -> (u64, &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let value = |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    (text[..end].iter().fold(0, value), &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ordered_as_the_linker_does() {
        let falls = ["libz.so.1", "libc.so.10", "libc.so.6", "libc.so", "libc-2.so", "ld.so"];
        for pair in falls.windows(2) {
            assert_eq!(order(pair[0].as_bytes(), pair[1].as_bytes()), Ordering::Greater, "{pair:?}");
        }
        assert_eq!(order(b"libm.so.6", b"libm.so.6"), Ordering::Equal);
        assert_eq!(order(b"lib1", b"liba"), Ordering::Greater, "digits follow letters");
    }

    /// `ldconfig -p` reads it where there is one.
    #[test]
    fn the_system_reads_the_cache() {
        let temporary = tempfile::tempdir().unwrap();
        let file = temporary.path().join("ld.so.cache");
        let libraries = ["/lib/libc.so.6", "/lib/libtirpc.so.3", "/lib/libm.so.6"];
        std::fs::write(&file, cache(libraries.into_iter())).unwrap();
        let program = ["/sbin/ldconfig", "/usr/sbin/ldconfig"]
            .into_iter()
            .find(|path| std::path::Path::new(path).exists());
        let Some(program) = program else {
            println!("skipped: there is no ldconfig here");
            return;
        };
        let output = std::process::Command::new(program).arg("-C").arg(&file).arg("-p").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.starts_with("3 libs found"), "{said}");
        for library in libraries {
            let name = library.rsplit('/').next().unwrap();
            assert!(said.contains(&format!("{name} (libc6,x86-64) => {library}\n")), "{said}");
        }
    }
}
