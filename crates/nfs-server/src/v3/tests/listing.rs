use std::collections::BTreeMap;

use super::*;

/// One READDIR: names with their numbers and cookies, the verifier, and whether the end was reached.
type Page = (Vec<(String, u64, u64)>, [u8; 8], bool);

fn readdir(
    caller: &mut Caller<'_>,
    dir: &[u8],
    (cookie, cookieverf): (u64, [u8; 8]),
    count: u32,
) -> Result<Page, Nfsstat3> {
    let results = caller.v3(Proc3::READDIR, &ReaddirArgs { dir: dir.into(), cookie, cookieverf, count });
    let ok = decode::<ReaddirRes<'_>>(&results).ok()?;
    // The status is not counted.
    assert!(results.len() <= 4 + count as usize, "{} bytes where {count} were allowed", results.len());
    let name = |entry: Entry<'_>| String::from_utf8(entry.name.0.to_vec()).unwrap();
    let entries = ok.entries.iter().map(|entry| (name(entry), entry.fileid, entry.cookie)).collect();
    Ok((entries, ok.cookieverf, ok.eof))
}

#[test]
fn a_directory_in_pages_of_any_size() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    let sub = caller.mkdir(&dir, "d", 0o755).unwrap();
    let mut expected = BTreeMap::from([
        (".".to_owned(), caller.getattr(&sub).unwrap().fileid),
        ("..".to_owned(), caller.getattr(&dir).unwrap().fileid),
    ]);
    for n in 0..300 {
        let name = format!("{}{n}", "x".repeat(n % 50));
        let file = caller.file(&sub, &name);
        expected.insert(name, caller.getattr(&file).unwrap().fileid);
    }
    for count in [200, 1000, 65_536] {
        let (mut seen, mut at) = (BTreeMap::new(), (0, [0; 8]));
        loop {
            let (entries, verifier, eof) = readdir(&mut caller, &sub, at, count).unwrap();
            assert!(eof || !entries.is_empty());
            for (name, fileid, cookie) in entries {
                assert_eq!(seen.insert(name.clone(), fileid), None, "{name} is listed twice");
                at = (cookie, verifier);
            }
            if eof {
                break;
            }
        }
        assert_eq!(seen, expected, "count {count}");
    }
    assert_eq!(readdir(&mut caller, &sub, (0, [0; 8]), 100), Err(Nfsstat3::TOOSMALL));
    assert_eq!(readdir(&mut caller, &sub, (0, [0; 8]), 110), Err(Nfsstat3::TOOSMALL));
    assert_eq!(readdir(&mut caller, &sub, (0, [0; 8]), 104 + 4 + 8 + 8 + 8).unwrap().0.len(), 1);
}

#[test]
fn cookies_outlive_changes_and_are_verified() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    for n in 0..100 {
        caller.file(&dir, &format!("f{n}"));
    }
    let (first, verifier, eof) = readdir(&mut caller, &dir, (0, [0; 8]), 1000).unwrap();
    assert!(!eof);
    let at = (first.last().unwrap().2, verifier);
    // Every file that was not removed is seen, and those seen before are not seen again.
    for n in (0..100).step_by(3) {
        caller.remove(Proc3::REMOVE, &dir, &format!("f{n}"));
    }
    let (rest, ..) = readdir(&mut caller, &dir, at, 65_536).unwrap();
    let names: Vec<&String> = first.iter().chain(&rest).map(|(name, ..)| name).collect();
    for n in (0..100).filter(|n| n % 3 != 0) {
        let name = format!("f{n}");
        assert_eq!(names.iter().filter(|other| ***other == name).count(), 1, "{name}");
    }
    let wrong = verifier.map(|byte| !byte);
    assert_eq!(readdir(&mut caller, &dir, (at.0, wrong), 1000), Err(Nfsstat3::BAD_COOKIE));
    // At the start there is nothing to verify.
    assert!(readdir(&mut caller, &dir, (0, wrong), 1000).is_ok());
    let file = caller.lookup(&dir, "f1").unwrap();
    assert_eq!(readdir(&mut caller, &file, (0, [0; 8]), 1000), Err(Nfsstat3::NOTDIR));
    let hidden = caller.mkdir(&dir, "hidden", 0o700).unwrap();
    let mut other = Caller::new(&server, 1000);
    assert_eq!(readdir(&mut other, &hidden, (0, [0; 8]), 1000), Err(Nfsstat3::ACCES));
}

#[test]
fn listing_with_attributes_and_handles() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    let handles: BTreeMap<String, Handle> =
        (0..20).map(|n| format!("f{n}")).map(|name| (name.clone(), caller.file(&dir, &name))).collect();
    let args = |dircount, maxcount| ReaddirplusArgs {
        dir: dir[..].into(),
        cookie: 0,
        cookieverf: [0; 8],
        dircount,
        maxcount,
    };
    let results = caller.v3(Proc3::READDIRPLUS, &args(65_536, 65_536));
    let ok = decode::<ReaddirplusRes<'_>>(&results).ok().unwrap();
    assert!(ok.eof);
    let mut found = 0;
    for entry in ok.entries.iter() {
        let (attr, handle) = (entry.name_attributes.unwrap(), entry.name_handle.unwrap().0);
        let name = std::str::from_utf8(entry.name.0).unwrap();
        assert_eq!(caller.getattr(handle).unwrap().fileid, attr.fileid);
        if let Some(known) = handles.get(name) {
            assert_eq!((known.as_slice(), entry.fileid), (handle, attr.fileid));
            found += 1;
        } else {
            assert!(matches!(name, "." | ".."), "{name}");
            assert_eq!(attr.ftype, Ftype3::Dir);
        }
    }
    assert_eq!(found, handles.len());
    // `dircount` bounds names, numbers and cookies: 24 bytes each here; `maxcount` the whole.
    for (dircount, maxcount, most) in [(72, 65_536, 3), (0, 65_536, 1), (65_536, 600, 3)] {
        let results = caller.v3(Proc3::READDIRPLUS, &args(dircount, maxcount));
        let ok = decode::<ReaddirplusRes<'_>>(&results).ok().unwrap();
        assert_eq!(ok.entries.iter().count(), most, "{dircount} {maxcount}");
        assert!(!ok.eof && results.len() <= 4 + maxcount as usize);
    }
}
