//! Questions that the kernel puts to the runtime (`metrics`, `graph`, `names`…), by name.
use crate::cell::register_cell;
use crate::display::{self, names};
use crate::insight::{self, metrics};
use crate::json;
use crate::{Error, Result, show};
use xlazy_mime::{Bundle, Fault};

type Answer = fn(args: &str) -> Result<Bundle>;

/// Every question there is.
const CALLS: &[(&str, Answer)] = &[
    ("metrics", metrics_report),
    ("graph", |args| Ok(show::pending_graph(is_json(args)?))),
    ("ir", |args| Ok(show::pending_ir(is_json(args)?))),
    ("stablehlo", |args| show::last_stablehlo(is_json(args)?)),
    ("hlo", |args| show::last_hlo(is_json(args)?)),
    ("names", |_| Ok(names::bundle())),
    ("doc", |args| {
        names::doc(args).ok_or_else(|| refused(format!("the runtime has nothing called `{}`", args.trim())))
    }),
    ("cell", register_cell),
    ("aot", crate::aot::call),
    ("device", crate::aot::device_answer),
    ("why", why),
    ("compiles", |args| {
        Ok(if is_json(args)? { json::bundle(insight::compiles_json()) } else { insight::compiles_bundle() })
    }),
    ("pending", |args| {
        Ok(if is_json(args)? { json::bundle(insight::pending_json()) } else { insight::pending_bundle() })
    }),
    ("healed", |args| Ok(if is_json(args)? { json::bundle(insight::healed_json()) } else { insight::healed_bundle() })),
    ("heal", heal),
    ("budget", budget),
];

/// Runs a session process: cells and questions, until the kernel ends it.
pub fn session_main() {
    crate::cell::worker::main(call)
}

/// Answers one question.
pub fn call(name: &str, args: &str) -> std::result::Result<Bundle, Fault> {
    let fault = |name: &str, message: String| Fault { name: name.into(), message, ..Fault::default() };
    match CALLS.iter().find(|c| c.0 == name) {
        None => Err(fault("UnknownCall", format!("the runtime has no answer to `{name}`"))),
        Some((_, answer)) => answer(args).map_err(|e| fault("TensorError", e.to_string())),
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

/// `[N] [--json]`: the explanation of a compilation, the last one without a number.
fn why(args: &str) -> Result<Bundle> {
    let words: Vec<&str> = args.split_whitespace().collect();
    let as_json = words.contains(&"--json");
    let numbers: Vec<&&str> = words.iter().filter(|w| **w != "--json").collect();
    let (all, refused_one) = (insight::compilations(), insight::refused());
    let found = match numbers[..] {
        [] => refused_one.as_ref().or_else(|| all.iter().rev().find(|c| c.why.is_some())).or(all.last()),
        [n] => {
            let n: u64 = n.parse().map_err(|_| refused(format!("expected the number of a compilation, not `{n}`")))?;
            Some(
                all.iter()
                    .find(|c| c.number == n)
                    .ok_or_else(|| refused(format!("there is no compilation {n}: so far there are {}", all.len())))?,
            )
        }
        _ => return Err(refused("why takes one number at most".into())),
    };
    Ok(match found {
        None if as_json => json::bundle(json::Value::Null),
        None => Bundle::text("nothing was compiled yet"),
        Some(c) if as_json => json::bundle(c.json()),
        Some(c) => c.bundle(),
    })
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

    #[test]
    fn questions_are_answered_and_others_refused_by_name() {
        assert_eq!(call("nonsense", "").unwrap_err().message, "the runtime has no answer to `nonsense`");
        assert_eq!(call("graph", "--fast").unwrap_err().message, "unknown option `--fast`; there is `--json`");
        assert_eq!(call("doc", "nonsense").unwrap_err().message, "the runtime has nothing called `nonsense`");
        assert_eq!(call("metrics", "all").unwrap_err().message, "metrics takes `--json` or `clear`, not `all`");
        let data = |name, args| -> crate::json::Value {
            serde_json::from_str(call(name, args).unwrap().get("application/json").unwrap()).unwrap()
        };
        assert!(data("metrics", "--json")["counters"]["CachedCompile"].is_u64());
        assert!(data("graph", "--json")["nodes"].is_array());
        let names = call("names", "").unwrap();
        assert!(names.plain().contains("\nexp\tmethod\tTensor::exp(&self) -> Tensor\n"), "{}", names.plain());
        let names = data("names", "");
        let exp = names.as_array().unwrap().iter().find(|n| n["name"] == "exp").unwrap();
        assert_eq!((&exp["kind"], &exp["owner"]), (&"method".into(), &"Tensor".into()));
        assert!(
            call("doc", "Tensor::exp").unwrap().get("text/markdown").unwrap().starts_with("```rust\nfn Tensor::exp")
        );
    }
}
