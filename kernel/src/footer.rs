//! One quiet line under every cell that did something: where the time went, what was compiled and why.
use crate::engine::{Completeness, Completions, Engine, Event, Failure, Reply, Request};
use serde_json::Value;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use xlazy_mime::units::{count, plural, thousands};
use xlazy_mime::{Bundle, Cell, Table, escape_html, prose_html, units};

static QUIET: AtomicBool = AtomicBool::new(false);

/// Turns the line off or on again (`%quiet`).
pub fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::SeqCst);
}

/// Whether the line is off.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::SeqCst)
}

/// What no other line is called: cells that are not counted have one number, and one page may be of several sessions.
fn fresh_id() -> String {
    static SESSION: LazyLock<uuid::Uuid> = LazyLock::new(uuid::Uuid::new_v4);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("xlazy-footer-{}-{}", SESSION.simple(), COUNT.fetch_add(1, Ordering::Relaxed) + 1)
}

/// An engine whose cells end with the line. Front ends for people use it; tests of cells use the engine itself.
pub struct WithFooter<E> {
    pub engine: E,
    /// Whether the line stands there while something takes long, and changes; a document wants only the last.
    pub live: bool,
}

impl<E: Engine> Engine for WithFooter<E> {
    fn execute(&self, request: &Request, events: &mut dyn FnMut(Event)) -> Reply {
        let told = !request.silent && !is_quiet();
        let id = fresh_id();
        let mut seen = Seen::default();
        let mut live = Live::default();
        let reply = self.engine.execute(request, &mut |event| {
            match &event {
                Event::Insight { kind, json } if kind == "live" => {
                    if let Some(text) = live_line(json).filter(|_| self.live && told) {
                        events(line_event(Bundle::html(quiet_html(&escape_html(&text)), text), &id, live.shown()));
                    }
                }
                Event::Insight { kind, json } => seen.add(kind, json),
                Event::ClearOutput { .. } => live = Live::default(),
                _ => live.buried |= live.shown,
            }
            events(event);
        });
        // `%quiet` may have been what the cell said.
        let bundle = seen.bundle().filter(|_| told && !is_quiet());
        match (live, bundle) {
            (Live { shown: true, buried: false }, Some(bundle)) => events(line_event(bundle, &id, true)),
            (Live { shown, .. }, bundle) => {
                if shown {
                    // Other output stands below it: the line goes where it belongs, under everything.
                    events(line_event(Bundle::text(""), &id, true));
                }
                if let Some(bundle) = bundle {
                    let id = if shown { format!("{id}-end") } else { id };
                    events(line_event(bundle, &id, false));
                }
            }
        }
        reply
    }
    fn execute_beside(&self, request: &Request, events: &mut dyn FnMut(Event)) -> Option<Reply> {
        self.engine.execute_beside(request, events)
    }
    fn evaluate(&self, expression: &str) -> Result<Bundle, Failure> {
        self.engine.evaluate(expression)
    }
    fn complete(&self, code: &str, cursor: usize) -> Completions {
        self.engine.complete(code, cursor)
    }
    fn inspect(&self, code: &str, cursor: usize, detail: u8) -> Option<Bundle> {
        self.engine.inspect(code, cursor, detail)
    }
    fn is_complete(&self, code: &str) -> Completeness {
        self.engine.is_complete(code)
    }
    fn interrupt(&self) -> bool {
        self.engine.interrupt()
    }
    fn listen(&self, take: Box<dyn FnMut(Event) + Send>) {
        self.engine.listen(take);
    }
    fn stream(&self, on: bool) {
        self.engine.stream(on);
    }
    fn widget(&self, message: &Value) -> Option<Value> {
        self.engine.widget(message)
    }
    fn restart(&self) -> Result<(), Failure> {
        self.engine.restart()
    }
    fn shutdown(&self) {
        self.engine.shutdown();
    }
}

/// What became of the line while the cell ran.
#[derive(Clone, Copy, Default)]
struct Live {
    shown: bool,
    /// Something was shown after it.
    buried: bool,
}

