//! Plain CSV files: columns of factors, and of what was measured.

mod centre;
mod levels;
mod lines;

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anyhow::anyhow;

pub(crate) use self::centre::centre_points;
use self::lines::Lines;
use crate::commands::{Failure, Result};

/// A CSV file, column by column. All columns have the same length.
#[derive(Debug)]
pub(crate) struct Csv {
    /// What it is called in messages: its path.
    pub(crate) name: String,
    /// The columns in the order of the file.
    pub(crate) columns: Vec<CsvColumn>,
    /// Line of every row in the file, from 1.
    pub(crate) lines: Vec<u64>,
}

/// A column of a CSV file.
#[derive(Debug)]
pub(crate) struct CsvColumn {
    /// Its header.
    pub(crate) name: String,
    cells: Cells,
}

/// The cells of a column. Every text is kept once: a factor's column has few of them.
#[derive(Debug)]
enum Cells {
    Texts {
        texts: Vec<String>,
        places: HashMap<String, u32>,
        codes: Vec<u32>,
    },
    /// Numbers of which so many are different that they can be no levels. Missing ones are not a number.
    Numbers(Vec<f64>),
}

/// Different numbers beyond which a column is no factor.
const MOST_LEVELS: usize = 4096;

/// What is wrong with a cell that should be a number, and what to do.
fn no_number(cell: &str, column: &str) -> String {
    let digits = cell.trim_start_matches(['-', '+']);
    let fix = if cell.contains(',') && digits.chars().all(|c| c.is_ascii_digit() || ",. '".contains(c)) {
        "write it with a decimal point, and nothing between thousands"
    } else if digits.starts_with(|c: char| c.is_ascii_digit()) {
        "write the number alone, all in one unit"
    } else {
        "leave the cell empty where there is no value"
    };
    format!("`{cell}` in `{column}` is no number; {fix}")
}

/// A column read as a factor.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FactorColumn {
    /// Its header.
    pub(crate) name: String,
    /// Its levels from low to high; see [`Csv::factor`].
    pub(crate) levels: Vec<String>,
    /// The levels as numbers, when all of them are numbers, sizes or durations.
    pub(crate) values: Option<Vec<f64>>,
    /// The number of the level, from 0, of every row.
    pub(crate) rows: Vec<u32>,
}

