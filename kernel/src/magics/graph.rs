//! `%graph`: the lazy graph, drawn before it runs.
use super::magic::{Magic, Reads, Scope, Takes};
use super::program;
use xlazy_mime::Question;

pub const GRAPH: Magic = Magic {
    name: "graph",
    aliases: &[],
    usage: "%graph [--json] [EXPRESSION]",
    summary: "draws the pending graph of an expression, or of everything pending",
    help: r#"Draws the graph that computing the expression would run: its ops with shapes, dtypes and source lines, which nodes
are data already on the device, and which are shared. Nothing is compiled or run, and the pending graph stays as it is.
Without an expression, everything that is pending is drawn.

```
let y = (&x * 2.0).sum();
%graph y
%graph
%graph --json y
```"#,
    scope: Scope::Line,
    takes: Takes::Rest,
    json: true,
    reads: Reads::Bare,
    run: |call, events| program::show(Question::Graph, call, events),
};
