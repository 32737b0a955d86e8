//! Phrases that the documentation does not use, because readers stumble over them. The glossary in `CONTRIBUTING.md`
//! has the words to use instead.

use std::fs;
use std::path::{Path, PathBuf};

/// Lower case, words separated by one space.
const BANNED: &[&str] = &[
    "so many",
    "nobody",
    "anew",
    "is told",
    "are told",
    "be told",
    "was told",
    "can be told",
    "cannot be told",
    "told apart",
    "told from",
    "tell apart",
    "tells apart",
    "is said",
    "are said",
    "wish to call",
    "mixed up",
    "again and again",
    "for want of",
    "for ever",
    "can be had",
    "could be had",
    "dearest",
    "speaks against",
    "speak against",
    "by what means",
    "in good order",
    "in the mean",
    "says of itself",
    "what it says of",
    "comes about",
    "come about",
    "be believed",
    "is believed",
    "are believed",
    "mended",
    "wherefrom",
    "whereto",
    "lies beside",
    "lie beside",
    "tells of",
    "tell of",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below `folder` with this extension, in order.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|is| is == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The characters of a text in lower case with their lines; white space, also between lines, is one space.
fn folded(text: &str) -> (String, Vec<usize>) {
    let (mut words, mut lines, mut line) = (String::new(), Vec::new(), 1);
    for character in text.chars() {
        let shown = if character.is_whitespace() { ' ' } else { character.to_ascii_lowercase() };
        if shown != ' ' || !words.ends_with(' ') {
            words.push(shown);
            lines.resize(words.len(), line);
        }
        line += usize::from(character == '\n');
    }
    (words, lines)
}

/// The banned phrases of a text, with their lines. A phrase is found as whole words only.
fn banned(text: &str) -> Vec<(usize, &'static str)> {
    let (words, lines) = folded(text);
    let mut found = Vec::new();
    for phrase in BANNED {
        for (start, _) in words.match_indices(phrase) {
            let before = words[..start].chars().next_back();
            let mut rest = words[start + phrase.len()..].chars();
            let after = rest.next();
            // A field of a file such as /etc/passwd, where `nobody` is a name.
            let is_field = after == Some(':') && rest.next().is_some_and(|next| next != ' ');
            if !is_field && ![before, after].into_iter().flatten().any(char::is_alphanumeric) {
                found.push((lines[start], *phrase));
            }
        }
    }
    found.sort_unstable();
    found
}

/// A Markdown text with the same lines, but without code: blocks show what programs print, spans are names.
fn prose(markdown: &str) -> String {
    let (mut prose, mut block) = (String::new(), false);
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            block = !block;
        } else if !block {
            prose.extend(line.split('`').step_by(2));
        }
        prose.push('\n');
    }
    prose
}

/// The string literals of a Rust source, each on its line; comments and everything else are left out.
fn literals(source: &str) -> String {
    let (mut kept, mut rest) = (String::new(), source);
    let keep = |kept: &mut String, text: &str, shown: bool| {
        kept.extend(text.chars().filter(|character| shown || *character == '\n'));
    };
    while let Some(next) = rest.chars().next() {
        let raw = rest.strip_prefix('r').map(|after| after.len() - after.trim_start_matches('#').len());
        let raw = raw.filter(|hashes| rest[1 + hashes..].starts_with('"') && !ends_in_word(source, rest));
        let (length, shown) = if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), false)
        } else if let Some(hashes) = raw {
            let end = format!("\"{}", "#".repeat(hashes));
            let body = &rest[hashes + 2..];
            (hashes + 2 + body.find(&end).map_or(body.len(), |at| at + end.len()), true)
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\\"'") {
            (rest[1..].find("'").map_or(rest.len(), |at| at + 2), false)
        } else if next == '"' {
            (quoted(rest), true)
        } else {
            (next.len_utf8(), false)
        };
        keep(&mut kept, &rest[..length], shown);
        if shown {
            kept.push(' ');
        }
        rest = &rest[length..];
    }
    kept
}

