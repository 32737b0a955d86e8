//! What the author of a study file is told about each kind of mistake.
use benchmaster_study::diagnostics::Diagnostics;
use benchmaster_study::file::StudyFile;
use benchmaster_study::plan::{Plan, PlannedTreatment};
use benchmaster_study::settings::Launcher;

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

/// A study of an export, with more text in and after its section `[server]`.
fn wire(more: &str) -> String {
    let target = "path = \"/mnt/nfs\"\n";
    let text = with(target, "url = \"nfs://{server}/export\"\nrsize = \"64KiB\"\n")
        .replace("cache = \"fadvise\"\n", "");
    format!("{text}\n[server]\n{more}\n")
}

/// A study of a server that is set up, with more text after its first step.
fn managed(more: &str) -> String {
    let mount = "mount = { source = \"srv:/export\" }\n";
    let text = with("path = \"/mnt/nfs\"\n", mount);
    format!(
        "{text}\n[server]\nkind = \"managed\"\n[server.parameters]\ndevice = \"/dev/sdb\"\n[[server.steps]]\nname = \"a\"\n\
         command = \"mkfs {{device}}\"\n{more}\n"
    )
}

/// A study in a lab, with more text in and after its section `[lab]`.
fn lab(more: &str) -> String {
    let mount = "mount = { source = \"{server}:/export\", options = \"vers=4.1,nconnect=2\" }\n";
    format!("{}\n[lab]\n{more}\n", with("path = \"/mnt/nfs\"\n", mount))
}

#[test]
fn one_study_runs_in_a_lab_on_hosts_and_with_the_embedded_server() {
    let plan = |text: &str| diagnose(text).unwrap_or_else(|found| panic!("{found}"));
    let in_lab = lab("kernel = \"6.12\"\n[clients]\ncount = 2\n[network]\ndelay = \"5ms\"\nloss = \"0.1%\"");
    let settings = &plan(&in_lab).treatments[0].settings;
    assert_eq!((settings.launcher(), settings.clients()), (Launcher::Lab, 2));
    assert_eq!(settings.server_host().as_deref(), Some("10.77.0.1"));
    assert!(settings.has_server_machine() && !settings.is_embedded());

    // What machines mount of a server elsewhere is what the lab's relay hands on.
    let elsewhere = lab("server = \"host\"\n[server]\nhost = \"filer\"");
    let settings = &plan(&elsewhere).treatments[0].settings;
    assert_eq!(settings.server_host().as_deref(), Some("10.77.0.1"));
    assert!(!settings.has_server_machine());

    let nowhere = lab("").replace("\n[lab]\n", "");
    let on_hosts = format!("{nowhere}\n[server]\nhost = \"filer\"\n[clients]\nhosts = [\"c[1-2]\"]\n");
    let settings = &plan(&on_hosts).treatments[0].settings;
    assert_eq!((settings.launcher(), settings.server_host().as_deref()), (Launcher::Ssh, Some("filer")));

    let plan = plan(&nowhere.replace("cache = \"fadvise\"\n", ""));
    let settings = &plan.treatments[0].settings;
    assert!(settings.is_embedded() && settings.launcher() == Launcher::Threads);
    let options = settings.target.mount_options("127.0.0.1").unwrap().unwrap();
    assert_eq!(options.to_string(), "nfs://127.0.0.1/export?version=4.1&nconnect=2&cache=linux");
}

#[test]
fn what_another_lab_is_brought_up_for_is_hard_to_change() {
    let factor = |more: &str| {
        lab(&format!(
            "[factors.kernel]\nparameter = \"lab.kernel\"\nlevels = [\"packaged\", \"6.12\"]\n{more}"
        ))
    };
    let hard = |text: &str| {
        let plan = diagnose(text).unwrap_or_else(|found| panic!("{found}"));
        plan.study.design_details.hard_to_change
    };
    assert_eq!(hard(&factor("")), [2], "each kernel is booted as seldom as a fair order allows");
    assert_eq!(hard(&factor("hard_to_change = false")), [0u32; 0], "unless the study says otherwise");
    let threads = lab("[factors.threads]\nparameter = \"lab.threads\"\nlevels = [1, 8]");
    assert_eq!(hard(&threads), [0u32; 0], "the server is set up anew in a moment");
}

