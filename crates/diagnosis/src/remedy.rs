//! What to do about a condition, and the state in which that helps.
//!
//! Every way of doing something names what it needs: whose client, whose server, which network, which setting. A remedy has
//! no command until it was fitted to the set-up in which its condition was found, and all ways that do nothing there are
//! gone then.

use benchmaster_record::recording::RpcSource;
use benchmaster_record::results::{RunRecord, ServedBy};
use serde::{Deserialize, Serialize};

use crate::measured::Measured;

/// What to do about a condition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remedy {
    /// In words.
    pub text: String,
    /// A command or an option, as it is to be written.
    #[serde(skip_deserializing)]
    pub command: Option<String>,
    /// What to measure to confirm it.
    pub confirm: Option<String>,
    /// What can be done in one set-up or another.
    #[serde(default, skip_serializing)]
    ways: Vec<Way>,
}

/// What has to be so for a way to do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Need {
    /// Nothing: a key of every study, a command of this program, or of the clients' host.
    Anywhere,
    /// The kernel's client, with its mount options and settings.
    KernelClient,
    /// The client of this program, with the keys of `[target]`.
    OwnClient,
    /// Own clients that keep nothing: each call goes to the server.
    NothingCached,
    /// Own clients that cache and can append to the compounds of locks, and do not: those of version 4.
    LocksAlone,
    /// A Linux server, or one that may be.
    LinuxServer,
    /// A server with an operating system of its own: not the embedded one.
    ServerHost,
    /// The server of this program.
    EmbeddedServer,
    /// A server whose delegations are not known to be on.
    DelegationsNotOn,
    /// A file system of this host.
    LocalFileSystem,
    /// Clients and server joined by a network that is as it is: neither emulated nor inside of one host.
    RealNetwork,
    /// A network that the study emulates.
    EmulatedNetwork,
}

/// One way of doing something.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Way {
    needs: Vec<Need>,
    /// A sentence more.
    text: Option<String>,
    command: Option<String>,
}

/// What a way needs: one thing, or several at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs(Vec<Need>);

impl From<Need> for Needs {
    fn from(need: Need) -> Self {
        Self(vec![need])
    }
}

impl<const N: usize> From<[Need; N]> for Needs {
    fn from(needs: [Need; N]) -> Self {
        Self(needs.to_vec())
    }
}

impl Remedy {
    /// Advice in words that holds in every set-up.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// With a command or option. Of several that fit the first is shown.
    #[must_use]
    pub fn by(self, needs: impl Into<Needs>, command: impl Into<String>) -> Self {
        self.way(needs, None, Some(command.into()))
    }

    /// With a sentence more, where it fits.
    #[must_use]
    pub fn also(self, needs: impl Into<Needs>, text: impl Into<String>) -> Self {
        self.way(needs, Some(text.into()), None)
    }

    /// With the command of a remedy that was fitted before.
    #[must_use]
    pub fn fitted_with(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..self }
    }

    /// With what would confirm it.
    #[must_use]
    pub fn confirmed_by(self, confirm: impl Into<String>) -> Self {
        Self { confirm: Some(confirm.into()), ..self }
    }

    fn way(mut self, needs: impl Into<Needs>, text: Option<String>, command: Option<String>) -> Self {
        self.ways.push(Way { needs: needs.into().0, text, command });
        self
    }

    /// What of it helps in a set-up.
    #[must_use]
    pub fn fit(mut self, setup: &Setup) -> Self {
        for way in std::mem::take(&mut self.ways) {
            if !way.needs.iter().all(|need| setup.has(*need)) {
                continue;
            }
            if let Some(more) = way.text {
                let space = if self.text.is_empty() { "" } else { " " };
                self.text += &format!("{space}{more}");
            }
            self.command = self.command.or(way.command);
        }
        self
    }
}

/// Whose client calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caller {
    /// None: a file system without NFS.
    Local,
    Kernel,
    Own,
}

/// What a remedy can rely on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setup {
    caller: Caller,
    server: Option<ServedBy>,
    emulated: bool,
    /// Whether own clients keep what they know.
    caches: bool,
    /// Whether they could append to locks, and do not.
    locks_alone: bool,
    /// Whether the server grants delegations, where that is known.
    delegations: Option<bool>,
}

impl Setup {
    /// That of a workload of a run.
    pub fn of(measured: &Measured<'_>) -> Self {
        let counted = measured.recording.rpc.as_ref().map(|rpc| rpc.source);
        Self::new(measured.run, measured.is_nfs(), counted)
    }

    /// That of a run.
    pub fn of_run(run: &RunRecord) -> Self {
        let counted = run.recordings.iter().find_map(|recording| Some(recording.rpc.as_ref()?.source));
        Self::new(run, counted.is_some(), counted)
    }

