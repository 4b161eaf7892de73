//! How a tensor shows itself: its values, then what it is and what showing it took.
use super::number::{self, Digits};
use crate::insight::{Cause, Origin};
use crate::tensor::{Tensor, on_behalf, shown_by};
use crate::{Result, cat};
use std::fmt::{Display, Formatter, LowerExp, Write};
use std::ops::Range;
use std::panic::Location;
use xlazy_core::device::name_of;
use xlazy_core::ty::{Category, DType, Shape, Type};
use xlazy_mime::{Bundle, Cell, Rich, Table, escape_html, units};

/// A tensor of more elements shows the edges of its long dimensions, as torch does.
const MOST: usize = 1000;
const EDGE: usize = 3;
/// Larger tensors are cut down on the device, so that showing one does not move gigabytes.
const DOWNLOAD: usize = 16 << 20;
const LINE: usize = 80;

/// What of a tensor is shown: along each dimension either all, or both edges.
struct Shown {
    ty: Type,
    /// Which indices of each dimension there are texts for.
    kept: Vec<Vec<usize>>,
    /// The elements at those indices, row-major.
    texts: Vec<String>,
    width: usize,
}

/// The values to show, a sentence on the tensor and what it took to get them, and the same without the latter.
fn look(t: &Tensor, digits: Digits) -> Result<(Shown, String, String)> {
    let ty = t.ty();
    let at = shown_by().unwrap_or(t.location());
    let (_, ran) = t.value(Cause::Display, at)?;
    let elide = ty.shape.numel() > MOST;
    let long = |size: usize| elide && size > 2 * EDGE;
    let edges =
        |size: usize| if long(size) { (0..EDGE).chain(size - EDGE..size).collect() } else { (0..size).collect() };
    let kept: Vec<Vec<usize>> = ty.shape.iter().map(|&size| edges(size)).collect();
    let bucketed = !crate::tensor::buckets_of(t).is_empty();
    let bytes = if bucketed || ty.bytes() <= DOWNLOAD {
        pick(&t.bytes(Cause::Display, at)?, &ty, &kept)
    } else {
        let cut = on_behalf(at, false, || {
            let edges = |t: Tensor, (d, &size): (usize, &usize)| match long(size) {
                true => {
                    let (d, n) = (d as i64, EDGE as i64);
                    cat(&[&t.narrow(d, 0, n), &t.narrow(d, size as i64 - n, n)], d)
                }
                false => t,
            };
            ty.shape.iter().enumerate().fold(t.detach(), edges)
        });
        cut.bytes(Cause::Display, at)?
    };
    let texts = number::texts(ty.dtype, &bytes, digits);
    let width = texts.iter().map(String::len).max().unwrap_or(0);
    let what = format!("{ty} on {}", name_of(t.placement().home()));
    let grad = if t.requires_grad() { " · requires grad" } else { "" };
    let took = match ran {
        None => " · already computed".to_owned(),
        Some(e) if e.origin == Origin::Compiled => format!(" · compiled in {}", units::time(e.compile)),
        Some(e) if e.origin == Origin::Disk => " · from the disk".to_owned(),
        Some(_) => " · from the cache".to_owned(),
    };
    Ok((Shown { ty, kept, texts, width }, format!("{what}{took}{grad}"), what + grad))
}

/// The bytes of the kept elements.
fn pick(bytes: &[u8], ty: &Type, kept: &[Vec<usize>]) -> Vec<u8> {
    if kept.iter().zip(ty.shape.iter()).all(|(k, &size)| k.len() == size) {
        return bytes.to_vec();
    }
    let size = ty.dtype.size();
    let mut offsets = vec![0usize];
    for (kept, stride) in kept.iter().zip(ty.shape.strides()) {
        offsets = offsets.iter().flat_map(|o| kept.iter().map(move |k| o + k * stride)).collect();
    }
    offsets.iter().flat_map(|o| &bytes[o * size..(o + 1) * size]).copied().collect()
}

impl Shown {
    fn elided(&self, dim: usize) -> bool {
        self.kept[dim].len() < self.ty.shape[dim]
    }

    /// Texts per step along a dimension.
    fn stride(&self, dim: usize) -> usize {
        self.kept[dim + 1..].iter().map(Vec::len).product()
    }

    /// Nested brackets, aligned, wrapped at 80 columns.
    fn text(&self) -> String {
        let mut out = String::new();
        match self.kept.len() {
            0 => out.push_str(&self.texts[0]),
            _ if self.texts.is_empty() => out.push_str("[]"),
            _ => self.write(0, 0, &mut out),
        }
        out
    }

