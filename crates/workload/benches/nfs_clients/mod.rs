//! Clients of NFS that do one kind of call, each a process of its own, and what they cost.

pub(crate) mod job;
pub(crate) mod null;
pub(crate) mod ours;
pub(crate) mod peers;
pub(crate) mod recorded;
pub(crate) mod server;

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
