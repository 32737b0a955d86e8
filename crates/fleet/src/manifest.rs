//! What a Kubernetes cluster needs to run a study with agents on its nodes: objects for `kubectl apply`, no operator.
//!
//! The agents are the pods of an Indexed Job, whose index is their rank; the controller is a Job of one pod behind a headless
//! service, by whose name agents dial it. Keys are in a secret, of which agents see only their own part, the study is in a
//! config map, and results are on a claim for a volume. Field names are those of the Kubernetes API, `v1` and `batch/v1`.

use std::str::FromStr;

use serde_json::{Value, json};

use crate::launch::external::PORT;
use crate::secure::{ControllerKey, KeyError};

/// Where pods find their part of the keys, the study and the results.
const KEYS: &str = "/run/benchmaster";
const STUDY: &str = "/study";
const RESULTS: &str = "/results";

/// Read by its user alone, as [`ControllerKey::read_file`] demands.
const SECRET_MODE: u32 = 0o400;

/// Longest name of objects that others are named after: labels have 63 characters, and pods of a Job append 7.
const LONGEST_NAME: usize = 40;

/// What is to run.
#[derive(Debug)]
pub struct Manifest<'a> {
    /// Names the objects.
    pub name: &'a str,
    /// Where they are created; `None`: where `kubectl` is.
    pub namespace: Option<&'a str>,
    /// The container image with this program as its entry point.
    pub image: &'a str,
    /// How many agents.
    pub agents: u32,
    /// The text of the study.
    pub study: &'a str,
    /// Arguments of `run` that change it, beside those of [`changes`](Self::changes).
    pub arguments: &'a [String],
    /// Mounted in all pods.
    pub volumes: &'a [Volume],
    /// How much space for results is claimed, as Kubernetes writes it: `1Gi`.
    pub space: &'a str,
}

/// Something that a cluster mounts in pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    path: String,
    source: Source,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Nfs { server: String, path: String },
    Claim(String),
    Host(String),
}

/// A volume in words that are none, or an object's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    #[error(
        "`{0}` is no volume; write `/mnt/x=nfs:SERVER:/EXPORT`, `/mnt/x=claim:NAME` (a PersistentVolumeClaim), or \
         `/mnt/x=host:/PATH` (a directory of each node)"
    )]
    Volume(String),
    #[error(
        "`{0}` cannot name objects of Kubernetes: at most {LONGEST_NAME} lower-case letters, digits and `-`, a letter first \
         and no `-` last"
    )]
    Name(String),
}

impl FromStr for Volume {
    type Err = ManifestError;

    fn from_str(text: &str) -> Result<Self, ManifestError> {
        let parsed = || {
            let (path, source) = text.split_once('=')?;
            let absolute = |path: &str| path.starts_with('/').then(|| path.to_owned());
            let source = match source.split_once(':')? {
                ("nfs", export) => {
                    // An address of version 6 has colons of its own.
                    let (server, path) = export.rsplit_once(":/").filter(|(server, _)| !server.is_empty())?;
                    Source::Nfs { server: server.to_owned(), path: format!("/{path}") }
                }
                ("claim", name) => Source::Claim(object_name(name).ok()?.to_owned()),
                ("host", path) => Source::Host(absolute(path)?),
                _ => return None,
            };
            Some(Self { path: absolute(path)?, source })
        };
        parsed().ok_or_else(|| ManifestError::Volume(text.to_owned()))
    }
}

/// A name that objects can have (RFC 1035 labels), with room for what is appended.
///
/// # Errors
/// When it is none.
pub fn object_name(name: &str) -> Result<&str, ManifestError> {
    let fits = name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if fits { Ok(name) } else { Err(ManifestError::Name(name.to_owned())) }
}

