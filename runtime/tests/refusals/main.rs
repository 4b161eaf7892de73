//! Wrong calls, made of the cases by changing one argument: another dtype, more or fewer dimensions, another size, a dimension
//! or a number out of range. What is refused is refused in the name of the call, with what it was given.
#![allow(dead_code)] // what conformance reads of a case, and this does not
#[path = "../conformance/calls.rs"]
mod calls;
#[path = "../conformance/case.rs"]
mod case;
#[path = "../conformance/layers.rs"]
mod layers;
#[path = "../conformance/matrices.rs"]
mod matrices;
#[path = "../conformance/more.rs"]
mod more;
#[path = "../conformance/options.rs"]
mod options;
#[path = "../conformance/spectra.rs"]
mod spectra;

use case::{Arg, Case, Reader};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use xlazy::prelude::*;

fn message(panic: Box<dyn std::any::Any + Send>) -> String {
    panic.downcast::<String>().map_or_else(|_| String::new(), |m| *m)
}

type Change = fn(&Arg) -> Option<Arg>;

/// How an argument is changed; `None` where it cannot be in this way.
const WAYS: &[(&str, Change)] = &[
    ("another dtype", |a| match a {
        Arg::Tensor(t) if t.dtype().is_float() => Some(Arg::Tensor(t.detach().gt(0.0))),
        Arg::Tensor(t) => Some(Arg::Tensor(t.float() * 0.5)),
        _ => None,
    }),
    ("more dimensions", |a| match a {
        Arg::Tensor(t) => Some(Arg::Tensor(t.detach().unsqueeze(0).unsqueeze(0).unsqueeze(0))),
        _ => None,
    }),
    ("fewer dimensions", |a| match a {
        Arg::Tensor(t) if t.dim() > 1 => Some(Arg::Tensor(t.detach().flatten())),
        _ => None,
    }),
    ("another size", |a| match a {
        Arg::Tensor(t) if t.dim() > 0 && t.size(-1) > 0 => {
            let t = t.detach();
            Some(Arg::Tensor(cat(&[&t, &t, &t.narrow(-1, 0, 1)], -1)))
        }
        _ => None,
    }),
    ("a number out of range", |a| match a {
        Arg::Int(_) => Some(Arg::Int(97)),
        _ => None,
    }),
];

/// What is said where the harness itself could not take the argument.
fn of_the_harness(said: &str) -> bool {
    let name = said.split(['(', ':']).next().unwrap_or_default();
    name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c))
}

/// Methods that the harness calls for a torch name, beyond those of the same name.
const ALSO: &[(&str, &[&str])] = &[
    ("__getitem__", &["i", "index", "select"]),
    ("__radd__", &["add"]),
    ("__rdiv__", &["div"]),
    ("__rmul__", &["mul"]),
    ("__rpow__", &["pow"]),
    ("__rsub__", &["sub"]),
    ("broadcast_to", &["expand"]),
    ("fft.fft2", &["fftn"]),
    ("max.binary", &["maximum"]),
    ("min.binary", &["minimum"]),
    ("nanquantile", &["quantile_with"]),
    ("nn.functional.upsample_bilinear", &["interpolate"]),
    ("nn.functional.upsample_nearest", &["interpolate"]),
    ("nn.functional.softmin.with_dtype", &["softmin"]),
    ("tensor_split", &["to_vec"]),
    ("dsplit", &["tensor_split"]),
    ("view", &["reshape"]),
    ("t", &["t"]),
    ("linalg.pinv.singular", &["matmul", "transpose"]),
];

/// Where the harness converts the operand, or gives its size alone.
const OTHERWISE: &[&str] = &[
    "softmax.with_dtype",
    "log_softmax.with_dtype",
    "nn.functional.softmin.with_dtype",
    "expand",
    "linalg.pinv.singular",
];

fn named_rightly(case: &str, said: &str) -> bool {
    let name = said.split(['(', ':']).next().unwrap_or_default();
    let parts = |s: &str| s.split(['.', '_']).filter(|p| p.len() > 1).map(str::to_owned).collect::<Vec<_>>();
    let mine = parts(case);
    parts(name).iter().any(|p| mine.contains(p)) || ALSO.iter().any(|(of, names)| *of == case && names.contains(&name))
}

#[test]
fn wrong_calls_of_every_op_are_refused_in_its_name_with_what_it_was_given() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/conformance");
    std::panic::set_hook(Box::new(|_| {}));
    // What reads a value gets one, and nothing is compiled.
    xlazy_core::device::go_dry(1);
    let mut reader = Reader::default();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let (mut refused, mut unclear) = (0, BTreeMap::new());
    for json in case::read(&folder) {
        let count = seen.entry(case::name(&json)).or_default();
        *count += 1;
        if *count > 3 {
            continue;
        }
        let Some(case) = reader.case(&folder, &json) else { continue };
        for i in 0..case.args.len() {
            for (how, change) in WAYS {
                let Some(changed) = change(&case.args[i]) else { continue };
                let shown = match &changed {
                    Arg::Tensor(t) => {
                        format!("{t:?}").trim_start_matches("Tensor(").split(", p").next().unwrap().to_owned()
                    }
                    _ => String::new(),
                };
                let mut args = case.args.clone();
                args[i] = changed;
                let wrong = Case { args, kwargs: case.kwargs.clone(), name: case.name.clone(), ..empty() };
                let outcome = catch_unwind(AssertUnwindSafe(|| drop(calls::call(&wrong)))).map_err(message);
                let Err(said) = outcome else {
                    continue;
                };
                if of_the_harness(&said) {
                    continue;
                }
                refused += 1;
                let shown = shown.split(", on").next().unwrap_or_default().trim_end_matches(')').to_owned();
                if !named_rightly(&case.name, &said) {
                    unclear.entry(format!("{} ({how}): named otherwise", case.name)).or_insert(said);
                } else if !said.contains(&shown) && !OTHERWISE.contains(&&*case.name) {
                    unclear.entry(format!("{} ({how}): without {shown}", case.name)).or_insert(said);
                }
            }
        }
    }
    drop(std::panic::take_hook());
    println!("wrong calls: {refused} refused, {} unclear", unclear.len());
    let all: Vec<String> = unclear
        .into_iter()
        .map(|(what, said)| format!("{what}: {}", said.lines().next().unwrap_or_default()))
        .collect();
    assert!(refused > 1000 && all.is_empty(), "{refused} refused, {} of them unclear:\n{}", all.len(), all.join("\n"));
}

fn empty() -> Case {
    let (name, args, kwargs, outputs, weighted, tier, weights, grads, leaves) = Default::default();
    Case { name, args, kwargs, outputs, weighted, tier, weights, grads, leaves }
}
