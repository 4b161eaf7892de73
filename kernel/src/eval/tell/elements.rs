//! Of what type the elements of a tensor are, where a variable's value or its making says it.
use super::asked::Rustc;
use super::words::Words;
use crate::eval::text::depth;
use std::ops::Range;
use syn::{BinOp, Expr, Lit};

/// What a method gives, whatever it is called of.
const GIVE: [(&str, &[&str]); 5] = [
    (
        "i64",
        &[
            "long",
            "argmax",
            "argmin",
            "argmax_dim",
            "argmin_dim",
            "argsort",
            "nonzero",
            "count_nonzero",
            "multinomial",
            "bucketize",
            "searchsorted",
        ],
    ),
    (
        "bool",
        &[
            "gt",
            "lt",
            "ge",
            "le",
            "eq",
            "ne",
            "isnan",
            "isinf",
            "isfinite",
            "any",
            "all",
            "any_dim",
            "all_dim",
            "logical_and",
            "logical_or",
            "logical_not",
            "bool",
        ],
    ),
    ("f32", &["float"]),
    ("f64", &["double"]),
    ("i32", &["int"]),
];
/// What keeps the type of what it is called of, whatever that is.
const KEEP: &[&str] = &[
    "clone",
    "detach",
    "cpu",
    "cuda",
    "contiguous",
    "flatten",
    "flatten_dims",
    "view",
    "reshape",
    "squeeze",
    "squeeze_dim",
    "unsqueeze",
    "t",
    "transpose",
    "permute",
    "i",
    "index_select",
    "select",
    "narrow",
    "expand",
    "repeat",
    "flip",
    "max",
    "min",
    "amax",
    "amin",
    "abs",
    "clamp",
    "unique",
    "masked_select",
    "gather",
    "roll",
    "tril",
    "triu",
    "cumsum",
];
/// Dtypes with a type of Rust's, and those that are read as float32.
const READ_AS: [&str; 13] = ["f32", "f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "u16", "u32", "u64", "bool"];
/// How many names are followed to what they are made of.
const NAMES: usize = 4;

/// Code that reads the elements of tensors as float32 because a row says so, with the types that they have.
pub(super) fn typed(code: &str, text: &str, rustc: &Rustc) -> Option<String> {
    const READ: &str = ".to_vec::<f32>()";
    let words = Words::of(code);
    let read = (0..words.len()).filter(|i| words.word(*i) == "to_vec" && words.word(i + 1) == ":").find_map(|name| {
        let dot = name.checked_sub(1)?;
        let (of, place) = words.part(words.operand_before(dot)?, dot)?;
        let ty = of_text(&of, text, rustc, NAMES)?;
        code[place.end..].starts_with(READ).then_some((place.end, ty))
    });
    let (at, ty) = read?;
    let how = match &*ty {
        "f16" | "bf16" => ".to(F32).to_vec::<f32>()".to_owned(),
        ty => format!(".to_vec::<{ty}>()"),
    };
    Some(format!("{}{how}{}", &code[..at], &code[at + READ.len()..]))
}

fn of_text(of: &str, text: &str, rustc: &Rustc, depth: usize) -> Option<String> {
    let read = depth.checked_sub(1).filter(|_| depth::fits(of))?;
    of_expression(&syn::parse_str::<Expr>(of).ok()?, text, rustc, read)
}

/// The dtype of an expression by what makes it.
fn of_expression(e: &Expr, text: &str, rustc: &Rustc, depth: usize) -> Option<String> {
    let of = |e: &Expr| of_expression(e, text, rustc, depth);
    match e {
        Expr::Paren(inner) => of(&inner.expr),
        Expr::Reference(inner) => of(&inner.expr),
        Expr::Unary(inner) => of(&inner.expr),
        Expr::Index(of_it) => of(&of_it.expr),
        Expr::Path(path) => {
            let name = path.path.get_ident()?.to_string();
            match declared(text, &name) {
                Some(place) => of_text(&text[place], text, rustc, depth),
                None if is_bound(text, &name) => None,
                None => {
                    let summary = (rustc.summary_of)(&name)?;
                    let (dtype, _) = summary.split_once('[')?;
                    READ_AS.contains(&dtype).then(|| dtype.to_owned())
                }
            }
        }
        Expr::MethodCall(call) => {
            let name = call.method.to_string();
            let given = GIVE.iter().find(|(_, names)| names.contains(&&*name)).map(|(ty, _)| (*ty).to_owned());
            if given.is_some() {
                return given;
            }
            if name == "to" {
                let Some(Expr::Path(to)) = call.args.first() else { return of(&call.receiver) };
                let ty = to.path.segments.last()?.ident.to_string().to_lowercase();
                return READ_AS.contains(&&*ty).then_some(ty);
            }
            let it = of(&call.receiver)?;
            match &*name {
                "sum" | "sum_dim" | "prod" | "prod_dim" if it.starts_with(['i', 'u']) || it == "bool" => {
                    Some("i64".to_owned())
                }
                // What is computed of floats is of their type, mostly.
                name => (KEEP.contains(&name) || it.contains('f')).then_some(it),
            }
        }
        Expr::Call(call) => {
            let Expr::Path(made) = &*call.func else { return None };
            let names: Vec<String> = made.path.segments.iter().map(|s| s.ident.to_string()).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            match names[..] {
                ["tensor"] => literal(call.args.first()?),
                ["Tensor", "ones" | "zeros" | "rand" | "randn" | "eye" | "linspace"] => Some("f32".to_owned()),
                ["Tensor", "randint" | "randperm"] => Some("i64".to_owned()),
                ["Tensor", "arange"] => {
                    let whole = |e: &Expr| matches!(e, Expr::Lit(l) if matches!(l.lit, Lit::Int(_)));
                    call.args.iter().all(whole).then(|| "i64".to_owned())
                }
                _ => None,
            }
        }
        Expr::Binary(all) => {
            let compares = matches!(
                all.op,
                BinOp::Gt(_) | BinOp::Lt(_) | BinOp::Ge(_) | BinOp::Le(_) | BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Div(_)
            );
            if compares {
                return None;
            }
            let number = |e: &Expr| matches!(e, Expr::Lit(_));
            let ty = of(if number(&all.left) { &all.right } else { &all.left })?;
            let other = if number(&all.left) { &all.left } else { &all.right };
            let same = match &**other {
                Expr::Lit(l) => ty.contains('f') || matches!(l.lit, Lit::Int(_)) && ty != "bool",
                other => of(other).as_ref() == Some(&ty),
            };
            same.then_some(ty)
        }
        _ => None,
    }
}

/// The dtype of a tensor that is made of numbers that stand there.
fn literal(e: &Expr) -> Option<String> {
    match e {
        Expr::Reference(inner) => literal(&inner.expr),
        Expr::Unary(inner) => literal(&inner.expr),
        Expr::Array(all) => literal(all.elems.first()?),
        Expr::Repeat(all) => literal(&all.expr),
        Expr::Lit(l) => match &l.lit {
            Lit::Int(n) => Some(if n.suffix().is_empty() { "i64" } else { n.suffix() }.to_owned()),
            Lit::Float(n) => Some(if n.suffix().is_empty() { "f32" } else { n.suffix() }.to_owned()),
            Lit::Bool(_) => Some("bool".to_owned()),
            _ => None,
        },
        _ => None,
    }
}

/// The value that a text gives a name last.
fn declared(text: &str, name: &str) -> Option<Range<usize>> {
    let words = Words::of(text);
    let binds = |i: &usize| words.word(*i) == name && words.word(i + 1) == "=" && words.word(i + 2) != "=";
    let starts = |i: &usize| {
        let before = |back: usize| i.checked_sub(back).map_or("", |i| words.word(i));
        before(1) == "let" || before(1) == "mut" && before(2) == "let"
    };
    let at = (0..words.len()).rev().filter(binds).find(starts)?;
    let from = at + 2;
    let end = (from..words.len()).find(|i| words.word(*i) == ";" && words.within(from, *i))?;
    Some(words.part(from, end)?.1)
}

/// Whether a name is a parameter's, or a loop's, somewhere in a text.
fn is_bound(text: &str, name: &str) -> bool {
    let words = Words::of(text);
    (0..words.len()).filter(|i| words.word(*i) == name).any(|i| {
        let (before, next) = (i.checked_sub(1).map_or("", |i| words.word(i)), words.word(i + 1));
        let typed = next == ":" && words.word(i + 2) != ":";
        let of_a_closure = before == "|" && matches!(next, "|" | ",") || next == "|" && before == ",";
        typed || of_a_closure || before == "for" || next == "in" || matches!(before, "mut" | "ref")
    })
}
