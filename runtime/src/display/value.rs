//! How what has nothing but `Debug` shows itself: its text, and for front ends with HTML the tables and tensors in it. The
//! tensors are computed by one program.
use super::debug::{Value, parse};
use super::picture::of_bundle;
use super::tensor::{Inside, inside};
use super::{drawn, fail, number};
use crate::insight::Cause;
use crate::tensor::{Tensor, shown_by};
use std::fmt::Write;
use xlazy_mime::gather::{CLOSE, Found, OPEN};
use xlazy_mime::{Bundle, Cell, Table, columns, count, escape_html};

/// Tensors beyond are named, not computed.
const MOST_TENSORS: usize = 100;
/// With more elements than this in all, tensors are text in HTML, too.
const MOST_ELEMENTS: usize = 2000;
/// A table of more rows or columns shows those at its edges.
const MOST_ROWS: usize = 60;
const MOST_COLUMNS: usize = 24;
/// Collections that are written longer than this show their edges, and a text by itself that is ten times as long its beginning.
const MOST_TEXT: usize = 10_000;
const CUT: &str = " … (cut off)";
/// A line that is longer is no line to read: a table stands in columns instead.
const LINE: usize = 100;

/// A value that `Debug` wrote, as far as it was not cut off, with what was gathered in it.
pub(crate) fn bundle(text: String, cut: bool, found: Vec<Found>) -> Bundle {
    let parts = parts(found);
    let plain = with_parts(&text, &parts, true) + if cut { CUT } else { "" };
    let Some(value) = parse(&text, cut) else {
        return drawn::bundle(&plain).unwrap_or_else(|| match beginning(&plain, MOST_TEXT) {
            Some(short) => Bundle::text(short).lasting(plain),
            None => Bundle::text(plain),
        });
    };
    let whole = Page { parts: &parts, edge: usize::MAX };
    let short = (cut || plain.len() > value.most_text()).then(|| whole.shortened(&value));
    let page = short.as_ref().map_or(whole, |(page, _)| *page);
    let table = page.table(&value).filter(|_| plain.chars().count() > LINE).map(|table| table.plain(&page));
    // What stands in place of the whole text.
    let stead = table.or(short.map(|(_, text)| text));
    let html = page.has_block(&value).then(|| format!("<div style=\"line-height:1.35\">{}</div>", page.html(&value)));
    let bundle = |plain: String| match html {
        Some(html) => Bundle::html(html, plain),
        None => Bundle::text(plain),
    };
    match stead {
        Some(stead) => bundle(stead).lasting(plain),
        None => bundle(plain),
    }
}

/// The beginning of a text that is longer than that.
fn beginning(text: &str, most: usize) -> Option<String> {
    (text.len() > most).then(|| format!("{}{CUT}", &text[..text.floor_char_boundary(most)]))
}

fn parts(found: Vec<Found>) -> Vec<Inside> {
    let tensors: Vec<Tensor> =
        found.iter().filter_map(|f| f.downcast_ref::<Tensor>()).take(MOST_TENSORS).cloned().collect();
    if let Some(first) = tensors.first() {
        let at = shown_by().unwrap_or_else(|| first.location());
        Tensor::compute(&tensors, Cause::Display, at).unwrap_or_else(|e| fail(e, at));
    }
    let small = tensors.iter().map(Tensor::numel).fold(0, usize::saturating_add) <= MOST_ELEMENTS;
    let mut seen = 0;
    let part = |found: &Found| {
        if let Some(t) = found.downcast_ref::<Tensor>() {
            seen += 1;
            return if seen > MOST_TENSORS { Inside::named(t) } else { inside(t, small) };
        }
        let bundle = found.downcast_ref::<Bundle>().cloned().unwrap_or_default();
        Inside {
            plain: bundle.plain().to_owned(),
            short: bundle.plain().lines().next().unwrap_or_default().to_owned(),
            html: of_bundle(&bundle).unwrap_or_else(|| pre(bundle.plain())),
        }
    };
    found.iter().map(part).collect()
}

/// The text with what was gathered in the places of its numbers; lines of one part stand below one another.
fn with_parts(text: &str, parts: &[Inside], whole: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN) {
        out.push_str(before);
        let Some((number, behind)) = after.split_once(CLOSE) else {
            // Cut within the mark.
            rest = "";
            break;
        };
        if let Some(part) = number.parse().ok().and_then(|n: usize| parts.get(n)) {
            let indent = out.rsplit('\n').next().unwrap_or_default().chars().count();
            let plain = if whole { &part.plain } else { &part.short };
            out.push_str(&plain.replace('\n', &format!("\n{}", " ".repeat(indent))));
        }
        rest = behind;
    }
    out + rest
}

