//! All samplers of this crate.

use super::{Kind, MetricInfo, Sampler, SamplerProblem, SamplingConfig};
use crate::derived::DERIVED;
use crate::samplers::ALL;

/// Every metric of every sampler with a fixed name, and the sampler's name.
pub fn all_metrics() -> impl Iterator<Item = (&'static str, MetricInfo)> {
    ALL.iter().flat_map(|sampler| sampler.metrics.iter().map(|metric| (sampler.name, *metric)))
}

/// The names that a configuration can list.
pub fn sampler_names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|sampler| sampler.name)
}

/// The samplers that the configuration wants, for those who read by themselves.
pub fn samplers(config: &SamplingConfig) -> Vec<Box<dyn Sampler>> {
    wanted(config).0
}

/// Those that the configuration wants, and which of its names mean nothing.
pub(super) fn wanted(config: &SamplingConfig) -> (Vec<Box<dyn Sampler>>, Vec<SamplerProblem>) {
    let is_wanted = |name: &str| match &config.samplers {
        Some(names) => names.iter().any(|wanted| wanted == name),
        None => true,
    };
    let made = ALL.iter().filter(|sampler| is_wanted(sampler.name));
    let made = made.map(|sampler| (sampler.make)(config)).collect();
    let unknown =
        config.samplers.iter().flatten().filter(|name| !sampler_names().any(|known| known == *name));
    let problem = |name: &String| SamplerProblem {
        sampler: name.clone(),
        problem: format!(
            "there is no sampler of this name; there are {}",
            sampler_names().collect::<Vec<_>>().join(", ")
        ),
    };
    (made, unknown.map(problem).collect())
}

/// The tables of `docs/metrics.md`, in Markdown: one for each sampler, and one of the numbers derived from them.
pub fn documentation() -> String {
    let mut text = String::new();
    let cell = |text: &str| text.replace('|', "\\|");
    for sampler in ALL {
        text.push_str(&format!("### `{}`\n\n{}\n\n", sampler.name, sampler.about));
        text.push_str("| metric | unit | kind | one for each | meaning |\n|---|---|---|---|---|\n");
        for metric in sampler.metrics {
            let kind = match metric.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            };
            let (name, unit) = (metric.name, metric.unit);
            let (instance, about) = (cell(metric.instance), cell(metric.about));
            text.push_str(&format!("| `{name}` | {unit} | {kind} | {instance} | {about} |\n"));
        }
        text.push('\n');
    }
    text.push_str("### Numbers derived from them\n\n| name | unit | meaning |\n|---|---|---|\n");
    for [name, unit, about] in DERIVED {
        text.push_str(&format!("| `{}` | {unit} | {} |\n", name.replace("{}", "…"), cell(about)));
    }
    text.push('\n');
    text
}
