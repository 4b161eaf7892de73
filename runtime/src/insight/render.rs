//! Compilations and their explanations as sentences, as text, as HTML and as JSON.
use super::history::{compilations, healed};
use super::metrics;
use super::report::{Class, Compilation, Difference, Explanation, Healing, Unrolled};
use crate::json::{Value, json, micros};
use std::fmt::Write;
use xlazy_core::device::name_of;
use xlazy_core::run::{Memory, Origin, SyncEvent};
use xlazy_core::text::{Edit, Somewhere, cell as cell_of, changes, line as line_of, location, quote, with_caller};
use xlazy_mime::{Bundle, Cell, Table, count, escape_html, plural, prose_html, units};

/// A part of what is said.
#[derive(Clone)]
pub(super) enum Part {
    /// Numbers in it may be others where the same happened.
    Text(String),
    Place(String),
    /// What to do, which whoever came last knows best.
    Fix(String),
}

impl From<Part> for String {
    fn from(part: Part) -> String {
        match part {
            Part::Text(text) | Part::Place(text) | Part::Fix(text) => text,
        }
    }
}

impl Explanation {
    /// One readable sentence: what happened, what differs, where, what to do; another for each further cause.
    pub fn sentence(&self) -> String {
        self.parts().into_iter().map(String::from).collect()
    }

    pub(super) fn parts(&self) -> Vec<Part> {
        let head = match (self.warm_up, self.later) {
            (true, false) => "Warm-up, the second step compiles",
            (true, true) => "Warm-up, a later step compiles",
            _ => "Compiled again",
        };
        self.parts_after(head)
    }

    fn parts_after(&self, head: &str) -> Vec<Part> {
        let mut all = Vec::new();
        for (head, why) in std::iter::once((head, self)).chain(self.also.iter().map(|why| (" Besides", why))) {
            all.push(Part::Text(format!("{head} ({}): ", why.class.name())));
            all.extend(why.what());
            all.push(Part::Fix(format!(". Fix: {}.", why.fix)));
        }
        all
    }

    fn what(&self) -> Vec<Part> {
        let at = Part::Place(with_caller(self.at, self.called_from));
        let around = |before: &str, behind: String| vec![Part::Text(before.into()), at.clone(), Part::Text(behind)];
        let mut what = match self.class {
            // Of a cache that is not ours no more is known.
            Class::Eviction if self.differences.iter().all(|d| d.now != "none") => {
                around("the very same program was compiled before and evicted from the cache (", ")".into())
            }
            Class::EarlyRead => {
                around("a value was read before the barrier (", "), which runs a part of the step on its own".into())
            }
            Class::ControlFlow => around("user code took another way after it had read a value (", ")".into()),
            Class::Device => {
                let of = |side: fn(&Difference) -> &String| self.differences.first().map_or("", |d| side(d));
                let before = format!("the same program, for {} (", of(|d| &d.now));
                around(&before, format!("); first compiled for {}", of(|d| &d.was)))
            }
            Class::Mode => around("training and evaluation are two programs (switched at ", ")".into()),
            _ => match self.differences.first() {
                Some(d) => {
                    let (before, behind) = d.sentence();
                    around(&before, behind)
                }
                None => around("no difference was found in the nodes (", ")".into()),
            },
        };
        match self.differences.len() + self.hidden {
            0 | 1 => {}
            n => what.push(Part::Text(format!(", and {}", count(n - 1, "more difference")))),
        }
        what
    }
}

impl Explanation {
    /// The fixes in code, by their places: lines as they are and as they become.
    fn code(&self) -> impl Iterator<Item = (String, Vec<String>, Vec<String>)> {
        let all = self.all().flat_map(|why| changes(&why.edits));
        all.map(|c| (format!("cell {}, line {}", c.cell, c.line), c.was, c.now))
    }

    /// The differences with both source lines, the fix in code, and the graph's difference, as text.
    fn details(&self) -> String {
        let mut out = String::new();
        let mut head = String::new();
        for (d, times) in folded(self.all().flat_map(|why| &why.differences)) {
            let (of, sides) = d.lines("  ", times);
            if of != head {
                out += &of;
                head = of;
            }
            out += &sides;
        }
        if self.hidden > 0 {
            let _ = writeln!(out, "  and {} more", self.hidden);
        }
        for (at, was, now) in self.code() {
            let _ = writeln!(out, "  the fix in code, {at}");
            for (sign, line) in was.iter().map(|l| ("-", l)).chain(now.iter().map(|l| ("+", l))) {
                let _ = writeln!(out, "    {sign} {line}");
            }
        }
        let told = |d: &&Difference| d.was != d.now || d.was_at != d.now_at;
        let graph: Vec<_> = folded(self.graph.iter().filter(told)).collect();
        if !graph.is_empty() {
            out.push_str("  in the graph\n");
        }
        for (d, times) in graph {
            for (sign, (text, at, _)) in ["-", "+"].iter().zip(d.sides()).filter(|(_, side)| side.0 != "none") {
                let _ = writeln!(out, "    {sign} {text}  [{at}]{}", often(times));
            }
        }
        out
    }

