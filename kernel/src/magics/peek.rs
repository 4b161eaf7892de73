//! `%peek`: values inside of the program that ran last.
use super::magic::{Magic, Reads, Scope, Takes};
use super::{answer, program};
use xlazy_mime::Question;

pub const PEEK: Magic = Magic {
    name: "peek",
    aliases: &[],
    usage: "%peek [--json] [EXPRESSION]\n%peek NAME [N]\n%peek [CELL:]LINE\n%peek on|off",
    summary: "looks at a value inside of the last program: numbers, NaN, a histogram",
    help: r#"Shows a result with its least, greatest and mean element, the deviation, how many are NaN, and a histogram. The
name is that of a variable, or of one that a line of the last program bound and that is gone, such as a function's;
3:12 is line 12 of cell 3, 12 alone that line of the latest cell that has it. Where a line ran several times, all
are listed, and %peek h 2 shows the second. Without anything behind it, the results that there are are listed.

It is computed aside, from what the program was given: nothing that is pending changes, the step's program stays as
it is, and no sync is counted. What was donated is gone, which a sentence says; with %peek on whatever programs are
given is kept until the next one runs (buffers that a program would reuse are copied first; it stays the same
program), %peek off lets go of it. XLA fuses what is computed aside as it likes: the last bits may be others than
those of the step. `peek(&h)` gives the same as a value, with fields.

```
fn forward(x: &Tensor, w: &Tensor) -> Tensor {
    let h = x.matmul(w).relu();
    h.log_softmax(-1)
}
let y = forward(&Tensor::ones([2, 3]), &Tensor::ones([3, 4]));
sync();
%peek h
```"#,
    scope: Scope::Line,
    takes: Takes::Rest,
    json: true,
    reads: Reads::Bare,
    run: |call, events| {
        let first = call.args.split_whitespace().next().unwrap_or_default();
        let is_variable = || call.host.vars().iter().any(|v| v.name == first);
        let is_name = first.chars().all(|c| c.is_alphanumeric() || c == '_') && !first.is_empty();
        let is_line = first.chars().all(|c| c.is_ascii_digit() || c == ':');
        let alone = call.args.split_whitespace().nth(1).is_none_or(|n| n.parse::<u32>().is_ok());
        if call.args.is_empty() || alone && (is_line || is_name && !(is_variable() && call.args == first)) {
            return answer::ask(Question::Peek, call, events);
        }
        let code = |expression: &str| format!("xlazy::inside::peek::show(&({expression}\n), {})", call.json);
        program::run("%peek takes a tensor, or a line as CELL:LINE", call.args, &code, call, events)
    },
};
