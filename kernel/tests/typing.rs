//! What a front end is offered while a cell is typed: the probes of tests/typing, completion, signatures, documentation.
#[path = "protocol/client.rs"]
#[allow(dead_code)]
mod client;
mod eval_support;
#[path = "protocol/mock_engine.rs"]
#[allow(dead_code)]
mod mock_engine;

use client::{Kernel, Setup};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

fn kernel() -> Kernel {
    Kernel::start_with(Setup { engine: Some(Arc::new(eval_support::engine())), ..Setup::default() })
}

fn run(kernel: &mut Kernel, code: &str) {
    let (reply, _) = kernel.execute(json!({"code": code}));
    assert_eq!(reply["content"]["status"], "ok", "{code}\n{reply}");
}

/// The code and where the cursor is in it, in code points.
fn marked(text: &str) -> (String, usize) {
    let text = text.replace('⏎', "\n");
    let at = text.find('¦').unwrap_or_else(|| panic!("no cursor in {text}"));
    (text.replacen('¦', "", 1), text[..at].chars().count())
}

fn completed(kernel: &mut Kernel, code: &str, cursor: usize) -> (Vec<String>, Value) {
    let reply = kernel.ask("complete_request", json!({"code": code, "cursor_pos": cursor}))["content"].clone();
    assert_eq!(reply["status"], "ok", "{code}: {reply}");
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    (reply["matches"].as_array().unwrap().iter().map(text).collect(), reply)
}

/// Why these candidates are not what a probe wants.
fn wrong(found: &[String], want: &str) -> Option<String> {
    if want == "nothing" {
        return (!found.is_empty()).then(|| "something is offered".into());
    }
    let exact = want.starts_with('=');
    let words: Vec<&str> = want.trim_start_matches('=').split_whitespace().collect();
    for word in &words {
        let (sign, name) = match word.split_at(1) {
            (sign @ ("^" | "-"), name) if !name.is_empty() && !name.starts_with('-') => (sign, name),
            _ => ("", *word),
        };
        let at = found.iter().position(|f| f == name);
        match (sign, at) {
            ("-", Some(_)) => return Some(format!("{name} is offered")),
            ("^", Some(0)) | ("", Some(_)) | ("-", None) => {}
            _ => return Some(format!("{name} is at {at:?}")),
        }
    }
    (exact && found.len() != words.len()).then(|| "there is more".into())
}

#[test]
fn probes() {
    check("probes.md");
}

#[test]
fn probes_of_another_hand() {
    check("others.md");
}

#[test]
fn probes_of_a_third_hand() {
    check("generics.md");
}

#[test]
fn probes_as_in_notebooks() {
    check("notebooks.md");
}

#[test]
fn probes_of_programs() {
    check("programs.md");
}

#[test]
fn probes_of_other_programs() {
    check("worlds.md");
}

#[test]
fn probes_of_places() {
    check("places.md");
}

fn check(file: &str) {
    let text = std::fs::read_to_string(eval_support::cells_dir().with_file_name("typing").join(file)).unwrap();
    let mut kernel = kernel();
    let (mut missed, mut count) = (Vec::new(), 0);
    for block in text.split("```").skip(1).step_by(2) {
        let (kind, body) = block.split_once('\n').unwrap();
        if kind == "rust" {
            run(&mut kernel, body);
            continue;
        }
        for line in body.lines().filter(|l| !l.is_empty()) {
            let (probe, want) = line.rsplit_once(" => ").unwrap_or_else(|| panic!("{line}"));
            let (code, cursor) = marked(probe);
            let begin = Instant::now();
            let (found, reply) = completed(&mut kernel, &code, cursor);
            count += 1;
            let (start, end) =
                (reply["cursor_start"].as_u64().unwrap() as usize, reply["cursor_end"].as_u64().unwrap() as usize);
            let word: String = code.chars().skip(start).take(end - start).collect();
            let replaces = found.iter().all(|f| f.to_lowercase().starts_with(&word.to_lowercase())) && end == cursor;
            let types = reply["metadata"]["_jupyter_types_experimental"].as_array().map_or(0, Vec::len);
            let why = wrong(&found, want)
                .or_else(|| (!replaces || types != found.len()).then(|| format!("it replaces `{word}`")));
            if let Some(why) = why {
                let few: Vec<&String> = found.iter().take(12).collect();
                missed.push(format!(
                    "{probe}\n    wants {want}: {why}; of {}: {few:?}, {:?}",
                    found.len(),
                    begin.elapsed()
                ));
            }
        }
    }
    assert!(missed.is_empty(), "{} of {count} probes:\n{}", missed.len(), missed.join("\n"));
    assert!(count >= 60, "{count} probes");
}