    /// Why two programs that were read differ, as text.
    pub fn between_texts(&self) -> String {
        let sentence: String = self.parts_after("Differs").into_iter().map(String::from).collect();
        format!("{sentence}\n{}", self.details())
    }

    /// As one JSON object.
    pub fn json(&self) -> String {
        self.value().to_string()
    }

    fn value(&self) -> Value {
        json!({
            "class": self.class.name(),
            "at": place(self.at),
            "called_from": self.called_from.map(place),
            "differences": self.differences.iter().map(Difference::value).collect::<Vec<_>>(),
            "hidden": self.hidden,
            "graph": self.graph.iter().map(Difference::value).collect::<Vec<_>>(),
            "fix": self.fix,
            "edits": self.edits.iter().map(edit).collect::<Vec<_>>(),
            "compared_with": self.compared_with,
            "healed": self.healed,
            "warm_up": self.warm_up,
            "also": self.also.iter().map(Explanation::value).collect::<Vec<_>>(),
        })
    }
}

impl Difference {
    /// What differs, and both sides below it, with places and lines: above them where they are the same.
    pub(super) fn lines(&self, indent: &str, times: usize) -> (String, String) {
        let placed = |at: &str, line: &Option<String>| match (at, line) {
            ("", _) => String::new(),
            (at, None) => format!("  [{at}]"),
            (at, Some(line)) => format!("  [{at}]  | {line}"),
        };
        let sides = self.sides();
        let [was, now] = [0, 1].map(|k| placed(&sides[k].1, &sides[k].2));
        let shared = self.now_at.is_some() && self.now_at.map(location) == self.was_at.map(location);
        let head = format!("{indent}{}{}{}\n", self.what, often(times), if shared { &now } else { "" });
        let side =
            |sign: char, text: &str, at: &str| format!("{indent}  {sign} {text}{}\n", if shared { "" } else { at });
        (head, side('-', sides[0].0, &was) + &side('+', sides[1].0, &now))
    }

    /// What is said before its place, and behind that.
    fn sentence(&self) -> (String, String) {
        let (what, was, now) = (&self.what, &self.was, &self.now);
        let many = ["operands ", "gradients "].iter().any(|many| what.starts_with(many));
        let elements = now.ends_with(" element") || now.ends_with(" elements");
        match (was.as_str(), now.as_str()) {
            ("none", now) => (format!("a new {what} {now} ("), ")".into()),
            (was, "none") => (format!("the {what} {was} is gone ("), ")".into()),
            (was, now) if many => (format!("{what} ("), format!(") are {now}, were {was}")),
            (was, now) if elements => (format!("{what} ("), format!(") has {now}, had {was}")),
            (was, now) => (format!("{what} ("), format!(") is {now}, was {was}")),
        }
    }

    fn value(&self) -> Value {
        let [was_at, now_at] = [self.was_at, self.now_at].map(|at| at.map(place));
        json!({ "what": self.what, "was": self.was, "now": self.now, "was_at": was_at, "now_at": now_at })
    }

    /// Both sides, each with its place and the source line there.
    fn sides(&self) -> [(&str, String, Option<String>); 2] {
        [(&self.was, self.was_at), (&self.now, self.now_at)]
            .map(|(text, at)| (text.as_str(), at.map(location).unwrap_or_default(), at.and_then(quote)))
    }
}

/// Differences in their order, with how often each is there: equal ones are told once.
fn folded<'a>(all: impl Iterator<Item = &'a Difference>) -> impl Iterator<Item = (&'a Difference, usize)> {
    let mut out: Vec<(&Difference, usize)> = Vec::new();
    for d in all {
        match out.iter_mut().find(|(other, _)| *other == d) {
            Some((_, times)) => *times += 1,
            None => out.push((d, 1)),
        }
    }
    out.into_iter()
}

