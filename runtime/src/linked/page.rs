//! The four forms as columns beside each other: without scripts each line has its colour in all of them; with scripts pointing at a
//! row lights up what belongs to it.
use super::link::{KernelOf, Linked, Optimised, Row};
use super::still::{bars, still};
use super::words::{self, colour, hue};
use crate::display::picture::{drawing, fresh_id, script, script_safe};
use crate::json::{Value, json};
use std::fmt::Write;
use xlazy_mime::{Bundle, count, escape_html};

/// What a page can hold of a column.
const MOST_ROWS: usize = 1000;

const SCRIPT: &str = include_str!("linked.js");

/// What stands in a column: its rows, and of which ops each is.
struct Column {
    title: String,
    rows: Vec<Shown>,
    more: usize,
}

struct Shown {
    html: String,
    ops: Vec<u32>,
    colour: Option<usize>,
}

pub(super) fn bundle(l: &Linked) -> Bundle {
    Bundle::html(html(l), words::text(l)).with("image/svg+xml", still(l)).passing()
}

fn html(l: &Linked) -> String {
    let id = fresh_id("trace");
    let mut columns = vec![sources(l), recorded(l), program(l)];
    columns.extend(l.optimised.iter().filter(|o| !o.rows.is_empty()).map(|o| optimised(l, o)));
    let mut out = format!(
        "<div id=\"{id}\" style=\"line-height:1.35\"><style>{}</style>\
         <div style=\"opacity:.75;font-size:.9em\">{}</div>",
        STYLE.replace("ID", &id),
        escape_html(&words::headline(l))
    );
    for (n, o) in l.optimised.iter().filter(|o| !o.rows.is_empty()).enumerate() {
        let _ = write!(out, "<div style=\"font-size:.9em;margin-top:6px\">{}</div>", escape_html(&words::gain(o)));
        let _ = write!(
            out,
            "<div style=\"overflow-x:auto\">{}</div>",
            drawing(&bars(l, o, Some((2, 3 + n))), &words::gain(o))
        );
    }
    let _ = write!(out, "<div class=\"cols\" style=\"display:flex;gap:6px;overflow-x:auto;align-items:flex-start\">");
    for (c, column) in columns.iter().enumerate() {
        let _ = write!(
            out,
            "<div style=\"flex:1 1 0;min-width:230px\"><b style=\"font-size:.85em\">{}</b>\
             <div class=\"c\" tabindex=\"0\" role=\"listbox\" aria-label=\"{}\" style=\"overflow:auto;max-height:520px;\
             white-space:pre;font:12px/1.5 ui-monospace,SFMono-Regular,Menlo,monospace;border:1px solid rgba(128,128,128,.3)\">",
            escape_html(&column.title),
            escape_html(&column.title)
        );
        for (r, row) in column.rows.iter().enumerate() {
            let colour = row.colour.map_or(String::new(), |line| {
                let hue = hue(line);
                format!(" style=\"border-left:4px solid hsl({hue},65%,55%);background:hsla({hue},65%,55%,.13)\"")
            });
            let _ = write!(out, "<div class=\"r\" id=\"{id}-{c}-{r}\"{colour}>{}</div>", row.html);
        }
        if column.more > 0 {
            let _ = write!(out, "<div>… and {}</div>", count(column.more, "more row"));
        }
        out += "</div></div>";
    }
    let told = "point at a row to see what belongs to it in the other columns; click to keep it, arrows to go on. One colour, one line; in the bars an operation has the colour of its kernel, and the width of the bytes it moves";
    let _ = write!(
        out,
        "</div><div class=\"how\" style=\"font-size:.8em;opacity:.8;padding-top:4px\" data-told=\"{told}\">one colour, one \
         line; the number before a row is its line. In the bars an operation has the colour of its kernel</div></div><script>{}(\"{id}\",{});</script>",
        script(SCRIPT),
        script_safe(&data(&columns).to_string())
    );
    out
}

const STYLE: &str = "#ID .r{padding:0 4px;border-left:4px solid transparent;min-width:max-content}\
#ID .n{opacity:.5;display:inline-block;min-width:3.2em;text-align:right;margin-right:.3em;user-select:none}\
#ID .s{opacity:.7}#ID .k{font-weight:600}#ID .g{opacity:.5}\
#ID .on{outline:1px solid currentColor;outline-offset:-1px;background:rgba(255,190,60,.38)!important}\
#ID .at{outline-width:2px;outline-offset:-2px}#ID.alive .r{cursor:pointer}";

