//! What is Rust of code that was Python, and its lists of numbers, where whole numbers stand beside others and complex ones beside both.
use super::words::{Words, inside};
use crate::eval::text::scan::Kind;
use syn::visit::Visit;

/// Code in one line, with numbers of lists as Rust takes them: those of one list are of one type, and a complex tensor is made of two.
pub(super) fn rusty(code: String) -> String {
    let code = in_one_line(code);
    let code = complex_tensors(&code).unwrap_or(code);
    of_one_type(ranges_count(powers(infinite(code))))
}

/// Less than nothing without end, where Python has a sign in front: `-float("inf")`.
fn infinite(code: String) -> String {
    const SIGNED: &str = "-f64::INFINITY";
    let is_sign = |at: &usize| {
        let before = code[..*at].trim_end();
        before.is_empty() || before.ends_with(['(', ',', '[', '=', '{', ';', '|'])
    };
    match code.match_indices(SIGNED).map(|(at, _)| at).find(is_sign) {
        Some(at) => infinite(format!("{}f64::NEG_INFINITY{}", &code[..at], &code[at + SIGNED.len()..])),
        None => code,
    }
}

/// A closure whose parameters are of the types that who calls it says.
pub(super) fn closure_that_is_given(code: String) -> String {
    match code.strip_prefix('|').and_then(|rest| rest.split_once('|')) {
        Some((parameters, body)) => format!("|{}|{body}", parameters.replace(": &Tensor", "")),
        None => code,
    }
}

/// Python's powers of a number that stands there, `0.95 ** e`: of a float any number is the exponent.
pub(super) fn powers(code: String) -> String {
    let words = Words::of(&code);
    let next =
        |i: usize, word: &str| words.word(i) == word && words.tokens[i - 1].range.end == words.tokens[i].range.start;
    let power = |i: usize| {
        let base = words.word(i);
        let plain = words.kind(i) == Some(Kind::Number)
            && base.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | '-' | '_'));
        let end = words.operand(i + 3).filter(|_| plain && words.word(i + 1) == "*" && next(i + 2, "*"))?;
        let (to, place) = words.part(i + 3, end)?;
        let number = to.trim_start_matches('-');
        let (literal, negative) = (number.starts_with(|c: char| c.is_ascii_digit()), to.starts_with('-'));
        let point = if base.ends_with('.') { "0" } else { "" };
        let new = match (is_whole(base), literal && is_whole(number)) {
            (true, true) if !negative => format!("{base}_i64.pow({to})"),
            (true, false) if !literal && !negative => format!("{base}_i64.pow({to} as u32)"),
            (_, true) => format!("{base}{point}_f64.powi({to})"),
            (_, false) if literal => format!("{base}{point}_f64.powf({to})"),
            (_, false) => format!("{base}{point}_f64.powf({to} as f64)"),
        };
        Some((words.tokens[i].range.start..place.end, new))
    };
    match (0..words.len()).find_map(power) {
        Some((at, new)) => powers(format!("{}{new}{}", &code[..at.start], &code[at.end..])),
        None => code,
    }
}

/// A range gives its numbers without `.iter()`, and each of them without a step of one.
fn ranges_count(code: String) -> String {
    let code = code.replace(").step_by(1)", ")").replace("(0 + 1..", "(1..");
    let words = Words::of(&code);
    let is_range = |open: usize, close: usize| {
        (open + 1..close).any(|i| words.word(i) == "." && words.word(i + 1) == "." && words.within(open + 1, i))
    };
    let is_called = |open: usize| {
        let before = open.checked_sub(1);
        before.is_some_and(|i| matches!(words.kind(i), Some(Kind::Ident | Kind::Close(_))) && words.word(i) != "in")
    };
    let idle = (0..words.len()).filter(|open| !is_called(*open)).find_map(|open| {
        let mut end = words.behind_brackets(open).filter(|&end| words.word(open) == "(" && is_range(open, end - 1))?;
        while words.word(end) == "." && matches!(words.word(end + 1), "rev" | "step_by") {
            end = words.behind_brackets(end + 2)?;
        }
        (words.word(end) == "." && words.word(end + 1) == "iter").then(|| words.arguments(end + 1)).flatten()?;
        Some(words.tokens[end].range.start..words.tokens[end + 3].range.end)
    });
    match idle {
        Some(idle) => ranges_count(code[..idle.start].to_owned() + &code[idle.end..]),
        None => code,
    }
}

