//! `%heal`: turn healing on or off.
use super::answer;
use super::magic::{Magic, Reads, Scope, Takes};
use xlazy_mime::Question;

pub const HEAL: Magic = Magic {
    name: "heal",
    aliases: &[],
    usage: "%heal [on|off]",
    summary: "turn healing on or off",
    help: r#"With healing on (as it is from the start) an attribute that changes between otherwise equal programs
becomes a parameter: where a slice starts, how much is padded before, a roll's shift, a diagonal.
Results are the same, bit for bit, for positions.

```
%heal off
```"#,
    scope: Scope::Line,
    takes: Takes::Words(&["on", "off"]),
    json: false,
    reads: Reads::Bare,
    run: |call, events| answer::ask(Question::Heal, call, events),
};
