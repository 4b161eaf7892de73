//! The page for people who know PyTorch: what each row says is to be written compiles, and what torch would have written either
//! compiles, too, or fails with the other side of its row.
mod eval_support;

use eval_support::{engine, plain, run};
use xlazy_kernel::engine::{Failure, Reply};
use xlazy_kernel::eval::RustEngine;

/// What the rows' letters are.
const SETUP: &str = "
let (x, y, t, i) = (Tensor::ones([2, 3]), Tensor::ones([2, 3]), tensor([0, 1]), tensor([[0, 1, 0]]));
let (m, k, n) = (x.gt(0.5), true, 2usize);
let (a, b, model) = (nn::Linear::new(3, 3), nn::Linear::new(3, 3), nn::Linear::new(3, 3));
let (p, s) = (model.parameters(), model.state_dict());
let mut opt = optim::SGD::new(model.parameters(), 0.1);
let d = data::TensorDataset::new([&x]);
let (v, w) = (vec![1, 2], vec![3, 4]);
fn f(x: Tensor) -> Tensor { x.square().sum() }
";
const ARGUMENTS: &str = "x: Tensor, y: Tensor, t: Tensor, i: Tensor, m: Tensor, k: bool, a: nn::Linear, b: nn::Linear, model: nn::Linear, \
    p: Vec<Tensor>, cell: nn::LSTMCell, gru_cell: nn::GRUCell, criterion: nn::CrossEntropyLoss, ranking: nn::MarginRankingLoss, e: DType, g: DType, q: u8, r: u8, o: Option<i32>, f: fn(Tensor) -> Tensor, s: Vec<(String, Tensor)>, mut opt: optim::SGD, d: data::TensorDataset<1>, l: data::DataLoader<1>, v: Vec<i32>, w: Vec<i32>, u: Vec<String>";

fn rows() -> Vec<[String; 2]> {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/from-pytorch.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let code = |cell: &str| Some(cell.trim().strip_prefix('`')?.strip_suffix('`')?.replace("\\|", "|"));
    let row = |line: &str| {
        // As the kernel takes it, which passes over what is no row.
        let cells =
            line.strip_prefix("| ").and_then(|l| l.strip_suffix('|')).map(|l| l.split(" | ").collect::<Vec<_>>());
        let Some([torch, xlazy, _]) = cells.as_deref() else { panic!("no row of three cells: {line}") };
        Some([code(torch)?, code(xlazy)?])
    };
    page.lines().filter(|line| line.starts_with('|') && !line.starts_with("|--")).filter_map(row).collect()
}

#[test]
fn what_a_row_says_is_to_be_written_compiles() {
    let engine = engine();
    let item = |xlazy: &str| xlazy.starts_with("use ");
    let body =
        |[torch, xlazy]: &[String; 2]| format!("// {torch}\nlet _ = |{ARGUMENTS}| {{ let _ = {{ {xlazy} }}; }};");
    let all: Vec<String> = rows().iter().filter(|r| !item(&r[1])).map(body).collect();
    let (_, reply) = run(&engine, 1, &format!("if false {{\n{}\n}}", all.join("\n")));
    if let Reply::Error(failure) = reply {
        panic!("{}", plain(&failure));
    }
}

/// What a hint says of an option is there, whatever the option is.
#[test]
fn options_that_hints_name_are_there() {
    let source = include_str!("../src/eval/tell/options.rs");
    let expressions: Vec<String> = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("(\"")?.split_once("\", \"")?.1.strip_suffix("\"),"))
        .map(|code| format!("let _ = |{ARGUMENTS}| {{ let _ = {{ {} }}; }};", code.replace("\\\"", "\"")))
        .collect();
    assert!(expressions.len() > 30, "{expressions:?}");
    let (_, reply) = run(&engine(), 1, &format!("if false {{\n{}\n}}", expressions.join("\n")));
    if let Reply::Error(failure) = reply {
        panic!("{}", plain(&failure));
    }
}

