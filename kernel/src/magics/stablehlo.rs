//! `%stablehlo`: the program as it is handed to XLA.
use super::{Magic, Scope, Session, program};
use crate::engine::{Event, Reply};

pub struct StableHlo;

impl Magic for StableHlo {
    fn name(&self) -> &'static str {
        "stablehlo"
    }

    fn usage(&self) -> &'static str {
        "%stablehlo [--json] [EXPRESSION]"
    }

    fn summary(&self) -> &'static str {
        "prints the StableHLO of an expression, or of the last synced program"
    }

    fn help(&self) -> &'static str {
        r#"Prints the StableHLO text that xlazy would hand to XLA for the expression. Nothing is compiled or run.
Without an expression, it is the program that was synced last.

```
%stablehlo x.matmul(&w).relu()
%stablehlo
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