/// The length of the string literal at the start of `text`, with its quotes.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        if character == '"' && !escaped {
            return at + 1;
        }
        escaped = character == '\\' && !escaped;
    }
    text.len()
}

/// Whether a word ends right before `rest`, as in `bar"`, where the `r` begins no raw string.
fn ends_in_word(source: &str, rest: &str) -> bool {
    let before = source[..source.len() - rest.len()].chars().next_back();
    before.is_some_and(|character| character.is_alphanumeric() || character == '_')
}

/// Asserts that no text has a banned phrase; all hits are shown at once.
fn assert_plain(texts: impl Iterator<Item = (PathBuf, String)>) {
    let mut hits = Vec::new();
    for (path, text) in texts {
        let path = path.strip_prefix(repository()).unwrap().display().to_string();
        hits.extend(banned(&text).into_iter().map(|(line, phrase)| format!("{path}:{line}: {phrase}")));
    }
    assert!(
        hits.is_empty(),
        "{} banned phrases (words to use instead: CONTRIBUTING.md, glossary)\n{}",
        hits.len(),
        hits.join("\n")
    );
}

#[test]
fn the_documentation_is_in_plain_english() {
    let mut paths: Vec<_> =
        ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| repository().join(name)).into();
    paths.extend(files(&repository().join("docs"), "md"));
    assert_plain(paths.into_iter().map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        // The glossary names the phrases.
        let glossary = text.split_once("\n## Glossary\n").map(|(before, rest)| {
            let kept = rest.find("\n## ").map_or("", |end| &rest[end..]);
            let removed = "\n".repeat(rest[..rest.len() - kept.len()].matches('\n').count() + 2);
            [before, &removed, kept].concat()
        });
        let text = prose(&glossary.unwrap_or(text));
        (path, text)
    }));
}

/// Crates whose messages are rewritten; a crate that is not here may still have banned phrases.
const REWRITTEN: &[&str] = &[
    "analysis",
    "benchmaster",
    "design",
    "diagnosis",
    "fleet",
    "frames",
    "import",
    "netem",
    "nfs-client",
    "nfs-proto",
    "nfs-server",
    "probe",
    "record",
    "runner",
    "stats",
    "store",
    "telemetry",
    "trace",
    "units",
    "watch",
    "workload",
];

#[test]
fn what_the_program_prints_is_in_plain_english() {
    let mut paths = Vec::new();
    for name in REWRITTEN {
        paths.extend(files(&repository().join("crates").join(name).join("src"), "rs"));
    }
    paths.retain(|path| {
        !path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("tests"))
    });
    assert_plain(paths.into_iter().map(|path| {
        let source = fs::read_to_string(&path).unwrap();
        let text = literals(source.split("\n#[cfg(test)]").next().unwrap());
        (path, text)
    }));
}

#[test]
fn explanations_are_in_plain_english() {
    let paths = files(&repository().join("crates/diagnosis/src/texts"), "toml");
    assert!(!paths.is_empty());
    assert_plain(paths.into_iter().map(|path| {
        // A line that ends with a backslash goes on in the next one.
        let text = fs::read_to_string(&path).unwrap().replace("\\\n", " \n");
        (path, text)
    }));
}

#[test]
fn phrases_are_found_across_lines_and_as_whole_words() {
    assert_eq!(banned("It can be\n  had. Not\nso manyfold, Nobody's."), [(1, "can be had"), (3, "nobody")]);
    assert_eq!(banned("nobody:x:65534 nobody: it"), [(1, "nobody")]);
    assert_eq!(prose("a `nobody` b\n```\nanew\n```\nc"), "a  b\n\n\n\nc\n");
    let source = "/// anew\nlet a = \"x \\\" anew\"; // \"nobody\"\nlet b = r#\"so \"many\"#; let c = '\"'; bar(\"is told\")";
    assert_eq!(banned(&literals(source)), [(2, "anew"), (3, "is told")]);
}
