//! `%metrics`: compiles, executions, transfers and counters of the session, in torch_xla's report format.
use super::{Magic, Scope, Session, answer};
use crate::engine::{Event, Reply};

pub struct Metrics;

impl Magic for Metrics {
    fn name(&self) -> &'static str {
        "metrics"
    }

    fn usage(&self) -> &'static str {
        "%metrics [--json]\n%metrics clear"
    }

    fn summary(&self) -> &'static str {
        "what the session compiled, ran and transferred so far"
    }

    fn help(&self) -> &'static str {
        r#"Shows the session's metrics under torch_xla's names: CompileTime, ExecuteTime, transfer times, bytes moved, and
counters such as CachedCompile and UncachedCompile. `clear` sets them all back to zero, so that the next report
covers only what comes after it.

```
%metrics clear
let y = (&x * 2.0).sum();
println!("{y}");
%metrics
```"#
    }

    fn scope(&self) -> Scope {
        Scope::Line
    }

    fn only_reads(&self, args: &str) -> bool {
        args != "clear"
    }

    fn run(&self, args: &str, _body: Option<&str>, session: &dyn Session, events: &mut dyn FnMut(Event)) -> Reply {
        match args {
            "" | "--json" | "clear" => answer::show(session.call("metrics", args), events),
            other => answer::usage(self, &format!("%metrics does not know `{other}`.")),
        }
    }
}
