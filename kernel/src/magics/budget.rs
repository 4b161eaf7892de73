//! `%budget`: let a cell compile N programs and no more.
use super::answer;
use super::magic::{Magic, Reads, Scope, Takes};
use xlazy_mime::Question;

pub const BUDGET: Magic = Magic {
    name: "budget",
    aliases: &[],
    usage: "%budget compiles=N\n%budget off\n%budget [--json]",
    summary: "let a cell compile N programs and no more",
    help: r#"A cell that would compile more programs than that ends with the explanation instead; all that is
pending stays in place, so that the sync can be run again with a larger budget. Programs that come from
the disk cost no compilation.

```
%budget compiles=1
```"#,
    scope: Scope::Line,
    takes: Takes::Count("compiles"),
    json: true,
    reads: Reads::Bare,
    run: |call, events| answer::ask(Question::Budget, call, events),
};
