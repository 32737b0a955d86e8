//! GETATTR, SETATTR, VERIFY, NVERIFY.

use benchmaster_nfs_proto::xdr::Opaque;

use super::*;

fn get(c: &mut Client<'_>, path: &str, bits: &[u32]) -> Results {
    c.run_at(path, &[getattr(bits)])
}

#[test]
fn every_supported_attribute_is_returned_and_no_other() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        let results = get(&mut c, "/export/file", &[fattr4::SUPPORTED_ATTRS]);
        let supported = attributes(&results).supported_attrs.unwrap();
        // REQUIRED of every server (RFC 7530 §5.6).
        let required = Bitmap4::of(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 19]);
        assert!(required.is_subset(&supported));
        let limit = [V40_ATTRS, V41_ATTRS, KNOWN_ATTRS][c.minor as usize];
        assert!(supported.is_subset(&limit));
        assert_eq!(supported.contains(fattr4::SUPPATTR_EXCLCREAT), c.minor > 0);
        assert_eq!(supported.contains(fattr4::XATTR_SUPPORT), c.minor > 1);
        let readable = supported & !WRITE_ONLY_ATTRS;
        let all: Vec<u32> = (0..87).filter(|bit| !WRITE_ONLY_ATTRS.contains(*bit)).collect();
        for path in ["/", "/export", "/export/file", "/export/dir", "/export/link", "/export/block"] {
            let results = get(&mut c, path, &all);
            assert_eq!(attributes(&results).mask(), readable, "{path}");
            for bit in readable.iter() {
                let results = get(&mut c, path, &[bit]);
                assert_eq!(attributes(&results).mask(), Bitmap4::of(&[bit]), "{path}");
            }
        }
        assert_eq!(attributes(&get(&mut c, "/export", &[])).mask(), Bitmap4::EMPTY);
        for bit in (supported & WRITE_ONLY_ATTRS).iter() {
            assert_eq!(get(&mut c, "/export/file", &[bit, 1]).status(), Nfsstat4::INVAL, "{bit}");
        }
    }
}

#[test]
fn values_are_those_of_the_file() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        let id = c.id("/export/file");
        let handle = c.handle("/export/file");
        let (fs, node) = server.exports.file(id).unwrap();
        let attr = fs.attr(node).unwrap();
        let all: Vec<u32> = (0..83).filter(|bit| !WRITE_ONLY_ATTRS.contains(*bit)).collect();
        let results = get(&mut c, "/export/file", &all);
        let got = attributes(&results);
        assert_eq!(got.file_type, Some(Ftype4::Reg));
        assert_eq!((got.size, got.change, got.fileid), (Some(13), Some(attr.change), Some(id.ino)));
        assert_eq!((got.mode, got.numlinks), (Some(0o644), Some(attr.nlink)));
        assert_eq!((got.owner.unwrap().0, got.owner_group.unwrap().0), (&b"0"[..], &b"0"[..]));
        assert_eq!(got.filehandle.unwrap().0, handle);
        assert_eq!(got.rdattr_error, Some(Nfsstat4::OK));
        assert_eq!((got.lease_time, got.maxread, got.maxwrite), (Some(90), Some(1 << 20), Some(1 << 20)));
        assert_eq!((got.maxname, got.aclsupport, got.named_attr), (Some(255), Some(3), Some(false)));
        assert_eq!(got.mounted_on_fileid, got.fileid);
        assert_eq!(got.time_delta, Some(Nfstime4 { seconds: 0, nseconds: 1 }));
        assert_eq!(got.time_modify.unwrap().seconds, attr.mtime.seconds);
        let stat = fs.stat();
        assert_eq!((got.space_total, got.space_avail), (Some(stat.total_bytes), Some(stat.free_bytes)));
        assert_eq!((got.files_total, got.files_free), (Some(stat.total_files), Some(stat.free_files)));
        let locations = got.fs_locations.unwrap();
        let path: Vec<_> = locations.fs_root.iter().map(|name| name.0).collect();
        assert_eq!(path, [b"export"]);
        assert!(locations.locations.is_empty());
        if c.minor > 0 {
            let exclusive = got.suppattr_exclcreat.unwrap();
            assert!(exclusive.contains(fattr4::MODE) && !exclusive.contains(fattr4::TYPE));
            assert_eq!(got.fs_charset_cap, Some(FS_CHARSET_CAP_ALLOWS_ONLY_UTF8));
        }
        if c.minor > 1 {
            assert_eq!((got.clone_blksize, got.xattr_support), (Some(1), Some(true)));
            assert_eq!(got.change_attr_type, Some(ChangeAttrType4::MonotonicIncr));
        }
    }
}

