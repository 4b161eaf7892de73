//! Where a cell's lines are in the file that was compiled: told before it runs.
use crate::{Error, Result};
use xlazy_core::text::{self, Facts};
use xlazy_mime::Bundle;

/// `FILE CELL [LINE:CELL:LINE …] [LINE:COLUMN+N …] [FACT …]`: locations in this source file belong to that cell, and from those
/// lines on to others; from those columns on they are so much further right than there; what is to be known of its code is as
/// [`Facts::read`] takes it. The cell's text follows on the next line.
pub(crate) fn register_cell(args: &str) -> Result<Bundle> {
    let (head, text) = args.split_once('\n').unwrap_or((args, ""));
    let mut words = head.split_whitespace();
    let file = words.next();
    let cell = words.next().and_then(|c| c.parse().ok());
    let numbers = |w: &str| w.split(':').map(|n| n.parse::<u64>().ok()).collect::<Option<Vec<u64>>>();
    let (mut elsewhere, mut shifts, mut facts) = (Vec::new(), Vec::new(), Vec::new());
    let mut read = |w| {
        let w: &str = w;
        if w.contains(';') {
            facts.push(w);
            return Some(());
        }
        let parts = w.split(['-', '+']).map(numbers).collect::<Option<Vec<_>>>()?;
        match parts.iter().map(Vec::as_slice).collect::<Vec<_>>()[..] {
            [&[here, of, there]] => elsewhere.push((here as u32, of, there as u32)),
            [&[line, column], &[by]] if w.contains('+') => shifts.push((line as u32, column as u32, by as u32)),
            _ => return None,
        }
        Some(())
    };
    let understood = words.all(|w| read(w).is_some());
    match (file, cell, Facts::read(facts)) {
        (Some(file), Some(cell), Some(facts)) if understood => {
            text::register_lines(file, cell, &elsewhere);
            text::register_shifts(file, shifts);
            text::register_facts(file, facts);
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
        assert!(!text::decides(here) && text::known(here));
        let place = format!("{line}:{column}-{line}:{}", column + 1);
        register_cell(&format!("{} 3 B;{place};six D;{place},9:1-9:9;cr;six {line}:3:5", here.file())).unwrap();
        assert_eq!(text::binding(here).as_deref(), Some("six"));
        assert!(text::decides(here));
        assert!(register_cell("file").is_err());
        assert!(register_cell("file 1 2:3-4").is_err());
        assert!(register_cell("file 1 X;1:1-1:2;x").is_err());
    }
}
