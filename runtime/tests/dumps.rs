//! Why two programs that others wrote down differ. The texts in `dumps/` are what `dumps/model.py` makes with JAX.
mod support;

use expect_test::{Expect, expect};
use std::path::Path;
use support::in_nobodys_words;
use xlazy::insight::{Dump, Explanation, explain_dumps};

fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dumps").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn explain(old: &str, new: &str) -> Result<Option<Explanation>, String> {
    explain_dumps(&Dump { name: "old", text: old }, &Dump { name: "new", text: new })
}

/// What is said of a text of both kinds, each cause with its line.
fn check(old: &str, new: &str, expected: [Expect; 2]) {
    for (kind, expected) in ["mlir", "hlo"].into_iter().zip(expected) {
        let [old, new] = [old, new].map(|name| text(&format!("{name}.{kind}")));
        let why = explain(&old, &new).expect("texts that can be read").expect("two programs");
        let one = |why: &Explanation| {
            let d = &why.differences[0];
            let more = why.differences.len() + why.hidden - 1;
            let at = format!("{}:{}", why.at.file(), why.at.line());
            format!("{} at {at}: {} was {}, is {}; {more} more\n", why.class.name(), d.what, d.was, d.now)
        };
        expected.assert_eq(&std::iter::once(&why).chain(&why.also).map(one).collect::<String>());
    }
}

