//! What the command says of itself.

use crate::place::{Place, snapshot, stdout, transcript};

const COMMANDS: [&str; 26] = [
    "doctor",
    "run",
    "quick",
    "plan",
    "analyze",
    "report",
    "results",
    "export",
    "compare",
    "history",
    "diagnose",
    "simulate",
    "check",
    "explore",
    "witness",
    "serve",
    "certificates",
    "wire",
    "probe",
    "watch",
    "import",
    "workloads",
    "generate",
    "agent",
    "fleet",
    "lab",
];

#[test]
fn without_arguments_the_help_is_shown_as_an_error() {
    let place = Place::new();
    let output = place.run(&[]);
    assert_eq!(output.status.code(), Some(2));
    snapshot("no_arguments", &place, &transcript(&output));
}

#[test]
fn every_command_has_help_with_examples() {
    let place = Place::new();
    let help = stdout(&place.run(&["--help"]));
    snapshot("help", &place, &help);
    for command in COMMANDS {
        assert!(help.contains(&format!("  {command} ")), "{command} is not in the help");
        let output = place.run(&[command, "--help"]);
        assert_eq!(output.status.code(), Some(0), "{command}");
        snapshot(&format!("help_{command}"), &place, &transcript(&output));
        let short = place.run(&[command, "-h"]);
        assert_eq!(short.status.code(), Some(0), "{command}");
    }
    let listed = help.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")).count();
    // Besides: `help` itself, two options, the examples.
    assert_eq!(listed, COMMANDS.len() + 1 + 2 + 5, "a command is missing in this test:\n{help}");
}

#[test]
fn commands_of_other_tools_are_answered_with_ours() {
    let place = Place::new();
    for (typed, tip) in
        [("ls", "'results list'"), ("top", "'watch'"), ("bench", "'quick'"), ("serv", "'serve'")]
    {
        let told = transcript(&place.run(&[typed]));
        let tips: Vec<_> = told.lines().filter(|line| line.contains("tip:")).collect();
        assert!(tips.len() == 1 && tips[0].contains(tip), "{typed}: {told}");
    }
    let told = transcript(&place.run(&["lab", "ls"]));
    assert!(!told.contains("results list"), "{told}");
}

#[test]
fn the_help_fits_80_columns() {
    let place = Place::new();
    for command in [None].into_iter().chain(COMMANDS.map(Some)) {
        let arguments: Vec<&str> = command.into_iter().chain(["--help"]).collect();
        let mut run = place.command(&arguments);
        run.env("COLUMNS", "80");
        let text = stdout(&crate::place::finish(run));
        // Examples are not wrapped, so that they can be copied.
        let text = text.split("Examples:").next().unwrap();
        let longest = text.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(longest.chars().count() <= 80, "{arguments:?}: {longest}");
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    let output = Place::new().run(&["--version"]);
    assert_eq!(stdout(&output), concat!("benchmaster ", env!("CARGO_PKG_VERSION"), "\n"));
    assert!(output.status.success());
}

#[test]
fn wrong_arguments_are_named() {
    let place = Place::new();
    let cases: [(&str, &[&str]); 15] = [
        ("unknown_command", &["analyse", "results"]),
        ("unknown_option", &["run", "--outptu", "x", "study.toml"]),
        ("missing_argument", &["plan"]),
        ("duration_without_unit", &["quick", "--duration", "5", "."]),
        ("unknown_format", &["export", "results", "--format", "xlsx"]),
        ("serve_unknown_operation", &["serve", "--inject", "FLY delay=1ms"]),
        ("serve_rule_without_action", &["serve", "--inject", "READ p=0.5"]),
        ("serve_bad_export", &["serve", "--export", "export"]),
        ("serve_bad_log", &["serve", "--log", "loud"]),
        ("serve_export_twice", &["serve", "--export", "/a", "--export", "/a:ro"]),
        ("serve_bad_address", &["serve", "--listen", "everywhere"]),
        ("serve_remote", &["serve", "--listen", "0.0.0.0:0"]),
        ("relay_without_delay", &["relay", "--target", "127.0.0.1"]),
        ("relay_remote", &["relay", "--listen", "0.0.0.0:0", "--target", "127.0.0.1", "--delay", "1ms"]),
        ("serve_portmap_remote", &["serve", "--listen", "0", "--portmap", "0.0.0.0:0"]),
    ];
    for (name, arguments) in cases {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(output.stdout.is_empty(), "{name}");
        snapshot(name, &place, &transcript(&output));
    }
    assert_eq!(place.list("."), ["target", "tmp"], "nothing is created");
}

#[test]
fn the_doctor_says_what_is_missing_and_how_to_get_it() {
    let place = Place::new();
    let found: serde_json::Value = serde_json::from_str(&stdout(&place.run(&["doctor", "--json"]))).unwrap();
    let abilities = found.as_array().unwrap();
    for ability in abilities {
        assert!(ability["found"].as_str().is_some_and(|found| !found.is_empty()), "{ability:#}");
        assert_eq!(ability["works"].as_bool(), Some(ability["fix"].is_null()), "{ability:#}");
    }
    // Where nothing is installed.
    let mut command = place.command(&["doctor", "--json"]);
    command.env("PATH", "");
    let bare: serde_json::Value = serde_json::from_str(&stdout(&crate::place::finish(command))).unwrap();
    let of = |name| bare.as_array().unwrap().iter().find(|one| one["what"] == name).unwrap();
    for (name, fix) in [("srun", "slurm-client"), ("ssh", "openssh-client"), ("fio", "install fio")] {
        let ability = of(name);
        // Programs of root are found without a path.
        assert!(ability["works"] == true || ability["fix"].as_str().unwrap().contains(fix), "{ability:#}");
    }
    let text = stdout(&place.run(&["doctor"]));
    assert!(text.contains("WHAT THIS HOST CAN DO") && text.contains("machines"), "{text}");
}
