//! Drawings that need no script: what there was before and after fusing, and the four columns as an image.
use super::link::{Linked, Optimised};
use super::words::{self, colour, hue};
use crate::display::picture::{INK, card};
use std::fmt::Write;
use xlazy_mime::{escape_html, units};

const WIDTH: f64 = 900.0;
const BAR: f64 = 26.0;
/// Narrower parts of a bar stand together.
const THIN: f64 = 1.0;

/// Operations before and kernels after, as wide as the bytes that each moves; an operation has the colour of the kernel that it
/// became a part of. `columns` says where the two programs' rows are.
pub(super) fn bars(l: &Linked, o: &Optimised, columns: Option<(usize, usize)>) -> String {
    let height = 2.0 * BAR + 44.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" fill=\"{INK}\" \
         font-family=\"ui-monospace,SFMono-Regular,Menlo,monospace\" font-size=\"11\" style=\"max-width:100%\">{}",
        card(WIDTH, height)
    );
    out += &bars_inside(l, o, columns, 0.0);
    out + "</svg>"
}

fn bars_inside(l: &Linked, o: &Optimised, columns: Option<(usize, usize)>, top: f64) -> String {
    let mut out = String::new();
    let most = o.bytes().max(o.bytes_before()).max(1) as f64;
    let before = o.before.iter().map(|a| {
        let held = a.kernel.map_or("no kernel".to_owned(), |k| o.kernels[k].kernel.name.clone());
        (
            a.bytes,
            a.kernel,
            a.name.clone(),
            format!("{}: {} alone; in {held}", a.name, units::bytes(a.bytes)),
            columns.map(|c| (c.0, a.row)),
        )
    });
    let after = o.kernels.iter().enumerate().map(|(n, k)| {
        let told = format!("{}: {}; {}", k.kernel.name, words::costs(k), words::held(l, k));
        (k.kernel.bytes, Some(n), k.kernel.name.clone(), told, columns.map(|c| (c.1, k.row)))
    });
    let rows: [(&str, u64, Vec<_>); 2] =
        [("operations one by one", o.bytes_before(), before.collect()), ("kernels", o.bytes(), after.collect())];
    for (n, (name, bytes, parts)) in rows.into_iter().enumerate() {
        let y = top + n as f64 * (BAR + 22.0) + 16.0;
        let told = format!("{} {name}, {} through memory", parts.len(), units::bytes(bytes));
        let _ = write!(out, "<text x=\"2\" y=\"{:.0}\">{}</text>", y - 4.0, escape_html(&told));
        let (mut x, mut thin) = (0.0, (0usize, 0u64));
        let last = parts.len().saturating_sub(1);
        for (n, (bytes, kernel, name, told, row)) in parts.into_iter().enumerate() {
            // What is too thin to be seen is drawn together.
            let all = thin.1.saturating_add(bytes);
            if (all as f64 / most * (WIDTH - 2.0)) < THIN && n < last {
                thin = (thin.0 + 1, all);
                continue;
            }
            let (several, bytes) = (std::mem::take(&mut thin).0, all);
            let (name, told, row) = match several {
                0 => (name, told, row),
                n => (String::new(), format!("{} of {}", n + 1, units::bytes(bytes)), None),
            };
            let width = bytes as f64 / most * (WIDTH - 2.0);
            let (from, wide) = (x, width.max(0.4));
            x += width;
            let fill = kernel.map_or("#888".to_owned(), |k| format!("hsl({},55%,55%)", hue(k)));
            let place = row.map_or(String::new(), |(c, r)| format!(" data-ops=\"{c}-{r}\""));
            let _ = write!(
                out,
                "<g{place}><title>{}</title><rect x=\"{:.1}\" y=\"{y:.0}\" width=\"{wide:.1}\" height=\"{BAR}\" fill=\"{fill}\" \
                 fill-opacity=\".55\" stroke=\"{INK}\" stroke-opacity=\".5\" stroke-width=\".6\"/>",
                escape_html(&told),
                from + 1.0
            );
            let fits = (width / 6.8) as usize;
            if fits >= 4 {
                let _ = write!(
                    out,
                    "<text x=\"{:.1}\" y=\"{:.0}\">{}</text>",
                    from + 4.0,
                    y + 17.0,
                    escape_html(&words::cut(&name, fits - 1))
                );
            }
            out += "</g>";
        }
    }
    out
}