impl Csv {
    /// Reads a file, or standard input for `-`. Cells are separated by commas, or by semicolons or tabs when the header has
    /// those; the first line names the columns; lines that begin with `#` and empty lines are skipped. A first column
    /// without a name is taken for the numbers of the rows, as R writes them, and left out.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        if path == Path::new("-") {
            return Self::parse("standard input", io::stdin().lock());
        }
        let name = path.display().to_string();
        let file = File::open(path)
            .map_err(|error| Failure::wrong_input(anyhow!("cannot read `{name}`: {error}")))?;
        Self::parse(&name, BufReader::with_capacity(1 << 18, file))
    }

    /// The same of any text.
    pub(crate) fn parse(name: &str, input: impl BufRead) -> Result<Self> {
        let wrong = |problem: String| Failure::wrong_input(anyhow!("`{name}`: {problem}"));
        let mut rows = Lines::new(input);
        let header = rows.next().map_err(wrong)?.map(|(_, cells)| cells.map(str::to_owned));
        let header: Vec<String> = header.map(Iterator::collect).unwrap_or_default();
        let unnamed = usize::from(header.len() > 1 && header[0].is_empty());
        check_header(&header[unnamed..]).map_err(wrong)?;
        let mut columns: Vec<_> = header[unnamed..].iter().map(|title| CsvColumn::new(title)).collect();
        let mut lines = Vec::new();
        while let Some((line, cells)) = rows.next().map_err(wrong)? {
            let mut found = 0;
            for cell in cells {
                // The columns of a row with too many cells are not needed any more.
                if let Some(column) = (found as usize).checked_sub(unnamed).and_then(|c| columns.get_mut(c)) {
                    column.push(cell).map_err(|problem| wrong(format!("line {line}: {problem}")))?;
                }
                found += 1;
            }
            if found as usize != header.len() {
                let expected = header.len();
                let fix = match found as usize > header.len() {
                    true => "put a cell that has a comma in it into quotes",
                    false => "leave a cell empty, but not out",
                };
                let problem = format!("line {line} has {found} cells, the first line has {expected}; {fix}");
                return Err(wrong(problem));
            }
            lines.push(line);
        }
        if lines.is_empty() {
            return Err(wrong(match columns.iter().any(|column| column.name.contains('\r')) {
                true => "its lines end with a carriage return alone; save it with line feeds".into(),
                false => "it has a header, but no rows".into(),
            }));
        }
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
            Failure::wrong_input(anyhow!(
                "`{}` has no column `{name}`; it has {}",
                self.name,
                known.join(", ")
            ))
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
        match &self.column(name)?.cells {
            Cells::Numbers(values) => Ok(values.iter().map(|v| (!v.is_nan()).then_some(*v)).collect()),
            Cells::Texts { texts, codes, .. } => {
                let values: Vec<_> =
                    texts.iter().map(|text| (levels::is_missing(text), levels::number(text))).collect();
                let value = |(row, &code): (usize, &u32)| match values[code as usize] {
                    (true, _) => Ok(None),
                    (false, Some(value)) => Ok(Some(value)),
                    (false, None) => Err(Failure::wrong_input(anyhow!(
                        "`{}`, line {}: {}",
                        self.name,
                        self.lines[row],
                        no_number(&texts[code as usize], name)
                    ))),
                };
                codes.iter().enumerate().map(value).collect()
            }
        }
    }

    /// The texts of a column, row by row.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>> {
        Ok(match &self.column(name)?.cells {
            Cells::Numbers(values) => values.iter().map(f64::to_string).collect(),
            Cells::Texts { texts, codes, .. } => codes.iter().map(|&c| texts[c as usize].clone()).collect(),
        })
    }

    /// A column as a factor. Its levels are ordered by value when all of them are numbers, sizes (`64KiB`) or durations
    /// (`10ms`); `-` is below `+`, and `low`, `off`, `no` and `false` are below `high`, `on`, `yes` and `true`; all others are
    /// in alphabetical order. So the order does not depend on that of the rows. `order` names the levels in another order.
    pub(crate) fn factor(&self, name: &str, order: Option<&[String]>) -> Result<FactorColumn> {
        let column = self.column(name)?;
        let Cells::Texts { texts, codes, .. } = &column.cells else {
            return Err(Failure::wrong_input(anyhow!(
                "`{}`: `{name}` has more than {MOST_LEVELS} different numbers, too many for the levels of a factor; name \
                 the factors with `--factors`",
                self.name
            )));
        };
        if let Some(code) = texts.iter().position(|text| text.is_empty()) {
            let row = codes.iter().position(|&c| c as usize == code).unwrap_or(0);
            return Err(self.missing(name, row));
        }
        let known: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (levels, values) = match order {
            None => levels::ordered(&known),
            Some(order) => levels::as_named(&known, order).map_err(|problem| {
                Failure::wrong_input(anyhow!("`{}`: the levels of `{name}`: {problem}", self.name))
            })?,
        };
        let mut place = vec![0u32; texts.len()];
        for (number, level) in (0u32..).zip(&levels) {
            if let Some(code) = texts.iter().position(|text| text == level) {
                place[code] = number;
            }
        }
        let rows = codes.iter().map(|&code| place[code as usize]).collect();
        Ok(FactorColumn { name: name.to_owned(), levels, values, rows })
    }

    fn missing(&self, column: &str, row: usize) -> Failure {
        Failure::wrong_input(anyhow!(
            "`{}`, line {}: `{column}` is empty; leave out the whole line of a run that has no value",
            self.name,
            self.lines[row]
        ))
    }
}

