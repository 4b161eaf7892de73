//! `let`s whose value leaves a type open, such as `Vec::new()`: a later cell may say which it is.
use super::like::{Likes, constant, likes};
use super::syntax::{bytes, expressions, ident};
use proc_macro2::Span;
use quote::ToTokens;
use std::ops::Range;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Expr, ExprCall, Lit, Local};

/// A `let` that does nothing besides, so that it may as well run later.
#[derive(Clone, Debug, PartialEq)]
pub struct Open {
    /// The statement.
    pub whole: Range<usize>,
    pub kind: Kind,
    /// What its paths begin with: the standard library's, unless the notebook has items of these names.
    pub heads: Vec<String>,
    /// Paths of what it calls that may be the notebook's, and then may do something besides.
    pub makers: Vec<String>,
    /// Its value.
    pub value: Range<usize>,
    /// The `let`s of the cell's numbers that it is made of, in their order.
    pub of: Vec<Range<usize>>,
    /// The `let`s of what it is a clone of, whose type is left open as well: they run together.
    pub after: Vec<Range<usize>>,
    /// What an earlier cell has left open alike, of which it is a clone: they run together, in the cell that says their type.
    pub joins: Vec<String>,
    /// Variables of earlier cells that it is made of, and their `let`s, each written once more.
    pub earlier: Vec<String>,
    pub lets: Vec<String>,
    /// How long it is to be, where more than constants say so. What is `measured` cannot be written once more: its cell computes that.
    pub lengths: Lengths,
    pub measured: bool,
    /// A value whose type is left open alike, made of numbers alone: where it cannot be written once more, it is what the cell has
    /// made, as that type.
    pub like: Option<String>,
}

impl Open {
    fn without_a_value(whole: Range<usize>) -> Open {
        let value = whole.end..whole.end;
        let (heads, makers, of, after, joins, earlier) = Default::default();
        let (lets, lengths, measured, like) = Default::default();
        let kind = Kind::Unset;
        Open { whole, kind, heads, makers, value, of, after, joins, earlier, lets, lengths, measured, like }
    }

    /// The same, with its cell to compute how long it is, if that is all that is made of what cannot be written once more.
    pub fn measured(self) -> Option<Open> {
        let all = !self.lengths.at.is_empty() && self.earlier.iter().all(|name| self.lengths.earlier.contains(name));
        all.then(|| Open { measured: true, earlier: Vec::new(), ..self })
    }
}

/// The lengths in a value: where they stand, and the variables of earlier cells that they alone are made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lengths {
    pub at: Vec<Range<usize>>,
    earlier: Vec<String>,
}

/// What is known of a value as it is looked through.
#[derive(Clone, Default)]
struct Found {
    heads: Vec<String>,
    makers: Vec<String>,
    of: Vec<Range<usize>>,
    after: Vec<Range<usize>>,
    joins: Vec<String>,
    earlier: Vec<String>,
    lengths: Vec<Span>,
    /// One of the lengths is made of something else than numbers.
    measured: bool,
    earlier_of_lengths: Vec<String>,
}

/// What a name means in a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Means {
    /// A variable of the cell, that is a number and stays that: its `let`s, and what those mention of earlier cells.
    Number(Vec<Range<usize>>, Vec<String>),
    /// A variable of the cell whose type its `let`, which is here, leaves open, and which is made once.
    Made(Range<usize>),
    /// Something else of the cell's.
    Other,
    /// Perhaps a variable of an earlier cell.
    Earlier,
}

pub(super) type Names<'a> = &'a dyn Fn(&str) -> Means;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A number without a suffix.
    Number,
    /// Made of such: written once more, it is the same value.
    Data,
    /// What may be shared or changed: it is made once.
    Made,
    /// A number that came about by what the cell did.
    Computed,
    /// None yet: `let x;` alone.
    Unset,
}