fn inspected(kernel: &mut Kernel, marked_code: &str) -> String {
    let (code, cursor) = marked(marked_code);
    let reply = kernel.ask("inspect_request", json!({"code": code, "cursor_pos": cursor}));
    reply["content"]["data"]["text/plain"].as_str().unwrap_or("nothing").to_owned()
}

#[test]
fn signatures_types_and_documentation() {
    let mut kernel = kernel();
    run(
        &mut kernel,
        "/// A point.\n#[derive(Clone)] struct Point { x: f64 }\nimpl Point { /// Makes it larger.\nfn scale(&self, by: f64, twice: bool) -> f64 { by } \
         fn new(x: f64) -> Point { Point { x } } }\n/// Doubles.\nfn double(x: f64, times: usize) -> f64 { x * times as f64 }",
    );
    run(
        &mut kernel,
        "let p = Point::new(1.0); let v = vec![1u8]; let t = Tensor::ones([2, 2]); let layer = nn::Linear::new(1, 1);",
    );
    let mut missed = Vec::new();
    for (code, says) in [
        ("double(1.0, ¦", "fn double(x: f64, times: usize) -> f64\n                  ^^^^^^^^^^^^\n\nDoubles."),
        ("p.scale(1.0, ¦)", "twice: bool) -> f64\n                         ^^^^^^^^^^^\n\nMakes it larger."),
        ("Point::new(¦)", "Point\nfn new(x: f64) -> Point\n       ^^^^^^"),
        ("v.insert(0, ¦", "element: u8"),
        ("v.ins¦ert(0, 1)", "Vec\nfn insert(&mut self, index: usize, element: u8)"),
        ("v.iter().map(|b| b.pow(¦", "fn pow(self, exp: u32) -> u8"),
        ("t.matm¦ul(&t)", "torch"),
        ("t.softmax(¦", "dim"),
        ("nn::Linear::new(3, ¦", "out_features"),
        ("p¦", "p: Point"),
        ("Poin¦t", "A point."),
        ("let n = v.len();⏎n¦", "n: usize"),
        ("let n = v.iter().map(|b| b + 1).collect::<Vec<_>>();⏎n¦.len()", "n: Vec<u8>"),
        ("p.sc¦ale(1.0, true)", "Point\nfn scale"),
        ("p.matmu¦l(1.0)", "nothing"),
        // Of std's, from the table that the toolchain's documentation makes.
        ("v.pu¦sh(1)", "Appends an element to the back of a collection.\n\n```rust\nlet mut vec = vec![1, 2];"),
        ("v.iter().ma¦p(|b| b)", "Takes a closure"),
        ("2.0f64.sq¦rt()", "fn sqrt(self) -> f64\n\nReturns the square root"),
        ("Ve¦c::<u8>::new()", "A contiguous growable array type"),
        ("Opt¦ion::Some(1)", "enum Option {\n    None,\n    Some(T),\n}"),
        ("CrossEntropyOpt¦ions::default()", "label_smoothing: f64,\n"),
        ("std::f64::consts::P¦I", "Archimedes"),
        ("HashM¦ap::<u8, u8>::new()", "struct HashMap\nuse std::collections::HashMap;\n\nA hash map"),
        ("ve¦c![1, 2]", "macro vec"),
        ("let z¦ = t.sum().item();", "z: f64"),
        ("Plot::new(\"a\").line(¦", "name: &str"),
        ("help(v.pu¦sh)", "Appends an element"),
        ("?v.pu¦sh", "Appends an element"),
        ("std::fs::read_to_str¦ing(\"a\")", "fn read_to_string"),
        ("Vec::with_capa¦city(1)", "fn with_capacity(capacity: usize)"),
        ("Some¦(1)", "Some(T)"),
        ("nosuch(¦", "nothing"),
        ("sca¦n(f, &t, &t)", "jax.lax.scan"),
        ("displa¦y(&t)", "Shows a value"),
        ("progres¦s(0..3)", "fn progress"),
        ("cat(¦", "tensors"),
        ("Point { x¦: 1.0 }", "x: f64"),
        ("let add = |a: i32| a + 1;⏎add(¦", "add: "),
        ("println¦!(\"\")", "println"),
        ("assert_eq!(¦", "assert_eq!(left, right, message…)\n           ^^^^"),
        ("assert_eq!(1 + 1, ¦", "assert_eq!(left, right, message…)\n                 ^^^^^"),
        ("optim::SGD::new(layer.parameters(), 0.1).momentum(¦", "momentum: f64"),
        ("t.sqr¦t()", "`tensor([4.0, 9.0]).sqrt()` is `[2., 3.]`"),
        ("struct Metres(f64);⏎Metres(¦", "f64"),
    ] {
        let found = inspected(&mut kernel, code);
        if !found.contains(says) {
            missed.push(format!("{code} wants {says:?}\n    has {found:?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// One help system, whatever it is asked in.
#[test]
fn help_in_pythons_forms_and_its_own() {
    let mut kernel = kernel();
    run(&mut kernel, "let t = Tensor::ones([2, 2]); let v = vec![1u8]; let r: Result<i32, String> = Ok(3);");
    for (code, says) in [
        ("help(t.relu)", "fn relu(&self) -> Tensor"),
        ("help(t)", "t: Tensor"),
        ("help(v.push);", "Appends an element"),
        ("help(nn::Linear)", "torch.nn.Linear"),
        ("help()", "Magics"),
        ("?t.relu", "torch.relu"),
        ("t.relu?", "torch.relu"),
        ("t?", "t: Tensor"),
        ("v.push??", "Appends an element"),
        ("nn::Linear?", "torch.nn.Linear"),
        ("%doc Vec::push", "Appends an element"),
        ("%help t.relu", "torch.relu"),
        ("?HashMap", "use std::collections::HashMap;"),
    ] {
        let (reply, _) = kernel.execute(json!({"code": code}));
        let page = reply["content"]["payload"][0]["data"]["text/plain"].as_str().unwrap_or_default().to_owned();
        assert!(page.contains(says), "{code}: {reply}");
    }
    // What is Rust stays Rust.
    let (reply, _) = kernel.execute(json!({"code": "r?"}));
    assert_eq!((&reply["content"]["status"], &reply["content"]["payload"]), (&json!("ok"), &json!([])), "{reply}");
    run(&mut kernel, "fn help(n: i32) -> i32 { n + 1 }");
    let (reply, _) = kernel.execute(json!({"code": "help(3)"}));
    assert_eq!(reply["content"]["payload"], json!([]), "{reply}");
}

/// However long a cell is, and wherever in it somebody types.
#[test]
fn long_cells() {
    let mut kernel = kernel();
    run(&mut kernel, "struct Point { x: f64 } impl Point { fn norm(&self) -> f64 { self.x } }");
    let function = |i: usize| {
        format!(
            "fn step_{i}(points: &[Point], by: f64) -> Vec<String> {{\n    let moved = points.iter().map(|p| p.norm() * by + {i}.0);\n    \
             let said = moved.map(|m| format!(\"{{m:.2}} of {{}}\", points.len())).collect::<Vec<_>>();\n    \
             println!(\"{{said:?}}\");\n    said\n}}\n"
        )
    };
    for (count, longest) in [(30, 1 << 14), (400, 1 << 18)] {
        let functions: String = (0..count).map(function).collect();
        assert!(functions.len() < longest, "{}", functions.len());
        for (ahead, behind, wants) in [
            ("let p = Point { x: 1.0 }; p.no", "", "norm"),
            ("fn last(points: &[Point]) { points[0].no", " }", "norm"),
            ("let all = step_3(&[], 1.0); all[0].to_upp", "", "to_uppercase"),
        ] {
            let code = format!("{functions}{ahead}{behind}");
            let begin = Instant::now();
            let (found, _) = completed(&mut kernel, &code, functions.len() + ahead.len());
            eprintln!("{} bytes: {:?}", code.len(), begin.elapsed());
            assert!(found.iter().any(|f| f == wants), "{ahead}: {found:?}");
            let shown = inspected(
                &mut kernel,
                &format!("{functions}{ahead}¦{behind}").replace("to_upp¦", "to_uppercase¦").replace("no¦", "norm¦"),
            );
            assert!(shown.contains(wants), "{ahead}: {shown}");
        }
    }
}

/// A dependency's source says what it has.
#[test]
fn dependencies() {
    let mut kernel = kernel();
    let counter = eval_support::cells_dir().join("crates/counter");
    run(&mut kernel, &format!(":dep counter = {{ path = {counter:?} }}"));
    let mut offered = |text: &str| {
        let (code, cursor) = marked(text);
        completed(&mut kernel, &code, cursor).0
    };
    for (text, want) in [
        ("counter::¦", "count gauge Pair meters Shout -private -deep"),
        ("use count¦", "=counter"),
        ("counter::meters::fine::¦", "=Gauge"),
        ("counter::Pair(1, 2).¦", "0 1 clone"),
        ("counter::gauge(1).¦", "^0 -clone"),
        ("counter::nosuch::¦", "nothing"),
        ("use counter::{count, me¦", "=meters"),
    ] {
        let found = offered(text);
        assert_eq!(wrong(&found, want), None, "{text}: {found:?}");
    }
}
