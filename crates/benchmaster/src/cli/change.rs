//! Options that change what a study file says.

use benchmaster_study::file::{Override, OverrideError};
use benchmaster_study::target::Target;
use clap::Args;

/// They are written into the study that is stored with the results; the file itself stays as it is.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Changes to the study")]
pub(crate) struct ChangeArgs {
    /// Multiply amounts of data, numbers of files and lengths of time by this, for a smaller machine (`study.scale`)
    #[arg(long, value_name = "FACTOR")]
    pub(crate) scale: Option<f64>,
    /// What to measure instead of the study's own target: a directory, nfs://SERVER/EXPORT, or SERVER:/EXPORT, which the
    /// clients' kernels mount. `{server}` as the server is the study's own, or that of its lab
    #[arg(long, value_name = "TARGET")]
    pub(crate) target: Option<String>,
    /// Run in a lab, real Linux clients and a server in user space, also if the study has no `[lab]`; with keys of that section:
    /// `--lab`, `--lab server=memory kernel=6.12` (docs/lab.md)
    #[arg(long, value_name = "KEY=VALUE", num_args = 0..)]
    pub(crate) lab: Option<Vec<String>>,
    /// Set a parameter: `design.replicates=10`, `workload.read.io_size=1MiB`, `factors.clients.levels=[1,2]`. May be given
    /// several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

impl ChangeArgs {
    /// Whether nothing is to be changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.scale.is_none() && self.target.is_none() && self.lab.is_none() && self.set.is_empty()
    }

    /// The same as arguments.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut add = |option: &str, value: String| arguments.extend([option.to_owned(), value]);
        if let Some(scale) = self.scale {
            add("--scale", scale.to_string());
        }
        if let Some(target) = &self.target {
            add("--target", target.clone());
        }
        self.set.iter().for_each(|set| add("--set", set.clone()));
        if let Some(lab) = &self.lab {
            arguments.push("--lab".into());
            arguments.extend(lab.iter().cloned());
        }
        arguments
    }

    /// What they put into the study, in order.
    ///
    /// # Errors
    /// When a `--set` is not of the form `KEY=VALUE`.
    pub(crate) fn overrides(&self) -> Result<Vec<Override>, OverrideError> {
        let scale = self.scale.map(|scale| Override::parse(&format!("study.scale={scale}")));
        let of_target = |target: Target| Override::parse(&format!("target.{}={}", target.key, target.value));
        let target = self.target.as_deref().map(|text| of_target(Target::read(text)?));
        let section = self.lab.iter().map(|_| Ok(Override::section("lab")));
        let lab = self.lab.iter().flatten().map(|text| Override::parse(&format!("lab.{text}")));
        let lab = section.chain(lab);
        let set = self.set.iter().map(|text| Override::parse(text));
        scale.into_iter().chain(target).chain(lab).chain(set).collect()
    }
}
