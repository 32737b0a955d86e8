//! Steps that set a managed server up, with the parameters in their commands.

use std::borrow::Cow;
use std::collections::BTreeMap;

use benchmaster_record::words;
use benchmaster_units::TimeSpan;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use crate::scalar::Scalar;

/// A command that sets a managed server up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerStep {
    /// Its name.
    pub name: String,
    /// Shell command. `{name}` stands for the parameter of this name, quoted for the shell; braces that the shell shall
    /// see are doubled: `{{name}}`.
    #[schemars(extend("examples" = ["mkfs -t {fs} {device}"]))]
    pub command: String,
    /// When it is done.
    #[serde(default)]
    pub when: When,
    /// Where it is done.
    #[serde(default)]
    pub on: StepSide,
    /// Time after which it is stopped, and has failed.
    #[serde(default = "timeout")]
    pub timeout: TimeSpan,
}

/// A command that undoes what steps did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TeardownStep {
    /// Its name.
    pub name: String,
    /// Shell command, as of a step.
    pub command: String,
    /// Where it is done.
    #[serde(default)]
    pub on: StepSide,
    /// Time after which it is stopped, and has failed.
    #[serde(default = "timeout")]
    pub timeout: TimeSpan,
}

fn timeout() -> TimeSpan {
    TimeSpan::seconds(300)
}

words! {
    /// When a step is done.
    #[derive(Default, JsonSchema)]
    When {
        /// Once, when a session of the study begins.
        Study = "study",
        /// Before a run of another treatment than the last one.
        #[default]
        Treatment = "treatment",
        /// Before every run.
        Run = "run",
    }
}

words! {
    /// On which hosts a command is run.
    #[derive(Default, JsonSchema)]
    StepSide {
        /// On the server's host.
        #[default]
        Server = "server",
        /// On every host with clients, once on each.
        Clients = "clients",
    }
}

/// Value of a parameter of the steps, as text whatever it is in TOML: `"ext4"`, `8`, `true`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ParameterText(pub String);

/// What the value of a parameter may be.
const PARAMETER: &str = "a string, a whole number, `true` or `false`";

impl<'de> Deserialize<'de> for ParameterText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Scalar::read(deserializer, PARAMETER)? {
            number @ Scalar::Number(_) => Err(number.unexpected(PARAMETER)),
            value => Ok(Self(value.to_string())),
        }
    }
}

impl JsonSchema for ParameterText {
    fn schema_name() -> Cow<'static, str> {
        "Parameter".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": PARAMETER,
            "type": ["string", "integer", "boolean"],
        })
    }
}

/// A command names a parameter that is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownParameter(pub String);

/// The command with the values of the parameters in it, each as one word of the shell.
///
/// # Errors
/// The first name in braces that is no parameter's.
pub fn substitute(
    command: &str,
    parameters: &BTreeMap<String, ParameterText>,
) -> Result<String, UnknownParameter> {
    let mut out = String::new();
    let mut rest = command;
    while let Some(brace) = rest.find('{') {
        let (before, from) = rest.split_at(brace);
        out.push_str(before);
        let doubled = from.starts_with("{{");
        let inner = &from[if doubled { 2 } else { 1 }..];
        let length =
            inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').unwrap_or(inner.len());
        let (name, after) = inner.split_at(length);
        let close = if doubled { "}}" } else { "}" };
        // `${name}` is the shell's, `{ a; b; }` a group, `{}` of find an argument.
        if name.is_empty() || !after.starts_with(close) || before.ends_with('$') {
            out.push('{');
            rest = &from[1..];
            continue;
        }
        rest = &after[close.len()..];
        if doubled {
            out.push_str(&format!("{{{name}}}"));
            continue;
        }
        let value = parameters.get(name).ok_or_else(|| UnknownParameter(name.to_owned()))?;
        out.push_str(&quote(&value.0));
    }
    out.push_str(rest);
    Ok(out)
}

/// A text as one word of the shell.
pub fn quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-+=./:,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_become_words_of_the_shell() {
        let parameters: BTreeMap<String, ParameterText> =
            [("fs", "ext4"), ("device", "/dev/sd b"), ("evil", "x'; rm -rf /; '")]
                .map(|(name, value)| (name.to_owned(), ParameterText(value.to_owned())))
                .into();
        for (command, expected) in [
            ("mkfs -t {fs} {device}", "mkfs -t ext4 '/dev/sd b'"),
            ("echo {evil}", r"echo 'x'\''; rm -rf /; '\'''"),
            ("echo ${fs} ${fs:-{fs}}", "echo ${fs} ${fs:-ext4}"),
            ("awk '{{print}}'", "awk '{print}'"),
            ("awk '{print $1}' | find -exec a {} \\;", "awk '{print $1}' | find -exec a {} \\;"),
            ("{ a; b; }", "{ a; b; }"),
            ("a {", "a {"),
        ] {
            assert_eq!(substitute(command, &parameters).as_deref(), Ok(expected), "{command}");
        }
        assert_eq!(substitute("mount {disk}", &parameters), Err(UnknownParameter("disk".into())));
        assert_eq!((quote(""), quote("a b")), ("''".into(), "'a b'".into()));
    }

    #[test]
    fn what_the_shell_is_given_is_what_was_meant() {
        for value in ["plain", "with space", "it's", "$HOME `id` \"x\"", "*", "a\nb"] {
            let parameters = BTreeMap::from([("p".to_owned(), ParameterText(value.to_owned()))]);
            let command = substitute("printf %s {p}", &parameters).unwrap();
            let output = std::process::Command::new("sh").args(["-c", &command]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), value);
        }
    }
}
