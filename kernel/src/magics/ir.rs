//! `%ir`: the lazy IR as text, one node per line.
use super::magic::{Magic, Reads, Scope, Takes};
use super::program;
use xlazy_mime::Question;

pub const IR: Magic = Magic {
    name: "ir",
    aliases: &[],
    usage: "%ir [--json] [EXPRESSION]",
    summary: "prints the lazy IR of an expression, or of everything pending",
    help: r#"Prints the recorded nodes, one per line, with op, shape, dtype and source line. Nothing is compiled or run.
Without an expression, everything that is pending is printed.

```
let y = (&x * 2.0).sum();
%ir y
%ir
```"#,
    scope: Scope::Line,
    takes: Takes::Rest,
    json: true,
    reads: Reads::Bare,
    run: |call, events| program::show(Question::Ir, call, events),
};
