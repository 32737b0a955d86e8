//! Commands of a workload file (WML), as they are written.

use super::script;
use super::token::{Kind, Token, tokens};
use crate::Mistake;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Command {
    pub(super) line: usize,
    /// As it is written, shortened.
    pub(super) text: String,
    pub(super) what: What,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum What {
    /// `set $variable = terms`.
    Set {
        variable: String,
        terms: Vec<Term>,
    },
    /// `set $variable.part = value`.
    SetPart {
        variable: String,
        part: String,
        value: Raw,
    },
    /// A random variable of Filebench's own or, if `custom`, of a library.
    Draw {
        variable: String,
        custom: bool,
        attributes: Vec<Attribute>,
    },
    Mode(String),
    /// A fileset, or the single file of `define file`.
    Fileset {
        single: bool,
        attributes: Vec<Attribute>,
    },
    Composite {
        attributes: Vec<Attribute>,
        flow: Vec<Flowop>,
    },
    Process {
        attributes: Vec<Attribute>,
        threads: Vec<Thread>,
    },
    Eventgen(Vec<Attribute>),
    /// `run` or `psrun` with their length in seconds.
    Run(Option<Raw>),
    /// Everything else, with what follows on its line.
    Other {
        word: String,
    },
}

/// A value, or one that is joined to those before it by a sign.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    pub(super) sign: char,
    pub(super) value: Raw,
}

/// A value as it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Raw {
    Number(i64),
    Text(String),
    Variable(String),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Attribute {
    pub(super) name: String,
    /// A local variable of a composite flowop, `$name`.
    pub(super) local: bool,
    pub(super) value: Option<Raw>,
    pub(super) line: usize,
    pub(super) text: String,
}

impl Attribute {
    pub(super) fn mistake(&self, message: impl Into<String>) -> Mistake {
        Mistake { file: None, line: self.line, text: self.text.clone(), message: message.into() }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Flowop {
    pub(super) kind: String,
    pub(super) attributes: Vec<Attribute>,
    pub(super) line: usize,
    pub(super) text: String,
}

impl Flowop {
    pub(super) fn mistake(&self, message: impl Into<String>) -> Mistake {
        Mistake { file: None, line: self.line, text: self.text.clone(), message: message.into() }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Thread {
    pub(super) attributes: Vec<Attribute>,
    pub(super) flow: Vec<Flowop>,
}

/// All commands of a file.
///
/// # Errors
/// The first thing that is no command, or an unfinished one.
pub(super) fn parse(text: &str) -> Result<Vec<Command>, Mistake> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0 };
    let mut commands = Vec::new();
    while parser.peek().is_some() {
        commands.push(parser.command()?);
    }
    Ok(commands)
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self, wanted: &str) -> Result<&'a Token, Mistake> {
        let token = self.peek().ok_or_else(|| {
            let (line, text) = self.tokens.last().map_or((1, ""), |last| (last.line, &last.text));
            let message = format!("unexpected end of file; {wanted} is missing");
            Mistake { file: None, line, text: text.to_owned(), message }
        })?;
        self.at += 1;
        Ok(token)
    }

    fn sign(&mut self, sign: char, after: &str) -> Result<(), Mistake> {
        let token = self.next(&format!("`{sign}`"))?;
        if token.is_sign(sign) { Ok(()) } else { Err(token.mistake(format!("`{sign}` must follow {after}"))) }
    }

    fn takes_sign(&mut self, sign: char) -> bool {
        let taken = self.peek().is_some_and(|token| token.is_sign(sign));
        self.at += usize::from(taken);
        taken
    }

    /// The text of the tokens from `start` on that are on its line.
    fn text(&self, start: usize) -> String {
        let line = self.tokens[start].line;
        let part = &self.tokens[start..self.at];
        let mut text = String::new();
        for (number, token) in part.iter().take_while(|token| token.line == line).enumerate() {
            let close = |t: &Token| matches!(t.kind, Kind::Sign('=' | ',' | '(' | ')'));
            if number > 0 && !close(token) && !close(&part[number - 1]) {
                text.push(' ');
            }
            text.push_str(&token.text);
        }
        text
    }

