//! `%compiles`: every program compiled so far, and why.
use super::{Magic, Scope, Session, answer};
use crate::engine::{Event, Reply};

pub struct Compiles;

impl Magic for Compiles {
    fn name(&self) -> &'static str {
        "compiles"
    }

    fn usage(&self) -> &'static str {
        "%compiles [--json]"
    }

    fn summary(&self) -> &'static str {
        "every program compiled so far, and why"
    }

    fn help(&self) -> &'static str {
        r#"Lists every program that was new to the session: cell and line, what it ran for, ops, times, whether
XLA compiled it or the disk had it, how many later runs found it in memory, memory and floating point
operations of one run (as XLA says), and why there was no program to reuse. `first` means that nothing
like it had been compiled before.
%why N explains one.

```
println!("{}", Tensor::ones([3]) + 1.0);
%compiles
```"#
    }

    fn scope(&self) -> Scope {
        Scope::Line
    }

    fn only_reads(&self, _args: &str) -> bool {
        true
    }

    fn run(&self, args: &str, _body: Option<&str>, session: &dyn Session, events: &mut dyn FnMut(Event)) -> Reply {
        answer::show(session.call("compiles", args), events)
    }
}
