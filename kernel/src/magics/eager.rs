//! `%eager`: op by op.
use super::answer;
use super::magic::{Magic, Reads, Scope, Takes};
use xlazy_mime::Question;

pub const EAGER: Magic = Magic {
    name: "eager",
    aliases: &[],
    usage: "%eager on|off\n%eager [--json]",
    summary: "runs each op as it is recorded, to compare it with lazy tensors",
    help: r#"With %eager on each op is a program of its own, compiled once and launched when it is recorded, as in a framework
without lazy tensors; %eager off records again. Without anything behind it, the cells that ran in both ways (the
same text once before and once behind `%eager on`) are shown side by side: launches, ops, compilations, times.

```
%eager on
(&x * 2.0).exp().sum().item()
%eager off
%eager
```"#,
    scope: Scope::Line,
    takes: Takes::Words(&["on", "off"]),
    json: true,
    reads: Reads::Bare,
    run: |call, events| answer::ask(Question::Eager, call, events),
};
