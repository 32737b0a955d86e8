//! Findings from copies of mountstats.

use serde_json::Value;

use crate::place::{Place, snapshot, stderr, stdout, transcript};

/// A client whose calls wait for slots, of a server that asks to come again later.
const STATISTICS: &str = "\
device rootfs mounted on / with fstype rootfs
device filer:/export mounted on /mnt/data with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.1,rsize=1048576,wsize=1048576,namlen=255,acregmin=3,acregmax=60,acdirmin=30,acdirmax=60,hard,proto=tcp,timeo=600,retrans=2,sec=sys,clientaddr=10.0.0.11,local_lock=none,addr=10.0.0.1
\tage:\t7200
\tcaps:\tcaps=0xffbfff7,wtmult=512,dtsize=1048576,bsize=0,namlen=255
\tnfsv4:\tbm0=0xfdffbfff,bm1=0xf9be3e,bm2=0x68800,acl=0x0,sessions,pnfs=not configured,lease_time=90,lease_expired=0
\tsec:\tflavor=1,pseudoflavor=1
\tevents:\t1000 20000 30 40 4100 900 9000 0 0 4100 0 300 60 10 4100 10 0 4100 0 5 0 0 0 0 42 0 0
\tbytes:\t4294967296 104857600 0 0 4294967296 104857600 1048576 25600
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 812 1 1 0 2 21000 20980 0 190000 40 64 21000 609000
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t        READ: 16500 16500 0 3300000 4296967296 412500 33000 446000 0
\t       WRITE: 310 310 0 104957600 50000 310 1240 1600 0
\t      COMMIT: 20 20 0 4000 2000 1 210 212 0
\t        OPEN: 2100 2100 0 700000 800000 1050 4200 5300 0
\t       CLOSE: 2100 2100 0 500000 400000 1050 2100 3200 0
\t     GETATTR: 600 600 0 120000 144000 100 600 710 0
\t DELEGRETURN: 42 42 0 9000 8000 1 40 42 0
";

/// Written by this test; the place is gone with it.
fn place() -> Place {
    let place = Place::new();
    place.write("c1", STATISTICS);
    place
}

#[test]
fn findings_come_with_evidence_cost_and_remedy() {
    let place = place();
    let output = place.run(&["diagnose", "--mountstats", "c1"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    snapshot("diagnose", &place, &transcript(&output));
    let json = place.run(&["diagnose", "--mountstats", "c1", "--json"]);
    let json: Value = serde_json::from_str(&stdout(&json)).unwrap();
    let ids: Vec<&str> =
        json["findings"].as_array().unwrap().iter().map(|f| f["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["request-queue", "server-delay"]);
    assert_eq!(json["looked_at"][0], "c1, filer:/export on /mnt/data");
}

#[test]
fn two_copies_tell_of_the_time_between() {
    let place = place();
    place.write("before", STATISTICS);
    let quiet = STATISTICS.replace("age:\t7200", "age:\t7260").replace(
        "GETATTR: 600 600 0 120000 144000 100 600 710 0",
        "GETATTR: 650 650 0 130000 154000 105 650 765 0",
    );
    place.write("c1", &quiet);
    let output = place.run(&["diagnose", "--mountstats", "c1", "--before", "before"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("50 calls") && stdout(&output).contains("No findings: "),
        "{}",
        stdout(&output)
    );
    // The wrong way round.
    let output = place.run(&["diagnose", "--mountstats", "before", "--before", "c1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("mounted again"), "{}", stderr(&output));
}

#[test]
fn clients_are_compared() {
    let place = place();
    place.write("c2", &STATISTICS.replace("rsize=1048576", "rsize=65536"));
    let output = place.run(&["diagnose", "--mountstats", "c1", "c2"]);
    let text = stdout(&output).replace("\n   ", " ");
    assert!(text.contains("unequal-mounts (certain)"), "{text}");
    assert!(text.contains("c1 has rsize=1048576; c2 has rsize=65536"), "{text}");
}

#[test]
fn what_is_wrong_with_the_input_is_said() {
    let place = place();
    place.write("empty", "");
    place.write("other", "device x mounted on y with fstype nfs4 statvers=1.1\n\tage:\tnever\n");
    let wrong = |arguments: &[&str], words: &str| {
        let output = place.run(&[&["diagnose"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
    };
    wrong(&[], "--mountstats");
    wrong(&["--mountstats", "nowhere"], "cannot read nowhere");
    wrong(&["--mountstats", "empty"], "there is no NFS mount in what was given");
    wrong(&["--mountstats", "other"], "other is not a copy of mountstats: line 2: `never` is not a number");
    wrong(&["--mountstats", "c1", "--before", "c1", "c1"], "2 earlier copies were given for 1 client;");
    wrong(&["--explain", "x"], "no finding is called `x`; `benchmaster diagnose --explain all` lists");
}

#[test]
fn every_finding_is_explained() {
    let place = Place::new();
    let list = stdout(&place.run(&["diagnose", "--explain", "all"]));
    assert!(list.lines().count() >= 19, "{list}");
    for line in list.lines() {
        let id = line.split_whitespace().next().unwrap();
        let text = stdout(&place.run(&["diagnose", "--explain", id]));
        assert!(text.starts_with(&format!("{id}: ")) && text.contains("\nSOURCE\n"), "{text}");
    }
}
