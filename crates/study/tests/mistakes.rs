//! What the author of a study file is told about each kind of mistake.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use benchmaster_study::diagnostics::Diagnostics;
use benchmaster_study::file::StudyFile;
use benchmaster_study::plan::Plan;

/// A study without mistakes; each case changes something.
const GOOD: &str = r#"[study]
name = "wan"
seed = 7

[target]
path = "/mnt/nfs"

[run]
cache = "fadvise"

[factors.io_size]
parameter = "workload.write.io_size"
levels = ["64KiB", "1MiB"]

[factors.sync]
levels = { off = { "workload.write.sync" = "none" }, on = { "workload.write.sync" = "o_sync" } }

[design]
replicates = 5

[workload.write]
use = "sequential-write"
file_size = "32MiB"
duration = "2s"

[workload.mix]
filesets.small = { files = 100, size = "4KiB" }

[[workload.mix.groups]]
name = "readers"
workers = 2
flow = [
    { op = "open", file = "random" },
    { repeat = "end-of-file", flow = [{ op = "read", io_size = "4KiB", offset = "sequential" }] },
    { op = "close" },
]

[workload.mix.until]
duration = "1s"
"#;

fn diagnose(text: &str) -> Result<Plan, Diagnostics> {
    StudyFile::parse("study.toml", text).and_then(|file| Plan::from_study(&file, "1"))
}

/// The good study with one thing replaced by another.
fn with(old: &str, new: &str) -> String {
    assert_eq!(GOOD.matches(old).count(), 1, "`{old}` must be in the study once");
    GOOD.replace(old, new)
}

/// The good study with more text at its end.
fn and(more: &str) -> String {
    format!("{GOOD}{more}")
}

#[test]
fn the_good_study_is_good() {
    let plan = diagnose(GOOD).unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(plan.treatments.len(), 4);
    assert!(plan.warnings.is_empty(), "{}", plan.warnings);
}

macro_rules! mistakes {
    ($($name:ident: $text:expr;)*) => {$(
        #[test]
        fn $name() {
            let found = diagnose(&$text).expect_err("the mistake was not noticed");
            insta::assert_snapshot!(stringify!($name), found.render(false));
        }
    )*};
}

