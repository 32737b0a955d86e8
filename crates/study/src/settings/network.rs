//! The section `[network]`: what is emulated between clients and server.

use std::borrow::Cow;
use std::fmt;

use benchmaster_netem::interface::{Discipline, Interface};
use benchmaster_netem::toeplitz::HashKey;
use benchmaster_record::words;
use benchmaster_units::{Bandwidth, ByteSize, TimeSpan};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::scalar::Scalar;

/// What is emulated between clients and server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NetworkSettings {
    /// One-way delay, in both directions: a round trip takes twice as long. `"0ms"` emulates nothing.
    pub delay: TimeSpan,
    /// How much the delay varies: that of each packet is drawn evenly from so much less to so much more. Order is kept. At
    /// most the delay.
    pub jitter: TimeSpan,
    /// Bandwidth of each client's link, in each direction. If absent, it is not limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<Bandwidth>,
    /// Share of the packets that are lost on each client's link, in each direction.
    pub loss: Loss,
    /// Bandwidth of the server's link, which all clients share, in each direction. If absent, it is not limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_bandwidth: Option<Bandwidth>,
    /// Most bytes that wait for `bandwidth`, in each direction of a client's link; what comes on top is dropped. If absent, what
    /// the bandwidth carries in a round trip, and 64 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<ByteSize>,
    /// Transmit queues of each host's network interface, in front of `bandwidth` at clients and of `server_bandwidth` at the
    /// server: 1 to 64, which share the line packet by packet. Flows are hashed to them. If absent, one, unless another
    /// of these keys is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub queues: Option<u32>,
    /// Order of packets in each transmit queue: `"fifo"`, `"sfq"` (127 classes of flows take turns) or `"fq"` (flows take turns).
    /// If absent, `"fifo"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "discipline_schema")]
    pub queue_discipline: Option<Discipline>,
    /// Most bytes that wait in each transmit queue; what comes on top is dropped. If absent, what the bandwidth carries in a
    /// round trip, and 64 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_limit: Option<ByteSize>,
    /// Most bytes of a flow in its transmit queue, one packet at least; what comes on top waits at its sender, as with TCP's small
    /// queues (TSQ). If absent, no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow_limit: Option<ByteSize>,
    /// Seed of the key with which flows are hashed to transmit queues. If absent, another in each run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash_seed: Option<u64>,
    /// The key itself, 40 bytes in hexadecimal as `ethtool -x` shows it, instead of a seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub hash_key: Option<HashKey>,
    /// Period after which all flows are hashed with another key, from the beginning of a workload's measured phase. If absent,
    /// they never are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rehash: Option<TimeSpan>,
    /// MTU of all interfaces: the largest IP packet in a frame, in bytes. If absent, 1500, as Ethernet has it; 9000 are jumbo
    /// frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 576, max = 9000))]
    pub mtu: Option<u32>,
    /// Congestion control of TCP at both ends, by the kernel's name: `"cubic"`, `"reno"`, `"bbr"`. If absent, the host's default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Largest congestion window of TCP at both ends, in segments, as `cwnd lock` of a route sets it. If absent, not limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535))]
    pub cwnd_clamp: Option<u32>,
    /// How it is emulated.
    pub means: Means,
}

impl NetworkSettings {
    /// Whether nothing is emulated.
    pub fn is_plain(&self) -> bool {
        self.delay == TimeSpan::default() && self.beyond_delay().is_none()
    }

    /// The first key that asks for more than a delay.
    pub fn beyond_delay(&self) -> Option<&'static str> {
        [
            ("jitter", self.jitter > TimeSpan::default()),
            ("bandwidth", self.bandwidth.is_some()),
            ("loss", self.loss.0 > 0.0),
            ("server_bandwidth", self.server_bandwidth.is_some()),
            ("queue", self.queue.is_some()),
            ("mtu", self.mtu.is_some()),
            ("congestion", self.congestion.is_some()),
            ("cwnd_clamp", self.cwnd_clamp.is_some()),
        ]
        .into_iter()
        .find(|(_, asked)| *asked)
        .map(|(key, _)| key)
        .or_else(|| self.of_queues())
    }

    /// The first key that asks for transmit queues.
    pub fn of_queues(&self) -> Option<&'static str> {
        [
            ("queues", self.queues.is_some()),
            ("queue_discipline", self.queue_discipline.is_some()),
            ("queue_limit", self.queue_limit.is_some()),
            ("flow_limit", self.flow_limit.is_some()),
            ("hash_seed", self.hash_seed.is_some()),
            ("hash_key", self.hash_key.is_some()),
            ("rehash", self.rehash.is_some()),
        ]
        .into_iter()
        .find(|(_, asked)| *asked)
        .map(|(key, _)| key)
    }

    /// The transmit queues asked for. The key of their hash is that of the settings, if they state one.
    pub fn interface(&self, key: HashKey) -> Option<Interface> {
        self.of_queues()?;
        Some(Interface {
            discipline: self.queue_discipline.unwrap_or_default(),
            limit: self.queue_limit.map(|limit| limit.0),
            key: self.hash_key.or_else(|| self.hash_seed.map(HashKey::of_seed)).unwrap_or(key),
            rehash: self.rehash.map(|period| period.0),
            flow_limit: self.flow_limit.map(|limit| limit.0),
            ..Interface::new(self.queues.unwrap_or(1))
        })
    }
}

