//! `%device`: which platform programs run on.
use super::{Magic, Scope, Session, answer};
use crate::engine::{Event, Reply};

pub struct Device;

impl Magic for Device {
    fn name(&self) -> &'static str {
        "device"
    }

    fn usage(&self) -> &'static str {
        "%device [CPU|TPU]"
    }

    fn summary(&self) -> &'static str {
        "says or chooses which platform programs run on"
    }

    fn help(&self) -> &'static str {
        r#"Without an argument: what programs run on, and whether this machine has a TPU. With one: programs run there from now
on, chosen before the first tensor; values stay where they are. PJRT_DEVICE does the same for every session. Where there
is no such chip, one sentence says so and the CPU stays. To see what a TPU would do without one, see %tpu.

```
%device
%device TPU
```"#
    }

    fn scope(&self) -> Scope {
        Scope::Line
    }

    fn only_reads(&self, args: &str) -> bool {
        args.is_empty()
    }

    fn run(&self, args: &str, _body: Option<&str>, session: &dyn Session, events: &mut dyn FnMut(Event)) -> Reply {
        if args.split_whitespace().count() > 1 {
            return answer::usage(self, "%device takes one platform.");
        }
        answer::show(session.call("device", args), events)
    }
}
