//! `%why`: why the last program was compiled again, or the N-th.
use super::answer;
use super::magic::{Magic, Reads, Scope, Takes};
use xlazy_mime::Question;

pub const WHY: Magic = Magic {
    name: "why",
    aliases: &[],
    usage: "%why [N] [--json]",
    summary: "why the last program was compiled again, or the N-th",
    help: r#"Shows the explanation of the last program that was compiled although one much like it was there: the
cause, the line to look at, what differs with both source lines, and what to do. With a number, that
of compilation N (see %compiles).

```
let step = |n: usize| (Tensor::ones([n]) * 2.0).sum().item();
step(3);
step(4);
%why
```"#,
    scope: Scope::Line,
    takes: Takes::Number("compilation"),
    json: true,
    reads: Reads::Always,
    run: |call, events| answer::ask(Question::Why, call, events),
};
