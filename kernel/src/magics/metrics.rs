//! `%metrics`: compiles, executions, transfers and counters of the session, in torch_xla's report format.
use super::answer;
use super::magic::{Magic, Reads, Scope, Takes};
use xlazy_mime::Question;

pub const METRICS: Magic = Magic {
    name: "metrics",
    aliases: &[],
    usage: "%metrics [--json]\n%metrics clear",
    summary: "what the session compiled, ran and transferred so far",
    help: r#"Shows the session's metrics under torch_xla's names: CompileTime, ExecuteTime, transfer times, bytes moved, and
counters such as CachedCompile and UncachedCompile. `clear` sets them all back to zero, so that the next report
covers only what comes after it.

```
%metrics clear
let y = (&x * 2.0).sum();
println!("{y}");
%metrics
```"#,
    scope: Scope::Line,
    takes: Takes::Words(&["clear"]),
    json: true,
    reads: Reads::Unless("clear"),
    run: |call, events| answer::ask(Question::Metrics, call, events),
};
