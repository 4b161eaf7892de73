//! `%graph`: the lazy graph, drawn before it runs.
use super::{Magic, Scope, Session, program};
use crate::engine::{Event, Reply};

pub struct Graph;

impl Magic for Graph {
    fn name(&self) -> &'static str {
        "graph"
    }

    fn usage(&self) -> &'static str {
        "%graph [--json] [EXPRESSION]"
    }

    fn summary(&self) -> &'static str {
        "draws the pending graph of an expression, or of everything pending"
    }

    fn help(&self) -> &'static str {
        r#"Draws the graph that computing the expression would run: its ops with shapes, dtypes and source lines, which nodes
are data already on the device, and which are shared. Nothing is compiled or run, and the pending graph stays as it is.
Without an expression, everything that is pending is drawn.

```
let y = (&x * 2.0).sum();
%graph y
%graph
%graph --json y
```"#
    }

    fn scope(&self) -> Scope {
        Scope::Line
    }

    fn only_reads(&self, args: &str) -> bool {
        program::is_of_the_session(args)
    }

    fn run(&self, args: &str, _body: Option<&str>, session: &dyn Session, events: &mut dyn FnMut(Event)) -> Reply {
        program::show(self, args, session, events)
    }
}
