//! `%stablehlo`: the program as it is handed to XLA.
use super::magic::{Magic, Reads, Scope, Takes};
use super::program;
use xlazy_mime::Question;

pub const STABLEHLO: Magic = Magic {
    name: "stablehlo",
    aliases: &[],
    usage: "%stablehlo [--json] [EXPRESSION]",
    summary: "prints the StableHLO of an expression, or of the last synced program",
    help: r#"Prints the StableHLO text that xlazy would hand to XLA for the expression. Nothing is compiled or run.
Without an expression, it is the program that was synced last.

```
%stablehlo x.matmul(&w).relu()
%stablehlo
```"#,
    scope: Scope::Line,
    takes: Takes::Rest,
    json: true,
    reads: Reads::Bare,
    run: |call, events| program::show(Question::Stablehlo, call, events),
};