fn often(times: usize) -> String {
    if times > 1 { format!(" ({times} times)") } else { String::new() }
}

/// What two source lines have in common at their start and at their end: what lies between is marked.
fn marked<'a>(line: &'a str, other: &str) -> (&'a str, &'a str, &'a str) {
    let same = |a: &(char, char)| a.0 == a.1;
    let start: usize = line.chars().zip(other.chars()).take_while(same).map(|(c, _)| c.len_utf8()).sum();
    let (rest, of) = (&line[start..], &other[start..]);
    let end: usize = rest.chars().rev().zip(of.chars().rev()).take_while(same).map(|(c, _)| c.len_utf8()).sum();
    (&line[..start], &rest[..rest.len() - end], &rest[rest.len() - end..])
}

impl Difference {
    /// A row of the table: both sides, with their lines; what differs between the lines is marked.
    fn row(&self, what: &str) -> [Cell; 3] {
        let [was, now] = self.sides();
        let lines = [(&was.2, &now.2), (&now.2, &was.2)].map(|(line, other)| match (line, other) {
            (Some(line), Some(other)) => {
                let (start, differs, end) = marked(line, other);
                let [start, differs, end] = [start, differs, end].map(escape_html);
                match differs.is_empty() {
                    true => format!("<br><code>{start}{end}</code>"),
                    false => format!("<br><code>{start}<mark>{differs}</mark>{end}</code>"),
                }
            }
            (Some(line), None) => format!("<br><code>{}</code>", escape_html(line)),
            (None, _) => String::new(),
        });
        let cell = |text: &str, at: &str, line: &str, colour: &str| {
            let (text, at) = (escape_html(text), escape_html(at));
            let cell = Cell::html(format!("{text}<br><span style=\"opacity:.6\">{at}</span>{line}"));
            cell.left().style(&format!("border-left:3px solid {colour};padding-left:6px"))
        };
        [
            Cell::html(prose_html(what)).left(),
            cell(was.0, &was.1, &lines[0], "#c0504d"),
            cell(now.0, &now.1, &lines[1], "#4f9a4f"),
        ]
    }
}

impl Compilation {
    /// What is said of it in one line.
    pub fn sentence(&self) -> String {
        self.parts().into_iter().map(String::from).collect()
    }

    pub(super) fn parts(&self) -> Vec<Part> {
        let Some(why) = &self.why else {
            let device = if self.device == name_of(0) { String::new() } else { format!(", on {}", self.device) };
            let ops = count(self.nodes, "op");
            return vec![
                Part::Text(format!("First program of its kind: {ops}, compiled for the {} at ", self.cause.name())),
                Part::Place(location(self.site)),
                Part::Text(format!("{device}.")),
            ];
        };
        why.parts()
    }

    /// Its number; of one that the budget refused, that.
    fn head(&self) -> String {
        if self.refused { "Refused by `%budget`:".into() } else { format!("#{}", self.number) }
    }

    /// The sentence, the differences with both source lines, and the graph's difference, as text.
    pub fn text(&self) -> String {
        let mut out = format!("{} {}\n", self.head(), self.sentence());
        if let Some(why) = &self.why {
            let _ = writeln!(out, "  compared with compilation #{}", why.compared_with);
            out += &why.details();
        }
        if let Some(unrolled) = &self.unrolled {
            let _ = writeln!(out, "  {}", unrolled.sentence());
        }
        let how = match (self.refused, self.origin) {
            (true, _) => "not compiled".to_owned(),
            (_, Origin::Disk) => format!("read from the disk in {}", units::time(self.compile)),
            _ => format!("compiled in {}", units::time(self.compile)),
        };
        let _ = writeln!(
            out,
            "  {}, {}, {}; traced in {}, lowered in {}, {how}",
            count(self.nodes, "op"),
            count(self.parameters, "parameter"),
            count(self.outputs, "result"),
            units::time(self.trace),
            units::time(self.lower)
        );
        out
    }

