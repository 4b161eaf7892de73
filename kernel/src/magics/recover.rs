//! `%recover`: run again the cells that made the variables which a crash took.
use super::magic::{Call, Magic, Reads, Scope, Takes};
use crate::engine::{Event, Reply};
use xlazy_mime::Question;

pub const RECOVER: Magic = Magic {
    name: "recover",
    aliases: &[],
    usage: "%recover",
    summary: "runs the cells again that made the variables lost in a crash",
    help: r#"When a session ends by a crash, its variables are lost and the kernel says which. This runs again, in order, the
cells that made them, those that changed them since, and those whose variables these used. Compiled cells come from
the cell cache, with the items that were in force then, and random numbers are drawn as they were. The cell that
crashed is not run. A pod of which a worker died, or failed in a program of several, is started again first.

It stops at the first cell that behaves otherwise than before: that ends with another error or none, prints or shows
something else, or leaves other variables, types or numbers. A cell that was interrupted cannot be repeated and stops
it, too. What was recovered up to there stays. What a cell prints is compared and not shown again.

```
%recover
```"#,
    scope: Scope::Line,
    takes: Takes::Nothing("it recovers all that is lost"),
    json: false,
    reads: Reads::Never,
    run,
};

fn run(call: &Call, events: &mut dyn FnMut(Event)) -> Reply {
    // Where nothing can run any more what is there is lost, too.
    if call.host.call(Question::Pod, "over").is_ok_and(|said| said.plain() == "yes") {
        match super::pod::anew(call, events) {
            Reply::Ok => {}
            not => return not,
        }
    }
    call.host.recover(events)
}
