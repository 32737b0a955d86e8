//! Words, numbers, variables and signs of a workload file.

use crate::Mistake;

/// One of them, with its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) line: usize,
    /// As it is written.
    pub(super) text: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Word(String),
    /// A whole number, its unit (`k`, `m`, `g`, `t`: powers of 1024) applied.
    Number(i64),
    /// The name behind `$`, with what follows a point where that is a part of a random variable.
    Variable(String, Option<String>),
    Quoted(String),
    Sign(char),
}

/// Parts of a random variable that can be set by themselves.
const PARTS: [&str; 7] = ["type", "seed", "gamma", "mean", "min", "round", "randsrc"];

impl Token {
    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(&self.kind, Kind::Word(own) if own == word)
    }

    pub(super) fn is_sign(&self, sign: char) -> bool {
        self.kind == Kind::Sign(sign)
    }

    pub(super) fn mistake(&self, message: impl Into<String>) -> Mistake {
        Mistake { file: None, line: self.line, text: self.text.clone(), message: message.into() }
    }
}

/// All tokens of a text, without comments.
///
/// # Errors
/// A quotation without end, and a character that begins nothing.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Mistake> {
    let mut reader = Reader { rest: text, line: 1 };
    let mut tokens = Vec::new();
    while let Some(token) = reader.next()? {
        tokens.push(token);
    }
    Ok(tokens)
}

struct Reader<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Option<Token>, Mistake> {
        loop {
            let trimmed = self.rest.trim_start();
            self.advance(self.rest.len() - trimmed.len());
            if !trimmed.starts_with('#') {
                break;
            }
            self.advance(trimmed.find('\n').unwrap_or(trimmed.len()));
        }
        let Some(first) = self.rest.chars().next() else { return Ok(None) };
        let line = self.line;
        let (kind, length) = match first {
            '"' => self.quoted()?,
            '$' => self.variable()?,
            '{' | '}' | '=' | ',' | '(' | ')' | '+' | '*' => (Kind::Sign(first), 1),
            _ => {
                let word = self.word();
                match number(word) {
                    Some(number) => (Kind::Number(number), word.len()),
                    None if matches!(word, "-" | "/") => (Kind::Sign(first), 1),
                    None if word.is_empty() => {
                        let message = "unexpected character".into();
                        return Err(Mistake { file: None, line, text: first.to_string(), message });
                    }
                    None => (Kind::Word(word.to_owned()), word.len()),
                }
            }
        };
        let text = self.rest[..length].to_owned();
        self.advance(length);
        Ok(Some(Token { kind, line, text }))
    }

    fn advance(&mut self, bytes: usize) {
        let (gone, rest) = self.rest.split_at(bytes);
        self.line += gone.matches('\n').count();
        self.rest = rest;
    }

    fn word(&self) -> &'a str {
        let part = |c: char| c.is_alphanumeric() || "/._-:;@~%+".contains(c);
        // `a+b` of variables is a sum: a word never begins with the sign.
        &self.rest[..self.rest.find(|c| !part(c)).unwrap_or(self.rest.len())]
    }

    fn quoted(&self) -> Result<(Kind, usize), Mistake> {
        let (mut text, mut escaped) = (String::new(), false);
        for (at, c) in self.rest.char_indices().skip(1) {
            match c {
                'n' if escaped => text.push('\n'),
                _ if escaped => text.push(c),
                '\\' => {}
                '"' => return Ok((Kind::Quoted(text), at + 1)),
                _ => text.push(c),
            }
            escaped = c == '\\' && !escaped;
        }
        let text = self.rest.lines().next().unwrap_or_default().to_owned();
        Err(Mistake {
            file: None,
            line: self.line,
            text,
            message: "the string has no closing quote: add `\"`".into(),
        })
    }

    /// `$name`, `$(name)` or `${name}`.
    fn variable(&self) -> Result<(Kind, usize), Mistake> {
        let inner = self.rest[1..].strip_prefix(['(', '{']);
        let start = if inner.is_some() { 2 } else { 1 };
        let rest = inner.unwrap_or(&self.rest[1..]);
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let closed = rest[end..].starts_with([')', '}']);
        if end == 0 || inner.is_some() != closed && inner.is_some() {
            let message = "`$` is followed by the name of a variable: `$dir` or `${dir}`".into();
            let text = self.rest.lines().next().unwrap_or_default().to_owned();
            return Err(Mistake { file: None, line: self.line, text, message });
        }
        let name = rest[..end].to_owned();
        let length = start + end + usize::from(inner.is_some());
        let part = self.rest[length..].strip_prefix('.').and_then(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
            PARTS.contains(&&rest[..end]).then(|| rest[..end].to_owned())
        });
        let length = length + part.as_ref().map_or(0, |part| part.len() + 1);
        Ok((Kind::Variable(name, part), length))
    }
}

/// A whole number with an optional sign and unit.
fn number(word: &str) -> Option<i64> {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let factor: i64 = match digits[end..].to_ascii_lowercase().as_str() {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        _ => return None,
    };
    let number: i64 = digits[..end].parse().ok()?;
    let number = number.checked_mul(factor)?;
    Some(if word.starts_with('-') { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        tokens(text).unwrap().into_iter().map(|token| token.kind).collect()
    }

    fn word(text: &str) -> Kind {
        Kind::Word(text.into())
    }

    fn variable(name: &str) -> Kind {
        Kind::Variable(name.into(), None)
    }

    #[test]
    fn words_numbers_variables_and_signs() {
        let text = "set $dir=/tmp/x-1 # a comment\nname=lg-write,size=12k,$(n)*${m} -5 / 2";
        let expected = [
            word("set"),
            variable("dir"),
            Kind::Sign('='),
            word("/tmp/x-1"),
            word("name"),
            Kind::Sign('='),
            word("lg-write"),
            Kind::Sign(','),
            word("size"),
            Kind::Sign('='),
            Kind::Number(12 << 10),
            Kind::Sign(','),
            variable("n"),
            Kind::Sign('*'),
            variable("m"),
            Kind::Number(-5),
            Kind::Sign('/'),
            Kind::Number(2),
        ];
        assert_eq!(kinds(text), expected);
        assert_eq!(tokens(text).unwrap()[4].line, 2);
        let custom = "cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)";
        assert!(kinds(custom).contains(&word("mean:16384;gamma:1.5")));
        assert_eq!(
            kinds("$x.mean $x.df"),
            [Kind::Variable("x".into(), Some("mean".into())), variable("x"), word(".df")]
        );
    }

    #[test]
    fn quotations() {
        assert_eq!(kinds(r##"echo "a # \"b\" \$c""##)[1], Kind::Quoted("a # \"b\" $c".into()));
        let error = tokens("\n\necho \"open").unwrap_err();
        assert_eq!((error.line, error.text.as_str()), (3, "\"open"));
    }

    #[test]
    fn what_is_nothing_is_named() {
        for (text, found) in [("a\n&", "&"), ("\n$", "$"), ("\n${a", "${a")] {
            let error = tokens(text).unwrap_err();
            assert_eq!((error.line, error.text.as_str()), (2, found));
        }
        // A number too large for any size is a word, which no attribute takes for a number.
        assert_eq!(kinds("99999999999999999999k"), [word("99999999999999999999k")]);
    }
}
