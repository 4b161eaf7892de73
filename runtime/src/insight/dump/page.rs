//! What is said of the programs of a run, as text, as JSON and as a page.
use super::kinds::{Program, Run};
use crate::insight::alike;
use crate::insight::render;
use crate::insight::report::{Compilation, Difference, Explanation};
use crate::json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use xlazy_core::text::{location, quote};
use xlazy_mime::{count, escape_html, prose_html};

impl Program {
    /// Where it is from and how large it is.
    fn first(&self) -> String {
        let ops = count(self.told.nodes, "op");
        let call = self.call.map_or(String::new(), |at| {
            let line = quote(at).map_or(String::new(), |line| format!(" | {line}"));
            format!(", called at {}{line}", location(at))
        });
        let runs = self.runs.filter(|n| *n > 1).map_or(String::new(), |n| format!(", {n} runs"));
        format!("{ops}{runs}{call}")
    }

    fn title(&self) -> String {
        let site = self.told.site;
        // Names that torch_xla gives to whatever it syncs: the line tells more.
        let nobodys = ["SyncTensorsGraph", "IrToHlo"].iter().any(|n| self.name.starts_with(n));
        match self.name.is_empty() || nobodys && site.file() != self.name {
            true => location(site),
            false => self.name.clone(),
        }
    }

    fn sentence(&self) -> String {
        match &self.told.why {
            Some(why) => why.sentence(),
            None => format!("First of its kind: {}.", self.first()),
        }
    }
}

impl Run {
    pub fn again(&self) -> impl Iterator<Item = &Program> {
        self.programs.iter().filter(|p| p.told.why.is_some())
    }

    /// `18 programs of 9 kinds, 7 of them compiled again: shape 4, dtype 3`
    fn summary(&self) -> String {
        let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
        for why in self.again().filter_map(|p| p.told.why.as_ref()) {
            *classes.entry(why.class.name()).or_default() += 1;
        }
        let mut classes: Vec<(&str, usize)> = classes.into_iter().collect();
        classes.sort_by_key(|(name, n)| (std::cmp::Reverse(*n), *name));
        let classes: Vec<String> = classes.into_iter().map(|(name, n)| format!("{name} {n}")).collect();
        let all = count(self.programs.len(), "program");
        match self.again().count() {
            0 => format!("{all}, none of them compiled again"),
            n => format!("{all} of {}, {n} of them compiled again: {}", count(self.kinds, "kind"), classes.join(", ")),
        }
    }

    /// The programs of each kind, in the order of the first of each: kinds of several, and those that were compiled once, which is
    /// no news.
    fn kinds(&self) -> [Vec<Vec<&Program>>; 2] {
        let mut kinds = vec![Vec::new(); self.kinds];
        self.programs.iter().for_each(|p| kinds[p.kind].push(p));
        let (several, once) = kinds.into_iter().partition(|kind: &Vec<&Program>| kind.len() > 1);
        [several, once]
    }

    /// What there is besides programs.
    fn rest(&self) -> Vec<String> {
        let mut all: Vec<String> = self.unread.iter().map(|why| format!("not read: {why}")).collect();
        if self.others > 0 {
            all.push(format!("besides: {}", count(self.others, "other file")));
        }
        all
    }

    pub fn text(&self) -> String {
        let mut out = format!("{}\n", self.summary());
        let [several, once] = self.kinds();
        for kind in several {
            let _ = writeln!(out, "\n{}: {}", kind[0].title(), count(kind.len(), "program"));
            let _ = writeln!(out, "  #{} {}", kind[0].told.number, kind[0].first());
            let told: Vec<Compilation> = kind[1..].iter().map(|p| p.told.clone()).collect();
            for said in alike::told(&told) {
                let numbers: Vec<String> = said.of.iter().map(|c| format!("#{}", c.number)).collect();
                let _ = writeln!(out, "  {} {}", numbers.join(", "), said.sentence);
                let program = kind.iter().find(|p| p.told.number == said.of[0].number);
                out.extend(program.iter().map(|p| format!("     {}\n", p.first())));
                out += &said.of[0].why.as_ref().map(sides).unwrap_or_default();
            }
        }
        if !once.is_empty() {
            let names: Vec<String> = once.iter().map(|kind| kind[0].title()).collect();
            let _ = writeln!(out, "\ncompiled once: {}", names.join(", "));
        }
        out.extend(self.rest().iter().map(|line| format!("{line}\n")));
        out
    }

