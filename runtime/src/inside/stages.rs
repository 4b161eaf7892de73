//! `%%step`: a cell's syncs, each in its stages: what was recorded, cut out, lowered, compiled, run and read back.
use crate::display::graph::{self as drawn, Form};
use crate::display::ir::View;
use crate::insight::{Origin, Seen, SyncEvent, look_on, metrics};
use crate::json::{self, Value, json, millis};
use crate::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xlazy_core::host::named;
use xlazy_core::ir::{Input, graph};
use xlazy_core::run::{Program, last_program};
use xlazy_core::text::{location, told};
use xlazy_mime::{Bundle, columns, count, escape_html, units};

/// One sync as it went.
struct Sync {
    graph: View,
    /// Pending results that were there, this sync's among them.
    pending: usize,
    ran: Option<(SyncEvent, Arc<Program>)>,
}

/// Syncs that are shown; of a loop the rest are like these.
const SHOWN: usize = 8;

#[derive(Default)]
struct Stepped {
    syncs: Vec<Sync>,
    all: usize,
    /// Bytes and times of transfers to the host before.
    read: (u64, f64, f64),
}

static STEPPED: Mutex<Option<Stepped>> = Mutex::new(None);

fn stepped() -> MutexGuard<'static, Option<Stepped>> {
    STEPPED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `begin`, `end`, `end --json`.
pub(crate) fn stages(args: &str) -> Result<Bundle> {
    match args.trim() {
        "begin" => {
            *stepped() = Some(Stepped { read: transfers(), ..Stepped::default() });
            look_on(Some(see));
            Ok(Bundle::default())
        }
        "end" | "end --json" => {
            look_on(None);
            let seen = stepped().take().unwrap_or_default();
            Ok(if args.ends_with("--json") { json::bundle(seen.json()) } else { seen.bundle() })
        }
        other => Err(Error::Usage { message: format!("stages takes `begin` or `end`, not `{other}`") }),
    }
}

/// Transfers to the host so far: how many, their bytes, their time in ns.
fn transfers() -> (u64, f64, f64) {
    let (time, bytes) = (&metrics::TRANSFER_FROM_DEVICE_TIME, &metrics::INBOUND_DATA);
    (time.count(), bytes.total(), time.total())
}

fn see(seen: Seen) {
    match seen {
        Seen::Begins { roots, barrier } => {
            let named = named();
            let (view, pending) = {
                let g = graph();
                (View::of(&g, roots, barrier, &named), g.barrier_roots().len())
            };
            if let Some(stepped) = &mut *stepped() {
                stepped.all += 1;
                if stepped.syncs.len() < SHOWN {
                    stepped.syncs.push(Sync { graph: view, pending, ran: None });
                }
            }
        }
        Seen::Ran(event) => {
            let program = last_program();
            if let (Some(stepped), Some(program)) = (&mut *stepped(), program)
                && stepped.all == stepped.syncs.len()
                && let Some(sync) = stepped.syncs.last_mut()
            {
                sync.ran = Some((event.clone(), program));
            }
        }
    }
}

/// A stage, ready to be shown.
struct Stage {
    name: &'static str,
    said: String,
    /// What it looks like, as text and as HTML.
    text: String,
    html: String,
}

impl Stage {
    fn new(name: &'static str, said: String, text: String) -> Stage {
        let html = match text.as_str() {
            "" => String::new(),
            text => format!(
                "<pre style=\"overflow:auto;max-height:420px;white-space:pre;color:inherit;background:none;margin:2px 0;font-size:.88em;line-height:1.4\">{}</pre>",
                escape_html(text)
            ),
        };
        Stage { name, said, text, html }
    }
}

impl Sync {
    fn stages(&self) -> Vec<Stage> {
        let mut stages = vec![self.recorded()];
        if let Some((event, program)) = &self.ran {
            stages.extend([
                cut(event, program),
                lowered(event, program),
                compiled(event, program),
                run(event, program),
            ]);
        }
        stages
    }

    fn recorded(&self) -> Stage {
        let drawn = drawn::bundle(&self.graph, Form::Picture);
        let said = format!(
            "{} recorded, none of them has run; {} pending",
            count(self.graph.nodes.len(), "node"),
            match self.pending {
                1 => "1 result is".to_owned(),
                n => format!("{n} results are"),
            }
        );
        let html = drawn.get("text/html").unwrap_or_default().to_owned();
        Stage { name: "record", said, text: self.graph.text(), html }
    }
}