fn check_header(header: &[String]) -> std::result::Result<(), String> {
    if header.iter().all(String::is_empty) {
        return Err("it is empty; the first line names the columns, as in `version,sync,y`".into());
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

impl CsvColumn {
    fn new(name: &str) -> Self {
        let cells = Cells::Texts { texts: Vec::new(), places: HashMap::new(), codes: Vec::new() };
        Self { name: name.to_owned(), cells }
    }

    /// Different texts; `None` when there are too many to be levels.
    #[cfg(test)]
    fn distinct(&self) -> Option<usize> {
        match &self.cells {
            Cells::Texts { texts, .. } => Some(texts.len()),
            Cells::Numbers(_) => None,
        }
    }

    /// Whether all cells are numbers or missing, and one of them is a number.
    pub(crate) fn is_numeric(&self) -> bool {
        match &self.cells {
            Cells::Numbers(_) => true,
            Cells::Texts { texts, .. } => {
                let number = |text: &String| levels::number(text).is_some();
                texts.iter().any(number) && texts.iter().all(|t| levels::is_missing(t) || number(t))
            }
        }
    }

    fn push(&mut self, cell: &str) -> std::result::Result<(), String> {
        match &mut self.cells {
            Cells::Numbers(values) => match levels::number(cell) {
                Some(value) => values.push(value),
                None if levels::is_missing(cell) => values.push(f64::NAN),
                None => return Err(no_number(cell, &self.name)),
            },
            Cells::Texts { texts, places, codes } => {
                // Levels often stay the same from row to row, and there are few.
                let last = codes.last().filter(|&&code| texts[code as usize] == cell);
                let near = || texts.iter().take(4).position(|text| text == cell).map(|p| p as u32);
                let known = last.copied().or_else(near).or_else(|| places.get(cell).copied());
                if let Some(code) = known {
                    codes.push(code);
                    return Ok(());
                }
                let code = texts.len() as u32;
                places.insert(cell.to_owned(), code);
                texts.push(cell.to_owned());
                codes.push(code);
                if texts.len() > MOST_LEVELS {
                    self.become_numbers();
                }
            }
        }
        Ok(())
    }

    /// Keeps numbers instead of texts, when all of them are numbers.
    fn become_numbers(&mut self) {
        let Cells::Texts { texts, codes, .. } = &self.cells else { return };
        let number = |text: &String| levels::number(text).or(levels::is_missing(text).then_some(f64::NAN));
        if let Some(values) = texts.iter().map(number).collect::<Option<Vec<_>>>() {
            self.cells = Cells::Numbers(codes.iter().map(|&code| values[code as usize]).collect());
        }
    }
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
    fn mistakes_are_told_with_their_line() {
        assert_eq!(
            message("a,y\n1,2\n3\n"),
            "`d.csv`: line 3 has 1 cells, the first line has 2; leave a cell empty, but not out"
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
            "`d.csv`, line 4: `many` in `y` is no number; leave the cell empty where there is no value"
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
    fn columns_of_many_numbers_are_kept_as_numbers() {
        let mut text = "a,y\n".to_owned();
        for i in 0..10_000 {
            text += &format!("{},{}\n", i % 2, if i == 7 { "NA".into() } else { format!("{i}.5") });
        }
        let csv = parse(&text);
        assert_eq!(
            (csv.column("a").unwrap().distinct(), csv.column("y").unwrap().distinct()),
            (Some(2), None)
        );
        let values = csv.numbers_or_missing("y").unwrap();
        assert_eq!(
            (values.len(), values[6], values[7], values[9_999]),
            (10_000, Some(6.5), None, Some(9999.5))
        );
        let problem = csv.factor("y", None).unwrap_err().error.to_string();
        assert!(problem.contains("more than 4096 different numbers"), "{problem}");
        text += "0,x\n";
        assert_eq!(
            message(&text),
            "`d.csv`: line 10002: `x` in `y` is no number; leave the cell empty where there is no value"
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
