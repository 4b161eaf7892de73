//! What a plan learns from rustc's answer to a try.
use crate::eval::generate::code::Plan;
use crate::eval::text::source::{Place, Source, Tag};
use crate::eval::toolchain::diagnostic::{Diagnostic, Span};

/// Changes the plan by what rustc says about generated code; false when there is nothing to learn.
pub(super) fn replan(errors: &[Diagnostic], source: &Source, plan: &mut Plan) -> bool {
    let before = plan.clone();
    for error in errors {
        plan.wrapped.extend(error.children.iter().flat_map(|c| hidden_functions(&c.message)));
        let unconverted = error.message.contains("`?` couldn't convert") || error.message.contains("Stop: From<");
        let no_error = |d: &Diagnostic| d.message.contains("to implement `Into<Box<dyn std::error::Error");
        plan.debug_errors |= error.code == "E0277" && (unconverted || error.children.iter().any(no_error));
        let stop = |s: &Span| {
            s.label.as_deref().is_some_and(|l| l.contains("expected `Stop`") || l.contains("expected `StopDebug`"))
        };
        plan.inferred |= error.code == "E0308" && error.spans.iter().any(stop);
        // In a macro, whose text nobody else takes apart.
        plan.asynchronous |= error.code == "E0728";
        if error.code == "E0507"
            && error.message.contains("captured variable in an `FnMut` closure")
            && let Some(name) = error.message.split('`').nth(1)
        {
            let name = name.split(['.', '[']).next().unwrap_or(name).trim_start_matches('*');
            plan.moved.insert(name.to_owned());
        }
        if matches!(&*error.code, "E0596" | "E0384" | "E0594") {
            // "consider changing this to be mutable" points at where it is loaded.
            let spans = error.spans.iter().chain(error.children.iter().flat_map(|c| &c.spans)).filter(|s| s.ours);
            let loads = spans.filter_map(|s| match source.place(s.start) {
                Place::Generated(Tag::Load(name)) if plan.moved.contains(name) => Some(name.clone()),
                _ => None,
            });
            plan.mutated.extend(loads.collect::<Vec<_>>());
        }
        let of_result = |s: &Span| s.label.as_deref().is_some_and(|l| l.contains("declared on the enum `Result`"));
        plan.ends |= plan.unshown && error.code == "E0282" && error.spans.iter().any(of_result);
        // What is shown has no type of its own; behind a semicolon it may get one.
        let nothing_to_show = error.message.contains("rt::Show<'_, !>");
        let statements = error.message.starts_with("macro expansion ignores")
            || error.children.iter().any(|c| c.message.contains("it can expand to a statement"));
        plan.unshown |= statements || nothing_to_show || matches!(&*error.code, "E0282" | "E0283" | "E0284");
        for span in error.spans.iter().filter(|s| s.ours) {
            let Place::Generated(tag) = source.place(span.start) else { continue };
            match tag {
                Tag::Restore(name) if error.code == "E0382" => drop(plan.moved.insert(name.clone())),
                // Moved away, set nowhere, or left out by a `#[cfg]`.
                Tag::Keep(name) if matches!(&*error.code, "E0382" | "E0381" | "E0425") => {
                    plan.spent.insert(name.clone());
                }
                Tag::Keep(name) if matches!(&*error.code, "E0525" | "E0594" | "E0596" | "E0507") => {
                    *plan.closures.entry(name.clone()).or_insert(0) += 1;
                }
                Tag::Moves(name) => {
                    plan.guessed.remove(name);
                    plan.spent.remove(name);
                }
                // An item's import is in the way only where the error is about imports.
                Tag::Use(binds)
                    if !binds.starts_with("::") || matches!(&*error.code, "E0603" | "E0432" | "E0252" | "E0255") =>
                {
                    plan.dropped_uses.insert(binds.clone());
                }
                _ => {}
            }
        }
    }
    *plan != before && plan.closures.values().all(|level| *level <= 2)
}

/// The functions that a linker's message says are hidden: see `FnValue::wrapped`.
pub(super) fn hidden_functions(message: &str) -> Vec<String> {
    let symbols = message.split("undefined hidden symbol: xlazy::").skip(1).filter_map(|s| s.lines().next());
    // The last part is a hash: `xlazy::ops::activation::…::relu::h7c736c301eb7040c`.
    let names = symbols.filter_map(|s| s.trim().rsplit("::").find(|p| !(p.len() == 17 && p.starts_with('h'))));
    names.map(str::to_owned).collect()
}
