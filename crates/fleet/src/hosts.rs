//! Host patterns as administrators write them: `c[1-10]`, `c[01-10].example`, `r[1-2]n[1,3,7-9]`, `user@host`.
//!
//! A number range stands in brackets; a leading zero of its first number fixes the number of digits. Several brackets
//! give every combination, the last one counting fastest. Patterns are separated by commas outside brackets, so that
//! `SLURM_JOB_NODELIST` and lists of ClusterShell and pdsh can be given as they are.

use std::collections::HashSet;

/// Most hosts that patterns may stand for; a typing error as `c[1-1000000000]` is refused before anything is expanded.
pub const MOST_HOSTS: usize = 10_000;

/// Why a host pattern was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("host pattern `{pattern}`, character {at}: {problem}")]
pub struct HostsError {
    pub pattern: String,
    /// Where the mistake is: number of the character, counted from 1.
    pub at: usize,
    pub problem: HostsProblem,
}

/// What is wrong with a host pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostsProblem {
    /// Nothing between two commas, or nothing at all.
    #[error("a host name is missing; write names separated by single commas, as `c1,c2`")]
    NoName,
    /// A user without a host, or a host without the user before `@`.
    #[error("`@` separates user and host once, as in `user@host`")]
    User,
    /// A character that no host's or user's name has.
    #[error("{0:?} cannot be part of a host's name; names have letters, digits, and any of `.-_:%`")]
    Character(char),
    /// A name that programs would take for an option.
    #[error("a name cannot begin with `-`")]
    Option,
    /// `[` without `]`.
    #[error("the bracket is not closed; write `c[1-10]`")]
    Unclosed,
    /// `]` without `[`, or `[` within brackets.
    #[error("brackets must be paired and not nested; write `c[1-10]`")]
    Bracket,
    /// Something else than a number where one must be.
    #[error("expected a number; write ranges as `[1-10]`, `[1,3,7-9]` or `[01-10]`")]
    Number,
    /// More digits than any host has.
    #[error("a number has at most {MOST_DIGITS} digits")]
    Digits,
    /// The end is smaller than the start.
    #[error("the range runs backwards; write `[{end}-{start}]`")]
    Backwards {
        /// The first number as written.
        start: String,
        end: String,
    },
    /// `[01-002]`, `[1-010]`: how many digits are meant is ambiguous.
    #[error(
        "`{start}` and `{end}` leave the number of digits open; write both with the same number of digits"
    )]
    Padding {
        /// The first number as written.
        start: String,
        end: String,
    },
    /// More than [`MOST_HOSTS`].
    #[error("more than {MOST_HOSTS} hosts")]
    TooMany,
    /// The same host again.
    #[error("the host `{host}` is listed twice; a host gets one agent, which can run many clients")]
    Twice {
        /// Its name, without a user's.
        host: String,
    },
}

/// Longest number in brackets.
const MOST_DIGITS: usize = 9;

/// The hosts that patterns stand for, in the order in which they are written, each as `host` or `user@host`.
///
/// # Errors
/// [`HostsError`]: what is wrong where; also when a host is there twice (in upper or lower case, with or without a user), or
/// there are more than [`MOST_HOSTS`].
pub fn expand<P: AsRef<str>>(patterns: &[P]) -> Result<Vec<String>, HostsError> {
    let mut hosts = Vec::new();
    let mut seen = HashSet::new();
    for pattern in patterns {
        let pattern = pattern.as_ref();
        let failed = |(at, problem)| HostsError { pattern: pattern.to_owned(), at: at + 1, problem };
        let characters: Vec<char> = pattern.chars().collect();
        let mut rest = 0;
        loop {
            let (name, end) = parse(&characters, rest).map_err(failed)?;
            if name.count() > MOST_HOSTS - hosts.len() {
                return Err(failed((name.start, HostsProblem::TooMany)));
            }
            for host in name.hosts() {
                let bare = host.rsplit_once('@').map_or(host.as_str(), |(_, bare)| bare);
                if !seen.insert(bare.to_ascii_lowercase()) {
                    return Err(failed((name.start, HostsProblem::Twice { host: bare.to_owned() })));
                }
                hosts.push(host);
            }
            match end {
                Some(comma) => rest = comma + 1,
                None => break,
            }
        }
    }
    Ok(hosts)
}

/// One name with its ranges.
#[derive(Debug)]
struct Name {
    /// Where it begins in the pattern.
    start: usize,
    parts: Vec<NamePart>,
}

#[derive(Debug)]
enum NamePart {
    Text(String),
    Numbers(Vec<Range>),
}

#[derive(Debug)]
struct Range {
    first: u32,
    last: u32,
    /// Digits at least.
    width: usize,
}

impl Name {
    /// How many hosts it stands for; `usize::MAX` when that does not fit.
    fn count(&self) -> usize {
        self.parts.iter().fold(1, |product: usize, part| match part {
            NamePart::Text(_) => product,
            NamePart::Numbers(ranges) => {
                let numbers = ranges.iter().map(|range| (range.last - range.first) as usize + 1);
                product.saturating_mul(numbers.fold(0, usize::saturating_add))
            }
        })
    }

