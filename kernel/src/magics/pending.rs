//! `%pending`: the tensors that have no value yet, and what a sync would do.
use super::answer;
use super::magic::{Magic, Reads, Scope, Takes};
use xlazy_mime::Question;

pub const PENDING: Magic = Magic {
    name: "pending",
    aliases: &[],
    usage: "%pending [--json]",
    summary: "the tensors that have no value yet, and what a sync would do",
    help: r#"Lists the live tensors that are recorded but not computed: variable, type, op, the ops it needs, cell
and line. Says how many ops a sync would run, how much device memory it would add, and whether its
program is in the cache, on the disk, or to be compiled. Runs nothing.

```
let x = Tensor::ones([3]) + 1.0;
%pending
```"#,
    scope: Scope::Line,
    takes: Takes::Nothing("it always lists every tensor without a value"),
    json: true,
    reads: Reads::Always,
    run: |call, events| answer::ask(Question::Pending, call, events),
};