mistakes! {
    empty: "";
    only_comments: "# nothing yet\n";
    not_toml: with("name = \"wan\"", "name = \"wan");
    text_without_quotes: with("\"2s\"", "2s");
    several_syntax_errors: with("seed = 7", "seed = \nother =").replace("cache = ", "cache ");
    duplicate_key: with("seed = 7", "seed = 7\nseed = 8");
    duplicate_section: and("[workload.write]\nuse = \"random-write\"\n");
    unknown_section: and("[workloads.other]\nuse = \"metadata\"\n");
    unknown_key: with("file_size =", "file_sze =");
    key_of_another_tool: with("duration = \"2s\"", "runtime = \"2s\"");
    key_without_likeness: with("seed = 7", "colour = 7");
    section_of_the_finished_tool: and("[server]\nkind = \"memory\"\n");
    network_as_a_factor: and("[factors.delay]\nparameter = \"network.delay\"\nlevels = [\"0ms\", \"7ms\"]\n");
    url_as_target: with("path = \"/mnt/nfs\"", "url = \"nfs://server/export\"");
    fractional_design: with("replicates = 5", "kind = \"fractional\"\nresolution = 4");
    clients_on_hosts: and("[clients]\nhosts = [\"c1\", \"c2\"]\nlauncher = \"ssh\"\n");
    unit_that_means_two_things: with("\"32MiB\"", "\"32M\"");
    duration_without_unit: with("\"2s\"", "\"2\"");
    duration_as_a_number: with("\"2s\"", "2");
    wrong_type: with("seed = 7", "seed = \"7\"");
    negative_number: with("seed = 7", "seed = -7");
    key_as_a_section: with("[run]\ncache = \"fadvise\"\n", "").replace("[study]", "run = \"fadvise\"\n[study]");
    unknown_value: with("\"fadvise\"", "\"dropp\"");
    integer_too_large: with("seed = 7", "seed = 9999999999999999999");
    missing_target_among_others: with("[target]\npath = \"/mnt/nfs\"\n", "").replace("seed", "sed");
    missing_name: with("name = \"wan\"\n", "");
    missing_target: with("[target]\npath = \"/mnt/nfs\"\n", "");
    no_workload: &GOOD[..GOOD.find("[factors.io_size]").unwrap()];
    unknown_use: with("\"sequential-write\"", "\"sequental-write\"");
    workload_without_use: and("[workload.third]\nfiles = 3\n");
    level_of_unknown_parameter: with("\"workload.write.io_size\"", "\"workload.write.io_sise\"");
    level_of_unknown_workload: with("\"workload.write.io_size\"", "\"workload.wirte.io_size\"");
    level_of_the_experiment: with("\"workload.write.io_size\"", "\"design.replicates\"");
    level_of_an_index_too_high: and(
        "[factors.workers]\nparameter = \"workload.mix.groups[1].workers\"\nlevels = [1, 2]\n"
    );
    level_of_wrong_type: with("[\"64KiB\", \"1MiB\"]", "[\"64KiB\", true]");
    level_of_wrong_unit: with("[\"64KiB\", \"1MiB\"]", "[\"64KiB\", \"1M\"]");
    level_that_contradicts: with("[\"64KiB\", \"1MiB\"]", "[\"64KiB\", \"64MiB\"]");
    contradiction_of_two_factors: and(
        "[factors.direct]\nparameter = \"workload.write.direct\"\nlevels = [false, true]\n"
    ).replace("[\"64KiB\", \"1MiB\"]", "[\"64KiB\", 1000]");
    duplicate_level: with("[\"64KiB\", \"1MiB\"]", "[\"64KiB\", \"1MiB\", \"64KiB\"]");
    same_level_written_differently: with("[\"64KiB\", \"1MiB\"]", "[\"64KiB\", \"1MiB\", 65536]");
    one_level: with("[\"64KiB\", \"1MiB\"]", "[\"64KiB\"]");
    levels_that_set_different_parameters: with("\"workload.write.sync\" = \"o_sync\"", "\"workload.write.direct\" = true");
    two_factors_set_one_parameter: with("parameter = \"workload.write.io_size\"\nlevels = [\"64KiB\", \"1MiB\"]",
        "parameter = \"workload.write.sync\"\nlevels = [\"none\", \"o_dsync\"]");
    no_parameter: with("parameter = \"workload.write.io_size\"\n", "");
    no_levels: with("levels = [\"64KiB\", \"1MiB\"]\n", "");
    direct_io_of_odd_size: with("duration = \"2s\"", "duration = \"2s\"\ndirect = true\nio_size = \"1000B\"")
        .replace("[\"64KiB\", \"1MiB\"]", "[\"1000B\", \"1MiB\"]");
    file_smaller_than_io: with("\"32MiB\"", "\"512KiB\"");
    fileset_described_twice: and("[workload.read]\nuse = \"random-read\"\nfileset = \"write\"\nfile_size = \"16MiB\"\n");
    replicates_zero: with("replicates = 5", "replicates = 0");
    replicates_of_wrong_type: with("replicates = 5", "replicates = \"five\"");
    replicates_out_of_range: with("replicates = 5", "replicates = { min = 1, max = 0, relative_half_width = 5 }");
    replicates_with_unknown_key: with("replicates = 5", "replicates = { minimum = 5, max = 30 }");
    confidence_in_percent: with("replicates = 5", "confidence = 95");
    unknown_response: with("replicates = 5", "response = \"write.troughput\"");
    name_with_a_space: with("name = \"wan\"", "name = \"my study\"");
    level_name_with_a_slash: with("off = {", "\"o/f\" = {");
    placeholder_of_another_kind: with("\"/mnt/nfs\"", "\"/mnt/{server}\"");
    nested_key_in_a_group: with("workers = 2", "worker = 2");
    nested_key_in_a_step: with("{ op = \"close\" }", "{ opp = \"close\" }");
    nested_value_in_a_step: with("file = \"random\"", "file = \"any\"");
    size_of_no_form: with(", size = \"4KiB\"", ", size = { distribution = \"normal\", mean = \"4KiB\" }");
    size_of_wrong_unit: with(", size = \"4KiB\"", ", size = \"4K\"");
    step_without_anything: with("{ op = \"close\" }", "{ label = \"x\" }");
    fileset_that_is_not_there: with("file = \"random\" }", "file = \"random\", fileset = \"big\" }");
    fileset_name_with_a_space: with("duration = \"2s\"", "duration = \"2s\"\nfileset = \"my data\"");
    name_of_a_workload: and("[workload.\"a b\"]\nuse = \"metadata\"\n");
    zero_clients: and("[clients]\ncount = 0\n");
    mistakes_everywhere: with("seed = 7", "sed = 7")
        .replace("\"fadvise\"", "\"fadvice\"\nmax_errors = \"many\"")
        .replace("replicates = 5", "replicas = 5")
        .replace("\"2s\"", "\"2sek\"")
        .replace("\"32MiB\"", "32.5")
        .replace("path =", "pth =");
}

#[test]
fn bytes_that_are_not_utf8() {
    let mut bytes = GOOD.as_bytes().to_vec();
    let at = GOOD.find("nfs").unwrap();
    bytes[at] = 0xff;
    let found = StudyFile::parse_bytes("study.toml", &bytes).unwrap_err();
    insta::assert_snapshot!(found.render(false));
}

/// Neither a byte order mark nor the line endings of Windows move a place.
#[test]
fn marks_and_line_endings_do_not_matter() {
    let bad = with("file_size =", "file_sze =");
    let place = |text: &str| {
        let found = diagnose(text).unwrap_err();
        let place = found.list()[0].place.clone().unwrap();
        assert_eq!(&text[place.clone()], "file_sze");
        found.line_column(&place)
    };
    assert_eq!(place(&bad), (23, 1));
    assert_eq!(place(&bad.replace('\n', "\r\n")), (23, 1));
    assert_eq!(place(&format!("\u{feff}{bad}")), (23, 1));
    diagnose(&format!("\u{feff}{}", GOOD.replace('\n', "\r\n"))).unwrap_or_else(|found| panic!("{found}"));
}

#[test]
fn warnings_do_not_stop_a_study() {
    let text = with("replicates = 5", "replicates = { min = 3, max = 9 }\norder = \"listed\"");
    let plan = diagnose(&text).unwrap();
    insta::assert_snapshot!(plan.warnings.render(false));
    let once = diagnose(&with("replicates = 5", "replicates = 1")).unwrap();
    assert!(once.warnings.to_string().contains("no result has an interval"), "{}", once.warnings);
    let few = diagnose(&with("replicates = 5", "replicates = 4")).unwrap();
    assert!(few.warnings.to_string().contains("`replicates` is 4"), "{}", few.warnings);
}

#[test]
fn a_file_that_does_not_exist_is_named() {
    let error = StudyFile::load("/no/such/study.toml".as_ref()).unwrap_err().to_string();
    assert!(error.starts_with("cannot read the study file /no/such/study.toml: "), "{error}");
}
