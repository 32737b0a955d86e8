//! Variables and the values of attributes.

use std::collections::BTreeMap;

use super::draw::Draw;
use super::parse::{Attribute, Raw, Term};
use crate::Mistake;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Number(i64),
    Truth(bool),
    Text(String),
    /// A random variable: another value at each use.
    Drawn(Draw),
}

/// Variables by name; those of a composite flowop before those of the file.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    variables: BTreeMap<String, Value>,
    locals: BTreeMap<String, Value>,
}

impl Scope {
    pub(super) fn set(&mut self, variable: &str, value: Value) {
        self.variables.insert(variable.to_owned(), value);
    }

    pub(super) fn get(&self, variable: &str) -> Option<&Value> {
        self.locals.get(variable).or_else(|| self.variables.get(variable))
    }

    /// The scope inside a composite flowop, which sees the file's variables and these.
    pub(super) fn within(&self, locals: BTreeMap<String, Value>) -> Self {
        Self { variables: self.variables.clone(), locals }
    }

    /// The value of what is written; the error names an unknown variable.
    pub(super) fn value(&self, raw: &Raw) -> Result<Value, String> {
        match raw {
            Raw::Number(number) => Ok(Value::Number(*number)),
            Raw::Text(text) => Ok(match text.as_str() {
                "true" => Value::Truth(true),
                "false" => Value::Truth(false),
                _ => Value::Text(text.clone()),
            }),
            Raw::Variable(name) => self
                .get(name)
                .cloned()
                .ok_or_else(|| format!("the variable `${name}` has no value: add `set ${name}=…` before")),
        }
    }

    /// The value of an expression, from left to right.
    pub(super) fn terms(&self, terms: &[Term]) -> Result<Value, String> {
        let [first, rest @ ..] = terms else { return Err("a value is missing".into()) };
        let mut sum = self.value(&first.value)?;
        for term in rest {
            let (Value::Number(left), Value::Number(right)) = (&sum, self.value(&term.value)?) else {
                return Err("only whole numbers can be joined by `+`, `-`, `*` and `/`".into());
            };
            let result = match term.sign {
                '+' => left.checked_add(right),
                '-' => left.checked_sub(right),
                '*' => left.checked_mul(right),
                _ => left.checked_div(right),
            };
            sum = Value::Number(result.ok_or("the result does not fit into a number")?);
        }
        Ok(sum)
    }
}

/// The attributes of one thing: values by name, each of them used or named as unknown.
#[derive(Debug, Clone)]
pub(super) struct Attributes<'a> {
    list: &'a [Attribute],
    scope: &'a Scope,
}

impl<'a> Attributes<'a> {
    /// # Errors
    /// An attribute that is not among the words of `known`.
    pub(super) fn new(
        list: &'a [Attribute],
        scope: &'a Scope,
        of: &str,
        known: &str,
    ) -> Result<Self, Mistake> {
        for attribute in list.iter().filter(|attribute| !attribute.local) {
            if !known.split(' ').any(|known| known == attribute.name) {
                let message = format!(
                    "`{of}` has no attribute `{}`: it has {}",
                    attribute.name,
                    known.replace(' ', ", ")
                );
                return Err(attribute.mistake(message));
            }
        }
        Ok(Self { list, scope })
    }

    /// The attribute as it is written; the last one counts.
    pub(super) fn find(&self, name: &str) -> Option<&'a Attribute> {
        self.list.iter().rev().find(|attribute| attribute.name == name && !attribute.local)
    }

    pub(super) fn value(&self, name: &str) -> Result<Option<(&'a Attribute, Value)>, Mistake> {
        let Some(attribute) = self.find(name) else { return Ok(None) };
        let value = match &attribute.value {
            Some(raw) => self.scope.value(raw).map_err(|message| attribute.mistake(message))?,
            None => Value::Truth(true),
        };
        Ok(Some((attribute, value)))
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Mistake> {
        Ok(match self.value(name)? {
            Some((_, Value::Text(text))) => Some(text),
            Some((_, Value::Number(number))) => Some(number.to_string()),
            Some((attribute, _)) => return Err(attribute.mistake("a text is wanted here")),
            None => None,
        })
    }

    /// Whether an attribute is given and not false.
    pub(super) fn truth(&self, name: &str) -> Result<bool, Mistake> {
        Ok(match self.value(name)? {
            Some((_, Value::Truth(truth))) => truth,
            Some((_, Value::Number(number))) => number != 0,
            Some((attribute, _)) => {
                return Err(attribute.mistake("write `true` or `false`, or the name of the attribute alone"));
            }
            None => false,
        })
    }

    /// A whole number from 0 on; a random variable is an error.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Mistake> {
        match self.value(name)? {
            Some((attribute, Value::Number(number))) => u64::try_from(number)
                .map(Some)
                .map_err(|_| attribute.mistake("a number from 0 on is wanted here")),
            Some((attribute, Value::Drawn(_))) => {
                Err(attribute.mistake("a random variable cannot be here: write a number"))
            }
            Some((attribute, _)) => Err(attribute.mistake("a number is wanted here")),
            None => Ok(None),
        }
    }

    /// A number, or what is drawn.
    pub(super) fn amount(&self, name: &str) -> Result<Option<(&'a Attribute, Amount)>, Mistake> {
        match self.value(name)? {
            Some((attribute, Value::Number(number))) => match u64::try_from(number) {
                Ok(number) => Ok(Some((attribute, Amount::Fixed(number)))),
                Err(_) => Err(attribute.mistake("a number from 0 on is wanted here")),
            },
            Some((attribute, Value::Drawn(draw))) => Ok(Some((attribute, Amount::Drawn(draw)))),
            Some((attribute, _)) => Err(attribute.mistake("a number or a random variable is wanted here")),
            None => Ok(None),
        }
    }
}

/// A number that is always the same, or drawn anew.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Amount {
    Fixed(u64),
    Drawn(Draw),
}

impl Amount {
    pub(super) fn mean(&self) -> f64 {
        match self {
            Self::Fixed(number) => *number as f64,
            Self::Drawn(draw) => draw.mean(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        let mut scope = Scope::default();
        scope.set("n", Value::Number(6));
        let term = |sign, value| Term { sign, value };
        let n = || Raw::Variable("n".into());
        let sum = |terms: &[Term]| scope.terms(terms);
        let (seven, zero) = (Raw::Number(7), Raw::Number(0));
        assert_eq!(sum(&[term('+', n()), term('*', seven.clone())]), Ok(Value::Number(42)));
        assert_eq!(sum(&[term('+', seven.clone()), term('-', n())]), Ok(Value::Number(1)));
        assert!(sum(&[term('+', n()), term('/', zero)]).is_err());
        assert!(sum(&[term('+', Raw::Text("a".into())), term('+', seven)]).is_err());
        let error = sum(&[term('+', Raw::Variable("m".into()))]).unwrap_err();
        assert!(error.contains("`$m` has no value"), "{error}");
    }

    #[test]
    fn locals_hide_variables() {
        let mut scope = Scope::default();
        scope.set("n", Value::Number(1));
        let inner = scope.within(BTreeMap::from([("n".into(), Value::Number(2))]));
        assert_eq!((scope.get("n"), inner.get("n")), (Some(&Value::Number(1)), Some(&Value::Number(2))));
    }
}
