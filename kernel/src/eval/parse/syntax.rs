//! What there is to ask of syn's trees: where a piece stands, what it is called, what it binds.
use crate::eval::text::scan::{self, Kind, tokens};
use proc_macro2::Span;
use std::ops::Range;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Expr, Pat, Stmt, Token};

/// Where it stands in a text that was parsed from `base` on.
pub(super) fn bytes(span: Span, base: usize) -> Range<usize> {
    let r = span.byte_range();
    r.start + base..r.end + base
}

/// A name that stands alone.
pub fn ident(e: &Expr) -> Option<&syn::Ident> {
    match e {
        Expr::Path(syn::ExprPath { qself: None, path, attrs }) if attrs.is_empty() => path.get_ident(),
        _ => None,
    }
}

/// The names in a pattern that is assigned to, whether each stands for a field, too, and what is no pattern.
pub fn apart<'e>(pattern: &'e Expr, field: bool, named: &mut Vec<(&'e syn::Ident, bool)>, others: &mut Vec<&'e Expr>) {
    match pattern {
        Expr::Tuple(t) => t.elems.iter().for_each(|e| apart(e, false, named, others)),
        Expr::Array(a) => a.elems.iter().for_each(|e| apart(e, false, named, others)),
        Expr::Call(c) => c.args.iter().for_each(|e| apart(e, false, named, others)),
        Expr::Struct(s) => {
            s.fields.iter().for_each(|f| apart(&f.expr, f.colon_token.is_none(), named, others));
        }
        Expr::Paren(p) => apart(&p.expr, field, named, others),
        Expr::Infer(_) | Expr::Range(_) => {}
        e => match ident(e) {
            Some(ident) => named.push((ident, field)),
            None => others.push(e),
        },
    }
}

/// Where the arguments of a call are.
pub(super) fn arguments(call: &syn::Macro, base: usize) -> Range<usize> {
    let delimiter = match &call.delimiter {
        syn::MacroDelimiter::Paren(d) => d.span,
        syn::MacroDelimiter::Brace(d) => d.span,
        syn::MacroDelimiter::Bracket(d) => d.span,
    };
    bytes(delimiter.open(), base).end..bytes(delimiter.close(), base).start
}

/// What an item is generic over.
pub(super) fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(i) => &i.attrs,
        syn::Item::Static(i) => &i.attrs,
        syn::Item::Fn(i) => &i.attrs,
        syn::Item::Mod(i) => &i.attrs,
        syn::Item::Trait(i) => &i.attrs,
        syn::Item::Type(i) => &i.attrs,
        syn::Item::Enum(i) => &i.attrs,
        syn::Item::Struct(i) => &i.attrs,
        syn::Item::Union(i) => &i.attrs,
        syn::Item::Impl(i) => &i.attrs,
        _ => &[],
    }
}

pub(super) fn generics(item: &syn::Item) -> Option<&syn::Generics> {
    match item {
        syn::Item::Fn(i) => Some(&i.sig.generics),
        syn::Item::Impl(i) => Some(&i.generics),
        syn::Item::Trait(i) => Some(&i.generics),
        syn::Item::Type(i) => Some(&i.generics),
        syn::Item::Enum(i) => Some(&i.generics),
        syn::Item::Struct(i) => Some(&i.generics),
        syn::Item::Union(i) => Some(&i.generics),
        _ => None,
    }
}

/// What generic parameters are called: inside, these names mean nothing else.
pub(super) fn parameters(generics: &syn::Generics) -> Vec<String> {
    let name = |p: &syn::GenericParam| match p {
        syn::GenericParam::Type(p) => p.ident.to_string(),
        syn::GenericParam::Lifetime(p) => p.lifetime.to_string(),
        syn::GenericParam::Const(p) => p.ident.to_string(),
    };
    generics.params.iter().map(name).collect()
}

