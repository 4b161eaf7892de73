//! docs/ops.md is what the doc comments, the table of ops and PyTorch's cases say. `XLAZY_BLESS=1` writes it anew.
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// One torch name.
#[derive(Default)]
struct Row {
    calls: BTreeSet<String>,
    /// What the doc comment says that a call gives.
    example: Option<String>,
    cases: usize,
    gradients: usize,
}

/// `torch.Tensor.add`, `torch.special.i0` as torch's cases name them.
fn torch_names(doc: &str) -> impl Iterator<Item = &str> {
    let path = |(at, _): (usize, &str)| {
        let rest = &doc[at + "torch.".len()..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.')).unwrap_or(rest.len());
        let name = rest[..end].trim_end_matches('.');
        let private = name.starts_with('_') && !name.starts_with("__");
        (!name.is_empty() && !private && doc[..at].chars().last().is_none_or(|c| !c.is_alphanumeric() && c != '_'))
            .then_some(name)
    };
    doc.match_indices("torch.").filter_map(path).map(|name| name.strip_prefix("Tensor.").unwrap_or(name))
}

/// What the item of a line is called as: `Tensor::add`, `cat`, `nn::Linear`. What is indented is a method, or made one by a macro.
fn called(line: &str, room: &str, of: &str) -> Option<String> {
    let plain = line.trim_start();
    let words = ["pub ", "fn ", "struct ", "trait ", "enum ", "const "];
    let plain = words.iter().fold(plain, |l, word| l.strip_prefix(word).unwrap_or(l));
    let end = plain.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    let (name, indented) = (&plain[..end], line.starts_with(' '));
    let is_type = name.starts_with(char::is_uppercase);
    match room {
        "ops" if is_type || plain.starts_with("pub(") || plain.starts_with(&format!("{name}!")) => None,
        "ops" if indented => Some(format!("{of}::{name}")),
        "ops" => Some(name.to_owned()),
        _ if is_type || !indented => Some(format!("{room}::{name}")),
        _ => None,
    }
}

/// The items of a file whose doc comments name something of torch's.
fn read(file: &Path, room: &str, rows: &mut BTreeMap<String, Row>) {
    let text = fs::read_to_string(file).unwrap();
    // Some files are modules of their own.
    let room = match (room, file.file_stem().and_then(|s| s.to_str())) {
        ("nn", Some("functional")) => "nn::functional",
        ("nn", Some("init")) => "nn::init",
        ("nn", Some("parallel" | "spread")) => "nn::parallel",
        _ => room,
    };
    let (mut doc, mut of) = (String::new(), "Tensor");
    for line in text.lines() {
        let plain = line.trim_start();
        if let Some(more) = plain.strip_prefix("///") {
            doc.push_str(more);
            doc.push('\n');
        } else if !plain.starts_with('#') && !doc.is_empty() {
            // The first sentence says what it is; examples and remarks may name others.
            let first = doc.split("```").next().unwrap_or_default();
            if let Some(call) = called(line, room, of) {
                let example = doc.lines().map(str::trim).find(|l| l.starts_with('`') && l.contains("` is `"));
                for name in torch_names(first) {
                    let row = rows.entry(name.to_owned()).or_default();
                    row.calls.insert(call.clone());
                    // A name that several words have is shown by the one that is called so.
                    if row.example.is_none() || call.ends_with(&format!("::{name}")) {
                        row.example = example.map(|e| e.trim_end_matches('.').to_owned()).or(row.example.take());
                    }
                }
            }
            doc.clear();
        }
        if let Some(block) = line.strip_prefix("impl ").and_then(|l| l.strip_suffix(" {")) {
            of = block.rsplit(' ').next().unwrap_or(block);
        } else if line.ends_with("! {") {
            of = "Tensor";
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false if path.extension().is_some_and(|e| e == "rs") => all.push(path),
            false => {}
        }
    }
    all.sort();
    all
}

/// Names that differ from the method's: `nn.functional.relu` is `relu`'s, `linalg.det` is `det`'s where nothing says more.
fn same(row: &str, name: &str) -> bool {
    row == name || row.rsplit('.').next() == name.rsplit('.').next()
}

fn page() -> String {
    let (root, mut rows) = (root(), BTreeMap::new());
    for room in ["ops", "nn", "optim"] {
        files(&root.join("runtime/src").join(room)).iter().for_each(|f| read(f, room, &mut rows));
    }
    for file in
        ["tensor/autocast.rs", "tensor/gradient.rs", "tensor/mod.rs", "tensor/views.rs", "grad.rs", "grad/asked.rs"]
    {
        read(&root.join("runtime/src").join(file), "ops", &mut rows);
    }
    let calls: Vec<(String, BTreeSet<String>)> = rows.iter().map(|(n, r)| (n.clone(), r.calls.clone())).collect();
    let cases = fs::read_to_string(root.join("tests/conformance/cases.jsonl")).unwrap();
    let mut total = 0;
    for case in cases.lines() {
        let case: Value = serde_json::from_str(case).unwrap();
        let name = case["op"].as_str().unwrap();
        let row = rows.entry(name.to_owned()).or_default();
        if name.starts_with("__r") {
            row.calls.insert("an operator with a number on its left".into());
        } else if row.calls.is_empty() {
            let alike = calls.iter().filter(|(other, _)| same(other, name)).flat_map(|(_, calls)| calls.clone());
            row.calls.extend(alike);
        }
        row.cases += 1;
        row.gradients += usize::from(!case["grads"].is_null());
        total += 1;
    }
    let main = fs::read_to_string(root.join("runtime/tests/conformance/main.rs")).unwrap();
    let passed = main.split("PASSED").nth(1).and_then(|l| Some(l.split_once("= [")?.1.split_once(']')?.0)).unwrap();
    let passed: usize = passed.split(',').map(|n| n.trim().parse::<usize>().unwrap()).sum();
    let flows: HashMap<&str, bool> = xlazy::ops().into_iter().map(|op| (op.name, op.differentiable)).collect();
    let mut out = format!(
        "# Ops\n\nWhat there is of PyTorch, by torch's names without `torch.` and `Tensor.`. Written by \
         `XLAZY_BLESS=1 cargo nextest run -p xlazy --test ops_page` from the doc comments of the methods, the table of ops and \
         PyTorch's own test cases (`tests/conformance`); the same test fails where this page is not current.\n\n\
         Of {total} cases {passed} run and pass, in CI; the others draw random numbers or count in a storage that the case does not \
         hold. *Gradient*: in how many of the cases it is compared, or what the table says of an op without cases; a name \
         without either is made of others, through which gradients flow as they do.\n\n{MEANING}\n\n## By name\n\n\
         | torch | xlazy | gradient | cases | example |\n|---|---|---|---|---|\n"
    );
    for (name, row) in &rows {
        let code = |call: &String| if call.contains(' ') { call.clone() } else { format!("`{call}`") };
        let calls: Vec<String> = row.calls.iter().map(code).collect();
        let gradient = match (row.gradients, row.cases, flows.get(name.as_str())) {
            (0, 0, Some(true)) => "yes".to_owned(),
            (0, _, Some(false)) => "none".to_owned(),
            (0, ..) => String::new(),
            (n, ..) => n.to_string(),
        };
        let cases = if row.cases == 0 { String::new() } else { row.cases.to_string() };
        let example = row.example.as_deref().unwrap_or_default().replace('|', "\\|");
        let _ = writeln!(out, "| `{name}` | {} | {gradient} | {cases} | {example} |", calls.join(", "));
    }
    out.push_str("\n## Ops of the table\n\nWhat graphs, programs and explanations name. Attributes are fixed when a program is compiled; all else is data.\n\n| op | attributes | gradient |\n|---|---|---|\n");
    let mut ops = xlazy::ops();
    ops.sort_by_key(|op| op.name);
    for op in ops {
        let attributes: Vec<String> = op.attributes.iter().map(|a| format!("`{a}`")).collect();
        let gradient = if op.differentiable { "yes" } else { "none" };
        let _ = writeln!(out, "| `{}` | {} | {gradient} |", op.name, attributes.join(", "));
    }
    out
}

/// What a list of names does not say.
const MEANING: &str = "\
## Where the meaning is not torch's

- A view that shows all of a tensor in its shape and order (`x.reshape(x.shape())`, `x.squeeze()` of what has no dimension of size 1) is that
  tensor. It matters where one takes another shape in place (`t_`, `unsqueeze_`): the other does so, too.
- Every write to an expanded view is refused; torch lets some pass that it calls deprecated (`index_fill_`, `masked_fill_`).
- Where torch's own formula of a gradient is NaN at an infinite operand and the limit is a number (`prod`, `hypot` at 0, `logaddexp` of equal
  infinities), it is the number. Complex logarithms that are added up (`logcumsumexp`) are torch's but for whole turns.