fn set(c: &mut Client<'_>, path: &str, attrs: &Attrs) -> SetattrRes {
    let results = c.run_at(path, &[setattr(attrs)]);
    let Resop::Setattr(result) = results.last() else { panic!("{results:?}") };
    result
}

#[test]
fn setattr_sets_what_can_be_set_and_says_so() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        let then = Nfstime4 { seconds: -5, nseconds: 999_999_999 };
        let attrs = Attrs::none()
            .with(fattr4::MODE, &0o4755u32)
            .with(fattr4::OWNER, &Opaque::<{ u32::MAX }>(b"4294967294"))
            .with(fattr4::OWNER_GROUP, &Opaque::<{ u32::MAX }>(b"10"))
            .with(fattr4::TIME_ACCESS_SET, &Settime4::ClientTime(then))
            .with(fattr4::TIME_CREATE, &Nfstime4 { seconds: 1, nseconds: 2 })
            .with(fattr4::TIME_MODIFY_SET, &Settime4::ServerTime);
        let before = attributes(&get(&mut c, "/export/dir", &[fattr4::CHANGE])).change;
        let result = set(&mut c, "/export/dir", &attrs);
        assert_eq!(result, SetattrRes { status: Nfsstat4::OK, attrsset: attrs.get().attrmask });
        let results = get(&mut c, "/export/dir", &[3, 33, 36, 37, 47, 50, 53]);
        let got = attributes(&results);
        assert!(got.change > before);
        assert_eq!(got.mode, Some(0o4755));
        assert_eq!((got.owner.unwrap().0, got.owner_group.unwrap().0), (&b"4294967294"[..], &b"10"[..]));
        assert_eq!(got.time_access, Some(then));
        assert_eq!(got.time_create, Some(Nfstime4 { seconds: 1, nseconds: 2 }));
        assert_eq!(got.time_modify.unwrap().seconds, c.now.wall.seconds);
        // Nothing to set is no error.
        let result = set(&mut c, "/export/dir", &Attrs::none());
        assert_eq!(result, SetattrRes { status: Nfsstat4::OK, attrsset: Bitmap4::EMPTY });
    }
}

#[test]
fn setattr_has_its_errors_and_then_sets_nothing() {
    let server = populated();
    let name = |text: &'static [u8]| Opaque::<{ u32::MAX }>(text);
    for mut c in of_every_minor(&server) {
        let before = attributes(&get(&mut c, "/export/dir", &[3])).change;
        let with_mode = || Attrs::none().with(fattr4::MODE, &0o700u32);
        let too_fine = Nfstime4 { seconds: 0, nseconds: 1_000_000_000 };
        for (attrs, status) in [
            (Attrs::none().with(fattr4::TYPE, &2u32), Nfsstat4::INVAL),
            (Attrs::none().with(fattr4::CHANGE, &2u64), Nfsstat4::INVAL),
            (Attrs::none().with(fattr4::RDATTR_ERROR, &0u32), Nfsstat4::INVAL),
            (Attrs::none().with(fattr4::TIME_METADATA, &Nfstime4::default()), Nfsstat4::INVAL),
            (Attrs::none().with(fattr4::ARCHIVE, &true), Nfsstat4::ATTRNOTSUPP),
            (Attrs::none().with(fattr4::MODE, &0o10_000u32), Nfsstat4::INVAL),
            (with_mode().with(fattr4::OWNER, &name(b"")), Nfsstat4::INVAL),
            (with_mode().with(fattr4::OWNER, &name(b"\xff")), Nfsstat4::INVAL),
            (with_mode().with(fattr4::OWNER, &name(b"root")), Nfsstat4::BADOWNER),
            (with_mode().with(fattr4::OWNER, &name(b"-1")), Nfsstat4::BADOWNER),
            (with_mode().with(fattr4::OWNER, &name(b"+1")), Nfsstat4::BADOWNER),
            (with_mode().with(fattr4::OWNER, &name(b"01")), Nfsstat4::BADOWNER),
            (with_mode().with(fattr4::OWNER, &name(b"4294967295")), Nfsstat4::BADOWNER),
            (with_mode().with(fattr4::OWNER_GROUP, &name(b"4294967296")), Nfsstat4::BADOWNER),
            (with_mode().with(fattr4::OWNER_GROUP, &name(b"0@domain")), Nfsstat4::BADOWNER),
            (with_mode().with(fattr4::TIME_ACCESS_SET, &Settime4::ClientTime(too_fine)), Nfsstat4::INVAL),
            (with_mode().with(fattr4::TIME_CREATE, &too_fine), Nfsstat4::INVAL),
            (with_mode().with(fattr4::TIME_MODIFY_SET, &2u32), Nfsstat4::BADXDR),
            (Attrs::none().with(fattr4::MODE, &[0u8; 8]), Nfsstat4::BADXDR),
        ] {
            let result = set(&mut c, "/export/dir", &attrs);
            assert_eq!(result, SetattrRes { status, attrsset: Bitmap4::EMPTY }, "{:?}", attrs.get());
        }
        // A mask that promises more than there is; bits beyond all that is known.
        let short = Fattr4 { attrmask: Bitmap4::of(&[fattr4::MODE]), attr_vals: (&[][..]).into() };
        let args =
            |obj_attributes| Argop::Setattr(SetattrArgs { stateid: Stateid4::ANONYMOUS, obj_attributes });
        assert_eq!(c.run_at("/export/dir", &[args(short)]).status(), Nfsstat4::BADXDR);
        let unknown = Fattr4 { attrmask: Bitmap4::of(&[95]), attr_vals: (&[][..]).into() };
        assert_eq!(c.run_at("/export/dir", &[args(unknown)]).status(), Nfsstat4::ATTRNOTSUPP);
        assert_eq!(c.run(&[setattr(&Attrs::none())]).status(), Nfsstat4::NOFILEHANDLE);
        assert_eq!(set(&mut c, "/frozen", &with_mode()).status, Nfsstat4::ROFS);
        c.who = user(1000);
        assert_eq!(set(&mut c, "/export/dir", &with_mode()).status, Nfsstat4::PERM);
        c.who = user(0);
        assert_eq!(attributes(&get(&mut c, "/export/dir", &[3])).change, before);
    }
}

