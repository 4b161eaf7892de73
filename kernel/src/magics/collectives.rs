//! `%collectives`: what the devices of a mesh tell one another in a program.
use super::magic::{Magic, Reads, Scope, Takes};
use super::program;
use xlazy_mime::Question;

pub const COLLECTIVES: Magic = Magic {
    name: "collectives",
    aliases: &[],
    usage: "%collectives [--json] [EXPRESSION]",
    summary: "lists what devices tell one another in the last synced program, and which line is behind it",
    help: r#"Lists the collectives in what XLA made of a program for a mesh: kind, what each device gets, in which groups,
whether other work goes on beside it and by which algorithm, what it is for, and the op and line that it belongs to.
`asked for` is in the code (`spmd::all_reduce`), a `sum of parts` comes of a sum over a dimension that is split, and
`resharding` of ops that do not split a tensor alike; `whole` is one for which each device gets all of it. The time is
an estimate over published link rates, on CPUs those of TPU v5e. With an expression, the program is compiled (a
cached compile is used) but not run. Without one, it is the program that was synced last.

```
%collectives x.matmul(&w)
%collectives
```"#,
    scope: Scope::Line,
    takes: Takes::Rest,
    json: true,
    reads: Reads::Bare,
    run: |call, events| program::show(Question::Collectives, call, events),
};
