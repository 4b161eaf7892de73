//! `%autosave`: a checkpoint every few minutes.
use super::{Magic, Scope, Session};
use crate::engine::{Event, Reply};

pub struct Autosave;

impl Magic for Autosave {
    fn name(&self) -> &'static str {
        "autosave"
    }

    fn usage(&self) -> &'static str {
        "%autosave [--force] 5min\n%autosave off\n%autosave   (tells)"
    }

    fn summary(&self) -> &'static str {
        "saves the variables after a cell when so much time has passed"
    }

    fn help(&self) -> &'static str {
        r#"Saves a checkpoint after a cell, when the time has passed since the last one and a cell has run since; never while
a cell runs. The file is autosave.safetensors, or NOTEBOOK-autosave.safetensors where Jupyter names the notebook, and
`%checkpoint load autosave` loads it; a second notebook without a name has autosave-2.safetensors. A save that fails is
reported and leaves the file of before as it is.

What an earlier session saved stays as autosave-previous.safetensors. After a crash it waits until what was lost is
there again, by `%recover` or from the file; `--force` goes on without it.

```
%autosave 5min
%autosave off
```"#
    }

    fn scope(&self) -> Scope {
        Scope::Line
    }

    fn run(&self, args: &str, _body: Option<&str>, session: &dyn Session, events: &mut dyn FnMut(Event)) -> Reply {
        session.autosave(args, events)
    }
}