    pub fn json(&self) -> Value {
        let one = |p: &Program| {
            let mut value = p.told.value();
            let more = json!({
                "name": p.name,
                "written": p.written,
                "kind": p.kind,
                "call": p.call.map(render::place),
                "runs": p.runs,
            });
            if let (Value::Object(value), Value::Object(more)) = (&mut value, more) {
                // What a text does not tell.
                for unknown in [
                    "origin",
                    "cause",
                    "trace_us",
                    "lower_us",
                    "compile_us",
                    "hits",
                    "memory",
                    "flops",
                    "device",
                    "unrolled",
                    "refused",
                ] {
                    value.remove(unknown);
                }
                value.extend(more);
                value.insert("sentence".into(), p.sentence().into());
            }
            value
        };
        json!({
            "programs": self.programs.iter().map(one).collect::<Vec<_>>(),
            "kinds": self.kinds,
            "compiled_again": self.again().count(),
            "unread": self.unread,
            "other_files": self.others,
        })
    }

    /// One page that needs nothing else.
    pub fn html(&self) -> String {
        let mut out = String::from(PAGE);
        let _ = write!(out, "<h1>Why programs were compiled again</h1><p>{}</p>", escape_html(&self.summary()));
        for kind in self.kinds().into_iter().flatten() {
            let open = if kind.len() > 1 { " open" } else { "" };
            let _ = write!(
                out,
                "<details{open}><summary>{}: {}</summary>",
                escape_html(&kind[0].title()),
                count(kind.len(), "program")
            );
            let section = |p: &Program, body: String| {
                let (first, from) = (escape_html(&p.first()), escape_html(&p.written));
                format!("<section>{body}<p class=\"from\">{first}<br>{from}</p></section>")
            };
            out += &section(kind[0], format!("<b>#{}</b> {}", kind[0].told.number, prose_html("First of its kind.")));
            // Equal differences once, with a count, as in the text.
            let again: Vec<Compilation> = kind[1..].iter().map(|p| p.told.clone()).collect();
            for said in alike::told(&again) {
                let Some(p) = kind.iter().find(|p| p.told.number == said.of[0].number) else { continue };
                let others = match &said.of[1..] {
                    [] => String::new(),
                    more => {
                        let numbers: Vec<String> = more.iter().map(|c| format!("#{}", c.number)).collect();
                        let sentence = prose_html(&said.sentence);
                        format!("<p><b>{} times</b>, also {}: {sentence}</p>", said.of.len(), numbers.join(", "))
                    }
                };
                out += &section(p, others + &p.told.html());
            }
            out.push_str("</details>");
        }
        out.extend(self.rest().iter().map(|line| format!("<p>{}</p>", escape_html(line))));
        out + "</body></html>\n"
    }
}

/// What differs, with the lines of both sides; each once, the first ones.
fn sides(why: &Explanation) -> String {
    /// More is in the page.
    const MOST: usize = 3;
    let mut all: Vec<&Difference> = Vec::new();
    for d in why.all().flat_map(|w| &w.differences) {
        let known = |o: &&Difference| {
            (&o.what, &o.was, &o.now, o.was_at, o.now_at) == (&d.what, &d.was, &d.now, d.was_at, d.now_at)
        };
        if !all.iter().any(known) {
            all.push(d);
        }
    }
    let mut out: String = all.iter().take(MOST).map(|d| d.lines("     ", 1)).map(|(of, sides)| of + &sides).collect();
    if all.len() + why.hidden > MOST {
        let _ = writeln!(out, "     and {} more (--html has them)", all.len() + why.hidden - MOST);
    }
    out
}

const PAGE: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
    content=\"width=device-width\"><title>Why programs were compiled again</title><style>\
    :root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em}\
    h1{font-size:1.4em}summary{font-size:1.1em;font-weight:600;cursor:pointer;margin:.6em 0}\
    section{margin:0 0 1.2em 1em}table{border-collapse:collapse;margin:.4em 0}td,th{padding:2px 10px;vertical-align:top}\
    code{font-family:ui-monospace,monospace}.from{opacity:.65;font-size:.9em;margin:.2em 0}</style></head><body>";
