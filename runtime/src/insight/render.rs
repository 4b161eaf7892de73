//! Compilations and their explanations as sentences, as text, as HTML and as JSON.
use super::explain::count;
use super::report::{Class, Compilation, Difference, Explanation, Healing};
use super::{compilations, healed};
use crate::display::json::{list, string};
use crate::display::place::{location, quote};
use std::fmt::Write;
use xlazy_mime::{Bundle, escape_html};

impl Explanation {
    /// One readable sentence: what happened, what differs, where, what to do.
    pub fn sentence(&self) -> String {
        let at = location(self.at);
        let what = match self.class {
            Class::Eviction => format!("the very same program was compiled before and evicted from the cache ({at})"),
            Class::EarlyRead => {
                format!("a value was read before the barrier ({at}), which runs a part of the step on its own")
            }
            Class::ControlFlow => format!("user code took another way after it had read a value ({at})"),
            Class::Mode => format!("training and evaluation are two programs (switched at {at})"),
            _ => match self.differences.first() {
                Some(d) => d.sentence(&at),
                None => format!("no difference was found in the nodes ({at})"),
            },
        };
        let more = match self.differences.len() + self.hidden {
            0 | 1 => String::new(),
            2 => ", and 1 more difference".into(),
            n => format!(", and {} more differences", n - 1),
        };
        let head = if self.warm_up { "Warm-up, the second step compiles" } else { "Compiled again" };
        format!("{head} ({}): {what}{more}. Fix: {}.", self.class.name(), self.fix)
    }
}

impl Difference {
    fn sentence(&self, at: &str) -> String {
        match (self.was.as_str(), self.now.as_str()) {
            ("none", now) => format!("a new {} {now} ({at})", self.what),
            (was, "none") => format!("the {} {was} is gone ({at})", self.what),
            (was, now) => format!("{} ({at}) is {now}, was {was}", self.what),
        }
    }

    /// Both sides, each with its place and the source line there.
    fn sides(&self) -> [(&str, String, Option<String>); 2] {
        [(&self.was, self.was_at), (&self.now, self.now_at)]
            .map(|(text, at)| (text.as_str(), at.map(location).unwrap_or_default(), at.and_then(quote)))
    }
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
    fn html(&self, what: &str) -> String {
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
            format!(
                "<td style=\"text-align:left;border-left:3px solid {colour};padding-left:6px\">{}<br>\
                 <span style=\"opacity:.6\">{}</span>{line}</td>",
                escape_html(text),
                escape_html(at)
            )
        };
        format!(
            "<tr><td style=\"text-align:left\">{}</td>{}{}</tr>",
            escape_html(what),
            cell(was.0, &was.1, &lines[0], "#c0504d"),
            cell(now.0, &now.1, &lines[1], "#4f9a4f")
        )
    }
}

impl Compilation {
    /// What is said of it in one line.
    pub fn sentence(&self) -> String {
        match &self.why {
            Some(why) => why.sentence(),
            None => format!(
                "First program of its kind: {}, compiled for the {} at {}.",
                count(self.nodes, "op"),
                self.cause.name(),
                location(self.site)
            ),
        }
    }

    /// The sentence, the differences with both source lines, and the graph's difference, as text.
    pub fn text(&self) -> String {
        let mut out = format!("#{} {}\n", self.number, self.sentence());
        if let Some(why) = &self.why {
            let _ = writeln!(out, "  compared with compilation #{}", why.compared_with);
            for d in &why.differences {
                let _ = writeln!(out, "  {}", d.what);
                for (sign, (text, at, line)) in ["-", "+"].iter().zip(d.sides()) {
                    let line = line.map_or(String::new(), |l| format!("  | {l}"));
                    let at = if at.is_empty() { at } else { format!("  [{at}]{line}") };
                    let _ = writeln!(out, "    {sign} {text}{at}");
                }
            }
            if why.hidden > 0 {
                let _ = writeln!(out, "  and {} more", why.hidden);
            }
            if !why.graph.is_empty() {
                out.push_str("  in the graph\n");
            }
            for d in &why.graph {
                for (sign, (text, at, _)) in ["-", "+"].iter().zip(d.sides()).filter(|(_, side)| side.0 != "none") {
                    let _ = writeln!(out, "    {sign} {text}  [{at}]");
                }
            }
        }
        let _ = writeln!(
            out,
            "  {} ops, {} parameters, {} results; lowered in {:.1} ms, compiled in {:.1} ms",
            self.nodes,
            self.parameters,
            self.outputs,
            self.lower.as_secs_f64() * 1e3,
            self.compile.as_secs_f64() * 1e3
        );
        out
    }