fn pre(text: &str) -> String {
    format!("<pre style=\"margin:0;color:inherit;background:none\">{}</pre>", escape_html(text))
}

#[derive(Clone, Copy)]
struct Page<'p> {
    parts: &'p [Inside],
    /// How many elements collections show at either end.
    edge: usize,
}

/// Rows of one kind.
struct Rows<'v, 't> {
    /// Names of the columns; the first is that of the rows' labels.
    heads: Vec<String>,
    rows: Vec<Vec<Option<&'v Value<'t>>>>,
    /// What stands before each row: its index, or nothing where `rows` has a key.
    labels: Option<Vec<String>>,
    /// There are more, which were cut off.
    more: bool,
}

impl<'v, 't> Rows<'v, 't> {
    /// What a row is made of: fields of a struct, elements of a tuple, or numbers.
    fn of(values: &[&'v Value<'t>]) -> Option<Rows<'v, 't>> {
        let (values, more) = but_for_rest(values, |v| **v == Value::Rest);
        let first = values.first()?;
        let fields = |v: &Value<'t>| match v {
            Value::Struct(name, fields) => Some((*name, fields.iter().map(|f| f.0).collect::<Vec<_>>())),
            _ => None,
        };
        let heads: Vec<String> = match first {
            Value::Struct(..) => {
                let kind = fields(first);
                if values.iter().any(|v| fields(v) != kind) {
                    return None;
                }
                kind?.1.iter().filter(|name| **name != "..").map(|name| (*name).to_owned()).collect()
            }
            Value::Tuple("", items) if items.len() > 1 => {
                let alike = |v: &&Value<'t>| matches!(v, Value::Tuple("", other) if other.len() == items.len());
                values.iter().all(alike).then(|| (0..items.len()).map(|i| i.to_string()).collect())?
            }
            Value::List(..) => {
                let numbers = |v: &&Value<'t>| match v {
                    Value::List("", items) => items.iter().all(|i| matches!(i, Value::Atom(a) if is_number(a))),
                    _ => false,
                };
                let longest = values.iter().map(|v| v.items().len()).max().filter(|n| *n > 0)?;
                values.iter().all(numbers).then(|| (0..longest).map(|i| i.to_string()).collect())?
            }
            _ => return None,
        };
        let row = |v: &&'v Value<'t>| -> Vec<Option<&'v Value<'t>>> {
            let items = v.items();
            (0..heads.len()).map(|i| items.get(i).copied()).collect()
        };
        let rows = values.iter().map(row).collect();
        (!heads.is_empty()).then_some(Rows { heads, rows, labels: None, more })
    }

    /// Formats numbers of a column alike where they are long.
    fn texts(&self, page: &Page) -> Vec<Vec<String>> {
        let text = |v: &Option<&Value>| v.map(|v| page.inline(v)).unwrap_or_default();
        let mut texts: Vec<Vec<String>> = self.rows.iter().map(|row| row.iter().map(text).collect()).collect();
        for column in 0..self.heads.len() {
            let floats =
                |row: &Vec<String>| row[column].parse::<f64>().ok().filter(|_| row[column].contains(['.', 'e']));
            let long = texts.iter().any(|row| row[column].len() > 8);
            // A text that looks like a number is shown as it is.
            let numbers = self.rows.iter().all(|row| row[column].is_none_or(is_number_atom));
            let values: Option<Vec<f64>> = texts.iter().filter(|row| !row[column].is_empty()).map(floats).collect();
            if let Some(values) = values.filter(|_| long && numbers) {
                let filled = texts.iter_mut().filter(|row| !row[column].is_empty());
                for (row, text) in filled.zip(number::floats(&values, 4)) {
                    row[column] = text;
                }
            }
        }
        texts
    }

    /// Which rows are shown; of what was cut off the first ones.
    fn shown_rows(&self) -> Vec<Option<usize>> {
        match self.more {
            true => (0..self.rows.len().min(MOST_ROWS)).map(Some).chain([None]).collect(),
            false => Self::shown(self.rows.len(), MOST_ROWS),
        }
    }

    /// Which rows or columns are shown; `None` stands for those left out.
    fn shown(n: usize, most: usize) -> Vec<Option<usize>> {
        match n > most {
            true => (0..most / 2).map(Some).chain([None]).chain((n - most / 2..n).map(Some)).collect(),
            false => (0..n).map(Some).collect(),
        }
    }

    fn html(&self, page: &Page) -> String {
        let (texts, columns) = (self.texts(page), Self::shown(self.heads.len(), MOST_COLUMNS));
        let mut table = Table::new(TABLE);
        let head = columns.iter().map(|c| Cell::text(c.map_or("⋯", |c| &self.heads[c])).style(HEAD).style(ALIGNED));
        let corner = self.labels.iter().map(|_| Cell::text("").style(HEAD));
        table.head(corner.chain(head));
        for at in self.shown_rows() {
            let label = self.labels.iter().map(|l| Cell::text(at.map_or("⋮", |at| &l[at])).heading().style(HEAD));
            let cell = |c: &Option<usize>| match (at, c) {
                (Some(r), Some(c)) => match self.rows[r][*c] {
                    Some(v) if page.has_block(v) => Cell::html(page.html(v)).style(CELL).left(),
                    Some(Value::Atom(a)) if is_number(a) => Cell::text(&texts[r][*c]).style(CELL).right(),
                    _ => Cell::text(&texts[r][*c]).style(CELL).left(),
                },
                (_, None) => Cell::text("⋯").style(CELL).style("opacity:.6"),
                (None, _) => Cell::text("⋮").style(CELL).style("opacity:.6"),
            };
            table.row(label.chain(columns.iter().map(cell)));
        }
        let note = match self.is_long() {
            true => format!("<div style=\"opacity:.65;font-size:.85em\">{}</div>", self.size()),
            false => String::new(),
        };
        format!("<div style=\"overflow:auto;max-height:420px\">{}</div>{note}", table.html())
    }

    fn is_long(&self) -> bool {
        self.more || self.rows.len() > MOST_ROWS || self.heads.len() > MOST_COLUMNS
    }

    fn size(&self) -> String {
        let than = if self.more { "more than " } else { "" };
        format!("{than}{}, {}", count(self.rows.len(), "row"), count(self.heads.len(), "column"))
    }

    fn plain(&self, page: &Page) -> String {
        let (texts, shown) = (self.texts(page), Self::shown(self.heads.len(), MOST_COLUMNS));
        let line = |label: Option<&str>, text: &dyn Fn(usize) -> String| -> Vec<String> {
            let label = self.labels.iter().map(|_| label.unwrap_or_default().to_owned());
            label.chain(shown.iter().map(|c| c.map_or("…".to_owned(), text))).collect()
        };
        let mut lines = vec![line(None, &|c| self.heads[c].clone())];
        for at in self.shown_rows() {
            let label = self.labels.as_ref().map(|l| at.map_or("⋮", |at| &l[at]));
            lines.push(line(label, &|c| at.map_or("⋮".to_owned(), |at| texts[at][c].clone())));
        }
        let number = |c: usize| self.rows.iter().all(|row| row[c].is_none_or(is_number_atom));
        let first = usize::from(self.labels.is_some());
        let right: Vec<usize> =
            shown.iter().enumerate().filter(|(_, c)| c.is_some_and(number)).map(|(i, _)| i + first).collect();
        let mut out = columns(&lines, &right);
        if self.is_long() {
            let _ = write!(out, "\n{}", self.size());
        }
        out
    }
}

