//! Tables of numbers from text files.
use crate::{Error, Result};
use std::io::Read;
use std::path::Path;

/// A file of numbers separated by commas, `.gz` or plain, as one row-major vector with its rows and columns. A first line
/// that is no numbers is taken for a heading; empty lines are skipped. [`read_table`](super::read_table) reads texts, too.
///
/// ```
/// use xlazy::prelude::*;
/// let path = std::env::temp_dir().join(format!("xlazy-{}.csv", std::process::id()));
/// std::fs::write(&path, "a,b\n1,2\n3,4.5\n").unwrap();
/// let (values, rows, columns) = data::read_csv(&path).unwrap();
/// assert_eq!((values, rows, columns), (vec![1.0, 2.0, 3.0, 4.5], 2, 2));
/// # std::fs::remove_file(&path).unwrap();
/// ```
pub fn read_csv(path: impl AsRef<Path>) -> Result<(Vec<f32>, usize, usize)> {
    read(path.as_ref(), parse)
}

/// What a file says, `.gz` or plain, as that is understood; errors name the file.
pub(super) fn read<T>(path: &Path, parse: impl FnOnce(&str) -> std::result::Result<T, String>) -> Result<T> {
    let failed = |what: String| Error::Usage { message: format!("cannot read {}: {what}", path.display()) };
    text(path).and_then(|text| parse(&text)).map_err(failed)
}

fn text(path: &Path) -> std::result::Result<String, String> {
    let file = xlazy_mime::regular::open(path).map_err(|e| e.to_string())?;
    let mut text = String::new();
    match path.extension().is_some_and(|e| e == "gz") {
        true => flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text),
        false => std::io::BufReader::new(file).read_to_string(&mut text),
    }
    .map_err(|e| e.to_string())?;
    Ok(text)
}

/// The fields of each line that has some, with the line's number: without the blanks around them, and as they are in double quotes.
pub(super) fn rows(text: &str) -> Vec<(usize, Vec<String>)> {
    let (mut out, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let (mut line, mut begins, mut quoted, mut was_quoted) = (1, 1, false, false);
    let mut all = text.chars().peekable();
    loop {
        let c = all.next();
        match c {
            Some('"') if quoted && all.peek() == Some(&'"') => field.extend(all.next()),
            Some('"') if quoted => quoted = false,
            Some('"') if field.trim().is_empty() => {
                field.clear();
                (quoted, was_quoted) = (true, true);
            }
            Some(',' | '\n') | None if !quoted || c.is_none() => {
                let taken = std::mem::take(&mut field);
                row.push(if was_quoted { taken } else { taken.trim().to_owned() });
                was_quoted = false;
                if c != Some(',') {
                    let row = std::mem::take(&mut row);
                    if row.len() > 1 || !row[0].is_empty() {
                        out.push((begins, row));
                    }
                    begins = line + 1;
                }
            }
            // Behind the quotes of a field nothing counts.
            Some(c) if quoted || !was_quoted => field.push(c),
            _ => {}
        }
        line += usize::from(c == Some('\n'));
        if c.is_none() {
            return out;
        }
    }
}

fn parse(text: &str) -> std::result::Result<(Vec<f32>, usize, usize), String> {
    let (mut values, mut rows, mut columns) = (Vec::new(), 0, 0);
    for (i, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let before = values.len();
        let mut wrong = None;
        for field in line.split(',') {
            match field.trim().trim_matches('"').parse::<f32>() {
                Ok(v) => values.push(v),
                Err(_) => wrong = wrong.or(Some(field)),
            }
        }
        match wrong {
            Some(_) if rows == 0 && before == values.len() => continue,
            Some(field) => {
                let what = format!("line {}: `{}` is not a number", i + 1, field.trim());
                return Err(what + ": `data::read_table` reads columns of texts, too");
            }
            None => {}
        }
        let n = values.len() - before;
        if rows > 0 && n != columns {
            return Err(format!("line {} has {n} fields, the lines before it {columns}", i + 1));
        }
        (rows, columns) = (rows + 1, n);
    }
    Ok((values, rows, columns))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn rows_of_one_length_with_or_without_a_heading() {
        assert_eq!(parse("1,2\n3,4\n"), Ok((vec![1.0, 2.0, 3.0, 4.0], 2, 2)));
        assert_eq!(parse("x, y\r\n1,-2e3\r\n\r\n"), Ok((vec![1.0, -2000.0], 1, 2)));
        assert_eq!(parse(""), Ok((vec![], 0, 0)));
        assert_eq!(parse("1,2\n3\n"), Err("line 2 has 1 fields, the lines before it 2".into()));
        assert_eq!(
            parse("1,2\n3,x\n"),
            Err("line 2: `x` is not a number: `data::read_table` reads columns of texts, too".into())
        );
        assert_eq!(
            parse("1,x\n"),
            Err("line 1: `x` is not a number: `data::read_table` reads columns of texts, too".into())
        );
    }
}
