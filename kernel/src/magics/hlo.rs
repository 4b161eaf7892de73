//! `%hlo`: the program after XLA's passes.
use super::magic::{Magic, Reads, Scope, Takes};
use super::program;
use xlazy_mime::Question;

pub const HLO: Magic = Magic {
    name: "hlo",
    aliases: &[],
    usage: "%hlo [--json] [EXPRESSION]",
    summary: "prints the HLO that XLA's passes made of an expression, or of the last synced program",
    help: r#"Prints the optimised HLO: what XLA really runs, after fusion and layout. With an expression, the program is
compiled (a cached compile is used) but not run. Without one, it is the program that was synced last.

```
%hlo x.matmul(&w).relu()
%hlo
```"#,
    scope: Scope::Line,
    takes: Takes::Rest,
    json: true,
    reads: Reads::Bare,
    run: |call, events| program::show(Question::Hlo, call, events),
};