/// What the standard library's prelude or its collections begin with.
const STD: &[&str] = &[
    "Arc",
    "BTreeMap",
    "BTreeSet",
    "BinaryHeap",
    "Box",
    "Cell",
    "Cow",
    "Cursor",
    "Default",
    "HashMap",
    "HashSet",
    "LinkedList",
    "ManuallyDrop",
    "MaybeUninit",
    "Mutex",
    "NonNull",
    "OnceCell",
    "OnceLock",
    "PhantomData",
    "Pin",
    "Rc",
    "RefCell",
    "Reverse",
    "RwLock",
    "String",
    "Vec",
    "VecDeque",
    "Weak",
    "alloc",
    "boxed",
    "cell",
    "collections",
    "core",
    "iter",
    "mpsc",
    "ptr",
    "rc",
    "std",
    "sync",
];
/// Words of a path: `tokio::sync::mpsc::Sender::new`.
const LONGEST: usize = 5;
const VARIANTS: &[&str] = &["None", "Some", "Ok", "Err"];
/// They make a value of what they are called on, and do nothing else.
const METHODS: &[&str] =
    &["collect", "expect", "into", "into_iter", "iter", "parse", "to_owned", "to_string", "to_vec", "unwrap"];
/// They make an iterator.
const ITERATORS: &[&str] = &[
    "bytes",
    "chain",
    "chars",
    "chunks",
    "cloned",
    "copied",
    "drain",
    "enumerate",
    "filter",
    "filter_map",
    "flat_map",
    "flatten",
    "into_iter",
    "into_keys",
    "into_values",
    "iter",
    "keys",
    "lines",
    "map",
    "rev",
    "scan",
    "skip",
    "skip_while",
    "split",
    "split_whitespace",
    "step_by",
    "take",
    "take_while",
    "values",
    "windows",
    "zip",
];

/// What the `let` of these variables leaves open of each; `whole` is where it is.
pub(super) fn opens(
    local: &Local,
    whole: &Range<usize>,
    declared: &[syn::Ident],
    base: usize,
    names: Names,
    of: Likes,
) -> Vec<Option<Open>> {
    if local.init.is_none() && local.attrs.is_empty() {
        return declared.iter().map(|_| Some(Open::without_a_value(whole.clone()))).collect();
    }
    let value = untyped(local).or_else(|| typed_in_part(local)).filter(|_| local.attrs.is_empty());
    let Some(value) = value else { return vec![None; declared.len()] };
    let again = open(value, names);
    let likes = likes(&local.pat, value, of);
    let one = |name: &syn::Ident| {
        let like = likes.iter().find(|(of, ..)| name == of);
        let computed = |(_, _, earlier): &(_, _, Vec<String>)| {
            (Kind::Computed, Found { earlier: earlier.clone(), ..Found::default() })
        };
        let again = again.clone().filter(|(_, found)| !found.measured || like.is_none());
        let (kind, found) = again.or_else(|| like.map(computed))?;
        let Found { heads, makers, of, after, joins, earlier, lengths, measured, earlier_of_lengths } = found;
        let (whole, value) = (whole.clone(), bytes(value.span(), base));
        let (like, lets) = (like.map(|(_, like, _)| like.clone()), Vec::new());
        let at = lengths.into_iter().map(|at| bytes(at, base)).collect();
        let lengths = Lengths { at, earlier: earlier_of_lengths };
        let open =
            Open { whole, kind, heads, makers, value, of, after, joins, earlier, lets, lengths, measured: false, like };
        if measured { open.measured() } else { Some(open) }
    };
    declared.iter().map(one).collect()
}

/// What the first values of variables leave open that a `let` declares without one: `(x, y) = (4, 5)`.
pub(super) fn assigned(a: &syn::ExprAssign, base: usize, of: Likes) -> Vec<(String, Open)> {
    let Ok(pattern) = syn::Pat::parse_single.parse2(a.left.to_token_stream()) else { return Vec::new() };
    let (whole, value) = (bytes(a.span(), base), bytes(a.right.span(), base));
    let one = |(name, like, earlier): (String, String, Vec<String>)| {
        let (value, like) = (value.clone(), Some(like));
        let open = Open::without_a_value(whole.clone());
        (name, Open { kind: Kind::Computed, value, earlier, like, ..open })
    };
    likes(&pattern, &a.right, of).into_iter().map(one).collect()
}

/// What the value of a `let` leaves open, if it has no effect.
fn open(value: &Expr, names: Names) -> Option<(Kind, Found)> {
    let mut found = Found::default();
    let kind = kind(value, &mut found, names)?;
    // A name may be declared twice.
    found.of.sort_by_key(|of| of.start);
    Some((kind, found))
}

