//! Exactly-once semantics: tens of thousands of operations that must not be executed twice, over connections that break and
//! replies that get lost, end in the state that a model predicts, and each reports what the model says.

use std::collections::BTreeMap;

use crate::support::wire::{Wire, op, result};
use benchmaster_nfs_proto::mount;
use benchmaster_nfs_proto::v3::{self, DirOpArgs, Fh3, Nfsstat3, Proc3, Sattr3};
use benchmaster_nfs_proto::v4::{self, Nfsstat4, Opnum};
use benchmaster_nfs_proto::xdr::{Decoder, Opaque};
use benchmaster_nfs_server::{Server, ServerConfig};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const NAMES: u32 = 40;

fn server() -> Server {
    let rules = ["* drop-reply p=0.002", "* disconnect p=0.002", "* disconnect every=700ms"];
    Server::start(ServerConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        rules: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
        seed: 5,
        ..ServerConfig::default()
    })
    .unwrap()
}

/// What a directory should hold: whether each name is a directory.
#[derive(Debug, Default)]
struct Model(BTreeMap<String, bool>);

#[derive(Debug)]
enum Action {
    MakeDirectory(String),
    MakeFile(String),
    Remove(String),
    Rename(String, String),
}

/// Outcomes that all versions tell apart.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Outcome {
    Done,
    NotFound,
    Exists,
}

impl Action {
    fn draw(random: &mut ChaCha8Rng) -> Self {
        let mut name = || format!("name-{}", random.next_u32() % NAMES);
        let (a, b) = (name(), name());
        match random.next_u32() % 4 {
            0 => Self::MakeDirectory(a),
            1 => Self::MakeFile(a),
            2 => Self::Remove(a),
            _ => Self::Rename(a, b),
        }
    }
}

impl Model {
    /// Outcome and new state of an action.
    fn apply(&mut self, action: &Action) -> Outcome {
        match action {
            Action::MakeDirectory(name) | Action::MakeFile(name) => {
                if self.0.contains_key(name) {
                    return Outcome::Exists;
                }
                self.0.insert(name.clone(), matches!(action, Action::MakeDirectory(_)));
                Outcome::Done
            }
            Action::Remove(name) => self.0.remove(name).map_or(Outcome::NotFound, |_| Outcome::Done),
            Action::Rename(from, to) => {
                let Some(&directory) = self.0.get(from) else { return Outcome::NotFound };
                if from == to {
                    return Outcome::Done;
                }
                if self.0.get(to).is_some_and(|other| *other != directory) {
                    return Outcome::Exists;
                }
                self.0.remove(from);
                self.0.insert(to.clone(), directory);
                Outcome::Done
            }
        }
    }
}

/// Draws and performs `count` actions; every outcome must be the model's.
fn run(count: usize, seed: u64, mut perform: impl FnMut(&Action, &Model) -> Outcome) -> Model {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut model = Model::default();
    for n in 0..count {
        let action = Action::draw(&mut random);
        let outcome = perform(&action, &model);
        let expected = model.apply(&action);
        assert_eq!(outcome, expected, "action {n}: {action:?}");
    }
    model
}

fn mount_root(wire: &mut Wire) -> Vec<u8> {
    let reply = wire.call(mount::PROGRAM, 3, 1, |e| e.put(&Opaque::<1024>(b"/export")));
    let mut d = Decoder::new(&reply);
    assert_eq!(d.get::<u32>().unwrap(), 0);
    d.get::<Fh3<'_>>().unwrap().0.to_vec()
}

#[test]
fn v3_by_the_duplicate_request_cache() {
    let server = server();
    let mut wire = Wire::new(server.address(), "v3", 0);
    let root = mount_root(&mut wire);
    let outcome = |status: Nfsstat3| match status {
        Nfsstat3::OK => Outcome::Done,
        Nfsstat3::NOENT => Outcome::NotFound,
        Nfsstat3::EXIST | Nfsstat3::ISDIR | Nfsstat3::NOTDIR => Outcome::Exists,
        other => panic!("{other}"),
    };
    let at = |name: &str| -> (Vec<u8>, String) { (root.clone(), name.to_owned()) };
    let model = run(40_000, 1, |action, model| {
        let nfs = |wire: &mut Wire,
                   procedure: Proc3,
                   arguments: &dyn Fn(&mut benchmaster_nfs_proto::xdr::Encoder)| {
            let reply = wire.call(100_003, 3, procedure.0, arguments);
            outcome(Decoder::new(&reply).get().unwrap())
        };
        let place = |(dir, name): &(Vec<u8>, String), e: &mut benchmaster_nfs_proto::xdr::Encoder| {
            e.put(&DirOpArgs { dir: Opaque(dir), name: Opaque(name.as_bytes()) });
        };
        match action {
            Action::MakeDirectory(name) => nfs(&mut wire, Proc3::MKDIR, &|e| {
                place(&at(name), e);
                e.put(&Sattr3::NONE);
            }),
            Action::MakeFile(name) => nfs(&mut wire, Proc3::CREATE, &|e| {
                place(&at(name), e);
                e.put(&v3::CreateHow::Guarded(Sattr3::NONE));
            }),
            Action::Remove(name) => {
                let directory = model.0.get(name).copied().unwrap_or(false);
                let procedure = if directory { Proc3::RMDIR } else { Proc3::REMOVE };
                nfs(&mut wire, procedure, &|e| place(&at(name), e))
            }
            Action::Rename(from, to) => nfs(&mut wire, Proc3::RENAME, &|e| {
                place(&at(from), e);
                place(&at(to), e);
            }),
        }
    });
    let names = list_v3(&mut wire, &root);
    assert_eq!(names, model.0.keys().cloned().collect::<Vec<_>>());
    assert!(wire.retries > 40, "too little was lost: {}", wire.retries);
}

