//! The metrics report as a table.
use xlazy_mime::{Bundle, Cell, Table};

/// `report` as it is (torch_xla's format) with an HTML table of it.
pub(crate) fn bundle(report: &str) -> Bundle {
    if report.trim().is_empty() {
        return Bundle::text("Nothing has been measured yet: no tensor was made, compiled or moved.").passing();
    }
    let table = |names: &[&str], rows: Vec<Vec<&str>>| {
        if rows.is_empty() {
            return String::new();
        }
        let styled = |(i, text): (usize, &&str)| Cell::text(text).style(if i == 0 { NAME } else { CELL });
        let mut table = Table::new(TABLE);
        table.head(names.iter().enumerate().map(styled).map(|c| c.style("opacity:.6")));
        rows.iter().for_each(|row| table.row(row.iter().enumerate().map(styled)));
        table.html()
    };
    let (mut metrics, mut counters) = (Vec::new(), Vec::new());
    for (kind, name, fields) in entries(report) {
        let get = |key: &str| fields.iter().find(|f| f.0 == key).map_or("", |f| f.1);
        if kind == "Metric" {
            let at = |p: &str| get("Percentiles").split("; ").find_map(|q| q.strip_prefix(p)).unwrap_or("");
            metrics.push(vec![name, get("TotalSamples"), get("Accumulator"), at("50%="), at("99%="), get("Rate")]);
        } else {
            counters.push(vec![name, get("Value")]);
        }
    }
    let html = format!(
        "<div style=\"display:flex;flex-wrap:wrap;align-items:flex-start\">{}{}</div>",
        table(&["Metric", "Samples", "Total", "Median", "99 %", "Rate"], metrics),
        table(&["Counter", "Value"], counters)
    );
    Bundle::html(html, report.trim_end()).passing()
}

const TABLE: &str = "border-collapse:collapse;color:inherit;background:none;margin:0 24px 6px 0;font-size:.92em";
const NAME: &str = "padding:2px 12px 2px 4px;text-align:left;border-bottom:1px solid rgba(128,128,128,.25)";
const CELL: &str = "padding:2px 10px;text-align:right;font-family:ui-monospace,monospace;\
                    border-bottom:1px solid rgba(128,128,128,.25)";

type Entry<'a> = (&'a str, &'a str, Vec<(&'a str, &'a str)>);

/// `Metric: name` and `Counter: name`, each with the indented `key: value` lines below it.
fn entries(report: &str) -> Vec<Entry<'_>> {
    let mut out: Vec<Entry> = Vec::new();
    for line in report.lines() {
        let Some((key, value)) = line.trim().split_once(": ") else { continue };
        match (line.starts_with(' '), out.last_mut()) {
            (true, Some(entry)) => entry.2.push((key, value)),
            _ => out.push((key, value, Vec::new())),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_the_report_says_is_in_the_table() {
        let report = "Metric: CompileTime\n  TotalSamples: 3\n  Accumulator: 01ms\n  ValueRate: 5us / second\n  \
                      Rate: 2.5 / second\n  Percentiles: 1%=1us; 50%=2us; 99%=9us\nCounter: MarkStep\n  Value: 7\n";
        let b = super::bundle(report);
        let cells: Vec<&str> = b.get("text/html").unwrap().split("<td").skip(1).collect();
        let texts: Vec<&str> = cells.iter().map(|c| c.split_once('>').unwrap().1.split('<').next().unwrap()).collect();
        assert_eq!(texts, ["CompileTime", "3", "01ms", "2us", "9us", "2.5 / second", "MarkStep", "7"]);
        assert_eq!(b.plain(), report.trim_end());
    }
}