    /// The same as HTML, in colours that work on light and on dark ground.
    pub fn html(&self) -> String {
        let mut out = format!("<div><b>#{}</b> {}", self.number, escape_html(&self.sentence()));
        if let Some(why) = &self.why {
            let head = "<tr><th></th><th style=\"text-align:left\">was</th><th style=\"text-align:left\">now</th></tr>";
            let _ = write!(out, "<table style=\"font-family:monospace\">{head}");
            why.differences.iter().for_each(|d| out.push_str(&d.html(&d.what)));
            if why.hidden > 0 {
                let _ = write!(out, "<tr><td>and {} more</td></tr>", why.hidden);
            }
            out.push_str("</table>");
            if !why.graph.is_empty() {
                let _ = write!(
                    out,
                    "<details><summary>in the graph</summary><table style=\"font-family:monospace\">{head}"
                );
                why.graph.iter().for_each(|d| out.push_str(&d.html("")));
                out.push_str("</table></details>");
            }
        }
        out.push_str("</div>");
        out
    }

    /// Text and HTML together.
    pub fn bundle(&self) -> Bundle {
        Bundle::html(self.html(), self.text())
    }

    /// As one JSON object.
    pub fn json(&self) -> String {
        let place = |p: super::Place| format!("{{\"file\":{},\"line\":{}}}", string(p.file()), p.line());
        let optional = |p: &Option<super::Place>| p.map_or("null".to_owned(), place);
        let why = self.why.as_ref().map_or("null".to_owned(), |w| {
            let difference = |d: &Difference| {
                format!(
                    "{{\"what\":{},\"was\":{},\"now\":{},\"was_at\":{},\"now_at\":{}}}",
                    string(&d.what),
                    string(&d.was),
                    string(&d.now),
                    optional(&d.was_at),
                    optional(&d.now_at)
                )
            };
            format!(
                "{{\"class\":\"{}\",\"at\":{},\"differences\":{},\"hidden\":{},\"graph\":{},\"fix\":{},\
                 \"compared_with\":{},\"healed\":{},\"warm_up\":{}}}",
                w.class.name(),
                place(w.at),
                list(w.differences.iter().map(difference)),
                w.hidden,
                list(w.graph.iter().map(difference)),
                string(&w.fix),
                w.compared_with,
                w.healed,
                w.warm_up
            )
        });
        format!(
            "{{\"number\":{},\"cause\":\"{}\",\"site\":{},\"nodes\":{},\"parameters\":{},\"outputs\":{},\"lower_us\":{},\
             \"compile_us\":{},\"hash\":\"{:032x}\",\"sentence\":{},\"why\":{why}}}",
            self.number,
            self.cause.name(),
            place(self.site),
            self.nodes,
            self.parameters,
            self.outputs,
            self.lower.as_micros(),
            self.compile.as_micros(),
            self.hash,
            string(&self.sentence())
        )
    }
}

/// All compilations as a table: number, place, cause, ops, times, reason.
pub fn compiles_bundle() -> Bundle {
    let all = compilations();
    if all.is_empty() {
        return Bundle::text("nothing was compiled yet");
    }
    let mut text = String::from("  #  ops  params  results  lower ms  compile ms  why            at\n");
    let mut html = String::from(
        "<table style=\"font-family:monospace\"><tr><th>#</th><th>ops</th><th>parameters</th><th>results</th><th>lower ms</th>\
         <th>compile ms</th><th>for</th><th>why</th><th>at</th></tr>",
    );
    for c in &all {
        let why = c.why.as_ref().map_or("first", |w| w.class.name());
        let at = location(c.why.as_ref().map_or(c.site, |w| w.at));
        let (lower, compile) = (c.lower.as_secs_f64() * 1e3, c.compile.as_secs_f64() * 1e3);
        let _ = writeln!(
            text,
            "{:>3} {:>4} {:>7} {:>8} {lower:>9.1} {compile:>11.1}  {why:<14} {at}",
            c.number, c.nodes, c.parameters, c.outputs
        );
        let _ = write!(
            html,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{lower:.1}</td><td>{compile:.1}</td><td>{}</td><td>{why}</td>\
             <td>{}</td></tr>",
            c.number,
            c.nodes,
            c.parameters,
            c.outputs,
            c.cause.name(),
            escape_html(&at)
        );
    }
    html.push_str("</table>");
    Bundle::html(html, text)
}

/// All compilations as a JSON array.
pub fn compiles_json() -> String {
    list(compilations().iter().map(Compilation::json))
}

/// What was healed, as a list.
pub fn healed_bundle() -> Bundle {
    let all = healed();
    if all.is_empty() {
        return Bundle::text("nothing was healed: no attribute changed between otherwise equal programs");
    }
    let line = |h: &Healing| format!("{} at {} (compilation #{})", h.op, location(h.at), h.compilation);
    let lines: Vec<String> = all.iter().map(line).collect();
    let items: Vec<String> = lines.iter().map(|l| format!("<li>{}</li>", escape_html(l))).collect();
    Bundle::html(format!("<ul>{}</ul>", items.join("")), format!("{}\n", lines.join("\n")))
}

/// What was healed, as a JSON array.
pub fn healed_json() -> String {
    let one = |h: &Healing| {
        format!(
            "{{\"op\":\"{}\",\"file\":{},\"line\":{},\"compilation\":{}}}",
            h.op,
            string(h.at.file()),
            h.at.line(),
            h.compilation
        )
    };
    list(healed().iter().map(one))
}
