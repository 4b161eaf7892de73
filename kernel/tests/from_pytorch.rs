//! The page for people who know PyTorch: what each row says is to be written compiles, and what torch would have written either
//! compiles, too, or fails with the other side of its row.
mod eval_support;

use eval_support::{engine, plain, run};
use xlazy_kernel::engine::{Failure, Reply};

/// What the rows' letters are.
const SETUP: &str = "
let (x, y, t, i) = (Tensor::ones([2, 3]), Tensor::ones([2, 3]), tensor([0, 1]), tensor([[0, 1, 0]]));
let (m, k, n) = (x.gt(0.5), true, 2usize);
let (a, b, model) = (nn::Linear::new(3, 3), nn::Linear::new(3, 3), nn::Linear::new(3, 3));
let (p, s) = (model.parameters(), model.state_dict());
let mut opt = optim::SGD::new(model.parameters(), 0.1);
let d = data::TensorDataset::new([&x]);
let (v, w) = (vec![1, 2], vec![3, 4]);
";
const ARGUMENTS: &str = "x: Tensor, y: Tensor, t: Tensor, i: Tensor, m: Tensor, k: bool, a: nn::Linear, b: nn::Linear, model: nn::Linear, \
    p: Vec<Tensor>, s: Vec<(String, Tensor)>, mut opt: optim::SGD, d: data::TensorDataset<1>, v: Vec<i32>, w: Vec<i32>";

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
