//! Answers to the questions that the kernel puts to the runtime (`metrics`, `graph`, `names`…).
use crate::cell::register_cell;
use crate::display::graph::Form;
use crate::display::{self, names};
use crate::inside;
use crate::insight::{self, metrics};
use crate::json;
use crate::{Error, Result, show};
use xlazy_core::options::{Numbers, options, set_numbers};
use xlazy_core::text::edited;
use xlazy_mime::{Bundle, Fault, Question};

/// Runs a session process: cells and questions, until the kernel ends it.
pub fn session_main() {
    crate::cell::worker::main(call)
}

/// Answers one question.
fn call(question: Question, args: &str) -> std::result::Result<Bundle, Fault> {
    answer(question, args).map_err(|e| Fault { name: "TensorError".into(), message: e.to_string(), ..Fault::default() })
}

fn answer(question: Question, args: &str) -> Result<Bundle> {
    use Question::*;
    match question {
        Metrics => metrics_report(args),
        Graph => Ok(show::pending_graph(form(args)?)),
        Ir => Ok(show::pending_ir(is_json(args)?)),
        Stablehlo => show::last_stablehlo(is_json(args)?),
        Hlo => show::last_hlo(is_json(args)?),
        Memory => Ok(show::memory::bundle(is_json(args)?)),
        Timeline => timeline(args),
        Collectives => show::last_collectives(is_json(args)?),
        Names => Ok(names::bundle()),
        Doc => names::doc(args).ok_or_else(|| refused(format!("the runtime has nothing called `{}`", args.trim()))),
        Cell => register_cell(args),
        Aot => crate::aot::call(args),
        Device => crate::aot::device_answer(args),
        Pod => show::pod::answer(args),
        Why => why(args),
        Compiles if is_json(args)? => Ok(json::bundle(insight::compiles_json())),
        Compiles => Ok(insight::compiles_bundle()),
        Pending if is_json(args)? => Ok(json::bundle(insight::pending_json())),
        Pending => Ok(insight::pending_bundle()),
        Healed if is_json(args)? => Ok(json::bundle(insight::healed_json())),
        Healed => Ok(insight::healed_bundle()),
        Heal => heal(args),
        Nan => nan(args),
        Peek => peek(args),
        Eager => eager(args),
        Compare => inside::compare(args),
        Profile => crate::linked::profile(args),
        Stages => inside::stages(args),
        Fix => fix(args),
        Events => events(args),
        Budget => budget(args),
        Widget => crate::widget::answer(args),
        // What nobody but the cell thread knows is none elsewhere.
        Unnamed => Ok(Bundle::text("[]")),
        Forget | Generator | Load | CheckpointKept | CheckpointWrite | CheckpointOpen | CheckpointClose => {
            Err(refused(format!("only the cell thread answers `{question}`")))
        }
    }
}

fn metrics_report(args: &str) -> Result<Bundle> {
    match args.trim() {
        "" => Ok(display::metrics::bundle(&metrics::report())),
        "--json" => Ok(json::bundle(metrics::report_json())),
        "clear" => {
            metrics::clear_all();
            Ok(Bundle::default())
        }
        other => Err(refused(format!("metrics takes `--json` or `clear`, not `{other}`"))),
    }
}

/// `--json`, or `--perfetto FILE`.
fn timeline(args: &str) -> Result<Bundle> {
    let now = insight::timeline::timeline();
    match args.trim().split_once(char::is_whitespace).map(|(option, file)| (option, file.trim())) {
        None if args.trim().is_empty() => Ok(display::timeline::bundle(&now)),
        None if args.trim() == "--json" => Ok(json::bundle(now.json())),
        Some(("--perfetto", file)) => {
            let (name, text) = (std::path::Path::new(file), now.trace_events().to_string());
            let written = xlazy_mime::whole::write(name, text.as_bytes());
            written.map_err(|e| refused(format!("no trace was written to {file}: {e}")))?;
            let told = format!("{} written to {file}", xlazy_mime::count(now.spans.len(), "event"));
            Ok(Bundle::text(told).passing())
        }
        _ => Err(refused(format!("timeline takes `--json` or `--perfetto FILE`, not `{}`", args.trim()))),
    }
}