/// Where a list has a number with a point, all of its numbers have one.
fn of_one_type(code: String) -> String {
    let words = Words::of(&code);
    let mut points: Vec<usize> = Vec::new();
    let mut i = 0;
    while i < words.len() {
        let end = match words.word(i) {
            "[" => words.behind_brackets(i),
            _ => None,
        };
        let Some(end) = end else {
            i += 1;
            continue;
        };
        if (i..end).any(|at| is_float(&words, at)) {
            let whole = (i..end).filter(|at| is_element(&words, *at) && is_whole(words.word(*at)));
            points.extend(whole.map(|at| words.tokens[at].range.end));
        }
        i = end;
    }
    let mut out = code.clone();
    points.iter().rev().for_each(|at| out.insert_str(*at, ".0"));
    out
}

pub(super) fn is_whole(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_digit() || c == '_')
}

/// Whether code may give a number without a point: no float stands in it, and no tensor is read.
pub(super) fn may_be_whole(code: &str) -> bool {
    let words = Words::of(code);
    let float = |i: usize| words.kind(i) == Some(Kind::Number) && words.word(i).contains('.');
    !(0..words.len()).any(|i| float(i) || matches!(words.word(i), "f64" | "f32" | "item"))
}

fn is_float(words: &Words, at: usize) -> bool {
    let word = words.word(at);
    match words.kind(at) {
        Some(Kind::Number) => !word.starts_with("0x") && word.contains(['.', 'e', 'E']),
        Some(Kind::Ident) => word == "f64",
        _ => false,
    }
}

/// Whether a number is all that stands between two commas or brackets, but for its sign.
fn is_element(words: &Words, at: usize) -> bool {
    let mut before = at;
    while before > 0 && matches!(words.word(before - 1), "-" | "+") {
        before -= 1;
    }
    words.kind(at) == Some(Kind::Number)
        && before.checked_sub(1).is_none_or(|i| matches!(words.word(i), "[" | ","))
        && matches!(words.word(at + 1), "]" | "," | "")
}

/// `tensor(LIST)` of complex numbers, as a tensor of their real parts and one of their imaginary parts.
fn complex_tensors(code: &str) -> Option<String> {
    let words = Words::of(code);
    (0..words.len()).find_map(|i| {
        let given = words.arguments(i).filter(|_| words.word(i) == "tensor")?;
        let [re, im] = complex(&words.part(given.start, given.end)?.0)?;
        let (from, to) = (words.tokens[i].range.start, words.tokens[given.end].range.end);
        let rest = complex_tensors(&code[to..]).unwrap_or_else(|| code[to..].to_owned());
        Some(format!("{}tensor({re}).complex(&tensor({im})){rest}", &code[..from]))
    })
}

/// A list with Python's complex numbers, as its real parts and its imaginary ones: `[1, 1 + 2j]` is `[1.0, 1.0]` and `[0.0, 2.0]`.
fn complex(list: &str) -> Option<[String; 2]> {
    let has = |w: &Words| (0..w.len()).any(|i| w.kind(i) == Some(Kind::Number) && w.word(i).ends_with('j'));
    has(&Words::of(list)).then(|| parts(list))?
}

fn parts(of: &str) -> Option<[String; 2]> {
    let of = of.trim();
    if of.starts_with('[') {
        let all = inside(of);
        let words = Words::of(all);
        let mut out = [Vec::new(), Vec::new()];
        for range in words.between_commas(0, words.len()) {
            let part = parts(&words.part(range.start, range.end)?.0)?;
            out.iter_mut().zip(part).for_each(|(out, part)| out.push(part));
        }
        return Some(out.map(|all| format!("[{}]", all.join(", "))));
    }
    // `1 + 2j`: each number with the sign in front of it.
    let words = Words::of(of);
    let (mut out, mut i) = ([0.0f64; 2], 0);
    while i < words.len() {
        let sign = match words.word(i) {
            "-" => -1.0,
            "+" => 1.0,
            _ if i == 0 => 1.0,
            _ => return None,
        };
        i += usize::from(matches!(words.word(i), "-" | "+"));
        let number = words.word(i);
        let value: f64 = number.trim_end_matches('j').parse().ok()?;
        out[usize::from(number.ends_with('j'))] += sign * value;
        i += 1;
    }
    Some(out.map(|v| format!("{v:?}")))
}

