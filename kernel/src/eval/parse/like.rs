//! Values whose type nothing but their numbers leaves open: another value of that type, made of literals alone. A later cell that
//! wants another type has the value that there is as that.
use super::syntax::{expressions, names_of};
use quote::ToTokens;
use syn::visit::Visit;
use syn::{Block, Expr, Lit, Pat, Stmt};

/// A value like that of a variable, and what it mentions of earlier cells; none for what is no such value.
pub(super) type Likes<'a> = &'a dyn Fn(&str) -> Option<(String, Vec<String>)>;

/// What a pattern declares, each with a value like its own, and with what that mentions of earlier cells.
pub(super) fn likes(pat: &Pat, value: &Expr, of: Likes) -> Vec<(String, String, Vec<String>)> {
    let parts = match (pat, value) {
        (Pat::Paren(p), value) => Some(vec![(&*p.pat, value)]),
        (Pat::Type(t), value) => Some(vec![(&*t.pat, value)]),
        (pat, Expr::Paren(e)) => Some(vec![(pat, &*e.expr)]),
        (Pat::Tuple(p), Expr::Tuple(t)) => beside(&p.elems, &t.elems),
        (Pat::Slice(p), Expr::Array(a)) => beside(&p.elems, &a.elems),
        _ => None,
    };
    if let Some(parts) = parts {
        return parts.into_iter().flat_map(|(pat, value)| likes(pat, value, of)).collect();
    }
    let mut like = Like { of, own: Vec::new(), earlier: Vec::new() };
    let Some(text) = like.value(value) else { return Vec::new() };
    let part = |name: String| {
        let text = match pat {
            Pat::Ident(p) if p.subpat.is_none() => text.clone(),
            pat => format!("{{ let {} = {text}; {name} }}", pat.to_token_stream()),
        };
        (name, text, like.earlier.clone())
    };
    values_of(pat).into_iter().map(part).collect()
}

/// The parts of a pattern with those of a value.
fn beside<'a>(pats: &'a Elements<Pat>, values: &'a Elements<Expr>) -> Option<Vec<(&'a Pat, &'a Expr)>> {
    let rest = |p: &Pat| match p {
        Pat::Rest(_) => true,
        Pat::Ident(p) => p.subpat.as_ref().is_some_and(|(_, sub)| matches!(**sub, Pat::Rest(_))),
        _ => false,
    };
    let Some(at) = pats.iter().position(rest) else {
        return (pats.len() == values.len()).then(|| pats.iter().zip(values).collect());
    };
    let behind = pats.len() - at - 1;
    let skipped = values.len().checked_sub(at + behind)?;
    let (before, behind) =
        (pats.iter().take(at).zip(values), pats.iter().skip(at + 1).zip(values.iter().skip(at + skipped)));
    Some(before.chain(behind).collect())
}

type Elements<T> = syn::punctuated::Punctuated<T, syn::Token![,]>;

/// What a pattern binds by value.
fn values_of(pat: &Pat) -> Vec<String> {
    struct Values(Vec<String>);
    impl<'ast> Visit<'ast> for Values {
        fn visit_pat_ident(&mut self, p: &'ast syn::PatIdent) {
            let name = p.ident.to_string();
            self.0.extend(Some(name).filter(|name| p.by_ref.is_none() && !name.starts_with(char::is_uppercase)));
            syn::visit::visit_pat_ident(self, p);
        }
    }
    let mut values = Values(Vec::new());
    values.visit_pat(pat);
    values.0
}

struct Like<'a> {
    of: Likes<'a>,
    /// What the blocks around declare.
    own: Vec<String>,
    earlier: Vec<String>,
}

/// They give what they are called on, as another number.
const METHODS: &[&str] = &[
    "abs",
    "abs_diff",
    "ceil",
    "clamp",
    "clone",
    "cos",
    "div_ceil",
    "div_euclid",
    "exp",
    "floor",
    "ln",
    "max",
    "min",
    "next_power_of_two",
    "pow",
    "powf",
    "powi",
    "rem_euclid",
    "round",
    "saturating_add",
    "saturating_mul",
    "saturating_sub",
    "sin",
    "sqrt",
    "wrapping_add",
    "wrapping_mul",
    "wrapping_sub",
];

