//! `%opt`: compile the rest of a cell optimised.
use super::{Magic, Scope, Session, answer};
use crate::engine::{Event, Reply};

pub struct Opt;

impl Magic for Opt {
    fn name(&self) -> &'static str {
        "opt"
    }

    fn usage(&self) -> &'static str {
        "%opt LEVEL"
    }

    fn summary(&self) -> &'static str {
        "compile this cell optimised"
    }

    fn help(&self) -> &'static str {
        r#"Cells are compiled without optimisation, which is fastest to wait for. A cell that computes much by itself, rather
than with tensors, asks for rustc's level 0 to 3; `// @opt 3` on a line of its own says the same, and `:opt LEVEL` is
for all cells from there on.

```
%opt 3
let primes = (2..100_000u32).filter(|n| (2..*n).all(|d| n % d != 0)).count();
```"#
    }

    fn scope(&self) -> Scope {
        Scope::Line
    }

    /// With a level, the engine has taken the line already: what it says is about the compiler.
    fn run(&self, _args: &str, _body: Option<&str>, _session: &dyn Session, _events: &mut dyn FnMut(Event)) -> Reply {
        answer::usage(self, "it takes a level from 0 to 3.")
    }
}