fn discipline_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "enum": Discipline::ALL })
}

words! {
    /// How a network is emulated.
    #[derive(Default, JsonSchema)]
    Means {
        /// The best that this host and the server allow, which is reported with the results.
        #[default]
        Auto = "auto",
        /// The kernel's `tc netem` between network namespaces; needs root.
        Netem = "netem",
        /// A wire in user space between network namespaces.
        Wire = "wire",
        /// A relay of TCP connections: a delay only, right for the latency of requests.
        Relay = "relay",
    }
}

/// A share of packets that are lost: `0.001`, or `"0.1%"`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct Loss(pub f64);

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Of most shares the hundredfold is written with fewer digits than it has.
        let percent = (self.0 * 100.0 * 1e9).round() / 1e9;
        write!(f, "{percent}%")
    }
}

impl Serialize for Loss {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What a loss may be.
const LOSS: &str = "a percentage such as \"0.1%\", or a share from 0 to 1";

impl<'de> Deserialize<'de> for Loss {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (share, written) = match Scalar::read(deserializer, LOSS)? {
            Scalar::Text(text) => {
                let number =
                    text.trim().strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
                let percent = number.ok_or_else(|| {
                    de::Error::custom(format!(
                        "`{text}` is not a percentage; write `\"0.1%\"`, or the share 0.001 without quotes"
                    ))
                })?;
                (percent / 100.0, format!("`{text}`"))
            }
            Scalar::Number(number) => (number, number.to_string()),
            Scalar::Whole(number) => (number as f64, number.to_string()),
            truth @ Scalar::Truth(_) => return Err(truth.unexpected(LOSS)),
        };
        if (0.0..1.0).contains(&share) {
            Ok(Self(share))
        } else {
            Err(de::Error::custom(format!(
                "a loss of {written} is not a share of packets; write a number from 0 to less than 1, or a percentage \
                 such as `\"0.1%\"`"
            )))
        }
    }
}

impl JsonSchema for Loss {
    fn schema_name() -> Cow<'static, str> {
        "Loss".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": LOSS,
            "examples": ["0.1%", 0.001],
            "anyOf": [
                { "type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]*)?\s*%\s*$" },
                { "type": "number", "minimum": 0, "exclusiveMaximum": 1 },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_shares_or_percentages() {
        let network = |text: &str| toml::from_str::<NetworkSettings>(text);
        assert_eq!(network("loss = '0.1%'").unwrap().loss, network("loss = 0.001").unwrap().loss);
        assert_eq!(network("loss = '0.1%'").unwrap().loss.to_string(), "0.1%");
        for bad in ["1", "-0.1", "'5'", "'100%'", "true"] {
            assert!(network(&format!("loss = {bad}")).is_err(), "{bad}");
        }
        assert!(network("").unwrap().is_plain());
        let limited = network("bandwidth = '1Gbit/s'").unwrap();
        assert_eq!((limited.is_plain(), limited.beyond_delay()), (false, Some("bandwidth")));
        for (key, text) in [
            ("mtu", "mtu = 1500"),
            ("congestion", "congestion = 'cubic'"),
            ("cwnd_clamp", "cwnd_clamp = 64"),
            ("queues", "queues = 8"),
            ("queue_discipline", "queue_discipline = 'sfq'"),
            ("queue_limit", "queue_limit = '1MiB'"),
            ("flow_limit", "flow_limit = '128KiB'"),
            ("hash_seed", "hash_seed = 7"),
            ("rehash", "rehash = '10s'"),
        ] {
            let asked = network(text).unwrap();
            assert_eq!((asked.is_plain(), asked.beyond_delay()), (false, Some(key)));
        }
    }

    #[test]
    fn transmit_queues_are_those_asked_for() {
        let network = |text: &str| toml::from_str::<NetworkSettings>(text);
        let key = HashKey::of_seed(1);
        assert_eq!(network("delay = '1ms'").unwrap().interface(key), None);
        assert_eq!(
            network("queues = 8").unwrap().interface(key),
            Some(Interface { key, ..Interface::new(8) })
        );
        let fair = network("queue_discipline = 'fq'\nhash_seed = 7\nrehash = '10s'").unwrap().interface(key);
        let expected = Interface {
            discipline: Discipline::Fq,
            key: HashKey::of_seed(7),
            rehash: Some(std::time::Duration::from_secs(10)),
            ..Interface::new(1)
        };
        assert_eq!(fair, Some(expected));
        let text = HashKey::of_seed(3).to_string();
        let given = network(&format!("hash_key = '{text}'")).unwrap().interface(key);
        assert_eq!(given.map(|interface| interface.key), Some(HashKey::of_seed(3)));
        assert!(network("hash_key = '6d:5a'").is_err());
        assert!(network("queue_discipline = 'red'").is_err());
    }
}
