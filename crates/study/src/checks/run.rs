//! How a run is done, and what is read beside it: values that cannot be meant.

use benchmaster_telemetry::sampling::sampler_names;
use benchmaster_units::TimeSpan;

use crate::file::Reader;
use crate::path;
use crate::settings::{CollectSettings, Settings};
use crate::suggest;

pub(super) fn check(reader: &mut Reader<'_>, settings: &Settings) {
    let mut require = |holds: bool, path: &str, message: String, help: &str| {
        if !holds {
            reader.error(path, message, help);
        }
    };
    let run = &settings.run;
    require(
        run.interval.is_none_or(|interval| interval >= TimeSpan::millis(1)),
        "run.interval",
        "an interval shorter than 1 ms measures the recorder".into(),
        "write `\"1s\"`, or leave it out",
    );
    require(
        run.hook_timeout.nanos() > 0,
        "run.hook_timeout",
        "a `hook_timeout` of 0 stops every command at once".into(),
        "write `\"60s\"`, or leave it out",
    );
    require(
        run.cache_hook.as_ref().is_none_or(|hook| !hook.trim().is_empty()),
        "run.cache_hook",
        "the `cache_hook` is empty".into(),
        "write a shell command, or leave it out",
    );
    require(
        run.failure_hook.as_ref().is_none_or(|hook| !hook.trim().is_empty()),
        "run.failure_hook",
        "the `failure_hook` is empty".into(),
        "write a shell command, or leave it out",
    );
    require(
        run.max_errors > 0,
        "run.max_errors",
        "with `max_errors = 0` a worker gives up before its first operation".into(),
        "write 1 to give up at the first error",
    );
    require(
        run.retries <= 100,
        "run.retries",
        format!("a run cannot be retried {} times", run.retries),
        "write a number from 0 to 100",
    );
    let sampling = &settings.sampling;
    require(
        sampling.interval >= TimeSpan::millis(10),
        "sampling.interval",
        format!("counters cannot be read every {}", sampling.interval),
        "write `\"10ms\"` or longer; most counters are not worth reading more often than once a second",
    );
    let known: Vec<_> = sampler_names().collect();
    for (index, name) in sampling.samplers.iter().flatten().enumerate() {
        require(
            known.iter().any(|known| known == name),
            &format!("sampling.samplers[{index}]"),
            format!("unknown sampler `{name}`"),
            &suggest::suggest(name, "samplers", known.iter().copied()),
        );
    }
    for (index, collect) in settings.collect.iter().enumerate() {
        require(
            !collect.command.trim().is_empty(),
            &format!("collect[{index}].command"),
            "the command is empty".into(),
            "write a shell command",
        );
        let same = |other: &&CollectSettings| other.name == collect.name;
        require(
            path::is_name(&collect.name) && collect.name.len() <= 64,
            &format!("collect[{index}].name"),
            format!("`{}` cannot be the name of a command", collect.name),
            "use up to 64 letters, digits, `_` and `-`",
        );
        require(
            !settings.collect[..index].iter().any(|other| same(&other)),
            &format!("collect[{index}].name"),
            format!("two commands are called `{}`", collect.name),
            "give each its own name",
        );
    }
}