    fn new(run: &RunRecord, nfs: bool, counted: Option<RpcSource>) -> Self {
        let url = run.service.as_ref().map(|service| service.url.as_str()).unwrap_or_default();
        let caller = match (counted, nfs || run.service.is_some(), url.starts_with("nfs://")) {
            (Some(RpcSource::Client), ..) | (None, true, true) => Caller::Own,
            (Some(RpcSource::Kernel), ..) | (None, true, false) => Caller::Kernel,
            (None, false, _) => Caller::Local,
        };
        let server = run.service.as_ref().map(|service| service.server);
        let caches = url.contains("cache=linux");
        let has = |option: &str| url.split(['?', '&']).any(|one| one == option);
        Self {
            caller,
            server: server.or((caller != Caller::Local).then_some(ServedBy::External)),
            emulated: run.service.as_ref().is_some_and(|service| service.network.is_emulated()),
            caches,
            locks_alone: caches && !["version=2", "version=3", "append_to_locks=on"].into_iter().any(has),
            delegations: run.parameters.delegations,
        }
    }

    /// That of a client in production, of which its mounts alone are known.
    pub fn of_mounts() -> Self {
        let server = Some(ServedBy::External);
        let (caller, delegations) = (Caller::Kernel, None);
        Self { caller, server, emulated: false, caches: false, locks_alone: false, delegations }
    }

    /// Whether something is so.
    pub fn has(&self, need: Need) -> bool {
        use ServedBy::{Embedded, External, Knfsd, Managed};
        let embedded = self.server == Some(Embedded);
        match need {
            Need::Anywhere => true,
            Need::KernelClient => self.caller == Caller::Kernel,
            Need::OwnClient => self.caller == Caller::Own,
            Need::NothingCached => self.caller == Caller::Own && !self.caches,
            Need::LocksAlone => self.caller == Caller::Own && self.locks_alone,
            Need::LinuxServer => matches!(self.server, Some(External | Knfsd | Managed)),
            Need::ServerHost => self.server.is_some() && !embedded,
            Need::EmbeddedServer => embedded,
            Need::DelegationsNotOn => self.delegations != Some(true),
            Need::LocalFileSystem => self.caller == Caller::Local,
            Need::RealNetwork => self.server.is_some() && !embedded && !self.emulated,
            Need::EmulatedNetwork => self.emulated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::{Made, NoDetails};

    fn setup(made: &Made) -> Setup {
        let run = &made.results.runs[0];
        Setup::of(&Measured::new(&made.results, run, &run.recordings[0], &NoDetails))
    }

    #[test]
    fn what_does_nothing_in_a_set_up_is_not_advised() {
        let remedy = || {
            Remedy::new("Look.")
                .by(Need::LinuxServer, "cat /proc/fs/jbd2/*/info")
                .also([Need::EmbeddedServer, Need::DelegationsNotOn], "Let it delegate.")
                .by([Need::EmbeddedServer, Need::DelegationsNotOn], "[server] delegations = true")
                .by(Need::NothingCached, "--set target.cache=linux")
        };
        assert_eq!(remedy().command, None, "nothing is advised before it was fitted");

        let mut made = Made::served();
        let service = made.run().service.as_mut().unwrap();
        (service.server, service.url) = (ServedBy::Embedded, "nfs://{server}/export".into());
        made.run().parameters.delegations = Some(true);
        let fitted = remedy().fit(&setup(&made));
        assert_eq!(
            (fitted.text.as_str(), fitted.command.as_deref()),
            ("Look.", Some("--set target.cache=linux"))
        );

        made.run().parameters.delegations = Some(false);
        let fitted = remedy().fit(&setup(&made));
        assert_eq!(fitted.text, "Look. Let it delegate.");
        assert_eq!(fitted.command.as_deref(), Some("[server] delegations = true"));

        made.run().service.as_mut().unwrap().server = ServedBy::Knfsd;
        assert_eq!(remedy().fit(&setup(&made)).command.as_deref(), Some("cat /proc/fs/jbd2/*/info"));
        assert_eq!(remedy().fit(&Setup::of_mounts()).command.as_deref(), Some("cat /proc/fs/jbd2/*/info"));
    }

    #[test]
    fn only_own_clients_of_version_4_that_cache_can_append_to_locks() {
        let mut made = Made::served();
        let mut has = |options: &str| {
            made.run().service.as_mut().unwrap().url = format!("nfs://{{server}}/export{options}");
            setup(&made).has(Need::LocksAlone)
        };
        assert!(has("?cache=linux") && has("?version=4.2&cache=linux"));
        assert!(!has("") && !has("?version=3&cache=linux"));
        assert!(!has("?cache=linux&append_to_locks=on"));
    }

    #[test]
    fn a_directory_has_no_server_and_no_network() {
        let local = setup(&Made::new());
        let all =
            [Need::KernelClient, Need::OwnClient, Need::LinuxServer, Need::ServerHost, Need::RealNetwork];
        assert!(all.into_iter().all(|need| !local.has(need)));
        assert!(local.has(Need::LocalFileSystem) && local.has(Need::Anywhere));
    }
}