/// The value of a `let` that says no type.
pub(super) fn untyped(local: &Local) -> Option<&Expr> {
    let init = local.init.as_ref().filter(|i| i.diverge.is_none() && !matches!(local.pat, syn::Pat::Type(_)))?;
    Some(&init.expr)
}

/// The value of a `let` whose type has a `_` in it.
fn typed_in_part(local: &Local) -> Option<&Expr> {
    use syn::visit::Visit;
    struct Open(bool);
    impl<'ast> Visit<'ast> for Open {
        fn visit_type_infer(&mut self, _: &'ast syn::TypeInfer) {
            self.0 = true;
        }
    }
    let (syn::Pat::Type(t), Some(init)) = (&local.pat, &local.init) else { return None };
    let mut open = Open(false);
    open.visit_type(&t.ty);
    (open.0 && init.diverge.is_none()).then_some(&*init.expr)
}

/// Whether it is an iterator's `collect`, and only what is behind it says into what.
pub(super) fn collects(value: &Expr) -> bool {
    let Expr::MethodCall(m) = value else { return false };
    let iterates = |e: &Expr| matches!(e, Expr::MethodCall(i) if ITERATORS.contains(&&*i.method.to_string()));
    m.method == "collect" && m.turbofish.is_none() && iterates(&m.receiver)
}

fn kind(e: &Expr, found: &mut Found, names: Names) -> Option<Kind> {
    if let Some(name) = cloned(e) {
        match names(&name) {
            Means::Made(whole) => add(&mut found.after, vec![whole]),
            // If it is not left open, this is no open `let`, either.
            Means::Earlier => add(&mut found.joins, vec![name]),
            Means::Number(..) | Means::Other => return None,
        }
        return Some(Kind::Made);
    }
    match e {
        Expr::Lit(l) => Some(match &l.lit {
            Lit::Int(n) if n.suffix().is_empty() => Kind::Number,
            Lit::Float(n) if n.suffix().is_empty() => Kind::Number,
            _ => Kind::Data,
        }),
        Expr::Unary(u) if matches!(u.op, syn::UnOp::Neg(_)) => kind(&u.expr, found, names),
        Expr::Paren(p) => kind(&p.expr, found, names),
        Expr::Reference(r) if r.mutability.is_none() => {
            kind(&r.expr, found, names).map(|of| if is_promoted(&r.expr) { of.max(Kind::Data) } else { Kind::Made })
        }
        Expr::Array(a) => of_all(&mut a.elems.iter(), found, names),
        Expr::Tuple(t) => of_all(&mut t.elems.iter(), found, names),
        Expr::Range(r) => of_all(&mut r.start.iter().chain(&r.end).map(|e| &**e), found, names),
        Expr::Repeat(r) => of_all(&mut [&*r.expr, &*r.len].into_iter(), found, names),
        Expr::Macro(m) if m.mac.path.is_ident("vec") => {
            let elements = expressions("vec", &m.mac)?;
            match &elements[..] {
                [(one, _), (times, _)] if repeats(&m.mac) => {
                    Some(kind(one, found, names)?.max(length(times, found, names)))
                }
                _ => of_all(&mut elements.iter().map(|(e, _)| e), found, names),
            }
        }
        Expr::Path(p) if p.path.get_ident().is_some_and(|name| name.to_string().starts_with(char::is_lowercase)) => {
            let name = p.path.get_ident()?.to_string();
            let (lets, earlier) = match names(&name) {
                Means::Number(lets, earlier) => (lets, earlier),
                Means::Earlier => (Vec::new(), vec![name]),
                Means::Other | Means::Made(_) => return None,
            };
            add(&mut found.of, lets);
            add(&mut found.earlier, earlier);
            Some(Kind::Data)
        }
        // Of numbers, since those of later cells are made so, too.
        Expr::Binary(b) if is_arithmetic(&b.op) => {
            let both = [kind(&b.left, found, names)?, kind(&b.right, found, names)?];
            both.iter().all(|kind| *kind <= Kind::Data).then_some(Kind::Data)
        }
        Expr::Path(_) => path(e, &mut found.heads),
        Expr::Call(ExprCall { func, args, .. }) => {
            let made = path(func, &mut found.heads).or_else(|| maker(func, &mut found.makers))?;
            let capacity = matches!(&**func, Expr::Path(p) if p.path.segments.last()?.ident == "with_capacity");
            if capacity && let (Kind::Made, [of]) = (made, &*args.iter().collect::<Vec<_>>()) {
                length(of, found, names);
                return Some(Kind::Made);
            }
            // What is always the same may as well be asked for later.
            of_all(&mut args.iter().filter(|e| made != Kind::Made || !constant(e)), found, names)
                .map(|args| args.max(made))
        }
        Expr::Struct(s) if s.rest.is_none() => {
            of_all(&mut s.fields.iter().map(|f| &f.expr), found, names).map(|_| Kind::Made)
        }
        Expr::MethodCall(m) if METHODS.contains(&&*m.method.to_string()) => {
            of_all(&mut m.args.iter().chain([&*m.receiver]), found, names).map(|_| Kind::Made)
        }
        // It takes nothing along: there is nothing that it could mention but its arguments, and what rustc knows.
        Expr::Closure(c) if c.asyncness.is_none() && !mentions_more(c) => Some(Kind::Made),
        _ => None,
    }
}

