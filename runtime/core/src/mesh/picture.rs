//! A sharding as a picture: the parts of a value as a grid, in each the devices that hold it.
use super::Sharding;
use std::fmt::Write;
use xlazy_mime::{Bundle, Cell, Rich, Table};

/// Parts along one dimension that are drawn at most.
const DRAWN: usize = 32;

/// One grid: rows and columns of parts, each with its devices by position.
struct Grid {
    /// Of the dimensions that are neither rows nor columns, which part.
    of: String,
    cells: Vec<Vec<Vec<usize>>>,
}

impl Sharding {
    /// The grids of the parts: rows are those of the first dimension that is split, columns those of the second; where one
    /// alone is split, and not the first, its parts are the columns, as in a matrix.
    fn grids(&self) -> Vec<Grid> {
        let split: Vec<usize> = (0..self.rank()).filter(|&d| self.parts(d) > 1).collect();
        let across = |k: usize| split.get(k).map_or(1, |&d| self.parts(d));
        let in_row = self.rank() == 1 || split.len() == 1 && split[0] > 0;
        let (rows, columns) = if in_row { (None, split.first()) } else { (split.first(), split.get(1)) };
        let others: Vec<usize> = split.iter().copied().filter(|d| Some(d) != rows && Some(d) != columns).collect();
        let place = |d: Option<&usize>, position: usize| d.map_or(0, |&d| self.part(position, d));
        let (high, wide) = if in_row { (1, across(0)) } else { (across(0), across(1)) };
        let mut grids: Vec<(Vec<usize>, Grid)> = Vec::new();
        for position in 0..self.mesh().size() {
            let key: Vec<usize> = others.iter().map(|&d| self.part(position, d)).collect();
            let at = match grids.iter().position(|(k, _)| *k == key) {
                Some(at) => at,
                None => {
                    let says = |(&d, part): (&usize, &usize)| format!("part {part} of dimension {d}");
                    let of = others.iter().zip(&key).map(says).collect::<Vec<_>>().join(", ");
                    grids.push((key, Grid { of, cells: vec![vec![vec![]; wide]; high] }));
                    grids.len() - 1
                }
            };
            grids[at].1.cells[place(rows, position)][place(columns, position)].push(position);
        }
        grids.sort_by(|a, b| a.0.cmp(&b.0));
        grids.into_iter().map(|(_, grid)| grid).collect()
    }

    fn head(&self) -> String {
        let parts: usize = (0..self.rank()).map(|d| self.parts(d)).product();
        let copies = self.mesh().size() / parts;
        let each = match (parts, copies) {
            (1, _) => "every device holds the whole".to_owned(),
            (n, 1) => format!("{n} parts, one on each device"),
            (n, copies) => format!("{n} parts, each on {copies} devices"),
        };
        format!("{self} of {}: {each}", self.mesh())
    }
}

fn devices(of: &[usize]) -> String {
    const NAMED: usize = 8;
    let named: Vec<String> = of.iter().take(NAMED).map(usize::to_string).collect();
    let more = if of.len() > NAMED { format!(" … {}", of[of.len() - 1]) } else { String::new() };
    named.join(" ") + &more
}

fn drawn(grid: &Grid) -> String {
    let rows: Vec<Vec<String>> =
        grid.cells.iter().take(DRAWN).map(|row| row.iter().take(DRAWN).map(|c| devices(c)).collect()).collect();
    let wide = rows.iter().flatten().map(String::len).max().unwrap_or(0);
    let columns = rows.first().map_or(0, Vec::len);
    let rule = |left: &str, cross: &str, right: &str| {
        format!("{left}{}{right}\n", vec!["─".repeat(wide + 2); columns].join(cross))
    };
    let mut out = rule("┌", "┬", "┐");
    for (i, row) in rows.iter().enumerate() {
        if i > 0 {
            out += &rule("├", "┼", "┤");
        }
        let cells: Vec<String> = row.iter().map(|c| format!(" {c:^wide$} ")).collect();
        let _ = writeln!(out, "│{}│", cells.join("│"));
    }
    out + &rule("└", "┴", "┘")
}

/// The parts as a grid; numbers are devices by their place in the mesh, and a colour is a part.
impl Rich for Sharding {
    fn rich(&self) -> Bundle {
        let (mut text, mut html) = (self.head() + "\n", String::new());
        let mut part = 0;
        for grid in self.grids().iter().take(DRAWN) {
            if !grid.of.is_empty() {
                let _ = writeln!(text, "{}", grid.of);
            }
            text += &drawn(grid);
            let mut table =
                Table::new("border-collapse:collapse;margin:4px 16px 4px 0;font-family:ui-monospace,monospace");
            for row in grid.cells.iter().take(DRAWN) {
                let cell = |c: &Vec<usize>| {
                    part += 1;
                    // The golden angle: neighbours differ.
                    let hue = (part * 137) % 360;
                    let css = format!(
                        "background:hsl({hue},55%,80%);color:#111;border:1px solid #fff;min-width:3em;padding:.7em 1em;text-align:center"
                    );
                    Cell::text(&devices(c)).style(&css)
                };
                table.row(row.iter().take(DRAWN).map(cell));
            }
            let of = if grid.of.is_empty() { String::new() } else { format!("<div>{}</div>", grid.of) };
            let _ = write!(html, "<div>{of}{}</div>", table.html());
        }
        let head = xlazy_mime::escape_html(&self.head());
        Bundle::html(format!("<div>{head}</div><div style=\"display:flex;flex-wrap:wrap\">{html}</div>"), text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mesh;
    use super::*;

    #[test]
    fn a_picture_says_which_device_holds_what() {
        let mesh = Mesh::of(&[("data", 4), ("model", 2)], 8).unwrap();
        let shown = |spec: &str| Sharding::parse(mesh, spec).unwrap().rich().plain().to_owned();
        assert_eq!(
            shown("(None, model)"),
            "(None, model) of mesh(data=4, model=2): 2 parts, each on 4 devices\n\
             ┌─────────┬─────────┐\n│ 0 2 4 6 │ 1 3 5 7 │\n└─────────┴─────────┘\n"
        );
        assert_eq!(
            shown("(model)"),
            "(model) of mesh(data=4, model=2): 2 parts, each on 4 devices\n\
             ┌─────────┬─────────┐\n│ 0 2 4 6 │ 1 3 5 7 │\n└─────────┴─────────┘\n"
        );
        assert!(shown("(data, model)").contains("│ 6 │ 7 │"), "{}", shown("(data, model)"));
        assert!(shown("(None)").contains("every device holds the whole") && shown("()").contains("0 1 2"));
        let three = shown("(data:(1)2, data:(2)2, model)");
        assert!(three.contains("part 1 of dimension 2") && three.contains("│ 5 │ 7 │"), "{three}");
    }
}
