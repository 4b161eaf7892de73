//! `%hlo`: the program after XLA's passes.
use super::{Magic, Scope, Session, program};
use crate::engine::{Event, Reply};

pub struct Hlo;

impl Magic for Hlo {
    fn name(&self) -> &'static str {
        "hlo"
    }

    fn usage(&self) -> &'static str {
        "%hlo [--json] [EXPRESSION]"
    }

    fn summary(&self) -> &'static str {
        "prints the HLO that XLA's passes made of an expression, or of the last synced program"
    }

    fn help(&self) -> &'static str {
        r#"Prints the optimised HLO: what XLA really runs, after fusion and layout. With an expression, the program is
compiled (a cached compile is used) but not run. Without one, it is the program that was synced last.

```
%hlo x.matmul(&w).relu()
%hlo
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
