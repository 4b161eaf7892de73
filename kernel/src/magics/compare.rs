//! `%compare`: the last program's values against those of another run.
use super::answer;
use super::magic::{Magic, Reads, Scope, Takes};
use xlazy_mime::Question;

pub const COMPARE: Magic = Magic {
    name: "compare",
    aliases: &[],
    usage: "%compare [--json] [--ulps N] FILE\n%compare --save FILE",
    summary: "finds the first op whose result differs from a reference run",
    help: r#"%compare --save a.safetensors writes down what every op of the last program gives, with the program's parameters.
%compare a.safetensors computes the same here and now - on another platform, at another precision, of edited code,
tomorrow - and says which op is the first whose result differs, at its line, by how many units in the last place
(ULP) of its dtype, and where the difference is greatest. --ulps N lets that much pass. Where dtypes differ, the
coarser one counts. Parameters that differ are told first: then the run was given something else.

The values are computed aside, all of them as results, as %peek does: with %peek on also those of a step that
reuses its buffers. Ops are matched by their order, so that ops that came or went are told and the rest is still
compared.

```
%compare --save reference.safetensors
xlazy::backends::set_mat_mul_precision("highest").unwrap();
%compare reference.safetensors
```"#,
    scope: Scope::Line,
    takes: Takes::Rest,
    json: true,
    reads: Reads::Never,
    run: |call, events| match call.args {
        "" => call.magic.misused("%compare needs a file."),
        _ => answer::ask(Question::Compare, call, events),
    },
};
