//! Plain text in columns, for front ends without HTML and for terminals.

/// What is wider than this sticks out, so that one long entry pushes nothing far to the right.
const WIDEST: usize = 48;

/// One line a row, columns two spaces apart and as wide as their widest entry; those in `right` end below one another.
///
/// ```
/// let rows = [["weight", "[2,3]", "6"], ["b", "[10]", "10"]];
/// assert_eq!(xlazy_mime::columns(&rows, &[2]), "weight  [2,3]   6\nb       [10]   10");
/// ```
pub fn columns<R: AsRef<[S]>, S: AsRef<str>>(rows: &[R], right: &[usize]) -> String {
    let wide = |text: &S| text.as_ref().chars().count();
    let count = rows.iter().map(|row| row.as_ref().len()).max().unwrap_or(0);
    let widest = |i: usize| rows.iter().filter_map(|row| row.as_ref().get(i)).map(wide).max().unwrap_or(0).min(WIDEST);
    let widths: Vec<usize> = (0..count).map(widest).collect();
    let line = |row: &R| {
        let cells = row.as_ref().iter().zip(widths.iter().copied()).enumerate().map(|(i, (text, width))| {
            match right.contains(&i) {
                true => format!("{:>width$}", text.as_ref()),
                false => format!("{:width$}", text.as_ref()),
            }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