    fn command(&mut self) -> Result<Command, Mistake> {
        let start = self.at;
        let token = self.next("a command")?;
        let Kind::Word(word) = &token.kind else { return Err(unknown(token)) };
        let what = match word.as_str() {
            "set" => self.set()?,
            "define" => self.define()?,
            "eventgen" => What::Eventgen(self.attributes()?),
            "run" => What::Run(self.length(token.line)?),
            "psrun" => {
                // The first number is the period of the reports.
                self.length(token.line)?;
                What::Run(self.length(token.line)?)
            }
            other if script::fate(other).is_some() => self.other(token)?,
            _ => return Err(unknown(token)),
        };
        Ok(Command { line: token.line, text: self.text(start), what })
    }

    /// A number or variable on this line.
    fn length(&mut self, line: usize) -> Result<Option<Raw>, Mistake> {
        let value = match self.peek().filter(|token| token.line == line).map(|token| &token.kind) {
            Some(Kind::Number(number)) => Raw::Number(*number),
            Some(Kind::Variable(name, None)) => Raw::Variable(name.clone()),
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(value))
    }

    fn other(&mut self, token: &Token) -> Result<What, Mistake> {
        if token.is_word("foreach") {
            while !self.next("`{`")?.is_sign('{') {}
            let mut depth = 1;
            while depth > 0 {
                match self.next("`}`")?.kind {
                    Kind::Sign('{') => depth += 1,
                    Kind::Sign('}') => depth -= 1,
                    _ => {}
                }
            }
        } else {
            while self.peek().is_some_and(|next| next.line == token.line) {
                self.at += 1;
            }
        }
        Ok(What::Other { word: token.text.clone() })
    }

    fn set(&mut self) -> Result<What, Mistake> {
        let token = self.next("a variable")?;
        if token.is_word("mode") {
            let mut words = Vec::new();
            while let Some(word) = self.peek().filter(|next| next.line == token.line) {
                words.push(word.text.clone());
                self.at += 1;
            }
            return Ok(What::Mode(words.join(" ")));
        }
        let Kind::Variable(variable, part) = &token.kind else {
            return Err(token.mistake("`set` is followed by a variable, `set $nfiles = 1000`, or by `mode`"));
        };
        let variable = variable.clone();
        self.sign('=', "the variable")?;
        if let Some(part) = part.clone() {
            return Ok(What::SetPart { variable, part, value: self.value()? });
        }
        let word = self.peek().map(|token| token.text.as_str());
        let called = self.tokens.get(self.at + 1).is_some_and(|token| token.is_sign('('));
        if let Some(kind @ ("randvar" | "cvar")) = word.filter(|_| called) {
            self.at += 2;
            let attributes = self.attributes()?;
            self.sign(')', "the attributes of the variable")?;
            return Ok(What::Draw { variable, custom: kind == "cvar", attributes });
        }
        let mut terms = vec![Term { sign: '+', value: self.value()? }];
        while let Some(sign) = ['+', '-', '*', '/'].into_iter().find(|sign| self.takes_sign(*sign)) {
            terms.push(Term { sign, value: self.value()? });
        }
        Ok(What::Set { variable, terms })
    }

