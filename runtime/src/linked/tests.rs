//! Whatever program is looked at, what is said to belong together does.
use super::given::Given;
use super::link::{Kind, Linked};
use super::passes::Passes;
use super::{Spec, data, explorer, page, words};
use crate::aot::program::with_locations;
use crate::insight::metrics;
use crate::prelude::*;
use crate::schema::Schema;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use xlazy_core::run::{Flag, compile_aside};

/// What ran last is one for the whole process.
static TURN: Mutex<()> = Mutex::new(());

fn linked(given: Given) -> Linked {
    let text = with_locations(&given.text, &given.marks);
    let compiled = vec![given.compile(&text).unwrap()];
    Linked::of(given, compiled)
}

/// A program of any ops, with gradients now and then.
fn any(rng: &mut fastrand::Rng) -> Tensor {
    let w = Tensor::randn([8, 8]).requires_grad_(true);
    let mut all = vec![Tensor::randn([8, 8]), w.clone()];
    sync();
    for _ in 0..rng.usize(2..14) {
        let a = all[rng.usize(0..all.len())].clone();
        let b = all[rng.usize(0..all.len())].clone();
        all.push(match rng.u8(0..10) {
            0 => a.matmul(&b),
            1 => (a + &b) * 2.0,
            2 => a.exp(),
            3 => a.softmax(-1),
            4 => a.sum_dim([1], true) * &b,
            5 => a.transpose(0, 1),
            6 => a.relu() - 0.5,
            7 => a.cumsum(1),
            8 => Tensor::ones([8, 8]) + &b,
            _ => a.gt(&b).to(F32) * &a,
        });
    }
    let out = (all.last().unwrap() * &w).mean();
    if rng.bool() {
        out.backward();
        return w.grad().unwrap();
    }
    out
}