#[test]
fn parameters_of_steps_can_be_factors() {
    let text = managed(
        "[factors.disk]\nparameter = \"server.parameters.device\"\nlevels = [\"/dev/sdc\", \"/dev/sd d\"]",
    );
    let plan = diagnose(&text).unwrap_or_else(|found| panic!("{found}"));
    let command =
        |treatment: &PlannedTreatment| treatment.settings.server.ready_steps().unwrap()[0].command.clone();
    let (first, last) = (&plan.treatments[0], plan.treatments.last().unwrap());
    assert_eq!((command(first), command(last)), ("mkfs /dev/sdc".into(), "mkfs '/dev/sd d'".into()));
    let hosts = "[factors.hosts]\nparameter = \"clients.hosts\"\nlevels = [[\"c1\"], [\"c1\", \"c2\"]]";
    let plan = diagnose(&managed(hosts)).unwrap_or_else(|found| panic!("{found}"));
    let clients: Vec<_> = plan.treatments.iter().map(|treatment| treatment.settings.clients()).collect();
    assert_eq!((clients[0], *clients.last().unwrap()), (1, 2));
    let launchers: Vec<_> = plan.treatments.iter().map(|treatment| treatment.settings.launcher()).collect();
    assert!(launchers.iter().all(|launcher| *launcher == Launcher::Ssh));
}

