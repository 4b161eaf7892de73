//! `%time` and `%%time`: how long code takes, and what it made the runtime do.
use super::{Magic, Scope, Session, answer};
use crate::engine::{Event, Reply};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use xlazy_mime::Bundle;

pub struct Time;

impl Magic for Time {
    fn name(&self) -> &'static str {
        "time"
    }

    fn usage(&self) -> &'static str {
        "%time [--json] CODE\n%%time [--json]   (the rest of the cell is timed)"
    }

    fn summary(&self) -> &'static str {
        "times a line or a cell, and counts what it made the runtime do"
    }

    fn help(&self) -> &'static str {
        r#"Runs the code as any cell, shows its result, and then the wall time from start to end, rustc included, with
the compiles, executions and transfers that happened on the way. Variables that the code binds stay.
Lazy tensors are only recorded: time something that reads or syncs to see what computing them costs.

```
%time let y = x.matmul(&w).to_vec::<f32>();
```

```
%%time
for _ in 0..10 { step(&mut model); }
xlazy::sync();
```"#
    }

    fn scope(&self) -> Scope {
        Scope::Both
    }

    fn run(&self, args: &str, body: Option<&str>, session: &dyn Session, events: &mut dyn FnMut(Event)) -> Reply {
        let (json, code) = answer::json_flag(args);
        let code = match body {
            Some(body) if code.is_empty() => body,
            Some(_) => {
                return answer::usage(
                    self,
                    &format!("%%time takes no code on its own line: `{code}` belongs below it."),
                );
            }
            None => code,
        };
        if code.trim().is_empty() {
            return answer::usage(self, "%time needs code to time.");
        }
        let mut tally = Tally::default();
        let start = Instant::now();
        let reply = session.run_code(code, &mut |event| {
            if let Event::Insight { kind, json } = &event {
                tally.add(kind, json);
            }
            events(event);
        });
        let wall = start.elapsed();
        answer::display(if json { tally.json(wall) } else { tally.text(wall, &reply) }, events);
        reply
    }
}

/// How often each kind of event happened, and how long those took that say so.
#[derive(Default)]
struct Tally(BTreeMap<String, (u64, f64)>);

impl Tally {
    fn add(&mut self, kind: &str, json: &str) {
        let data = serde_json::from_str(json).unwrap_or(serde_json::Value::Null);
        let entry = self.0.entry(kind.to_owned()).or_default();
        entry.0 += 1;
        entry.1 += milliseconds(&data);
    }

    fn text(&self, wall: Duration, reply: &Reply) -> Bundle {
        let ended = match reply {
            Reply::Ok => "",
            Reply::Error(_) => " (the code failed)",
            Reply::Interrupted => " (interrupted)",
        };
        let mut text = format!("wall time: {}{ended}", human(wall));
        for (kind, (count, ms)) in &self.0 {
            text.push_str(&format!(" · {kind} ×{count}"));
            if *ms > 0.0 {
                text.push_str(&format!(" {}", human(Duration::from_secs_f64(ms / 1e3))));
            }
        }
        Bundle::text(text)
    }

    fn json(&self, wall: Duration) -> Bundle {
        let did: serde_json::Map<String, serde_json::Value> =
            self.0.iter().map(|(k, (n, ms))| (k.clone(), serde_json::json!({"count": n, "ms": ms}))).collect();
        answer::json(&serde_json::json!({"wall_ms": wall.as_secs_f64() * 1e3, "did": did}))
    }
}

/// How long an event says it took: its `ms`, or the sum of its parts (`lower_ms`, `compile_ms`…).
fn milliseconds(event: &serde_json::Value) -> f64 {
    let parts = event.as_object().into_iter().flatten().filter(|(key, _)| key.ends_with("_ms"));
    event.get("ms").and_then(|v| v.as_f64()).unwrap_or_else(|| parts.filter_map(|(_, v)| v.as_f64()).sum())
}

/// A duration in the unit that leaves it readable: `870 µs`, `12.4 ms`, `3.21 s`, `2 min 5 s`.
fn human(d: Duration) -> String {
    let s = d.as_secs_f64();
    match s {
        _ if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        _ if s < 1.0 => format!("{:.1} ms", s * 1e3),
        _ if s < 60.0 => format!("{s:.2} s"),
        _ => format!("{} min {} s", d.as_secs() / 60, d.as_secs() % 60),
    }
}