impl<'t> Value<'t> {
    /// What it is made of, without names.
    fn items(&self) -> Vec<&Value<'t>> {
        match self {
            Value::Struct(_, fields) => fields.iter().filter(|f| f.0 != "..").map(|f| &f.1).collect(),
            Value::Tuple(_, items) | Value::List(_, items) | Value::Set(items) => items.iter().collect(),
            Value::Map(entries) => entries.iter().flat_map(|(k, v)| [k, v]).collect(),
            Value::Atom(_) | Value::Part(_) | Value::Rest => Vec::new(),
        }
    }

    /// How long its text may be.
    fn most_text(&self) -> usize {
        if let Value::Atom(_) = self { 10 * MOST_TEXT } else { MOST_TEXT }
    }

    /// How many elements a collection has.
    fn size(&self) -> Option<String> {
        fn counted<T>((whole, more): (&[T], bool)) -> String {
            format!("{}{}", if more { "more than " } else { "" }, count(whole.len(), "element"))
        }
        match self {
            Value::List(_, items) | Value::Set(items) => Some(counted(but_for_rest(items, |v| *v == Value::Rest))),
            Value::Map(entries) => Some(counted(but_for_rest(entries, |(key, _)| *key == Value::Rest))),
            _ => None,
        }
    }

    /// Arrays of one length under the name `columns`, as Arrow's record batches have them, with their names.
    fn batch(&self) -> Option<(Vec<String>, Vec<&Value<'t>>)> {
        let Value::Struct(_, fields) = self else { return None };
        let field = |name: &str| fields.iter().find(|f| f.0 == name).map(|f| &f.1);
        let Value::List(_, columns) = field("columns")? else { return None };
        let len = columns.first()?.items().len();
        let array = |v: &Value| matches!(v, Value::List(name, items) if !name.is_empty() && items.len() == len);
        let Value::Struct(_, schema) = field("schema")? else { return None };
        let Value::List(_, described) = &schema.iter().find(|f| f.0 == "fields")?.1 else { return None };
        let name = |v: &Value<'t>| match v {
            Value::Struct(_, f) => f.iter().find(|f| f.0 == "name").and_then(|f| match f.1 {
                Value::Atom(name) => Some(unquoted(name)),
                _ => None,
            }),
            _ => None,
        };
        let names: Vec<String> = described.iter().map(name).collect::<Option<_>>()?;
        (columns.iter().all(array) && names.len() == columns.len()).then(|| (names, columns.iter().collect()))
    }
}

