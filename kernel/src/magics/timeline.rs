//! `%timeline`: where time went.
use super::answer;
use super::magic::{Magic, Reads, Scope, Takes};
use xlazy_mime::Question;

pub const TIMELINE: Magic = Magic {
    name: "timeline",
    aliases: &[],
    usage: "%timeline [--json]\n%timeline --perfetto FILE",
    summary: "where time went: cells, tracing, compiling, running, transfers on one line",
    help: r#"Draws what was measured: cells, tracing and cutting, lowering, compiling, running, transfers, each on a lane of its
own. The wheel zooms, dragging moves. A compilation has the colour of its cause. Runs of one line are a ribbon, with the
step by which they have taken as long as compiling did. Batches that a loader's workers make are a lane, and what the
loop waited for them is another. In a terminal it is a table by cells; what is left of a cell's time is its own
code.

It shows what is measured anyway - of each kind the last 1024 - so that nothing is paid while nobody looks. Of small
programs that run often one run in 64 is timed, which stands for the others.

--perfetto writes Chrome's trace events to a file, for ui.perfetto.dev and XProf.

```
for _ in 0..100 { step(&mut model); }
%timeline
%timeline --perfetto trace.json
```"#,
    scope: Scope::Line,
    takes: Takes::Rest,
    json: true,
    reads: Reads::Bare,
    run: |call, events| match call.args.strip_prefix("--perfetto") {
        None if !call.args.is_empty() => {
            call.magic.misused(&format!("%timeline takes `--perfetto FILE`, not `{}`.", call.args))
        }
        Some(file) if file.trim().is_empty() || !file.starts_with(char::is_whitespace) => {
            call.magic.misused("%timeline --perfetto takes the name of a file.")
        }
        _ => answer::ask(Question::Timeline, call, events),
    },
};
