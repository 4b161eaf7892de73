//! Where time went, as a picture that zooms, with a drawing for pages without scripts and a table for terminals.
use super::picture::{self, INK, fresh_id, script, script_safe};
use crate::insight::Class;
use crate::insight::timeline::{Lane, Ribbon, Span, Timeline};
use crate::json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;
use xlazy_core::run::Origin;
use xlazy_mime::{Bundle, count, escape_html, units};

const SCRIPT: &str = include_str!("timeline.js");

fn colour(s: &Span) -> &'static str {
    match s.lane {
        Lane::Cell => "#7f7f7f",
        Lane::Trace => "#8c6bb1",
        Lane::Lower => "#b58b5a",
        Lane::Compile => class_colour(s.class),
        Lane::Execute => "#3a9e5c",
        Lane::ToDevice | Lane::FromDevice => "#4878d0",
        Lane::Batches => "#6d9f9b",
        Lane::LoaderWait => "#c46210",
    }
}

/// What compiled for the first time is grey: there was nothing to save. The rest is coloured by its cause.
fn class_colour(class: Option<Class>) -> &'static str {
    match class {
        None => "#9a9a9a",
        Some(Class::Shape) => "#d62728",
        Some(Class::Dtype) => "#e377c2",
        Some(Class::Constant | Class::Index) => "#ff7f0e",
        Some(Class::Structure | Class::ControlFlow | Class::Mode) => "#9467bd",
        Some(Class::Roots | Class::Aliasing | Class::EarlyRead) => "#bc8f00",
        Some(_) => "#8c564b",
    }
}

fn end(spans: &[Span]) -> f64 {
    spans.iter().map(|s| microseconds(s.start + s.length)).fold(0.0, f64::max)
}

fn microseconds(d: Duration) -> f64 {
    d.as_nanos() as f64 / 1e3
}

pub(crate) fn bundle(timeline: &Timeline) -> Bundle {
    if timeline.spans.is_empty() {
        return Bundle::text("nothing was measured yet: run a cell that does something with tensors").passing();
    }
    let text = text(timeline);
    let id = fresh_id("timeline");
    let still = picture::still(&still(&timeline.spans), "a timeline");
    let ribbons: String = timeline.ribbons.iter().map(ribbon).collect();
    let html = format!(
        "<div id=\"{id}\" style=\"line-height:1.35\"><div data-still=\"1\" style=\"overflow:auto\">{still}</div>{ribbons}{}</div>\
         <script>{}(\"{id}\",{});</script>",
        legend(&timeline.spans),
        script(SCRIPT),
        script_safe(&data(&timeline.spans).to_string())
    );
    Bundle::html(html, text).passing()
}

fn data(spans: &[Span]) -> Value {
    let round = |us: f64| (us * 100.0).round() / 100.0;
    let one = |s: &Span| {
        let at = s.at.as_ref().map_or(String::new(), |at| format!(" · {at}"));
        let (start, length) = (round(microseconds(s.start)), round(microseconds(s.length)));
        json!([s.lane as usize, start, length, format!("{}{at}", s.name), colour(s)])
    };
    json!({
        "lanes": Lane::ALL.map(Lane::name),
        "end": end(spans),
        "spans": spans.iter().map(one).collect::<Value>(),
    })
}

const WIDTH: f64 = 960.0;
const LEFT: f64 = 130.0;
const ROW: f64 = 22.0;

/// All of it at once. What is narrower than a point and over another is left out.
fn still(spans: &[Span]) -> String {
    let (end, height) = (end(spans).max(1.0), 24.0 + Lane::ALL.len() as f64 * ROW);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" fill=\"{INK}\" font-family=\"ui-monospace,monospace\" font-size=\"11\">{}<text x=\"{LEFT}\" y=\"12\">0</text>\
         <text x=\"{WIDTH}\" y=\"12\" text-anchor=\"end\">{}</text>",
        picture::card(WIDTH, height),
        units::time(Duration::from_secs_f64(end / 1e6))
    );
    let mut ends = [f64::NEG_INFINITY; Lane::ALL.len()];
    for (i, lane) in Lane::ALL.iter().enumerate() {
        let _ = write!(out, "<text x=\"0\" y=\"{}\">{}</text>", 36.0 + i as f64 * ROW, lane.name());
    }
    for s in spans {
        let lane = s.lane as usize;
        let x = LEFT + microseconds(s.start) / end * (WIDTH - LEFT);
        let width = (microseconds(s.length) / end * (WIDTH - LEFT)).max(1.0);
        if x + width <= ends[lane] + 0.3 && width <= 1.0 {
            continue;
        }
        ends[lane] = x + width;
        let _ = write!(
            out,
            "<rect x=\"{x:.1}\" y=\"{}\" width=\"{width:.1}\" height=\"{}\" fill=\"{}\" fill-opacity=\".85\"><title>{} · {}</title></rect>",
            24.0 + lane as f64 * ROW,
            ROW - 5.0,
            colour(s),
            escape_html(&s.name),
            units::time(s.length)
        );
    }
    out + "</svg>"
}

