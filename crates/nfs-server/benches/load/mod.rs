//! A load client that costs little: calls are templates patched in place, all calls that one receive makes possible leave in
//! one send, and of the replies only the status is looked at.

pub(crate) mod calls;
pub(crate) mod client;
pub(crate) mod direct;
pub(crate) mod engine;
pub(crate) mod null;
pub(crate) mod peers;
pub(crate) mod process;

/// Version of NFS that is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    V3,
    V41,
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::V3 => "3",
            Self::V41 => "4.1",
        })
    }
}

/// The middle value; of an even number of values the mean of the two.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => f64::NAN,
        (n, mid) if n % 2 == 1 => sorted[mid],
        (_, mid) => (sorted[mid - 1] + sorted[mid]) / 2.0,
    }
}

/// The value of `--name VALUE`, if it is given.
pub(crate) fn option(name: &str) -> Option<String> {
    let mut args = std::env::args().skip_while(|arg| arg != name);
    args.next()?;
    args.next()
}
