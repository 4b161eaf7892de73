//! Why two programs that others wrote down differ. The texts in `dumps/` are what `dumps/model.py` makes with JAX.
use expect_test::{Expect, expect};
use std::path::Path;
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
    check("step", "batch", [expect![""], expect![""]]);
}

#[test]
fn another_dtype() {
    check("step", "dtype", [expect![""], expect![""]]);
}

#[test]
fn softmax_along_another_axis() {
    check("step", "axis", [expect![""], expect![""]]);
}

#[test]
fn a_layer_more() {
    check("step", "extra", [expect![""], expect![""]]);
}

#[test]
fn another_number_of_rounds() {
    check("loop", "loop_more", [expect![""], expect![""]]);
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
        ("".to_owned(), expect![""]),
        ("hello".to_owned(), expect![""]),
        ("HloModule m\n".to_owned(), expect![""]),
        (step[..step.len() / 2].to_owned(), expect![""]),
        (step.replace("%arg6, %arg1", "%arg6, %nothing"), expect![""]),
        (step.replace("call @relu", "call @gelu"), expect![""]),
        ("HloModule m\nENTRY e {\n  a = f32[2] add(b, b)\n}\n".to_owned(), expect![""]),
        ("HloModule m\nENTRY e {\n  f32[2] add(b, b)\n}\n".to_owned(), expect![""]),
        ("HloModule m\n%f (a: f32[]) -> f32[] {\n".to_owned(), expect![""]),
        ("func.func @f() {\n  call @f() : () -> ()\n}\n".to_owned(), expect![""]),
    ];
    for (text, expected) in cases {
        expected.assert_eq(&explain(&step, &text).err().unwrap_or_else(|| "nothing".into()));
    }
}

/// Texts with parts cut out, doubled, exchanged: they are refused or read, and nothing else happens.
#[test]
fn damaged_texts_harm_nobody() {
    let mut random = fastrand::Rng::with_seed(15);
    for name in ["loop.mlir", "loop.hlo", "extra.mlir", "extra.hlo"] {
        let whole = text(name);
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
