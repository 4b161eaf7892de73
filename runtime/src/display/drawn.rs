//! Tables that are drawn with lines of text, as data frames write themselves: shown as tables where there is HTML. Whose they
//! are does not matter.
use xlazy_mime::{Bundle, Cell, Table, escape_html};

/// A text that is such a table, with what stands above and below it.
pub(super) fn bundle(text: &str) -> Option<Bundle> {
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().position(|l| is_border(l))?;
    let last = lines.iter().rposition(|l| is_border(l)).filter(|last| *last > first + 1)?;
    let (mut blocks, mut block) = (Vec::new(), Vec::new());
    for line in &lines[first + 1..=last] {
        if is_border(line) {
            blocks.push(std::mem::take(&mut block));
        } else {
            block.push(cells(line)?);
        }
    }
    let width = blocks.first()?.first()?.len();
    if blocks.iter().flatten().any(|row: &Vec<&str>| row.len() != width) {
        return None;
    }
    let mut table = Table::new(
        "border-collapse:collapse;margin:0;font-family:ui-monospace,monospace;font-size:.92em;color:inherit;background:none",
    );
    let cell = |text: &str| {
        let cell = Cell::text(text).style("padding:2px 8px;white-space:pre;border:1px solid rgba(128,128,128,.25)");
        if text.parse::<f64>().is_ok() { cell.right() } else { cell.left() }
    };
    // The lines of the head are of one row: names, and what is said of them.
    if blocks.len() > 1 {
        let heads = (0..width).map(|c| {
            let lines = blocks[0].iter().map(|row| row[c]).filter(|t| !t.trim_matches(['-', '—', '─']).is_empty());
            let mut lines = lines.map(escape_html);
            let name = lines.next().unwrap_or_default();
            let more: String =
                lines.map(|l| format!("<br><span style=\"opacity:.6;font-size:.85em\">{l}</span>")).collect();
            Cell::html(name + &more).style("padding:2px 8px;text-align:left;border:1px solid rgba(128,128,128,.25)")
        });
        table.head(heads);
    }
    for row in blocks.iter().skip(usize::from(blocks.len() > 1)).flatten() {
        table.row(row.iter().map(|text| cell(text)));
    }
    let aside = |lines: &[&str]| match lines.join("\n") {
        text if text.trim().is_empty() => String::new(),
        text => format!("<div style=\"opacity:.65;font-size:.85em;white-space:pre\">{}</div>", escape_html(&text)),
    };
    let html = format!(
        "<div style=\"line-height:1.35\">{}<div style=\"overflow:auto;max-height:420px\">{}</div>{}</div>",
        aside(&lines[..first]),
        table.html(),
        aside(&lines[last + 1..])
    );
    Some(Bundle::html(html, text))
}

/// A line of nothing but what tables are drawn with.
fn is_border(line: &str) -> bool {
    let line = line.trim();
    let drawn = |c: char| ('\u{2500}'..='\u{257f}').contains(&c) || matches!(c, '+' | '-' | '=' | '|');
    line.chars().count() > 2 && line.chars().all(drawn) && line.contains(['-', '─', '═', '=', '━'])
}

/// What stands between the upright lines of a row.
fn cells(line: &str) -> Option<Vec<&str>> {
    const UPRIGHT: [char; 7] = ['|', '│', '┆', '┊', '║', '┃', '┇'];
    let line = line.trim().strip_prefix(UPRIGHT)?.strip_suffix(UPRIGHT)?;
    Some(line.split(UPRIGHT).map(str::trim).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_tables_become_tables() {
        let frame = "shape: (2, 2)\n┌─────┬──────┐\n│ a   ┆ b    │\n│ --- ┆ ---  │\n│ i64 ┆ str  │\n╞═════╪══════╡\n\
                     │ 1   ┆ <x>  │\n│ 2   ┆ null │\n└─────┴──────┘";
        let shown = bundle(frame).unwrap();
        let html = shown.get("text/html").unwrap();
        assert_eq!(html.matches("<tr>").count(), 3, "{html}");
        assert!(html.contains("shape: (2, 2)") && html.contains("&lt;x&gt;") && html.contains(">i64<"), "{html}");
        assert_eq!(shown.plain(), frame);
        let ascii = "+---+-----+\n| a | b   |\n+---+-----+\n| 1 | 2.5 |\n+---+-----+";
        assert!(bundle(ascii).unwrap().get("text/html").unwrap().contains("text-align:right\">2.5<"));
        for no_table in ["a | b", "-----\nx\n-----", "+--+\n| a |\n| b | c |\n+--+", "--- a ---"] {
            assert_eq!(bundle(no_table), None, "{no_table}");
        }
    }
}
