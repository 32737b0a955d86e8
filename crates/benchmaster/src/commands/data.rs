//! Plain CSV files: columns of factors, and of what was measured.

mod centre;
mod column;
mod levels;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use benchmaster_units::format::plural;
use csv::{ReaderBuilder, StringRecord, Terminator};

pub(crate) use self::centre::centre_points;
pub(crate) use self::column::CsvColumn;
use self::column::no_number;
use crate::failure::{Failure, Result};

/// A CSV file, column by column. All columns have the same length.
#[derive(Debug)]
pub(crate) struct Csv {
    /// Its path, for messages.
    pub(crate) name: String,
    pub(crate) columns: Vec<CsvColumn>,
    /// Line of every row in the file, from 1.
    pub(crate) lines: Vec<u64>,
}

/// A column read as a factor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FactorColumn {
    pub(crate) name: String,
    /// Its levels from low to high; see [`Csv::factor`].
    pub(crate) levels: Vec<String>,
    /// The levels as numbers, when all of them are numbers, sizes or durations.
    pub(crate) values: Option<Vec<f64>>,
    /// The number of the level, from 0, of every row.
    pub(crate) rows: Vec<u32>,
}

/// Numeric columns with more different values than this are no factors.
const MOST_LEVELS: usize = 4096;

const NO_HEADER: &str = "it is empty; the first line names the columns, as in `version,sync,y`";

/// Follows the file's text: a comment, unless a quote is still open, whose cell then ends with it.
const END: &str = "\n#\0";

impl Csv {
    /// Reads a file, or standard input for `-`. Cells are separated by commas, or by semicolons or tabs when the header has
    /// those; the first line names the columns; lines that begin with `#` and empty lines are skipped. A first column
    /// without a name is taken for the numbers of the rows, as R writes them, and left out.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Self::parse("standard input", io::stdin().lock());
        }
        let name = path.display().to_string();
        let file =
            File::open(path).map_err(|error| Failure::wrong(format!("cannot read `{name}`: {error}")))?;
        Self::parse(&name, file)
    }

    /// The same of any text.
    pub(crate) fn parse(name: &str, input: impl Read) -> Result<Self> {
        let (columns, lines) =
            columns(input).map_err(|problem| Failure::wrong(format!("`{name}`: {problem}")))?;
        Ok(Self { name: name.to_owned(), columns, lines })
    }

    /// Rows of the file.
    pub(crate) fn rows(&self) -> usize {
        self.lines.len()
    }

    /// The column of a name.
    pub(crate) fn column(&self, name: &str) -> Result<&CsvColumn> {
        self.columns.iter().find(|column| column.name == name).ok_or_else(|| {
            let known: Vec<_> = self.columns.iter().map(|column| format!("`{}`", column.name)).collect();
            Failure::wrong(format!("`{}` has no column `{name}`; it has {}", self.name, known.join(", ")))
        })
    }

    /// A column of numbers, none of them missing.
    pub(crate) fn numbers(&self, name: &str) -> Result<Vec<f64>> {
        let values = self.numbers_or_missing(name)?;
        match values.iter().position(Option::is_none) {
            Some(row) => Err(self.missing(name, row)),
            None => Ok(values.into_iter().flatten().collect()),
        }
    }

    /// A column of numbers, some of which may be missing: an empty cell, `NA`, `N/A`, `NaN`.
    pub(crate) fn numbers_or_missing(&self, name: &str) -> Result<Vec<Option<f64>>> {
        let column = self.column(name)?;
        let numbers: Vec<_> = column.texts.iter().map(|text| levels::number(text)).collect();
        // Texts are in the order in which they first occur: this is the first line with a mistake.
        let wrong =
            (0..numbers.len()).find(|&i| numbers[i].is_none() && !levels::is_missing(&column.texts[i]));
        if let Some(text) = wrong {
            let line = self.lines[column.first_row(text)];
            let problem = no_number(&column.texts[text], name);
            return Err(Failure::wrong(format!("`{}`, line {line}: {problem}", self.name)));
        }
        Ok(column.codes.iter().map(|&code| numbers[code as usize]).collect())
    }

    /// The texts of a column, row by row.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>> {
        let column = self.column(name)?;
        Ok(column.codes.iter().map(|&code| column.texts[code as usize].clone()).collect())
    }

    /// A column as a factor. Its levels are ordered by value when all of them are numbers, sizes (`64KiB`) or durations
    /// (`10ms`); `-` is below `+`, and `low`, `off`, `no` and `false` are below `high`, `on`, `yes` and `true`; all others are
    /// in alphabetical order. So the order does not depend on that of the rows. `order` names the levels in another order.
    pub(crate) fn factor(&self, name: &str, order: Option<&[String]>) -> Result<FactorColumn> {
        let column = self.column(name)?;
        if column.texts.len() > MOST_LEVELS && column.is_numeric() {
            return Err(Failure::wrong(format!(
                "`{}`: `{name}` has more than {MOST_LEVELS} different numbers, too many for the levels of a factor; name \
                 the factors with `--factors`",
                self.name
            )));
        }
        if let Some(text) = column.texts.iter().position(String::is_empty) {
            return Err(self.missing(name, column.first_row(text)));
        }
        let known: Vec<&str> = column.texts.iter().map(String::as_str).collect();
        let (levels, values) = match order {
            None => levels::ordered(&known),
            Some(order) => levels::as_named(&known, order).map_err(|problem| {
                Failure::wrong(format!("`{}`: the levels of `{name}`: {problem}", self.name))
            })?,
        };
        let number: HashMap<&str, u32> = levels.iter().map(String::as_str).zip(0..).collect();
        let level_of_text: Vec<u32> =
            known.iter().map(|text| number.get(text).copied().unwrap_or(0)).collect();
        let rows = column.codes.iter().map(|&code| level_of_text[code as usize]).collect();
        Ok(FactorColumn { name: name.to_owned(), levels, values, rows })
    }

    fn missing(&self, column: &str, row: usize) -> Failure {
        Failure::wrong(format!(
            "`{}`, line {}: `{column}` is empty; leave out the whole line of a run that has no value",
            self.name, self.lines[row]
        ))
    }
}

