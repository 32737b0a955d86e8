//! Families of metrics as lines of OpenMetrics 1.0.

use std::io::{self, Write};

use benchmaster_store::factor_columns;
use jiff::Timestamp;

/// What kind of numbers a family has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Gauge,
    /// Sums; samples end in `_total`.
    Counter,
    /// Buckets by upper bound; samples end in `_bucket`, `_count`, `_sum`.
    Histogram,
    /// Texts as labels of the number 1; samples end in `_info`.
    Info,
}

/// Metrics of one name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// With a unit, the name ends in it.
    pub(super) unit: &'static str,
    pub(super) help: &'static str,
}

/// Labels in order; those without a value are left out, which means the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Labels(Vec<(String, String)>);

impl Labels {
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        if !value.is_empty() {
            self.0.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}

/// Writes families one after another.
pub(super) struct Writer<W: Write> {
    out: io::BufWriter<W>,
    name: &'static str,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out: io::BufWriter::new(out), name: "" }
    }

    /// Begins a family; what follows is of it.
    pub(super) fn begin(&mut self, family: &Family) -> io::Result<()> {
        let Family { name, kind, unit, help } = *family;
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
            Kind::Histogram => "histogram",
            Kind::Info => "info",
        };
        self.name = name;
        writeln!(self.out, "# TYPE {name} {kind}")?;
        if !unit.is_empty() {
            writeln!(self.out, "# UNIT {name} {unit}")?;
        }
        writeln!(self.out, "# HELP {name} {}", escaped(help))
    }

    /// A number of the family that was begun last.
    pub(super) fn sample(
        &mut self,
        suffix: &str,
        labels: &Labels,
        value: f64,
        time: Option<Timestamp>,
    ) -> io::Result<()> {
        let labels: Vec<String> =
            labels.0.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let time = time.map_or(String::new(), |time| {
            let ms = time.as_millisecond();
            format!(" {}.{:03}", ms.div_euclid(1000), ms.rem_euclid(1000))
        });
        writeln!(self.out, "{}{suffix}{labels} {}{time}", self.name, number(value))
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.out.write_all(b"# EOF\n")?;
        self.out.flush()
    }
}

/// A number: `1.0`, `0.001`, `1e-06`, `NaN`, `+Inf`.
pub(super) fn number(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".into() } else { "-Inf".into() };
    }
    if value != 0.0 && value.abs() < 1e-4 {
        let text = format!("{value:e}");
        // Two digits of exponent, as others write it: bounds of buckets are compared as texts.
        return match text.split_once("e-") {
            Some((digits, exponent)) => format!("{digits}e-{exponent:0>2}"),
            None => text,
        };
    }
    let text = value.to_string();
    if text.contains('.') { text } else { format!("{text}.0") }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Names of labels for names of factors: what no label may have becomes `_`, and names that are taken get `factor_` before them.
pub(super) fn label_names(factors: &[&str], taken: &[&str]) -> Vec<String> {
    let allowed = |factor: &&str| -> String {
        let name: String = factor.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        match name.trim_start_matches('_') {
            // Two underscores at the beginning are for the programs' own labels, and digits are none.
            "" => "factor".into(),
            name if name.starts_with(|c: char| c.is_ascii_digit()) => format!("factor_{name}"),
            name => name.into(),
        }
    };
    factor_columns(&factors.iter().map(allowed).collect::<Vec<_>>(), taken)
}
