//! Numbers as job files write them.
//!
//! What fio 3.33 takes silently for something else than it says is refused: `1.5g` is one byte there, `4q` four, and
//! `10sec` ten microseconds.

use super::expression;

/// A number with a unit, as sizes, rates and counts are written. `base` is the job's `kb_base`.
///
/// As in fio 3.33, `k` and `ki` are `base`; `kib` is the other one of 1000 and 1024.
pub(crate) fn size(text: &str, base: u64) -> Result<u64, String> {
    let (number, unit) = number(text)?;
    let factor = factor(unit, base).ok_or_else(|| {
        format!(
            "`{unit}` is not a unit; write `k`, `m`, `g`, `t` or `p`, as in `64k`, or bytes without a unit"
        )
    })?;
    let exact = number.checked_mul(i128::from(factor));
    exact.and_then(|bytes| u64::try_from(bytes).ok()).ok_or_else(|| format!("`{text}` is out of range"))
}

/// A size that may be negative.
pub(super) fn signed_size(text: &str, base: u64) -> Result<i64, String> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let bytes = size(rest, base)?;
    let bytes = i64::try_from(bytes).map_err(|_| format!("`{text}` is out of range"))?;
    Ok(if negative { -bytes } else { bytes })
}

/// A time in nanoseconds; a bare number counts `unit_ns` nanoseconds each.
pub(crate) fn time(text: &str, unit_ns: u64) -> Result<u64, String> {
    let (number, unit) = number(text)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" => unit_ns,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        "sec" => return Err("fio reads `sec` as microseconds; write `s`".into()),
        other => {
            return Err(format!("`{other}` is not a unit of time; write `us`, `ms`, `s`, `m`, `h` or `d`"));
        }
    };
    let exact = number.checked_mul(i128::from(factor));
    exact.and_then(|nanos| u64::try_from(nanos).ok()).ok_or_else(|| format!("`{text}` is out of range"))
}

pub(super) fn percent(text: &str) -> Option<Result<u64, String>> {
    let number = text.trim().strip_suffix('%')?.trim();
    let fits = number.parse::<u64>().ok().filter(|percent| (1..=100).contains(percent));
    Some(fits.ok_or_else(|| format!("`{text}` is not a percentage from 1% to 100%")))
}

/// `1k-4k` or `1k:4k`, in either order; one size is a range of itself.
pub(super) fn range(text: &str, base: u64) -> Result<(u64, u64), String> {
    let (from, to) = text.split_once(['-', ':']).unwrap_or((text, text));
    let (from, to) = (size(from.trim(), base)?, size(to.trim(), base)?);
    Ok((from.min(to), from.max(to)))
}

/// A number with a fraction.
pub(super) fn fraction(text: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
    number.ok_or_else(|| format!("`{text}` is not a number"))
}

/// The values for reads, writes and trims of `4k`, `4k,8k` or `,8k,`: what is missing is that before it, and `default`
/// where nothing is before it or the text ends with the comma.
pub(super) fn by_direction<T: Clone>(
    text: &str,
    default: &T,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<[T; 3], String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.len() > 3 {
        return Err("there are at most three values: for reads, writes and trims".into());
    }
    let mut values = [default.clone(), default.clone(), default.clone()];
    let mut last = default.clone();
    for (at, value) in values.iter_mut().enumerate() {
        match parts.get(at) {
            Some(&"") => last = default.clone(),
            Some(part) => last = parse(part)?,
            None => {}
        }
        *value = last.clone();
    }
    Ok(values)
}

/// Splits `64k` into 64 and `k`; what stands in parentheses is calculated.
fn number(text: &str) -> Result<(i128, &str), String> {
    let text = text.trim();
    if text.starts_with('(') {
        return expression::leading(text);
    }
    if let Some(rest) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        let number = i128::from_str_radix(&rest[..end], 16);
        return Ok((number.map_err(|_| format!("`{text}` is not a hexadecimal number"))?, &rest[end..]));
    }
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if unit.starts_with('.') {
        return Err(format!("`{text}` has a fraction, which fio drops; write a whole number"));
    }
    let number = number.parse().map_err(|_| format!("`{text}` does not begin with a number"))?;
    Ok((number, unit.trim()))
}

/// What one of a unit is.
fn factor(unit: &str, base: u64) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let other = if base == 1000 { 1024 } else { 1000 };
    let (letter, base) = match unit.as_str() {
        "" | "b" => return Some(1),
        unit => match (unit.strip_suffix("ib"), unit.strip_suffix('b').or(unit.strip_suffix('i'))) {
            (Some(letter), _) => (letter, other),
            (None, Some(letter)) => (letter, base),
            (None, None) => (unit, base),
        },
    };
    let power = ["k", "m", "g", "t", "p"].iter().position(|known| *known == letter)?;
    base.checked_pow(power as u32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What fio 3.33 itself says with `--debug=parse`.
    #[test]
    fn sizes_are_those_of_fio() {
        for (text, bytes) in [
            ("4k", 4096),
            ("4ki", 4096),
            ("4kib", 4000),
            ("4kb", 4096),
            ("4KB", 4096),
            ("4096B", 4096),
            ("4b", 4),
            ("0x10", 16),
            ("12", 12),
            ("1g", 1 << 30),
        ] {
            assert_eq!(size(text, 1024), Ok(bytes), "{text}");
        }
        for (text, bytes) in [("4k", 4000), ("4ki", 4000), ("4kib", 4096), ("4kb", 4000)] {
            assert_eq!(size(text, 1000), Ok(bytes), "{text}");
        }
        assert_eq!(size("(2*(1+3))k", 1024), Ok(8192));
        assert_eq!(signed_size("-8k", 1024), Ok(-8192));
    }

    #[test]
    fn what_fio_takes_for_something_else_is_refused() {
        for text in ["1.5g", "4q", "4kk", "", "k", "-4k", "99999999999p", "2*3"] {
            assert!(size(text, 1024).is_err(), "{text}");
        }
        assert!(time("10sec", 1).is_err());
        assert!(time("2min", 1).is_err());
    }

    #[test]
    fn times() {
        assert_eq!(time("10", 1_000_000_000), Ok(10_000_000_000));
        assert_eq!(time("10", 1_000), Ok(10_000));
        assert_eq!(time("5ms", 1), Ok(5_000_000));
        assert_eq!(time("2m", 1), Ok(120_000_000_000));
        assert_eq!(time("1H", 1), Ok(3_600_000_000_000));
    }

    #[test]
    fn values_by_direction() {
        let bs = |text: &str| by_direction(text, &4096, |part| size(part, 1024));
        assert_eq!(bs("8k"), Ok([8192, 8192, 8192]));
        assert_eq!(bs("8k,32k"), Ok([8192, 32768, 32768]));
        assert_eq!(bs("8k,32k,"), Ok([8192, 32768, 4096]));
        assert_eq!(bs(",8k"), Ok([4096, 8192, 8192]));
        assert_eq!(bs(",8k,"), Ok([4096, 8192, 4096]));
        assert!(bs("1,2,3,4").is_err());
    }

    #[test]
    fn ranges_and_percentages() {
        assert_eq!(range("1k-4k", 1024), Ok((1024, 4096)));
        assert_eq!(range("4k:1k", 1024), Ok((1024, 4096)));
        assert_eq!(range("4k", 1024), Ok((4096, 4096)));
        assert_eq!(percent("20%"), Some(Ok(20)));
        assert!(percent("0%").is_some_and(|percent| percent.is_err()));
        assert_eq!(percent("20"), None);
    }
}
