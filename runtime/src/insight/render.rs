//! Compilations and their explanations as sentences, as text, as HTML and as JSON.
use super::report::{Class, Compilation, Difference, Explanation, Healing};
use super::{compilations, healed};
use crate::display::json::{list, string};
use crate::display::place::location;
use std::fmt::Write;
use xlazy_mime::{Bundle, escape_html};

impl Explanation {
    /// One readable sentence: what happened, where, what differs, what to do.
    pub fn sentence(&self) -> String {
        let head = match self.class {
            Class::Eviction => "the very same program was compiled before and evicted from the cache".into(),
            Class::EarlyRead => "a value was read before the barrier, which runs a part of the step on its own".into(),
            Class::ControlFlow => "user code took another way after it had read a value".into(),
            _ => match self.differences.first() {
                Some(d) => d.sentence(),
                None => "no difference was found in the nodes".into(),
            },
        };
        let more = match self.differences.len() {
            0 | 1 => String::new(),
            2 => " (and 1 more difference)".into(),
            n => format!(" (and {} more differences)", n - 1),
        };
        format!("Compiled again ({}) at {}: {head}{more}. Fix: {}.", self.class.name(), location(self.at), self.fix)
    }
}

impl Difference {
    fn sentence(&self) -> String {
        match (self.was.as_str(), self.now.as_str()) {
            ("none", now) => format!("a new {} {now}", self.what),
            (was, "none") => format!("the {} {was} is gone", self.what),
            (was, now) => format!("{} is {now}, was {was}", self.what),
        }
    }

    fn places(&self) -> (String, String) {
        let place = |p: &Option<super::Place>| p.map(location).unwrap_or_default();
        (place(&self.was_at), place(&self.now_at))
    }
}

impl Compilation {
    /// What is said of it in one line.
    pub fn sentence(&self) -> String {
        match &self.why {
            Some(why) => why.sentence(),
            None => format!(
                "First program of its kind: {} ops, compiled for the {} at {}.",
                self.nodes,
                self.cause.name(),
                location(self.site)
            ),
        }
    }

    /// The sentence and the differences with both source lines, as text.
    pub fn text(&self) -> String {
        let mut out = format!("#{} {}\n", self.number, self.sentence());
        if let Some(why) = &self.why {
            let _ = writeln!(out, "  compared with compilation #{}", why.compared_with);
            for d in &why.differences {
                let (was_at, now_at) = d.places();
                let at = |p: String| if p.is_empty() { p } else { format!("  [{p}]") };
                let _ = writeln!(out, "  {}\n    - {}{}\n    + {}{}", d.what, d.was, at(was_at), d.now, at(now_at));
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
            out.push_str(
                "<table style=\"font-family:monospace\"><tr><th></th><th style=\"text-align:left\">was</th>\
                 <th style=\"text-align:left\">now</th></tr>",
            );
            for d in &why.differences {
                let (was_at, now_at) = d.places();
                let cell = |text: &str, at: &str, colour: &str| {
                    format!(
                        "<td style=\"text-align:left;border-left:3px solid {colour};padding-left:6px\">{}<br>\
                         <span style=\"opacity:.6\">{}</span></td>",
                        escape_html(text),
                        escape_html(at)
                    )
                };
                let _ = write!(
                    out,
                    "<tr><td style=\"text-align:left\">{}</td>{}{}</tr>",
                    escape_html(&d.what),
                    cell(&d.was, &was_at, "#c0504d"),
                    cell(&d.now, &now_at, "#4f9a4f")
                );
            }
            out.push_str("</table>");
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
            let differences: Vec<String> = w
                .differences
                .iter()
                .map(|d| {
                    format!(
                        "{{\"what\":{},\"was\":{},\"now\":{},\"was_at\":{},\"now_at\":{}}}",
                        string(&d.what),
                        string(&d.was),
                        string(&d.now),
                        optional(&d.was_at),
                        optional(&d.now_at)
                    )
                })
                .collect();
            format!(
                "{{\"class\":\"{}\",\"at\":{},\"differences\":[{}],\"fix\":{},\"compared_with\":{}}}",
                w.class.name(),
                place(w.at),
                differences.join(","),
                string(&w.fix),
                w.compared_with
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