impl Manifest<'_> {
    /// What makes the controller wait for the agents: values of `--set`.
    pub fn changes(agents: u32) -> Vec<String> {
        vec![
            "clients.launcher=external".into(),
            format!("clients.nodes={agents}"),
            format!("clients.address=0.0.0.0:{PORT}"),
            format!("clients.credentials={KEYS}/controller"),
        ]
    }

    /// All objects, as a `List`, with the keys in them: it is as secret as they are.
    ///
    /// # Errors
    /// When it is no key for TLS.
    pub fn objects(&self, key: &ControllerKey) -> Result<Value, KeyError> {
        let agents = key.credentials()?;
        let [keys, study, claim, job] =
            ["keys", "study", "results", "agents"].map(|part| format!("{}-{part}", self.name));
        let items =
            json!([
            self.object("v1", "Secret", &keys, json!({
                "type": "Opaque",
                "stringData": {"controller": key.to_json().as_str(), "agent": agents.to_json().as_str()},
            })),
            self.object("v1", "ConfigMap", &study, json!({"data": {"study.toml": self.study}})),
            self.object("v1", "PersistentVolumeClaim", &claim, json!({"spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": self.space}},
            }})),
            self.object("v1", "Service", self.name, json!({"spec": {
                // Its name leads to the pod itself, ready or not.
                "clusterIP": "None",
                "publishNotReadyAddresses": true,
                "selector": self.labels("controller"),
                "ports": [{"name": "agents", "port": PORT}],
            }})),
            self.object("batch/v1", "Job", &job, json!({"spec": {
                "completionMode": "Indexed",
                "completions": self.agents,
                "parallelism": self.agents,
                "backoffLimit": self.agents.saturating_mul(3),
                "template": self.agent(&keys),
            }})),
            self.object("batch/v1", "Job", self.name, json!({"spec": {
                // A study that failed is not better for being repeated.
                "backoffLimit": 0,
                "template": self.controller(&keys, &study, &claim),
            }})),
        ]);
        Ok(json!({"apiVersion": "v1", "kind": "List", "items": items}))
    }

    fn labels(&self, component: &str) -> Value {
        json!({
            "app.kubernetes.io/name": "benchmaster",
            "app.kubernetes.io/instance": self.name,
            "app.kubernetes.io/component": component,
        })
    }

    fn object(&self, version: &str, kind: &str, name: &str, content: Value) -> Value {
        let mut metadata = json!({"name": name, "labels": {
            "app.kubernetes.io/name": "benchmaster",
            "app.kubernetes.io/instance": self.name,
        }});
        if let Some(namespace) = self.namespace {
            metadata["namespace"] = namespace.into();
        }
        let mut object = json!({"apiVersion": version, "kind": kind, "metadata": metadata});
        if let (Value::Object(object), Value::Object(content)) = (&mut object, content) {
            object.extend(content);
        }
        object
    }

    fn agent(&self, keys: &str) -> Value {
        let dial = format!("{}:{PORT}", self.name);
        let arguments: Vec<Value> =
            ["agent", "--dial", &dial, "--credentials", &format!("{KEYS}/agent"), "--wait", "10m"]
                .map(Value::from)
                .into();
        let mut pod = self.pod("agent", "OnFailure", arguments, vec![secret(keys, "agent")]);
        // One agent on each node, while there are nodes.
        pod["spec"]["topologySpreadConstraints"] = json!([{
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": self.labels("agent")},
        }]);
        pod
    }

    fn controller(&self, keys: &str, study: &str, claim: &str) -> Value {
        let mut arguments: Vec<Value> = [
            "run".into(),
            format!("{STUDY}/study.toml"),
            "--output".into(),
            format!("{RESULTS}/{}", self.name),
        ]
        .map(Value::from)
        .into();
        for change in Self::changes(self.agents) {
            arguments.extend(["--set".to_owned(), change].map(Value::from));
        }
        arguments.extend(self.arguments.iter().cloned().map(Value::from));
        let volumes = vec![
            secret(keys, "controller"),
            (STUDY.to_owned(), json!({"name": "study", "configMap": {"name": study}})),
            (RESULTS.to_owned(), json!({"name": "results", "persistentVolumeClaim": {"claimName": claim}})),
        ];
        let mut pod = self.pod("controller", "Never", arguments, volumes);
        // For `--set server.listen=$(POD_IP)`.
        pod["spec"]["containers"][0]["env"] =
            json!([{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]);
        pod
    }

    fn pod(&self, component: &str, restart: &str, arguments: Vec<Value>, own: Vec<(String, Value)>) -> Value {
        let of_study = self.volumes.iter().enumerate().map(|(number, volume)| {
            let name = format!("volume-{number}");
            let source = match &volume.source {
                Source::Nfs { server, path } => {
                    json!({"name": name, "nfs": {"server": server, "path": path}})
                }
                Source::Claim(claim) => json!({"name": name, "persistentVolumeClaim": {"claimName": claim}}),
                Source::Host(path) => json!({"name": name, "hostPath": {"path": path}}),
            };
            (volume.path.clone(), source)
        });
        let all: Vec<(String, Value)> = own.into_iter().chain(of_study).collect();
        let mounts: Vec<Value> =
            all.iter().map(|(path, volume)| json!({"name": volume["name"], "mountPath": path})).collect();
        let volumes: Vec<Value> = all.into_iter().map(|(_, volume)| volume).collect();
        json!({
            "metadata": {"labels": self.labels(component)},
            "spec": {
                "restartPolicy": restart,
                "containers": [{
                    "name": component,
                    "image": self.image,
                    "args": arguments,
                    "volumeMounts": mounts,
                }],
                "volumes": volumes,
            },
        })
    }
}

/// One key of the secret, and where it is.
fn secret(name: &str, key: &str) -> (String, Value) {
    let items = json!([{"key": key, "path": key}]);
    let secret = json!({"secretName": name, "defaultMode": SECRET_MODE, "items": items});
    (KEYS.to_owned(), json!({"name": "keys", "secret": secret}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_read_or_refused_with_their_forms() {
        let nfs = |server: &str, path: &str| Source::Nfs { server: server.into(), path: path.into() };
        for (text, source) in [
            ("/mnt/x=nfs:filer:/vol1", nfs("filer", "/vol1")),
            ("/mnt/x=nfs:[fe80::1]:/", nfs("[fe80::1]", "/")),
            ("/mnt/x=claim:scratch", Source::Claim("scratch".into())),
            ("/mnt/x=host:/srv", Source::Host("/srv".into())),
        ] {
            assert_eq!(text.parse(), Ok(Volume { path: "/mnt/x".into(), source }), "{text}");
        }
        for text in [
            "",
            "/mnt/x",
            "mnt=host:/srv",
            "/x=host:srv",
            "/x=nfs:filer",
            "/x=nfs::/v",
            "/x=claim:A",
            "/x=y:z",
        ] {
            let error = text.parse::<Volume>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{text}` is no volume; write `/mnt/x=nfs:")), "{error}");
        }
    }

    #[test]
    fn names_are_those_of_kubernetes() {
        for good in ["a", "wide-10", &"a".repeat(LONGEST_NAME)] {
            assert_eq!(object_name(good), Ok(good));
        }
        for bad in ["", "1a", "A", "a_b", "a-", "-a", "a.b", "ä", &"a".repeat(LONGEST_NAME + 1)] {
            assert!(object_name(bad).is_err(), "{bad}");
        }
    }
}
