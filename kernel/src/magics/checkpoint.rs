//! `%checkpoint`: the session's variables in a file, and back.
use super::{Magic, Scope, Session, answer};
use crate::engine::{Event, Reply};

pub struct Checkpoint;

impl Magic for Checkpoint {
    fn name(&self) -> &'static str {
        "checkpoint"
    }

    fn usage(&self) -> &'static str {
        "%checkpoint save [--force] NAME\n%checkpoint load NAME\n%checkpoint delete NAME\n%checkpoint   (lists those there are)"
    }

    fn summary(&self) -> &'static str {
        "keeps the variables in a file, and loads them again"
    }

    fn help(&self) -> &'static str {
        r#"Saves every variable in NAME.safetensors beside the notebook (a path is one, too). The file is written whole or not
at all. Python reads its tensors with `safetensors.numpy.load_file`.

Kept are tensors (with dtype and requires_grad; pending ones are read, and stay pending), modules and optimizers (their
`state_dict`), numbers, text, and std's vectors, options, tuples, arrays, sets and maps of these. Types of your own are
kept by their `#[derive(serde::Serialize, serde::Deserialize)]` where the notebook has `:dep serde = { version = "1",
features = ["derive"] }` and `:dep serde_json = "1"`. What cannot be kept is named, with the reason.

A save never takes the last copy of something: what was saved before stays as NAME-previous.safetensors, and a save that
has no variables, or would write over a file that is no checkpoint, waits for --force.

Loading makes the variables anew, or replaces them. Modules and optimizers are loaded into the variable of that name,
as torch's load_state_dict does: run the cell that makes it first. A parameter that is there is loaded in place, so that
its optimizer goes on with it. Gradients are not kept, and each variable gets a tensor of its own. A damaged file is
refused and changes nothing, and nothing that a file holds is run: names and types in it are parsed, or refused.

```
%checkpoint save epoch3
%checkpoint load epoch3
%checkpoint
```"#
    }

    fn scope(&self) -> Scope {
        Scope::Line
    }

    fn run(&self, args: &str, _body: Option<&str>, session: &dyn Session, events: &mut dyn FnMut(Event)) -> Reply {
        let verb = args.split_whitespace().next().unwrap_or_default();
        if !matches!(verb, "" | "save" | "load" | "delete") {
            return answer::usage(self, &format!("%checkpoint takes save, load or delete, not `{verb}`."));
        }
        session.checkpoint(args, events)
    }
}