/// What says how long something is to be: always the same, or numbers, or whatever its cell computes.
fn length(e: &Expr, found: &mut Found, names: Names) -> Kind {
    if constant(e) {
        return Kind::Data;
    }
    found.lengths.push(e.span());
    let mut tried = found.clone();
    let Some(made) = kind(e, &mut tried, names).filter(|kind| *kind <= Kind::Data) else {
        found.measured = true;
        return Kind::Made;
    };
    let new = tried.earlier.iter().filter(|name| !found.earlier.contains(name)).cloned().collect();
    add(&mut tried.earlier_of_lengths, new);
    *found = tried;
    made
}

/// Whether it is `vec![value; length]`.
fn repeats(m: &syn::Macro) -> bool {
    m.tokens.clone().into_iter().any(|t| matches!(t, proc_macro2::TokenTree::Punct(p) if p.as_char() == ';'))
}

/// Whether what is borrowed lies in the program, and is nobody's.
fn is_promoted(e: &Expr) -> bool {
    match e {
        Expr::Lit(_) => true,
        Expr::Paren(p) => is_promoted(&p.expr),
        Expr::Unary(u) => is_promoted(&u.expr),
        Expr::Reference(r) => r.mutability.is_none() && is_promoted(&r.expr),
        Expr::Array(a) => a.elems.iter().all(is_promoted),
        Expr::Tuple(t) => t.elems.iter().all(is_promoted),
        _ => false,
    }
}

/// The variable that `x.clone()` or `Arc::clone(&x)` is a clone of.
fn cloned(e: &Expr) -> Option<String> {
    let of = match e {
        Expr::MethodCall(m) if m.method == "clone" => &*m.receiver,
        Expr::Call(c) => match (&*c.func, c.args.first()?) {
            (Expr::Path(p), Expr::Reference(r)) if p.path.segments.last()?.ident == "clone" => &*r.expr,
            _ => return None,
        },
        _ => return None,
    };
    ident(of).map(syn::Ident::to_string)
}

fn add<T: PartialEq>(to: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !to.contains(&one) {
            to.push(one);
        }
    }
}

fn is_arithmetic(op: &syn::BinOp) -> bool {
    use syn::BinOp::{Add, Div, Mul, Rem, Sub};
    matches!(op, Add(_) | Sub(_) | Mul(_) | Div(_) | Rem(_))
}

fn of_all(exprs: &mut dyn Iterator<Item = &Expr>, found: &mut Found, names: Names) -> Option<Kind> {
    let mut most = Kind::Data;
    for e in exprs {
        most = most.max(kind(e, found, names)?);
    }
    Some(most)
}

/// A constructor: a variant is as good as what is in it.
fn path(e: &Expr, heads: &mut Vec<String>) -> Option<Kind> {
    let Expr::Path(p) = e else { return None };
    let head = p.path.segments.first()?.ident.to_string();
    let variant = p.path.segments.len() == 1 && VARIANTS.contains(&&*head);
    if !variant && (p.path.segments.len() == 1 || !STD.contains(&&*head)) {
        return None;
    }
    heads.push(head);
    Some(if variant { Kind::Data } else { Kind::Made })
}

/// What may be the notebook's own: `Stack::new`, `Stack` or `make`.
fn maker(e: &Expr, makers: &mut Vec<String>) -> Option<Kind> {
    let Expr::Path(p) = e else { return None };
    let words: Vec<String> = p.path.segments.iter().map(|s| s.ident.to_string()).collect();
    makers.push(words.join("::"));
    (words.len() <= LONGEST).then_some(Kind::Made)
}