/// The columns of a file and the line of each row.
fn columns(mut input: impl Read) -> std::result::Result<(Vec<CsvColumn>, Vec<u64>), String> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).map_err(|error| format!("it cannot be read: {error}"))?;
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
        format!("line {line} is not UTF-8; save the file as UTF-8")
    })?;
    text.push_str(END);
    let text = text.trim_start_matches('\u{feff}');
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .comment(Some(b'#'))
        .delimiter(delimiter(text))
        // Carriage returns before it are trimmed with the spaces around the last cell.
        .terminator(Terminator::Any(b'\n'))
        .from_reader(text.as_bytes());
    let mut record = StringRecord::new();
    let (mut titles, mut unnamed) = (0, 0);
    let (mut columns, mut lines) = (Vec::new(), Vec::new());
    while reader.read_record(&mut record).map_err(|error| error.to_string())? {
        let cells = record.len();
        if cells == 1 && cell(&record[0]).is_empty() {
            continue;
        }
        let breaks = record.iter().flat_map(str::bytes).filter(|&byte| byte == b'\n').count() as u64;
        let after = reader.position().line();
        if record[cells - 1].ends_with(END) {
            return Err(format!("line {}: a quote is opened and never closed", after - breaks));
        }
        let line = after - breaks - 1;
        if columns.is_empty() {
            let header: Vec<_> = record.iter().map(cell).collect();
            titles = cells;
            unnamed = usize::from(titles > 1 && header[0].is_empty());
            check_header(&header[unnamed..])?;
            columns.extend(header[unnamed..].iter().map(|title| CsvColumn::new(title)));
            continue;
        }
        if cells != titles {
            let fix = if cells > titles {
                "put a cell that has a comma in it into quotes"
            } else {
                "leave a cell empty, but not out"
            };
            let found = plural(cells, "cell");
            return Err(format!("line {line} has {found}, the first line has {titles}; {fix}"));
        }
        for (column, text) in columns.iter_mut().zip(record.iter().skip(unnamed)) {
            column.push(&cell(text));
        }
        lines.push(line);
    }
    if columns.is_empty() {
        return Err(NO_HEADER.into());
    }
    if lines.is_empty() {
        let old_mac = columns.iter().any(|column: &CsvColumn| column.name.contains('\r'));
        return Err(if old_mac {
            "its lines end with a carriage return alone; save it with line feeds".into()
        } else {
            "it has a header, but no rows".into()
        });
    }
    Ok((columns, lines))
}

/// A cell without the spaces around it, and without quotes that stand behind a space.
fn cell(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    match text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) => quoted.trim().replace("\"\"", "\"").into(),
        None => text.into(),
    }
}

/// What separates cells: the first of comma, semicolon and tab that the header has outside of quotes.
fn delimiter(text: &str) -> u8 {
    let header = text.lines().find(|line| !line.starts_with('#') && !line.trim().is_empty()).unwrap_or("");
    let has = |byte: &u8| header.split('"').step_by(2).any(|part| part.as_bytes().contains(byte));
    *[b',', b';', b'\t'].iter().find(|byte| has(byte)).unwrap_or(&b',')
}