    fn write(&self, dim: usize, from: usize, out: &mut String) {
        out.push('[');
        let last = dim + 1 == self.kept.len();
        let per_line = ((LINE.saturating_sub(dim)) / (self.width + 2)).max(1);
        let indent = " ".repeat(dim + 1);
        let between = format!(",{}{indent}", "\n".repeat(self.kept.len() - 1 - dim));
        let n = self.kept[dim].len();
        // How many things stand in the row so far: "..." counts as one.
        let mut written = 0;
        let mut separate = |out: &mut String| {
            match (written, last) {
                (0, _) => {}
                (_, false) => out.push_str(&between),
                (w, true) if w % per_line == 0 => _ = write!(out, ",\n{indent}"),
                (_, true) => out.push_str(", "),
            }
            written += 1;
        };
        for i in 0..n {
            if i == EDGE && self.elided(dim) {
                separate(out);
                out.push_str(if last { " ..." } else { "..." });
            }
            separate(out);
            match last {
                true => _ = write!(out, "{:>w$}", self.texts[from + i], w = self.width),
                false => self.write(dim + 1, from + i * self.stride(dim), out),
            }
        }
        out.push(']');
    }

    /// Tables: one for up to two dimensions, one per index of the leading ones beyond.
    fn html(&self) -> String {
        let rank = self.kept.len();
        match rank {
            0 => format!("<div style=\"font-size:1.15em\">{}</div>", escape_html(&self.texts[0])),
            _ if self.texts.is_empty() => "<div style=\"opacity:.6\">no elements</div>".to_owned(),
            1 => self.row_table(),
            2 => self.table(0..self.texts.len()),
            _ => {
                let mut out = String::from("<div style=\"display:flex;flex-wrap:wrap;gap:10px\">");
                self.grid(0, 0, &mut Vec::new(), &mut out);
                out + "</div>"
            }
        }
    }

    fn grid(&self, dim: usize, from: usize, index: &mut Vec<usize>, out: &mut String) {
        if dim + 2 == self.kept.len() {
            let label: Vec<String> = index.iter().map(usize::to_string).collect();
            let table = self.table(from..from + self.stride(dim - 1));
            let label = label.join(", ");
            let _ = write!(out, "<div><div style=\"opacity:.6;padding:2px\">[{label}, :, :]</div>{table}</div>");
            return;
        }
        for (i, &at) in self.kept[dim].iter().enumerate() {
            if i == EDGE && self.elided(dim) {
                out.push_str("<div style=\"opacity:.6;align-self:center\">⋯</div>");
            }
            index.push(at);
            self.grid(dim + 1, from + i * self.stride(dim), index, out);
            index.pop();
        }
    }

    /// The last two dimensions from one text on, with their indices at the edges.
    fn table(&self, texts: Range<usize>) -> String {
        let [rows, columns] = [self.kept.len() - 2, self.kept.len() - 1];
        let left_out = self.elided(columns).then_some(EDGE);
        let mut table = Table::new(TABLE);
        let heads = self.kept[columns].iter().map(|at| index(at.to_string()));
        table.row([index("")].into_iter().chain(with(heads, left_out, || index("⋯").style("opacity:.6"))));
        let width = self.kept[columns].len();
        for (r, at) in self.kept[rows].iter().enumerate() {
            if r == EDGE && self.elided(rows) {
                let dots = with((0..width).map(|_| aside("⋮")), left_out, || aside("⋱"));
                table.row([index("⋮")].into_iter().chain(dots));
            }
            let texts = self.texts[texts.clone()][r * width..][..width].iter().map(|text| self.cell(text));
            table.row([index(at.to_string())].into_iter().chain(with(texts, left_out, || aside("⋯"))));
        }
        scrolled(table)
    }

    /// One dimension, ten to a row, with the index of each row's first element.
    fn row_table(&self) -> String {
        let per_row = if self.texts.len() <= 16 { 16 } else { 10 };
        let mut table = Table::new(TABLE);
        for (r, row) in self.texts.chunks(per_row).enumerate() {
            let texts = with(row.iter().map(|text| self.cell(text)), self.elided(0).then_some(EDGE), || aside("⋯"));
            table.row([index(self.kept[0][r * per_row].to_string())].into_iter().chain(texts));
        }
        scrolled(table)
    }

    fn cell(&self, text: &str) -> Cell {
        let odd = self.ty.dtype.category() >= Category::Float && (text.contains("nan") || text.contains("inf"));
        let mark = if odd { "color:#d9534f" } else { "" };
        let faint = if self.ty.dtype == DType::Bool && text == "false" { "opacity:.55" } else { "" };
        Cell::text(text).style(CELL).style(mark).style(faint)
    }
}

/// An index of a row or a column.
fn index(at: impl AsRef<str>) -> Cell {
    Cell::text(at.as_ref()).heading().style(HEAD)
}

/// Stands for what is left out.
fn aside(sign: &str) -> Cell {
    Cell::text(sign).style(CELL).style("opacity:.6")
}

