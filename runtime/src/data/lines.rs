//! JSON lines: a file with an object in each line.
use crate::json::{Map, Value};
use crate::{Error, Result};
use std::path::Path;

/// One object of a file of JSON lines.
#[derive(Clone, Debug)]
pub struct Record {
    line: usize,
    fields: Map,
}

impl Record {
    fn field<'a, T>(&'a self, name: &str, what: &str, take: impl FnOnce(&'a Value) -> Option<T>) -> Result<T> {
        let wrong = |why: String| Error::Usage { message: format!("line {}: {why}", self.line) };
        let names = || self.fields.keys().map(|k| format!("`{k}`")).collect::<Vec<_>>().join(", ");
        let value =
            self.fields.get(name).ok_or_else(|| wrong(format!("there is no field `{name}`, but {}", names())))?;
        take(value).ok_or_else(|| wrong(format!("the field `{name}` is {what}, and is {value}")))
    }

    /// A field that is a text.
    pub fn text(&self, name: &str) -> Result<&str> {
        self.field(name, "to be a text", Value::as_str)
    }

    /// A field that is a number.
    pub fn number(&self, name: &str) -> Result<f64> {
        self.field(name, "to be a number", Value::as_f64)
    }

    /// A field that is a whole number, such as a label.
    pub fn integer(&self, name: &str) -> Result<i64> {
        self.field(name, "to be a whole number", Value::as_i64)
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
    let path = path.as_ref();
    let failed = |what: String| Error::Usage { message: format!("cannot read {}: {what}", path.display()) };
    let text = super::csv::text(path).map_err(failed)?;
    let mut all = Vec::new();
    for (i, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        match crate::json::parse(line) {
            Ok(Value::Object(fields)) => all.push(Record { line: i + 1, fields }),
            Ok(other) => return Err(failed(format!("line {} is no object: {other}", i + 1))),
            Err(e) => return Err(failed(format!("line {}: {e}", i + 1))),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::read_jsonl;

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