    fn hosts(&self) -> Vec<String> {
        let mut names = vec![String::new()];
        for part in &self.parts {
            match part {
                NamePart::Text(text) => names.iter_mut().for_each(|name| name.push_str(text)),
                NamePart::Numbers(ranges) => {
                    let with_numbers = |name: &String| {
                        let numbers = ranges
                            .iter()
                            .flat_map(|range| (range.first..=range.last).map(|n| (n, range.width)));
                        numbers.map(|(n, width)| format!("{name}{n:0width$}")).collect::<Vec<_>>()
                    };
                    names = names.iter().flat_map(with_numbers).collect();
                }
            }
        }
        names
    }
}

/// A mistake and where it is, counted from 0.
type Mistake = (usize, HostsProblem);

/// Reads one name from `start` on; gives it with the place of the comma that ended it, if one did.
fn parse(characters: &[char], start: usize) -> Result<(Name, Option<usize>), Mistake> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let mut user = false;
    let mut at = start;
    let end = loop {
        match characters.get(at) {
            None => break None,
            Some(',') => break Some(at),
            Some('[') => {
                if !text.is_empty() {
                    parts.push(NamePart::Text(std::mem::take(&mut text)));
                }
                let (ranges, after) = numbers(characters, at)?;
                parts.push(NamePart::Numbers(ranges));
                at = after;
                continue;
            }
            Some(']') => return Err((at, HostsProblem::Bracket)),
            Some('@') => {
                // Ranges of users would give one host several times.
                if user || text.is_empty() || !parts.is_empty() {
                    return Err((at, HostsProblem::User));
                }
                user = true;
                text.push('@');
            }
            Some('-') if text.is_empty() && parts.is_empty() || text.ends_with('@') => {
                return Err((at, HostsProblem::Option));
            }
            Some(&c) if c.is_alphanumeric() || ".-_:%".contains(c) => text.push(c),
            Some(&c) => return Err((at, HostsProblem::Character(c))),
        }
        at += 1;
    };
    if text.ends_with('@') && parts.is_empty() {
        return Err((at - 1, HostsProblem::User));
    }
    if !text.is_empty() {
        parts.push(NamePart::Text(text));
    }
    if parts.is_empty() {
        return Err((at, HostsProblem::NoName));
    }
    Ok((Name { start, parts }, end))
}

/// Reads the ranges of the bracket at `open`; gives them with the place behind the closing bracket.
fn numbers(characters: &[char], open: usize) -> Result<(Vec<Range>, usize), Mistake> {
    let mut ranges = Vec::new();
    let mut at = open + 1;
    loop {
        let start = at;
        let first = number(characters, open, &mut at)?;
        let range = if characters.get(at) == Some(&'-') {
            at += 1;
            let last = number(characters, open, &mut at)?;
            range(&first, &last).map_err(|problem| (start, problem))?
        } else {
            range(&first, &first).map_err(|problem| (start, problem))?
        };
        ranges.push(range);
        match characters.get(at) {
            Some(',') => at += 1,
            Some(']') => return Ok((ranges, at + 1)),
            Some('[') => return Err((at, HostsProblem::Bracket)),
            Some(_) => return Err((at, HostsProblem::Number)),
            None => return Err((open, HostsProblem::Unclosed)),
        }
    }
}

fn number(characters: &[char], open: usize, at: &mut usize) -> Result<String, Mistake> {
    let digits: String = characters.iter().skip(*at).take_while(|c| c.is_ascii_digit()).collect();
    match (digits.len(), characters.get(*at)) {
        (0, None) => Err((open, HostsProblem::Unclosed)),
        (0, Some(_)) => Err((*at, HostsProblem::Number)),
        (n, _) if n > MOST_DIGITS => Err((*at, HostsProblem::Digits)),
        (n, _) => {
            *at += n;
            Ok(digits)
        }
    }
}

