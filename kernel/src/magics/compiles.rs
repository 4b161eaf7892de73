//! `%compiles`: every program compiled so far, and why.
use super::answer;
use super::magic::{Magic, Reads, Scope, Takes};
use xlazy_mime::Question;

pub const COMPILES: Magic = Magic {
    name: "compiles",
    aliases: &[],
    usage: "%compiles [--json]",
    summary: "every program compiled so far, and why",
    help: r#"Lists every program that was new to the session: cell and line, what it ran for, ops, times, whether
XLA compiled it or the disk had it, how many later runs found it in memory, memory and floating point
operations of one run (as XLA says), and why there was no program to reuse. `first` means that nothing
like it had been compiled before.
%why N explains one.

```
println!("{}", Tensor::ones([3]) + 1.0);
%compiles
```"#,
    scope: Scope::Line,
    takes: Takes::Nothing("it always lists every program"),
    json: true,
    reads: Reads::Always,
    run: |call, events| answer::ask(Question::Compiles, call, events),
};
