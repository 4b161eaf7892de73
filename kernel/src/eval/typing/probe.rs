//! Asks rustc for the type of a receiver: the cell's text with a method at the cursor that no type has, compiled as far as
//! types go. rustc names the type in its error, whatever else is wrong with the cell.
use crate::eval::generate::code::{self as generate, Plan};
use crate::eval::generate::definitions::Definitions;
use crate::eval::parse::parsed::Parsed;
use crate::eval::text::scan::mentions;
use crate::eval::text::source::{CellText, Source};
use crate::eval::text::types::{Named, nameable};
use crate::eval::toolchain::diagnostic::Diagnostic;
use crate::eval::toolchain::install::Installation;
use crate::eval::toolchain::rustc::{Check, Needs};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use xlazy_mime::Var;

/// The method that no type has.
pub const METHOD: &str = "xlazy_method";

/// A type that says what something takes when it is called, and what it gives.
const CALLED: &str = "XlazyCalled";

/// Who types does not wait longer.
const PATIENCE: Duration = Duration::from_secs(3);
/// Answers that are kept.
const MOST: usize = 400;

/// Variables whose type is open, with the statements that make them.
pub type Lets = [(String, String)];

/// What rustc has to be told besides the cell.
#[derive(Clone)]
pub struct Context {
    pub install: Installation,
    pub dir: PathBuf,
    pub needs: Needs,
    pub defs: Definitions,
}

impl From<(Installation, PathBuf, Needs, Definitions)> for Context {
    fn from((install, dir, needs, defs): (Installation, PathBuf, Needs, Definitions)) -> Context {
        Context { install, dir, needs, defs }
    }
}

/// Keeps a compiler waiting once somebody has asked, and what was answered.
#[derive(Clone, Default)]
pub struct Prober(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    waiting: Option<(Check, Needs, PathBuf)>,
    known: HashMap<String, Option<String>>,
    ended: bool,
}

impl Prober {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The type of what [`METHOD`] is called on, as rustc prints it.
    pub fn receiver(&self, context: &Context, vars: &[Var], open: &Lets, cell: &str) -> Option<String> {
        let source = source(context, vars, open, cell);
        if let Some(known) = self.state().known.get(&source) {
            return known.clone();
        }
        let check = self.take(context)?;
        let asked = Instant::now();
        let answer = check.ask(&source, PATIENCE, receiver);
        let mut state = self.state();
        if state.known.len() == MOST {
            state.known.clear();
        }
        // What came too late may come in time when it is asked again.
        if answer.is_some() || asked.elapsed() < PATIENCE {
            state.known.insert(source, answer.clone());
        }
        drop(state);
        self.warm_up(context);
        answer
    }

    fn take(&self, context: &Context) -> Option<Check> {
        let mut state = self.state();
        if state.ended {
            return None;
        }
        match state.waiting.take() {
            Some((check, needs, dir)) if needs == context.needs && dir == context.dir => Some(check),
            _ => start(context),
        }
    }

    /// Starts the compiler for the next question, beside everything else.
    pub fn warm_up(&self, context: &Context) {
        let (prober, context) = (self.clone(), context.clone());
        let work = move || {
            let mut state = prober.state();
            let there = state.waiting.as_ref().is_some_and(|(_, n, d)| *n == context.needs && *d == context.dir);
            if !there && !state.ended {
                state.waiting = start(&context).map(|c| (c, context.needs.clone(), context.dir.clone()));
            }
        };
        let _ = std::thread::Builder::new().name("xlazy-typing".into()).spawn(work);
    }

    /// Whether anybody has asked yet.
    pub fn is_used(&self) -> bool {
        let state = self.state();
        state.waiting.is_some() || !state.known.is_empty()
    }

    pub fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        state.waiting = None;
    }
}

/// What answers with the arguments and the result of what is called by that name, as those of [`CALLED`]: a call with each number of
/// arguments, since only the right one gives something. Nothing runs, so that it may be moved again and again.
pub fn called(name: &str) -> String {
    const MOST: usize = 6;
    let one = |count: usize| {
        let taken: Vec<String> = (0..count).map(|i| format!("A{i}")).collect();
        let listed = taken.iter().map(|a| format!("{a}, ")).collect::<String>();
        let takes = format!("_: impl FnOnce({}) -> R", taken.join(", "));
        let ask = format!("xlazy_{count}({name}).{METHOD}();");
        format!("fn xlazy_{count}<{listed}R>({takes}) -> {CALLED}<({listed}), R> {{ loop {{}} }} {ask}")
    };
    format!("({{ struct {CALLED}<A, R>(A, R); {} }})", (0..=MOST).map(one).collect::<String>())
}

