//! `%quiet`: the line under each cell, off or on.
use super::answer;
use super::magic::{Call, Magic, Reads, Scope, Takes};
use crate::engine::{Event, Reply};
use crate::footer;
use xlazy_mime::Bundle;

pub const QUIET: Magic = Magic {
    name: "quiet",
    aliases: &[],
    usage: "%quiet [on|off]",
    summary: "turn off the line under each cell, or on again",
    help: r#"Under every cell that did something with tensors stands one line: rustc's time, tracing, what was
compiled and what came from memory or the disk, execution, transfers, device memory; and why, when a
program was compiled again. While something takes long it says what. Behind it are the syncs of the
cell, with cause and line. %quiet turns it off, %quiet off on again.

```
%quiet
```"#,
    scope: Scope::Line,
    takes: Takes::Words(&["on", "off"]),
    json: false,
    reads: Reads::Never,
    run,
};

fn run(call: &Call, events: &mut dyn FnMut(Event)) -> Reply {
    footer::set_quiet(call.args != "off");
    answer::show(Ok(Bundle::text(if footer::is_quiet() { "quiet" } else { "not quiet" })), events)
}