#[test]
fn the_size_of_files_only_can_be_set() {
    let server = populated();
    let size = |size: u64| Attrs::none().with(fattr4::SIZE, &size);
    for mut c in of_every_minor(&server) {
        let wrong = if c.minor == 0 { Nfsstat4::INVAL } else { Nfsstat4::WRONG_TYPE };
        let of_dir = if c.minor == 0 { Nfsstat4::ISDIR } else { Nfsstat4::WRONG_TYPE };
        assert_eq!(set(&mut c, "/export/dir", &size(0)).status, of_dir);
        assert_eq!(set(&mut c, "/export/link", &size(0)).status, wrong);
        assert_eq!(set(&mut c, "/export/fifo", &size(0)).status, wrong);
        assert_eq!(set(&mut c, "/export/file", &size(u64::MAX)).status, Nfsstat4::FBIG);
        for bytes in [5, 1 << 40, 0] {
            assert_eq!(set(&mut c, "/export/file", &size(bytes)).status, Nfsstat4::OK);
            assert_eq!(attributes(&get(&mut c, "/export/file", &[4])).size, Some(bytes));
        }
        c.who = user(1000);
        assert_eq!(set(&mut c, "/export/file", &size(0)).status, Nfsstat4::ACCESS);
    }
}

#[test]
fn modes_can_be_set_by_mask_and_with_an_umask() {
    let server = populated();
    for minor in [1, 2] {
        let mut c = Client::with_session(&server, minor, 9);
        let mode = |c: &mut Client<'_>, path: &str| attributes(&get(c, path, &[33])).mode.unwrap();
        let masked = |value_to_set, mask_bits| {
            Attrs::none().with(fattr4::MODE_SET_MASKED, &ModeMasked4 { value_to_set, mask_bits })
        };
        let plain = Attrs::none().with(fattr4::MODE, &0o640u32);
        assert_eq!(set(&mut c, "/export/dir", &plain).status, Nfsstat4::OK);
        assert_eq!(set(&mut c, "/export/dir", &masked(0o005, 0o007)).status, Nfsstat4::OK);
        assert_eq!(mode(&mut c, "/export/dir"), 0o645);
        assert_eq!(set(&mut c, "/export/dir", &masked(0o10, 0o07)).status, Nfsstat4::INVAL);
        let both = Attrs::none().with(fattr4::MODE, &0o640u32);
        let both = both.with(fattr4::MODE_SET_MASKED, &ModeMasked4 { value_to_set: 0, mask_bits: 7 });
        assert_eq!(set(&mut c, "/export/dir", &both).status, Nfsstat4::INVAL);
        let umask = Attrs::none().with(fattr4::MODE_UMASK, &ModeUmask4 { mode: 0o777, umask: 0o027 });
        let name = format!("umask {minor}");
        let args =
            CreateArgs { objtype: Createtype4::Dir, objname: name.as_str().into(), createattrs: umask.get() };
        let made = c.run_at("/export", &[Argop::Create(args)]).status();
        if minor == 1 {
            assert_eq!(made, Nfsstat4::ATTRNOTSUPP);
        } else {
            assert_eq!(made, Nfsstat4::OK);
            assert_eq!(mode(&mut c, &format!("/export/{name}")), 0o750);
            assert_eq!(set(&mut c, "/export/dir", &umask).status, Nfsstat4::INVAL);
            let objtype = Createtype4::Lnk("target".into());
            let args = CreateArgs { objtype, objname: "masked link".into(), createattrs: umask.get() };
            assert_eq!(c.run_at("/export", &[Argop::Create(args)]).status(), Nfsstat4::OK);
            assert_eq!(mode(&mut c, "/export/masked link"), 0o777);
        }
    }
}

