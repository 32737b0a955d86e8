//! Whether what was asked of a mount was in effect: without that, a level of a factor is not what its name says.
//!
//! What was asked is in the URL, where only options stand that differ from their defaults: a server that grants fewer slots
//! than the client asks for by itself breaks no promise. What was in effect is what the client counted. READs and WRITEs that the
//! server cuts have a finding of their own, `transfer-size-cut`.

use super::rule::{all_of_it, with_rpcs};
use crate::prelude::*;
use benchmaster_record::recording::{PartOf, RpcRecording};

pub(crate) static NOT_IN_EFFECT: Rule = Rule {
    check: not_in_effect,
    finding: Follows::Finding(Consequence {
        could: with_rpcs,
        numbers: &[("asked", "what the target asks for"), ("had", "what was in effect")],
        cost: all_of_it,
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::NotInEffect)
};

/// Calls for each connection from which on one without any was not in use.
const LEAST_CALLS: u64 = 16;

/// An option, what was asked, what was had, and what that is.
type Shortfall = (&'static str, String, u64, u64, &'static str);

fn not_in_effect(s: Subject<'_>) -> Option<Check> {
    let rpc = s.recording.rpc.as_ref().filter(|rpc| rpc.source == RpcSource::Client)?;
    let url = &s.service?.url;
    let found = [granted_slots(url, rpc), connections(s, url, rpc)];
    let (option, value, asked, had, what) = found.into_iter().flatten().next()?;
    let message = format!("`{option}={value}` was not in effect: {what} {had} of {asked}.");
    let evidence = [Evidence::number("asked", asked as f64), Evidence::number("had", had as f64)];
    failed(s, CheckKind::NotInEffect, Severity::Invalid, message, evidence)
}

/// The value of an option in a URL.
fn asked<'u>(url: &'u str, option: &str) -> Option<&'u str> {
    let (_, query) = url.split_once('?')?;
    let options = query.split(['&', ',']).filter_map(|text| text.split_once('='));
    options.rev().find(|(name, _)| *name == option).map(|(_, value)| value)
}

fn granted_slots(url: &str, rpc: &RpcRecording) -> Option<Shortfall> {
    let value = asked(url, "slots")?;
    let (wanted, had) = (value.parse().ok()?, u64::from(rpc.connection.slots?));
    (had < wanted).then(|| ("slots", value.to_owned(), wanted, had, "the server granted"))
}

/// Connections that carried calls while it was measured.
fn connections(s: Subject<'_>, url: &str, rpc: &RpcRecording) -> Option<Shortfall> {
    let of_addresses = asked(url, "addresses").map(|value| ("addresses", value));
    let (option, value) = of_addresses.or_else(|| asked(url, "nconnect").map(|value| ("nconnect", value)))?;
    let wanted = u64::from(rpc.connection.nconnect);
    let of_connections = || s.recording.parts.iter().filter(|part| part.part == PartOf::Connection);
    let (had, calls) = of_connections()
        .fold((0, 0), |(had, calls), part| (had + u64::from(part.count > 0), calls + part.count));
    (had < wanted && calls >= LEAST_CALLS * wanted)
        .then(|| (option, value.to_owned(), wanted, had, "the connections in use were"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_in_the_url_counts() {
        let url = "nfs://{server}/export?version=4.1&slots=16&nconnect=2&slots=256";
        assert_eq!((asked(url, "slots"), asked(url, "nconnect")), (Some("256"), Some("2")));
        assert_eq!((asked(url, "rsize"), asked("/mnt", "slots")), (None, None));
    }
}