/// The compilation of a number.
fn numbered<'a>(all: &'a [insight::Compilation], n: &str) -> Result<&'a insight::Compilation> {
    let n: u64 = n.parse().map_err(|_| refused(format!("expected the number of a compilation, not `{n}`")))?;
    let none = || refused(format!("there is no compilation {n}: so far there are {}", all.len()));
    all.iter().find(|c| c.number == n).ok_or_else(none)
}

/// `[N] [--json]`: the explanation of a compilation, the last one without a number.
fn why(args: &str) -> Result<Bundle> {
    let words: Vec<&str> = args.split_whitespace().collect();
    let as_json = words.contains(&"--json");
    let numbers: Vec<&&str> = words.iter().filter(|w| **w != "--json").collect();
    let (all, refused_one) = (insight::compilations(), insight::refused());
    let found = match numbers[..] {
        [] => refused_one.as_ref().or_else(|| all.iter().rev().find(|c| c.why.is_some())).or(all.last()),
        [n] => Some(numbered(&all, n)?),
        _ => return Err(refused("why takes one number at most".into())),
    };
    Ok(match found {
        None if as_json => json::bundle(json::Value::Null),
        None => Bundle::text("nothing was compiled yet"),
        Some(c) if as_json => json::bundle(c.json()),
        Some(c) => match insight::cell::compiled_otherwise(c.number).filter(|_| numbers.is_empty() && !c.refused) {
            Some(note) => c.bundle_after(&note),
            None => c.bundle(),
        },
    })
}

/// `[N] [--json]`: the cells with the fix of a compilation, the last one that has such a fix without a number.
fn fix(args: &str) -> Result<Bundle> {
    let words: Vec<&str> = args.split_whitespace().filter(|w| *w != "--json").collect();
    let all = insight::compilations();
    let edits = |c: &insight::Compilation| -> Vec<insight::Edit> {
        let explanations = c.why.iter().flat_map(insight::Explanation::all);
        explanations.flat_map(|why| why.edits.clone()).collect()
    };
    let found = match words[..] {
        [] => all.iter().rev().find(|c| !edits(c).is_empty()),
        [n] => Some(numbered(&all, n)?),
        _ => return Err(refused("fix takes one number at most".into())),
    };
    let none =
        || refused("no compilation so far has a fix that is a change of code: `%why` says what is advised".into());
    let found = found.ok_or_else(none)?;
    let cells = edited(&edits(found));
    if cells.is_empty() {
        let advice = found.why.as_ref().map(|why| format!(": {}", why.fix)).unwrap_or_default();
        return Err(refused(format!(
            "what is advised about compilation {} is no change of code{advice}",
            found.number
        )));
    }
    let one = |(cell, text): &(u64, String)| json::json!({ "cell": cell, "text": text });
    let cells: json::Value = cells.iter().map(one).collect();
    Ok(json::bundle(json::json!({ "compilation": found.number, "cells": cells })))
}

/// `on` or `off`.
fn events(args: &str) -> Result<Bundle> {
    insight::stream(args.trim() == "on");
    Ok(Bundle::default())
}

/// `on`, `inf`, `off`, or nothing to ask.
fn nan(args: &str) -> Result<Bundle> {
    let wanted = match args.trim() {
        "" => None,
        "on" => Some(Numbers::NoNan),
        "inf" => Some(Numbers::Finite),
        "off" => Some(Numbers::Any),
        other => return Err(refused(format!("nan takes `on`, `inf` or `off`, not `{other}`"))),
    };
    if let Some(numbers) = wanted {
        set_numbers(numbers, None);
    }
    Ok(Bundle::text(format!("programs look for {} in what their ops give", options().numbers.name())))
}