impl Like<'_> {
    fn value(&mut self, e: &Expr) -> Option<String> {
        match e {
            Expr::Lit(l) => Some(match &l.lit {
                Lit::Int(n) if n.suffix().is_empty() => "0".into(),
                Lit::Float(n) if n.suffix().is_empty() => "0.0".into(),
                Lit::Str(_) => "\"\"".into(),
                Lit::Int(_) | Lit::Float(_) | Lit::Bool(_) | Lit::Char(_) => l.to_token_stream().to_string(),
                _ => return None,
            }),
            Expr::Unary(u) if !matches!(u.op, syn::UnOp::Deref(_)) => self.value(&u.expr),
            Expr::Paren(p) => self.value(&p.expr),
            Expr::Group(g) => self.value(&g.expr),
            Expr::Binary(b) => self.operation(b),
            Expr::If(i) => {
                let (_, otherwise) = i.else_branch.as_ref()?;
                let names = let_names(&i.cond);
                let then = self.within(names, |this| this.block(&i.then_branch))?;
                let otherwise = self.branch(otherwise)?;
                then.or(otherwise)
            }
            Expr::Match(m) => {
                let mut found = None;
                for arm in &m.arms {
                    let value = self.within(names_of(&arm.pat), |this| this.branch(&arm.body))?;
                    found = found.or(value);
                }
                found
            }
            Expr::Block(b) if b.label.is_none() => self.block(&b.block)?,
            Expr::Block(b) => {
                let label = b.label.as_ref()?.name.ident.to_string();
                let by_breaks = self.breaks(&b.block, Breaks::to(Some(label), 1))?;
                self.block(&b.block)?.or(by_breaks)
            }
            Expr::Loop(l) => {
                let label = l.label.as_ref().map(|label| label.name.ident.to_string());
                self.breaks(&l.body, Breaks::to(label, 0))?
            }
            Expr::Unsafe(u) => self.block(&u.block)?,
            Expr::Array(a) => {
                let all: Vec<String> = a.elems.iter().map(|e| self.value(e)).collect::<Option<_>>()?;
                let first = all.first()?;
                Some(match first.contains("vec!") {
                    true => format!("[{}]", all.join(", ")),
                    false => format!("[{first}; {}]", all.len()),
                })
            }
            Expr::Repeat(r) if constant(&r.len) => {
                Some(format!("[{}; {}]", self.value(&r.expr)?, r.len.to_token_stream()))
            }
            Expr::Tuple(t) if !t.elems.is_empty() => {
                let all: Vec<String> = t.elems.iter().map(|e| self.value(e)).collect::<Option<_>>()?;
                Some(format!("({},)", all.join(", ")))
            }
            Expr::Macro(m) if m.mac.path.is_ident("vec") => {
                let (repeats, elements) = (m.mac.tokens.to_string().contains(';'), expressions("vec", &m.mac)?);
                let counted = if repeats { 1 } else { elements.len() };
                let all = elements.iter().take(counted).map(|(e, _)| self.value(e)).collect::<Option<Vec<_>>>()?;
                Some(format!("vec![{}]", all.into_iter().next()?))
            }
            Expr::Field(f) if matches!(f.member, syn::Member::Unnamed(_)) => {
                Some(format!("{}.{}", self.value(&f.base)?, f.member.to_token_stream()))
            }
            Expr::Range(r) => {
                let (start, end) = (self.value(r.start.as_ref()?)?, self.value(r.end.as_ref()?)?);
                Some(format!("({start}{}{end})", r.limits.to_token_stream()))
            }
            Expr::Call(c) if matches!(&*c.func, Expr::Path(p) if p.path.is_ident("Some")) => {
                Some(format!("Some({})", self.value(c.args.first()?)?))
            }
            // Of what there is, there is a first.
            Expr::Index(i) if !matches!(*i.index, Expr::Range(_)) => Some(format!("{}[0]", self.value(&i.expr)?)),
            Expr::MethodCall(m) if METHODS.contains(&&*m.method.to_string()) => self.value(&m.receiver),
            Expr::Path(p) => {
                let name = p.path.get_ident()?.to_string();
                if self.own.contains(&name) || !name.starts_with(char::is_lowercase) {
                    return None;
                }
                let (text, earlier) = (self.of)(&name)?;
                self.earlier.extend(earlier.into_iter().filter(|n| !self.earlier.contains(n)).collect::<Vec<_>>());
                Some(text)
            }
            _ => None,
        }
    }

    fn operation(&mut self, b: &syn::ExprBinary) -> Option<String> {
        use syn::BinOp::{Add, BitAnd, BitOr, BitXor, Div, Mul, Rem, Shl, Shr, Sub};
        match b.op {
            Add(_) | Sub(_) | Mul(_) | Div(_) | Rem(_) | BitAnd(_) | BitOr(_) | BitXor(_) => {
                let left = self.value(&b.left)?;
                self.value(&b.right).map(|_| left)
            }
            // How far says nothing of the type.
            Shl(_) | Shr(_) => self.value(&b.left),
            _ => None,
        }
    }

    /// What a branch gives, and none in it where it never comes to its end.
    fn branch(&mut self, e: &Expr) -> Option<Option<String>> {
        match e {
            Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) => Some(None),
            Expr::Macro(m) if ends(&m.mac) => Some(None),
            Expr::Block(b) if b.label.is_none() => self.block(&b.block),
            e => self.value(e).map(Some),
        }
    }

    /// What the `break`s out of a block give.
    fn breaks<'e>(&mut self, block: &'e Block, mut out: Breaks<'e>) -> Option<Option<String>> {
        out.visit_block(block);
        let mut found = None;
        for value in out.values {
            let value = self.within(out.names.clone(), |this| this.branch(value?))?;
            found = found.or(value);
        }
        Some(found)
    }

    fn block(&mut self, block: &Block) -> Option<Option<String>> {
        let lets = block.stmts.iter().filter_map(|s| if let Stmt::Local(l) = s { Some(&l.pat) } else { None });
        let names = lets.flat_map(names_of).collect();
        match block.stmts.last()? {
            Stmt::Expr(e, None) => self.within(names, |this| this.branch(e)),
            Stmt::Expr(e @ (Expr::Return(_) | Expr::Break(_) | Expr::Continue(_) | Expr::Macro(_)), _) => {
                self.branch(e)
            }
            Stmt::Macro(m) if ends(&m.mac) => Some(None),
            _ => None,
        }
    }

    fn within<T>(&mut self, names: Vec<String>, look: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.own.len();
        self.own.extend(names);
        let found = look(self);
        self.own.truncate(before);
        found
    }
}