/// Cells, with a sign before one of them where that is wanted.
fn with(cells: impl Iterator<Item = Cell>, at: Option<usize>, sign: impl Fn() -> Cell) -> impl Iterator<Item = Cell> {
    cells.enumerate().flat_map(move |(i, cell)| (Some(i) == at).then(&sign).into_iter().chain([cell]))
}

fn scrolled(table: Table) -> String {
    format!("<div style=\"overflow:auto;max-height:420px\">{}</div>", table.html())
}

// Inline, because front ends strip style sheets from outputs; no colour of its own but for NaN, so that it reads on light
// and on dark pages.
const TABLE: &str = "border-collapse:collapse;margin:0;font-family:ui-monospace,monospace;font-size:.92em;color:inherit;\
                     background:none";
const CELL: &str = "padding:2px 8px;text-align:right;white-space:pre;border:1px solid rgba(128,128,128,.25)";
const HEAD: &str = "padding:2px 8px;text-align:right;font-weight:normal;opacity:.5;border:none";

impl Rich for Tensor {
    /// The values, computed if need be, as text and as an HTML table; errors end the cell at the line that made the tensor.
    fn rich(&self) -> Bundle {
        match look(self, Digits::Suitable) {
            Ok((shown, line, what)) => {
                let html = format!(
                    "<div style=\"line-height:1.35\">{}<div style=\"opacity:.65;font-size:.85em;padding-top:3px\">{}</div></div>",
                    shown.html(),
                    escape_html(&line)
                );
                let values = shown.text();
                Bundle::html(html, format!("{values}\n{line}")).lasting(format!("{values}\n{what}"))
            }
            Err(e) => super::fail(e, self.location()),
        }
    }
}

/// The values alone, as torch prints them. `{:.2}` shows two digits of each, `{:8.2}` in eight columns. Runs what the tensor
/// needs.
impl Display for Tensor {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        written(self, f.precision().map_or(Digits::Suitable, Digits::Fixed), f)
    }
}

/// The same with exponents: `{:e}`, `{:.2e}`.
impl LowerExp for Tensor {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        written(self, Digits::Scientific(f.precision().unwrap_or(4)), f)
    }
}

fn written(t: &Tensor, digits: Digits, f: &mut Formatter) -> std::fmt::Result {
    let mut shown = match look(t, digits) {
        Ok((shown, ..)) => shown,
        Err(e) => super::fail(e, t.location()),
    };
    if f.sign_plus() && shown.ty.dtype.category() > Category::Bool {
        shown.texts.iter_mut().filter(|text| !text.starts_with('-')).for_each(|text| text.insert(0, '+'));
    }
    // Each element in as many columns as are asked for.
    let widest = shown.texts.iter().map(|text| text.chars().count()).max().unwrap_or(0);
    shown.width = widest.max(f.width().unwrap_or(0));
    if shown.kept.is_empty() && shown.width > widest {
        shown.texts[0].insert_str(0, &" ".repeat(shown.width - widest));
    }
    f.write_str(&shown.text())
}

/// A tensor, or what else has a form of its own, as a part of another value.
pub(super) struct Inside {
    pub plain: String,
    /// In one line.
    pub short: String,
    pub html: String,
}

impl Inside {
    /// A tensor by its type alone.
    pub fn named(t: &Tensor) -> Inside {
        let text = format!("Tensor({})", t.ty());
        Inside { html: escape_html(&text), short: text.clone(), plain: text }
    }
}

/// The values of a tensor as torch writes them, and as a table unless it is one of many.
pub(super) fn inside(t: &Tensor, table: bool) -> Inside {
    let (shown, _, what) = look(t, Digits::Suitable).unwrap_or_else(|e| super::fail(e, t.location()));
    let (values, dtype) = (shown.text(), shown.ty.dtype);
    let usual = matches!(dtype, DType::F32 | DType::I64 | DType::Bool);
    let dtype = if usual { String::new() } else { format!(", {dtype}") };
    let plain = format!("tensor({}{dtype})", values.replace('\n', "\n       "));
    let short = match values.lines().count() {
        1 if values.len() <= 32 => values,
        _ => shown.ty.to_string(),
    };
    let html = match table {
        true => format!("{}<div style=\"opacity:.65;font-size:.85em\">{}</div>", shown.html(), escape_html(&what)),
        false => format!("<pre style=\"margin:0;color:inherit;background:none\">{}</pre>", escape_html(&plain)),
    };
    Inside { plain, short, html }
}

/// The whole value on the host as f64, row-major, of a picture or the like; the caller's line shows it.
#[track_caller]
pub(super) fn numbers(t: &Tensor) -> (Shape, DType, Vec<f64>) {
    let ty = t.ty();
    let bytes = t.bytes(Cause::Display, Location::caller()).unwrap_or_else(|e| super::fail(e, t.location()));
    let values = bytes.chunks_exact(ty.dtype.size()).map(|b| ty.dtype.number(b)).collect();
    (ty.shape, ty.dtype, values)
}
