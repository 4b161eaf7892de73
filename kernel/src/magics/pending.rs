//! `%pending`: the tensors that have no value yet, and what a sync would do.
use super::{Magic, Scope, Session, answer};
use crate::engine::{Event, Reply};

pub struct Pending;

impl Magic for Pending {
    fn name(&self) -> &'static str {
        "pending"
    }

    fn usage(&self) -> &'static str {
        "%pending [--json]"
    }

    fn summary(&self) -> &'static str {
        "the tensors that have no value yet, and what a sync would do"
    }

    fn help(&self) -> &'static str {
        r#"Lists the live tensors that are recorded but not computed: variable, type, op, the ops it needs, cell
and line. Says how many ops a sync would run, how much device memory it would add, and whether its
program is in the cache, on the disk, or to be compiled. Runs nothing.

```
let x = Tensor::ones([3]) + 1.0;
%pending
```"#
    }

    fn scope(&self) -> Scope {
        Scope::Line
    }

    fn only_reads(&self, _args: &str) -> bool {
        true
    }

    fn run(&self, args: &str, _body: Option<&str>, session: &dyn Session, events: &mut dyn FnMut(Event)) -> Reply {
        answer::show(session.call("pending", args), events)
    }
}
