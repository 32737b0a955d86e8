//! Network namespaces of the kernel's. Without the right to make one the tests are skipped, unless
//! `BENCHMASTER_REQUIRE_NAMESPACES=1`.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::Command;

use benchmaster_netem::namespace::{
    MacAddress, Namespace, NamespaceError, Privilege, capabilities, privilege,
};

/// Whether the test cannot be done here.
fn skipped() -> bool {
    match privilege() {
        Privilege::Direct => false,
        other => {
            assert_ne!(std::env::var("BENCHMASTER_REQUIRE_NAMESPACES").as_deref(), Ok("1"), "{other:?}");
            eprintln!("skipped: no network namespaces: {other:?}");
            true
        }
    }
}

/// What `ip` and others see of a namespace.
fn inode(namespace: &impl AsFd) -> u64 {
    rustix::fs::fstat(namespace).unwrap().st_ino
}

fn here() -> u64 {
    inode(&Namespace::current().unwrap())
}

#[test]
#[ignore = "full tier: network namespaces"]
fn connections_stay_in_their_namespace() {
    if skipped() {
        return;
    }
    let [a, b] = [Namespace::new().unwrap(), Namespace::new().unwrap()];
    let listener = a.run(|| TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    assert!(a.run(|| TcpStream::connect(address)).unwrap().is_ok());
    assert!(b.run(|| TcpStream::connect(address)).unwrap().is_err());
}

#[test]
#[ignore = "full tier: network namespaces"]
fn threads_and_commands_start_in_it_and_the_caller_stays_where_it_is() {
    if skipped() {
        return;
    }
    let before = here();
    let namespace = Namespace::new().unwrap();
    assert_ne!(inode(&namespace), before);
    let (inside, child) = namespace.run(|| (here(), std::thread::spawn(here).join().unwrap())).unwrap();
    assert_eq!((inside, child), (inode(&namespace), inode(&namespace)));
    let mut command = Command::new("readlink");
    command.arg("/proc/self/ns/net");
    namespace.apply(&mut command).unwrap();
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), format!("net:[{}]", inode(&namespace)));
    assert_eq!(here(), before);
    assert_eq!(std::fs::metadata(namespace.path()).map(|_| ()).unwrap(), ());
}

#[test]
#[ignore = "full tier: network namespaces"]
fn interfaces_that_are_not_there_are_named() {
    if skipped() {
        return;
    }
    let namespace = Namespace::new().unwrap();
    let interfaces = namespace.interfaces().unwrap();
    let mac = MacAddress([2, 0, 0, 0, 0, 1]);
    let address = Ipv4Addr::new(10, 77, 0, 1);
    let errors = [
        interfaces.up("bm9").unwrap_err(),
        interfaces.set_address("bm9", address, 16).unwrap_err(),
        interfaces.set_mtu("bm9", 1500).unwrap_err(),
        interfaces.set_queue_length("bm9", 100).unwrap_err(),
        interfaces.set_mac("bm9", mac).unwrap_err(),
        interfaces.add_neighbour("bm9", address, mac).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(&error, NamespaceError::Interface { name, .. } if name == "bm9"), "{error}");
        assert!(error.to_string().contains("`bm9`"), "{error}");
    }
    assert!(interfaces.up("a name that is too long").is_err());
    assert!(interfaces.up("").is_err());
}

#[test]
#[ignore = "full tier: network namespaces"]
fn a_panic_inside_is_one_outside() {
    if skipped() {
        return;
    }
    let namespace = Namespace::new().unwrap();
    let run = std::panic::catch_unwind(|| namespace.run(|| panic!("inside")));
    assert_eq!(*run.unwrap_err().downcast_ref::<&str>().unwrap(), "inside");
}

#[test]
#[ignore = "full tier: network namespaces"]
fn what_cannot_be_used_has_a_reason() {
    let found = capabilities();
    for (means, result) in [("netem", &found.netem), ("wire", &found.wire)] {
        if let Err(reason) = result {
            assert!(reason.len() > 20, "{means}: {reason}");
        }
    }
    if !skipped() && std::path::Path::new("/dev/net/tun").exists() {
        assert_eq!(found.wire, Ok(()));
    }
    eprintln!("{found:?}");
}
