//! Op conformance: PyTorch's own test cases, run through the public API and compared with what PyTorch computed. The
//! cases lie in tests/conformance of the repository; their README says where they come from.
mod calls;
mod case;
mod cell;
mod compare;
mod layers;
mod matrices;
mod more;
mod options;
mod report;
mod spectra;
#[path = "../support/mod.rs"]
mod support;

use case::{Case, Host, Reader};
use report::{Report, State};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use xlazy::prelude::*;

/// A case traced, not run yet.
struct Traced {
    json: serde_json::Value,
    case: Case,
    outputs: Vec<Tensor>,
    grads: Vec<Option<Tensor>>,
}

fn message(panic: Box<dyn std::any::Any + Send>) -> String {
    panic.downcast::<String>().map_or_else(|e| format!("{:?}", e.downcast_ref::<&str>()), |m| *m)
}

/// Outputs and gradients.
type Results = (Vec<Tensor>, Vec<Option<Tensor>>);

// Traces the forward pass and the gradients of Σ output · weight.
fn trace(case: &Case) -> Result<Option<Results>, String> {
    let run = || {
        let outputs = calls::call(case)?;
        // what the runtime makes is put down to the line that asked for it
        for y in &outputs {
            let file = y.location().file();
            assert!(file.contains("conformance"), "made at {} instead of the caller's line", y.location());
        }
        let mut grads = Vec::new();
        if case.grads.is_some() {
            let unique = if calls::second_is_place(&case.name) { 1 } else { outputs.len() };
            let weighted = outputs[..unique].iter().zip(&case.weighted).filter(|(_, w)| **w).map(|(t, _)| t);
            let total = weighted
                .zip(&case.weights)
                .filter(|(y, _)| y.requires_grad())
                .map(|(y, w)| {
                    // of complex numbers, real and imaginary parts
                    let y = if y.dtype().is_complex() { y.view_as_real() } else { y.clone() };
                    (&y * Tensor::from_slice(floats_of(w), y.shape()).to(y.dtype())).sum().double()
                })
                .reduce(|a, b| a + b);
            let leaves: Vec<&Tensor> = case.leaves.iter().collect();
            grads = total.map_or(vec![None; leaves.len()], |t| grad(&t, &leaves));
        }
        Some((outputs, grads))
    };
    catch_unwind(AssertUnwindSafe(run)).map_err(message)
}

/// Whether what torch refuses is refused, when it is recorded or when its results are read; `None` where it cannot be written in
/// Rust, or not in this harness.
fn refused(case: &Case) -> Option<bool> {
    let read = || calls::call(case).map(|all| all.iter().for_each(|t| drop(Host::of(t))));
    match catch_unwind(AssertUnwindSafe(read)).map_err(message) {
        Ok(done) => done.map(|()| false),
        // A refusal begins with the name of the call.
        Err(said) => {
            let name = said.split(['(', ':']).next().unwrap_or_default();
            (!name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c))).then_some(true)
        }
    }
}

fn floats_of(h: &Host) -> &[f64] {
    match &h.data {
        case::Numbers::Floats(v) => v,
        case::Numbers::Ints(_) => panic!("weights are floats"),
    }
}

fn zero(h: &Host) -> bool {
    floats_of(h).iter().all(|&x| x == 0.0)
}

fn compare(t: &Traced) -> Result<f64, String> {
    let name = &t.case.name;
    let mut worst: f64 = 0.0;
    if t.outputs.len() != t.case.outputs.len() {
        return Err(format!("{} outputs, expected {}", t.outputs.len(), t.case.outputs.len()));
    }
    for (i, (ours, theirs)) in t.outputs.iter().zip(&t.case.outputs).enumerate() {
        let ours = catch_unwind(AssertUnwindSafe(|| Host::of(ours))).map_err(message)?;
        let theirs = if i == 1 && calls::second_is_place(name) { &t.case.outputs[0] } else { theirs };
        worst = worst.max(compare::difference(name, &ours, theirs).map_err(|d| format!("output {i}: {d}"))?);
    }
    for (i, theirs) in t.case.grads.iter().flatten().enumerate() {
        match (&t.grads[i], theirs) {
            (Some(ours), Some(theirs)) => {
                let ours = catch_unwind(AssertUnwindSafe(|| Host::of(ours))).map_err(message)?;
                let off = compare::difference(name, &ours, theirs).or_else(|d| {
                    if !compare::CHOOSES.contains(&name.as_str()) {
                        return Err(d);
                    }
                    let x = Host::of(&t.case.leaves[i]);
                    compare::difference(name, &compare::by_value(&ours, &x), &compare::by_value(theirs, &x))
                });
                worst = worst.max(off.map_err(|d| format!("gradient {i}: {d}"))?);
            }
            (None, Some(theirs)) if !zero(theirs) => return Err(format!("gradient {i} is missing")),
            (Some(ours), None) if ours.ne(0).any().item() != 0.0 => {
                return Err(format!("gradient {i} is not zero"));
            }
            _ => {}
        }
    }
    Ok(worst)
}

/// For each tier how many cases passed, and how many there are.
type Tiers = BTreeMap<usize, [usize; 2]>;