fn list_v3(wire: &mut Wire, root: &[u8]) -> Vec<String> {
    let reply = wire.call(100_003, 3, Proc3::READDIR.0, |e| {
        e.put(&v3::ReaddirArgs { dir: Opaque(root), cookie: 0, cookieverf: [0; 8], count: 65_536 });
    });
    let v3::Res::Ok(listing) = Decoder::new(&reply).get::<v3::ReaddirRes<'_>>().unwrap() else {
        panic!("{reply:?}")
    };
    let name = |entry: v3::Entry<'_>| String::from_utf8(entry.name.0.to_vec()).unwrap();
    let mut names: Vec<String> =
        listing.entries.iter().map(name).filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}

fn outcome4(status: Nfsstat4) -> Outcome {
    match status {
        Nfsstat4::OK => Outcome::Done,
        Nfsstat4::NOENT => Outcome::NotFound,
        Nfsstat4::EXIST | Nfsstat4::ISDIR | Nfsstat4::NOTDIR => Outcome::Exists,
        other => panic!("{other}"),
    }
}

fn into_export() -> Vec<Vec<u8>> {
    vec![op(Opnum::PUTROOTFH, ()), op(Opnum::LOOKUP, Opaque::<1024>(b"export"))]
}

fn create<'a>(name: &'a str, kind: v4::Createtype4<'a>) -> v4::CreateArgs<'a> {
    v4::CreateArgs {
        objtype: kind,
        objname: Opaque(name.as_bytes()),
        createattrs: v4::Fattr4 { attrmask: v4::Bitmap4::default(), attr_vals: Opaque(&[]) },
    }
}

/// The operations of an action in the export's root; files are made as FIFOs, which need no open state.
fn ops4(action: &Action) -> Vec<Vec<u8>> {
    let mut ops = into_export();
    match action {
        Action::MakeDirectory(name) => ops.push(op(Opnum::CREATE, create(name, v4::Createtype4::Dir))),
        Action::MakeFile(name) => ops.push(op(Opnum::CREATE, create(name, v4::Createtype4::Fifo))),
        Action::Remove(name) => ops.push(op(Opnum::REMOVE, Opaque::<1024>(name.as_bytes()))),
        Action::Rename(from, to) => {
            ops.push(op(Opnum::SAVEFH, ()));
            let names = v4::RenameArgs { oldname: from.as_bytes().into(), newname: to.as_bytes().into() };
            ops.push(op(Opnum::RENAME, names));
        }
    }
    ops
}

#[test]
fn v40_by_the_duplicate_request_cache() {
    let server = server();
    let mut wire = Wire::new(server.address(), "v40", 0);
    let model = run(30_000, 2, |action, _| outcome4(wire.compound(0, &ops4(action)).status()));
    let root = mount_root(&mut wire);
    assert_eq!(list_v3(&mut wire, &root), model.0.keys().cloned().collect::<Vec<_>>());
    assert!(wire.retries > 40, "too little was lost: {}", wire.retries);
}

#[test]
fn v41_by_the_slots_of_a_session() {
    let server = server();
    let mut wire = Wire::new(server.address(), "v41", 0);
    let session = open_session(&mut wire);
    let mut sequenceid = 0;
    let model = run(30_000, 3, |action, _| {
        sequenceid += 1;
        let sequence = v4::SequenceArgs {
            sessionid: session,
            sequenceid,
            slotid: 0,
            highest_slotid: 0,
            cachethis: true,
        };
        let mut ops = vec![op(Opnum::SEQUENCE, sequence)];
        ops.extend(ops4(action));
        outcome4(wire.compound(1, &ops).status())
    });
    let root = mount_root(&mut wire);
    assert_eq!(list_v3(&mut wire, &root), model.0.keys().cloned().collect::<Vec<_>>());
    assert!(wire.retries > 40, "too little was lost: {}", wire.retries);
}

fn open_session(wire: &mut Wire) -> [u8; 16] {
    let exchange = v4::ExchangeIdArgs {
        clientowner: v4::ClientOwner4 { verifier: [7; 8], ownerid: Opaque(b"exactly once") },
        flags: 0,
        state_protect: v4::StateProtect4A::None,
        client_impl_id: None,
    };
    let reply = wire.compound(1, &[op(Opnum::EXCHANGE_ID, exchange)]);
    let mut d = reply.ops();
    assert_eq!(result(&mut d, Opnum::EXCHANGE_ID), Nfsstat4::OK);
    let id: v4::ExchangeIdOk<'_> = d.get().unwrap();
    let channel = v4::ChannelAttrs4 {
        headerpadsize: 0,
        maxrequestsize: 65_536,
        maxresponsesize: 65_536,
        maxresponsesize_cached: 4096,
        maxoperations: 16,
        maxrequests: 4,
        rdma_ird: None,
    };
    let create = v4::CreateSessionArgs {
        clientid: id.clientid,
        sequence: id.sequenceid,
        flags: 0,
        fore_chan_attrs: channel,
        back_chan_attrs: channel,
        cb_program: 0x4000_0000,
        sec_parms: Default::default(),
    };
    let reply = wire.compound(1, &[op(Opnum::CREATE_SESSION, create)]);
    let mut d = reply.ops();
    assert_eq!(result(&mut d, Opnum::CREATE_SESSION), Nfsstat4::OK);
    d.get::<v4::CreateSessionOk>().unwrap().sessionid
}
