//! What xlazy tells of itself, asked where a user asks: causes with cell and line, budget, pending, the line under cells.
mod eval_support;
#[path = "../../tests/support/schema.rs"]
mod schema;

use eval_support::{engine, run};
use schema::Schema;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use xlazy_kernel::engine::{Engine, Event, Reply, Request};
use xlazy_kernel::eval::RustEngine;

/// What a magic answers as JSON, which is what the schema says.
fn json(engine: &RustEngine, magic: &str) -> Value {
    let schema = Schema::read(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
    let name = magic[1..].split_whitespace().next().unwrap();
    let mut found = None;
    let request = Request { code: magic.into(), cell: 90, ..Request::default() };
    let reply = engine.execute(&request, &mut |event| {
        if let Event::Display { bundle, .. } = event {
            found = bundle.get("application/json").map(|text| schema.check(name, text));
        }
    });
    found.unwrap_or_else(|| panic!("{magic} has no JSON: {reply:?}"))
}

fn ok(engine: &RustEngine, cell: u64, code: &str) -> String {
    let (text, reply) = run(engine, cell, code);
    assert_eq!(reply, Reply::Ok, "{text}");
    text
}

/// Cause, cell and line of every compilation, in order.
fn causes(engine: &RustEngine) -> Vec<(String, u64, u64)> {
    let all = json(engine, "%compiles --json");
    let one = |c: &Value| {
        let site = &c["site"];
        (c["cause"].as_str().unwrap().to_owned(), site["cell"].as_u64().unwrap_or(0), site["line"].as_u64().unwrap())
    };
    all.as_array().unwrap().iter().map(one).collect()
}

#[test]
fn every_cause_is_told_with_its_cell_and_line() {
    let engine = engine();
    let code = [
        "let x = tensor([1.0, 2.0]);\nlet show = &x + 1.0;",
        // 2 to 5: values that are shown
        "\nshow",
        "let a = &x + 2.0 + 1.0;\n\nprintln!(\"{a}\");",
        "let a = &x - 1.0;\nlet text = format!(\n    \"{a}\"\n);",
        "let a = &x / 3.0;\n// here\ndisplay(&a);",
        // 6: values that are read, and what decides
        "let a = (&x * 3.0).sum();\nlet v = a.item();\nif (&x * 4.0 - 1.0).sum().item() > 0.0 {\n}\n\
         let b = (&x * 2.0 / 3.0).sum();\nwhile b.item() < 0.0 {}\nassert!((&x * 2.0 * 3.0).max().item() > 1.0, \"{v}\");\n\
         match (&x - 5.0).min().item() as i32 { 7 => {}\n    _ => {} }",
        // 7 and 8: in a function of another cell
        "// a comment\nfn positive(t: &Tensor) -> bool {\n    if t.item() > 0.0 { true } else { false }\n}",
        "positive(&(&x * 7.0 + 1.0).prod());",
        // 9: barriers
        "let y = &x * &x * &x;\nsync();",
        "let w = tensor([1.0, 2.0]).requires_grad_(true);\nlet mut opt = optim::SGD::new([&w], 0.5);\n\
         (&w * &w).sum().backward();\noptim::optimizer_step(&mut opt);",
        "let options = data::DataLoaderOptions { sync: true, ..Default::default() };\n\
         let loader = data::DataLoader::with(data::TensorDataset::new([&Tensor::ones([4, 2])]), 2, options);\n\
         let mut kept = vec![];\nfor [b] in &loader {\n    kept.push(b * 3.0);\n}",
        "let z = &x * 3.0 + 2.0 * &x;\nlet n = z.nonzero();",
        "xlazy::insight::set_trim(100);\nlet mut t = x.clone();\nfor _ in 0..150 {\n    t = &t * 0.5;\n}\n\
         xlazy::insight::set_trim(500_000);",
    ];
    for (i, code) in code.iter().enumerate() {
        ok(&engine, i as u64 + 1, code);
    }
    let expected = [
        ("display", 2, 2),
        ("display", 3, 3),
        ("display", 4, 2),
        ("display", 5, 3),
        ("read", 6, 2),
        ("control flow", 6, 3),
        ("control flow", 6, 6),
        ("control flow", 6, 7),
        ("control flow", 6, 8),
        ("control flow", 7, 3),
        ("sync", 9, 2),
        ("optimizer step", 10, 4),
        ("read", 11, 2),
        ("loader barrier", 11, 4),
        ("op that needs concrete values", 12, 2),
        ("trim", 13, 4),
    ];
    let found = causes(&engine);
    let found: Vec<(&str, u64, u64)> = found.iter().map(|(c, cell, line)| (c.as_str(), *cell, *line)).collect();
    assert_eq!(found, expected);
}

/// The events of one kind that a cell sends, which are what the schema says.
fn told(engine: &RustEngine, wanted: &str, code: &str) -> Vec<Value> {
    let schema = Schema::read(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
    let mut all = Vec::new();
    let request = Request { code: code.into(), cell: 91, ..Request::default() };
    let reply = engine.execute(&request, &mut |event| {
        if let Event::Insight { kind, json } = event
            && kind == wanted
        {
            all.push(schema.check(&kind, &json));
        }
    });
    assert_eq!(reply, Reply::Ok, "{code}");
    all
}

#[test]
fn a_cell_tells_what_it_did() {
    let engine = engine();
    let cell =
        told(&engine, "cell", "let x = Tensor::ones([256, 256]);\nfor _ in 0..3 {\n    (&x * 2.0).sum().item();\n}");
    let cell = &cell[0];
    assert_eq!((&cell["syncs"], &cell["compiled"], &cell["memory_hits"]), (&3.into(), &1.into(), &2.into()));
    assert!(cell["trace_ms"].as_f64() > Some(0.0) && cell["execute_ms"].as_f64() > Some(0.0), "{cell}");
    let run = &cell["runs"][0];
    assert_eq!((&run["cause"], &run["at"], &run["nodes"]), (&"read".into(), &"cell 91, line 3".into(), &3.into()));
    assert_eq!((&run["compiled"], &run["memory_hits"]), (&1.into(), &2.into()));
    // What lives on takes memory, and what goes gives it back.
    let delta = |code: &str| told(&engine, "cell", code)[0]["device_bytes_delta"].as_i64().unwrap();
    let bytes = 256 * 256 * 4;
    let kept = delta("let y = &x * 3.0;\nsync();\ny.wait();");
    assert!((2 * bytes..2 * bytes + 4096).contains(&kept), "{kept}: x has its value now, too");
    let gone = delta("drop(x);\nlet x = 1;\ndrop(y);\nlet y = 2;\ntensor([1.0]);");
    assert!((-2 * bytes - 4096..=-2 * bytes + 4096).contains(&gone), "{gone}");
}

#[test]
fn a_long_run_is_told_while_it_lasts() {
    let engine = engine();
    // Grows until it takes long enough to be told, however fast the machine is.
    let mut size = 1024;
    let told = loop {
        let code =
            format!("let x = Tensor::ones([{size}, {size}]);\nlet y = x.matmul(&x).matmul(&x);\nsync();\ny.wait();");
        let told = told(&engine, "live", &code);
        if let Some(run) = told.into_iter().find(|t| t["what"] == "run") {
            break run;
        }
        size *= 2;
        assert!(size <= 16384, "nothing was told of a run of many seconds");
    };
    assert_eq!((&told["cause"], &told["at"]), (&"sync".into(), &"cell 91, line 3".into()));
    assert!(told["ms"].as_u64() >= Some(700), "{told}");
}

#[test]
fn a_loop_that_records_and_runs_nothing_is_told_while_it_grows() {
    let engine = Arc::new(engine());
    let schema = Schema::read(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap());
    // However fast the machine is, the cell lasts until somebody has told of it.
    let code = "let mut x = Tensor::ones([2]);\nfor _ in 0..50000 {\n    x = &x + 1.0;\n}\nstd::thread::sleep(std::time::Duration::from_secs(60));";
    let request = Request { code: code.into(), cell: 91, ..Request::default() };
    let (interrupts, mut grows) = (engine.clone(), None);
    let reply = engine.execute(&request, &mut |event| {
        if let Event::Insight { kind, json } = event
            && kind == "live"
            && grows.is_none()
        {
            grows = Some(schema.check(&kind, &json)).filter(|told| told["what"] == "pending");
            if grows.is_some() {
                interrupts.interrupt();
            }
        }
    });
    assert_eq!(reply, Reply::Interrupted, "nothing was told of a loop of many seconds");
    let told = grows.unwrap();
    assert_eq!((&told["cell"], &told["line"]), (&91.into(), &3.into()), "{told}");
    assert!(told["nodes"].as_u64() >= Some(20_000), "{told}");
    let line = xlazy_kernel::footer::live_line(&told.to_string()).unwrap();
    assert!(line.contains("recorded and nothing has run them") && line.contains("`sync()`"), "{line}");
}

#[test]
fn pending_tensors_are_told_before_they_run() {
    let engine = engine();
    assert_eq!(json(&engine, "%pending --json")["pending"].as_array().unwrap().len(), 0);
    ok(&engine, 1, "let x = Tensor::ones([4, 8]);\nlet y = &x * 2.0;");
    ok(&engine, 2, "\nlet z = (&y + 1.0).sum();");
    let now = json(&engine, "%pending --json");
    let list: Vec<(&str, &str, u64, u64, u64)> = now["pending"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| {
            let number = |v: &Value| v.as_u64().unwrap();
            let (name, ty) = (p["name"].as_str().unwrap(), p["type"].as_str().unwrap());
            (name, ty, number(&p["site"]["cell"]), number(&p["site"]["line"]), number(&p["nodes"]))
        })
        .collect();
    assert_eq!(list, [("x", "f32[4,8]", 1, 1, 1), ("y", "f32[4,8]", 1, 2, 2), ("z", "f32[]", 2, 2, 4)]);
    let next = &now["next"];
    assert_eq!((&next["nodes"], &next["memory_bytes"]), (&4.into(), &(2 * 4 * 32 + 4).into()));
    assert_eq!(next["origin"], "compiled");
    let (text, _) = run(&engine, 3, "%pending");
    assert!(
        text.contains(
            "3 pending tensors; a sync would run 4 ops, add 260 B of device memory and compile a new program"
        ),
        "{text}"
    );
    // It was right: the sync compiles, and the next of its kind does not.
    let compiled = |code: &str| told(&engine, "cell", code)[0]["compiled"].as_u64().unwrap();
    assert_eq!(compiled("sync();"), 1);
    ok(&engine, 4, "let x = Tensor::ones([4, 8]);\nlet y = &x * 2.0;\nlet z = (&y + 1.0).sum();");
    assert_eq!(json(&engine, "%pending --json")["next"]["origin"], "memory");
    assert_eq!(compiled("sync();"), 0);
    // A buffer that nothing else holds is used again: nothing is added.
    ok(&engine, 5, "let x = x * 0.5;");
    let now = json(&engine, "%pending --json");
    assert_eq!((&now["next"]["donated_bytes"], &now["next"]["memory_bytes"]), (&128.into(), &0.into()));
}

#[test]
fn a_budget_ends_the_cell_and_leaves_all_in_place() {
    let engine = engine();
    ok(
        &engine,
        1,
        "let w = Tensor::ones([4]);\nsync();\nlet step = |n: usize| (Tensor::ones([n]) * 2.0).sum().item();",
    );
    assert_eq!(json(&engine, "%budget compiles=1 --json")["compiles"], 1);
    let (text, reply) = run(&engine, 2, "w.add_(1.0);\nlet mut sum = step(3);\nsum += step(3);\nsum += step(4);");
    let Reply::Error(failure) = reply else { panic!("it compiled two programs: {text}") };
    for part in [
        "used its budget of 1 compilation",
        "was not started",
        "shape",
        "is [4], was [3]",
        "`%budget off`",
        "declared so far is kept",
    ] {
        assert!(failure.message.contains(part), "no `{part}` in {}", failure.message);
    }
    assert!(eval_support::plain(&failure).contains("cell 1, line 3"), "{:?}", failure.traceback);
    let pending = json(&engine, "%pending --json");
    assert_eq!((&pending["pending"][0]["name"], pending["pending"].as_array().unwrap().len()), (&"w".into(), 1));
    assert_eq!(ok(&engine, 3, "sum"), "=> 12.0\n", "what the cell had declared is as it was then");
    // What was compiled is there: the same cell goes further each time, and `w` has been added to once for each try.
    let (_, reply) = run(&engine, 3, "step(4);");
    assert_eq!(reply, Reply::Ok, "one more is within the budget of this cell");
    ok(&engine, 4, "%budget compiles=2");
    assert_eq!(ok(&engine, 5, "step(3);\nw.to_vec::<f32>()"), "=> [2.0, 2.0, 2.0, 2.0]\n");
    let (_, reply) = run(&engine, 6, "let a = step(5);\nlet b = step(6);\nlet c = step(7);");
    assert!(matches!(reply, Reply::Error(_)));
    ok(&engine, 7, "%budget off");
    assert!(json(&engine, "%budget --json")["compiles"].is_null());
    ok(&engine, 8, "let a = step(5);\nlet b = step(6);\nlet c = step(7);");
}

#[test]
fn every_magic_answers_as_data() {
    let engine = engine();
    assert!(json(&engine, "%why --json").is_null());
    ok(&engine, 1, "let x = Tensor::ones([8, 4]);\nsync();\nfor n in 0..3 {\n    x.narrow(0, n, 2).sum().item();\n}");
    assert_eq!(json(&engine, "%why 1 --json")["number"], 1);
    assert_eq!(json(&engine, "%why --json")["why"]["class"], "index");
    let healed = json(&engine, "%healed --json");
    assert_eq!((&healed[0]["site"]["cell"], &healed[0]["site"]["line"]), (&1.into(), &4.into()));
    let all = json(&engine, "%compiles --json");
    assert_eq!(json(&engine, "%metrics --json")["counters"]["UncachedCompile"], all.as_array().unwrap().len());
    let (text, _) = run(&engine, 2, "%compiles");
    assert!(text.contains("cell 1, line 4") && text.contains("index") && text.contains("memory"), "{text}");
}

#[test]
fn what_is_equal_is_told_once() {
    let engine = engine();
    ok(
        &engine,
        1,
        "fn step(rows: usize) -> f64 {\n    let x = Tensor::from_vec(vec![1f32; rows * 8], [rows, 8]);\n    let y = x.tanh().sum();\n    sync();\n    y.item()\n}",
    );
    let cell = &told(&engine, "cell", "for rows in 4..12 {\n    step(rows);\n}")[0];
    let all = cell["told"].as_array().unwrap();
    assert_eq!((all.len(), &all[0]["news"], &all[0]["count"]), (2, &false.into(), &1.into()), "{all:#?}");
    let (again, sentence) = (&all[1], all[1]["sentence"].as_str().unwrap());
    assert_eq!((&again["news"], &again["count"]), (&true.into(), &7.into()));
    assert_eq!(again["compilations"].as_array().map(Vec::len), Some(7));
    let head = "7 times: Compiled again (shape): `x` (cell 1, line 2, called from cell 91, line 2) is f32[5…11,8], was f32[4…10,8]. \
                Fix: dimension 0 has been 4, 5, 6, 7, 8, 9, 10, 11";
    assert!(sentence.starts_with(head), "{sentence}");
    assert_eq!(cell["compilations"].as_array().map(Vec::len), Some(8), "each is there as data");
    let why = &cell["compilations"][7]["why"];
    assert_eq!(
        (&why["at"]["cell"], &why["called_from"]["cell"], &why["called_from"]["line"]),
        (&1.into(), &91.into(), &2.into())
    );
}
