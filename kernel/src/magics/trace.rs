//! `%trace`: lines, ops, StableHLO and optimised HLO beside each other, linked.
use super::magic::{Call, Magic, Reads, Scope, Takes};
use super::{named, program};
use crate::engine::{Event, Reply};

pub const TRACE: Magic = Magic {
    name: "trace",
    aliases: &[],
    usage: "%trace [--tpu TPU] [--line [CELL:]LINE] [--json] [EXPRESSION]\n%trace --passes [--json] [EXPRESSION]\n%trace --model-explorer FOLDER [EXPRESSION]",
    summary: "lines, ops, StableHLO and optimised HLO side by side: pointing at one shows it in the others",
    help: r#"Shows in four columns what becomes of a program: the lines of the cells, the recorded ops, the StableHLO, and what
XLA made of it, fusion by fusion. Pointing at a row lights up what belongs to it in the other columns; a click keeps
it. A kernel says which lines it holds, its flops and bytes. Two bars show how many operations there were, how many
kernels are left, and what each moves through memory. What left nothing in the optimised program says why.

With an expression, it is the program that a sync of it would run; without one, the program that ran last. It is
compiled aside: nothing runs, no cache and no metric changes. --tpu v5e adds what XLA's TPU compiler makes of it, with
its estimate in cycles (`xlazy plugins install tpu`). --line 4 prints what belongs to line 4, --line 2:4 to that of
cell 2. --passes says where XLA's time goes, pass by pass and kernel by kernel, from what it writes down; kernels are
compiled side by side, and time between two files is told of the later one. --model-explorer writes the recorded ops
and the optimised program as two graphs for Google's Model Explorer, with what belongs together.

```
let y = (&x * 2.0).exp().sum();
%trace y
%trace y --line 1
%trace --tpu v5e y
```"#,
    scope: Scope::Line,
    takes: Takes::Rest,
    json: true,
    reads: Reads::Never,
    run,
};

fn run(call: &Call, events: &mut dyn FnMut(Event)) -> Reply {
    let (mut spec, expression) = split(call.args);
    if call.json {
        spec.push_str(" --json");
    }
    named::learn(call.host);
    if expression.is_empty() {
        return call.host.run_code(&format!("xlazy::linked::magic_last({spec:?})"), events);
    }
    let code = |expression: &str| format!("xlazy::linked::magic({spec:?}, &({expression}\n))");
    program::run(&program::takes_tensor("trace"), &expression, &code, call, events)
}

/// Options with a word behind them.
const VALUED: [&str; 3] = ["--tpu", "--line", "--model-explorer"];

/// The options, which may stand before the expression or behind it, and the expression.
fn split(args: &str) -> (String, String) {
    let mut spec: Vec<&str> = Vec::new();
    let mut rest = args.trim();
    while let Some(word) = rest.split_whitespace().next().filter(|w| w.starts_with("--")) {
        rest = rest[word.len()..].trim_start();
        spec.push(word);
        if VALUED.contains(&word) {
            let value = rest.split_whitespace().next().unwrap_or_default();
            rest = rest[value.len()..].trim_start();
            spec.push(value);
        }
    }
    // Behind it only what can be nothing else: `a --b` is Rust, too.
    loop {
        let words: Vec<&str> = rest.split_whitespace().collect();
        let Some(option) = words.len().checked_sub(2).map(|n| words[n]) else { break };
        if !VALUED.contains(&option) {
            break;
        }
        let at = rest.rfind(option).unwrap_or(0);
        spec.extend([option, words[words.len() - 1]]);
        rest = rest[..at].trim_end();
    }
    (spec.join(" "), rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn options_stand_on_either_side() {
        let told = |line| {
            let (spec, expression) = split(line);
            format!("{spec} | {expression}")
        };
        assert_eq!(told("y"), " | y");
        assert_eq!(told("y --line 4"), "--line 4 | y");
        assert_eq!(told("--tpu v5e x.matmul(&w)  --line 2:4"), "--tpu v5e --line 2:4 | x.matmul(&w)");
        assert_eq!(told("y --line 4 --tpu v5e"), "--tpu v5e --line 4 | y");
        assert_eq!(told("--line 4"), "--line 4 | ");
        assert_eq!(told("&a --b"), " | &a --b");
        assert_eq!(told("--fast y"), "--fast | y");
        assert_eq!(told(""), " | ");
    }
}
