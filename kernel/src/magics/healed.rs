//! `%healed`: attributes that became parameters because they kept changing.
use super::{Magic, Scope, Session, answer};
use crate::engine::{Event, Reply};

pub struct Healed;

impl Magic for Healed {
    fn name(&self) -> &'static str {
        "healed"
    }

    fn usage(&self) -> &'static str {
        "%healed [--json]"
    }

    fn summary(&self) -> &'static str {
        "attributes that became parameters because they kept changing"
    }

    fn help(&self) -> &'static str {
        r#"A position or another attribute that changes between otherwise equal programs is made a parameter at
its first change, so that it can cause two compilations and no more. This lists what was healed.
%heal off turns healing off.

```
%healed
```"#
    }

    fn scope(&self) -> Scope {
        Scope::Line
    }

    fn only_reads(&self, _args: &str) -> bool {
        true
    }

    fn run(&self, args: &str, _body: Option<&str>, session: &dyn Session, events: &mut dyn FnMut(Event)) -> Reply {
        answer::show(session.call("healed", args), events)
    }
}
