//! Files of records: JSON lines, which have an object each, and tables with a heading.
use super::csv::{read, rows};
use crate::json::{Map, Value};
use crate::{Error, Result};
use std::path::Path;

/// One object of a file of JSON lines, or one row of a table.
#[derive(Clone, Debug)]
pub struct Record {
    line: usize,
    fields: Map,
    /// Of a table, where a number is a text that reads as one.
    texts: bool,
}

impl Record {
    fn field<'a, T>(&'a self, name: &str, what: &str, take: impl FnOnce(&'a Value) -> Option<T>) -> Result<T> {
        let wrong = |why: String| Error::Usage { message: format!("line {}: {why}", self.line) };
        let names = || self.fields.keys().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ");
        let value =
            self.fields.get(name).ok_or_else(|| wrong(format!("there is no field `{name}`, but {}", names())))?;
        take(value).ok_or_else(|| wrong(format!("the field `{name}` is {what}, and is {value}")))
    }

    /// A number that stands there as a text.
    fn parsed<T: std::str::FromStr>(&self, value: &Value) -> Option<T> {
        value.as_str().filter(|_| self.texts)?.trim().parse().ok()
    }

    /// A field that is a text.
    pub fn text(&self, name: &str) -> Result<&str> {
        self.field(name, "to be a text", Value::as_str)
    }

    /// A field that is a number.
    pub fn number(&self, name: &str) -> Result<f64> {
        self.field(name, "to be a number", |v| v.as_f64().or_else(|| self.parsed(v)))
    }

    /// A field that is a whole number, such as a label.
    pub fn integer(&self, name: &str) -> Result<i64> {
        self.field(name, "to be a whole number", |v| v.as_i64().or_else(|| self.parsed(v)))
    }

    /// A field that is a list of numbers.
    pub fn numbers(&self, name: &str) -> Result<Vec<f64>> {
        self.field(name, "to be a list of numbers", |v| v.as_array()?.iter().map(Value::as_f64).collect())
    }

    /// The fields' names.
    pub fn names(&self) -> Vec<&str> {
        self.fields.keys().map(String::as_str).collect()
    }
}

/// The objects of a file of JSON lines, `.gz` or plain; empty lines are skipped.
///
/// ```
/// use xlazy::prelude::*;
/// let path = std::env::temp_dir().join(format!("xlazy-{}.jsonl", std::process::id()));
/// std::fs::write(&path, "{\"text\": \"good\", \"label\": 1}\n{\"text\": \"bad\", \"label\": 0}\n").unwrap();
/// let all = data::read_jsonl(&path).unwrap();
/// let labels: Vec<i64> = all.iter().map(|r| r.integer("label").unwrap()).collect();
/// assert_eq!((all[1].text("text").unwrap(), labels), ("bad", vec![1, 0]));
/// # std::fs::remove_file(&path).unwrap();
/// ```
pub fn read_jsonl(path: impl AsRef<Path>) -> Result<Vec<Record>> {
    read(path.as_ref(), |text| {
        let lines = (1..).zip(text.lines()).filter(|(_, l)| !l.trim().is_empty());
        let one = |(line, text)| match crate::json::parse(text) {
            Ok(Value::Object(fields)) => Ok(Record { line, fields, texts: false }),
            Ok(other) => Err(format!("line {line} is no object: {other}")),
            Err(e) => Err(format!("line {line}: {e}")),
        };
        lines.map(one).collect()
    })
}

/// The rows of a file whose fields are separated by commas and whose first line names them, `.gz` or plain: what has texts beside
/// numbers, where [`read_csv`](super::read_csv) has numbers only. What stands in double quotes may have commas.
///
/// ```
/// use xlazy::prelude::*;
/// let path = std::env::temp_dir().join(format!("xlazy-table-{}.csv", std::process::id()));
/// std::fs::write(&path, "city,area\nWien,55.5\n\"Graz, Ost\",70\n").unwrap();
/// let rows = data::read_table(&path).unwrap();
/// let areas = rows.iter().map(|r| r.number("area")).collect::<Result<Vec<_>, _>>().unwrap();
/// assert_eq!((rows[1].text("city").unwrap(), areas), ("Graz, Ost", vec![55.5, 70.0]));
/// # std::fs::remove_file(&path).unwrap();
/// ```
pub fn read_table(path: impl AsRef<Path>) -> Result<Vec<Record>> {
    read(path.as_ref(), |text| {
        let mut rows = rows(text.trim_start_matches('\u{feff}')).into_iter();
        let (_, names) = rows.next().unwrap_or_default();
        let row = |(line, values): (usize, Vec<String>)| {
            if values.len() != names.len() {
                return Err(format!("line {line} has {} fields, and {} names", values.len(), names.len()));
            }
            let fields = names.iter().cloned().zip(values.into_iter().map(Value::String)).collect();
            Ok(Record { line, fields, texts: true })
        };
        rows.map(row).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::{read_jsonl, read_table};

    #[test]
    fn rows_of_a_table_are_texts_and_numbers() {
        let path = std::env::temp_dir().join(format!("xlazy-rows-{}.csv", std::process::id()));
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_table(&path).map_err(|e| e.to_string())
        };
        let all = read("city, n,x\r\n\"Wien, \"\"Ost\"\"\",07, 1.5\r\n\r\nGraz,x,\n").unwrap();
        assert_eq!((all[0].text("city").unwrap(), all[0].text("n").unwrap()), ("Wien, \"Ost\"", "07"));
        assert_eq!((all[0].integer("n").unwrap(), all[0].number("x").unwrap()), (7, 1.5));
        assert_eq!(
            all[1].integer("n").unwrap_err().to_string(),
            "line 4: the field `n` is to be a whole number, and is \"x\""
        );
        assert!(all[1].number("x").is_err());
        assert!(read("a,b\n1\n").unwrap_err().ends_with("line 2 has 1 fields, and 2 names"));
        assert!(read("").unwrap().is_empty());
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let path = std::env::temp_dir().join(format!("xlazy-lines-{}.jsonl", std::process::id()));
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_jsonl(&path).map_err(|e| e.to_string())
        };
        let all = read("{\"a\": [1, 2.5], \"b\": \"x\"}\n\n{\"a\": 3}\n").unwrap();
        assert_eq!(all[0].numbers("a").unwrap(), [1.0, 2.5]);
        assert_eq!(all[1].text("b").unwrap_err().to_string(), "line 3: there is no field `b`, but `a`");
        assert_eq!(
            all[0].integer("b").unwrap_err().to_string(),
            "line 1: the field `b` is to be a whole number, and is \"x\""
        );
        assert!(read("{\"a\": 1}\n[1]\n").unwrap_err().ends_with("line 2 is no object: [1]"));
        assert!(read("{\"a\": \n").unwrap_err().contains("line 1: "));
        std::fs::remove_file(&path).unwrap();
    }
}
