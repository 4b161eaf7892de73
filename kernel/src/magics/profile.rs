//! `%%profile`: what the device did while a cell ran.
use super::answer;
use super::magic::{Magic, Reads, Scope, Takes};
use crate::engine::Reply;
use xlazy_mime::Question;

pub const PROFILE: Magic = Magic {
    name: "profile",
    aliases: &[],
    usage: "%%profile [--xspace FILE] [--json]   (the rest of the cell is measured)",
    summary: "measures what the device does while a cell runs: each instruction's time, with its lines",
    help: r#"Runs the code as any cell, with the profiler of the device's plugin on (PJRT's profiler extension), and lists the
instructions of the optimised program that ran: how often, for how long, and which lines they are of. Lines are those
of the program that ran last. A plugin without a profiler says so. What still runs at the cell's end is waited for.

--xspace FILE also writes the whole profile, threads and all, as XProf reads it (a name like run.xplane.pb).

```
%%profile
let y = x.matmul(&w).softmax(-1);
sync();
```"#,
    scope: Scope::Cell,
    takes: Takes::Rest,
    json: true,
    reads: Reads::Never,
    run: |call, events| {
        let file = match call.args.strip_prefix("--xspace").map(str::trim) {
            Some("") => return call.magic.misused("--xspace takes the file to write to."),
            Some(file) => Some(file),
            None if call.args.is_empty() => None,
            None => {
                let what = format!("%%profile takes no code on its own line: `{}` belongs below it.", call.args);
                return call.magic.misused(&what);
            }
        };
        if let Err(failure) = call.host.call(Question::Profile, "begin") {
            return Reply::Error(failure);
        }
        let reply = call.host.run_code(call.body.unwrap_or_default(), events);
        let ending = match (call.json, file) {
            (true, _) => "end --json".to_owned(),
            (false, None) => "end".to_owned(),
            (false, Some(file)) => format!("end --xspace {file}"),
        };
        match (answer::show(call.host.call(Question::Profile, &ending), events), reply) {
            (shown, Reply::Ok) => shown,
            (_, ended) => ended,
        }
    },
};