impl Page<'_> {
    /// A value as a table, where it is one.
    fn table<'v, 't>(&self, value: &'v Value<'t>) -> Option<Rows<'v, 't>> {
        match value {
            Value::List("", items) => {
                let mut rows = Rows::of(&items.iter().collect::<Vec<_>>())?;
                rows.labels = Some((0..rows.rows.len()).map(|i| i.to_string()).collect());
                Some(rows)
            }
            Value::Set(items) => Rows::of(&items.iter().collect::<Vec<_>>()),
            Value::Map(entries) if !entries.is_empty() => {
                let values: Vec<&Value> = entries.iter().map(|(_, v)| v).collect();
                let mut rows = Rows::of(&values).unwrap_or_else(|| {
                    let (values, more) = but_for_rest(&values, |v| **v == Value::Rest);
                    let rows = values.iter().map(|v| vec![Some(*v)]).collect();
                    Rows { heads: vec!["value".to_owned()], rows, labels: None, more }
                });
                rows.heads.insert(0, "key".to_owned());
                rows.rows.iter_mut().zip(entries).for_each(|(row, (key, _))| row.insert(0, Some(key)));
                Some(rows)
            }
            _ => {
                let (heads, arrays) = value.batch()?;
                let arrays: Vec<Vec<&Value>> = arrays.into_iter().map(Value::items).collect();
                let row = |r: usize| arrays.iter().map(|a| a.get(r).copied()).collect();
                Some(Rows { heads, rows: (0..arrays[0].len()).map(row).collect(), labels: None, more: false })
            }
        }
    }

    /// Whether there is more to show of it than a line of text.
    fn has_block(&self, value: &Value) -> bool {
        matches!(value, Value::Part(_))
            || value.items().iter().any(|v| self.has_block(v))
            || self.table(value).is_some()
    }

    /// A value's text with no more of its collections than leaves it readable, and what shows as much.
    fn shortened(self, value: &Value) -> (Self, String) {
        let of = |edge| {
            let page = Page { edge, ..self };
            (page, page.inside_line(value))
        };
        let edges = [100, 30, 10, 3].into_iter().map(of);
        let (page, text) = edges.clone().find(|(_, text)| text.len() <= value.most_text()).unwrap_or_else(|| of(1));
        let text = beginning(&text, value.most_text()).unwrap_or(text);
        (page, text + &value.size().map_or(String::new(), |size| format!(" ({size})")))
    }

    /// Texts of a collection's elements, by commas; `…` stands for those between its edges.
    fn joined<T>(&self, all: &[T], text: impl Fn(&T) -> String) -> String {
        let between = all.len() > self.edge.saturating_mul(2).saturating_add(1);
        let (first, last) = if between { (&all[..self.edge], &all[all.len() - self.edge..]) } else { (all, &all[..0]) };
        let dots = between.then(|| "…".to_owned());
        first.iter().map(&text).chain(dots).chain(last.iter().map(&text)).collect::<Vec<_>>().join(", ")
    }

    fn inline(&self, value: &Value) -> String {
        let all = |items: &[Value]| self.joined(items, |v| self.inside_line(v));
        match value {
            Value::Atom(text) => unquoted(text),
            Value::Rest => "…".to_owned(),
            Value::Part(n) => self.parts.get(*n).map(|p| p.short.clone()).unwrap_or_default(),
            Value::Tuple(name, items) => format!("{name}({})", all(items)),
            Value::List(name, items) => format!("{name}[{}]", all(items)),
            Value::Set(items) => format!("{{{}}}", all(items)),
            Value::Struct(name, fields) => {
                let fields = fields.iter().map(|(name, v)| match *name {
                    ".." if *v == Value::Rest => "…".to_owned(),
                    ".." => "..".to_owned(),
                    name => format!("{name}: {}", self.inside_line(v)),
                });
                format!("{name} {{ {} }}", fields.collect::<Vec<_>>().join(", "))
            }
            Value::Map(entries) => {
                let entry = |(k, v): &(Value, Value)| match k {
                    Value::Rest => self.inline(k),
                    _ => format!("{}: {}", self.inside_line(k), self.inside_line(v)),
                };
                format!("{{{}}}", self.joined(entries, entry))
            }
        }
    }

    /// Inside of something else a text keeps its quotes.
    fn inside_line(&self, value: &Value) -> String {
        match value {
            Value::Atom(text) => (*text).to_owned(),
            other => self.inline(other),
        }
    }

    fn html(&self, value: &Value) -> String {
        if let Value::Part(n) = value {
            return self.parts.get(*n).map(|p| p.html.clone()).unwrap_or_default();
        }
        if let Some(table) = self.table(value) {
            return table.html(self);
        }
        if !self.has_block(value) {
            return format!(
                "<code style=\"color:inherit;background:none\">{}</code>",
                escape_html(&self.inside_line(value))
            );
        }
        let (name, labelled): (&str, Vec<(String, &Value)>) = match value {
            Value::Struct(name, fields) => {
                (name, fields.iter().filter(|f| f.0 != "..").map(|(n, v)| ((*n).to_owned(), v)).collect())
            }
            Value::Tuple(name, items) if items.len() == 1 => (name, vec![(String::new(), &items[0])]),
            other => {
                let name = if let Value::Tuple(name, _) | Value::List(name, _) = other { *name } else { "" };
                (name, other.items().into_iter().enumerate().map(|(i, v)| (i.to_string(), v)).collect())
            }
        };
        let mut table = Table::new(TABLE);
        for (label, v) in labelled {
            let label =
                (!label.is_empty()).then(|| Cell::text(&label).heading().style(HEAD).style("vertical-align:top"));
            table.row(label.into_iter().chain([Cell::html(self.html(v)).style(CELL).left()]));
        }
        let name = if name.is_empty() { String::new() } else { format!("<div>{}</div>", escape_html(name)) };
        format!("{name}{}", table.html())
    }
}

