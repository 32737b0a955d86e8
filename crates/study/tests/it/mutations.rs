//! Whatever is done to a study file, reading it does not panic, and every mistake found has a place within it.
use std::path::Path;

use benchmaster_study::battery::quick;
use benchmaster_study::diagnostics::Diagnostics;
use benchmaster_study::file::StudyFile;
use benchmaster_study::plan::Plan;
use benchmaster_study::target::Target;
use proptest::prelude::*;

/// A study with everything nested in every way that TOML knows.
const NESTED: &str = r#"
study.name = "é-nested"
study = { seed = 3 }
[target]
path = "{scratch}"
[factors]
size.parameter = "workload.mix.filesets.b.size"
size.levels = ["4KiB", { distribution = "uniform", min = "1KiB", max = "8KiB" }]
[factors.who.levels.few]
"clients.count" = 1
workload.mix.groups = [{ name = "g", flow = [{ op = "create", file = "new", fileset = "a", flags = ["write"] }, { op = "close" }] }]
[factors.who.levels.many]
"clients.count" = 2
workload.mix.groups = [{ name = "h", flow = [{ op = "stat", file = "once", fileset = "b" }] }]
[design]
replicates.min = 5
replicates.max = 6
[workload.mix]
filesets = { a = { files = 10, size = 0, prefill = 0.0 }, b = { files = 3, size = "1KiB" } }
[[workload.mix.groups]]
name = "x"
[[workload.mix.groups.flow]]
op = "readdir"
"#;

fn studies() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut texts: Vec<_> = paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    texts.push(quick(&Target::read("/mnt/x").unwrap(), None, None));
    texts.push(NESTED.replace(
        "study.name = \"é-nested\"\nstudy = { seed = 3 }",
        "study = { name = \"nested\", seed = 3 }",
    ));
    texts.push(NESTED.to_owned());
    texts
}

fn check(text: &str) {
    let lines = text.split('\n').count();
    let within = |found: &Diagnostics| {
        for span in found.list().iter().filter_map(|d| d.span.clone()) {
            assert!(span.start <= span.end && span.end <= text.len(), "{span:?} in {text:?}");
            let (line, column) = found.line_column(&span);
            assert!((1..=lines).contains(&line), "line {line} of {lines} in {text:?}");
            let length = text.split('\n').nth(line - 1).unwrap().chars().count();
            assert!((1..=length + 1).contains(&column), "column {column} of {length} in {text:?}");
        }
        assert!(!found.render(true).is_empty() && !found.render(false).is_empty());
    };
    match StudyFile::parse("study.toml", text) {
        Err(found) => {
            assert!(found.has_errors());
            within(&found);
        }
        Ok(file) => {
            within(&file.warnings);
            if let Err(found) = Plan::from_study(&file, "1") {
                assert!(found.has_errors());
                within(&found);
            }
        }
    }
}

#[test]
fn nested_forms_are_understood() {
    let texts = studies();
    let nested = &texts[texts.len() - 2];
    let file = StudyFile::parse("study.toml", nested).unwrap_or_else(|found| panic!("{found}"));
    let plan = Plan::from_study(&file, "1").unwrap();
    assert_eq!(plan.treatments.len(), 4);
    assert_eq!(plan.treatments[3].settings.clients(), 2);
    assert_eq!(plan.treatments[3].workloads[0].1.groups[0].name, "h");
    assert_eq!(plan.study.factors[1].settings[0]["clients.count"], "1");
}

#[derive(Debug, Clone)]
enum Mutation {
    Delete { start: usize, length: usize },
    Insert { at: usize, text: String },
    Replace { at: usize, length: usize, text: String },
    SwapLines { one: usize, other: usize },
    RepeatLine { line: usize },
    DropLine { line: usize },
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let fragment = prop_oneof![
        prop::sample::select(vec![
            "\"",
            "[",
            "]",
            "{",
            "}",
            "=",
            ".",
            ",",
            "\n",
            "#",
            "'''",
            "0",
            "-1",
            "1e400",
            "é",
            "\u{0}",
            "\r\n",
            "true",
            "\"64k\"",
            "[[a]]\n",
            "99999999999999999999",
            "[]",
            "{}",
            "\"\"",
            "1979-05-27",
            "nan",
            "\u{feff}",
            "workload",
            "groups[0]",
        ])
        .prop_map(str::to_owned),
        "\\PC{0,4}",
    ];
    let index = || any::<prop::sample::Index>().prop_map(|index| index.index(1 << 20));
    prop_oneof![
        (index(), 1usize..30).prop_map(|(start, length)| Mutation::Delete { start, length }),
        (index(), fragment.clone()).prop_map(|(at, text)| Mutation::Insert { at, text }),
        (index(), 1usize..12, fragment).prop_map(|(at, length, text)| Mutation::Replace { at, length, text }),
        (index(), index()).prop_map(|(one, other)| Mutation::SwapLines { one, other }),
        index().prop_map(|line| Mutation::RepeatLine { line }),
        index().prop_map(|line| Mutation::DropLine { line }),
    ]
}

fn mutate(text: &str, mutation: &Mutation) -> String {
    let characters: Vec<char> = text.chars().collect();
    let mut lines: Vec<&str> = text.split('\n').collect();
    let cut = |start: usize, length: usize, new: &str| {
        let start = start % (characters.len() + 1);
        let end = (start + length).min(characters.len());
        characters[..start]
            .iter()
            .copied()
            .chain(new.chars())
            .chain(characters[end..].iter().copied())
            .collect()
    };
    let count = lines.len();
    match mutation {
        Mutation::Delete { start, length } => return cut(*start, *length, ""),
        Mutation::Insert { at, text } => return cut(*at, 0, text),
        Mutation::Replace { at, length, text } => return cut(*at, *length, text),
        Mutation::SwapLines { one, other } => lines.swap(one % count, other % count),
        Mutation::RepeatLine { line } => lines.insert(line % count, lines[line % count]),
        Mutation::DropLine { line } => {
            lines.remove(line % count);
        }
    }
    lines.join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn mutated_studies_do_not_panic(
        study in any::<prop::sample::Index>(),
        mutations in prop::collection::vec(mutation(), 1..4),
    ) {
        let studies = studies();
        let text = mutations.iter().fold(study.get(&studies).clone(), |text, mutation| mutate(&text, mutation));
        check(&text);
    }

    #[test]
    fn any_text_does_not_panic(text in "(\\PC|\n){0,200}") {
        check(&text);
    }

    #[test]
    fn any_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        if let Err(found) = StudyFile::parse_bytes("study.toml", &bytes) {
            prop_assert!(!found.render(false).is_empty());
        }
    }
}

/// The line and column of an unknown key are right wherever the key is.
#[test]
fn places_are_exact_in_every_kind_of_table() {
    let good = &studies()[studies().len() - 2];
    let cases = [
        "name = \"nested\"",
        "path = ",
        "files = 10",
        "size = 0",
        "prefill",
        "name = \"x\"",
        "replicates.min",
        "op = \"readdir\"",
    ];
    for old in cases {
        assert_eq!(good.matches(old).count(), 1, "{old}");
        let key_length = old.find(' ').unwrap_or(old.len());
        let key = old[..key_length].rsplit('.').next().unwrap();
        let start = good.find(old).unwrap() + key_length - key.len();
        let mut text = good.clone();
        text.replace_range(start..start + key.len(), "zzzzz");
        let found = StudyFile::parse("study.toml", &text).expect_err(old);
        let spans: Vec<_> = found.list().iter().filter_map(|d| d.span.clone()).collect();
        assert!(spans.contains(&(start..start + 5)), "{old}: {found}");
    }
}
