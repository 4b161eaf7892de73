//! `%checkpoint` and `%autosave`: a hidden cell knows the types of the variables and hands them to the runtime, which
//! writes the file.
use super::checkpoint_files as files;
use super::compile::Names;
use super::errors::sentence;
use super::source::CellText;
use super::types::{self, Named};
use super::{Kind, Mode, RustEngine, Shared, State, lock};
use crate::engine::{Event, Failure, Reply};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use xlazy_mime::{Bundle, Var};

/// What `%autosave` was told, and what was saved last.
#[derive(Default)]
pub(super) struct Autosave {
    every: Option<Duration>,
    last: Option<Instant>,
    /// The runs that there had been then: without another one nothing has changed.
    runs: u64,
    /// What could not be kept the last time; it is said once.
    told: Vec<(String, String)>,
    /// The newest file of this session, for the report of a crash.
    pub newest: Option<(PathBuf, SystemTime)>,
}

/// What came of saving or loading.
struct Outcome {
    done: Vec<String>,
    refused: Vec<(String, String)>,
    bytes: u64,
}

/// How variables with a notebook's own types come in: none of its crates, `serde` alone, or `serde` with `serde_json`.
#[derive(Clone, Copy, PartialEq)]
enum Serde {
    None,
    Alone,
    Json,
}

const RT: &str = "::xlazy::cell::checkpoint";