/// The ops of each row; the same list is there once.
fn data(columns: &[Column]) -> Value {
    columns.iter().map(|c| c.rows.iter().map(|r| json!(r.ops)).collect::<Value>()).collect()
}

fn column(title: String, rows: Vec<Shown>) -> Column {
    let all = rows.len();
    let rows: Vec<Shown> = rows.into_iter().take(MOST_ROWS).collect();
    Column { title, more: all - rows.len(), rows }
}

fn sources(l: &Linked) -> Column {
    let mut rows = Vec::new();
    let mut before: Option<(Option<u64>, &str, u32)> = None;
    for (n, s) in l.lines.iter().enumerate() {
        if before.is_none_or(|(cell, file, _)| (cell, file) != (s.cell, s.file)) {
            let name = s.cell.map_or(s.file.rsplit('/').next().unwrap_or_default().to_owned(), |c| format!("cell {c}"));
            rows.push(Shown { html: format!("<b class=\"s\">{}</b>", escape_html(&name)), ops: vec![], colour: None });
        } else if before.is_some_and(|(_, _, line)| line + 1 < s.line) {
            rows.push(Shown { html: "<span class=\"n\">⋮</span>".into(), ops: vec![], colour: None });
        }
        before = Some((s.cell, s.file, s.line));
        let text = format!("<span class=\"n\">{}</span> {}", s.line, escape_html(&s.text));
        rows.push(Shown { html: text, ops: s.ops.clone(), colour: (!s.ops.is_empty()).then_some(n) });
    }
    column("lines".into(), rows)
}

/// The line that a row is of, as it stands before it.
fn number(l: &Linked, colour: Option<usize>) -> String {
    let told = colour.map_or(String::new(), |n| words::lines_of(l, &[n]));
    format!("<span class=\"n\">{}</span> ", escape_html(&told))
}

fn recorded(l: &Linked) -> Column {
    let row = |(n, o): (usize, &super::link::Op)| {
        let ops = vec![n as u32];
        let colour = colour(l, &ops);
        let gone =
            o.gone.as_ref().map_or(String::new(), |why| format!("  <span class=\"s\"># {}</span>", escape_html(why)));
        let kind = match o.kind.name() {
            kind @ ("gradient" | "update") => format!("  <span class=\"s\"># {kind}</span>"),
            _ => String::new(),
        };
        Shown { html: format!("{}{}{kind}{gone}", number(l, colour), escape_html(&o.text)), ops, colour }
    };
    column("recorded ops".into(), l.ops.iter().enumerate().map(row).collect())
}

fn plain(l: &Linked, r: &Row) -> Shown {
    let colour = colour(l, &r.ops);
    let indent = "  ".repeat(r.depth as usize);
    let class = if r.ops.is_empty() { " class=\"g\"" } else { "" };
    let html = format!("{}<span{class}>{indent}{}</span>", number(l, colour), escape_html(&r.text));
    Shown { html, ops: r.ops.clone(), colour }
}

fn program(l: &Linked) -> Column {
    column("StableHLO".into(), l.stablehlo.iter().map(|r| plain(l, r)).collect())
}

fn optimised(l: &Linked, o: &Optimised) -> Column {
    let mut kernels = o.kernels.iter().peekable();
    let mut rows = Vec::new();
    for (n, r) in o.rows.iter().enumerate() {
        match kernels.next_if(|k| k.row == n) {
            None => rows.push(plain(l, r)),
            Some(k) => rows.push(kernel(l, k, r)),
        }
    }
    column(format!("optimised HLO, {}", o.target), rows)
}

fn kernel(l: &Linked, k: &KernelOf, r: &Row) -> Shown {
    let colour = colour(l, &r.ops);
    let indent = "  ".repeat(r.depth as usize);
    // Each line that it holds, in its colour.
    let swatch = |&n: &usize| {
        let hue = hue(n);
        format!(
            "<span style=\"background:hsl({hue},65%,55%)\" title=\"{}\">&#8194;</span>",
            escape_html(&l.lines[n].at())
        )
    };
    let swatches: String = k.lines.iter().take(12).map(swatch).collect();
    let held = words::held(l, k);
    let html = format!(
        "{}{indent}<span class=\"k\">{}</span> {swatches} <span class=\"s\">{}; {}</span>\n{}{indent}{}",
        number(l, colour),
        escape_html(&k.kernel.name),
        escape_html(&held),
        escape_html(&words::costs(k)),
        number(l, None),
        escape_html(&r.text)
    );
    Shown { html, ops: r.ops.clone(), colour }
}