- Floats beyond int32 and int64 become the least or the largest integer, as XLA and GPUs have it; within it narrow integers wrap around.
- Bodies of `scan`, `map`, `while_loop`, `fori_loop`, `cond` and `switch` are recorded once. They take tensors and numbers from outside as
  parameters; they can neither read values nor write to tensors from outside nor call `backward()` on them, and are refused at the line.
  Random ops draw anew in each round. A carried tensor keeps its dtype and shape. Bucketed dimensions are refused.
- No gradient flows back through `while_loop`, nor through `fori_loop` whose bounds are tensors: `backward()` says so. `fori_loop` with
  numbers as bounds is a program for each number of rounds where a gradient is recorded, and one for all otherwise.
- uint16, uint32 and uint64 are promoted with floats and with themselves only, in arithmetic and comparisons, as in torch; of ops they
  have all that integers have, of which torch's CPU has few.
- Some ops take what torch refuses, where there is one meaning: an index tensor's values to write may be of a narrower dtype, `isclose` and
  `allclose` promote, and halves have their FFTs and `trace`. Complex `sigmoid` far left of 0 is 0, where torch's is NaN.
- A singular matrix gives infinity or NaN in `inv` and `solve`, and one that is not positive definite NaN in `cholesky`, as on TPUs and
  GPUs without a check; torch ends there.
