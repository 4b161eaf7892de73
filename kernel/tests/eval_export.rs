//! A notebook as a program gives what its cells gave.
mod eval_support;

use eval_support::{engine, run};
use std::path::PathBuf;
use std::process::Command;
use xlazy_kernel::engine::Reply;
use xlazy_kernel::eval::export::{Program, program};
use xlazy_kernel::eval::install::Installation;

const CELLS: &[&str] = &[
    "use std::collections::HashMap;\nfn f(x: i32) -> i32 { x + 1 }\n#[derive(Debug, Clone, PartialEq)]\nstruct P { x: i32 }",
    "let mut p = P { x: f(1) };\np.x",
    "%quiet off\nfn g() -> i32 { f(10) }\ng()",
    "fn f(x: i32) -> i32 { x + 2 }\n(f(1), g())",
    "let m: HashMap<&str, i32> = [(\"a\", 1)].into();\nprintln!(\"{}\", m[\"a\"]);\np.x += 5;",
    "async fn later() -> i32 { 4 }\nlater().await + p.x",
    "let p = vec![p];\nfor (i, q) in p.iter().enumerate() {\n    println!(\"{i} {q:?}\");\n}",
    "let n: i32 = \"12\".parse()?;\nn",
    "impl P { fn twice(&self) -> i32 { self.x * 2 } }\np.iter().map(P::twice).sum::<i32>()",
    "let s = String::from(\"kept\");\nlet mut count = 0usize;",
    "let t = s;",
    "let u = (s, t.len()); count += 1;",
    "let both = vec![u.1, count]; let say = move || format!(\"{s}{count}\"); let n2 = n + count as i32;",
    "println!(\"{s} {} {}\", u.0, say()); let s = s + \"!\"; format!(\"{}{}\", s, later().await)",
    "s.len() + count + both.len()",
    "mod k { pub fn a() -> i32 { 1 } }\nfn k() -> i32 { k::a() + 1 }\nk()",
    "mod deep { pub fn f() -> i32 { super::side() + crate::side() } }\nfn side() -> i32 { 4 }\ndeep::f()",
    "let mut grown = vec![1];",
    "grown.push(2); grown",
    "if grown.len() == 2 { return; }\nprintln!(\"never\");",
    "println!(\"goes on\");\nOk(())",
    "struct Bare { n: i32 }\nlet bare = Bare { n: 1 };",
    "let mut bare = bare; bare.n += 1; bare.n",
    "bare.n",
    "macro_rules! seven { () => { 7 } }\nif n > 3 { seven!() } else { 0 }",
    "struct Noisy; impl Drop for Noisy { fn drop(&mut self) { println!(\"dropped\") } }\nlet noisy = Noisy;",
    "macro_rules! point { ($n:ident) => { use std::collections::BTreeMap; struct $n { x: i32 } impl $n { fn x(&self) -> i32 { self.x } } } }\npoint!(Point);",
    "macro_rules! pair { ($a:ident, $b:ident = $e:expr) => { let ($a, $b) = $e; } }\npair!(left, right = (Point { x: 1 }, 2));",
    "left.x() + right + BTreeMap::<i32, i32>::new().len() as i32",
];

#[test]
fn an_exported_notebook_prints_what_its_cells_showed() {
    let (wanted, program) = exported(CELLS);
    assert_eq!(program.left_out, [(3, "%quiet off".to_owned())]);
    assert_eq!(output("exported", &program.main), wanted.replace("not quiet\n", ""));
}

#[test]
fn it_runs_where_its_notebook_says() {
    let cells = [
        "// Eight are more than this machine has.\n%device CPU 8",
        "xlazy::devices().len()",
        "%device\nTensor::ones([2]).to(\"cpu:7\").device()",
    ];
    let (wanted, program) = exported(&cells);
    assert!(program.left_out.is_empty() && wanted.contains("which counts as 8 devices\n8\n"), "{wanted}");
    assert_eq!(output("exported-device", &program.main), wanted);
}

/// What cells show, and the program that they become.
fn exported(codes: &[&str]) -> (String, Program) {
    let engine = engine();
    let mut wanted = String::new();
    let mut cells = Vec::new();
    for (i, code) in codes.iter().enumerate() {
        let (out, reply) = run(&engine, i as u64 + 1, code);
        assert_eq!(reply, Reply::Ok, "{code}");
        wanted += &out.replace("=> ", "").replace("[display] ", "");
        cells.push((i as u64 + 1, (*code).to_owned()));
    }
    (wanted, program(&cells).unwrap_or_else(|f| panic!("{}", f.message)))
}

/// What a program prints.
fn output(name: &str, main: &str) -> String {
    let install = Installation::find().unwrap_or_else(|f| panic!("{}", f.message));
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, exe) = (dir.join(format!("{name}.rs")), dir.join(name));
    std::fs::write(&source, main).expect("a source file");
    let built = Command::new(&install.toolchain.rustc)
        .args(["--edition=2024", "-Cprefer-dynamic", "-o"])
        .arg(&exe)
        .arg(format!("--extern=xlazy={}", install.runtime_so.display()))
        .arg(format!("-Ldependency={}", install.deps_dir.display()))
        .arg(&source)
        .status();
    assert!(built.is_ok_and(|s| s.success()), "{main}");
    let mut command = Command::new(exe);
    command.env("LD_LIBRARY_PATH", install.library_path()).envs(install.plugins());
    String::from_utf8_lossy(&command.output().expect("it runs").stdout).into_owned()
}
