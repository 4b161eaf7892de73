//! What the runtime would do, shown without doing it: the pending graph, its IR, its StableHLO, XLA's optimised HLO. What
//! `%graph`, `%ir`, `%stablehlo` and `%hlo` show.
pub(crate) mod memory;
pub(crate) mod pod;

use crate::display;
use crate::display::graph::Form;
use crate::display::ir::View;
use crate::insight::INSIGHT;
use crate::json::{self, Value, json};
use crate::{Error, Result, Tensor};
use xlazy_core::host::named;
use xlazy_core::ir::{NodeId, graph as arena};
use xlazy_core::run::{self, Program};
use xlazy_mime::Bundle;

/// The graph that computing the tensor would run, drawn: ops with types and source lines, what is on the device already,
/// what is shared. Runs nothing. With `as_json`, the nodes as data.
///
/// ```
/// use xlazy::prelude::*;
/// let y = (Tensor::ones([2, 3]) * 2.0).sum();
/// assert!(xlazy::show::graph(&y, false).plain().contains("sum f32[]"));
/// ```
pub fn graph(of: &Tensor, as_json: bool) -> Bundle {
    display::graph::bundle(&one(of), if as_json { Form::Json } else { Form::Picture })
}

/// As [`graph`], in a form: `json`, `dot` (Graphviz), or `model-explorer` (the JSON that Google's Model Explorer loads).
///
/// ```
/// use xlazy::prelude::*;
/// let y = (Tensor::ones([2, 3]) * 2.0).sum();
/// assert!(xlazy::show::graph_as(&y, "dot").unwrap().plain().starts_with("digraph"));
/// assert!(xlazy::show::graph_as(&y, "png").is_err());
/// ```
pub fn graph_as(of: &Tensor, form: &str) -> Result<Bundle> {
    let form = Form::named(&format!("--{form}")).ok_or_else(|| Error::Usage {
        message: format!("a graph has no form `{form}`; there are json, dot and model-explorer"),
    })?;
    Ok(display::graph::bundle(&one(of), form))
}

/// The recorded nodes that the tensor needs, one a line: `%2 = f32[2,3] mul(%0, %1)  # cell 7, line 3`. Runs nothing.
/// With `as_json`, the nodes as data.
pub fn ir(of: &Tensor, as_json: bool) -> Bundle {
    show_ir(&one(of), as_json)
}

/// The StableHLO text that xlazy would hand to XLA to compute the tensor. Compiles and runs nothing. With `as_json`, as
/// data.
#[track_caller]
pub fn stablehlo(of: &Tensor, as_json: bool) -> Bundle {
    of.refuse_read().unwrap_or_else(|e| e.raise());
    match run::lowered(vec![of.id()]) {
        Some(text) => program("stablehlo", "StableHLO, as it would be handed to XLA", &text, as_json),
        None => nothing_to_run(as_json),
    }
}

/// The HLO text of the program that would compute the tensor, after XLA's passes: what really runs, with fusions and
/// layouts. Compiles it if it is not in the cache, and does not run it. With `as_json`, as data.
#[track_caller]
pub fn hlo(of: &Tensor, as_json: bool) -> Bundle {
    of.refuse_read().unwrap_or_else(|e| e.raise());
    let text = run::compiled(&INSIGHT, vec![of.id()]).map(|p| p.and_then(|p| optimized_text(&p)));
    match text {
        Some(Ok(text)) => program("hlo", "HLO after XLA's passes; not run", &text, as_json),
        Some(Err(e)) => e.raise(),
        None => nothing_to_run(as_json),
    }
}

/// Device memory that computing the tensor would take: its value, and what its program needs while it runs. Compiles the
/// program if it is not in the cache, and does not run it. With `as_json`, as data.
#[track_caller]
pub fn memory(of: &Tensor, as_json: bool) -> Bundle {
    of.refuse_read().unwrap_or_else(|e| e.raise());
    memory::of(of, as_json).unwrap_or_else(|e| e.raise())
}