/// The types of the arguments, where the variable is bound to a closure.
pub(super) fn closure_arguments(local: &syn::Local, text: &str, base: usize) -> Option<Vec<String>> {
    let written = |p: &Pat| match p {
        // With a reference in it: the closure is good for any lifetime, which an inferred type would not say.
        Pat::Type(t) if has_any_lifetime(&t.ty) => text[bytes(t.ty.span(), base)].to_owned(),
        _ => "_".to_owned(),
    };
    closure(local).map(|c| c.inputs.iter().map(written).collect())
}

/// Whether a reference in it has no lifetime of its own.
pub fn has_any_lifetime(ty: &syn::Type) -> bool {
    struct References(bool);
    impl<'ast> Visit<'ast> for References {
        fn visit_type_reference(&mut self, r: &'ast syn::TypeReference) {
            self.0 |= r.lifetime.is_none();
        }
    }
    let mut references = References(false);
    references.visit_type(ty);
    references.0
}

/// The closure that a variable is bound to.
pub(super) fn closure(local: &syn::Local) -> Option<&syn::ExprClosure> {
    let mut value = local.init.as_ref().map(|i| &*i.expr);
    // `{ let mut seen = 0; move |x| … }`
    while let Some(Expr::Block(b)) = value {
        value = match b.block.stmts.last() {
            Some(Stmt::Expr(e, None)) => Some(e),
            _ => None,
        };
    }
    match (&local.pat, value) {
        (Pat::Ident(_), Some(Expr::Closure(c))) if c.asyncness.is_none() => Some(c),
        _ => None,
    }
}

/// The variables that a `let` binds. One with a capital, `let (X, y) = …`, may be a constant yet, which whoever knows the items
/// says.
pub(super) fn bound(local: &syn::Local) -> PatternNames {
    let mut names = PatternNames { capitals: true, ..PatternNames::default() };
    names.visit_pat(&local.pat);
    names
}

pub(super) fn bound_names(local: &syn::Local) -> Vec<syn::Ident> {
    bound(local).names
}

/// The variables that a pattern binds.
#[derive(Default)]
pub(super) struct PatternNames {
    pub names: Vec<syn::Ident>,
    /// Also those that begin with a capital.
    capitals: bool,
    /// Those that stand without `mut`, and not by reference.
    pub immutable: Vec<Span>,
}

