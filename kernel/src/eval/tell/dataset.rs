//! A dataset as torch and others have it, whose samples are tuples: as `data::Dataset` takes it.
use super::instead::ANSWER;
use super::no_grad::flat;
use super::texts::Texts;
use super::words::receiver;
use crate::eval::text::depth;
use crate::eval::text::source::CellText;
use crate::eval::toolchain::diagnostic::Diagnostic;
use std::ops::Range;
use std::sync::Arc;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Block, Expr, FnArg, ImplItem, ImplItemFn, ItemImpl, Pat, ReturnType, Stmt, Type};

/// What torch, tch and burn call what counts samples, and what makes one.
const LENGTHS: [&str; 5] = ["len", "__len__", "length", "size", "num_samples"];
const SAMPLES: [&str; 8] = ["get", "get_item", "getitem", "__getitem__", "item", "index", "get_sample", "sample"];

/// What is told, and of which text a place with what is to be written there.
type Told<'t> = (String, Option<(&'t Arc<CellText>, Range<usize>, String)>);

/// What is told of a dataset that is no `data::Dataset` yet, and what is to be written in place of which part of the text.
pub(super) fn told<'t>(error: &Diagnostic, texts: &'t Texts) -> Option<Told<'t>> {
    let named = || error.message.contains("`Dataset`") || error.message.contains("data::Dataset");
    let path = matches!(&*error.code, "E0404" | "E0405" | "E0433");
    let about = path || matches!(&*error.code, "E0407" | "E0107" | "E0050" | "E0053" | "E0186");
    let (text, at) = error.spans.iter().find(|s| s.primary && about).and_then(|s| texts.map(s))?;
    if !text.text.contains("Dataset") {
        return None;
    }
    let found = depth::as_people_write(&text.text, || read(&text.text, &at, path));
    match found {
        Some((place, code)) => {
            let note = if code.contains("fn batch(") {
                " (of tensors that are there as a whole `data::TensorDataset::new([&x, &y])` makes one)"
            } else {
                ""
            };
            Some((format!("{ANSWER}`{code}`{note}"), Some((text, place, code))))
        }
        None if named() => Some((in_words("D"), None)),
        None => None,
    }
}

/// Tensors where a dataset is wanted, `(x, y)`: as a dataset of them.
pub(super) fn of_tensors<'t>(error: &Diagnostic, texts: &'t Texts) -> Option<Told<'t>> {
    let wanted = error.message.split('`').nth(1).filter(|_| error.code == "E0277")?;
    let of = [": Dataset<", ": Cut<"].iter().find_map(|is| Some(wanted.split_once(is)?.0))?;
    let rest = of.replace("xlazy::Tensor", "");
    if rest.len() == of.len() || rest.contains(|c: char| !"()[]&,; ".contains(c) && !c.is_ascii_digit()) {
        return None;
    }
    let (text, at) = error.spans.iter().find(|s| s.primary).and_then(|s| texts.map(s))?;
    let code = text.text.get(at.clone())?;
    let parts = depth::as_people_write(code, || match bare(&syn::parse_str(code).ok()?) {
        Expr::Tuple(all) => Some(all.elems.iter().map(|e| lent(e, code)).collect()),
        Expr::Array(all) => Some(all.elems.iter().map(|e| lent(e, code)).collect()),
        one @ (Expr::Path(_) | Expr::Field(_)) => Some(vec![lent(one, code)]),
        _ => None,
    })?;
    let new = format!("data::TensorDataset::new([{}])", parts.join(", "));
    Some((format!("{ANSWER}`{new}`"), Some((text, at, new))))
}

/// What is lent, or is a clone of something, by itself.
fn bare(e: &Expr) -> &Expr {
    match e {
        Expr::Paren(p) => bare(&p.expr),
        Expr::Reference(r) => bare(&r.expr),
        Expr::MethodCall(m) if m.method == "clone" => bare(&m.receiver),
        other => other,
    }
}

fn lent(e: &Expr, code: &str) -> String {
    format!("&{}", &code[bare(e).span().byte_range()])
}

/// How one is written.
pub(super) fn in_words(name: &str) -> String {
    format!(
        "a dataset of two parts is `impl data::Dataset<2> for {name}` with `fn len(&self) -> usize` and `fn get(&self, i: usize) -> \
         Result<[data::Array; 2], data::Failure>`, which gives numbers and vectors, `Ok([x.into(), y.into()])`; one that makes tensors has \
         `fn batch(&self, indices: &[usize]) -> [Tensor; 2]` instead, and `data::TensorDataset::new([&x, &y])` has whole ones"
    )
}

