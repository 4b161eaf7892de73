//! `%quiet`: the line under each cell, off or on.
use super::{Magic, Scope, Session, answer};
use crate::engine::{Event, Reply};
use crate::footer;
use xlazy_mime::Bundle;

pub struct Quiet;

impl Magic for Quiet {
    fn name(&self) -> &'static str {
        "quiet"
    }

    fn usage(&self) -> &'static str {
        "%quiet [on|off]"
    }

    fn summary(&self) -> &'static str {
        "turn off the line under each cell, or on again"
    }

    fn help(&self) -> &'static str {
        r#"Under every cell that did something with tensors stands one line: rustc's time, tracing, what was
compiled and what came from memory or the disk, execution, transfers, device memory; and why, when a
program was compiled again. While something takes long it says what. Behind it are the syncs of the
cell, with cause and line. %quiet turns it off, %quiet off on again.

```
%quiet
```"#
    }

    fn scope(&self) -> Scope {
        Scope::Line
    }

    fn run(&self, args: &str, _body: Option<&str>, _session: &dyn Session, events: &mut dyn FnMut(Event)) -> Reply {
        match args {
            "" | "on" => footer::set_quiet(true),
            "off" => footer::set_quiet(false),
            other => return answer::usage(self, &format!("%quiet does not know `{other}`.")),
        }
        answer::show(Ok(Bundle::text(if footer::is_quiet() { "quiet" } else { "not quiet" })), events)
    }
}