/// What of the graph became the program, op by op, and what it is fed.
fn cut(event: &SyncEvent, program: &Program) -> Stage {
    let mut lines = Vec::new();
    let name = |input: &Input| match *input {
        Input::Leaf(l) => format!("p{l}"),
        Input::Step(s) => format!("%{s}"),
    };
    for (i, s) in program.steps.iter().enumerate() {
        let inputs: Vec<String> = s.inputs.iter().map(name).collect();
        let attrs: Vec<String> = s.op.attrs.iter().zip(&s.attrs).map(|(def, a)| format!("{}={a}", def.name)).collect();
        let attrs = if attrs.is_empty() { String::new() } else { format!(" {{{}}}", attrs.join(", ")) };
        // A program that was there has the lines that it was compiled for.
        let at = if event.origin == Origin::Memory { String::new() } else { format!("# {}", told(s.at, s.statement)) };
        lines.push([format!("%{i} = {} {}({}){attrs}", s.ty, s.op.name, inputs.join(", ")), at]);
    }
    let packed: usize = program.params.packs.iter().map(|(_, members)| members.len()).sum();
    let said = format!(
        "{} at {} needs {}; {} on the device and {} feed it, {} it. Its key is {:016x}: {}",
        event.cause.name(),
        location(event.at),
        count(program.steps.len(), "op"),
        count(program.params.data.len(), "value"),
        count(packed, "number"),
        match event.outputs {
            1 => "1 result leaves".to_owned(),
            n => format!("{n} results leave"),
        },
        (event.hash >> 64) as u64,
        match event.origin {
            Origin::Memory => "a program of that key is there already",
            Origin::Disk => "an earlier session left a program of that key on the disk",
            Origin::Compiled => "there is no program of that key yet",
        }
    );
    Stage::new("cut", said, columns(&lines, &[]).trim_end().to_owned())
}

fn lowered(event: &SyncEvent, program: &Program) -> Stage {
    let said = match event.origin {
        Origin::Memory => "nothing to lower: this is the text that the program was made of".to_owned(),
        _ => format!("written as StableHLO in {}", units::measured(event.lower)),
    };
    Stage::new("lower", said, program.text.trim_end().to_owned())
}

fn compiled(event: &SyncEvent, program: &Program) -> Stage {
    let text = crate::show::optimized_text(program).unwrap_or_default();
    let fusions = text.lines().filter(|l| l.contains(" fusion(")).count();
    let took = match event.origin {
        Origin::Memory => "nothing to compile: it was found in memory".to_owned(),
        Origin::Disk => format!("read from the disk in {}", units::measured(event.compile)),
        Origin::Compiled => format!("compiled in {}", units::measured(event.compile)),
    };
    let said = match fusions {
        0 => took,
        n => format!("{took}; XLA made {} of {}", count(n, "fusion"), count(program.steps.len(), "op")),
    };
    Stage::new("compile", said, text.trim_end().to_owned())
}

fn run(event: &SyncEvent, program: &Program) -> Stage {
    let bytes: usize = program.root_types.iter().map(|ty| ty.bytes()).sum();
    let donated = match event.donated {
        0 => String::new(),
        n => format!(", {n} of them in the place of what it was given"),
    };
    let said = format!(
        "started on {} in {}: the host goes on while it works; {} of {}{donated}",
        event.device,
        units::measured(event.execute),
        count(event.outputs, "result"),
        units::bytes(bytes as u64)
    );
    let lines: Vec<String> = program.root_types.iter().enumerate().map(|(i, ty)| format!("result {i}: {ty}")).collect();
    Stage::new("run", said, lines.join("\n"))
}

impl Stepped {
    fn read_back(&self) -> Stage {
        let now = transfers();
        let (n, bytes, time) = (now.0 - self.read.0, now.1 - self.read.1, now.2 - self.read.2);
        let said = match n {
            0 => "nothing: values stay on the device until one is shown or read".to_owned(),
            _ => format!(
                "{} of {} to the host, in {}",
                count(n as usize, "transfer"),
                units::bytes(bytes as u64),
                units::measured(std::time::Duration::from_nanos(time as u64))
            ),
        };
        Stage::new("read back", said, String::new())
    }