/// The values with which a block is left early, and what is bound in it.
struct Breaks<'e> {
    label: Option<String>,
    /// How many loops are around: a `break` without a label is for the innermost.
    loops: usize,
    values: Vec<Option<&'e Expr>>,
    names: Vec<String>,
}

impl<'e> Breaks<'e> {
    fn to(label: Option<String>, loops: usize) -> Breaks<'e> {
        Breaks { label, loops, values: Vec::new(), names: Vec::new() }
    }

    fn round(&mut self, body: &'e Block) {
        self.loops += 1;
        self.visit_block(body);
        self.loops -= 1;
    }
}

impl<'e> Visit<'e> for Breaks<'e> {
    fn visit_expr_break(&mut self, b: &'e syn::ExprBreak) {
        let ours = match &b.label {
            Some(label) => self.label.as_ref().is_some_and(|own| label.ident == own),
            None => self.loops == 0,
        };
        if ours {
            self.values.push(b.expr.as_deref());
        }
        syn::visit::visit_expr_break(self, b);
    }
    fn visit_pat_ident(&mut self, p: &'e syn::PatIdent) {
        self.names.push(p.ident.to_string());
    }
    fn visit_expr_loop(&mut self, e: &'e syn::ExprLoop) {
        self.round(&e.body);
    }
    fn visit_expr_while(&mut self, e: &'e syn::ExprWhile) {
        self.visit_expr(&e.cond);
        self.round(&e.body);
    }
    fn visit_expr_for_loop(&mut self, e: &'e syn::ExprForLoop) {
        self.visit_pat(&e.pat);
        self.visit_expr(&e.expr);
        self.round(&e.body);
    }
    fn visit_expr_closure(&mut self, _: &'e syn::ExprClosure) {}
    fn visit_expr_async(&mut self, _: &'e syn::ExprAsync) {}
    fn visit_item(&mut self, _: &'e syn::Item) {}
}

/// Whether nothing comes behind it.
fn ends(m: &syn::Macro) -> bool {
    ["panic", "unreachable", "todo", "unimplemented"].iter().any(|name| m.path.is_ident(name))
}

/// A constant by its name, or what is made of such by operators.
pub(super) fn constant(e: &Expr) -> bool {
    match e {
        Expr::Path(p) => p.path.get_ident().is_some_and(|name| !name.to_string().contains(char::is_lowercase)),
        Expr::Lit(_) => true,
        Expr::Paren(p) => constant(&p.expr),
        Expr::Cast(c) => constant(&c.expr),
        Expr::Binary(b) => constant(&b.left) && constant(&b.right),
        _ => false,
    }
}

/// What the condition of an `if` binds.
fn let_names(condition: &Expr) -> Vec<String> {
    match condition {
        Expr::Let(l) => names_of(&l.pat),
        Expr::Binary(b) => let_names(&b.left).into_iter().chain(let_names(&b.right)).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_like_a_value() {
        let of = |name: &str| match name {
            "n" => Some(("0".to_owned(), Vec::new())),
            "earlier" => Some(("earlier".to_owned(), vec!["earlier".to_owned()])),
            _ => None,
        };
        let like = |code: &str| {
            let Ok(Stmt::Local(l)) = syn::parse_str(&format!("let {code};")) else { panic!("{code}") };
            let all = likes(&l.pat, &l.init.unwrap().expr, &of);
            all.into_iter().map(|(name, like, _)| format!("{name}: {like}")).collect::<Vec<_>>().join(" ")
        };
        for (code, wanted) in [
            ("a = -3", "a: 0"),
            ("a = if full { 2048 } else { n / 2 }", "a: 0"),
            ("a = match x { Some(k) => 0.5, None => panic!(\"none\") }", "a: 0.0"),
            ("a = if let Some(k) = x { println!(\"{k}\"); 3 } else { return; }", "a: 0"),
            ("a = { println!(\"made\"); n << shift }", "a: 0"),
            ("a = vec![[1, 2], [3, 4]]", "a: vec![[0; 2]]"),
            ("a = vec![0.5; count()]", "a: vec![0.0]"),
            ("a = (1, 2u8, \"x\")", "a: (0, 2u8, \"\",)"),
            ("(a, mut b) = (earlier * 2, vec![1.5])", "a: earlier b: vec![0.0]"),
            ("(a, .., (b, _)) = (1, f(), (0.5, g()))", "a: 0 b: 0.0"),
            ("[a, mut b, ..] = [1, n, 2]", "a: 0 b: 0"),
            (
                "(a, b) = if full { (1, 0.5) } else { (n, 0.25) }",
                "a: { let (a , b) = (0, 0.0,); a } b: { let (a , b) = (0, 0.0,); b }",
            ),
            ("(a, ref b) = earlier", "a: { let (a , ref b) = earlier; a }"),
            ("a = (1, 0.5).1", "a: (0, 0.0,).1"),
            ("a = earlier[k]", "a: earlier[0]"),
            ("a: Vec<_> = vec![1]", "a: vec![0]"),
            ("a = Some(0..=n)", "a: Some((0..=0))"),
            ("a = [0; SIZE]", "a: [0; SIZE]"),
            ("a = earlier.max(3)", "a: earlier"),
            ("a = loop { break 4; }", "a: 0"),
            ("a = loop { for i in v { if i > 3 { break; } } if x { break n + 1; } break -2 }", "a: 0"),
            ("a = 'out: loop { loop { break 'out 0.5; } }", "a: 0.0"),
            ("a = 'out: { if x { break 'out 3; } 4 }", "a: 0"),
            ("a = unsafe{ 3 }", "a: 0"),
        ] {
            assert_eq!(like(code), wanted, "{code}");
        }
        for other in [
            "a = f()",
            "a = if full { 3 } else { f() }",
            "a = if let Some(n) = x { n } else { 3 }",
            "a = { let n = f(); n }",
            "a = match x { Some(n) => n, None => 3 }",
            "a = x as usize",
            "a = v.len()",
            "a = n == 3",
            "a = if full { 3; } else { 4; }",
            "a = (3, f())",
            "a = vec![]",
            "a = loop { break; }",
            "a = loop { let n = f(); break n; }",
            "a = loop { if x { break f(); } break 3; }",
            "a = 'out: { if x { break 'out f(); } 4 }",
        ] {
            assert_eq!(like(other), "", "{other}");
        }
    }
}