/// Whether an error says what to write instead.
fn told(failure: &Failure, xlazy: &str) -> bool {
    plain(failure).contains(&format!("in xlazy: `{xlazy}`"))
}

#[test]
fn what_torch_would_have_written_is_told_what_to_write() {
    let engine = engine();
    let (mut pending, odd): (Vec<_>, Vec<_>) =
        rows().into_iter().partition(|[torch, _]| syn::parse_str::<syn::Expr>(torch).is_ok());
    // Names are looked up before types are, and what is wrong with them is all that is told.
    for cell in 1.. {
        let lines = pending.iter().map(|[torch, _]| format!("let _ = |{ARGUMENTS}| {{ let _ = {{\n{torch}\n}}; }};"));
        let code = format!("if false {{\n{}\n}}", lines.collect::<Vec<_>>().join("\n"));
        let Reply::Error(failure) = run(&engine, cell, &code).1 else { break };
        let before = pending.len();
        pending.retain(|[_, xlazy]| !told(&failure, xlazy));
        assert!(pending.len() < before, "{}", plain(&failure));
    }
    assert_eq!(run(&engine, 100, SETUP).1, Reply::Ok);
    for (cell, [torch, xlazy]) in odd.iter().enumerate() {
        // Some are the head of something.
        let code = if torch.ends_with(':') { format!("{torch}\n    pass") } else { torch.clone() };
        match run(&engine, 101 + cell as u64, &code).1 {
            Reply::Error(failure) => assert!(told(&failure, xlazy), "`{torch}`, `{xlazy}`:\n{}", plain(&failure)),
            other => panic!("`{torch}`: {other:?}"),
        }
    }
}

/// Mistakes that people make in plain Rust, by the error that rustc has for each; some look like a row of the table.
const PLAIN: &[&str] = &[
    // No code.
    "let v = Vec<i32>::new();",
    "let m = HashMap<String, i32>::new();",
    "let (a, b, c) = (1, 2, 3); a < b < c",
    "let (a, b, c) = (1, 2, 3); a == b == c",
    "let n: i32 = 5 let m = 3;",
    "if numbers.len() > 2 { 1 } else 2",
    "let s = 'several';",
    "fn f(n) { n }",
    "struct P { x: i32; y: i32 }",
    "numbers[1:3]",
    "numbers[:2]",
    "text[2:]",
    "ages[\"a\", 0]; let n = numbers[1:];",
    // E0061
    "numbers.push(1, 2)",
    "let mut v = numbers.clone(); v.sort(true)",
    "numbers.iter().sum(0)",
    "numbers.iter().max(0)",
    "text.len(0)",
    "point.size(0)",
    "point.sum(1, true)",
    "std::cmp::max(1)",
    // E0069 and E0106 on the way to what is about types.
    "numbers.iter().max() > 3",
    "maybe > 3",
    "maybe == 3",
    "text == 'a'",
    "text > 3",
    "point == point",
    "point > point",
    "point >= point",
    "numbers == 3",
    "numbers < 3",
    "ages != numbers",
    "numbers * 2",
    "numbers + numbers",
    "text + text",
    "point * 2.0",
    "maybe + 1",
    "2 ** 3",
    "let n = 2; n ** 3",
    "let f = 2.0; f ** 2",
    "-text",
    "!text",
    // E0277
    "numbers[0i32]",
    "let i = 1i64; numbers[i]",
    "text[0]",
    "ages[0]",
    "ages[text]",
    "let k = 3; numbers[k, 0]",
    "1 + 1.0",
    "let total: i32 = numbers.iter().map(|n| n * 1.5).sum();",
    "for n in 5 { }",
    "for n in point { }",
    "for n in maybe.unwrap() { }",
    "fn show<T: std::fmt::Display>(t: T) {} show(point)",
    "println!(\"{}\", numbers)",
    "println!(\"{}\", point)",
    // E0308
    "let n: i32 = \"a\";",
    "let s: String = \"a\";",
    "let n: usize = -1i32;",
    "if numbers.len() { }",
    "let v: Vec<f32> = numbers.clone();",
    "fn half(n: f64) -> f64 { n / 2.0 } half(2)",
    "numbers.push(\"a\")",
    // E0423, E0425, E0433
    "max(numbers)",
    "max(1, 2)",
    "min(numbers)",
    "sum(numbers)",
    "abs(-3)",
    "len(numbers)",
    "len(text)",
    "len(ages)",
    "float(point)",
    "int(text)",
    "print(text)",
    "sqrt(2.0)",
    "range(numbers)",
    "Point(1, 2)",
    "HashSet::new()",
    "nombers[0]",
    "let n = None.unwrap_or(k);",
    // E0599, E0608 to E0618
    "numbers.size(0)",
    "numbers.size()",
    "numbers.shape()",
    "numbers.shape[0]",
    "numbers.sum(0)",
    "numbers.mean(0)",
    "numbers.map(|n| n + 1)",
    "numbers.view(2, 3)",
    "numbers.tolist()",
    "numbers.backward()",
    "text.size()",
    "text.push(\"a\")",
    "ages.get_or(\"a\")",
    "ages.sort()",
    "maybe.len()",
    "maybe.item()",
    "point.train()",
    "point.cuda()",
    "point.step()",
    "point.x()",
    "point.flatten(1)",
    "point.data",
    "point.shape",
    "numbers.T",
    "text.ndim",
    "point[0]",
    "maybe[0]",
    "let n = 3; n[0]",
    "let n = 3; n(0)",
    "point(0)",
    "numbers(0)",
    "text(1)",
    "*numbers.len()",
    "numbers as f64",
    "text as i32",
    "point as f64",
];

