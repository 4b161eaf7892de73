//! `%healed`: attributes that became parameters because they kept changing.
use super::answer;
use super::magic::{Magic, Reads, Scope, Takes};
use xlazy_mime::Question;

pub const HEALED: Magic = Magic {
    name: "healed",
    aliases: &[],
    usage: "%healed [--json]",
    summary: "attributes that became parameters because they kept changing",
    help: r#"A position or another attribute that changes between otherwise equal programs is made a parameter at
its first change, so that by itself it causes two compilations and no more; where something else of the
program changes at the same time, that is compiled as well. This lists what was healed.
%heal off turns healing off.

```
%healed
```"#,
    scope: Scope::Line,
    takes: Takes::Nothing("it always lists all that was healed"),
    json: true,
    reads: Reads::Always,
    run: |call, events| answer::ask(Question::Healed, call, events),
};