fn check_header(header: &[Cow<'_, str>]) -> std::result::Result<(), String> {
    if header.iter().all(|title| title.is_empty()) {
        return Err(NO_HEADER.into());
    }
    let mut seen = BTreeSet::new();
    for (column, title) in header.iter().enumerate() {
        if title.is_empty() {
            return Err(format!("column {} has no name in the first line; give it one", column + 1));
        }
        if !seen.insert(title) {
            return Err(format!("two columns are called `{title}`; rename one"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    fn parse(text: &str) -> Csv {
        Csv::parse("d.csv", text.as_bytes()).unwrap()
    }

    fn message(text: &str) -> String {
        Csv::parse("d.csv", text.as_bytes()).unwrap_err().error.to_string()
    }

    #[test]
    fn columns_are_read_whatever_separates_them() {
        let texts = [
            "\u{feff}# made by hand\n a , y\n\n-, 1.5\n+,2\n",
            "a;y\n-;1.5\n+;2\n",
            "a\ty\n-\t1.5\n+\t2\n",
            "a,y\r\n-,1.5\r\n\"+\",2",
            "\"\",\"a\",\"y\"\n\"1\",\"-\",1.5\n\"2\",\"+\",2\n",
        ];
        for text in texts {
            let csv = parse(text);
            assert_eq!(csv.texts("a").unwrap(), ["-", "+"], "{text}");
            assert_eq!(csv.numbers("y").unwrap(), [1.5, 2.0], "{text}");
            assert_eq!((csv.columns.len(), csv.rows()), (2, 2), "{text}");
        }
        assert_eq!(parse(texts[0]).lines, [4, 5]);
        let quoted = parse("a,y\n\"two\nlines, \"\"x\"\"\",1\n# no row, \"\nb,2\n");
        assert_eq!(quoted.texts("a").unwrap(), ["two\nlines, \"x\"", "b"]);
        assert_eq!(quoted.lines, [2, 5]);
    }

    #[test]
    fn mistakes_are_reported_with_their_line() {
        assert_eq!(
            message("a,y\n1,2\n3\n"),
            "`d.csv`: line 3 has 1 cell, the first line has 2; leave a cell empty, but not out"
        );
        assert_eq!(
            message("a,y\n1,2,3\n"),
            "`d.csv`: line 2 has 3 cells, the first line has 2; put a cell that has a comma in it into quotes"
        );
        assert_eq!(
            message("a,b\r1,2\r"),
            "`d.csv`: its lines end with a carriage return alone; save it with line feeds"
        );
        assert_eq!(message("a,a\n1,2\n"), "`d.csv`: two columns are called `a`; rename one");
        assert_eq!(message("a,\n1,2\n"), "`d.csv`: column 2 has no name in the first line; give it one");
        assert_eq!(message("a,b\n"), "`d.csv`: it has a header, but no rows");
        assert_eq!(message("a,b\n1,\"2\n3,4\n"), "`d.csv`: line 2: a quote is opened and never closed");
        assert!(message("").contains("it is empty"));
        let not_text = Csv::parse("d.csv", &b"a,y\n1,2\n\xff,3\n"[..]).unwrap_err();
        assert_eq!(not_text.error.to_string(), "`d.csv`: line 3 is not UTF-8; save the file as UTF-8");
        let csv = parse("a,y\n1,2\n,nan\n4,many\n");
        let problem = |result: Result<Vec<f64>>| result.unwrap_err().error.to_string();
        assert_eq!(
            problem(csv.numbers("y")),
            "`d.csv`, line 4: `many` in `y` is not a number; leave the cell empty where there is no value"
        );
        let fix = |cell: &str| {
            let problem = problem(parse(&format!("a;y\n1;{cell}\n")).numbers("y"));
            problem.split_once("; ").unwrap().1.to_owned()
        };
        assert_eq!(fix("1,5"), "write it with a decimal point, and nothing between thousands");
        assert_eq!(fix("-1,234,567.5"), "write it with a decimal point, and nothing between thousands");
        for cell in ["1.5 ms", "64KiB", "12%", "-3s"] {
            assert_eq!(fix(cell), "write the number alone, all in one unit");
        }
        assert_eq!(fix("inf"), "leave the cell empty where there is no value");
        assert_eq!(problem(csv.numbers("z")), "`d.csv` has no column `z`; it has `a`, `y`");
        assert_eq!(
            csv.factor("a", None).unwrap_err().error.to_string(),
            "`d.csv`, line 3: `a` is empty; leave out the whole line of a run that has no value"
        );
    }

    #[test]
    fn quotes_inside_of_cells_are_kept() {
        let csv = parse("disk,y\n5\" disk,1\n6\" disk, \"2\" \n\"a \"\"b\"\"; c\" ,3\n");
        assert_eq!(csv.texts("disk").unwrap(), ["5\" disk", "6\" disk", "a \"b\"; c"]);
        assert_eq!((csv.numbers("y").unwrap(), csv.lines), (vec![1.0, 2.0, 3.0], vec![2, 3, 4]));
        // A comma in a quoted name does not separate.
        let csv = parse("\"size, KiB\";y\n4;1\n");
        assert_eq!((csv.columns[0].name.as_str(), csv.columns.len()), ("size, KiB", 2));
    }

    #[test]
    fn rows_of_any_length_are_read() {
        // Lines of 1 B to 600 KiB.
        let mut text = "a,b,y\n".to_owned();
        let names: Vec<String> = (0..300).map(|i| "n".repeat(1 + i * i * i % 300_007)).collect();
        for (row, name) in names.iter().enumerate() {
            text += &match row % 3 {
                0 => format!("{name},+,{row}\n"),
                1 => format!("\"{name}\n\",-,{row}\r\n"),
                _ => format!("-,{name},{row}\n"),
            };
        }
        let csv = parse(&text);
        let (a, b) = (csv.texts("a").unwrap(), csv.texts("b").unwrap());
        for (row, name) in names.iter().enumerate() {
            let cells = if row % 3 == 2 { ["-", name] } else { [name, ["+", "-"][row % 3]] };
            assert!([&a[row], &b[row]] == cells, "row {row}");
        }
        assert_eq!(csv.numbers("y").unwrap(), (0..300).map(f64::from).collect::<Vec<_>>());
        assert_eq!(csv.lines.last(), Some(&(1 + 300 + 100)));
    }

    #[test]
    fn a_quote_that_is_never_closed_is_found_in_a_long_file() {
        // 20 MB behind it.
        let text = format!("a,y\n\"1,2\n{}", "1,2\n".repeat(5_000_000));
        assert_eq!(message(&text), "`d.csv`: line 2: a quote is opened and never closed");
    }

    #[test]
    fn columns_of_many_texts_keep_them_apart() {
        let mut text = "host,y\n".to_owned();
        for i in 0..140_000u32 {
            text += &format!("h{},{}\n", i * 7 % 70_001, i % 3);
        }
        let csv = parse(&text);
        let hosts = csv.texts("host").unwrap();
        assert!((0..140_000u32).all(|i| hosts[i as usize] == format!("h{}", i * 7 % 70_001)));
        assert_eq!(csv.column("host").unwrap().texts.len(), 70_001);
        let rows = csv.factor("y", None).unwrap().rows;
        assert!(rows.iter().zip(0u32..).all(|(&level, i)| level == i % 3));
    }

    #[test]
    fn what_is_missing_is_known() {
        let csv = parse("a,y\n1,2\n2,\n3,NA\n4,nan\n5,-1e3\n");
        assert_eq!(csv.numbers_or_missing("y").unwrap(), [Some(2.0), None, None, None, Some(-1000.0)]);
        assert_eq!(
            csv.numbers("y").unwrap_err().error.to_string(),
            "`d.csv`, line 3: `y` is empty; leave out the whole line of a run that has no value"
        );
        assert!(csv.column("y").unwrap().is_numeric());
    }

    #[test]
    fn columns_of_many_numbers_are_no_factors() {
        let mut text = "a,y\n".to_owned();
        for i in 0..10_000 {
            text += &format!("{},{}\n", i % 2, if i == 7 { "NA".into() } else { format!("{i}.5") });
        }
        let csv = parse(&text);
        let values = csv.numbers_or_missing("y").unwrap();
        assert_eq!(
            (values.len(), values[6], values[7], values[9_999]),
            (10_000, Some(6.5), None, Some(9999.5))
        );
        let problem = csv.factor("y", None).unwrap_err().error.to_string();
        assert!(problem.contains("more than 4096 different numbers"), "{problem}");
        text += "0,x\n";
        assert_eq!(
            parse(&text).numbers("y").unwrap_err().error.to_string(),
            "`d.csv`, line 10002: `x` in `y` is not a number; leave the cell empty where there is no value"
        );
    }

    #[test]
    fn levels_are_ordered_by_what_they_mean_or_as_asked() {
        let csv = parse("f\n10\n9\n-1\n");
        let factor = csv.factor("f", None).unwrap();
        assert_eq!(factor.levels, ["-1", "9", "10"]);
        assert_eq!(factor.rows, [2, 1, 0]);
        let asked = ["9", "10", "-1"].map(str::to_owned);
        let factor = csv.factor("f", Some(&asked)).unwrap();
        assert_eq!((factor.levels, factor.rows), (asked.to_vec(), vec![1, 0, 2]));
        assert_eq!(factor.values, Some(vec![9.0, 10.0, -1.0]));
        assert_eq!(
            csv.factor("f", Some(&asked[..2])).unwrap_err().error.to_string(),
            "`d.csv`: the levels of `f`: `-1` is not named; name every level once: -1, 10, 9"
        );
    }
}
