//! `%checkpoint`: the session's variables in a file, and back.
use super::magic::{Call, Magic, Reads, Scope, Takes};
use crate::engine::{Event, Reply};

pub const CHECKPOINT: Magic = Magic {
    name: "checkpoint",
    aliases: &[],
    usage: "%checkpoint save [--force] NAME\n%checkpoint load NAME\n%checkpoint delete NAME\n%checkpoint   (lists those there are)",
    summary: "keeps the variables in a file, and loads them again",
    help: r#"Saves every variable in NAME.safetensors beside the notebook (a path is one, too). The file is written whole or not
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
```"#,
    scope: Scope::Line,
    takes: Takes::Verbs(&["save", "load", "delete"]),
    json: false,
    reads: Reads::Never,
    run,
};

fn run(call: &Call, events: &mut dyn FnMut(Event)) -> Reply {
    call.host.checkpoint(call.args, events)
}
