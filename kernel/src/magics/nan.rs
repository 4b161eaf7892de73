//! `%nan`: look for the op that makes a NaN.
use super::answer;
use super::magic::{Magic, Reads, Scope, Takes};
use xlazy_mime::Question;

pub const NAN: Magic = Magic {
    name: "nan",
    aliases: &[],
    usage: "%nan [on|inf|off]",
    summary: "stop at the op that makes the first NaN",
    help: r#"With %nan on every program looks through the results of its ops while it runs, and where a value is read the
first op that gave a NaN is told, with its line, as an error; variables stay as they are. %nan inf looks for infinities,
too. Each program is compiled once more for it, and runs slower; %nan off goes back to the programs of before.
A NaN that a later `where_` would have thrown away is found as well, as gradients do not throw it away.

```
%nan on
(Tensor::ones([2]) - 1.0).log().sqrt()
```"#,
    scope: Scope::Line,
    takes: Takes::Words(&["on", "inf", "off"]),
    json: false,
    reads: Reads::Bare,
    run: |call, events| answer::ask(Question::Nan, call, events),
};