impl<'ast> Visit<'ast> for PatternNames {
    fn visit_pat_ident(&mut self, p: &'ast syn::PatIdent) {
        let name = p.ident.to_string();
        // In a `match`, `None` and `MAX` compare with a constant.
        let variable = if self.capitals { name != "None" } else { !name.starts_with(char::is_uppercase) };
        if variable && !name.starts_with("__") {
            self.names.push(p.ident.clone());
            if p.mutability.is_none() && p.by_ref.is_none() {
                self.immutable.push(p.ident.span());
            }
        }
        if let Some((_, inner)) = &p.subpat {
            self.visit_pat(inner);
        }
    }
    fn visit_expr(&mut self, _: &'ast Expr) {}
}

/// Whether nothing is made by an expression, so that its beginning is no other place.
pub(super) fn plain(e: &Expr) -> bool {
    match e {
        Expr::Path(_) | Expr::Lit(_) => true,
        Expr::Field(f) => plain(&f.base),
        Expr::Reference(r) => plain(&r.expr),
        Expr::Paren(_) => true,
        Expr::MethodCall(c) => plain(&c.receiver),
        Expr::Unary(u) => matches!(u.op, syn::UnOp::Deref(_)) && plain(&u.expr),
        _ => false,
    }
}

/// Whether an operator changes its left side.
pub(super) fn assigns(op: &syn::BinOp) -> bool {
    use syn::BinOp::*;
    matches!(
        op,
        AddAssign(_)
            | SubAssign(_)
            | MulAssign(_)
            | DivAssign(_)
            | RemAssign(_)
            | BitXorAssign(_)
            | BitAndAssign(_)
            | BitOrAssign(_)
            | ShlAssign(_)
            | ShrAssign(_)
    )
}

/// Where a type begins, and how the user wrote it; `text` begins at `base`.
pub fn written(ty: &syn::Type, text: &str, base: usize) -> (usize, String) {
    let range = bytes(ty.span(), base);
    (range.start, one_line(text.get(range.start - base..range.end - base).unwrap_or_default()))
}

/// Text on one line: comments go, line breaks become blanks. Literals stay as they are.
pub fn one_line(text: &str) -> String {
    let mut out = String::new();
    for token in tokens(text).iter().filter(|t| t.kind != Kind::Comment) {
        let gap = out.is_empty() || text[..token.range.start].ends_with(|c: char| !c.is_whitespace() && c != '/');
        if !gap {
            out.push(' ');
        }
        out.push_str(&text[token.range.clone()]);
    }
    out
}

pub(super) fn names_of(pat: &Pat) -> Vec<String> {
    let mut names = PatternNames::default();
    names.visit_pat(pat);
    names.names.iter().map(|i| i.to_string()).collect()
}

/// A literal, or what is reckoned of literals.
pub(super) fn is_plain(e: &Expr) -> bool {
    match e {
        Expr::Lit(l) => matches!(
            l.lit,
            syn::Lit::Int(_)
                | syn::Lit::Float(_)
                | syn::Lit::Bool(_)
                | syn::Lit::Char(_)
                | syn::Lit::Byte(_)
                | syn::Lit::Str(_)
        ),
        Expr::Unary(u) => is_plain(&u.expr),
        Expr::Paren(p) => is_plain(&p.expr),
        // To change or not: it is handed on as it is, or borrowed once more.
        Expr::Cast(_) | Expr::Reference(_) => true,
        Expr::Binary(b) => is_plain(&b.left) && is_plain(&b.right),
        _ => false,
    }
}

/// Methods that take what they are called on, most of the time.
pub(super) fn takes(method: &syn::ExprMethodCall) -> bool {
    let name = method.method.to_string();
    let alone = method.args.is_empty();
    name.starts_with("into_")
        || alone && matches!(&*name, "join" | "unwrap" | "wait_with_output")
        || name == "expect" && !alone
}

/// The arguments of the standard library's macros that say nothing of their arguments' text, and whether they are taken.
pub fn expressions(name: &str, m: &syn::Macro) -> Option<Vec<(Expr, bool)>> {
    let taken = name == "vec";
    let list = |input: ParseStream| {
        if taken && let Ok(one) = input.fork().parse::<Expr>() {
            let ahead = input.fork();
            let _ = ahead.parse::<Expr>();
            if ahead.peek(Token![;]) {
                input.parse::<Expr>()?;
                input.parse::<Token![;]>()?;
                return Ok(vec![one, input.parse()?]);
            }
        }
        Ok(Punctuated::<Expr, Token![,]>::parse_terminated(input)?.into_iter().collect())
    };
    match name {
        "print" | "println" | "eprint" | "eprintln" | "format" | "format_args" | "write" | "writeln" | "panic"
        | "assert_eq" | "assert_ne" | "todo" | "unimplemented" | "unreachable" | "vec" => {
            let all: Vec<Expr> = list.parse2(m.tokens.clone()).ok()?;
            Some(all.into_iter().map(|e| (e, taken)).collect())
        }
        "matches" => {
            let first = |input: ParseStream| {
                let e = input.parse::<Expr>()?;
                input.parse::<proc_macro2::TokenStream>()?;
                Ok(e)
            };
            // A guard would need its pattern's names.
            let guarded = scan::mentions(&m.tokens.to_string()).contains("if");
            Some(vec![(first.parse2(m.tokens.clone()).ok().filter(|_| !guarded)?, false)])
        }
        _ => None,
    }
}
