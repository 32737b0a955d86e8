//! Workloads as data: a workload in full, in TOML, with the names of parameters where their values belong.
//!
//! * `"$files"` is the value of `files`; within a longer text, as in `"$name-log"`, it is its text.
//! * What has no value is left out: a key with its value, an element of a list.
//! * A table whose `when` is false is left out.
//! * `{ by = "$column", seeks = …, else = … }` is the value under the key that is the value of `column`.
//! * A list within a list is continued in it.

use std::sync::OnceLock;

use serde::Serialize;
use serde_json::{Map, Value};

use benchmaster_record::model::{ParameterError, Workload};

use super::common::Expanded;

#[derive(Debug, thiserror::Error)]
enum FillError {
    #[error(transparent)]
    Template(#[from] toml::de::Error),
    #[error(transparent)]
    Value(#[from] serde_json::Error),
    #[error("there is no value `{0}`")]
    Unknown(String),
}

/// A template, read when it is filled for the first time.
pub(super) struct Template {
    text: &'static str,
    read: OnceLock<Result<Value, toml::de::Error>>,
}

impl Template {
    pub(super) const fn new(text: &'static str) -> Self {
        Self { text, read: OnceLock::new() }
    }

    /// The workload for these values: `name`, the `parameters`, and those `derived` from them.
    pub(super) fn fill(&self, name: &str, parameters: &impl Serialize, derived: Value) -> Expanded {
        self.workload(name, parameters, derived).map_err(|error| {
            let message = format!("these parameters make no workload: {error}");
            vec![ParameterError::new("use", message, "use smaller numbers")]
        })
    }

    fn workload(
        &self,
        name: &str,
        parameters: &impl Serialize,
        derived: Value,
    ) -> Result<Workload, FillError> {
        let mut values = Map::from_iter([("name".to_owned(), name.into())]);
        for more in [serde_json::to_value(parameters)?, derived] {
            if let Value::Object(more) = more {
                values.extend(more);
            }
        }
        let template = self.read.get_or_init(|| toml::from_str(self.text)).as_ref().map_err(Clone::clone)?;
        Ok(serde_json::from_value(filled(template, &values)?)?)
    }
}

fn filled(value: &Value, values: &Map<String, Value>) -> Result<Value, FillError> {
    Ok(match value {
        Value::String(text) => filled_text(text, values)?,
        Value::Array(items) => {
            let mut all = Vec::with_capacity(items.len());
            for item in items {
                match filled(item, values)? {
                    Value::Null => {}
                    Value::Array(more) => all.extend(more),
                    one => all.push(one),
                }
            }
            Value::Array(all)
        }
        Value::Object(table) => match (table.get("by"), table.get("when")) {
            (Some(by), _) => {
                let key = text(&filled(by, values)?);
                match table.get(&key).or_else(|| table.get("else")) {
                    Some(chosen) => filled(chosen, values)?,
                    None => Value::Null,
                }
            }
            (None, Some(when)) if filled(when, values)? != Value::Bool(true) => Value::Null,
            (None, _) => {
                let mut all = Map::new();
                for (key, value) in table.iter().filter(|(key, _)| *key != "when") {
                    match filled(value, values)? {
                        Value::Null => {}
                        value => _ = all.insert(text(&filled_text(key, values)?), value),
                    }
                }
                Value::Object(all)
            }
        },
        other => other.clone(),
    })
}

/// What a text with names in it stands for.
fn filled_text(template: &str, values: &Map<String, Value>) -> Result<Value, FillError> {
    let mut pieces = template.split('$');
    let mut all = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
        let (name, rest) = piece.split_at(end.unwrap_or(piece.len()));
        let value = values.get(name).ok_or_else(|| FillError::Unknown(name.to_owned()))?;
        if name.len() + 1 == template.len() {
            return Ok(value.clone());
        }
        all.push_str(&text(value));
        all.push_str(rest);
    }
    Ok(Value::String(all))
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(template: &str) -> Result<Value, FillError> {
        let values = json!({ "n": 3, "name": "w", "yes": true, "no": false, "nothing": null, "mode": "a" });
        filled(&toml::from_str(template).unwrap(), values.as_object().unwrap())
    }

    #[test]
    fn names_become_values() {
        let filled = of("a = '$n'\n'$name-b' = '$name-$n.'\nc = '$nothing'\nd = ['$n', '$nothing']").unwrap();
        assert_eq!(filled, json!({ "a": 3, "w-b": "w-3.", "d": [3] }));
        assert_eq!(of("a = '$other'").unwrap_err().to_string(), "there is no value `other`");
    }

    #[test]
    fn parts_depend_on_values() {
        let filled = of("a = [{ when = '$yes', b = 1 }, { when = '$no', b = 2 }]").unwrap();
        assert_eq!(filled, json!({ "a": [{ "b": 1 }] }));
        let filled =
            of("a = [{ by = '$mode', a = [1, 2] }, { by = '$mode', b = 3 }, { by = '$n', else = 4 }]");
        assert_eq!(filled.unwrap(), json!({ "a": [1, 2, 4] }));
        assert_eq!(of("a = { by = '$yes', true = 1, false = 2 }").unwrap(), json!({ "a": 1 }));
    }
}
