//! `%%step`: a cell's stages, one by one.
use super::answer;
use super::magic::{Magic, Reads, Scope, Takes};
use crate::engine::Reply;
use xlazy_mime::Question;

pub const STEP: Magic = Magic {
    name: "step",
    aliases: &[],
    usage: "%step CODE\n%%step   (the rest of the cell is shown step by step)",
    summary: "runs a cell and shows its stages: record, cut, lower, compile, run, read back",
    help: r#"Runs the code as any cell, and shows for each sync what became of the graph: what was recorded, what of it was cut
out, the StableHLO that it was lowered to, the HLO that XLA made of it, what the run was given, what was read back.
In a notebook there are buttons, and without scripts or styles all stages stand one below the other; in a terminal
Enter goes on.

```
%%step
let y = (&x * 2.0).exp().sum();
y.item()
```"#,
    scope: Scope::Both,
    takes: Takes::Rest,
    json: true,
    reads: Reads::Never,
    run: |call, events| {
        let code = match call.body {
            Some(body) if call.args.is_empty() => body,
            Some(_) => {
                let what = format!("%%step takes no code on its own line: `{}` belongs below it.", call.args);
                return call.magic.misused(&what);
            }
            None => call.args,
        };
        if code.trim().is_empty() {
            return call.magic.misused("%step needs code to show.");
        }
        if let Err(failure) = call.host.call(Question::Stages, "begin") {
            return Reply::Error(failure);
        }
        let reply = call.host.run_code(code, events);
        let ending = if call.json { "end --json" } else { "end" };
        match (answer::show(call.host.call(Question::Stages, ending), events), reply) {
            (shown, Reply::Ok) => shown,
            (_, ended) => ended,
        }
    },
};