    /// The same as HTML, in colours that work on light and on dark ground.
    pub fn html(&self) -> String {
        let mut out = format!("<div><b>{}</b> {}", prose_html(&self.head()), prose_html(&self.sentence()));
        if let Some(why) = &self.why {
            let table = || {
                let mut table = Table::new("font-family:monospace");
                table.head(["", "was", "now"].map(|name| Cell::text(name).left()));
                table
            };
            let mut differences = table();
            folded(why.all().flat_map(|why| &why.differences))
                .for_each(|(d, times)| differences.row(d.row(&format!("{}{}", d.what, often(times)))));
            if why.hidden > 0 {
                differences.row([format!("and {} more", why.hidden).as_str()]);
            }
            out.push_str(&differences.html());
            for (at, was, now) in why.code() {
                let line = |tag: &str, line: &String| format!("<{tag}>{}</{tag}>\n", escape_html(line));
                let lines: String =
                    was.iter().map(|l| line("del", l)).chain(now.iter().map(|l| line("ins", l))).collect();
                let _ = write!(out, "<div>The fix in code, {}:</div><pre>{lines}</pre>", escape_html(&at));
            }
            if !why.graph.is_empty() {
                let mut graph = table();
                why.graph.iter().for_each(|d| graph.row(d.row("")));
                let _ = write!(out, "<details><summary>in the graph</summary>{}</details>", graph.html());
            }
        }
        if let Some(unrolled) = &self.unrolled {
            let _ = write!(out, "<div>{}</div>", prose_html(&unrolled.sentence()));
        }
        out.push_str("</div>");
        out
    }

    /// Text and HTML together.
    pub fn bundle(&self) -> Bundle {
        Bundle::html(self.html(), self.text()).passing()
    }

    /// The same behind a sentence.
    pub(crate) fn bundle_after(&self, note: &str) -> Bundle {
        let html = format!("<div>{}</div>{}", prose_html(note), self.html());
        Bundle::html(html, format!("{note}\n{}", self.text())).passing()
    }

    /// As one JSON object.
    pub fn json(&self) -> String {
        self.value().to_string()
    }

    pub(super) fn value(&self) -> Value {
        let why = self.why.as_ref().map(Explanation::value);
        json!({
            "number": self.number,
            "origin": self.origin.name(),
            "cause": self.cause.name(),
            "site": place(self.site),
            "nodes": self.nodes,
            "parameters": self.parameters,
            "outputs": self.outputs,
            "trace_us": micros(self.trace),
            "lower_us": micros(self.lower),
            "compile_us": micros(self.compile),
            "hits": self.hits(),
            "memory": self.memory.map(|m| memory_value(&m)),
            "flops": self.flops,
            "hash": format!("{:032x}", self.hash),
            "device": self.device,
            "refused": self.refused,
            "sentence": self.sentence(),
            "why": why,
            "unrolled": self.unrolled.as_ref().map(unrolled),
        })
    }
}

fn unrolled(of: &Unrolled) -> Value {
    let Unrolled { at, rounds, ops, carried, training, optimizer, ended, grows } = of;
    json!({
        "at": place(at),
        "rounds": rounds,
        "ops": ops,
        "carried": carried,
        "training": training,
        "optimizer": optimizer,
        "ended": ended.is_some(),
        "grows": grows.map(|types| types.map(|ty| ty.to_string()).to_vec()),
        "sentence": of.sentence(),
    })
}

/// A line of user code as JSON: its file, or the cell that it stands for, and the line there.
pub(super) fn place(at: &impl Somewhere) -> Value {
    json!({ "file": at.file(), "cell": cell_of(at), "line": line_of(at) })
}

/// A change of a cell's text as JSON.
fn edit(e: &Edit) -> Value {
    let (from, to) = (e.from, e.to);
    json!({ "cell": e.cell, "line": from.0, "column": from.1, "end_line": to.0, "end_column": to.1, "text": e.text })
}

fn memory_value(m: &Memory) -> Value {
    json!({
        "arguments": m.arguments,
        "outputs": m.outputs,
        "temporaries": m.temporaries,
        "code": m.code,
        "total": m.total(),
    })
}

/// 1.2 k, 3.4 M, 5.6 G.
fn short(n: f64) -> String {
    let units = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")];
    match units.iter().find(|(scale, _)| n >= *scale) {
        Some((scale, unit)) => format!("{:.1}{unit}", n / scale),
        None => format!("{n}"),
    }
}

