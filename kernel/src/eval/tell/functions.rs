//! Python's own functions, modules and methods, and what is written for them in Rust.
use super::instead::{ANSWER, IN_RUST};
use super::python::printed;
use super::words::{Words, own_name, receiver};

/// Python's own functions: what is written for them, by how many arguments they are given, where `a` and `b` stand for these, and
/// `x` for the first as what something is called of.
const FUNCTIONS: &[(&str, usize, &str)] = &[
    ("int", 1, "`{x} as i64` of a number, `{x}.parse::<i64>()` of a text"),
    ("float", 1, "`{x} as f64` of a number, `{x}.parse::<f64>()` of a text"),
    ("bool", 1, "`{x} != 0` of a number, `!{x}.is_empty()` of a list or a text"),
    ("str", 1, "`{x}.to_string()`"),
    ("repr", 1, "`format!(\"{:?}\", {a})`"),
    ("abs", 1, "`{x}.abs()`"),
    ("round", 1, "`{x}.round()`"),
    ("round", 2, "`format!(\"{:.{b}}\", {a})` as a text, `({x} * 1e{b}).round() / 1e{b}` as a number"),
    ("pow", 2, "`{x}.pow({b})` of a whole number, `{x}.powi({b})` of another one"),
    ("divmod", 2, "`({x} / {b}, {x} % {b})` of whole numbers"),
    ("max", 1, "`{x}.iter().max()` of whole numbers, `{x}.iter().copied().fold(f64::MIN, f64::max)` of others"),
    ("min", 1, "`{x}.iter().min()` of whole numbers, `{x}.iter().copied().fold(f64::MAX, f64::min)` of others"),
    ("max", 2, "`{x}.max({b})`"),
    ("min", 2, "`{x}.min({b})`"),
    (
        "sum",
        1,
        "`{x}.iter().sum::<f64>()`, with the type of its numbers, `{x}.into_iter().reduce(|a, b| a + b).unwrap()` of tensors",
    ),
    ("mean", 1, "`{x}.iter().sum::<f64>() / {x}.len() as f64`, `{x}.iter().sum::<f32>() / {x}.len() as f32` of `f32`"),
    ("any", 1, "`{x}.iter().any(|b| *b)`"),
    ("all", 1, "`{x}.iter().all(|b| *b)`"),
    ("len", 1, "`{x}.len()`"),
    ("dict", 0, "`std::collections::HashMap::new()`"),
    ("list", 0, "`vec![]`"),
    ("set", 0, "`std::collections::HashSet::new()`"),
    ("list", 1, "`Vec::from_iter({a})`, `Vec::from_iter({x}.chars())` of a text"),
    (
        "set",
        1,
        "`{x}.iter().cloned().collect::<std::collections::HashSet<_>>()`, `{x}.chars().collect::<std::collections::HashSet<_>>()` \
         of a text",
    ),
    (
        "sorted",
        1,
        "`{ let mut all = Vec::from_iter({a}.clone()); all.sort(); all }`, `{ let mut all = Vec::from_iter({a}.clone()); \
         all.sort_by(f64::total_cmp); all }` of floats, `{ let mut all = Vec::from_iter({x}.chars()); all.sort(); all }` of a text",
    ),
    ("enumerate", 1, "`{x}.iter().enumerate()`, without `.iter()` of what is an iterator already"),
    ("iter", 1, "`{x}.iter()`"),
    ("next", 1, "`{x}.next().unwrap()`"),
    ("type", 1, "`std::any::type_name_of_val(&{a})`; `?NAME` tells of a variable's"),
    ("chr", 1, "`{x} as u8 as char`"),
    ("ord", 1, "`{x} as u32` of a character"),
    ("open", 1, "`std::fs::read_to_string({a})?` is all of its text"),
];