/// The `impl` of a `Dataset` that is pointed at, as it is to be: where its path is no trait, or in one of ours.
fn read(text: &str, at: &Range<usize>, path: bool) -> Option<(Range<usize>, String)> {
    struct Impls<'t, 'ast>(&'t Range<usize>, bool, Option<(Range<usize>, &'ast ItemImpl)>);
    impl<'ast> Visit<'ast> for Impls<'_, 'ast> {
        fn visit_item_impl(&mut self, i: &'ast ItemImpl) {
            let place = i.span().byte_range();
            let Some((_, path, _)) = &i.trait_ else { return };
            let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
            let within = if self.1 { path.span().byte_range() } else { place.clone() };
            let ours = self.1 || names.iter().any(|name| name == "data");
            if names.last().is_some_and(|name| name == "Dataset")
                && ours
                && within.start <= self.0.start
                && self.0.end <= within.end
            {
                self.2 = Some((place, i));
            }
        }
    }
    let statements = depth::fits(text).then(|| Block::parse_within.parse_str(text).ok())??;
    let mut all = Impls(at, path, None);
    statements.iter().for_each(|s| all.visit_stmt(s));
    let (place, item) = all.2.filter(|(_, item)| item.generics.params.is_empty())?;
    let of = |range: Range<usize>| flat(text.get(range)?);
    let (mut methods, mut parts) = (Vec::new(), None);
    for member in &item.items {
        let ImplItem::Fn(f) = member else { continue };
        let name = f.sig.ident.to_string();
        let body = of(f.block.span().byte_range())?;
        if LENGTHS.contains(&&*name) {
            let ReturnType::Type(_, ty) = &f.sig.output else { return None };
            let body = match (&f.block.stmts[..], of(ty.span().byte_range())?.as_str()) {
                (_, "usize") => body,
                ([Stmt::Expr(e, None)], _) => format!("{{ {} as usize }}", receiver(&of(e.span().byte_range())?)),
                _ => format!("{{ let n = {body}; n as usize }}"),
            };
            methods.push(format!("fn len(&self) -> usize {body}"));
        } else if SAMPLES.contains(&&*name) {
            let (n, code) = sample(f, &of)?;
            methods.push(code);
            parts = Some(n);
        } else {
            methods.push(of(member.span().byte_range())?);
        }
    }
    let ty = of(item.self_ty.span().byte_range())?;
    let code = format!("impl data::Dataset<{}> for {ty} {{ {} }}", parts?, methods.join(" "));
    (code != of(place.clone())?).then_some((place, code))
}

/// How many parts a sample has, and the method that makes one; of tensors the one that makes a batch of them.
fn sample(f: &ImplItemFn, of: &dyn Fn(Range<usize>) -> Option<String>) -> Option<(usize, String)> {
    let [FnArg::Receiver(_), FnArg::Typed(place)] = &f.sig.inputs.iter().collect::<Vec<_>>()[..] else { return None };
    let Pat::Ident(index) = &*place.pat else { return None };
    let index = index.ident.to_string();
    let counted = of(place.ty.span().byte_range())?;
    let ReturnType::Type(_, gives) = &f.sig.output else { return None };
    let tuple: Vec<&Type> = match &**gives {
        Type::Tuple(all) if !all.elems.is_empty() => all.elems.iter().collect(),
        Type::Array(all) => {
            let n: usize = of(all.len.span().byte_range())?.parse().ok()?;
            vec![&all.elem; n]
        }
        one @ Type::Path(_) => vec![one],
        _ => return None,
    };
    let types = tuple.iter().map(|ty| of(ty.span().byte_range())).collect::<Option<Vec<_>>>()?;
    // What may be none, or fail, is told in words.
    if types.iter().any(|ty| ["Option<", "Result<", "&"].iter().any(|w| ty.starts_with(w))) {
        return None;
    }
    let tensors = types.iter().all(|ty| ty.rsplit("::").next() == Some("Tensor"));
    let listed = |all: &[String]| {
        let into = |(part, ty): (&String, &String)| match &**ty {
            _ if tensors => part.clone(),
            "usize" | "u16" | "u32" | "u64" | "i8" | "i16" => format!("({part} as i64).into()"),
            _ => format!("{}.into()", receiver(part)),
        };
        format!("[{}]", all.iter().zip(&types).map(into).collect::<Vec<_>>().join(", "))
    };
    // What it gives stands there, mostly.
    let (last, before) = f.block.stmts.split_last()?;
    let before = match before {
        [] => String::new(),
        some => of(some[0].span().byte_range().start..some.last()?.span().byte_range().end)? + " ",
    };
    let before = match &*counted {
        "usize" => before,
        other => format!("let {index} = {index} as {other}; {before}"),
    };
    let Stmt::Expr(value, None) = last else { return None };
    let one = |e: &Expr| of(e.span().byte_range());
    let elements = match value {
        Expr::Tuple(all) if all.elems.len() == types.len() => Some(&all.elems),
        Expr::Array(all) if all.elems.len() == types.len() => Some(&all.elems),
        _ => None,
    };
    // A literal has the type that is said.
    let literal = |e: &Expr| matches!(e, Expr::Lit(_) | Expr::Macro(_) | Expr::Unary(_) | Expr::Array(_));
    let all = match elements.filter(|all| tensors || !all.iter().any(literal)) {
        Some(elements) => before + &listed(&elements.iter().map(one).collect::<Option<Vec<_>>>()?),
        None => {
            let names: Vec<String> = (0..types.len()).map(|n| format!("part{n}")).collect();
            match &**gives {
                Type::Tuple(_) => {
                    let typed = if tensors { String::new() } else { format!(": ({})", types.join(", ")) };
                    format!("{before}let ({}){typed} = {}; {}", names.join(", "), one(value)?, listed(&names))
                }
                Type::Array(_) if tensors => before + &one(value)?,
                Type::Array(_) => format!("{before}{}.map(data::Array::from)", receiver(&one(value)?)),
                _ => before + &listed(&[one(value)?]),
            }
        }
    };
    let all = if all.contains("; ") { format!("{{ {all} }}") } else { all };
    let n = tuple.len();
    Some((
        n,
        match tensors {
            true => format!(
                "fn batch(&self, indices: &[usize]) -> [Tensor; {n}] {{ let all: Vec<[Tensor; {n}]> = indices.iter().map(|&{index}| {all}).collect(); \
             std::array::from_fn(|n| stack(&all.iter().map(|one| one[n].clone()).collect::<Vec<_>>(), 0)) }}"
            ),
            false => {
                format!("fn get(&self, {index}: usize) -> Result<[data::Array; {n}], data::Failure> {{ Ok({all}) }}")
            }
        },
    ))
}
