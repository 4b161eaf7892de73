//! `%opt`: compile the rest of a cell optimised.
use super::magic::{Call, Magic, Reads, Scope, Takes};
use crate::engine::{Event, Reply};

pub const OPT: Magic = Magic {
    name: "opt",
    aliases: &[],
    usage: "%opt LEVEL\n%%opt LEVEL   (for the rest of the cell)",
    summary: "compile this cell optimised",
    help: r#"Cells are compiled without optimisation, which is fastest to wait for. A cell that computes much by itself, rather
than with tensors, asks for rustc's level 0 to 3; `// @opt 3` on a line of its own says the same, and `:opt LEVEL` is
for all cells from there on.

The crates of `:dep` are compiled at level 2, once for all notebooks. `:opt 0` before the first `:dep` of a session, or
in its cell, has large ones much sooner (polars in a third of the time), to run slower; level 3 is for those that are to
be as fast as they can.

```
%opt 3
let primes = (2..100_000u32).filter(|n| (2..*n).all(|d| n % d != 0)).count();
```"#,
    scope: Scope::Both,
    takes: Takes::Level,
    json: false,
    reads: Reads::Never,
    run,
};

fn run(call: &Call, events: &mut dyn FnMut(Event)) -> Reply {
    let level = call.args.split_whitespace().next().and_then(|level| level.parse().ok());
    call.host.optimise(level.unwrap_or_default());
    call.body.map_or(Reply::Ok, |body| call.host.run_code(body, events))
}