    /// Every stage with the title of its sync.
    fn all(&self) -> Vec<(String, Stage)> {
        let several = self.syncs.len() > 1;
        let mut all = Vec::new();
        for (i, sync) in self.syncs.iter().enumerate() {
            let of = if several { format!("sync {} · ", i + 1) } else { String::new() };
            all.extend(sync.stages().into_iter().map(|s| (format!("{of}{}", s.name), s)));
        }
        if !self.syncs.is_empty() {
            all.push(("read back".into(), self.read_back()));
        }
        all
    }

    fn bundle(&self) -> Bundle {
        let all = self.all();
        if all.is_empty() {
            return Bundle::text("nothing ran: what the cell recorded is still pending (`%graph` draws it)").passing();
        }
        let more = match self.all - self.syncs.len() {
            0 => String::new(),
            n => format!("… and {n} more syncs"),
        };
        let page = |(i, (title, s)): (usize, &(String, Stage))| {
            let text = if s.text.is_empty() { String::new() } else { format!("\n{}", s.text) };
            format!("── {} of {}: {title} ──\n{}{text}\n", i + 1, all.len(), s.said)
        };
        let mut pages: Vec<String> = all.iter().enumerate().map(page).collect();
        if !more.is_empty() {
            pages.push(more.clone());
        }
        let plain = pages.join("\n");
        let pages = json!(pages).to_string();
        Bundle::html(html(&all, &more), plain).with(xlazy_mime::PAGES, pages).passing()
    }

    fn json(&self) -> Value {
        let stage = |s: &Stage| json!({ "stage": s.name, "said": s.said, "text": s.text });
        let sync = |s: &Sync| {
            let (lower, compile, execute) = s
                .ran
                .as_ref()
                .map_or((0.0, 0.0, 0.0), |(e, _)| (millis(e.lower), millis(e.compile), millis(e.execute)));
            json!({
                "stages": s.stages().iter().map(stage).collect::<Value>(),
                "lower_ms": lower,
                "compile_ms": compile,
                "execute_ms": execute,
            })
        };
        json!({
            "syncs": self.syncs.iter().map(sync).collect::<Value>(),
            "all": self.all,
            "read_back": self.read_back().said,
        })
    }
}

/// A stepper that needs no script: each stage stands behind a radio button, whose labels are the buttons; the arrow keys work, too. Where
/// styles are taken out, as on a static page, all stages stand one below the other.
fn html(all: &[(String, Stage)], more: &str) -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let id = format!("xlazy-step-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let mut rules = String::new();
    let (mut inputs, mut labels, mut panels) = (String::new(), String::new(), String::new());
    for (i, (title, stage)) in all.iter().enumerate() {
        let checked = if i == 0 { " checked" } else { "" };
        inputs.push_str(&format!(
            "<input type=\"radio\" name=\"{id}\" id=\"{id}-{i}\" aria-label=\"{}\"{checked}>",
            escape_html(title)
        ));
        labels.push_str(&format!("<label for=\"{id}-{i}\">{}</label> ", escape_html(title)));
        let to = |j: usize, what: &str| format!("<label for=\"{id}-{j}\">{what}</label>");
        let back = if i > 0 { to(i - 1, "◀ back") } else { String::new() };
        let next = if i + 1 < all.len() { to(i + 1, "next ▶") } else { String::new() };
        panels.push_str(&format!(
            "<section><div><b>{}. {}</b>: {}</div>{}<nav>{back} {next}</nav></section>",
            i + 1,
            escape_html(title),
            escape_html(&stage.said),
            stage.html
        ));
        rules.push_str(&format!(
            "#{id}-{i}:checked~div>section:nth-child({n}){{display:block}}#{id}-{i}:checked~header>label:nth-child({n}){{font-weight:700;border-color:currentColor}}",
            n = i + 1
        ));
    }
    format!(
        "<div id=\"{id}\"><style>#{id}>input{{position:absolute;opacity:0;width:0;height:0}}#{id} section{{display:none}}\
         #{id} label{{cursor:pointer;display:inline-block;padding:1px 8px;margin:1px;border:1px solid rgba(128,128,128,.45);border-radius:4px}}\
         #{id}>input:focus-visible~header{{outline:1px dotted currentColor}}#{id} nav{{margin:4px 0}}{rules}</style>\
         {inputs}<header>{labels}</header><div>{panels}</div>{}</div>",
        escape_html(more)
    )
}
