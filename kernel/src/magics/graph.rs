//! `%graph`: the lazy graph, drawn before it runs.
use super::magic::{Call, Magic, Reads, Scope, Takes};
use super::{answer, named, program};
use crate::engine::{Event, Reply};
use xlazy_mime::Question;

pub const GRAPH: Magic = Magic {
    name: "graph",
    aliases: &[],
    usage: "%graph [--json | --dot | --model-explorer] [EXPRESSION]",
    summary: "draws the pending graph of an expression, or of everything pending",
    help: r#"Draws the graph that computing the expression would run: its ops with shapes, dtypes and source lines, which nodes
are data already on the device, and which are shared. Nothing is compiled or run, and the pending graph stays as it is.
Without an expression, everything that is pending is drawn.

What is too large is folded: by forward, gradients and update, by module (`net.layers.3.attn`, from the names of its
parameters), by cell and line, and what repeats is there once with a count. Click on a box to unfold it; search by op,
name or line. Where there are no scripts, it is a drawing, and in a terminal text.

--json gives nodes and groups as data, --dot the language of Graphviz, --model-explorer what Google's Model Explorer
loads.

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
    run,
};

fn run(call: &Call, events: &mut dyn FnMut(Event)) -> Reply {
    let form = ["--dot", "--model-explorer"].into_iter().find(|f| call.args.split_whitespace().next() == Some(f));
    let args = form.map_or(call.args, |f| call.args[f.len()..].trim());
    if form.is_some() && call.json {
        return call.magic.misused("%graph takes one form at a time.");
    }
    named::learn(call.host);
    let form = form.unwrap_or(if call.json { "--json" } else { "" });
    match args {
        "" => answer::show(call.host.call(Question::Graph, form), events),
        _ if form.is_empty() || form == "--json" => program::show(Question::Graph, call, events),
        _ => {
            let code =
                |expression: &str| format!("xlazy::show::graph_as(&({expression}\n), {:?}).unwrap()", &form[2..]);
            program::run(&program::takes_tensor("graph"), args, &code, call, events)
        }
    }
}
