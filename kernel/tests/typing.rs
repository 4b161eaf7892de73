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

/// Asks about places in code, each with a part of what is to be shown.
fn shows(kernel: &mut Kernel, wanted: &[(&str, &str)]) {
    let mut missed = Vec::new();
    for (code, says) in wanted {
        let found = inspected(kernel, code);
        if !found.contains(says) {
            missed.push(format!("{code} wants {says:?}\n    has {found:?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
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
    shows(
        &mut kernel,
        &[
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
        ],
    );
}

/// What the notebook defines is taken apart as Rust, however it is laid out, also before its cell has run.
#[test]
fn the_notebooks_own_items() {
    let mut kernel = kernel();
    let items = [
        "/// Of waves.\n#[derive(Debug)] pub enum OneLine { /// Round.\n Sine, Cos }",
        "#[derive(Debug)]\nenum Wave {\n    /// Round.\n    Sine,\n    Square { duty: f32 },\n}",
        "/** Blocky. */\npub fn blocky(a: u8) -> u8 { a }",
        "/// Tw.\nmacro_rules! tw { ($x:expr) => { $x * 2 }; () => { 2 } }",
        "struct Guitar { strings: u8, title: String }\nimpl Guitar { fn title(&self) -> &str { &self.title } }",
        "/// Plays.\ntrait Instrument {\n    /// Makes a sound.\n    fn play(&mut self, loud: bool, times: u8);\n}",
        "impl Instrument for Guitar { fn play(&mut self, loud: bool, times: u8) {} }",
        "#[derive(Debug)] enum NoteError { BadPitch { given: u16, most: u8 }, Silent }",
    ];
    items.iter().for_each(|item| run(&mut kernel, item));
    run(&mut kernel, "let mut guitar = Guitar { strings: 6, title: String::new() };");
    shows(
        &mut kernel,
        &[
            ("One¦Line::Sine", "pub enum OneLine { /// Round.\n Sine, Cos }\n\nOf waves."),
            ("Wa¦ve::Sine", "enum Wave {\n    /// Round.\n    Sine,"),
            ("Wave::Squ¦are", "Square { duty: f32 }"),
            ("blo¦cky(1)", "pub fn blocky(a: u8) -> u8\n\nBlocky."),
            ("tw¦!(1)", "macro_rules! tw { ($x:expr) => …; () => … }\n\nTw."),
            ("tw!(¦", "($x:expr) => …; () => …"),
            ("struct Here { a: u8 }⏎let h = He¦re { a: 1 };", "struct Here {\n    a: u8,\n}"),
            ("/// Own.⏎macro_rules! own { [$a:ty] => {} }⏎own![¦", "own { [$a:ty] => … }\n\nOwn."),
            ("guitar.tit¦le()", "Guitar\nfn title(&self) -> &str"),
            ("guitar.tit¦le.len()", "Guitar\ntitle: String"),
            ("guitar.title(¦", "fn title(&self) -> &str"),
            ("guitar.pl¦ay(true, 1)", "Makes a sound."),
            ("<Guitar as Instrument>::pl¦ay(&mut guitar, true, 1)", "Makes a sound."),
            ("<Guitar as Instrument>::play(&mut guitar, ¦", "loud: bool, times: u8)\n                   ^^^^^^^^^^"),
            ("NoteError::BadPitch { gi¦ven: 1, most: 2 }", "given: u16"),
            ("match e { NoteError::BadPitch { given: g, mo¦st: 3 } => 1, _ => 2 }", "most: u8"),
            ("Guitar { str¦ings: 6, ..guitar }", "strings: u8"),
        ],
    );
}

/// A name that a pattern binds has a type where it is declared, too.
#[test]
fn names_that_patterns_bind() {
    let mut kernel = kernel();
    run(&mut kernel, "#[derive(Debug)] struct Note { pitch: u8 }\nstruct Pair(i64, String);");
    run(&mut kernel, "let nested: Option<Result<Vec<u8>, String>> = None;\nlet a_note = Note { pitch: 3 };");
    run(&mut kernel, "let mut later = Vec::new();");
    shows(
        &mut kernel,
        &[
            ("if let Some(inn¦er) = Some(3u64) {}", "inner: u64"),
            ("match nested { Some(Ok(li¦st)) => list.len(), _ => 0 }", "list: Vec<u8>"),
            ("match nested { Some(Err(wh¦y)) if why.is_empty() => 1, _ => 0 }", "why: String"),
            ("match nested { No¦ne => 1, _ => 0 }", "None"),
            ("vec![(1u8, 2.5)].iter().map(|(r, n¦)| n * 2.0)", "n: &f64"),
            ("let (lo¦, hi) = (1u8, \"a\");⏎lo", "lo: u8"),
            ("let Some(s¦) = Some(\"a\") else { panic!() };", "s: &str"),
            ("for (i¦, n) in [1.5f32].iter().enumerate() { }", "i: usize"),
            ("while let Some(to¦p) = vec![1u16].pop() { top; }", "top: u16"),
            ("let f = |n¦: Note| n.pitch;", "n: Note"),
            ("fn f(ab¦c: u8) -> u8 { abc }", "abc: u8"),
            ("struct S; impl S { fn f(&self, by¦: &[f64]) {} }", "by: &[f64]"),
            ("let Pair(i¦d, _) = Pair(1, String::new());", "id: i64"),
            ("let Note { pit¦ch } = a_note;", "pitch: u8"),
            ("println!(\"{:?}\", vec![1i16].iter().map(|q¦| q + 1).max())", "q: &i16"),
            ("println!(\"{a_no¦te:?}\")", "a_note: Note"),
            ("let width = 5usize;⏎println!(\"{wid¦th} {}\", 1)", "width: usize"),
            ("let z¦ = nested.is_some();", "z: bool"),
            ("later.push(1u8);⏎for ea¦ch in &later {}", "each: &u8"),
        ],
    );
}

/// What takes arguments, whatever it is.
#[test]
fn what_is_called() {
    let mut kernel = kernel();
    run(&mut kernel, "struct Note { pitch: u8 }\nfn twice(a: i32, b: f32) -> i32 { a }");
    run(&mut kernel, "let pointer: fn(i32, f32) -> i32 = twice;");
    shows(
        &mut kernel,
        &[
            ("let q = |n: Note| n.pitch;⏎q¦", "q: |Note| -> u8"),
            ("let mut n = 0;⏎let mut add = |by: i32| n += by;⏎add(¦", "add: |i32|\n      ^^^"),
            ("let text = String::new();⏎let once = move |c: char| text;⏎on¦ce", "once: |char| -> String"),
            ("let nothing = || ();⏎noth¦ing", "nothing: ||"),
            ("let q¦ = |n: &Note, by: f32| n.pitch as f32 * by;", "q: |&Note, f32| -> f32"),
            ("let adder = |a: i32, b: u8| a + b as i32;⏎adder(1, ¦", "adder: |i32, u8| -> i32\n             ^^"),
            ("let op: fn(i32, u8) -> i32 = |a, b| a;⏎op(1, ¦)", "op: fn(i32, u8) -> i32\n            ^^"),
            ("pointer(¦", "pointer: fn(i32, f32) -> i32\n            ^^^"),
            ("fn apply(f: impl Fn(&str, u8) -> u8) { f(\"a\", ¦", "f: |&str, u8| -> u8\n          ^^"),
            ("fn apply<F: FnMut(f64)>(mut f: F) { f(¦) }", "f: |f64|\n    ^^^"),
            ("let b: Box<dyn Fn(char) -> bool> = Box::new(|c| true);⏎b(¦", "b: |char| -> bool"),
            ("optim::Adam::st¦ep", "fn step(&mut self)\n\nChanges every parameter"),
            ("Module::for¦ward", "What the module makes of"),
            ("nn::LSTM::forw¦ard", "state: Option<(Tensor, Tensor)>) -> (Tensor, (Tensor, Tensor))"),
            (
                "nn::CrossEntropyLoss::new().forw¦ard",
                "fn forward(&self, input: &Tensor, target: &Tensor) -> Tensor\n\n",
            ),
        ],
    );
}

/// A name with `!` is the macro and nothing else.
#[test]
fn macros_by_their_mark() {
    let mut kernel = kernel();
    run(&mut kernel, "struct Net { a: nn::Linear }\nfn tw() {}\n/// Tw.\nmacro_rules! tw { () => {} }");
    shows(
        &mut kernel,
        &[
            ("impl Module for Net { parts¦!(a, b); }", "macro parts\n\nInside `impl Module`"),
            ("impl Module for Net { parts!(¦", "macro parts"),
            ("vec!¦[1]", "macro vec"),
            ("std::ve¦c![1]", "macro vec"),
            ("vec![1; ¦", "vec![elements…], vec![element; count]"),
            ("xlazy::disp¦lay!(1)", "macro display"),
            ("forma¦t!(\"\")", "Creates a `String`"),
            ("t¦w!()", "macro_rules! tw { () => … }\n\nTw."),
            ("t¦w()", "fn tw()"),
            ("part¦s", "macro parts"),
        ],
    );
}

#[test]
fn magics_where_they_are_written() {
    let mut kernel = kernel();
    run(&mut kernel, "let v = vec![1u8];");
    shows(
        &mut kernel,
        &[
            ("%tim¦e v.len()", "%time"),
            ("%%tim¦e⏎v.len()", "%time"),
            ("%time v.le¦n()", "fn len"),
            ("%checkpoint lo¦ad", "%checkpoint"),
            ("let x = 1;⏎%budget ¦", "%budget"),
            (":de¦p serde = \"1\"", "add a dependency"),
            (":t¦ype v", "show an expression's type"),
            ("%nosu¦ch", "nothing"),
            ("mat¦ch v.len() { _ => 1 }", "Control flow based on pattern matching."),
            ("struct S;⏎impl Clone for S { f¦n clone(&self) -> S { S } }", "A function or function pointer."),
            ("u8::MA¦X", "(2⁸ − 1).\n\n```rust\nassert_eq!(u8::MAX, 255);"),
        ],
    );
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
        ("?parts!", "macro parts"),
        ("?parts", "macro parts"),
        ("parts!?", "macro parts"),
        ("?vec!", "macro vec"),
        ("?format!", "macro format"),
        ("format!?", "macro format"),
        ("%time?", "%time"),
        ("%time ?", "%time"),
        ("?%time", "%time"),
        ("?", "Magics"),
        ("help", "Magics"),
        ("?match", "Control flow based on pattern matching."),
        ("?Vec<u8>", "A contiguous growable array type"),
        ("help(v.push(1))", "Appends an element"),
        ("?Module::parts", "`parts!` writes this method"),
    ] {
        let (reply, _) = kernel.execute(json!({"code": code}));
        let page = reply["content"]["payload"][0]["data"]["text/plain"].as_str().unwrap_or_default().to_owned();
        assert!(page.contains(says), "{code}: {reply}");
        assert!(!page.contains("DType::format") && !page.contains("Sharding"), "{code}: {reply}");
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
        let field = inspected(
            &mut kernel,
            &format!("{functions}impl Point {{ fn origin() -> Self {{ Self {{ x¦: 0.0 }} }} }}"),
        );
        assert!(field.contains("x: f64"), "{field}");
        let declared = inspected(&mut kernel, &format!("{functions}fn last(all: &[Point]) {{ for o¦ne in all {{}} }}"));
        assert!(declared.contains("one: &Point"), "{declared}");
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