/// Python's modules, where something is called of one.
const MODULES: &[(&str, &str)] = &[
    ("time", "`let start = std::time::Instant::now();` and `start.elapsed()` measure; `%%time` tells of a whole cell"),
    ("datetime", "`:dep chrono` brings dates and times of day"),
    (
        "random",
        "`manual_seed(0)` seeds what tensors draw; `:dep fastrand` brings numbers by chance that are no tensors",
    ),
    ("os", "files are in `std::fs`, paths in `std::path::Path`, the environment's variables in `std::env`"),
    ("pathlib", "paths are in `std::path::Path`, files in `std::fs`"),
    ("sys", "what Python's `sys` has is in `std::env` and `std::process`"),
    ("re", "`:dep regex` brings regular expressions"),
    ("json", "`:dep serde_json` reads and writes JSON"),
    (
        "pd",
        "`data::read_table` reads a table whose columns are texts and numbers, `r.text(\"city\")?` and `r.number(\"area\")?` of each \
         row `r`, `data::read_csv` one of numbers; `:dep polars` brings data frames",
    ),
    ("itertools", "an iterator has it as a method (`.zip(…)`, `.chain(…)`, `.take(…)`); `:dep itertools` brings more"),
    ("functools", "an iterator has it as a method: `.fold(…)`, `.reduce(…)`"),
    ("collections", "`std::collections` has `HashMap`, `HashSet` and `VecDeque`"),
];

const TEXTS: &[&str] = &["str", "String"];
const LISTS: &[&str] = &["Vec", "VecDeque", "["];
const QUEUES: &[&str] = &["VecDeque"];
const MAPS: &[&str] = &["HashMap", "BTreeMap"];
const SETS: &[&str] = &["HashSet", "BTreeSet"];

/// What texts, lists, maps and sets of Rust's have under other names than Python's.
const METHODS: &[(&[&str], &str, &str)] = &[
    (TEXTS, "strip", ".trim()"),
    (TEXTS, "lstrip", ".trim_start()"),
    (TEXTS, "rstrip", ".trim_end()"),
    (TEXTS, "upper", ".to_uppercase()"),
    (TEXTS, "lower", ".to_lowercase()"),
    (TEXTS, "startswith", ".starts_with(…)"),
    (TEXTS, "endswith", ".ends_with(…)"),
    (TEXTS, "isdigit", ".chars().all(|c| c.is_ascii_digit())"),
    (TEXTS, "splitlines", ".lines()"),
    (TEXTS, "count", ".matches(…).count()"),
    (LISTS, "index", ".iter().position(|e| *e == …)"),
    (LISTS, "count", ".iter().filter(|e| **e == …).count()"),
    (LISTS, "append", ".push(…)"),
    (LISTS, "copy", ".clone()"),
    // Of pairs, such as a `state_dict()` has.
    (LISTS, "keys", ".iter().map(|(name, _)| name)"),
    (LISTS, "values", ".iter().map(|(_, value)| value)"),
    (LISTS, "items", ".iter()"),
    (MAPS, "items", ".iter()"),
    (MAPS, "copy", ".clone()"),
    (MAPS, "pop", ".remove(…).unwrap()"),
    (MAPS, "update", ".extend(…)"),
    (QUEUES, "append", ".push_back(…)"),
    (QUEUES, "appendleft", ".push_front(…)"),
    (QUEUES, "pop", ".pop_back().unwrap()"),
    (QUEUES, "popleft", ".pop_front().unwrap()"),
    (SETS, "add", ".insert(…)"),
    (SETS, "discard", ".remove(…)"),
];

/// What is written for Python's own functions and modules, where what stands at `at` is not there.
///
/// `here` says what a value is here.
pub(super) fn told(name: &str, text: &str, at: usize, here: &dyn Fn(&str) -> String) -> Option<String> {
    let words = Words::of(text);
    let name_at = words.at(at).filter(|&i| words.word(i) == name)?;
    if words.word(name_at + 1) == "." {
        return Some(MODULES.iter().find(|(module, _)| *module == name)?.1.to_owned());
    }
    let arguments = words.arguments(name_at)?;
    if name == "print" {
        return Some(format!("{IN_RUST}`{}` (`{{:?}}` shows a list)", printed(&words, arguments, here)?));
    }
    let all = words.listed(arguments)?;
    if let ("zip", Some(of)) = (name, all.first().and_then(|all| all.strip_prefix('*'))) {
        let (of, apart) = (receiver(of), "unzip::<_, _, Vec<_>, Vec<_>>()");
        return Some(format!(
            "{IN_RUST}`{of}.iter().cloned().{apart}` of pairs, `{of}.iter().cloned().map(|[a, b]| (a, b)).{apart}` of arrays"
        ));
    }
    if let ("isinstance", [of, ty]) = (name, &all[..]) {
        return Some(is_one(of, ty));
    }
    let (_, _, said) = FUNCTIONS.iter().find(|(function, takes, _)| *function == name && *takes == all.len())?;
    let with = |said: String, letter: &str, argument: &str| said.replace(&format!("{{{letter}}}"), argument);
    // Of a number with a point Rust does not say of which type it is.
    let given = all.first().map_or("", String::as_str);
    let is_float = matches!(syn::parse_str(given), Ok(syn::LitFloat { .. }));
    let first = if is_float { format!("{given}_f64") } else { given.to_owned() };
    let said = with(said.to_string(), "x", &receiver(&first));
    let said = with(said, "b", all.get(1).map_or("", |b| b));
    let said = with(said, "a", given);
    Some(if said.starts_with('`') { IN_RUST.to_owned() + &said } else { said })
}

