//! `%heal`: turn healing on or off.
use super::{Magic, Scope, Session, answer};
use crate::engine::{Event, Reply};

pub struct Heal;

impl Magic for Heal {
    fn name(&self) -> &'static str {
        "heal"
    }

    fn usage(&self) -> &'static str {
        "%heal [on|off]"
    }

    fn summary(&self) -> &'static str {
        "turn healing on or off"
    }

    fn help(&self) -> &'static str {
        r#"With healing on (as it is from the start) an attribute that changes between otherwise equal programs
becomes a parameter: where a slice starts, how much is padded before, a roll's shift, a diagonal.
Results are the same, bit for bit, for positions.

```
%heal off
```"#
    }

    fn scope(&self) -> Scope {
        Scope::Line
    }

    fn only_reads(&self, args: &str) -> bool {
        args.is_empty()
    }

    fn run(&self, args: &str, _body: Option<&str>, session: &dyn Session, events: &mut dyn FnMut(Event)) -> Reply {
        answer::show(session.call("heal", args), events)
    }
}