/// Whether code is Rust, and nothing in it is Python's `name=value`, which Rust reads as an assignment.
pub(super) fn is_rust(code: &str) -> bool {
    struct Named(bool);
    impl<'ast> Visit<'ast> for Named {
        fn visit_expr_assign(&mut self, _: &'ast syn::ExprAssign) {
            self.0 = true;
        }
        // Statements assign.
        fn visit_block(&mut self, _: &'ast syn::Block) {}
    }
    syn::parse_str::<syn::Block>(&format!("{{ {code} }}")).is_ok_and(|block| {
        let mut named = Named(false);
        for statement in &block.stmts {
            match statement {
                syn::Stmt::Expr(syn::Expr::Assign(assign), _) => named.visit_expr(&assign.right),
                other => named.visit_stmt(other),
            }
        }
        !named.0
    })
}

/// Code that somebody wrote over several lines.
pub(super) fn in_one_line(code: String) -> String {
    if code.contains('\n') { code.lines().map(str::trim).collect::<Vec<_>>().join(" ") } else { code }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_numbers_of_one_type() {
        let one = |code: &str| of_one_type(code.to_owned());
        assert_eq!(one("tensor([-3., -2, -1, 1_0])"), "tensor([-3., -2.0, -1.0, 1_0.0])");
        assert_eq!(
            one("tensor([[0, 1.5], [2, 3]]).reshape([2, 2])"),
            "tensor([[0.0, 1.5], [2.0, 3.0]]).reshape([2, 2])"
        );
        assert_eq!(one("tensor([0, f64::NAN, f(2), -1e3])"), "tensor([0.0, f64::NAN, f(2), -1e3])");
        assert_eq!(one("x.i((0, [1, 2]))"), "x.i((0, [1, 2]))");
        assert_eq!(one("tensor([1, 2]"), "tensor([1, 2]");
    }

    #[test]
    fn powers_of_numbers_are_methods() {
        for (python, rust) in [
            ("|e| 0.95 ** e", "|e| 0.95_f64.powf(e as f64)"),
            ("1. ** 2 + 10 ** -3", "1.0_f64.powi(2) + 10_f64.powi(-3)"),
            ("2 ** k * 2 ** 3", "2_i64.pow(k as u32) * 2_i64.pow(3)"),
            ("2.0 ** 0.5", "2.0_f64.powf(0.5)"),
            ("2.0 * *x", "2.0 * *x"),
            ("x.set(m, -f64::INFINITY)", "x.set(m, f64::NEG_INFINITY)"),
            ("x -f64::INFINITY", "x -f64::INFINITY"),
            ("x ** 2", "x ** 2"),
        ] {
            assert_eq!(rusty(python.to_owned()), rust);
        }
    }

    #[test]
    fn ranges_are_iterators() {
        let counted = |code: &str| ranges_count(code.to_owned());
        assert_eq!(counted("(0..10).iter().map(|i| (i..n).iter().sum())"), "(0..10).map(|i| (i..n).sum())");
        assert_eq!(counted("for i in (0..3).iter() {}"), "for i in (0..3) {}");
        for same in ["x.i(1..3).iter()", "v.iter().zip(&w)", "(a, f(0..2)).iter()", "(0..10"] {
            assert_eq!(counted(same), same);
        }
    }

    #[test]
    fn complex_numbers_are_two_lists() {
        let two = |list: &str| complex(list).map(|[re, im]| format!("{re} {im}"));
        assert_eq!(two("[1, 1+1j, 2 - 0.5j, -3j]").as_deref(), Some("[1.0, 1.0, 2.0, 0.0] [0.0, 1.0, -0.5, -3.0]"));
        assert_eq!(two("[[1j], [2]]").as_deref(), Some("[[0.0], [2.0]] [[1.0], [0.0]]"));
        assert_eq!(two("[1, 2]"), None);
        assert_eq!(two("[f(1j)]"), None);
        assert_eq!(
            rusty("tensor([1j, 2]).conj() + tensor(3j)".to_owned()),
            "tensor([0.0, 2.0]).complex(&tensor([1.0, 0.0])).conj() + tensor(0.0).complex(&tensor(3.0))"
        );
    }
}