/// All programs that were new to the session as a table: where, why, how large, times, whether XLA compiled them or the
/// disk had them, memory and arithmetic.
pub fn compiles_bundle() -> Bundle {
    let all = compilations();
    if all.is_empty() {
        return Bundle::text("nothing was compiled yet").passing();
    }
    let head = [
        "#",
        "at",
        "for",
        "ops",
        "trace ms",
        "lower ms",
        "compile ms",
        "from",
        "hits",
        "memory",
        "flops",
        "why",
        "look at",
    ];
    let row = |c: &Compilation| -> Vec<String> {
        let ms = |d: std::time::Duration| format!("{:.1}", d.as_secs_f64() * 1e3);
        vec![
            c.number.to_string(),
            location(c.site),
            c.cause.name().into(),
            c.nodes.to_string(),
            ms(c.trace),
            ms(c.lower),
            ms(c.compile),
            if c.origin == Origin::Disk { "disk" } else { "XLA" }.into(),
            c.hits().map_or("–".into(), |n| n.to_string()),
            c.memory.map_or("–".into(), |m| units::bytes(m.total())),
            c.flops.map_or("–".into(), short),
            c.why.as_ref().map_or("first", |w| w.class.name()).into(),
            c.why.as_ref().map_or(String::new(), |w| location(w.at)),
        ]
    };
    let rows: Vec<Vec<String>> = std::iter::once(head.map(str::to_owned).to_vec()).chain(all.iter().map(row)).collect();
    let number = |column: usize| matches!(column, 0 | 3..=6 | 8..=10);
    let width = |column: usize| rows.iter().map(|r| r[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut text = String::new();
    let mut table = Table::new("font-family:monospace");
    for (i, row) in rows.iter().enumerate() {
        let side = |(column, cell): (usize, &String)| {
            if number(column) { Cell::text(cell).right() } else { Cell::text(cell).left() }
        };
        let cells = row.iter().enumerate().map(side);
        if i == 0 {
            table.head(cells)
        } else {
            table.row(cells)
        }
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let w = widths[column];
            let _ = if number(column) { write!(line, "{cell:>w$}  ") } else { write!(line, "{cell:<w$}  ") };
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    let total: f64 = all.iter().map(|c| c.compile.as_secs_f64()).sum();
    let disk = all.iter().filter(|c| c.origin == Origin::Disk).count();
    let hits = metrics::CACHED_COMPILE.value();
    let sum = format!(
        "{} compiled, {disk} from the disk, in {total:.2} s; {hits} later {} found {} program in memory",
        all.len() - disk,
        plural(hits, "run"),
        if hits == 1 { "its" } else { "their" }
    );
    let _ = writeln!(text, "{sum}");
    Bundle::html(format!("{}<div>{sum}</div>", table.html()), text).passing()
}

/// All compilations as a JSON array.
pub fn compiles_json() -> String {
    compilations().iter().map(Compilation::value).collect::<Value>().to_string()
}

/// A sync as one JSON object.
pub fn event_json(e: &SyncEvent) -> String {
    let event = json!({
        "number": e.number,
        "cause": e.cause.name(),
        "site": place(e.at),
        "nodes": e.nodes,
        "parameters": e.parameters,
        "outputs": e.outputs,
        "donated": e.donated,
        "copied_bytes": e.copied,
        "origin": e.origin.name(),
        "trace_us": micros(e.trace),
        "lower_us": micros(e.lower),
        "compile_us": micros(e.compile),
        "execute_us": micros(e.execute),
        "hash": format!("{:032x}", e.hash),
        "device": e.device,
    });
    event.to_string()
}

/// What was healed, as a list.
pub fn healed_bundle() -> Bundle {
    let all = healed();
    if all.is_empty() {
        return Bundle::text("nothing was healed: no attribute changed between otherwise equal programs").passing();
    }
    let mut places: Vec<(String, Vec<String>)> = Vec::new();
    for h in &all {
        let (place, number) = (format!("{} at {}", h.op, location(h.at)), format!("#{}", h.compilation));
        match places.iter_mut().find(|(p, _)| *p == place) {
            Some((_, numbers)) if numbers.contains(&number) => {}
            Some((_, numbers)) => numbers.push(number),
            None => places.push((place, vec![number])),
        }
    }
    let compilations = |n: &[String]| format!("compilation{} {}", if n.len() == 1 { "" } else { "s" }, n.join(", "));
    let lines: Vec<String> = places.iter().map(|(place, n)| format!("{place} ({})", compilations(n))).collect();
    let items: Vec<String> = lines.iter().map(|l| format!("<li>{}</li>", escape_html(l))).collect();
    Bundle::html(format!("<ul>{}</ul>", items.join("")), format!("{}\n", lines.join("\n"))).passing()
}

/// What was healed, as a JSON array.
pub fn healed_json() -> String {
    let one = |h: &Healing| json!({ "op": h.op, "site": place(h.at), "compilation": h.compilation });
    healed().iter().map(one).collect::<Value>().to_string()
}
