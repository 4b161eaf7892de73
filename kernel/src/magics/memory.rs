//! `%memory`: device memory by what holds it.
use super::magic::{Magic, Reads, Scope, Takes};
use super::{answer, named, program};
use xlazy_mime::Question;

pub const MEMORY: Magic = Magic {
    name: "memory",
    aliases: &[],
    usage: "%memory [--json] [EXPRESSION]",
    summary: "device memory by variable: parameters, state, gradients, activations, and who keeps them",
    help: r#"Lists what is in device memory: parameters, optimizer state, gradients, activations that the gradient tape
keeps, variables, and what pending ops start from; each with its type, its bytes with what its layout pads, the line that
made it, and what keeps it alive. What the last cell made is marked as new. Says what the program that ran last took,
its largest values with their lines, and what a sync would add. All of it sums up to what the device counts, or the
first line says what is missing.

With an expression: what computing it would add, and what its program takes while it runs. It is compiled if it is not
in the cache, and not run.

```
%memory
let y = x.matmul(&w);
%memory y
```"#,
    scope: Scope::Line,
    takes: Takes::Rest,
    json: true,
    reads: Reads::Bare,
    run: |call, events| {
        if call.args.is_empty() {
            named::learn(call.host);
            return answer::ask(Question::Memory, call, events);
        }
        program::show(Question::Memory, call, events)
    },
};