/// The collectives of the program that would compute the tensor: what its devices tell one another, in which groups, for which
/// line. Compiles it if it is not in the cache, and does not run it. With `as_json`, as data.
#[track_caller]
pub fn collectives(of: &Tensor, as_json: bool) -> Bundle {
    of.refuse_read().unwrap_or_else(|e| e.raise());
    match run::compiled(&INSIGHT, vec![of.id()]) {
        Some(Ok(p)) => show_collectives(&p, as_json).unwrap_or_else(|e| e.raise()),
        Some(Err(e)) => e.raise(),
        None => nothing_to_run(as_json),
    }
}

/// Those of the program that ran last.
pub(crate) fn last_collectives(as_json: bool) -> Result<Bundle> {
    let last = last_program()?;
    show_collectives(&last, as_json)
}

fn show_collectives(p: &Program, as_json: bool) -> Result<Bundle> {
    let all = match &p.executable {
        None => vec![],
        Some(executable) => {
            let (format, bytes) = executable.optimized_program()?;
            display::collectives::of(p, &format, &bytes)
        }
    };
    Ok(match as_json {
        true => json::bundle(display::collectives::data(p, &all)),
        false => display::collectives::bundle(p, &all),
    })
}

fn nothing_to_run(as_json: bool) -> Bundle {
    match as_json {
        true => json::bundle(Value::Null),
        false => Bundle::text("the value is on the device already: there is nothing to compile").passing(),
    }
}

/// Everything that is pending, as a graph.
pub(crate) fn pending_graph(form: Form) -> Bundle {
    display::graph::bundle(&pending(), form)
}

/// Everything that is pending, as text.
pub(crate) fn pending_ir(as_json: bool) -> Bundle {
    show_ir(&pending(), as_json)
}

/// What one tensor needs.
fn one(of: &Tensor) -> View {
    // Names first: who holds the graph asks nobody.
    let named = named();
    View::of(&arena(), &[of.id()], false, &named)
}

fn pending() -> View {
    let named = named();
    let g = arena();
    let roots: Vec<NodeId> = g.barrier_roots();
    View::of(&g, &roots, true, &named)
}

fn show_ir(view: &View, as_json: bool) -> Bundle {
    if as_json {
        return json::bundle(view.json());
    }
    if view.nodes.is_empty() {
        return Bundle::text("nothing is pending").passing();
    }
    let (text, bundle) = (view.text(), |text: &str| display::page::program("pending IR, not run", text));
    bundle(&text)
}

/// The StableHLO of the program that ran last.
pub(crate) fn last_stablehlo(as_json: bool) -> Result<Bundle> {
    let last = last_program()?;
    Ok(program("stablehlo", &about(&last, "StableHLO of the program that ran last"), &last.text, as_json))
}

/// The optimised HLO of the program that ran last.
pub(crate) fn last_hlo(as_json: bool) -> Result<Bundle> {
    let last = last_program()?;
    let text = optimized_text(&last)?;
    Ok(program("hlo", &about(&last, "HLO after XLA's passes, of the program that ran last"), &text, as_json))
}

fn last_program() -> Result<std::sync::Arc<Program>> {
    let message = "no program has run yet: show or read a tensor, or call sync(), and ask again";
    run::last_program().ok_or_else(|| Error::Usage { message: message.into() })
}

fn about(p: &Program, what: &str) -> String {
    format!("{what}: {} ops, {} parameters, {} results", p.nodes, p.params.count(), p.root_types.len())
}

fn program(format: &str, head: &str, text: &str, as_json: bool) -> Bundle {
    match as_json {
        true => json::bundle(json!({ "format": format, "text": text })),
        false => display::page::program(head, text),
    }
}

/// A program after XLA's passes, as HLO text.
pub(crate) fn optimized_text(program: &Program) -> Result<String> {
    let Some(executable) = &program.executable else { return Ok(String::new()) };
    let (format, bytes) = executable.optimized_program()?;
    Ok(display::hlo::text(&format, &bytes))
}
