//! `%time` and `%%time`: how long code takes, and what it made the runtime do.
use super::answer;
use super::magic::{Call, Magic, Reads, Scope, Takes};
use crate::engine::{Event, Reply};
use crate::footer::Seen;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use xlazy_mime::{Bundle, units};

pub const TIME: Magic = Magic {
    name: "time",
    aliases: &[],
    usage: "%time [--json] CODE\n%%time [--json]   (the rest of the cell is timed)",
    summary: "times a line or a cell, and counts what it made the runtime do",
    help: r#"Runs the code as any cell, shows its result, and then the wall time from start to end, rustc included, with
the compiles, executions and transfers that happened on the way. Variables that the code binds stay.
Lazy tensors are only recorded: time something that reads or syncs to see what computing them costs.

```
%time let y = x.matmul(&w).to_vec::<f32>();
```

```
%%time
for _ in 0..10 { step(&mut model); }
xlazy::sync();
```"#,
    scope: Scope::Both,
    takes: Takes::Rest,
    json: true,
    reads: Reads::Never,
    run,
};

fn run(call: &Call, events: &mut dyn FnMut(Event)) -> Reply {
    let code = match call.body {
        Some(body) if call.args.is_empty() => body,
        Some(_) => {
            let what = format!("%%time takes no code on its own line: `{}` belongs below it.", call.args);
            return call.magic.misused(&what);
        }
        None => call.args,
    };
    if code.trim().is_empty() {
        return call.magic.misused("%time needs code to time.");
    }
    let (mut tally, mut seen) = (Tally::default(), Seen::default());
    let start = Instant::now();
    let reply = call.host.run_code(code, &mut |event| {
        if let Event::Insight { kind, json } = &event {
            tally.add(kind, json);
            seen.add(kind, json);
        }
        events(event);
    });
    let wall = start.elapsed();
    answer::display(if call.json { tally.json(wall) } else { said(wall, &reply, &seen) }, events);
    reply
}

/// The wall time, and what a cell's line says of the rest.
fn said(wall: Duration, reply: &Reply, seen: &Seen) -> Bundle {
    let ended = match reply {
        Reply::Ok => "",
        Reply::Error(_) => " (the code failed)",
        Reply::Interrupted => " (interrupted)",
    };
    let line = seen.line().map(|line| format!(" · {line}")).unwrap_or_default();
    Bundle::text(format!("wall time: {}{ended}{line}", units::measured(wall)))
}

/// How often each kind of event happened, and how long those took that say so.
#[derive(Default)]
struct Tally(BTreeMap<String, (u64, f64)>);

impl Tally {
    fn add(&mut self, kind: &str, json: &str) {
        // What is said while something takes long is no work.
        if kind == "live" {
            return;
        }
        let data = serde_json::from_str(json).unwrap_or(serde_json::Value::Null);
        let entry = self.0.entry(kind.to_owned()).or_default();
        entry.0 += 1;
        entry.1 += milliseconds(&data);
    }

    fn json(&self, wall: Duration) -> Bundle {
        let did: serde_json::Map<String, serde_json::Value> =
            self.0.iter().map(|(k, (n, ms))| (k.clone(), serde_json::json!({"count": n, "ms": ms}))).collect();
        answer::json(&serde_json::json!({"wall_ms": wall.as_secs_f64() * 1e3, "did": did}))
    }
}

/// How long an event says it took: its `ms`, a cell's `wall_ms`, or the sum of its parts (`lower_ms`, `compile_ms`…).
fn milliseconds(event: &serde_json::Value) -> f64 {
    let parts = event.as_object().into_iter().flatten().filter(|(key, _)| key.ends_with("_ms"));
    ["ms", "wall_ms"]
        .iter()
        .find_map(|key| event.get(key)?.as_f64())
        .unwrap_or_else(|| parts.filter_map(|(_, v)| v.as_f64()).sum())
}