#[test]
fn another_batch_size() {
    check(
        "step",
        "batch",
        [
            expect![[r#"
        shape at new:11: `x` was f32[4,8], is f32[6,8]; 1 more
    "#]],
            expect![[r#"
        shape at new:128: `x` was f32[4,8], is f32[6,8]; 1 more
    "#]],
        ],
    );
}

#[test]
fn another_dtype() {
    check(
        "step",
        "dtype",
        [
            expect![[r#"
        dtype at new:11: `x` was f32[4,8], is f16[4,8]; 0 more
    "#]],
            expect![[r#"
        dtype at new:128: `x` was f32[4,8], is f16[4,8]; 0 more
    "#]],
        ],
    );
}

#[test]
fn softmax_along_another_axis() {
    check(
        "step",
        "axis",
        [
            expect![[r#"
        index at model.py:21: attribute `dimensions` of reduce was [1], is [0]; 8 more
    "#]],
            expect![[r#"
        index at model.py:21: attribute `dimensions` of reduce was [1], is [0]; 10 more
    "#]],
        ],
    );
}

#[test]
fn a_layer_more() {
    check(
        "step",
        "extra",
        [
            expect![[r#"
        structure at model.py:20: op was none, is tanh → f32[4,16]; 6 more
    "#]],
            expect![[r#"
        structure at model.py:20: op was none, is tanh → f32[4,16]; 6 more
    "#]],
        ],
    );
}

#[test]
fn another_number_of_rounds() {
    check(
        "loop",
        "loop_more",
        [
            expect![[r#"
        constant at model.py:37: attribute `value` of constant was 3, is 5; 0 more
    "#]],
            expect![[r#"
        constant at model.py:37: attribute `value` of constant was 3, is 5; 0 more
    "#]],
        ],
    );
}

/// Whoever wrote these programs has other words for what is to be done.
#[test]
fn what_is_advised_is_in_nobodys_words() {
    let names = ["step", "batch", "dtype", "axis", "extra", "loop", "loop_more"];
    for kind in ["mlir", "hlo"] {
        let texts = names.map(|name| text(&format!("{name}.{kind}")));
        for (old, new) in texts.iter().flat_map(|a| texts.iter().map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let why = explain(old, new).expect("texts that can be read").expect("two programs");
            in_nobodys_words(&why);
            for why in std::iter::once(&why).chain(&why.also) {
                assert!(why.edits.is_empty(), "{}", why.fix);
            }
        }
    }
}

#[test]
fn equal_programs_differ_in_nothing() {
    for name in ["step.mlir", "step.hlo", "loop.mlir", "loop.hlo"] {
        assert!(explain(&text(name), &text(name)).expect("it can be read").is_none(), "{name}");
    }
}

#[test]
fn what_cannot_be_read_is_said_with_its_line() {
    let step = text("step.mlir");
    let cases = [
        ("".to_owned(), expect!["new is neither StableHLO text (`func.func`) nor HLO text (`HloModule`)"]),
        ("hello".to_owned(), expect!["new is neither StableHLO text (`func.func`) nor HLO text (`HloModule`)"]),
        ("HloModule m\n".to_owned(), expect!["new:1: it has no `ENTRY` computation"]),
        (step[..step.len() / 2].to_owned(), expect!["new:99: a region has no end"]),
        (step.replace("%arg6, %arg1", "%arg6, %nothing"), expect!["new:12: `%nothing` is not defined before"]),
        (step.replace("call @relu", "call @gelu"), expect!["new:16: `gelu`, which is called, is not there"]),
        ("HloModule m\nENTRY e {\n  a = f32[2] add(b, b)\n}\n".to_owned(), expect!["new:3: `b` is not defined before"]),
        (
            "HloModule m\nENTRY e {\n  f32[2] add(b, b)\n}\n".to_owned(),
            expect!["new:3: an instruction is expected: `name = type opcode(operands)`"],
        ),
        ("HloModule m\n%f (a: f32[]) -> f32[] {\n".to_owned(), expect!["new:2: the computation `f` has no end"]),
        ("func.func @f() {\n  call @f() : () -> ()\n}\n".to_owned(), expect!["new:1: calls go too deep"]),
    ];
    for (text, expected) in cases {
        expected.assert_eq(&explain(&step, &text).err().unwrap_or_else(|| "nothing".into()));
    }
}

/// Texts with parts cut out, doubled, exchanged: they are refused or read, and nothing else happens.
#[test]
fn damaged_texts_harm_nobody() {
    let mut random = fastrand::Rng::with_seed(15);
    for name in ["loop.mlir", "loop.hlo", "extra.mlir", "extra.hlo", "runs/torch_xla/s07.text"] {
        let whole = text(name);
        // Of torch_xla's files one graph.
        let whole = whole.split("## ").find_map(|part| part.strip_prefix("BEGIN_GRAPH\n")).unwrap_or(&whole).to_owned();
        let lines: Vec<&str> = whole.lines().collect();
        for _ in 0..150 {
            let mut damaged: Vec<String> = lines.iter().map(|l| l.to_string()).collect();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..damaged.len());
                match random.u8(..6) {
                    0 => drop(damaged.remove(at)),
                    1 => damaged.insert(at, lines[random.usize(..lines.len())].to_owned()),
                    2 => damaged.truncate(at + 1),
                    3 => {
                        let other = random.usize(..damaged.len());
                        damaged.swap(at, other);
                    }
                    _ => {
                        let mut letters: Vec<char> = damaged[at].chars().collect();
                        let place = random.usize(..letters.len() + 1);
                        let sign = *random.choice(b"(){}[]<>%#@^\",:=-x0 ").expect("some") as char;
                        if random.bool() || place == letters.len() {
                            letters.insert(place, sign);
                        } else {
                            letters[place] = sign;
                        }
                        damaged[at] = letters.into_iter().collect();
                    }
                }
            }
            let _ = explain(&whole, &damaged.join("\n"));
        }
    }
}

/// Texts of a few lines that mention themselves again and again are read or refused as soon as any other.
#[test]
fn what_mentions_itself_has_an_end() {
    let step = text("step.mlir");
    let chain = |of: &dyn Fn(usize) -> String| (0..60).map(of).collect::<Vec<String>>().join("\n");
    let located = |locations: String| {
        let op = "%0 = stablehlo.sine %a : tensor<f32> loc(#loc0)";
        format!(
            "func.func @main(%a: tensor<f32>) -> tensor<f32> {{\n  {op}\n  return %0 : tensor<f32>\n}}\n{locations}\n"
        )
    };
    let called = chain(&|n| {
        let call = format!("  func.call @f{}() : () -> ()\n", n + 1);
        format!("func.func @f{n}() {{\n{call}{call}}}")
    });
    let fused = |n: usize, m: usize| format!("#loc{n} = loc(fused[#loc{m}, #loc{m}, #loc{n}])");
    let callsite = |n: usize, m: usize| format!("#loc{n} = loc(callsite(#loc{m} at #loc{m}))");
    let hlo = chain(&|n| {
        let call = |k| format!("  c{k} = f32[] call(), to_apply=f{}\n", n + 1);
        format!("f{n} {{\n{}{}}}", call(1), call(2))
    });
    let texts = [
        format!("{called}\nfunc.func @f60() {{\n}}\n"),
        format!("HloModule m\n{hlo}\nf60 {{\n}}\nENTRY e {{\n  a = f32[] call(), to_apply=f0\n}}\n"),
        // Frames that called one another, of which no line is known.
        "HloModule m\n\nStackFrames\n1 {file_location_id=9 parent_frame_id=3}\n2 {file_location_id=9 parent_frame_id=2}\n\nENTRY e {\n  \
         a = f32[] parameter(0)\n  ROOT s = f32[] sine(a), metadata={op_name=\"s\" stack_frame_id=1}\n}\n"
            .into(),
        located(chain(&|n| fused(n, n + 1))),
        located(chain(&|n| callsite(n, n + 1))),
        located(chain(&|n| fused(n, (n + 7) % 60))),
        located("#loc0 = loc(fused[#loc0, #loc0])".into()),
        located("#loc0 = loc(callsite(#loc0 at #loc0))".into()),
        located("#loc0 = loc(\"x\"(fused[#loc0, #loc0]))".into()),
        chain(&|n| if n == 0 { "func.func @main() {".into() } else { format!("  %{n}:8000 = \"a.b\"() : () -> ()") })
            + "\n}\n",
    ];
    for text in texts {
        let said = explain(&step, &text);
        let refused = said.as_ref().is_err_and(|why| why.ends_with("operations with all that is called"));
        assert!(refused || said.as_ref().is_ok_and(Option::is_some), "{said:?}: {text}");
        assert_eq!(explain(&text, &step).is_ok(), said.is_ok());
    }
}
