//! `%budget`: let a cell compile N programs and no more.
use super::{Magic, Scope, Session, answer};
use crate::engine::{Event, Reply};

pub struct Budget;

impl Magic for Budget {
    fn name(&self) -> &'static str {
        "budget"
    }

    fn usage(&self) -> &'static str {
        "%budget compiles=N\n%budget off\n%budget [--json]"
    }

    fn summary(&self) -> &'static str {
        "let a cell compile N programs and no more"
    }

    fn help(&self) -> &'static str {
        r#"A cell that would compile more programs than that ends with the explanation instead; all that is
pending stays in place, so that the sync can be run again with a larger budget. Programs that come from
the disk cost no compilation.

```
%budget compiles=1
```"#
    }

    fn scope(&self) -> Scope {
        Scope::Line
    }

    fn only_reads(&self, args: &str) -> bool {
        args.is_empty()
    }

    fn run(&self, args: &str, _body: Option<&str>, session: &dyn Session, events: &mut dyn FnMut(Event)) -> Reply {
        answer::show(session.call("budget", args), events)
    }
}
