//! `%recover`: run again the cells that made the variables which a crash took.
use super::{Magic, Scope, Session, answer};
use crate::engine::{Event, Reply};

pub struct Recover;

impl Magic for Recover {
    fn name(&self) -> &'static str {
        "recover"
    }

    fn usage(&self) -> &'static str {
        "%recover"
    }

    fn summary(&self) -> &'static str {
        "runs the cells again that made the variables lost in a crash"
    }

    fn help(&self) -> &'static str {
        r#"When a session ends by a crash, its variables are lost and the kernel says which. This runs again, in order, the
cells that made them, those that changed them since, and those whose variables these used. Compiled cells come from
the cell cache, with the items that were in force then, and random numbers are drawn as they were. The cell that
crashed is not run.

It stops at the first cell that behaves otherwise than before: that ends with another error or none, prints or shows
something else, or leaves other variables, types or numbers. A cell that was interrupted cannot be repeated and stops
it, too. What was recovered up to there stays. What a cell prints is compared and not shown again.

```
%recover
```"#
    }

    fn scope(&self) -> Scope {
        Scope::Line
    }

    fn run(&self, args: &str, _body: Option<&str>, session: &dyn Session, events: &mut dyn FnMut(Event)) -> Reply {
        if !args.is_empty() {
            return answer::usage(self, &format!("%recover takes no `{args}`: it recovers all that is lost."));
        }
        session.recover(events)
    }
}