fn legend(spans: &[Span]) -> String {
    let mut classes: Vec<Option<Class>> = Vec::new();
    for s in spans.iter().filter(|s| s.lane == Lane::Compile) {
        if !classes.contains(&s.class) {
            classes.push(s.class);
        }
    }
    let one = |c: &Option<Class>| {
        let name = c.map_or("first of its kind", Class::name);
        format!("<span style=\"border-left:10px solid {};padding-left:5px\">{name}</span> &#160; ", class_colour(*c))
    };
    let all: String = classes.iter().map(one).collect();
    if all.is_empty() { all } else { format!("<div style=\"font-size:.8em;opacity:.85\">compiled: {all}</div>") }
}

/// A loop's steps: one stroke each, as high as the step was long, red where it compiled.
fn ribbon(r: &Ribbon) -> String {
    const MOST: usize = 480;
    let skip = r.steps.len().saturating_sub(MOST);
    let steps = &r.steps[skip..];
    let longest = steps.iter().map(|s| s.1).max().unwrap_or_default().as_secs_f64().max(1e-9);
    let width = (WIDTH / steps.len() as f64).min(12.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} 26\" width=\"{WIDTH}\" height=\"26\">"
    );
    for (i, (origin, time)) in steps.iter().enumerate() {
        let height = (time.as_secs_f64() / longest * 24.0).max(1.5);
        let colour = if *origin == Origin::Compiled { "#d62728" } else { "#3a9e5c" };
        let _ = write!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>",
            i as f64 * width,
            25.0 - height,
            (width - 0.6).max(0.6)
        );
    }
    if let Some(at) = r.paid_at.filter(|at| (skip + 1..=r.steps.len()).contains(at)) {
        let x = (at - skip) as f64 * width;
        let _ = write!(out, "<path d=\"M{x:.1} 0V26\" stroke=\"#888\" stroke-dasharray=\"3 2\"/>");
    }
    let told = sentence(r);
    let drawn = picture::still(&(out + "</svg>"), &told);
    format!("<div style=\"font-size:.85em;margin-top:6px\">{}</div>{drawn}", escape_html(&told))
}

fn sentence(r: &Ribbon) -> String {
    let compiled = r.steps.iter().filter(|s| s.0 == Origin::Compiled).count();
    let head = format!(
        "{}: {} ({}), {} of them compiled, {} in all",
        r.at,
        count(r.steps.len(), "run"),
        r.cause,
        compiled,
        units::time(r.compile)
    );
    match r.paid_at {
        _ if compiled == 0 => head,
        Some(n) if n <= r.steps.len() => format!("{head}; by step {n} the runs had taken as long as compiling"),
        Some(n) => format!("{head}; the runs will have taken as long as compiling by step {n}"),
        None => head,
    }
}

fn text(timeline: &Timeline) -> String {
    let mut of: BTreeMap<u64, [Duration; Lane::ALL.len()]> = BTreeMap::new();
    for s in &timeline.spans {
        of.entry(s.cell).or_default()[s.lane as usize] += s.length;
    }
    let loads = timeline.spans.iter().any(|s| s.lane == Lane::LoaderWait);
    let mut out =
        String::from("cell        wall     trace     lower   compile       run  to device  from device  host code");
    out += if loads { "  loader waited for\n" } else { "\n" };
    for (cell, times) in of {
        let name = if cell == 0 { "–".to_owned() } else { cell.to_string() };
        // Batches are made beside the rest, and waiting for them is the host's.
        let [wall, trace, lower, compile, run, to, from, _, waited] = times;
        let rest = trace + lower + compile + run + to + from;
        let show = |d: Duration| if d.is_zero() { "–".to_owned() } else { units::time(d) };
        let _ = write!(
            out,
            "{name:<4} {:>11} {:>9} {:>9} {:>9} {:>9} {:>10} {:>12} {:>10}",
            show(wall),
            show(trace),
            show(lower),
            show(compile),
            show(run),
            show(to),
            show(from),
            show(wall.saturating_sub(rest))
        );
        if loads {
            let _ = write!(out, " {:>18}", show(waited));
        }
        out.push('\n');
    }
    for s in timeline.spans.iter().filter(|s| s.lane == Lane::Compile) {
        let at = s.at.as_ref().map_or(String::new(), |at| format!(", {at}"));
        let _ = writeln!(out, "compiled {} in {}{at}", s.name, units::time(s.length));
    }
    timeline.ribbons.iter().for_each(|r| out += &(sentence(r) + "\n"));
    out.trim_end().to_owned()
}