// Many small programs would each cost a compile: trace many cases, run them as one program, then read.
fn check(batch: Vec<Traced>, tiers: &mut Tiers, report: &mut Report) {
    let synced = catch_unwind(AssertUnwindSafe(sync));
    let failed = report.failures.len();
    for t in &batch {
        // after a failed sync each case runs on its own, so that only the guilty one fails
        match compare(t) {
            Ok(worst) => {
                report.add(&t.json, State::Passed, worst, "");
                if report::all_cells() {
                    report.cell(&cell::cell(&t.case, t.outputs.first().map(|y| y.location().line()), "passes"));
                }
                tiers.entry(t.case.tier).or_default()[0] += 1;
            }
            Err(e) => {
                report.add(&t.json, State::Failed, 0.0, e.lines().next().unwrap_or_default());
                report.cell(&cell::cell(&t.case, t.outputs.first().map(|y| y.location().line()), &e));
            }
        }
    }
    if synced.is_err() && report.failures.len() == failed {
        report.failures.push("a sync failed, though each case alone passes".into());
    }
}

/// Cases that pass in each shard: a number that only rises, so that a case that is no longer read is noticed.
const PASSED: [usize; SHARDS] = [895, 873, 850, 848];

/// Cases that become one program.
const BLOCK: usize = 50;

/// Runs every `SHARDS`-th block of cases; the shards run side by side.
fn conformance(shard: usize) {
    let given = std::env::var_os("XLAZY_CONFORMANCE_DIR").map(PathBuf::from);
    let folder =
        given.clone().unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/conformance"));
    let only = std::env::var("XLAZY_CONFORMANCE_OP").ok();
    support::in_float32();
    std::panic::set_hook(Box::new(|_| {}));
    let mut reader = Reader::default();
    let mut report = Report::default();
    let mut missing: BTreeMap<String, usize> = BTreeMap::new();
    let mut skipped: BTreeMap<String, usize> = BTreeMap::new();
    let mut batch = Vec::new();
    let mut tiers = Tiers::new();
    for (i, json) in case::read(&folder).into_iter().enumerate() {
        if i / BLOCK % SHARDS != shard {
            continue;
        }
        if only.as_ref().is_some_and(|all| !all.split(',').any(|o| case::name(&json).contains(o))) {
            continue;
        }
        tiers.entry(json["tier"].as_u64().unwrap_or(1) as usize).or_default()[1] += 1;
        let Some(case) = reader.case(&folder, &json) else {
            report.add(&json, State::Unsupported, 0.0, "a dtype or value that cannot be read");
            *skipped.entry(format!("{} (a dtype or value that cannot be read)", case::name(&json))).or_default() += 1;
            continue;
        };
        if let Some(reason) = calls::skip(&case) {
            report.add(&json, State::Skipped, 0.0, reason);
            *skipped.entry(format!("{} ({reason})", case.name)).or_default() += 1;
            continue;
        }
        if let Some(said) = json["error"].as_str() {
            match refused(&case) {
                Some(true) => report.add(&json, State::Passed, 0.0, ""),
                Some(false) => report.add(&json, State::Failed, 0.0, &format!("is not refused; torch: {said}")),
                None => report.add(&json, State::Unsupported, 0.0, "no method has it, or it cannot be written"),
            }
            continue;
        }
        match trace(&case) {
            Ok(Some((outputs, grads))) => batch.push(Traced { json, case, outputs, grads }),
            Ok(None) => {
                report.add(&json, State::Unsupported, 0.0, "no method has it");
                *missing.entry(case.name).or_default() += 1;
            }
            Err(e) => {
                report.add(&json, State::Failed, 0.0, e.lines().next().unwrap_or_default());
                report.cell(&cell::cell(&case, None, &e));
            }
        }
        if batch.len() == BLOCK {
            check(std::mem::take(&mut batch), &mut tiers, &mut report);
        }
    }
    check(batch, &mut tiers, &mut report);
    let (passed, failures) = (report.passed, &report.failures);
    drop(std::panic::take_hook());
    let list = |m: &BTreeMap<String, usize>| m.iter().map(|(k, n)| format!("{k} ×{n}")).collect::<Vec<_>>().join(", ");
    if shard == 0 && given.is_none() {
        let text = std::fs::read_to_string(folder.join("not-implemented.json")).unwrap();
        missing.extend(serde_json::from_str::<BTreeMap<String, usize>>(&text).unwrap());
    }
    println!("conformance, shard {shard}: {passed} passed, {} failed", failures.len());
    report.print(shard);
    for (tier, [passed, all]) in &tiers {
        println!("tier {tier}, shard {shard}: {passed} of {all}");
    }
    println!("not implemented, {} cases: {}", missing.values().sum::<usize>(), list(&missing));
    println!("skipped, {} cases: {}", skipped.values().sum::<usize>(), list(&skipped));
    // Whatever a method is made of is put down to its caller's line, and never to one of the library's.
    #[cfg(debug_assertions)]
    assert_eq!(xlazy_core::thread::lost_lines(), Vec::<String>::new(), "ops without a line of the user's");
    let floor = PASSED[shard];
    assert!(given.is_some() || only.is_some() || passed >= floor, "{passed} cases passed, {floor} did before");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

macro_rules! shards {
    ($($name:ident $n:literal;)*) => {
        const SHARDS: usize = [$($n),*].len();
        $(#[test]
        fn $name() {
            conformance($n);
        })*
    };
}

shards! { shard_0 0; shard_1 1; shard_2 2; shard_3 3; }