#[test]
fn mistakes_in_plain_rust_are_told_as_rustc_tells_them() {
    let engine = engine();
    let setup = "use std::collections::HashMap;
#[derive(Clone)] struct Point { x: f64, y: f64 }
let mut numbers = vec![3, 1, 2]; let text = String::from(\"text\"); let maybe = Some(3);
let ages = HashMap::from([(\"a\", 1), (\"b\", 2)]); let point = Point { x: 1.0, y: 2.0 };";
    assert_eq!(run(&engine, 1, setup).1, Reply::Ok);
    let mut wrong = Vec::new();
    for (i, code) in PLAIN.iter().enumerate() {
        // Every other one in a function, where variables are of the cell at hand.
        let function = || setup.replace('\n', " ").replace("use std", "fn f() { use std") + code + " ; }";
        let code = if i % 2 == 0 { code.to_string() } else { function() };
        match run(&engine, 2 + i as u64, &code).1 {
            Reply::Error(failure) if failure.name == "CompileError" => {
                let said = plain(&failure);
                wrong.extend(said.contains("in xlazy: ").then(|| format!("`{code}`:\n{said}")));
            }
            other => wrong.push(format!("`{code}`: {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), PLAIN.len(), wrong.join("\n\n"));
}

/// Lines as somebody from torch writes them, none of them a row: with what is advised in place of what is marked, each is
/// compiled, and shows what the line behind it shows.
#[test]
fn what_is_advised_gives_the_value() {
    let text = std::env::var("XLAZY_HABITS").unwrap_or("../tests/typing/torch.md".into());
    let text = std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(text)).unwrap();
    let engine = engine();
    let (mut cell, mut count, mut wrong) = (0, 0, Vec::new());
    let mut ask = |code: &str| {
        cell += 1;
        let (out, reply) = run(&engine, cell, code);
        match reply {
            Reply::Error(failure) => Err(plain(&failure)),
            // How long it took to compile is of no matter.
            _ => Ok(out.lines().map(|line| line.split(" · ").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")),
        }
    };
    for block in text.split("```").skip(1).step_by(2) {
        let (kind, body) = block.split_once('\n').unwrap();
        if kind == "rust" {
            ask(body).unwrap();
            continue;
        }
        for line in body.lines().filter(|line| !line.is_empty()) {
            let (torch, right) = line.rsplit_once(" => ").unwrap();
            let (before, rest) = torch.split_once('«').unwrap();
            let (mistake, behind) = rest.split_once('»').unwrap();
            count += 1;
            let said = match ask(&format!("{before}{mistake}{behind}")) {
                Err(said) => said,
                Ok(shown) => {
                    wrong.push(format!("{torch}\n    is taken: {shown}"));
                    continue;
                }
            };
            let advised: Vec<&str> =
                said.split("in xlazy: `").skip(1).filter_map(|rest| rest.split('`').next()).collect();
            let tried = advised.iter().map(|code| {
                let shown = ask(&format!("{before}{code}{behind}"))?;
                let wanted = ask(right)?;
                if shown == wanted { Ok(()) } else { Err(format!("{shown} is not {wanted}")) }
            });
            let tried: Vec<Result<(), String>> = tried.collect();
            if !tried.iter().any(Result::is_ok) {
                let why = tried.into_iter().rev().find_map(Result::err).unwrap_or_else(|| said.clone());
                wrong.push(format!("{torch}\n    is advised {advised:?}\n{why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count}\n{}", wrong.len(), wrong.join("\n\n"));
}

/// What stands for a parameter of torch's, by its name.
fn value_of(parameter: &str) -> Option<&'static str> {
    const VALUES: &[(&str, &str)] = &[
        ("input A B L a other self source tensor real abs theta mat1 vec1 boundaries grad", "x"),
        (
            "end mat2 tensor2 mat batch1 batch2 input2 vec2 imag angle x1 x2 input1 y src query key value2 tau grad2",
            "y",
        ),
        ("vec signal v pivots lengths", "w"),
        ("target labels", "t"),
        ("index indices", "i"),
        ("mask condition", "m"),
        ("dim dim0 dim1 axis diagonal offset shifts start min q low start_dim", "0"),
        ("dims", "(0, 1)"),
        ("size shape sizes normalized_shape output_size", "(2, 3)"),
        ("tensors operands sequences", "[x, y]"),
        ("pad", "(1, 1)"),
        (
            "n k step num_samples kernel_size chunks sections split_size stride scale_factor lambd2 M N m total_iters patience",
            "2",
        ),
        ("repeats num_classes bins steps length high num_groups n_fft in_features in_channels num_features", "4"),
        (
            "out_features out_channels num_embeddings embedding_dim input_size hidden_size d_model embed_dim T_max step_size",
            "4",
        ),
        ("nhead num_heads groups upscale_factor downscale_factor num_channels num_layers step_size T_0 minlength", "2"),
        (
            "p ord exponent alpha beta max max_norm lr gamma eps threshold fill_value value weight_decay tau2 gain val",
            "2.0",
        ),
        ("descending upper training replacement left unbiased", "True"),
        ("dtype", "torch.float32"),
        ("parameters params", "p"),
        ("optimizer", "opt"),
        ("dataset", "d"),
        ("module", "model"),
    ];
    VALUES.iter().find(|(names, _)| names.split(' ').any(|name| name == parameter)).map(|(_, value)| *value)
}

/// A call of each of torch's functions whose parameters have a value, the optional ones left out.
fn calls() -> Vec<String> {
    let call = |line: &str| {
        let (name, parameters) = line.strip_suffix(')')?.split_once('(')?;
        let required = parameters.split(", ").filter(|p| !p.is_empty() && !p.contains('=') && !p.contains(['(', ')']));
        let values = required.map(|p| value_of(p.trim_start_matches('*'))).collect::<Option<Vec<_>>>()?.join(", ");
        let name = match name.strip_prefix("Tensor.") {
            Some(method) => format!("x.{method}"),
            None if name.starts_with("torch.") => name.to_owned(),
            None => format!("torch.{name}"),
        };
        // Sparse and quantised ones are not there, and names of Rust's are no methods.
        Some(format!("{name}({values})")).filter(|c| !c.contains(['*']) && !c.starts_with("x.type("))
    };
    let mut out: Vec<String> = include_str!("../src/eval/tell/torch.txt").lines().filter_map(call).collect();
    out.dedup();
    out
}

/// What is advised for each of these, if it is code.
fn advised(engine: &RustEngine, cell: &mut u64, lines: &[String]) -> Vec<Option<String>> {
    let mut out = Vec::new();
    for some in lines.chunks(40) {
        let bodies = some.iter().map(|line| format!("let _ = |{ARGUMENTS}| {{ let _ = {{\n{line}\n}}; }};"));
        let code = format!("if false {{\n{}\n}}", bodies.collect::<Vec<_>>().join("\n"));
        *cell += 1;
        let told = match run(engine, *cell, &code).1 {
            Reply::Error(failure) => plain(&failure),
            _ => String::new(),
        };
        // Each has three lines of the cell, and the first error at it is about all of it.
        let errors: Vec<&str> = told.split("\nerror").collect();
        let of = |n: usize| {
            let here = format!("cell {cell}:{}:", 3 * n + 3);
            let error = errors.iter().find(|e| e.contains(&here))?;
            let code = error.split("in xlazy: `").nth(1)?.split('`').next()?;
            (!error.contains("tells what it takes")).then(|| code.to_owned())
        };
        out.extend((0..some.len()).map(of));
    }
    out
}

/// Of all that torch has, by its signatures: rustc takes what is advised, or it takes values of other types than a test can guess.
#[test]
fn what_is_advised_for_torchs_functions_compiles() {
    let engine = engine();
    let mut cell = 0;
    let all = calls();
    // A name that is nowhere hides what rustc thinks of types.
    let first = advised(&engine, &mut cell, &all);
    let known: Vec<String> = all.iter().zip(&first).filter(|(_, a)| a.is_some()).map(|(c, _)| c.clone()).collect();
    let second = advised(&engine, &mut cell, &known);
    let mut pairs: Vec<(&String, String)> = known.iter().zip(second).filter_map(|(c, a)| Some((c, a?))).collect();
    let asked = pairs.len();
    let mut wrong = Vec::new();
    while !pairs.is_empty() {
        let bodies = pairs.iter().map(|(_, code)| format!("let _ = |{ARGUMENTS}| {{ let _ = {{\n{code}\n}}; }};"));
        cell += 1;
        let code = format!("if false {{\n{}\n}}", bodies.collect::<Vec<_>>().join("\n"));
        let Reply::Error(failure) = run(&engine, cell, &code).1 else { break };
        let told = plain(&failure);
        let before = pairs.len();
        let mut n = 0;
        pairs.retain(|(call, code)| {
            n += 1;
            let here = format!("cell {cell}:{}:", 3 * n);
            let error = told.split("\nerror").find(|e| e.contains(&here));
            let types =
                error.is_some_and(|e| ["mismatched types", "the trait bound"].iter().any(|what| e.contains(what)));
            wrong.extend(error.filter(|_| !types).map(|e| format!("{call} => {code}\nerror{e}")));
            error.is_none()
        });
        assert!(pairs.len() < before, "{told}");
    }
    println!("{} calls, {asked} with advice, {} of which compile", all.len(), pairs.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(pairs.len() > 600, "{} of {asked}", pairs.len());
}

/// Python's expressions, drawn by chance: habits within habits.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }

    /// Something that is a tensor; of depth 0 a name.
    fn tensor(&mut self, depth: usize) -> String {
        let Some(less) = depth.checked_sub(1) else { return ["x", "y"][self.below(2)].to_owned() };
        match self.below(14) {
            0 => format!("F.relu({})", self.tensor(less)),
            1 => format!("torch.sqrt({})", self.tensor(less)),
            2 => format!("torch.mean({}, dim=0, keepdim=True)", self.tensor(less)),
            3 => format!("({} - {}) ** 2", self.tensor(less), self.tensor(0)),
            4 => format!("{} @ z", self.tensor(less)),
            5 => format!("{}[0]", self.tensor(0)),
            6 => format!("{}[:, 0]", self.tensor(0)),
            7 => format!("F.softmax({}, dim=-1)", self.tensor(less)),
            8 => format!("torch.stack([{} for i in range({})])", self.tensor(less), self.number(less)),
            9 => format!("torch.cat([{}, {}], dim=0)", self.tensor(less), self.tensor(less)),
            10 => format!("model({})", self.tensor(less)),
            11 => format!("torch.zeros({}, 3)", self.number(less)),
            12 => format!("F.mse_loss({}, {})", self.tensor(less), self.tensor(less)),
            _ => format!("torch.where({} > 0, {}, y)", self.tensor(0), self.tensor(less)),
        }
    }

    /// Something that is a whole number.
    fn number(&mut self, depth: usize) -> String {
        let Some(less) = depth.checked_sub(1) else { return ["2", "n"][self.below(2)].to_owned() };
        match self.below(5) {
            0 => format!("len({})", self.tensor(less)),
            1 => format!("{}.shape[0]", self.tensor(less)),
            2 => "len(v)".to_owned(),
            3 => format!("max({}, {})", self.number(less), self.number(0)),
            _ => format!("{}.size(0)", self.tensor(0)),
        }
    }

    /// All that is drawn: what Rust takes as it is is none.
    fn whole(&mut self) -> String {
        match self.below(8) {
            0 => format!("[{} for i in range({})]", self.tensor(1), self.number(1)),
            1 => format!("[{} * a for a, b in pairs if b > 0]", self.tensor(1)),
            2 => format!("{} if k else {}", self.tensor(1), self.tensor(0)),
            3 => format!("print(\"of\", {}, {})", self.tensor(1), self.number(1)),
            4 => format!("str({})", self.number(1)),
            5 => format!("print(f\"{{{}}} {{{}:>4}}\")", self.tensor(1), self.number(1)),
            _ => self.tensor(2),
        }
    }
}

/// What is advised of habits within habits is all of it: written in their place it compiles, or it is said that it does not.
#[test]
fn what_is_advised_of_habits_within_habits_compiles() {
    let number = |name: &str, or: u64| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(or);
    let (count, mut drawn) = (number("XLAZY_DRAWN", 24), Drawn(number("XLAZY_SEED", 7)));
    let engine = engine();
    let setup = "let (x, y, z) = (Tensor::ones([2, 3]), Tensor::ones([2, 3]), Tensor::ones([3, 2])); let model = nn::Linear::new(3, 3);
        let (n, k, v, pairs) = (2usize, true, vec![1.0, 2.0], vec![(1.0, 2.0), (3.0, 4.0)]);";
    assert_eq!(run(&engine, 1, setup).1, Reply::Ok);
    let (mut wrong, mut told) = (Vec::new(), Vec::new());
    for cell in 0..count {
        let python = drawn.whole();
        let within = |code: &str| format!("if false {{ let _ = {{\n{code}\n}}; }}");
        let Reply::Error(failure) = run(&engine, 2 + 2 * cell, &within(&python)).1 else { continue };
        let said = plain(&failure);
        let help = said.lines().filter_map(|line| line.split_once("help: in ").map(|(_, help)| help));
        let claims: Vec<&str> = help.filter(|help| !help.contains("rustc then says")).collect();
        told.extend((!claims.is_empty()).then(|| python.clone()));
        for code in claims.iter().filter_map(|help| help.split('`').nth(1)) {
            if let Reply::Error(failure) = run(&engine, 3 + 2 * cell, &within(code)).1 {
                wrong.push(format!("{python}\n    {code}\n{}", plain(&failure)));
            }
        }
    }
    println!("{count} drawn, {} told", told.len());
    assert!(wrong.is_empty(), "{} of {count}\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(told.len() as u64 * 4 > count * 3, "{} of {count}: {told:?}", told.len());
}
