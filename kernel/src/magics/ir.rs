//! `%ir`: the lazy IR as text, one node per line.
use super::{Magic, Scope, Session, program};
use crate::engine::{Event, Reply};

pub struct Ir;

impl Magic for Ir {
    fn name(&self) -> &'static str {
        "ir"
    }

    fn usage(&self) -> &'static str {
        "%ir [--json] [EXPRESSION]"
    }

    fn summary(&self) -> &'static str {
        "prints the lazy IR of an expression, or of everything pending"
    }

    fn help(&self) -> &'static str {
        r#"Prints the recorded nodes, one per line, with op, shape, dtype and source line. Nothing is compiled or run.
Without an expression, everything that is pending is printed.

```
let y = (&x * 2.0).sum();
%ir y
%ir
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
