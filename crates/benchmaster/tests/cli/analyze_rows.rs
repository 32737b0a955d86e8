//! `analyze --data`: how the rows of a file are written has no influence on the answer.

use serde_json::Value;

use crate::place::{Place, stderr};

/// A full design in two blocks with a factor of three levels, runs of unequal number, and two without a value.
const HEADER: [&str; 5] = ["block", "sync", "delay", "run_order", "y"];

fn rows() -> Vec<[String; 5]> {
    let mut rows = Vec::new();
    for run in 0..33u32 {
        let (block, sync, delay) = (run % 2, run / 2 % 2, run / 4 % 3);
        // Residuals without a pattern: multiples of the golden ratio, cut off.
        let noise = (f64::from(run) * 0.618_033_988_749_895).fract() - 0.5;
        let value =
            2.5 + 3.0 * f64::from(sync) - 1.75 * f64::from(delay * delay) + 0.5 * f64::from(block) + noise;
        let value = if [5, 20].contains(&run) { String::new() } else { format!("{value:.6}") };
        let delay = ["0.027", "6.87", "13.9"][delay as usize];
        let sync = ["async", "o_sync"][sync as usize];
        rows.push([format!("day {block}"), sync.into(), delay.into(), (run + 1).to_string(), value]);
    }
    rows
}

/// The file as it is written by most programs.
fn plain(rows: &[[String; 5]]) -> String {
    let lines: Vec<String> = rows.iter().map(|row| row.join(",")).collect();
    format!("{}\n{}\n", HEADER.join(","), lines.join("\n"))
}

fn answer(place: &Place, text: &str) -> Value {
    place.write("runs.csv", text);
    let output = place.run(&["analyze", "--json", "--data", "runs.csv", "--no-log"]);
    assert_eq!(output.status.code(), Some(0), "{}\n{text}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Cells as another program may write them.
fn each_cell(rows: &[[String; 5]], write: impl Fn(usize, &str) -> String) -> String {
    let line = |row: &[String; 5]| {
        row.iter().enumerate().map(|(column, cell)| write(column, cell)).collect::<Vec<_>>().join(",")
    };
    let lines: Vec<String> = rows.iter().map(line).collect();
    format!("{}\n{}\n", HEADER.join(","), lines.join("\n"))
}

#[test]
fn how_cells_and_lines_are_written_does_not_matter() {
    let place = Place::new();
    let rows = rows();
    let plain = plain(&rows);
    let expected = answer(&place, &plain);
    let experiment = &expected["experiment"];
    assert_eq!((&experiment["runs"], &experiment["left_out"][0]["runs"]), (&31.into(), &2.into()));
    assert_eq!((&experiment["design"]["blocks"], &experiment["effects_total"]), (&2.into(), &5.into()));

    let number = |cell: &str| cell.parse::<f64>().ok();
    let missing = |word: &'static str| {
        each_cell(
            &rows,
            move |column, cell| if column == 4 && cell.is_empty() { word.into() } else { cell.into() },
        )
    };
    let ways = [
        ("CRLF", plain.replace('\n', "\r\n")),
        ("a byte order mark", format!("\u{feff}{plain}")),
        ("both", format!("\u{feff}{plain}").replace('\n', "\r\n")),
        ("no end of the last line", plain.trim_end().to_owned()),
        ("blank lines", plain.replace('\n', "\n\n  \n")),
        ("blank lines with CRLF", plain.replace('\n', "\r\n\r\n")),
        ("comments", format!("# measured by hand, \"twice\n{}", plain.replace('\n', "\n# a,b\n"))),
        ("semicolons", plain.replace(',', ";")),
        ("tabs", plain.replace(',', "\t")),
        ("quotes", each_cell(&rows, |_, cell| format!("\"{cell}\""))),
        ("spaces", each_cell(&rows, |_, cell| format!("  {cell}\t "))),
        ("spaces around quotes", each_cell(&rows, |_, cell| format!(" \"{cell}\"  "))),
        ("spaces in quotes", each_cell(&rows, |_, cell| format!("\" {cell} \""))),
        (
            "quotes here and there",
            each_cell(&rows, |column, cell| match column % 2 {
                0 => format!("\"{cell}\""),
                _ => cell.to_owned(),
            }),
        ),
        (
            "exponents",
            each_cell(&rows, |column, cell| match number(cell) {
                Some(value) if column == 4 => format!("{:e}", value),
                _ => cell.to_owned(),
            }),
        ),
        (
            "large exponents and signs",
            each_cell(&rows, |column, cell| match number(cell) {
                Some(_) if column == 4 => format!("+{}E+00", cell.trim_start_matches('+')).replace("+-", "-"),
                _ => cell.to_owned(),
            }),
        ),
        ("the minus sign of typesetting", plain.replace(",-", ",\u{2212}")),
        ("NA", missing("NA")),
        ("n/a", missing("n/a")),
        ("NaN", missing("NaN")),
        ("quoted nothing", missing("\"\"")),
        ("row numbers as R writes them", {
            let numbered = rows.iter().enumerate().map(|(i, row)| format!("\"{}\",{}", i + 1, row.join(",")));
            format!("\"\",{}\n{}\n", HEADER.join(","), numbered.collect::<Vec<_>>().join("\n"))
        }),
    ];
    assert!(plain.contains(",-"), "there is no negative value to write in another way");
    for (way, text) in ways {
        assert_ne!(text, plain, "{way}");
        assert_eq!(answer(&place, &text), expected, "{way}");
    }
}

#[test]
fn the_order_of_the_rows_does_not_matter() {
    let place = Place::new();
    let mut rows = rows();
    let expected = answer(&place, &plain(&rows));
    // A linear congruential generator (Knuth's MMIX) shuffles them.
    let mut state = 20_261_122u64;
    for _ in 0..8 {
        for last in (1..rows.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            rows.swap(last, (state >> 33) as usize % (last + 1));
        }
        let mut found = answer(&place, &plain(&rows));
        // Where a run is in the file, and treatments in the order in which they first occur.
        for key in ["residuals", "predictions"] {
            found["experiment"][key] = expected["experiment"][key].clone();
        }
        same("", &found, &expected);
    }
}

/// Equal but for rounding; small numbers are differences of responses of about 5.
fn same(path: &str, found: &Value, expected: &Value) {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            assert!(found.keys().eq(expected.keys()), "{path}");
            found.iter().for_each(|(key, value)| same(&format!("{path}.{key}"), value, &expected[key]));
        }
        (Value::Array(found), Value::Array(expected)) => {
            assert_eq!(found.len(), expected.len(), "{path}");
            found
                .iter()
                .zip(expected)
                .for_each(|(found, expected)| same(&format!("{path}[]"), found, expected));
        }
        (Value::Number(found), Value::Number(expected)) => {
            let (found, expected) = (found.as_f64().unwrap(), expected.as_f64().unwrap());
            assert!(
                (found - expected).abs() <= 1e-9 * expected.abs().max(1.0),
                "{path}: {found} for {expected}"
            );
        }
        _ => assert_eq!(found, expected, "{path}"),
    }
}
