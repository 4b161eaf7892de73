//! `%autosave`: a checkpoint every few minutes.
use super::magic::{Call, Magic, Reads, Scope, Takes};
use crate::engine::{Event, Reply};

pub const AUTOSAVE: Magic = Magic {
    name: "autosave",
    aliases: &[],
    usage: "%autosave [--force] 5min\n%autosave off\n%autosave   (tells)",
    summary: "saves the variables after a cell when so much time has passed",
    help: r#"Saves a checkpoint after a cell, when the time has passed since the last one and a cell has run since; never while
a cell runs. The file is autosave.safetensors, or NOTEBOOK-autosave.safetensors where Jupyter names the notebook, and
`%checkpoint load autosave` loads it; a second notebook without a name has autosave-2.safetensors. A save that fails is
reported and leaves the file of before as it is.

What an earlier session saved stays as autosave-previous.safetensors. After a crash it waits until what was lost is
there again, by `%recover` or from the file; `--force` goes on without it.

```
%autosave 5min
%autosave off
```"#,
    scope: Scope::Line,
    takes: Takes::Rest,
    json: false,
    reads: Reads::Never,
    run,
};

fn run(call: &Call, events: &mut dyn FnMut(Event)) -> Reply {
    call.host.autosave(call.args, events)
}