fn range(start: &str, end: &str) -> Result<Range, HostsProblem> {
    let padded = |digits: &str| digits.len() > 1 && digits.starts_with('0');
    let same_width = start.len() == end.len();
    // `[01-100]` is clear, `[1-010]` and `[001-10]` are not.
    if (padded(end) && !same_width) || (padded(start) && end.len() < start.len()) {
        return Err(HostsProblem::Padding { start: start.to_owned(), end: end.to_owned() });
    }
    let value = |digits: &str| digits.parse::<u32>().map_err(|_| HostsProblem::Digits);
    let (first, last) = (value(start)?, value(end)?);
    if last < first {
        return Err(HostsProblem::Backwards { start: start.to_owned(), end: end.to_owned() });
    }
    Ok(Range { first, last, width: if padded(start) { start.len() } else { 1 } })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hosts(pattern: &str) -> Vec<String> {
        expand(&[pattern]).unwrap()
    }

    #[test]
    fn patterns_of_the_guide() {
        assert_eq!(hosts("c1"), ["c1"]);
        assert_eq!(hosts("c[1-3]"), ["c1", "c2", "c3"]);
        assert_eq!(hosts("c[08-11]"), ["c08", "c09", "c10", "c11"]);
        assert_eq!(hosts("c[098-101]").last().unwrap(), "c101");
        assert_eq!(
            hosts("c[1,3,7-9].example"),
            ["c1", "c3", "c7", "c8", "c9"].map(|c| format!("{c}.example"))
        );
        assert_eq!(hosts("r[1-2]n[01,10]"), ["r1n01", "r1n10", "r2n01", "r2n10"]);
        assert_eq!(hosts("root@c[1-2],d"), ["root@c1", "root@c2", "d"]);
        assert_eq!(hosts("10.0.0.[9-11]"), ["10.0.0.9", "10.0.0.10", "10.0.0.11"]);
        assert_eq!(hosts("fe80::1%eth0"), ["fe80::1%eth0"]);
        assert_eq!(expand(&["a", "b[1-2]"]).unwrap(), ["a", "b1", "b2"]);
        assert_eq!(expand::<&str>(&[]).unwrap(), Vec::<String>::new());
        assert_eq!(hosts("c[1-10000]").len(), MOST_HOSTS);
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let said = |pattern: &str| expand(&[pattern]).unwrap_err().to_string();
        let cases = [
            ("", 1, "missing"),
            ("a,,b", 3, "missing"),
            ("a,", 3, "missing"),
            ("c[1-", 2, "not closed"),
            ("c[", 2, "not closed"),
            ("c[1-3", 2, "not closed"),
            ("c1]", 3, "paired"),
            ("c[1[", 4, "paired"),
            ("c[]", 3, "expected a number"),
            ("c[a-b]", 3, "expected a number"),
            ("c[1-3x]", 6, "expected a number"),
            ("c[1,]", 5, "expected a number"),
            ("c[9-3]", 3, "backwards; write `[3-9]`"),
            ("c[1-010]", 3, "`1` and `010`"),
            ("c[001-10]", 3, "`001` and `10`"),
            ("c[1234567890]", 3, "at most 9 digits"),
            ("c 1", 2, "' ' cannot"),
            ("c;reboot", 2, "';' cannot"),
            ("$(reboot)", 1, "'$' cannot"),
            ("-oProxyCommand=x", 1, "begin with `-`"),
            ("a,-l", 3, "begin with `-`"),
            ("u@-l", 3, "begin with `-`"),
            ("@c", 1, "separates user"),
            ("u@", 2, "separates user"),
            ("u@v@c", 4, "separates user"),
            ("u[1-2]@c", 7, "separates user"),
            ("c1,d,C1", 6, "`C1` is listed twice"),
            ("c[1-3],root@c2", 8, "`c2` is listed twice"),
            ("c[1,1]", 1, "`c1` is listed twice"),
            ("c[1-10001]", 1, "more than 10000"),
            ("c[1-999999999]n[1-999999999][1-999999999]", 1, "more than 10000"),
        ];
        for (pattern, at, part) in cases {
            let said = said(pattern);
            assert!(said.starts_with(&format!("host pattern `{pattern}`, character {at}: ")), "{said}");
            assert!(said.contains(part), "{said}");
        }
        let error = expand(&["c[1-2]", "c2"]).unwrap_err();
        assert_eq!((error.pattern.as_str(), error.at), ("c2", 1));
        assert!(expand(&["a[1-9999]", "b[1-2]"]).unwrap_err().to_string().contains("more than 10000"));
    }

    proptest! {
        #[test]
        fn noise_is_refused_or_bounded(pattern in "[a-c0-9@,.\\-\\[\\]é \u{1f600}]{0,40}|\\PC{0,60}") {
            match expand(&[&pattern]) {
                Ok(hosts) => {
                    prop_assert!((1..=MOST_HOSTS).contains(&hosts.len()));
                    // What came out is plain names, which stand for themselves.
                    prop_assert_eq!(expand(&hosts), Ok(hosts));
                }
                Err(error) => prop_assert!((1..=pattern.chars().count() + 1).contains(&error.at), "{}", error),
            }
        }

        #[test]
        fn counts_are_those_of_the_ranges(
            ranges in prop::collection::vec((0u32..2_000, 0u32..15, any::<bool>()), 1..4),
            user in any::<bool>(),
        ) {
            let mut pattern = if user { "u@n".to_owned() } else { "n".to_owned() };
            for (first, more, padded) in &ranges {
                let width = if *padded { 5 } else { 1 };
                pattern += &format!("[{first:0width$}-{:0width$}]x", first + more);
            }
            let hosts = expand(&[&pattern]).unwrap();
            prop_assert_eq!(hosts.len(), ranges.iter().map(|(_, more, _)| *more as usize + 1).product::<usize>());
            let last: String = ranges
                .iter()
                .map(|(first, more, padded)| format!("{:0width$}x", first + more, width = if *padded { 5 } else { 1 }))
                .collect();
            prop_assert!(hosts.last().unwrap().ends_with(&format!("n{last}")), "{:?} of {}", hosts.last(), pattern);
            let commas = hosts.join(",");
            prop_assert_eq!(expand(&[commas]), Ok(hosts));
        }
    }
}