    fn define(&mut self) -> Result<What, Mistake> {
        let token = self.next("what is defined")?;
        let Kind::Word(word) = &token.kind else { return Err(unknown_entity(token)) };
        match word.as_str() {
            "file" | "files" => Ok(What::Fileset { single: true, attributes: self.attributes()? }),
            "fileset" | "filesets" => Ok(What::Fileset { single: false, attributes: self.attributes()? }),
            "randvar" => {
                let attributes = self.attributes()?;
                let name = attributes.iter().find(|attribute| attribute.name == "name");
                let Some(Raw::Variable(variable)) = name.and_then(|name| name.value.clone()) else {
                    return Err(token.mistake("a random variable needs its name: `name=$iosize`"));
                };
                let attributes =
                    attributes.into_iter().filter(|attribute| attribute.name != "name").collect();
                Ok(What::Draw { variable, custom: false, attributes })
            }
            "flowop" => {
                let attributes = self.attributes()?;
                Ok(What::Composite { attributes, flow: self.flow()? })
            }
            "process" | "processes" => {
                let attributes = self.attributes()?;
                self.sign('{', "the attributes of the process")?;
                let mut threads = Vec::new();
                while !self.takes_sign('}') {
                    let thread = self.next("`}`")?;
                    if !thread.is_word("thread") {
                        return Err(thread.mistake("a process holds `thread name=… { … }`"));
                    }
                    threads.push(Thread { attributes: self.attributes()?, flow: self.flow()? });
                }
                Ok(What::Process { attributes, threads })
            }
            _ => Err(unknown_entity(token)),
        }
    }

    fn flow(&mut self) -> Result<Vec<Flowop>, Mistake> {
        self.sign('{', "the attributes")?;
        let mut flow = Vec::new();
        while !self.takes_sign('}') {
            let start = self.at;
            let token = self.next("`}`")?;
            if !token.is_word("flowop") {
                return Err(token.mistake("only `flowop KIND name=…` may be here"));
            }
            let kind = self.next("the kind of the flowop")?;
            let Kind::Word(name) = &kind.kind else {
                return Err(kind.mistake("`flowop` is followed by its kind, such as `read`"));
            };
            let attributes = self.attributes()?;
            flow.push(Flowop { kind: name.clone(), attributes, line: token.line, text: self.text(start) });
        }
        Ok(flow)
    }

    /// Attributes separated by commas; none when the next token begins none.
    fn attributes(&mut self) -> Result<Vec<Attribute>, Mistake> {
        let mut attributes = Vec::new();
        let begins = |token: &Token| match &token.kind {
            Kind::Word(word) => !["flowop", "thread", "define", "set", "run"].contains(&word.as_str()),
            Kind::Variable(..) => true,
            _ => false,
        };
        if !self.peek().is_some_and(begins) {
            return Ok(attributes);
        }
        loop {
            let start = self.at;
            let token = self.next("an attribute")?;
            let (name, local) = match &token.kind {
                Kind::Word(name) => (name.clone(), false),
                Kind::Variable(name, None) => (name.clone(), true),
                _ => return Err(token.mistake("an attribute is written as `name` or `name=value`")),
            };
            let value = if self.takes_sign('=') { Some(self.value()?) } else { None };
            attributes.push(Attribute { name, local, value, line: token.line, text: self.text(start) });
            if !self.takes_sign(',') {
                return Ok(attributes);
            }
        }
    }

    fn value(&mut self) -> Result<Raw, Mistake> {
        let token = self.next("a value")?;
        match &token.kind {
            Kind::Number(number) => Ok(Raw::Number(*number)),
            Kind::Word(text) | Kind::Quoted(text) => Ok(Raw::Text(text.clone())),
            Kind::Variable(name, None) => Ok(Raw::Variable(name.clone())),
            Kind::Sign('{') => Err(token
                .mistake("`randtable` is not supported: use a random variable of `type=uniform` or `gamma`")),
            _ => Err(token.mistake("expected a number, a word, a string in quotes or a variable")),
        }
    }
}

fn unknown(token: &Token) -> Mistake {
    token.mistake(
        "unknown command; Filebench has `set`, `define`, `eventgen`, `run`, `psrun`, `echo` and others",
    )
}

