//! `%pod`: programs run on the devices of other processes, on this machine or others.
use super::answer;
use super::magic::{Call, Magic, Reads, Scope, Takes, error};
use crate::engine::{Event, Failure, Reply};
use std::time::Duration;
use xlazy_mime::{Bundle, Question};

pub const POD: Magic = Magic {
    name: "pod",
    aliases: &[],
    usage: "%pod [status] [--json]\n%pod start [--workers N] [--hosts A,B] [--via WAY] [--devices N] [--slices N] [--device PLATFORM]\n%pod \
            restart\n%pod stop",
    summary: "runs programs on the devices of other machines",
    help: r#"Only the notebook's session records and explains; its programs run on workers, each a process `xlazy worker` on
some machine, which does what it is told on its standard input. Cells, displays and checkpoints stay as they are. One
TPU VM driven from a laptop is a pod of one.

--hosts a,b names the machines, --workers N how many there are. --via says how to get there: `ssh` (with hosts),
`local` (without), `gcloud` (with --name NAME [--zone ZONE]), `kubectl`, `srun`, or a command of your own in which
{host}, {i}, {n} and {worker} are filled in. xlazy is started there where the same version is on the path, or else
copied there, once; --worker 'COMMAND' says how else it is started. --device TPU chooses their platform, --devices N as
how many devices a CPU counts, --slices N how many slices of a TPU the workers are (libtpu's and MEGASCALE's variables
are set for ssh and srun), --env NAME=VALUE sets a variable in each.

Values live where programs run, so starting or ending a pod begins a new session: `%recover` then runs the cells again
that made the variables. A worker that dies, or is not heard, is told by its name; `%recover` and `%pod restart`
start all of them anew. `%pod` alone shows the workers: their devices, memory and programs. XLAZY_POD in the
environment is what stands behind `%pod start`, for every session. On CPUs a mesh over several workers wants the
plugin that `xlazy plugins install cpu-multi` builds.

```
%pod start --workers 2 --devices 2
%pod start --hosts me@tpu-vm --device TPU
%pod start --workers 4 --via gcloud --name v4-32 --device TPU
%pod
```"#,
    scope: Scope::Line,
    takes: Takes::Verbs(&["start", "stop", "restart", "status"]),
    json: true,
    reads: Reads::Bare,
    run,
};

/// How often is asked whether it is there.
const GLANCE: Duration = Duration::from_millis(20);

fn run(call: &Call, events: &mut dyn FnMut(Event)) -> Reply {
    let (verb, rest) = call.args.split_once(char::is_whitespace).unwrap_or((call.args, ""));
    match (verb, rest.trim()) {
        ("start", wanted) => {
            // What is wrong with it is told before anything ends.
            if let Err(failure) = call.host.call(Question::Pod, &format!("check {wanted}")) {
                return Reply::Error(failure);
            }
            // Nothing behind it is this machine's one worker.
            let wanted = if wanted.is_empty() { "--workers 1" } else { wanted };
            start(call, wanted.to_owned(), events)
        }
        ("", "") => status(call, events),
        (verb, rest) if !rest.is_empty() => call.magic.misused(&format!("%pod {verb} takes nothing, not `{rest}`.")),
        ("status", _) => status(call, events),
        ("restart", _) => match call.host.pod() {
            Some(pod) => start(call, pod, events),
            None => error("UsageError", "there is no pod: `%pod start` starts one"),
        },
        _ => match call.host.pod() {
            Some(_) => {
                let lost = call.host.move_to(None);
                say(["the pod has ended, and programs run on this machine", &lost], events);
                Reply::Ok
            }
            None => error("UsageError", "there is no pod"),
        },
    }
}

fn status(call: &Call, events: &mut dyn FnMut(Event)) -> Reply {
    answer::show(call.host.call(Question::Pod, if call.json { "--json" } else { "" }), events)
}

/// Begins a new session, on workers that are started anew where there is a pod.
pub(super) fn anew(call: &Call, events: &mut dyn FnMut(Event)) -> Reply {
    match call.host.pod() {
        Some(pod) => start(call, pod, events),
        None => {
            say([&call.host.move_to(None)], events);
            Reply::Ok
        }
    }
}

/// Moves to a session on the pod, and waits until its workers are there.
fn start(call: &Call, pod: String, events: &mut dyn FnMut(Event)) -> Reply {
    let before = call.host.pod().filter(|before| *before != pod);
    let lost = call.host.move_to(Some(pod));
    let opened = open(call);
    match opened {
        Ok(true) => {
            if !lost.is_empty() {
                say([&lost], events);
            }
            status(call, events)
        }
        not => {
            call.host.move_to(before);
            match not {
                Err(failure) => Reply::Error(Failure { message: format!("{}. {lost}", failure.message), ..failure }),
                _ => Reply::Interrupted,
            }
        }
    }
}

/// Whether it is there; false when an interrupt came first.
fn open(call: &Call) -> Result<bool, Failure> {
    call.host.call(Question::Pod, "open")?;
    while call.host.call(Question::Pod, "opened")?.plain() == "no" {
        if call.host.interrupted() {
            return Ok(false);
        }
        std::thread::sleep(GLANCE);
    }
    Ok(true)
}

fn say<const N: usize>(sentences: [&str; N], events: &mut dyn FnMut(Event)) {
    let all: Vec<&str> = sentences.into_iter().filter(|s| !s.is_empty()).collect();
    answer::display(Bundle::text(all.join(". ")), events);
}
