//! `%why`: why the last program was compiled again, or the N-th.
use super::{Magic, Scope, Session, answer};
use crate::engine::{Event, Reply};

pub struct Why;

impl Magic for Why {
    fn name(&self) -> &'static str {
        "why"
    }

    fn usage(&self) -> &'static str {
        "%why [N] [--json]"
    }

    fn summary(&self) -> &'static str {
        "why the last program was compiled again, or the N-th"
    }

    fn help(&self) -> &'static str {
        r#"Shows the explanation of the last program that was compiled although one much like it was there: the
cause, the line to look at, what differs with both source lines, and what to do. With a number, that
of compilation N (see %compiles).

```
let step = |n: usize| (Tensor::ones([n]) * 2.0).sum().item();
step(3);
step(4);
%why
```"#
    }

    fn scope(&self) -> Scope {
        Scope::Line
    }

    fn only_reads(&self, _args: &str) -> bool {
        true
    }

    fn run(&self, args: &str, _body: Option<&str>, session: &dyn Session, events: &mut dyn FnMut(Event)) -> Reply {
        answer::show(session.call("why", args), events)
    }
}