/// `on`, `off`, or what is to be looked at.
fn peek(args: &str) -> Result<Bundle> {
    match args.trim() {
        "on" => Ok(inside::keep(true)),
        "off" => Ok(inside::keep(false)),
        what => inside::ask(what),
    }
}

/// `on`, `off`, or nothing to see cells that ran in both ways.
fn eager(args: &str) -> Result<Bundle> {
    match args.trim() {
        "on" => crate::backends::set_eager(true),
        "off" => crate::backends::set_eager(false),
        other => return Ok(insight::side_by_side(is_json(other)?)),
    }
    Ok(Bundle::text(match crate::backends::is_eager() {
        true => "each op runs as it is recorded, as a program of its own",
        false => "ops are recorded, and run together when a value is wanted",
    }))
}

/// `on`, `off`, or nothing to ask.
fn heal(args: &str) -> Result<Bundle> {
    match args.trim() {
        "" => {}
        "on" => insight::set_healing(true),
        "off" => insight::set_healing(false),
        other => return Err(refused(format!("heal takes `on` or `off`, not `{other}`"))),
    }
    Ok(Bundle::text(if insight::healing() { "healing is on" } else { "healing is off" }))
}

/// `compiles=N`, `off`, or nothing to ask; with `--json` the answer is data.
fn budget(args: &str) -> Result<Bundle> {
    let words: Vec<&str> = args.split_whitespace().filter(|w| *w != "--json").collect();
    match words.join(" ").as_str() {
        "" => {}
        "off" => insight::set_budget(None),
        other => {
            let n = other.strip_prefix("compiles=").unwrap_or(other).trim();
            let n = n.parse().map_err(|_| refused(format!("budget takes `compiles=N` or `off`, not `{other}`")))?;
            insight::set_budget(Some(n));
        }
    }
    let as_json = args.split_whitespace().any(|w| w == "--json");
    Ok(if as_json { json::bundle(insight::budget_json()) } else { insight::budget_bundle() })
}

fn form(args: &str) -> Result<Form> {
    let message = || format!("unknown option `{}`; there are `--json`, `--dot` and `--model-explorer`", args.trim());
    Form::named(args.trim()).ok_or_else(|| refused(message()))
}

fn is_json(args: &str) -> Result<bool> {
    match args.trim() {
        "" => Ok(false),
        "--json" => Ok(true),
        other => Err(refused(format!("unknown option `{other}`; there is `--json`"))),
    }
}

fn refused(message: String) -> Error {
    Error::Usage { message }
}

#[cfg(test)]
mod tests {
    use super::call;
    use crate::prelude::*;
    use crate::schema::Schema;
    use xlazy_mime::Question::*;

