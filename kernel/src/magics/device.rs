//! `%device`: which platform programs run on, and as how many devices the CPU counts.
use super::answer;
use super::magic::{Magic, Reads, Scope, Takes};
use xlazy_mime::Question;

pub const DEVICE: Magic = Magic {
    name: "device",
    aliases: &[],
    usage: "%device [CPU|TPU|CUDA]\n%device CPU N",
    summary: "says or chooses which platform programs run on",
    help: r#"Without an argument: what programs run on, and whether this machine has a TPU or a GPU. With one: programs
run there from now on, chosen before the first tensor; values stay where they are. A number behind CPU says as how
many devices it counts, to try meshes and ranks anywhere. PJRT_DEVICE and XLAZY_CPU_DEVICES do the same for every
session. Where there is no such chip, one sentence says so and the CPU stays. To see what a TPU would do without one,
see %tpu.

```
%device
%device TPU
%device CPU 8
```"#,
    scope: Scope::Line,
    takes: Takes::Some("platform"),
    json: false,
    reads: Reads::Bare,
    run: |call, events| answer::ask(Question::Device, call, events),
};