impl Live {
    /// Whether it was shown before; now it is.
    fn shown(&mut self) -> bool {
        std::mem::replace(&mut self.shown, true)
    }
}

fn line_event(bundle: Bundle, id: &str, update: bool) -> Event {
    Event::Display { bundle, id: Some(id.to_owned()), update }
}

/// What takes long at the moment, as a line: `compiling 12,431 ops for `loss` (sync at cell 3, line 8): 4 s…`.
pub fn live_line(json: &str) -> Option<String> {
    let value: Value = serde_json::from_str(json).ok()?;
    let text = |key: &str| value[key].as_str().unwrap_or_default();
    let nodes = value["nodes"].as_u64()?;
    let ops = format!("{} {}", thousands(nodes), plural(nodes, "op"));
    let name = value["name"].as_str().map(|n| format!(" for `{n}`")).unwrap_or_default();
    let seconds = value["ms"].as_f64()? / 1e3;
    let digits = if seconds < 10.0 { 1 } else { 0 };
    let what = match text("what") {
        "estimate" => return Some(format!("compiling for {}: {seconds:.digits$} s…", text("name"))),
        "compile" => format!("compiling {ops}{name}"),
        "pending" => {
            let rounds = "`sync()` or an optimizer's `optimizer_step(&mut opt)` in each round of a loop runs it";
            return Some(format!("{ops} are recorded and nothing has run them (at {}): {rounds}", text("at")));
        }
        _ => format!("waiting for the device: {ops} {} running", if nodes == 1 { "is" } else { "are" }),
    };
    let advice = value["advice"].as_str().map(|a| format!(" {a}")).unwrap_or_default();
    Some(format!("{what} ({} at {}): {seconds:.digits$} s…{advice}", text("cause"), text("at")))
}

/// In a colour of the page, so that it reads on light and dark ground.
fn quiet_html(inner: &str) -> String {
    format!("<div style=\"font-size:85%;opacity:.75\">{inner}</div>")
}

/// From so many steps on it is a loop.
const LOOP: f64 = 10.0;

/// What the events of one cell said.
#[derive(Default)]
pub struct Seen {
    rustc_ms: f64,
    cells: Vec<Value>,
}

impl Seen {
    pub fn add(&mut self, kind: &str, json: &str) {
        let Ok(value) = serde_json::from_str::<Value>(json) else { return };
        match kind {
            "rustc" => self.rustc_ms += number(&value, "definitions_ms") + number(&value, "statements_ms"),
            "cell" => self.cells.push(value),
            _ => {}
        }
    }

    fn sum(&self, key: &str) -> f64 {
        self.cells.iter().map(|c| number(c, key)).sum()
    }