    #[test]
    fn memory_is_all_that_is_held_and_time_is_a_trace() {
        let schema = Schema::read(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
        let check = |definition, question| {
            let told = call(question, "--json").unwrap();
            schema.check(definition, told.get("application/json").unwrap())
        };
        let before = check("device_memory", Memory)["in_use_bytes"].as_u64().unwrap();
        let w = Tensor::randn([64, 64]).requires_grad_(true);
        let loss = (w.matmul(&w).tanh() * 2.0).sum();
        sync();
        let memory = check("device_memory", Memory);
        let values = memory["values"].as_array().unwrap();
        let of =
            |kind: &str| values.iter().filter(|v| v["kind"] == kind).map(|v| v["bytes"].as_u64().unwrap()).sum::<u64>();
        let listed: u64 = values.iter().map(|v| v["bytes"].as_u64().unwrap()).sum();
        assert_eq!(memory["listed_bytes"], listed);
        let in_use = memory["in_use_bytes"].as_u64().unwrap();
        // A run's temporaries are given back a moment after its end.
        let temporaries = memory["last_program"]["temporaries_bytes"].as_u64().unwrap();
        assert!(in_use >= before && in_use.abs_diff(listed) < 1024 + temporaries, "{memory}");
        assert!(memory["last_program"]["arguments_bytes"].is_u64(), "{memory}");
        // Without a session nobody has a name.
        assert!(of("held by something else") >= 64 * 64 * 4, "{memory}");
        loss.backward();
        let grad = w.grad().unwrap();
        sync();
        let all = check("device_memory", Memory);
        let gradients = all["values"].as_array().unwrap().iter().filter(|v| v["kind"] == "gradients").count();
        assert_eq!(gradients, 1, "{all}");
        drop(grad);
        let pending = &w + 1.0;
        let adds: serde_json::Value =
            serde_json::from_str(crate::show::memory(&pending, true).get("application/json").unwrap()).unwrap();
        assert_eq!(adds["adds_bytes"], 64 * 64 * 4);
        assert!(adds["program"]["arguments_bytes"].as_u64().unwrap() >= 64 * 64 * 4, "{adds}");

        for n in 0..4 {
            (&w * n as f64).sum().item();
        }
        let time = check("timeline", Timeline);
        let lanes: std::collections::BTreeSet<&str> =
            time["spans"].as_array().unwrap().iter().map(|s| s["lane"].as_str().unwrap()).collect();
        assert!(["compile", "lower", "run", "from the device"].iter().all(|l| lanes.contains(l)), "{lanes:?}");
        assert_eq!(time["loops"][0]["steps"].as_array().unwrap().len(), 4, "{}", time["loops"]);
        let file = std::env::temp_dir().join(format!("xlazy-trace-{}.json", std::process::id()));
        call(Timeline, &format!("--perfetto {}", file.display())).unwrap();
        let trace: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        std::fs::remove_file(&file).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        for e in events {
            let known = match e["ph"].as_str().unwrap() {
                "M" => e["args"].is_object(),
                "X" => e["ts"].as_f64() >= Some(0.0) && e["dur"].as_f64() >= Some(0.0) && e["cat"].is_string(),
                _ => false,
            };
            assert!(known && e["pid"].is_u64() && e["tid"].is_u64() && e["name"].is_string(), "{e}");
        }
        assert!(events.iter().filter(|e| e["ph"] == "X").count() >= time["spans"].as_array().unwrap().len());
        let refused = call(Timeline, "--perfetto").unwrap_err();
        assert_eq!(refused.message, "timeline takes `--json` or `--perfetto FILE`, not `--perfetto`");
    }

    #[test]
    fn questions_are_answered_and_others_refused_by_name() {
        assert_eq!(
            call(Graph, "--fast").unwrap_err().message,
            "unknown option `--fast`; there are `--json`, `--dot` and `--model-explorer`"
        );
        assert_eq!(call(Doc, "nonsense").unwrap_err().message, "the runtime has nothing called `nonsense`");
        assert_eq!(call(Metrics, "all").unwrap_err().message, "metrics takes `--json` or `clear`, not `all`");
        let data = |name, args| -> crate::json::Value {
            crate::json::parse(call(name, args).unwrap().get("application/json").unwrap()).unwrap()
        };
        assert!(data(Metrics, "--json")["counters"]["CachedCompile"].as_u64().is_some());
        assert!(data(Graph, "--json")["nodes"].as_array().is_some());
        let names = call(Names, "").unwrap();
        assert!(names.plain().contains("\nexp\tmethod\tTensor::exp(&self) -> Tensor\n"), "{}", names.plain());
        let names = data(Names, "");
        let exp = names.as_array().unwrap().iter().find(|n| n["name"] == "exp").unwrap();
        assert_eq!((&exp["kind"], &exp["owner"]), (&"method".into(), &"Tensor".into()));
        assert!(call(Doc, "Tensor::exp").unwrap().get("text/markdown").unwrap().starts_with("```rust\nfn Tensor::exp"));
    }
}