/// Rows of a column, and characters of a row.
const ROWS: usize = 48;
const WIDE: usize = 52;
const LINE: f64 = 15.0;

/// Dark ink on a light ground: a page shows an image in colours of its own.
pub(super) fn still(l: &Linked) -> String {
    type Drawn = (String, Option<usize>);
    let at = |n: Option<usize>| n.map_or(String::new(), |n| words::lines_of(l, &[n]));
    let row = |depth: u32, text: &str, ops: &[u32]| -> Drawn {
        let colour = colour(l, ops);
        (format!("{:>5}  {}{text}", at(colour), "  ".repeat(depth as usize)), colour)
    };
    let lines = l.lines.iter().enumerate().filter(|(_, s)| !s.ops.is_empty());
    let mut columns: Vec<(String, Vec<Drawn>)> = vec![
        ("lines".into(), lines.map(|(n, s)| (format!("{:>5}  {}", at(Some(n)), s.text.trim_end()), Some(n))).collect()),
        ("recorded ops".into(), l.ops.iter().enumerate().map(|(n, o)| row(0, &o.text, &[n as u32])).collect()),
        ("StableHLO".into(), l.stablehlo.iter().map(|r| row(r.depth, &r.text, &r.ops)).collect()),
    ];
    for o in l.optimised.iter().filter(|o| !o.rows.is_empty()) {
        let rows = o.kernels.iter().map(|k| {
            let told = format!("{} ({}), {}", k.kernel.name, words::costs(k), words::held(l, k));
            (format!("{:>5}  {told}", at(colour(l, &k.ops))), colour(l, &k.ops))
        });
        columns.push((format!("kernels, {}", o.target), rows.collect()));
    }
    let wide = WIDE as f64 * 6.7 + 14.0;
    let longest = columns.iter().map(|(_, rows)| rows.len().min(ROWS + 1)).max().unwrap_or(0);
    let shown: Vec<&Optimised> = l.optimised.iter().filter(|o| !o.rows.is_empty()).collect();
    let top = 24.0 + shown.len() as f64 * 118.0;
    let (w, h) = ((wide * columns.len() as f64).max(WIDTH), top + (longest as f64 + 2.0) * LINE + 8.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w:.0} {h:.0}\" width=\"{w:.0}\" height=\"{h:.0}\" fill=\"{INK}\" \
         font-family=\"ui-monospace,SFMono-Regular,Menlo,monospace\" font-size=\"11\" xml:space=\"preserve\">\
         {}<text x=\"4\" y=\"16\">{}</text>",
        card(w.ceil(), h.ceil()),
        escape_html(&words::headline(l))
    );
    for (n, o) in shown.iter().enumerate() {
        let y = 24.0 + n as f64 * 118.0;
        let _ = write!(out, "<text x=\"4\" y=\"{:.0}\">{}</text>", y + 12.0, escape_html(&words::gain(o)));
        out += &bars_inside(l, o, None, y + 14.0);
    }
    for (c, (title, rows)) in columns.iter().enumerate() {
        let x = c as f64 * wide + 6.0;
        let _ = write!(
            out,
            "<text x=\"{x:.0}\" y=\"{:.0}\" font-weight=\"bold\">{}</text>",
            top + LINE,
            escape_html(title)
        );
        for (r, (text, colour)) in rows.iter().take(ROWS).enumerate() {
            let y = top + (r as f64 + 2.0) * LINE;
            if let Some(line) = colour {
                let _ = write!(
                    out,
                    "<rect x=\"{x:.0}\" y=\"{:.0}\" width=\"{:.0}\" height=\"{LINE}\" fill=\"hsl({},65%,55%)\" fill-opacity=\".18\"/>",
                    y - 11.0,
                    wide - 8.0,
                    hue(*line)
                );
            }
            let _ =
                write!(out, "<text x=\"{:.0}\" y=\"{y:.0}\">{}</text>", x + 2.0, escape_html(&words::cut(text, WIDE)));
        }
        if rows.len() > ROWS {
            let y = top + (ROWS as f64 + 2.0) * LINE;
            let _ = write!(out, "<text x=\"{x:.0}\" y=\"{y:.0}\">… and {} more</text>", rows.len() - ROWS);
        }
    }
    out + "</svg>"
}