#[test]
fn acls_are_modes_in_another_form() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        let ace = |ace_type, access_mask, who: &'static str| Nfsace4 {
            ace_type,
            flag: 0,
            access_mask,
            who: who.into(),
        };
        let aces = [
            ace(Acetype4::ACCESS_DENIED, ACE_WRITE_DATA, "GROUP@"),
            ace(Acetype4::ACCESS_ALLOWED, ACE_READ_DATA | ACE_WRITE_DATA | ACE_APPEND_DATA, "EVERYONE@"),
        ];
        let acl = benchmaster_nfs_proto::xdr::List::<Nfsace4<'_>>::Items(&aces);
        let attrs = Attrs::none().with(fattr4::ACL, &acl).with(fattr4::MODE, &0o2777u32);
        let result = set(&mut c, "/export/dir", &attrs);
        assert_eq!(result, SetattrRes { status: Nfsstat4::OK, attrsset: attrs.get().attrmask });
        let results = get(&mut c, "/export/dir", &[fattr4::ACL, fattr4::MODE]);
        let got = attributes(&results);
        assert_eq!(got.mode, Some(0o2646));
        let again = Attrs::none().with(fattr4::ACL, &got.acl.unwrap());
        assert_eq!(set(&mut c, "/export/dir", &again).status, Nfsstat4::OK);
        assert_eq!(attributes(&get(&mut c, "/export/dir", &[fattr4::MODE])).mode, Some(0o2646));
        let many: Vec<String> = (0..20).map(|uid| uid.to_string()).collect();
        let aces: Vec<_> = many
            .iter()
            .map(|who| Nfsace4 {
                ace_type: Acetype4::ACCESS_ALLOWED,
                flag: 0,
                access_mask: 0,
                who: who.as_str().into(),
            })
            .collect();
        let acl = benchmaster_nfs_proto::xdr::List::<Nfsace4<'_>>::Items(&aces);
        let result = set(&mut c, "/export/dir", &Attrs::none().with(fattr4::ACL, &acl));
        assert_eq!(result.status, Nfsstat4::OK);
    }
}

fn verify(obj_attributes: Fattr4<'_>) -> Argop<'_> {
    Argop::Verify(VerifyArgs { obj_attributes })
}

fn nverify(obj_attributes: Fattr4<'_>) -> Argop<'_> {
    Argop::Nverify(VerifyArgs { obj_attributes })
}

#[test]
fn verify_and_nverify_compare() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        let results = get(&mut c, "/export/file", &[0, 1, 3, 4, 8, 19, 33, 36, 42, 53]);
        let Resop::Getattr(Ok(got)) = results.last() else { panic!("{results:?}") };
        let mut both = |attrs: Fattr4<'_>| {
            let status = |op| c.run_at("/export/file", &[op, Argop::Getfh]);
            let [verified, differed] = [verify(attrs), nverify(attrs)].map(status);
            (verified.status(), differed.status())
        };
        assert_eq!(both(got.obj_attributes), (Nfsstat4::OK, Nfsstat4::SAME));
        let other = Attrs::none().with(fattr4::TYPE, &1u32).with(fattr4::SIZE, &14u64);
        assert_eq!(both(other.get()), (Nfsstat4::NOT_SAME, Nfsstat4::OK));
        for (attrs, status) in [
            (Attrs::none().with(fattr4::RDATTR_ERROR, &0u32), Nfsstat4::INVAL),
            (Attrs::none().with(fattr4::TIME_MODIFY_SET, &0u32), Nfsstat4::INVAL),
            (Attrs::none().with(fattr4::MODE, &0o20_000u32), Nfsstat4::INVAL),
            (Attrs::none().with(fattr4::SYSTEM, &false), Nfsstat4::ATTRNOTSUPP),
            (Attrs::none().with(fattr4::SIZE, &13u32), Nfsstat4::BADXDR),
        ] {
            assert_eq!(both(attrs.get()), (status, status), "{:?}", attrs.get());
        }
        assert_eq!(c.run(&[verify(other.get())]).status(), Nfsstat4::NOFILEHANDLE);
        assert_eq!(c.run(&[nverify(other.get())]).status(), Nfsstat4::NOFILEHANDLE);
    }
}