/// Whether a path that begins so is the standard library's, and makes a value.
pub fn is_constructor(head: &str) -> bool {
    STD.contains(&head)
}

pub fn is_variant(name: &str) -> bool {
    VARIANTS.contains(&name)
}

/// Whether a method makes a value of what it is called on, and does nothing else.
pub fn is_of_its_argument(method: &str) -> bool {
    METHODS.contains(&method)
}

fn mentions_more(closure: &syn::ExprClosure) -> bool {
    use syn::visit::Visit;
    /// Names by themselves.
    struct Names(Vec<String>);
    impl<'ast> Visit<'ast> for Names {
        fn visit_expr_path(&mut self, p: &'ast syn::ExprPath) {
            self.0.extend(p.path.get_ident().map(syn::Ident::to_string));
        }
        fn visit_macro(&mut self, m: &'ast syn::Macro) {
            self.0.extend(crate::eval::text::scan::mentions(&m.tokens.to_string()));
        }
    }
    let mut names = Names(Vec::new());
    names.visit_expr(&closure.body);
    let own: Vec<String> = closure.inputs.iter().flat_map(super::syntax::names_of).collect();
    names.0.iter().any(|n| !own.contains(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_collected_into_what_is_said_later() {
        let of = |code: &str| collects(&syn::parse_str(code).unwrap());
        assert!(of("v.iter().map(|x| x + 1).collect()") && of("(0..3).rev().collect()"));
        for known in ["v.iter().collect::<Vec<_>>()", "garbage.collect()", "v.iter().collect().len()", "v.iter().sum()"]
        {
            assert!(!of(known), "{known}");
        }
    }

    #[test]
    fn what_a_value_leaves_open() {
        let names = |name: &str| match name {
            "n" => Means::Number(std::iter::once(0..10).collect(), Vec::new()),
            "earlier" => Means::Earlier,
            "tx" => Means::Made(0..10),
            _ => Means::Other,
        };
        let of = |code: &str| open(&syn::parse_str(code).unwrap(), &names).map(|(kind, _)| kind);
        for number in ["3", "-2.5", "(7)"] {
            assert_eq!(of(number), Some(Kind::Number), "{number}");
        }
        for data in [
            "vec![1, 2]",
            "[0; 4]",
            "0..n",
            "(1, 2.0)",
            "Some(3)",
            "None",
            "vec![]",
            "vec![None; 3]",
            "3u8",
            "&[1, 2]",
            "&[]",
            "[2, n, n * 4]",
            "n / 2",
            "(earlier, n * earlier)",
        ] {
            assert_eq!(of(data), Some(Kind::Data), "{data}");
        }
        for made in [
            "Vec::new()",
            "HashMap::new()",
            "std::collections::HashMap::with_capacity(8)",
            "mpsc::channel()",
            "Vec::with_capacity(THREADS as usize * 2)",
            "&vec![]",
            "|x| x",
            "Rc::new(RefCell::new(None))",
            "\"5\".parse().unwrap()",
            "Some(Vec::new())",
            "Default::default()",
            "|a, b| a + b",
            "tx.clone()",
            "Arc::clone(&tx)",
            "earlier.clone()",
            "Loader::new()",
            "f(3)",
            "Stack { items: Vec::new() }",
            "Vec::with_capacity(x)",
            "Vec::with_capacity(names.iter().filter(|n| n.is_ok()).count() + 1)",
            "vec![Vec::new(); x]",
            "Some(vec![vec![None; x + n]; names.len()])",
        ] {
            assert_eq!(of(made), Some(Kind::Made), "{made}");
        }
        for effect in [
            "f(x)",
            "a::b::c::d::e::f()",
            "x",
            "vec![x]",
            "v.iter().collect()",
            "|x| x + y",
            "|x| println!(\"{y}\")",
            "A",
            "Vec::with_capacity(x, x)",
            "vec![x; n]",
            "vec![n, x]",
            "n + x",
            "tx",
            "x.clone()",
            "Arc::clone(&x)",
            "Some(tx)",
        ] {
            assert_eq!(of(effect), None, "{effect}");
        }
    }
}
