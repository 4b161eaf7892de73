//! Where a cell's lines are in the file that was compiled: told before it runs.
use crate::{Error, Result};
use xlazy_core::text::{self, Condition};
use xlazy_mime::Bundle;

/// `FILE CELL [LINE:CELL:LINE …] [LINE:COLUMN+N …] [LINE:COLUMN-LINE:COLUMN-LINE:COLUMN-LINE:COLUMN …]`: locations in this
/// source file belong to that cell, and from those lines on to others; from those columns on they are so much further right
/// than there; between the first two places stands what its code decides by, between the others what it decides. The cell's
/// text follows on the next line.
pub(crate) fn register_cell(args: &str) -> Result<Bundle> {
    let (head, text) = args.split_once('\n').unwrap_or((args, ""));
    let mut words = head.split_whitespace();
    let file = words.next();
    let cell = words.next().and_then(|c| c.parse().ok());
    let numbers = |w: &str| w.split(':').map(|n| n.parse::<u64>().ok()).collect::<Option<Vec<u64>>>();
    let (mut elsewhere, mut shifts, mut conditions) = (Vec::new(), Vec::new(), Vec::new());
    let mut read = |w: &str| {
        let parts = w.split(['-', '+']).map(numbers).collect::<Option<Vec<_>>>()?;
        match parts.iter().map(Vec::as_slice).collect::<Vec<_>>()[..] {
            [&[here, of, there]] => elsewhere.push((here as u32, of, there as u32)),
            [&[line, column], &[by]] if w.contains('+') => shifts.push((line as u32, column as u32, by as u32)),
            [&[a, b], &[c, d], &[e, f], &[g, h]] => {
                let point = |line: u64, column: u64| (line as u32, column as u32);
                conditions.push(Condition { at: point(a, b)..point(c, d), guards: point(e, f)..point(g, h) });
            }
            _ => return None,
        }
        Some(())
    };
    let understood = words.all(|w| read(w).is_some());
    match (file, cell) {
        (Some(file), Some(cell)) if understood => {
            text::register_lines(file, cell, &elsewhere);
            text::register_shifts(file, shifts);
            text::register_conditions(file, conditions);
            text::keep(cell, text);
        }
        _ => return Err(Error::Usage { message: format!("expected a file, a cell's number and lines, not `{args}`") }),
    }
    Ok(Bundle::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_told_in_the_cells_terms() {
        let here = std::panic::Location::caller();
        assert!(text::location(here).starts_with("places.rs:"));
        register_cell(&format!("{} 7", here.file())).unwrap();
        assert_eq!(text::location(here), format!("cell 7, line {}", here.line()));
        register_cell(&format!("{} 7 {}:3:5", here.file(), here.line() - 1)).unwrap();
        assert_eq!(text::location(here), "cell 3, line 6");
        assert_eq!(text::quote(here), None);
        register_cell(&format!("{} 3 {}:3:5\n1\n2\n3\n4\n5\n  six", here.file(), here.line() - 1)).unwrap();
        assert_eq!(text::quote(here).as_deref(), Some("six"));
        let (line, column) = (here.line(), here.column());
        assert!(!text::decides(here));
        let by = column - 11;
        register_cell(&format!("{} 3 {line}:1+{by} {line}:3:5\n1\n2\n3\n4\nlet six = here();", here.file())).unwrap();
        assert_eq!(text::binding(here).as_deref(), Some("six"));
        register_cell(&format!("{} 7 {line}:{column}-{line}:{}-9:1-9:9", here.file(), column + 1)).unwrap();
        assert!(text::decides(here));
        assert!(register_cell("file").is_err());
        assert!(register_cell("file 1 2:3-4").is_err());
    }
}
