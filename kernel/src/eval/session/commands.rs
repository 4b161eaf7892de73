//! evcxr's commands (`:dep`, `:vars`, `:type`…): what people's fingers and notebooks written for evcxr know.
use super::core::Session;
use super::shared::Shared;
use crate::engine::{Event, Failure, Reply, sentence};
use crate::eval::deps::build::build;
use crate::eval::deps::notebook::Notebook;
use crate::eval::deps::stages::{self, Deps};
use crate::eval::parse::segments::asked;
use crate::eval::text::types;
use crate::folder::run_somewhere;
use crate::magics;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};
use xlazy_mime::{Bundle, regular};

/// Commands that set what xlazy always does, or does not have.
const SETTINGS: &[&str] = &[
    "offline",
    "timing",
    "sccache",
    "linker",
    "codegen_backend",
    "toolchain",
    "preserve_vars_on_panic",
    "fmt",
    "efmt",
    "internal_debug",
    "build_env",
    "cache",
    "static_linking",
    "types",
    "env",
    "allow_static_linking",
    "last_error_json",
];

/// What a command may ask of the engine, besides what a magic may.
pub trait Host: magics::Host {
    fn session(&self) -> MutexGuard<'_, Session>;
    fn restart(&self) -> Result<(), Failure>;
}

/// Runs one command; `line` is as the user wrote it.
pub fn run(line: &str, host: &impl Host, events: &mut dyn FnMut(Event)) -> Reply {
    if let Some(at) = asked(line) {
        return magics::run(&format!("%help {}", line[at].trim()), None, host, events);
    }
    let line = line.trim().trim_start_matches(':');
    let (name, args) = line.split_once(char::is_whitespace).map_or((line, ""), |(n, a)| (n, a.trim()));
    match name {
        // Done before the cell began.
        "dep" => Reply::Ok,
        "vars" => magics::run("%vars", None, host, events),
        "t" | "type" => show_type(host, args, events),
        "help" => {
            let list = magics::COMMANDS.iter().map(|(c, what)| format!("{c:<18} {what}\n"));
            show(list.collect::<String>().trim_end(), events)
        }
        "version" => show(&format!("xlazy {}", env!("CARGO_PKG_VERSION")), events),
        "clear" | "restart" => match host.restart() {
            Ok(()) => Reply::Ok,
            Err(failure) => Reply::Error(failure),
        },
        "opt" => match level(args) {
            _ if args.is_empty() => set_opt(2, host, events),
            Some(level) => set_opt(level, host, events),
            None => refuse("UsageError", format!("`:opt` takes a level from 0 to 3, not `{args}`")),
        },
        "load" => match regular::read_to_string(args) {
            Ok(text) => host.run_code(&text, events),
            Err(e) => refuse("UsageError", format!("{args}: {e}")),
        },
        "show_deps" => {
            let deps = host.session().compiler.defs.deps.clone();
            let list: Vec<String> = deps.iter().flat_map(|d| d.wanted()).map(|(n, w)| format!("{n} = {w}")).collect();
            let lock = Notebook::find(&host.session().install).lock;
            let lock = lock.map(|l| format!("\nlocked in {}", l.display())).unwrap_or_default();
            show(&if list.is_empty() { "no dependencies".into() } else { list.join("\n") + &lock }, events)
        }
        "doc" => magics::run(&format!("%help {args}"), None, host, events),
        "explain" => explain(&host.session(), args, events),
        "last_compile_dir" => show(&host.session().compiler.folder.path().display().to_string(), events),
        "q" | "quit" => refuse("UsageError", "a cell cannot end its kernel: shut it down in the front end".into()),
        _ if SETTINGS.contains(&name) => {
            let text = format!("note: `:{name}` sets nothing in xlazy\n");
            events(Event::Stream { stderr: true, text });
            Reply::Ok
        }
        _ => refuse("UnknownCommand", format!("there is no command `:{name}`; `:help` lists the commands")),
    }
}

/// What `rustc --explain` says to these codes, or to those of the last compile error.
fn explain(session: &Session, asked: &str, events: &mut dyn FnMut(Event)) -> Reply {
    let asked: Vec<String> = asked.split_whitespace().map(str::to_uppercase).collect();
    let is_code =
        |code: &String| code.len() == 5 && code.starts_with('E') && code[1..].bytes().all(|b| b.is_ascii_digit());
    if let Some(other) = asked.iter().find(|code| !is_code(code)) {
        return refuse("UsageError", format!("`{other}` is no number of a compile error: these are like E0382"));
    }
    let explanation = |code: &String| {
        let mut rustc = std::process::Command::new(&session.install.toolchain.rustc);
        let out = run_somewhere(&mut rustc, Path::new("/")).arg("--explain").arg(code).output().ok()?;
        let text = String::from_utf8_lossy(&out.stdout).trim().to_owned();
        (!text.is_empty()).then(|| format!("{code}\n{text}"))
    };
    let codes: Vec<&String> =
        if asked.is_empty() { session.last_codes.iter().collect() } else { asked.iter().collect() };
    let texts: Vec<String> = codes.into_iter().filter_map(explanation).collect();
    match texts.is_empty() {
        true if asked.is_empty() => refuse("UsageError", "no compile error with a number came before".into()),
        true => refuse("UsageError", format!("rustc knows no error {}", asked.join(", "))),
        false => show(&texts.join("\n\n"), events),
    }
}