#[test]
fn a_target_can_be_an_export_or_a_directory_from_level_to_level() {
    let plan = diagnose(&wire("null_data = true\n[network]\ndelay = \"1ms\""));
    let plan = plan.unwrap_or_else(|found| panic!("{found}"));
    assert_eq!(plan.describe().target, "nfs://{server}/export");

    let place = "[factors.place.levels]\nmount = { target.path = \"/mnt/a\" }\nwire = { target.url = \"nfs://a/b\" }\n";
    for text in [and(place), with("[target]\npath = \"/mnt/nfs\"\n", "") + place] {
        let plan = diagnose(&text).unwrap_or_else(|found| panic!("{found}"));
        let places: Vec<_> = plan.treatments.iter().map(|t| t.settings.target.place()).collect();
        assert_eq!((places[0], places[places.len() - 1]), ("/mnt/a", "nfs://a/b"));
    }
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
    lab_with_an_unknown_key: lab("kernal = \"6.12\"");
    lab_with_hosts: lab("[clients]\nhosts = [\"c1\"]");
    lab_with_another_launcher: lab("[clients]\nlauncher = \"local\"");
    launcher_without_a_lab: and("[clients]\nlauncher = \"lab\"\n");
    lab_of_a_server_elsewhere: lab("").replace("{server}:/export", "filer:/export");
    lab_with_an_embedded_servers_key: lab("[server]\ndelegations = false");
    lab_with_a_kernel_servers_key: lab("server = \"memory\"\nthreads = 4");
    lab_without_its_host: lab("server = \"host\"");
    lab_with_steps: lab("[server]\nkind = \"managed\"");
    lab_without_machines: lab("back_end = \"namespaces\"");
    lab_with_little_memory: lab("memory = \"1MiB\"");
    lab_with_a_short_lease: lab("lease = \"1s\"");
    lab_with_a_name_that_is_a_path: lab("name = \"../x\"");
    lab_with_a_relay: lab("[network]\ndelay = \"1ms\"\nmeans = \"relay\"");
    lab_with_mtu_and_congestion: lab("[network]\nmtu = 9000\ncongestion = \"cubic\"\ncwnd_clamp = 64");
    lab_with_a_limited_server: lab("[network]\nserver_bandwidth = \"1Gbit/s\"");
    lab_on_virtual_time_with_chance: lab("time = \"virtual\"\n[network]\ndelay = \"1ms\"\nloss = 0.01");
    mount_of_a_placeholder_that_is_not_known: lab("").replace("{server}:", "{filer}:");
    mount_that_the_own_client_cannot_do: lab("").replace("\n[lab]\n", "").replace("nconnect=2", "local_lock=all");
    kerberos_without_keys: lab("").replace("\n[lab]\n", "").replace("nconnect=2", "sec=krb5")
        .replace("cache = \"fadvise\"\n", "");
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
    server_of_a_directory: and("[server]\nkind = \"memory\"\n");
    network_as_a_factor: and("[factors.delay]\nparameter = \"network.delay\"\nlevels = [\"0ms\", \"7ms\"]\n");
    directory_with_an_emulated_network: and("[network]\ndelay = \"1ms\"\n");
    directory_with_mount_options: with("path = \"/mnt/nfs\"", "path = \"/mnt/nfs\"\nversion = \"3\"");
    url_as_path: with("\"/mnt/nfs\"", "\"nfs://server/export\"");
    path_and_url: with("path = \"/mnt/nfs\"", "path = \"/mnt/nfs\"\nurl = \"nfs://server/export\"");
    url_of_another_kind: wire("").replace("nfs://{server}/export", "http://{server}/export");
    url_without_server: wire("").replace("nfs://{server}/export", "nfs:///export");
    url_with_an_unknown_option: wire("").replace("{server}/export", "{server}/export?versoin=3");
    url_with_a_bad_value: wire("").replace("{server}/export", "{server}/export?version=5");
    url_with_another_placeholder: wire("").replace("{server}", "{filer}");
    option_of_wrong_value: wire("").replace("\"64KiB\"\n", "\"1M\"\n");
    option_unknown: wire("").replace("rsize", "rsise");
    options_that_do_not_go_together: wire("").replace("rsize = \"64KiB\"", "delegations = true\nversion = \"3\"");
    version_as_a_number: wire("").replace("rsize = \"64KiB\"", "version = 4.1");
    port_of_the_embedded_server: wire("").replace("rsize = \"64KiB\"", "port = 2049");
    level_of_a_mount_option: wire("[factors.version]\nparameter = \"target.version\"\nlevels = [\"3\", \"4.3\"]\n");
    server_option_of_an_external_server: wire("slots = 4").replace("{server}", "filer");
    embedded_server_of_another_name: wire("kind = \"memory\"").replace("{server}", "filer");
    external_server_without_name: wire("kind = \"external\"");
    server_rule_that_is_none: wire("inject = [\"READ slowly\"]");
    server_slots_out_of_range: wire("slots = 0");
    server_option_unknown: wire("delegation = false");
    network_delay_too_long: wire("[network]\ndelay = \"11s\"");
    relay_and_portmapper: wire("[network]\ndelay = \"1ms\"").replace("{server}", "filer")
        .replace("rsize = \"64KiB\"", "version = \"3\"");
    relay_and_udp: wire("[network]\ndelay = \"1ms\"\nmeans = \"relay\"").replace("rsize = \"64KiB\"", "version = \"3\"\nproto = \"udp\"");
    fraction_of_no_size: with("replicates = 5", "replicates = 5\nkind = \"fractional\"\nruns = 12");
    fraction_without_a_choice: with("replicates = 5", "replicates = 5\nkind = \"fractional\"");
    fraction_by_two_choices: with("replicates = 5", "replicates = 5\nkind = \"fractional\"\nruns = 4\nresolution = 3");
    fraction_by_an_unknown_factor: with("replicates = 5", "replicates = 5\nkind = \"fractional\"\ngenerators = [\"size=sync\"]");
    fraction_by_a_generator_that_is_none: with("replicates = 5", "replicates = 5\nkind = \"fractional\"\ngenerators = [\"AB\"]");
    fraction_with_two_factors_alike: with("replicates = 5", "replicates = 5\nkind = \"fractional\"\ngenerators = [\"B=A\"]");
    resolution_of_a_full_design: with("replicates = 5", "replicates = 5\nresolution = 4");
    resolution_too_low: with("replicates = 5", "replicates = 5\nkind = \"fractional\"\nresolution = 2");
    clear_of_an_unknown_effect: with("replicates = 5", "replicates = 5\nclear = [\"sync*delay\"]");
    array_of_no_size: with("replicates = 5", "replicates = 5\nkind = \"orthogonal-array\"\nruns = 6");
    exclude_of_an_unknown_factor: with("replicates = 5", "replicates = 5\nexclude = [{ snyc = \"on\" }]");
    exclude_of_an_unknown_level: with("replicates = 5", "replicates = 5\nexclude = [{ sync = \"always\" }]");
    exclude_of_everything: with("replicates = 5", "replicates = 5\nexclude = [{ sync = \"on\" }, { sync = \"off\" }]");
    exclude_of_nothing: with("replicates = 5", "replicates = 5\nexclude = [{}]");
    exclude_of_a_level_altogether: with("replicates = 5", "replicates = 5\nexclude = [{ sync = \"on\" }]");
    exclude_with_explicit_treatments: with("replicates = 5", "replicates = 5\nkind = \"explicit\"\ntreatments = [{ io_size = \"1MiB\", sync = \"on\" }]\nexclude = [{ sync = \"on\" }]");
    explicit_without_treatments: with("replicates = 5", "replicates = 5\nkind = \"explicit\"");
    explicit_treatment_twice: with("replicates = 5", "replicates = 5\nkind = \"explicit\"\ntreatments = [{ io_size = \"1MiB\", sync = \"on\" }, { sync = \"on\", io_size = \"1MiB\" }]");
    explicit_treatment_without_a_factor: with("replicates = 5", "replicates = 5\nkind = \"explicit\"\ntreatments = [{ sync = \"on\" }]");
    centre_of_names: with("replicates = 5", "replicates = 5\ncentre_points = 3");
    hard_to_change_and_unknown: with("replicates = 5", "replicates = 5\nhard_to_change = [\"version\"]");
    hard_to_change_in_listed_order: with("replicates = 5", "replicates = 5\nhard_to_change = [\"sync\"]\norder = \"listed\"");
    blocks_of_no_form: with("replicates = 5", "replicates = 5\nblocks = \"days\"");
    blocks_of_odd_number: with("replicates = 5", "replicates = 5\nblocks = { count = 3 }");
    blocks_that_confound_a_main_effect: with("replicates = 5", "replicates = 5\nblocks = { count = 4 }");
    blocks_at_no_time: with("replicates = 5", "replicates = 5\nblocks = [{ name = \"morning\", at = \"9 am\" }]");
    blocks_called_alike: with("replicates = 5", "replicates = 5\nblocks = [{ name = \"a\" }, { name = \"a\" }]");
    blocks_more_than_replicates: with("replicates = 5", "replicates = 5\nblocks = [{ name = \"a\" }, { name = \"b\" }, { name = \"c\" }, { name = \"d\" }, { name = \"e\" }, { name = \"f\" }]");
    blocks_that_set_different_parameters: with("replicates = 5", "replicates = 5\nblocks = [{ name = \"a\", set = { \"run.retries\" = 1 } }, { name = \"b\", set = { \"run.cache\" = \"keep\" } }]");
    blocks_that_set_what_a_factor_sets: with("replicates = 5", "replicates = 5\nblocks = [{ name = \"a\", set = { \"workload.write.sync\" = \"none\" } }, { name = \"b\", set = { \"workload.write.sync\" = \"o_sync\" } }]");
    goal_of_no_direction: with("replicates = 5", "replicates = 5\ngoal = \"write.throughput\"");
    goal_of_an_unknown_response: with("replicates = 5", "replicates = 5\ngoal = \"maximise write.throughputs\"");
    goal_of_another_response: with("replicates = 5", "replicates = 5\ngoal = \"maximise write.throughput\"\nresponse = \"write.operations\"");
    precision_in_percent: with("replicates = 5", "replicates = 5\nprecision = 5");
    hard_to_change_that_is_no_truth: with("levels = [\"64KiB\", \"1MiB\"]", "levels = [\"64KiB\", \"1MiB\"]\nhard_to_change = \"yes\"");
    fraction_of_three_levels: with("\"1MiB\"]", "\"256KiB\", \"1MiB\"]").replace("replicates = 5", "kind = \"fractional\"\nresolution = 3");
    clients_on_hosts_of_a_relative_path: and("[clients]\nhosts = [\"c1\", \"c2\"]\nlauncher = \"ssh\"\n")
        .replace("\"/mnt/nfs\"", "\"mnt/nfs\"");
    hosts_with_another_launcher: and("[clients]\nhosts = [\"c1\"]\nlauncher = \"local\"\n");
    hosts_of_slurm: and("[clients]\nhosts = [\"c1\"]\nlauncher = \"slurm\"\n");
    hosts_of_external_agents: and("[clients]\nhosts = [\"c1\"]\nlauncher = \"external\"\n");
    external_agents_without_credentials: and("[clients]\nlauncher = \"external\"\ncount = 2\n");
    credentials_of_another_launcher: and("[clients]\nlauncher = \"local\"\ncount = 2\ncredentials = \"k\"\n");
    ssh_without_hosts: and("[clients]\nlauncher = \"ssh\"\nbinary = \"/opt/b\"\n");
    host_that_is_none: and("[clients]\nhosts = [\"c 1\"]\n");
    fewer_clients_than_hosts: and("[clients]\ncount = 1\nhosts = [\"c1\", \"c2\"]\n");
    options_of_another_launcher: and("[clients]\nssh_options = [\"-v\"]\nslurm_options = [\"-N2\"]\nbinary = \"/b\"\n");
    patience_too_short: and("[clients]\npatience = \"1ms\"\n");
    embedded_server_out_of_reach: wire("[clients]\nhosts = [\"c1\"]\n");
    embedded_server_at_all_addresses: wire("listen = \"0.0.0.0\"\n[clients]\nhosts = [\"c1\"]\n");
    stagger_beyond_the_end: and("[clients]\ncount = 3\nstagger = \"1s\"\n");
    stagger_without_an_end: and("[clients]\ncount = 3\nstagger = \"1ms\"\n[workload.c]\nuse = \"file-creation\"\nfiles = 1\n");
    verified_together: and("[clients]\ncount = 3\n").replace("duration = \"2s\"", "duration = \"2s\"\nverify = true\nsharing = \"shared\"");
    managed_elsewhere_with_a_cold_cache: managed("").replace("[server]", "[server]\ncache = \"cold\"\nhost = \"srv\"");
    managed_without_being_so: wire("host = \"srv\"\n[server.parameters]\nfs = \"ext4\"");
    managed_and_embedded: wire("kind = \"managed\"");
    managed_here_with_threads_there: managed("").replace("[server]", "[clients]\nlauncher = \"threads\"\n[server]\nhost = \"srv\"");
    managed_step_with_an_unknown_parameter: managed("[[server.steps]]\nname = \"b\"\ncommand = \"mount {divice}\"");
    managed_steps_of_one_name: managed("[[server.steps]]\nname = \"a\"\ncommand = \" \"\nwhen = \"always\"");
    managed_steps_that_are_empty: managed("[[server.steps]]\nname = \"a\"\ncommand = \" \"\ntimeout = \"0s\"");
    managed_parameter_of_wrong_type: managed("").replace("device = \"/dev/sdb\"", "device = 0.5");
    managed_level_of_an_unknown_key: managed("[factors.fs]\nparameter = \"server.paramters.fs\"\nlevels = [\"ext4\", \"xfs\"]");
    mount_that_is_incomplete: with("path = \"/mnt/nfs\"", "mount = { options = \"vers=3\", typ = \"nfs\" }");
    mount_at_a_relative_path: with("path = \"/mnt/nfs\"", "mount = { source = \"\", path = \"mnt\" }");
    mount_and_path: with("path = \"/mnt/nfs\"", "path = \"/mnt/nfs\"\nmount = { source = \"s:/e\" }");
    remount_of_what_is_not_mounted: with("\"fadvise\"", "\"remount\"");
    network_loss_of_everything: wire("[network]\nloss = 1");
    network_of_an_external_server: wire("[network]\nbandwidth = \"1Gbit/s\"").replace("{server}", "filer");
    network_of_a_relay: wire("[network]\ndelay = \"1ms\"\njitter = \"1ms\"\nmeans = \"relay\"");
    network_means_of_an_external_server: wire("[network]\ndelay = \"1ms\"\nmeans = \"wire\"").replace("{server}", "filer");
    network_mtu_of_a_relay: wire("[network]\nmtu = 9000\nmeans = \"relay\"");
    network_queues_of_a_relay: wire("[network]\nqueues = 8\nserver_bandwidth = \"1Gbit/s\"\nmeans = \"relay\"");
    network_queues_of_netem: wire("[network]\nqueue_discipline = \"fq\"\nserver_bandwidth = \"1Gbit/s\"\nmeans = \"netem\"");
    network_queues_that_cannot_be: wire("[network]\nqueues = 65\nrehash = \"1ms\"");
    network_queue_discipline_unknown: wire("[network]\nqueues = 8\nserver_bandwidth = \"1Gbit/s\"\nqueue_discipline = \"red\"");
    network_hash_key_too_short: wire("[network]\nserver_bandwidth = \"1Gbit/s\"\nhash_key = \"6d:5a\"");
    network_mtu_and_congestion: wire("[network]\nmtu = 65536\ncongestion = \"no such\"\ncwnd_clamp = 0");
    network_bandwidth_without_unit: wire("[network]\nbandwidth = \"1G\"\nserver_bandwidth = 5");
    namespaces_of_nothing: and("[clients]\nnamespaces = true\n");
    sampling_too_often: and("[sampling]\ninterval = \"1ms\"\n");
    sampler_unknown: and("[sampling]\nsamplers = [\"cpu\", \"mountstat\"]\n");
    network_jitter_beyond_the_delay: wire("[network]\ndelay = \"1ms\"\njitter = \"2ms\"\nbandwidth = \"10bit/s\"");
    collect_where_nobody_is: and("[[collect]]\nname = \"a\"\ncommand = \"x\"\non = \"server\"\n");
    collect_twice: and("[[collect]]\nname = \"a\"\ncommand = \"x\"\n[[collect]]\nname = \"a\"\ncommand = \"\"\n");
    collect_as_a_table: and("[collect]\nname = \"a\"\n");
    collect_on_nothing: and("[[collect]]\nname = \"a b\"\ncommand = \"x\"\non = \"controller\"\n");
    retries_without_end: with("cache = \"fadvise\"", "retries = 1000\non_failure = \"retry\"");
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
    two_factors_set_path_and_url: and("[factors.a]\nparameter = \"target.path\"\nlevels = [\"/a\", \"/b\"]\n\
        [factors.b]\nparameter = \"target.url\"\nlevels = [\"nfs://a/b\", \"nfs://a/c\"]\n");
    placeholder_of_another_kind: with("\"/mnt/nfs\"", "\"/mnt/{server}\"");
    nested_key_in_a_group: with("workers = 2", "worker = 2");
    nested_key_in_a_step: with("{ op = \"close\" }", "{ opp = \"close\" }");
    nested_value_in_a_step: with("file = \"random\"", "file = \"any\"");
    several_in_one_section: and("[network]\ndelai = \"1ms\"\njitter = 3\nbandwith = \"1Gbit/s\"\nmtu = -1\n");
    several_in_one_step: with("{ op = \"close\" }", "{ opp = \"close\", label = 3, io_sise = \"4KiB\" }");
    size_of_another_distribution: with(
        ", size = \"4KiB\"",
        ", size = { distribution = \"uniform\", mean = \"4KiB\", min = \"1KiB\", max = \"8KiB\" }"
    );
    size_with_a_wrong_number: with(
        ", size = \"4KiB\"",
        ", size = { distribution = \"gamma\", mean = \"4KiB\", shape = \"round\" }"
    );
    size_as_a_list: with(", size = \"4KiB\"", ", size = [\"4KiB\"]");
    size_of_no_form: with(", size = \"4KiB\"", ", size = { distribution = \"normal\", mean = \"4KiB\" }");
    size_of_wrong_unit: with(", size = \"4KiB\"", ", size = \"4K\"");
    step_without_anything: with("{ op = \"close\" }", "{ label = \"x\" }");
    fileset_that_is_not_there: with("file = \"random\" }", "file = \"random\", fileset = \"big\" }");
    fileset_name_with_a_space: with("duration = \"2s\"", "duration = \"2s\"\nfileset = \"my data\"");
    name_of_a_workload: and("[workload.\"a b\"]\nuse = \"metadata\"\n");
    zero_clients: and("[clients]\ncount = 0\n");
    mistakes_in_levels_and_elsewhere: with("seed = 7", "sed = 7")
        .replace("workload.write.io_size\"", "workload.write.io_sze\"")
        .replace("\"2s\"", "\"2sek\"")
        .replace("\"o_sync\"", "\"osync\"");
    mistakes_everywhere: with("seed = 7", "sed = 7")
        .replace("\"fadvise\"", "\"fadvice\"\nmax_errors = \"many\"")
        .replace("replicates = 5", "replicas = 5")
        .replace("\"2s\"", "\"2sek\"")
        .replace("\"32MiB\"", "32.5")
        .replace("path =", "pth =");
}

#[test]
fn mistakes_of_levels_are_shown_with_all_others() {
    for other in [("replicates = ", "replicats = "), ("seed = ", "sead = ")] {
        let text = with(other.0, other.1).replace("workload.write.io_size\"", "workload.write.io_sise\"");
        let told = diagnose(&text).unwrap_err().render(false);
        assert!(told.contains(other.1.trim_end_matches(" = ")) && told.contains("io_sise"), "{told}");
    }
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
        let span = found.list()[0].span.clone().unwrap();
        assert_eq!(&text[span.clone()], "file_sze");
        found.line_column(&span)
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