- There is no `vmap`: `map` runs a function for each element along the first dimension as one loop, with gradients, and most ops take
  dimensions in front.
- Of torch's in-place methods there are not: `apply_`, `map_`, `map2_` (a Python function for each element), `rename_` (names of
  dimensions), `share_memory_`, and those of sparse tensors. `resize_` gives no more elements than there are.
- Positions, classes, probabilities and integer divisors are checked (`XLAZY_CHECK_INDICES=off` turns that off): those that the host knows where they are used,
  computed ones by a result more of the program, told at the op's line when a value is read or all is synced.";

#[test]
fn the_page_of_ops_is_current() {
    let (path, page) = (root().join("docs/ops.md"), page());
    if std::env::var_os("XLAZY_BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    let differs = page.lines().zip(there.lines().chain(std::iter::repeat(""))).find(|(now, was)| now != was);
    assert!(page == there, "docs/ops.md is not current, from {differs:?} on: XLAZY_BLESS=1 writes it anew");
}

#[test]
fn every_torch_name_of_the_cases_has_a_call() {
    let page = page();
    let by_name = page.split("## By name").nth(1).and_then(|rest| rest.split("## Ops of").next()).unwrap();
    let without: Vec<&str> =
        by_name.lines().filter(|l| l.split('|').nth(2).is_some_and(|call| call.trim().is_empty())).collect();
    assert!(by_name.lines().count() > 500 && without.is_empty(), "no doc comment names these as torch's: {without:#?}");
}
