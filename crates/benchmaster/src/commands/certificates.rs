//! `certificates`: files to try TLS with.

use benchmaster_rpc_tls::{Authority, Lifetime};
use jiff::{SignedDuration, Timestamp};

use crate::cli::CertificatesArgs;
use crate::failure::{Failure, Result, Status};
use crate::output;

/// Makes them, and lists the files.
pub(crate) fn certificates(args: &CertificatesArgs) -> Result<Status> {
    let given: Vec<&str> = args.name.iter().map(String::as_str).collect();
    let names = if given.is_empty() { vec!["localhost", "127.0.0.1", "::1"] } else { given };
    let now = Timestamp::now();
    let valid = SignedDuration::try_from(args.valid.0).ok().and_then(|valid| now.checked_add(valid).ok());
    let until =
        valid.ok_or_else(|| Failure::wrong("--valid goes beyond the calendar; write a time such as 365d"))?;
    // Clocks of hosts differ a little.
    let lifetime = Lifetime { from: now - SignedDuration::from_hours(1), until };
    let paths = Authority::write_set(&args.directory, &names, lifetime).map_err(Failure::wrong_input)?;
    for path in paths {
        output::print(&path.display().to_string())?;
    }
    Ok(Status::Fine)
}