fn start(context: &Context) -> Option<Check> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let id = format!("typing-{}", COUNT.fetch_add(1, Ordering::Relaxed));
    Check::start(&context.install, &context.dir, &id, &context.needs).ok()
}

/// The cell as a function whose parameters are the variables that it mentions; those whose type is open begin it.
fn source(context: &Context, vars: &[Var], open: &Lets, cell: &str) -> String {
    let mut out = Source::default();
    let mut mentioned = mentions(cell);
    let vars: Vec<&Var> = vars.iter().filter(|v| !open.iter().any(|(name, _)| *name == v.name)).collect();
    let lets: Vec<&str> =
        open.iter().filter(|(name, _)| mentioned.contains(name)).map(|(_, text)| text.as_str()).collect();
    lets.iter().for_each(|text| mentioned.extend(mentions(text)));
    let (text, plan) = (Arc::new(CellText::new(0, "")), Plan::default());
    let names = vars.iter().map(|v| &v.name).filter(|name| mentioned.contains(*name));
    let mut parsed = Parsed::default();
    parsed.shadows.extend(context.defs.shadowed(names));
    generate::prologue(&mut out, "lib", "xlazy_typing", &text, &parsed, &context.defs, &plan);
    let defs = &context.defs;
    let parameter = |v: &&Var| match nameable(&v.type_name, &mut |g, p| defs.current_path(g, p).map(|(path, _)| path)) {
        Named::Type(ty) => Some(format!("mut {}: {ty}, ", v.name)),
        Named::Refused(_) => None,
    };
    let parameters: String = vars.iter().filter(|v| mentioned.contains(&v.name)).filter_map(parameter).collect();
    let asynchronous = if mentioned.contains("await") { "async " } else { "" };
    // The cell's last expression is no result of it, which would say of what type it has to be.
    let returns = "::core::result::Result<(), ::std::boxed::Box<dyn ::core::error::Error>>";
    format!(
        "{}\n{asynchronous}fn xlazy_cell({parameters}) -> {returns} {{\n{}\n{cell}\n; loop {{}}\n}}\n",
        out.text,
        lets.join("\n")
    )
}

/// The type in an error about the method: the label has its arguments, the message may have their names only.
fn receiver(error: &Diagnostic) -> Option<String> {
    if !matches!(&*error.code, "E0599" | "E0689") || !error.message.contains(METHOD) {
        return None;
    }
    let quoted = |text: &str| {
        let (_, rest) = text.split_once(" `")?;
        Some(rest.rsplit_once('`')?.0.to_owned())
    };
    let labels = error.spans.iter().filter(|s| s.primary).filter_map(|s| s.label.as_ref());
    let label = labels.filter(|l| l.starts_with("method not found in `")).find_map(|l| quoted(l));
    let found = label.or_else(|| {
        // "no method named `xlazy_method` found for type parameter `T` in the current scope"
        let (_, rest) = error.message.split_once(METHOD)?;
        quoted(rest.trim_start_matches('`'))
    });
    found.filter(|ty| !(ty.contains(CALLED) && ty.ends_with(", _>")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::toolchain::diagnostic::Span;

    #[test]
    fn the_type_is_read_from_the_label_or_the_message() {
        let error = |message: &str, label: Option<&str>| Diagnostic {
            code: "E0599".into(),
            message: message.into(),
            spans: vec![Span { primary: true, label: label.map(str::to_owned), ..Span::default() }],
            ..Diagnostic::default()
        };
        let message = "no method named `xlazy_method` found for struct `Vec<T>` in the current scope";
        assert_eq!(receiver(&error(message, Some("method not found in `Vec<i32>`"))).as_deref(), Some("Vec<i32>"));
        assert_eq!(receiver(&error(message, Some("method not found"))).as_deref(), Some("Vec<T>"));
        let wrong = "method not found in `XlazyCalled<(_, _), _>`";
        assert_eq!(receiver(&error(message, Some(wrong))), None, "another number of arguments");
        assert_eq!(receiver(&error("no method named `other` found for struct `P`", None)), None);
    }
}