/// What a method of Python's that is given these arguments is on one of Rust's own types.
pub(super) fn method(name: &str, ty: &str, given: &[String]) -> Option<String> {
    let ty = ty.trim_start_matches('&').trim_start_matches("'static ");
    let short = if ty.starts_with('[') { "[" } else { own_name(ty)? };
    // What is a queue's alone stands behind what all lists have.
    let (.., rust) = METHODS.iter().rfind(|(of, python, _)| *python == name && of.contains(&short))?;
    let rust = match given {
        [one] => rust.replace('…', one),
        // Of a dictionary, with what there is otherwise.
        [key, other] if name == "pop" => format!(".remove({key}).unwrap_or({other})"),
        _ => (*rust).to_owned(),
    };
    let grows = if name == "append" && ty.starts_with('[') { ", of a list that grows: `vec![]`" } else { "" };
    Some(format!("{IN_RUST}`{rust}`{grows}"))
}

/// `isinstance(m, nn.Linear)`, also of several kinds: modules know which they are.
fn is_one(of: &str, ty: &str) -> String {
    let words = Words::of(ty);
    let kinds = (0..words.len()).filter(|i| words.word(*i).starts_with(char::is_uppercase));
    let is: Vec<String> = kinds.map(|i| format!("{}.is(\"{}\")", receiver(of), words.word(i))).collect();
    match is.is_empty() {
        false => format!(
            "{ANSWER}`{}` (of a module; what else a variable is is known when a cell compiles)",
            is.join(" || ")
        ),
        true => format!(
            "of what type `{of}` is is known when a cell compiles, so that nothing asks: `?NAME` tells of a variable's"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_python_has_of_its_own() {
        for (name, text, said) in [
            (
                "int",
                "let n = int(0.9 * k);",
                Some("in Rust: `(0.9 * k) as i64` of a number, `(0.9 * k).parse::<i64>()` of a text"),
            ),
            (
                "round",
                "round(loss, 2)",
                Some("in Rust: `format!(\"{:.2}\", loss)` as a text, `(loss * 1e2).round() / 1e2` as a number"),
            ),
            ("max", "max(a, b + 1)", Some("in Rust: `a.max(b + 1)`")),
            ("abs", "abs(-3.0)", Some("in Rust: `(-3.0_f64).abs()`")),
            ("len", "len(v, w)", None),
            (
                "zip",
                "zip(*v)",
                Some(
                    "in Rust: `v.iter().cloned().unzip::<_, _, Vec<_>, Vec<_>>()` of pairs, \
                     `v.iter().cloned().map(|[a, b]| (a, b)).unzip::<_, _, Vec<_>, Vec<_>>()` of arrays",
                ),
            ),
            ("re", "re.match(a, b)", Some("`:dep regex` brings regular expressions")),
            ("re", "re + 1", None),
        ] {
            assert_eq!(told(name, text, text.find(name).unwrap(), &str::to_owned).as_deref(), said, "{text}");
        }
        assert_eq!(method("strip", "String", &[]).as_deref(), Some("in Rust: `.trim()`"));
        assert_eq!(method("strip", "&'static str", &[]).as_deref(), Some("in Rust: `.trim()`"));
        let grows = "in Rust: `.push(…)`, of a list that grows: `vec![]`";
        assert_eq!(method("append", "[f64; 0]", &[]).as_deref(), Some(grows));
        assert_eq!(method("upper", "xlazy::Tensor", &[]), None);
        assert_eq!(method("add", "&str", &[]), None);
        assert_eq!(
            method("add", "std::collections::HashSet<i32>", &["3".to_owned()]).as_deref(),
            Some("in Rust: `.insert(3)`")
        );
        assert_eq!(method("index", "[f64; 3]", &[]).as_deref(), Some("in Rust: `.iter().position(|e| *e == …)`"));
    }
}