fn unknown_entity(token: &Token) -> Mistake {
    token.mistake("`define` is followed by `fileset`, `file`, `randvar`, `flowop` or `process`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> What {
        let mut commands = parse(text).unwrap();
        assert_eq!(commands.len(), 1, "{commands:?}");
        commands.remove(0).what
    }

    #[test]
    fn sets_of_all_kinds() {
        let number = |number| Term { sign: '+', value: Raw::Number(number) };
        assert_eq!(one("set $n=3k"), What::Set { variable: "n".into(), terms: vec![number(3072)] });
        let product = Term { sign: '*', value: Raw::Variable("b".into()) };
        assert_eq!(one("set $n=2 * $b"), What::Set { variable: "n".into(), terms: vec![number(2), product] });
        assert_eq!(one("set mode quit firstdone"), What::Mode("quit firstdone".into()));
        let part = What::SetPart { variable: "x".into(), part: "mean".into(), value: Raw::Number(5) };
        assert_eq!(one("set $x.mean = 5"), part);
        let What::Draw { variable, custom, attributes } =
            one("set $x=cvar(type=cvar-normal,parameters=mean:4;sigma:2)")
        else {
            panic!("no variable")
        };
        assert_eq!((variable.as_str(), custom, attributes.len()), ("x", true, 2));
        let What::Draw { attributes, .. } = one("define randvar name=$x, type=gamma, mean=4k") else {
            panic!("no variable")
        };
        assert_eq!(attributes.last().unwrap().value, Some(Raw::Number(4096)));
    }

    #[test]
    fn processes_threads_and_flowops() {
        let text = "define process name=p {\n thread name=t,\n   instances=$n\n {\n  flowop read name=r,random,\n    fd=1\n  \
                    flowop mine name=m, iters=2, $set=files\n }\n thread name=u { flowop statfile }\n}\nrun 60";
        let commands = parse(text).unwrap();
        let What::Process { threads, .. } = &commands[0].what else { panic!("no process") };
        assert_eq!(threads.len(), 2);
        let read = &threads[0].flow[0];
        assert_eq!((read.kind.as_str(), read.line, read.attributes.len()), ("read", 5, 3));
        assert_eq!((read.attributes[2].line, read.attributes[2].text.as_str()), (6, "fd=1"));
        assert!(threads[0].flow[1].attributes[2].local);
        assert_eq!((commands[1].line, &commands[1].what), (11, &What::Run(Some(Raw::Number(60)))));
        assert_eq!(one("psrun -10 60"), What::Run(Some(Raw::Number(60))));
        assert_eq!(one("psrun 10"), What::Run(None));
        assert_eq!(one("run"), What::Run(None));
    }

    #[test]
    fn other_commands_end_with_their_line() {
        let text = "echo \"a b\" \nusage \"c\"\nstats snap\nforeach $n in 1,2 {\n set $m=$n\n run 5\n}\nquit";
        let words: Vec<_> =
            parse(text).unwrap().into_iter().map(|command| (command.line, command.text)).collect();
        assert_eq!(words.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 2, 3, 4, 8]);
        assert_eq!(words[2].1, "stats snap");
    }

    #[test]
    fn mistakes_have_their_line() {
        for (text, line, found, says) in [
            ("\nhello", 2, "hello", "unknown command"),
            ("define cat name=x", 1, "cat", "`define` is followed by"),
            ("set n=1", 1, "n", "followed by a variable"),
            ("define process name=p\n{ flowop read }", 2, "flowop", "holds `thread"),
            ("define fileset name=f,\n5", 2, "5", "`name=value`"),
            ("set $x=randvar(type=tabular,\nrandtable={{10,1k,2k}})", 2, "{", "`randtable` is not supported"),
            ("define process name=p {\nthread name=t {", 2, "{", "unexpected end of file"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!((error.line, error.text.as_str()), (line, found), "{text}: {}", error.message);
            assert!(error.message.contains(says), "{text}: {}", error.message);
        }
    }
}
