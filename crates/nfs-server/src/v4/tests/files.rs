//! File handles, lookups, access, links.

use super::*;

#[test]
fn root_and_lookup_reach_a_file_in_every_minor_version() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        let ops = [Argop::Putrootfh, lookup("export"), lookup("file"), Argop::Getfh];
        let results = c.run(&ops);
        let Resop::Getfh(Ok(got)) = results.last() else { panic!("{results:?}") };
        assert_eq!(got.object.0, c.handle("/export/file"));
        assert_eq!(results.tag(), b"test");
    }
}