/// All but what stands for those that were cut off, and whether there are such.
fn but_for_rest<T>(all: &[T], is_rest: impl Fn(&T) -> bool) -> (&[T], bool) {
    match all.split_last() {
        Some((last, whole)) if is_rest(last) => (whole, true),
        _ => (all, false),
    }
}

/// A text without its quotes; what would break its line stays escaped.
fn unquoted(text: &str) -> String {
    let Some(inside) = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) else { return text.to_owned() };
    let mut out = String::with_capacity(inside.len());
    let mut chars = inside.chars().peekable();
    while let Some(c) = chars.next() {
        let escaped = chars.next_if(|next| c == '\\' && matches!(*next, '"' | '\'' | '\\'));
        out.push(escaped.unwrap_or(c));
    }
    out
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

fn is_number_atom(value: &Value) -> bool {
    matches!(value, Value::Atom(text) if is_number(text))
}

// As the tables of tensors.
const TABLE: &str = "border-collapse:collapse;margin:0;font-family:ui-monospace,monospace;font-size:.92em;color:inherit;\
                     background:none";
const CELL: &str = "padding:2px 8px;white-space:pre;border:1px solid rgba(128,128,128,.25)";
const HEAD: &str = "padding:2px 8px;font-weight:normal;opacity:.6;border:none";
const ALIGNED: &str = "text-align:right";

#[cfg(test)]
mod tests;