/// Between serde_json's values and the runtime's. Exact: what JSON text would round or lose does not go through text.
const TO_TREE: &str = "
fn xlazy_tree(v: &::serde_json::Value) -> ::xlazy::cell::checkpoint::tree::Tree {
    use ::serde_json::Value; use ::xlazy::cell::checkpoint::tree::Tree;
    match v {
        Value::Null => Tree::Null,
        Value::Bool(b) => Tree::Bool(*b),
        Value::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(n), _) => Tree::Int(n as i128),
            (_, Some(n)) => Tree::Int(n as i128),
            _ => Tree::Float(n.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(s) => Tree::Text(s.clone()),
        Value::Array(items) => Tree::List(items.iter().map(xlazy_tree).collect()),
        Value::Object(o) => Tree::Map(o.iter().map(|(k, v)| (Tree::Text(k.clone()), xlazy_tree(v))).collect()),
    }
}
trait XlazySave { fn save(&self, name: &str); }
impl<T: ::serde::Serialize + ::serde::de::DeserializeOwned> XlazySave for &::xlazy::cell::checkpoint::Kept<'_, T> {
    fn save(&self, name: &str) {
        ::xlazy::cell::checkpoint::put(name, ::std::any::type_name::<T>(), &mut |_| {
            let made = ::serde_json::to_value(self.0).map_err(|e| format!(\"serde cannot write it: {e}\"))?;
            let read = ::serde_json::from_value::<T>(made.clone())
                .map_err(|e| format!(\"serde cannot read back what it writes of it (NaN, an infinity?): {e}\"))?;
            match ::serde_json::to_value(&read) {
                Ok(again) if again == made => Ok(xlazy_tree(&made)),
                _ => Err(\"serde reads back something else than it writes of it\".to_owned()),
            }
        });
    }
}
";

const OF_TREE: &str = "
fn xlazy_value(t: &::xlazy::cell::checkpoint::tree::Tree) -> ::core::result::Result<::serde_json::Value, String> {
    use ::serde_json::Value; use ::xlazy::cell::checkpoint::tree::Tree;
    Ok(match t {
        Tree::Null => Value::Null,
        Tree::Bool(b) => Value::Bool(*b),
        Tree::Int(n) => match (i64::try_from(*n), u64::try_from(*n)) {
            (Ok(n), _) => n.into(),
            (_, Ok(n)) => n.into(),
            _ => return Err(format!(\"{n} is too large\")),
        },
        Tree::Float(v) => (*v).into(),
        Tree::Text(s) => s.clone().into(),
        Tree::List(items) => Value::Array(items.iter().map(xlazy_value).collect::<::core::result::Result<_, _>>()?),
        Tree::Map(items) => {
            let mut out = ::serde_json::Map::new();
            for (k, v) in items {
                let Tree::Text(k) = k else { return Err(\"a key is no text\".to_owned()) };
                out.insert(k.clone(), xlazy_value(v)?);
            }
            Value::Object(out)
        }
        _ => return Err(\"it was a tensor, a module or an array when it was saved\".to_owned()),
    })
}
trait XlazyLoad<T> { fn load(&self, name: &str) -> Option<T>; }
impl<T: ::serde::de::DeserializeOwned> XlazyLoad<T> for &::xlazy::cell::checkpoint::Wanted<T> {
    fn load(&self, name: &str) -> Option<T> {
        let mut value = None;
        ::xlazy::cell::checkpoint::get(name, &mut |tree, _| {
            let json = xlazy_value(tree)?;
            value = Some(::serde_json::from_value::<T>(json).map_err(|e| {
                format!(\"it does not fit its type as it is defined here: {e}; define the type as it was, or give new fields \
                         `#[serde(default)]`\")
            })?);
            Ok(())
        });
        value
    }
}
";

/// Says what is missing where the type itself would do.
const SERDE_ALONE: &str = "
trait XlazySave { fn save(&self, name: &str); }
impl<T: ::serde::Serialize> XlazySave for &::xlazy::cell::checkpoint::Kept<'_, T> {
    fn save(&self, name: &str) {
        ::xlazy::cell::checkpoint::put(name, ::std::any::type_name::<T>(), &mut |_| {
            Err(\"its type is Serialize, and writing it needs `:dep serde_json = \\\"1\\\"`, too\".to_owned())
        });
    }
}
";

fn save_text<'a>(names: impl Iterator<Item = &'a str>, serde: Serde) -> String {
    let mut text = format!(
        "{{ use {RT}::{{SaveValue as _, SaveModule as _, SaveOptimizer as _, SaveNothing as _}};{}\n{RT}::begin();\n",
        match serde {
            Serde::None => "",
            Serde::Alone => SERDE_ALONE,
            Serde::Json => TO_TREE,
        }
    );
    for name in names {
        text += &format!("(&&&&&{RT}::Kept(&{name})).save(\"{name}\");\n");
    }
    text + "}"
}

fn load_text<'a>(path: &str, hash: &str, statements: impl Iterator<Item = &'a str>, serde: Serde) -> String {
    let helpers = if serde == Serde::Json { OF_TREE } else { "" };
    format!(
        "{{ use {RT}::{{LoadValue as _, LoadNothing as _}}; use ::xlazy::cell::rt::{{KeepHandle as _, KeepMove as _}};\
         {helpers}\n{RT}::reopen({path:?}, {hash:?});\n{}}}",
        statements.collect::<String>()
    )
}

/// A variable's name, and the statement that is generated for it.
type Part<'a> = (&'a str, String);

/// A file's variable, as the runtime lists it.
struct Listed {
    name: String,
    type_name: String,
    kind: String,
}

impl State {
    fn serde(&self) -> Serde {
        let wanted = self.compiler.defs.deps.as_ref().map(|d| d.wanted()).unwrap_or_default();
        let has = |name: &str| wanted.contains_key(name);
        match (has("serde"), has("serde_json")) {
            (true, true) => Serde::Json,
            (true, false) => Serde::Alone,
            _ => Serde::None,
        }
    }

    /// Runs generated code that no cell shows.
    fn hidden(&mut self, cell: u64, kind: Kind, text: String, shared: &Shared) -> Result<(), Reply> {
        let whole = 0..text.len();
        let cell = Arc::new(CellText::new(cell, text));
        let mode = Mode { cell: cell.cell, silent: true, allow_stdin: false, opt_level: Some(0), kind, within: 0 };
        match self.run(&mode, &cell, whole, shared, &mut |_| {}) {
            Reply::Ok => Ok(()),
            other => Err(other),
        }
    }

    fn ask_json(&mut self, name: &str, args: &str) -> Result<Value, Failure> {
        let answer = self.call(name, args)?;
        serde_json::from_str(answer.plain()).map_err(|e| sentence("CheckpointError", format!("{name}: {e}")))
    }

    /// Runs what `text` makes of these variables; where that does not compile, of each by itself, to find out which of
    /// them no cell can handle.
    fn hidden_for<'a>(
        &mut self,
        kind: (u64, Kind),
        items: &[Part<'a>],
        text: &dyn Fn(&[&Part<'a>]) -> String,
        shared: &Shared,
    ) -> Result<Vec<(String, String)>, Reply> {
        let mut run = |items: &[&Part<'a>]| self.hidden(kind.0, kind.1, text(items), shared);
        let mut able: Vec<&Part> = items.iter().collect();
        let mut refused = Vec::new();
        match run(&able) {
            Err(Reply::Error(f)) if f.name == "CompileError" => {
                able.clear();
                for item in items {
                    match run(&[item]) {
                        Ok(()) => able.push(item),
                        Err(Reply::Error(f)) => refused.push((item.0.to_owned(), f.message)),
                        Err(other) => return Err(other),
                    }
                }
                run(&able)?;
            }
            other => other?,
        }
        Ok(refused)
    }

    fn save(&mut self, path: &Path, shared: &Shared) -> Result<Outcome, Reply> {
        let serde = self.serde();
        let names: Vec<String> = self.vars.iter().map(|v| v.name.clone()).collect();
        let items: Vec<Part> = names.iter().map(|n| (n.as_str(), String::new())).collect();
        let text = |items: &[&Part]| save_text(items.iter().map(|i| i.0), serde);
        let mut refused = self.hidden_for((0, Kind::Hidden), &items, &text, shared)?;
        let told = self.ask_json("checkpoint-write", &path.to_string_lossy()).map_err(Reply::Error)?;
        refused.extend(pairs(&told["refused"]));
        self.autosave.newest = Some((path.to_owned(), SystemTime::now()));
        self.autosave.runs = self.runs;
        self.autosave.last = Some(Instant::now());
        Ok(Outcome { done: texts(&told["kept"]), refused, bytes: std::fs::metadata(path).map_or(0, |m| m.len()) })
    }

    fn load(&mut self, path: &Path, cell: u64, shared: &Shared) -> Result<Outcome, Reply> {
        let path = path.to_string_lossy().into_owned();
        let told = self.ask_json("checkpoint-open", &path).map_err(Reply::Error)?;
        let listed: Vec<Listed> = told["variables"].as_array().into_iter().flatten().filter_map(Listed::of).collect();
        let hash = told["hash"].as_str().unwrap_or_default().to_owned();
        let (serde, mut items, mut refused) = (self.serde(), Vec::new(), Vec::new());
        let mut effect = Names::default();
        for v in &listed {
            let there = self.vars.iter().find(|x| x.name == v.name);
            match self.load_statement(v, there) {
                Ok(statement) => items.push((v.name.as_str(), statement)),
                Err(why) => refused.push((v.name.clone(), why)),
            }
            effect.binds.insert(v.name.clone());
            if there.is_some() && v.kind != "value" {
                // A parameter may be loaded in place, and whoever holds it sees that.
                effect.takes.insert(v.name.clone());
            } else {
                effect.fresh.insert(v.name.clone());
            }
        }
        self.effect = Some(effect);
        let text = |items: &[&Part]| load_text(&path, &hash, items.iter().map(|i| i.1.as_str()), serde);
        let tried = self.hidden_for((cell, Kind::User), &items, &text, shared);
        self.effect = None;
        let told = self.ask_json("checkpoint-close", "").map_err(Reply::Error)?;
        refused.extend(tried?);
        refused.extend(pairs(&told["refused"]));
        self.journal.not_bound(&refused.iter().map(|r| r.0.clone()).collect());
        Ok(Outcome { done: texts(&told["loaded"]), refused, bytes: 0 })
    }

    /// The generated statement that restores a variable, or why there can be none.
    fn load_statement(&self, v: &Listed, there: Option<&Var>) -> Result<String, String> {
        let name = &v.name;
        let short = types::short(&v.type_name);
        match v.kind.as_str() {
            kind @ ("module" | "optimizer") => {
                let article = if kind == "module" { "a" } else { "an" };
                match there {
                    Some(t) if types::short(&t.type_name) == short && kind == "module" => {
                        Ok(format!("{RT}::load_module(\"{name}\", &{name});\n"))
                    }
                    Some(t) if types::short(&t.type_name) == short => {
                        Ok(format!("{RT}::load_optimizer(\"{name}\", &mut {name});\n"))
                    }
                    Some(t) => {
                        let now = types::short(&t.type_name);
                        Err(format!("it is {article} {kind} of type `{short}`, and `{name}` is of type `{now}` here"))
                    }
                    None => Err(format!(
                        "it is {article} {kind} of type `{short}`, and its state goes into a variable that is there: run \
                         the cell that makes `{name}`, then load again"
                    )),
                }
            }
            _ if v.type_name == TENSOR => Ok(format!("{RT}::load_tensor(\"{name}\");\n")),
            _ => {
                let mut missing = None;
                let named = types::nameable(&v.type_name, &mut |_, path| {
                    let item = path.split("::").next().unwrap_or(path);
                    let found = self.compiler.defs.type_named(item).map(|(g, _)| format!("::{}::{path}", g.crate_name));
                    if found.is_none() {
                        missing = Some(item.to_owned());
                    }
                    found
                });
                match (named, missing) {
                    (_, Some(item)) => Err(format!(
                        "its type `{item}` is not defined here: run the cell that defines it, then load again"
                    )),
                    (Named::Refused(why), None) => Err(why),
                    (Named::Type(written), None) => Ok(format!(
                        "if let ::core::option::Option::Some(xlazy_v) = (&&&{RT}::Wanted::<{written}>::TYPE).load(\"{name}\") \
                         {{ (&&::xlazy::cell::rt::Of::value(&xlazy_v)).keep(\"{name}\", xlazy_v); }}\n"
                    )),
                }
            }
        }
    }
}

/// As `type_name` gives it.
const TENSOR: &str = "xlazy::tensor::Tensor";

impl Listed {
    fn of(v: &Value) -> Option<Listed> {
        let text = |key: &str| v[key].as_str().map(str::to_owned);
        Some(Listed { name: text("name")?, type_name: text("type")?, kind: text("kind")? })
    }
}

impl RustEngine {
    pub(super) fn checkpoint(&self, mode: &Mode, args: &str, events: &mut dyn FnMut(Event)) -> Reply {
        let (verb, name) = args.split_once(char::is_whitespace).map_or((args, ""), |(v, n)| (v, n.trim()));
        if verb.is_empty() {
            return show(files::list(Path::new(".")), events);
        }
        let path = match files::path_of(name) {
            Ok(path) => path,
            Err(why) => return Reply::Error(sentence("UsageError", why)),
        };
        if verb != "save" && !path.is_file() {
            let message = format!("there is no checkpoint {}; `%checkpoint` lists those there are", path.display());
            return Reply::Error(sentence("CheckpointError", message));
        }
        let mut state = lock(&self.state);
        match verb {
            "save" => match state.save(&path, &self.shared) {
                Ok(outcome) => show(outcome.saved(&path), events),
                Err(reply) => reply,
            },
            "load" => {
                let loaded = state.load(&path, mode.cell, &self.shared);
                self.know(&state);
                match loaded {
                    Ok(outcome) => show(outcome.loaded(&path), events),
                    Err(reply) => reply,
                }
            }
            _ => match files::delete(&path) {
                Ok(()) => show(format!("Deleted {}.", path.display()), events),
                Err(why) => Reply::Error(sentence("CheckpointError", why)),
            },
        }
    }

    pub(super) fn autosave(&self, args: &str, events: &mut dyn FnMut(Event)) -> Reply {
        let mut state = lock(&self.state);
        let every = match args {
            "" => state.autosave.every,
            "off" => None,
            text => match files::duration(text) {
                Some(every) => Some(every),
                None => {
                    let message = format!("`%autosave` takes a time such as `5min` or `30s`, or `off`, not `{text}`");
                    return Reply::Error(sentence("UsageError", message));
                }
            },
        };
        state.autosave.every = every;
        let path = files::autosave_path();
        let text = match every {
            None => "autosave is off".to_owned(),
            Some(every) => {
                format!("autosave: after a cell, when {} have passed, in {}", files::human(every), path.display())
            }
        };
        show(text, events)
    }

    /// Saves after a cell where it is time to.
    pub(super) fn autosave_if_due(&self, events: &mut dyn FnMut(Event)) {
        let mut state = lock(&self.state);
        let saved = &state.autosave;
        let due = saved.every.is_some_and(|every| saved.last.is_none_or(|last| last.elapsed() >= every));
        let interrupted = self.shared.interrupted.load(std::sync::atomic::Ordering::SeqCst);
        if !due || interrupted || saved.runs == state.runs || state.vars.is_empty() {
            return;
        }
        let mut say = |text: String| events(Event::Stream { stderr: true, text });
        match state.save(&files::autosave_path(), &self.shared) {
            Ok(outcome) => {
                if outcome.refused != state.autosave.told && !outcome.refused.is_empty() {
                    say(format!("note: autosave leaves out{}\n", reasons(&outcome.refused)));
                }
                state.autosave.told = outcome.refused;
            }
            Err(reply) => {
                state.autosave.last = Some(Instant::now());
                let why = match reply {
                    Reply::Error(failure) => failure.message,
                    _ => "it was interrupted".to_owned(),
                };
                say(format!("note: autosave failed: {why}. What was saved before is untouched\n"));
            }
        }
    }
}

impl Outcome {
    fn saved(&self, path: &Path) -> String {
        let count = self.done.len();
        let mut text = format!(
            "Saved {count} variable{} in {} ({}){}{}",
            if count == 1 { "" } else { "s" },
            path.display(),
            files::bytes(self.bytes),
            if count > 0 { ": " } else { "" },
            self.done.join(", ")
        );
        if !self.refused.is_empty() {
            text += &format!("\nNot kept:{}", reasons(&self.refused));
        }
        text
    }

    fn loaded(&self, path: &Path) -> String {
        let mut text = match self.done.is_empty() {
            true => format!("Loaded nothing from {}", path.display()),
            false => format!("Loaded {} from {}", self.done.join(", "), path.display()),
        };
        if !self.refused.is_empty() {
            text += &format!("\nNot loaded:{}", reasons(&self.refused));
        }
        text
    }
}

fn reasons(refused: &[(String, String)]) -> String {
    refused.iter().map(|(name, why)| format!("\n  {name}: {why}")).collect()
}

fn texts(v: &Value) -> Vec<String> {
    v.as_array().into_iter().flatten().filter_map(|t| t.as_str().map(str::to_owned)).collect()
}

fn pairs(v: &Value) -> Vec<(String, String)> {
    let pair = |p: &Value| Some((p[0].as_str()?.to_owned(), p[1].as_str()?.to_owned()));
    v.as_array().into_iter().flatten().filter_map(pair).collect()
}

fn show(text: String, events: &mut dyn FnMut(Event)) -> Reply {
    events(Event::Display { bundle: Bundle::text(text), id: None, update: false });
    Reply::Ok
}