    /// What is said of compilations: the sentences that are news, or those that are not.
    fn told(&self, news: bool) -> Vec<String> {
        let all = self.cells.iter().filter_map(|c| c["told"].as_array()).flatten();
        let wanted = all.filter(|t| t["news"].as_bool() == Some(news));
        wanted.map(|t| t["sentence"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// What the compiler, the runtime and the device did, in a line.
    pub fn line(&self) -> Option<String> {
        if self.cells.is_empty() {
            return (self.rustc_ms > 0.0).then(|| format!("rustc {}", milliseconds(self.rustc_ms)));
        }
        let mut parts = vec![format!("rustc {}", milliseconds(self.rustc_ms))];
        let sum = |key: &str| self.sum(key);
        if sum("trace_ms") > 0.0 {
            parts.push(format!("traced in {}", milliseconds(sum("trace_ms"))));
        }
        if sum("compiled") > 0.0 {
            let time = sum("lower_ms") + sum("compile_ms");
            parts.push(format!("compiled {} in {}", sum("compiled"), milliseconds(time)));
        }
        if sum("disk_hits") > 0.0 {
            parts.push(format!("{} from the disk in {}", sum("disk_hits"), milliseconds(sum("disk_ms"))));
        }
        if sum("aot_compiled") > 0.0 {
            parts.push(format!("compiled {} for a TPU in {}", sum("aot_compiled"), milliseconds(sum("aot_ms"))));
        }
        if sum("memory_hits") > 0.0 {
            parts.push(format!("{} from memory", sum("memory_hits")));
        }
        match sum("syncs") > 0.0 {
            true => parts.push(format!("ran {} in {}", sum("syncs"), milliseconds(sum("execute_ms") + sum("wait_ms")))),
            false => parts.push("nothing ran".into()),
        }
        // What the device did meanwhile is told before it.
        let waited = sum("loader_wait_ms");
        if waited >= 100.0 && waited >= sum("wall_ms") / 5.0 {
            parts.push(format!("waited {} for the loader", milliseconds(waited)));
        }
        let (up, down) = (sum("to_device_bytes"), sum("from_device_bytes"));
        if up + down > 0.0 {
            let ways = [(up, "to the device"), (down, "back")];
            let moved: Vec<String> =
                ways.iter().filter(|(n, _)| *n > 0.0).map(|(n, way)| format!("{} {way}", bytes(*n))).collect();
            let time = milliseconds(sum("to_device_ms") + sum("from_device_ms"));
            parts.push(format!("{} in {time}", moved.join(", ")));
        }
        if sum("copied_bytes") > 0.0 {
            parts.push(format!("{} that something holds copied, not donated", bytes(sum("copied_bytes"))));
        }
        let delta = sum("device_bytes_delta");
        if delta != 0.0 {
            parts.push(format!("device memory {}{}", if delta > 0.0 { "+" } else { "−" }, bytes(delta.abs())));
        }
        parts.extend(self.loop_summary());
        Some(parts.join(" · "))
    }

    /// `None` for a cell that did nothing with tensors.
    fn bundle(&self) -> Option<Bundle> {
        let line = self.line().filter(|_| !self.cells.is_empty())?;
        let (news, detail) = (self.told(true), self.told(false));
        let mut text = line.clone();
        news.iter().for_each(|n| text.push_str(&format!("\n{n}")));
        let paragraphs =
            |items: &[String]| -> String { items.iter().map(|i| format!("<div>{}</div>", prose_html(i))).collect() };
        let news_html = match news.is_empty() {
            true => String::new(),
            false => {
                format!("<div style=\"border-left:3px solid #d08a2e;padding-left:6px\">{}</div>", paragraphs(&news))
            }
        };
        let html = format!(
            "{news_html}<details><summary>{}</summary>{}{}<div>host time {} · {} · {} on the device</div></details>",
            escape_html(&line),
            self.runs_html(),
            paragraphs(&detail),
            milliseconds(self.sum("wall_ms")),
            count(self.sum("tensors") as usize, "tensor"),
            bytes(self.cells.last().map_or(0.0, |c| number(c, "device_bytes"))),
        );
        let html = quiet_html(&html);
        Some(Bundle::html(html, text))
    }

    /// The cell's loop, if it has one: how long a step took, and after how many steps running had taken as long as compiling,
    /// which is when compiling has paid for itself.
    fn loop_summary(&self) -> Option<String> {
        let steps = |r: &Value| ["compiled", "memory_hits", "disk_hits"].iter().map(|key| number(r, key)).sum::<f64>();
        let barrier = |r: &Value| matches!(r["cause"].as_str(), Some("sync" | "optimizer step" | "loader barrier"));
        let all = self.cells.iter().flat_map(|c| c["runs"].as_array().into_iter().flatten().map(move |r| (c, r)));
        let loops = all.filter(|(_, r)| barrier(r) && steps(r) >= LOOP);
        let (cell, run) = loops.max_by(|a, b| steps(a.1).total_cmp(&steps(b.1)))?;
        let compiling = |v: &Value| number(v, "lower_ms") + number(v, "compile_ms");
        if compiling(run) == 0.0 {
            return None;
        }
        let step = (number(cell, "wall_ms") - compiling(cell)).max(0.001) / steps(run);
        let pays = (compiling(run) / step).ceil();
        let as_long = thousands(pays as u64);
        Some(format!("{} steps of {}; compiling took as long as {as_long} of them", steps(run), milliseconds(step)))
    }

    /// What was run, and why: one row for each cause, line and program size.
    fn runs_html(&self) -> String {
        let runs: Vec<&Value> = self.cells.iter().filter_map(|c| c["runs"].as_array()).flatten().collect();
        if runs.is_empty() {
            return String::new();
        }
        let cell = |(i, text): (usize, String)| {
            let cell = if i < 2 { Cell::text(&text).left() } else { Cell::text(&text).right() };
            cell.style("padding:0 8px")
        };
        let head = ["ran for", "at", "ops", "compiled", "memory", "disk", "trace", "lower", "compile", "execute"];
        let mut table = Table::new("color:inherit;background:none");
        table.head(head.map(str::to_owned).into_iter().enumerate().map(cell));
        for r in runs {
            let text = |key: &str| r[key].as_str().unwrap_or_default().to_owned();
            let count = |key: &str| number(r, key).to_string();
            let time = |key: &str| if number(r, key) > 0.0 { milliseconds(number(r, key)) } else { "–".into() };
            let mut cells = vec![text("cause"), text("at"), count("nodes")];
            cells.extend(["compiled", "memory_hits", "disk_hits"].map(count));
            cells.extend(["trace_ms", "lower_ms", "compile_ms", "execute_ms"].map(time));
            table.row(cells.into_iter().enumerate().map(cell));
        }
        table.html()
    }
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(0.0)
}

fn milliseconds(ms: f64) -> String {
    units::time(Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default())
}

fn bytes(n: f64) -> String {
    units::bytes(n as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_without_tensors_has_no_line_and_news_is_in_the_text() {
        let mut seen = Seen::default();
        seen.add("rustc", r#"{"definitions_ms":0,"statements_ms":52.4}"#);
        assert!(seen.bundle().is_none());
        seen.add(
            "cell",
            r#"{"wall_ms":40,"tensors":3,"syncs":3,"compiled":1,"memory_hits":1,"disk_hits":1,"trace_ms":0.02,"lower_ms":0.2,
                "compile_ms":30,"disk_ms":4,"execute_ms":0.1,"wait_ms":0.2,"to_device_ms":0.01,"from_device_ms":0.01,"to_device_bytes":16,
                "from_device_bytes":4,"device_bytes":2048,"device_bytes_delta":-1536,
                "runs":[{"cause":"sync","at":"cell 1, line 2","nodes":7,"compiled":1,"memory_hits":1,"disk_hits":1,"trace_ms":0.02,
                "lower_ms":0.2,"compile_ms":30,"execute_ms":0.1}],
                "told":[{"sentence":"Compiled again (shape) at <1>.","news":true},{"sentence":"Another shape.","news":false}]}"#,
        );
        let bundle = seen.bundle().unwrap();
        assert_eq!(
            bundle.plain(),
            "rustc 52 ms · traced in 20 µs · compiled 1 in 30 ms · 1 from the disk in 4.0 ms · 1 from memory · ran 3 in \
             300 µs · 16 B to the device, 4 B back in 20 µs · device memory −1.5 kB\n\
             Compiled again (shape) at <1>."
        );
        let html = bundle.get("text/html").unwrap();
        assert!(
            html.contains("at &lt;1&gt;") && html.contains(">sync</td>") && html.contains("2.0 kB on the device"),
            "{html}"
        );
    }

    #[test]
    fn a_loop_says_when_compiling_has_paid_for_itself() {
        let line = |steps: u64, wall: u64| {
            let mut seen = Seen::default();
            let cell = format!(
                r#"{{"wall_ms":{wall},"syncs":{steps},"compiled":1,"memory_hits":{},"lower_ms":1,"compile_ms":119,"runs":[
                    {{"cause":"read","compiled":0,"memory_hits":999}},
                    {{"cause":"sync","compiled":1,"memory_hits":{},"lower_ms":1,"compile_ms":119}}]}}"#,
                steps - 1,
                steps - 1
            );
            seen.add("cell", &cell);
            seen.bundle().unwrap().plain().to_owned()
        };
        let paid = line(400, 320);
        assert!(paid.ends_with(" · 400 steps of 500 µs; compiling took as long as 240 of them"), "{paid}");
        let unpaid = line(100, 170);
        assert!(unpaid.ends_with(" · 100 steps of 500 µs; compiling took as long as 240 of them"), "{unpaid}");
        assert!(!line(9, 170).contains("steps of"));
    }

    /// Does what it is told, in events.
    struct Fake(fn(&mut dyn FnMut(Event)));

    impl Engine for Fake {
        fn execute(&self, _: &Request, events: &mut dyn FnMut(Event)) -> Reply {
            (self.0)(events);
            Reply::Ok
        }
        fn evaluate(&self, _: &str) -> Result<Bundle, Failure> {
            Ok(Bundle::default())
        }
        fn complete(&self, _: &str, _: usize) -> Completions {
            Completions::default()
        }
        fn inspect(&self, _: &str, _: usize, _: u8) -> Option<Bundle> {
            None
        }
        fn is_complete(&self, _: &str) -> Completeness {
            Completeness::Complete
        }
        fn interrupt(&self) -> bool {
            false
        }
        fn restart(&self) -> Result<(), Failure> {
            Ok(())
        }
        fn shutdown(&self) {}
    }

    fn insight(kind: &str, json: &str) -> Event {
        Event::Insight { kind: kind.into(), json: json.into() }
    }

    fn live(ms: u64) -> Event {
        let json = format!(
            r#"{{"what":"compile","nodes":12431,"name":"loss","cause":"sync","cell":3,"line":8,"at":"cell 3, line 8","ms":{ms}}}"#
        );
        insight("live", &json)
    }

    fn shown(live: bool, cell: fn(&mut dyn FnMut(Event))) -> Vec<String> {
        let mut out = Vec::new();
        let engine = WithFooter { engine: Fake(cell), live };
        engine.execute(&Request { cell: 3, ..Request::default() }, &mut |event| match event {
            Event::Display { bundle, id, update } => {
                // What no other line is called is not the same twice.
                let id = id.map_or("", |id| if id.ends_with("-end") { "3-end" } else { "3" });
                out.push(format!("{}{id}: {}", if update { "update " } else { "" }, bundle.plain()));
            }
            Event::Stream { text, .. } => out.push(text),
            _ => {}
        });
        out
    }

    #[test]
    fn no_two_lines_have_one_name() {
        let ids = std::cell::RefCell::new(std::collections::HashSet::new());
        let engine = WithFooter { engine: Fake(|events| events(insight("cell", DONE))), live: false };
        for _ in 0..3 {
            engine.execute(&Request { cell: 3, ..Request::default() }, &mut |event| {
                if let Event::Display { id: Some(id), .. } = event {
                    assert!(ids.borrow_mut().insert(id));
                }
            });
        }
        assert_eq!(ids.borrow().len(), 3);
    }

    const DONE: &str = r#"{"syncs":1,"execute_ms":2}"#;

    #[test]
    fn the_line_is_live_and_ends_under_everything() {
        let first = "compiling 12,431 ops for `loss` (sync at cell 3, line 8)";
        let end = "rustc 0 µs · ran 1 in 2.0 ms";
        let alone = |events: &mut dyn FnMut(Event)| {
            events(live(800));
            events(live(12_300));
            events(insight("cell", DONE));
        };
        assert_eq!(
            shown(true, alone),
            [format!("3: {first}: 0.8 s…"), format!("update 3: {first}: 12 s…"), format!("update 3: {end}")]
        );
        assert_eq!(shown(false, alone), [format!("3: {end}")]);
        let estimate = r#"{"what":"estimate","nodes":0,"name":"v5e:2x2 at -O2","cause":null,"at":"","ms":2345}"#;
        assert_eq!(live_line(estimate).unwrap(), "compiling for v5e:2x2 at -O2: 2.3 s…");
        let buried = |events: &mut dyn FnMut(Event)| {
            events(live(800));
            events(Event::Stream { stderr: false, text: "epoch 1".into() });
            events(insight("cell", DONE));
        };
        assert_eq!(
            shown(true, buried),
            [format!("3: {first}: 0.8 s…"), "epoch 1".into(), "update 3: ".into(), format!("3-end: {end}")]
        );
    }
}
