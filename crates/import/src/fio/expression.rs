//! Calculations in values: `(8*$pagesize)`, `($ncpus+1)`.

/// How deep parentheses may nest.
const DEPTH: usize = 32;

/// The value of the expression in parentheses that a text begins with, and what follows it.
pub(super) fn leading(text: &str) -> Result<(i128, &str), String> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let value = parser.atom()?;
    Ok((value, text[parser.at..].trim()))
}

/// The value of a whole text.
pub(super) fn whole(text: &str) -> Result<i128, String> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let value = parser.sum()?;
    match parser.peek() {
        None => Ok(value),
        Some(c) => Err(format!("`{text}` cannot be calculated: `{c}` is out of place")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    /// The next character that is no blank.
    fn peek(&mut self) -> Option<char> {
        let rest = self.text.get(self.at..)?;
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed.chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn sum(&mut self) -> Result<i128, String> {
        let mut value = self.product()?;
        loop {
            value = match (self.take('+'), self.at) {
                (true, _) => value.checked_add(self.product()?),
                (false, _) if self.take('-') => value.checked_sub(self.product()?),
                _ => return Ok(value),
            }
            .ok_or_else(|| self.overflow())?;
        }
    }

    fn product(&mut self) -> Result<i128, String> {
        let mut value = self.power()?;
        loop {
            value = if self.take('*') {
                value.checked_mul(self.power()?).ok_or_else(|| self.overflow())?
            } else if self.take('/') {
                let by = self.power()?;
                value.checked_div(by).ok_or_else(|| format!("`{}` divides by zero", self.text))?
            } else {
                return Ok(value);
            };
        }
    }

    fn power(&mut self) -> Result<i128, String> {
        let base = self.atom()?;
        if !self.take('^') {
            return Ok(base);
        }
        let exponent = u32::try_from(self.atom()?).ok();
        exponent.and_then(|exponent| base.checked_pow(exponent)).ok_or_else(|| self.overflow())
    }

    fn atom(&mut self) -> Result<i128, String> {
        if self.take('(') {
            self.depth += 1;
            if self.depth > DEPTH {
                return Err(format!("`{}` has parentheses more than {DEPTH} deep", self.text));
            }
            let value = self.sum()?;
            self.depth -= 1;
            return if self.take(')') { Ok(value) } else { Err(format!("`{}` lacks a `)`", self.text)) };
        }
        if self.take('-') {
            return Ok(-self.atom_after_sign()?);
        }
        self.literal()
    }

    fn atom_after_sign(&mut self) -> Result<i128, String> {
        match self.peek() {
            Some('(') => self.atom(),
            _ => self.literal(),
        }
    }

    fn literal(&mut self) -> Result<i128, String> {
        self.peek();
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number = rest[..end].parse::<u64>();
        self.at += end;
        number
            .map(i128::from)
            .map_err(|_| format!("`{}` cannot be calculated: a number is missing", self.text))
    }

    fn overflow(&self) -> String {
        format!("`{}` is out of range", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calculations() {
        assert_eq!(whole("8*4096"), Ok(32768));
        assert_eq!(whole("1 + 2*3 - 4/2"), Ok(5));
        assert_eq!(whole("2^10"), Ok(1024));
        assert_eq!(whole("-(1+2)"), Ok(-3));
        assert_eq!(leading("(1+2)k"), Ok((3, "k")));
        for text in ["", "1+", "(1", "1/0", "2^999", "1 2", "a", &"(".repeat(100)] {
            assert!(whole(text).is_err(), "{text}");
        }
    }
}