fn set_opt(level: u8, host: &impl Host, events: &mut dyn FnMut(Event)) -> Reply {
    host.session().opt_level = Some(level);
    show(&format!("Optimization: {level}"), events)
}

fn show_type(host: &impl Host, expression: &str, events: &mut dyn FnMut(Event)) -> Reply {
    let code = format!("::std::any::type_name_of_val(&({expression}))");
    host.run_code(&code, &mut |event| match event {
        Event::Result(bundle) => {
            let name = types::short(bundle.plain().trim_matches('"'));
            events(Event::Result(Bundle::text(format!("{expression}: {name}"))));
        }
        other => events(other),
    })
}

/// How long crates may be compiled until it is said how they are sooner.
const LONG: Duration = Duration::from_secs(60);
const SOONER: &str = "note: crates are compiled optimised, once for all notebooks; interrupt, and `:opt 0` before `:dep` has them \
                      in a third of the time, to run slower\n";

/// Adds the dependencies that `lines` (without `:dep`) name to those in force. They are compiled at the level that their cell
/// asks for, or an earlier `:opt`.
pub fn depend(
    session: &mut Session,
    shared: &Shared,
    lines: &[&str],
    level: Option<u8>,
    events: &mut dyn FnMut(Event),
) -> Reply {
    let before = session.compiler.defs.deps.clone();
    let mut wanted = before.as_ref().map(|d| d.wanted()).unwrap_or_default();
    for line in lines {
        match stages::parse(line) {
            Ok(more) => wanted.extend(more),
            Err(failure) => return Reply::Error(failure),
        }
    }
    let in_a_folder = wanted.values().any(|w| stages::is_in_a_folder(w));
    if !in_a_folder && before.as_ref().is_some_and(|d| d.wanted() == wanted) {
        return Reply::Ok;
    }
    let level = level.or(session.opt_level);
    let mut say = |text| events(Event::Told(text));
    let mut sooner = (level.is_none() && before.is_none()).then(Instant::now);
    let mut progress = |text| {
        if sooner.take_if(|began| began.elapsed() > LONG).is_some() {
            say(SOONER.to_owned());
        }
        say(text);
    };
    let built = build(&session.install, before.as_deref(), wanted, level, &shared.at_work, &mut progress);
    if shared.interrupted.load(Ordering::SeqCst) {
        return Reply::Interrupted;
    }
    let deps: Deps = match built {
        Ok(deps) => deps,
        Err(failure) => return Reply::Error(failure),
    };
    if before.as_ref().is_some_and(|d| **d == deps) {
        return Reply::Ok;
    }
    let anew = before.as_ref().map(|b| b.compiled_anew(&deps)).unwrap_or_default();
    let began = before.filter(|b| !deps.extends(b));
    if let Err(refused) = session.compiler.depend_on(Arc::new(deps)) {
        return refused.into();
    }
    if let Some(began) = began {
        let names: Vec<String> = began.wanted().keys().map(|n| format!("`{n}`")).collect();
        let names = names.join(", ");
        say(format!("note: the dependencies were linked anew: statics of {names} begin again\n"));
        session.drop_values_of(&anew, events);
    }
    session.compiler.warm_up();
    Reply::Ok
}

/// The level that a cell asks for itself: `// @opt 3` on a line of its own.
pub fn opt_in(text: &str) -> Option<u8> {
    let mut levels = text.lines().filter_map(|l| level(l.trim().strip_prefix("//")?.trim().strip_prefix("@opt")?));
    levels.next_back()
}

/// The level that a line `:opt`, `%opt` or `%%opt` sets.
pub fn opt_of(line: &str) -> Option<u8> {
    level(line.trim_start_matches([':', '%']).strip_prefix("opt ")?)
}

fn level(written: &str) -> Option<u8> {
    written.trim().parse().ok().filter(|l| *l <= 3)
}

fn show(text: &str, events: &mut dyn FnMut(Event)) -> Reply {
    events(Event::Display { bundle: Bundle::text(text), id: None, update: false });
    Reply::Ok
}

fn refuse(name: &str, message: String) -> Reply {
    Reply::Error(sentence(name, message))
}