#[test]
fn each_op_has_its_instructions_or_a_reason_and_work_is_counted_as_xla_counts_it() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let schema = Schema::read(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
    let mut rng = fastrand::Rng::with_seed(20);
    for round in 0..4 {
        let y = any(&mut rng);
        let counted = || (metrics::UNCACHED_COMPILE.value(), metrics::CACHED_COMPILE.value());
        let (before, pending) = (counted(), crate::show::ir(&y, false).plain().to_owned());
        let given = Given::of(std::slice::from_ref(&y)).unwrap();
        let l = linked(Given::of(std::slice::from_ref(&y)).unwrap());
        assert_eq!((counted(), crate::show::ir(&y, false).plain().to_owned()), (before, pending), "round {round}");

        let o = &l.optimised[0];
        let count = l.ops.len() as u32;
        let there: BTreeSet<u32> = o.rows.iter().flat_map(|r| r.ops.iter().copied()).collect();
        let written: BTreeSet<u32> = l.stablehlo.iter().flat_map(|r| r.ops.iter().copied()).collect();
        for (n, op) in l.ops.iter().enumerate() {
            let n = n as u32;
            assert!(there.contains(&n) != op.gone.is_some(), "round {round}: {} {:?}", op.text, op.gone);
            assert!(!op.lines.is_empty() && op.lines.iter().all(|&line| l.lines[line].ops.contains(&n)));
            assert!(written.contains(&n) || op.kind == Kind::Forward, "round {round}: {} is nowhere", op.text);
        }
        assert!(there.iter().chain(&written).all(|&op| op < count));
        for k in &o.kernels {
            assert_eq!(o.rows[k.row].ops, k.ops);
            let lines: BTreeSet<usize> = k.ops.iter().flat_map(|&op| l.ops[op as usize].lines.clone()).collect();
            assert!(lines.into_iter().eq(k.lines.iter().copied()));
        }
        assert!(o.bytes() > 0 && o.before.iter().all(|a| a.kernel.is_none_or(|k| k < o.kernels.len())));

        // XLA's own sum.
        let executable = compile_aside(&with_locations(&given.text, &given.marks), 0).unwrap();
        let costs: BTreeMap<String, Flag> = executable.cost_analysis().unwrap().into_iter().collect();
        let Some(Flag::Float(flops)) = costs.get("flops") else { panic!("{costs:?}") };
        assert_eq!(o.flops(), f64::from(*flops) as u64, "round {round}\n{}", words::text(&l));

        // Each number of the page's data is that of a row which is there.
        let html = page::bundle(&l);
        let html = html.get("text/html").unwrap();
        let script = html.rsplit_once("\",").unwrap().1.strip_suffix(");</script>").unwrap();
        let columns: Vec<Vec<Vec<u32>>> = serde_json::from_str(script).unwrap();
        let id = html.split('"').nth(1).unwrap();
        for (c, rows) in columns.iter().enumerate() {
            for r in 0..rows.len() {
                assert_eq!(html.matches(&format!("id=\"{id}-{c}-{r}\"")).count(), 1, "round {round}: {c}-{r}");
            }
        }
        let rows: usize = columns.iter().map(Vec::len).sum();
        assert_eq!(html.matches("class=\"r\"").count(), rows);
        for place in html.match_indices("data-ops=\"").map(|(at, word)| &html[at + word.len()..]) {
            let (c, r) = place.split('"').next().unwrap().split_once('-').unwrap();
            assert!(columns[c.parse::<usize>().unwrap()].len() > r.parse().unwrap(), "round {round}: {c}-{r}");
        }
        schema.check("trace", &data::json(&l).to_string());

        // Model Explorer finds every node that it is sent to.
        let folder = std::env::temp_dir().join(format!("xlazy-explorer-{}", std::process::id()));
        explorer::write(&l, folder.to_str().unwrap()).unwrap();
        let read = |name: &str| -> serde_json::Value {
            serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap()
        };
        let ids = |name: &str| -> BTreeSet<String> {
            let graph = read(name);
            let nodes = graph["graphs"][0]["nodes"].as_array().unwrap();
            let ids: BTreeSet<String> = nodes.iter().map(|n| n["id"].as_str().unwrap().to_owned()).collect();
            let from = nodes.iter().flat_map(|n| n["incomingEdges"].as_array().unwrap());
            assert!(from.into_iter().all(|e| ids.contains(e["sourceNodeId"].as_str().unwrap())), "{name}");
            assert_eq!(ids.len(), nodes.len());
            ids
        };
        let (left, right) = (ids("before.json"), ids("after.json"));
        assert_eq!(left.len(), l.ops.len());
        let sync = read("sync.json");
        let known = |of: &serde_json::Value, ids: &BTreeSet<String>| {
            of.as_array().unwrap().iter().all(|id| ids.contains(id.as_str().unwrap()))
        };
        for entry in sync["mappingEntries"].as_array().unwrap() {
            assert!(known(&entry["leftNodeIds"], &left) && known(&entry["rightNodeIds"], &right), "{entry}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn the_last_program_has_the_lines_of_its_run() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let x = Tensor::arange(0.0, 6.0, 1.0);
    sync();
    let y = (&x * 3.0).exp();
    sync();
    let l = linked(Given::last().unwrap());
    assert!(l.what.starts_with("the program that ran last (sync "), "{}", l.what);
    let mul = l.ops.iter().find(|o| o.text.contains(" mul(")).unwrap();
    let at = &l.lines[mul.lines[0]];
    assert!(at.at().starts_with("tests.rs:"), "{}", at.at());
    let told = words::of_line(&l, None, at.line).unwrap();
    for part in ["recorded\n", "= f32[6] exp(%0)", "stablehlo.exponential", "CPU\n", "exponential("] {
        assert!(told.plain().contains(part), "{part} in\n{}", told.plain());
    }
    let refused = words::of_line(&l, None, 1).unwrap_err().to_string();
    assert!(refused.starts_with("line 1 has no op of this program; these have some: tests.rs:"), "{refused}");
    drop(y);

    let z = (&x + 1.0).tanh();
    let passes = Passes::of(&Given::of(&[z]).unwrap()).unwrap();
    let schema = Schema::read(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
    let told = schema.check("trace_passes", &passes.json().to_string());
    let stages: Vec<&str> = told["stages"].as_array().unwrap().iter().map(|s| s["stage"].as_str().unwrap()).collect();
    assert!(["HLO passes", "LLVM's passes"].iter().all(|s| stages.contains(s)), "{stages:?}");
}

#[test]
fn options_are_told_apart() {
    let spec = |text| Spec::read(text);
    let all = spec("--tpu v5e --line 2:4 --json").unwrap();
    assert_eq!((all.tpu.as_deref(), all.line, all.json), (Some("v5e"), Some((Some(2), 4)), true));
    assert_eq!(spec("--line 4").unwrap().line, Some((None, 4)));
    let why = |text| spec(text).unwrap_err().to_string();
    assert_eq!(why("--line four"), "--line takes a line, or CELL:LINE, not `four`");
    assert_eq!(why("--tpu"), "--tpu takes a TPU such as v5e");
    assert_eq!(
        why("--fast"),
        "unknown option `--fast`; there are --tpu TPU, --line LINE, --passes, --model-explorer FOLDER and --json"
    );
}

#[test]
fn what_a_program_computes_is_counted_as_xla_counts_it() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let [x, w, batch, image, kernel] =
        [&[6, 8][..], &[8, 5], &[3, 4, 6], &[2, 3, 9, 9], &[4, 3, 3, 3]].map(|shape| Tensor::rand(shape));
    sync();
    let cases = [
        ("matmul", x.matmul(&w)),
        ("bmm", batch.matmul(&batch.transpose(1, 2))),
        ("conv2d", image.conv2d(&kernel, None, ConvOptions::default())),
        ("elementwise", (&x * 2.0 + &x).relu()),
        ("sum", x.sum_dim(1, false)),
        ("exp", x.exp()),
        ("views", x.t().reshape([48])),
    ];
    for (name, y) in cases {
        let given = Given::of(std::slice::from_ref(&y)).unwrap();
        let executable = compile_aside(&with_locations(&given.text, &given.marks), 0).unwrap();
        let costs: BTreeMap<String, Flag> = executable.cost_analysis().unwrap().into_iter().collect();
        let xla = costs.get("flops").map_or(0.0, |flag| if let Flag::Float(f) = flag { f64::from(*f) } else { -1.0 });
        y.to_vec::<f32>();
        let ours = crate::insight::compilations().last().and_then(|c| c.flops);
        assert_eq!(ours, Some(xla), "{name}\n{}", given.text);
    }
}
