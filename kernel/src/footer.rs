//! One quiet line under every cell that did something: where the time went, what was compiled and why.
use crate::engine::{Completeness, Completions, Engine, Event, Failure, Reply, Request};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use xlazy_mime::{Bundle, escape_html};

static QUIET: AtomicBool = AtomicBool::new(false);

/// Turns the line off or on again (`%quiet`).
pub fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::SeqCst);
}

/// Whether the line is off.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::SeqCst)
}

/// An engine whose cells end with the line. Front ends for people use it; tests of cells use the engine itself.
pub struct WithFooter<E>(pub E);

impl<E: Engine> Engine for WithFooter<E> {
    fn execute(&self, request: &Request, events: &mut dyn FnMut(Event)) -> Reply {
        let mut seen = Seen::default();
        let reply = self.0.execute(request, &mut |event| {
            if let Event::Insight { kind, json } = &event {
                seen.add(kind, json);
            }
            events(event);
        });
        if !request.silent
            && !is_quiet()
            && let Some(bundle) = seen.bundle()
        {
            events(Event::Display { bundle, id: Some(format!("xlazy-footer-{}", request.cell)), update: false });
        }
        reply
    }
    fn execute_beside(&self, request: &Request, events: &mut dyn FnMut(Event)) -> Option<Reply> {
        self.0.execute_beside(request, events)
    }
    fn evaluate(&self, expression: &str) -> Result<Bundle, Failure> {
        self.0.evaluate(expression)
    }
    fn complete(&self, code: &str, cursor: usize) -> Completions {
        self.0.complete(code, cursor)
    }
    fn inspect(&self, code: &str, cursor: usize, detail: u8) -> Option<Bundle> {
        self.0.inspect(code, cursor, detail)
    }
    fn is_complete(&self, code: &str) -> Completeness {
        self.0.is_complete(code)
    }
    fn interrupt(&self) -> bool {
        self.0.interrupt()
    }
    fn listen(&self, late: Box<dyn FnMut(Event) + Send>) {
        self.0.listen(late);
    }
    fn restart(&self) -> Result<(), Failure> {
        self.0.restart()
    }
    fn shutdown(&self) {
        self.0.shutdown();
    }
}

/// What the events of one cell said.
#[derive(Default)]
struct Seen {
    rustc_ms: f64,
    cells: Vec<Value>,
}

impl Seen {
    fn add(&mut self, kind: &str, json: &str) {
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

    fn compilations(&self) -> impl Iterator<Item = &Value> {
        self.cells.iter().filter_map(|c| c["compilations"].as_array()).flatten()
    }

    /// `None` for a cell that did nothing with tensors.
    fn bundle(&self) -> Option<Bundle> {
        if self.cells.is_empty() {
            return None;
        }
        let mut parts = vec![format!("rustc {}", milliseconds(self.rustc_ms))];
        let (compiled, hits, syncs) = (self.sum("compiled"), self.sum("hits"), self.sum("syncs"));
        if compiled > 0.0 {
            let time = self.sum("lower_ms") + self.sum("compile_ms");
            parts.push(format!("compiled {compiled} in {}", milliseconds(time)));
        }
        if hits > 0.0 {
            parts.push(format!("{hits} from the cache"));
        }
        match syncs > 0.0 {
            true => parts.push(format!("ran {syncs} in {}", milliseconds(self.sum("execute_ms")))),
            false => parts.push("nothing ran".into()),
        }
        let (up, down) = (self.sum("to_device_bytes"), self.sum("from_device_bytes"));
        if up > 0.0 {
            parts.push(format!("{} to the device", bytes(up)));
        }
        if down > 0.0 {
            parts.push(format!("{} back", bytes(down)));
        }
        let line = parts.join(" · ");
        // A program that was compiled again is news; a first one is detail.
        let (again, first): (Vec<&Value>, Vec<&Value>) = self.compilations().partition(|c| !c["why"].is_null());
        let sentence = |c: &&Value| c["sentence"].as_str().unwrap_or_default().to_owned();
        let news: Vec<String> = again.iter().map(sentence).collect();
        let detail: Vec<String> = first.iter().map(sentence).collect();
        let mut text = line.clone();
        news.iter().for_each(|n| text.push_str(&format!("\n{n}")));
        let paragraphs =
            |items: &[String]| -> String { items.iter().map(|i| format!("<div>{}</div>", escape_html(i))).collect() };
        let news_html = match news.is_empty() {
            true => String::new(),
            false => {
                format!("<div style=\"border-left:3px solid #d08a2e;padding-left:6px\">{}</div>", paragraphs(&news))
            }
        };
        let html = format!(
            "<div style=\"font-size:85%;opacity:.75\">{news_html}<details><summary>{}</summary>{}<div>host time {} · \
             {} tensors</div></details></div>",
            escape_html(&line),
            paragraphs(&detail),
            milliseconds(self.sum("wall_ms")),
            self.sum("tensors"),
        );
        Some(Bundle::html(html, text))
    }
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or(0.0)
}

fn milliseconds(ms: f64) -> String {
    match ms {
        _ if ms < 0.95 => format!("{:.0} µs", ms * 1e3),
        _ if ms < 10.0 => format!("{ms:.1} ms"),
        _ if ms < 1000.0 => format!("{ms:.0} ms"),
        _ => format!("{:.2} s", ms / 1e3),
    }
}

fn bytes(n: f64) -> String {
    match n {
        _ if n < 1024.0 => format!("{n} B"),
        _ if n < 1048576.0 => format!("{:.1} kB", n / 1024.0),
        _ => format!("{:.1} MB", n / 1048576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::Seen;

    #[test]
    fn a_cell_without_tensors_has_no_line_and_news_is_in_the_text() {
        let mut seen = Seen::default();
        seen.add("rustc", r#"{"definitions_ms":0,"statements_ms":52.4}"#);
        assert!(seen.bundle().is_none());
        seen.add(
            "cell",
            r#"{"wall_ms":40,"tensors":3,"syncs":2,"compiled":1,"hits":1,"lower_ms":0.2,"compile_ms":30,"execute_ms":0.1,
                "to_device_bytes":16,"from_device_bytes":4,
                "compilations":[{"sentence":"Compiled again (shape) at <1>.","why":{"class":"shape"}}]}"#,
        );
        let bundle = seen.bundle().unwrap();
        assert_eq!(
            bundle.plain(),
            "rustc 52 ms · compiled 1 in 30 ms · 1 from the cache · ran 2 in 100 µs · 16 B to the device · 4 B back\n\
             Compiled again (shape) at <1>."
        );
        assert!(bundle.get("text/html").unwrap().contains("at &lt;1&gt;"));
    }
}
