//! What is changed in a cell's code, and what is found in it on the way: interrupt checks, `.await` at the top, functions that
//! are values, conditions, what closures take with them.
use super::syntax::{PatternNames, bytes};
use crate::eval::text::scan::{self, Kind, Token};
use crate::eval::text::source::{Splice, Tag};
use proc_macro2::Span;
use std::collections::BTreeSet;
use std::ops::Range;
use syn::Expr;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// A path to a function as a value: where it stands, and the function's name.
#[derive(Clone, Debug, PartialEq)]
pub struct FnValue {
    pub range: Range<usize>,
    pub name: String,
}

impl FnValue {
    /// A closure around it. rustc cannot link a pointer to a `#[track_caller]` function of another library: it hides the
    /// function behind the shim that it makes for the pointer.
    pub fn wrapped(&self) -> [Splice; 2] {
        [
            Splice::insert(self.range.start, "(|xlazy_tensor: &::xlazy::Tensor| "),
            Splice::insert(self.range.end, "(xlazy_tensor))"),
        ]
    }
}

/// Files that are included, wherever that is said: relative to the notebook's folder, since the source that rustc reads lies
/// nowhere.
pub fn included(text: &str, range: Range<usize>) -> Vec<Splice> {
    let part = &text[range.clone()];
    let all = scan::tokens(part);
    let is = |t: &Token, words: &[&str]| words.contains(&&part[t.range.clone()]);
    let path = |w: &[Token]| {
        let called = is(&w[0], &["include", "include_str", "include_bytes"]) && is(&w[1], &["!"]);
        let alone = matches!((w[2].kind, w[4].kind), (Kind::Open(_), Kind::Close(_))) && w[3].kind == Kind::Literal;
        let path = syn::parse_str::<syn::LitStr>(&part[w[3].range.clone()]).ok().filter(|_| called && alone)?;
        let full = std::path::absolute(path.value()).ok()?.display().to_string();
        let at = range.start + w[3].range.start..range.start + w[3].range.end;
        Some(Splice::replace(at, format!("{full:?}")).tagged(Tag::Program))
    };
    all.windows(5).filter_map(path).collect()
}

pub const CHECK: &str = "::xlazy::cell::rt::check();";

/// What the library traces until the block ends is put down to this line, where it has no better one.
const LINE: &str = "let _xlazy_line = ::xlazy::cell::rt::line();";

/// Functions that show a value; the macros of their names take what is not `Rich`, too.
const SHOWS: [&str; 3] = ["display", "display_with_id", "update_display"];

/// The one of them that an expression names.
fn shows(called: &Expr) -> Option<&'static str> {
    let Expr::Path(p) = called else { return None };
    let names: Vec<String> = p.path.segments.iter().map(|s| s.ident.to_string()).collect();
    let name = match &names.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [name] | ["xlazy", name] | ["xlazy", "prelude", name] => *name,
        _ => return None,
    };
    SHOWS.into_iter().find(|s| *s == name)
}

/// Methods of the library's traits that record ops. Behind a `dyn` they do not know who called them.
const DISPATCHED: [&str; 4] = ["forward", "step", "to", "zero_grad"];

/// What the code decides by, and what is run or not, or how often, by it; nothing is guarded by what only tells or asserts.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub range: Range<usize>,
    /// It begins before the condition where rounds of a loop go by it.
    pub guards: Range<usize>,
}

/// Puts an interrupt check at the start of every loop body, function and closure, and finds what decides which way the
/// code goes: a value that is read there is control flow on a value. Notes functions that are values.
pub(super) struct Checks {
    base: usize,
    pub edits: Vec<Splice>,
    pub values: Vec<FnValue>,
    pub conditions: Vec<Condition>,
    pub captures: Vec<(Range<usize>, BTreeSet<String>)>,
    /// The loops around, in this function or closure, and the function.
    loops: Vec<Range<usize>>,
    function: Option<Range<usize>>,
    /// The statement calls what may be behind a `dyn`.
    dispatches: bool,
    /// Inside of what runs in parts and on any thread, which is at no line.
    later: bool,
    /// Those of `SHOWS` that are something else in here.
    own: Vec<&'static str>,
    /// Whether what is imported here may have such names.
    glob: bool,
}

/// The crates of whose names all are known.
const KNOWN: [&str; 4] = ["std", "core", "alloc", "xlazy"];

/// Whether a `use` may bring names that nobody has written.
pub fn may_bring_any(path: &str) -> bool {
    let root = path.trim_start_matches(':').split("::").next().unwrap_or_default();
    path.ends_with('*') && !KNOWN.contains(&root)
}

impl Checks {
    pub fn new(base: usize) -> Checks {
        let (edits, values, conditions, captures, loops) = Default::default();
        let own = Vec::new();
        Checks {
            base,
            edits,
            values,
            conditions,
            captures,
            loops,
            function: None,
            dispatches: false,
            later: false,
            own,
            glob: false,
        }
    }

    /// When all has been visited.
    pub fn edits(&mut self) -> Vec<Splice> {
        let own = |e: &Splice| matches!(e.tag, Tag::Show(name, _) if self.own.contains(&name));
        let told = |e: Splice| match e.tag {
            Tag::Show(name, _) => e.tagged(Tag::Show(name, self.glob)),
            _ => e,
        };
        std::mem::take(&mut self.edits).into_iter().filter(|e| !own(e)).map(told).collect()
    }

    fn declares(&mut self, name: &syn::Ident) {
        self.own.extend(SHOWS.into_iter().find(|s| name == s));
    }

    /// Whether what is visited, in a function or a closure, calls what may be behind a `dyn`.
    fn dispatches(&mut self, visit: impl FnOnce(&mut Self)) -> bool {
        let around = std::mem::take(&mut self.dispatches);
        visit(self);
        std::mem::replace(&mut self.dispatches, around) && self.function.is_some() && !self.later
    }

    /// A condition by which what follows it in `whole` is run; more than that where it may leave the loop or the function.
    fn condition(&mut self, span: Span, whole: Span) {
        let range = bytes(span, self.base);
        let guards = range.start..bytes(whole, self.base).end;
        self.conditions.push(Condition { range, guards });
    }

    /// The same, where it is known how what is run by it goes on, and whether that only tells something.
    fn branch(&mut self, span: Span, whole: Span, leaves: &Leaves, only_tells: bool) {
        self.condition(span, whole);
        let Some(condition) = self.conditions.last_mut() else { return };
        let (first, last) = (self.loops.first(), self.loops.last());
        match (leaves.function, leaves.round, &self.function) {
            (true, _, function) => match (first, function) {
                (Some(all), _) => condition.guards = all.clone(),
                (None, Some(function)) => condition.guards.end = function.end,
                (None, None) => {}
            },
            (_, true, _) => condition.guards = last.unwrap_or(&condition.guards).clone(),
            _ if only_tells => condition.guards.end = condition.guards.start,
            _ => {}
        }
    }

    fn rounds(&mut self, of: Span, visit: impl FnOnce(&mut Self)) {
        self.loops.push(bytes(of, self.base));
        visit(self);
        self.loops.pop();
    }

    /// What a function or a closure contains: the loops around it are not its own.
    fn within(&mut self, body: Span, visit: impl FnOnce(&mut Self)) {
        let function = self.function.replace(bytes(body, self.base));
        let loops = std::mem::take(&mut self.loops);
        visit(self);
        (self.function, self.loops) = (function, loops);
    }

    fn later(&mut self, visit: impl FnOnce(&mut Self)) {
        let around = std::mem::replace(&mut self.later, true);
        visit(self);
        self.later = around;
    }

    /// Behind the brace and what attributes follow it.
    fn block(&mut self, block: &syn::Block, attributes: &[syn::Attribute]) {
        let inner = attributes.iter().filter(|a| matches!(a.style, syn::AttrStyle::Inner(_)));
        let ends = inner.map(|a| bytes(a.span(), self.base).end);
        let at = ends.fold(bytes(block.brace_token.span.open(), self.base).end, usize::max);
        self.edits.push(Splice::insert(at, CHECK));
    }

    fn function(&mut self, sig: &syn::Signature, block: &syn::Block, attributes: &[syn::Attribute]) {
        if sig.constness.is_none() && sig.abi.is_none() {
            self.block(block, attributes);
            let visit = |checks: &mut Self| syn::visit::visit_block(checks, block);
            match sig.asyncness {
                None => self.within(block.span(), visit),
                Some(_) => self.later(|checks| checks.within(block.span(), visit)),
            }
        }
    }
}

impl<'ast> Visit<'ast> for Checks {
    fn visit_expr_for_loop(&mut self, e: &'ast syn::ExprForLoop) {
        self.block(&e.body, &e.attrs);
        // How often it runs; the elements of a collection are data.
        self.condition(e.expr.span(), e.span());
        if !matches!(&*e.expr, Expr::Range(_))
            && let Some(condition) = self.conditions.last_mut()
        {
            condition.range.end = condition.range.start;
        }
        self.rounds(e.span(), |checks| syn::visit::visit_expr_for_loop(checks, e));
    }
    fn visit_expr_while(&mut self, e: &'ast syn::ExprWhile) {
        self.block(&e.body, &e.attrs);
        let (range, guards) = (bytes(e.cond.span(), self.base), bytes(e.span(), self.base));
        self.conditions.push(Condition { range, guards });
        self.rounds(e.span(), |checks| syn::visit::visit_expr_while(checks, e));
    }
    fn visit_expr_if(&mut self, e: &'ast syn::ExprIf) {
        let otherwise = e.else_branch.as_ref().map(|(_, e)| &**e);
        let mut leaves = Leaves::default();
        leaves.visit_block(&e.then_branch);
        otherwise.into_iter().for_each(|e| leaves.visit_expr(e));
        self.branch(e.cond.span(), e.span(), &leaves, block_tells(&e.then_branch) && otherwise.is_none_or(tells));
        syn::visit::visit_expr_if(self, e);
    }
    fn visit_expr_match(&mut self, e: &'ast syn::ExprMatch) {
        let mut leaves = Leaves::default();
        e.arms.iter().for_each(|a| leaves.visit_expr(&a.body));
        let only_tells = e.arms.iter().all(|a| tells(&a.body));
        self.branch(e.expr.span(), e.span(), &leaves, only_tells);
        let guards = e.arms.iter().filter_map(|a| a.guard.as_ref());
        guards.for_each(|(_, guard)| self.branch(guard.span(), e.span(), &leaves, only_tells));
        syn::visit::visit_expr_match(self, e);
    }
    fn visit_macro(&mut self, m: &'ast syn::Macro) {
        let mentions = scan::mentions(&m.tokens.to_string());
        self.dispatches |= DISPATCHED.iter().any(|name| mentions.contains(*name));
        let name = m.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        if name.trim_start_matches("debug_").starts_with("assert") {
            // Where it fails, nothing follows.
            let range = bytes(m.tokens.span(), self.base);
            self.conditions.push(Condition { guards: range.start..range.start, range });
        }
    }
    fn visit_expr_loop(&mut self, e: &'ast syn::ExprLoop) {
        self.block(&e.body, &e.attrs);
        self.rounds(e.span(), |checks| syn::visit::visit_expr_loop(checks, e));
    }
    fn visit_expr_closure(&mut self, e: &'ast syn::ExprClosure) {
        if e.capture.is_some() {
            let mut mentioned = Mentioned::default();
            mentioned.visit_expr(&e.body);
            self.captures.push((bytes(e.span(), self.base), &mentioned.paths - &mentioned.bound(e)));
        }
        if e.constness.is_none() && e.asyncness.is_none() {
            match &*e.body {
                Expr::Block(b) if b.label.is_none() && b.attrs.is_empty() => self.block(&b.block, &[]),
                body => {
                    let range = bytes(body.span(), self.base);
                    self.edits.push(Splice::insert(range.start, format!("{{{CHECK} ")));
                    let start = self.edits.len();
                    self.within(body.span(), |checks| {
                        if checks.dispatches(|checks| checks.visit_expr(body)) {
                            checks.edits.insert(start, Splice::insert(range.start, LINE));
                        }
                    });
                    self.edits.push(Splice::insert(range.end, "}"));
                    return;
                }
            }
        }
        let visit = |checks: &mut Self| checks.within(e.body.span(), |c| syn::visit::visit_expr_closure(c, e));
        match e.asyncness {
            None => visit(self),
            Some(_) => self.later(visit),
        }
    }
    fn visit_stmt(&mut self, s: &'ast syn::Stmt) {
        let start = self.edits.len();
        if self.dispatches(|checks| syn::visit::visit_stmt(checks, s)) {
            // Before what is inserted inside of it.
            self.edits.insert(start, Splice::insert(bytes(s.span(), self.base).start, LINE));
        }
    }
    fn visit_expr_method_call(&mut self, e: &'ast syn::ExprMethodCall) {
        self.dispatches |= DISPATCHED.iter().any(|name| e.method == name);
        syn::visit::visit_expr_method_call(self, e);
    }
    fn visit_expr_async(&mut self, e: &'ast syn::ExprAsync) {
        self.later(|checks| syn::visit::visit_expr_async(checks, e));
    }
    fn visit_expr_call(&mut self, e: &'ast syn::ExprCall) {
        if let Some(name) = shows(&e.func) {
            let call = Splice::replace(bytes(e.func.span(), self.base), format!("::xlazy::{name}!"));
            self.edits.push(call.tagged(Tag::Show(name, false)));
        }
        // What is called is no value.
        if !matches!(&*e.func, Expr::Path(_)) {
            self.visit_expr(&e.func);
        }
        e.args.iter().for_each(|a| self.visit_expr(a));
    }
    fn visit_pat_ident(&mut self, p: &'ast syn::PatIdent) {
        self.declares(&p.ident);
        syn::visit::visit_pat_ident(self, p);
    }
    fn visit_item_use(&mut self, u: &'ast syn::ItemUse) {
        let around = self.glob;
        syn::visit::visit_item_use(self, u);
        if matches!(&u.tree, syn::UseTree::Path(p) if KNOWN.iter().any(|known| p.ident == known)) {
            self.glob = around;
        }
    }
    fn visit_use_glob(&mut self, _: &'ast syn::UseGlob) {
        self.glob = true;
    }
    fn visit_use_name(&mut self, u: &'ast syn::UseName) {
        self.declares(&u.ident);
    }
    fn visit_use_rename(&mut self, u: &'ast syn::UseRename) {
        self.declares(&u.rename);
    }
    fn visit_expr_path(&mut self, e: &'ast syn::ExprPath) {
        if let Some(last) = e.path.segments.last().filter(|_| e.path.segments.len() > 1) {
            self.values.push(FnValue { range: bytes(e.span(), self.base), name: last.ident.to_string() });
        }
    }
    fn visit_item_fn(&mut self, f: &'ast syn::ItemFn) {
        self.declares(&f.sig.ident);
        self.function(&f.sig, &f.block, &f.attrs);
    }
    fn visit_impl_item_fn(&mut self, f: &'ast syn::ImplItemFn) {
        self.function(&f.sig, &f.block, &f.attrs);
    }
    fn visit_trait_item_fn(&mut self, f: &'ast syn::TraitItemFn) {
        if let Some(block) = &f.default {
            self.function(&f.sig, block, &f.attrs);
        }
    }
    // Evaluated by the compiler.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'ast syn::TraitItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
}

/// Whether a macro only tells the user something, or ends with a panic.
fn told(m: &syn::Macro) -> bool {
    let name = m.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
    ["print", "eprint", "assert", "panic"].iter().any(|start| name.starts_with(start))
}

fn tells(e: &Expr) -> bool {
    match e {
        Expr::Macro(m) => told(&m.mac),
        Expr::Tuple(t) => t.elems.is_empty(),
        Expr::Block(b) => block_tells(&b.block),
        _ => false,
    }
}

fn block_tells(block: &syn::Block) -> bool {
    block.stmts.iter().all(|s| match s {
        syn::Stmt::Macro(m) => told(&m.mac),
        syn::Stmt::Expr(e, _) => tells(e),
        _ => false,
    })
}

/// Whether code may end the round of the loop that it is in, or the function.
#[derive(Default)]
struct Leaves {
    round: bool,
    function: bool,
}

impl<'ast> Visit<'ast> for Leaves {
    fn visit_expr_break(&mut self, _: &'ast syn::ExprBreak) {
        self.round = true;
    }
    fn visit_expr_continue(&mut self, _: &'ast syn::ExprContinue) {
        self.round = true;
    }
    fn visit_expr_return(&mut self, _: &'ast syn::ExprReturn) {
        self.function = true;
    }
    fn visit_expr_try(&mut self, _: &'ast syn::ExprTry) {
        self.function = true;
    }
    fn visit_expr_closure(&mut self, _: &'ast syn::ExprClosure) {}
    fn visit_item(&mut self, _: &'ast syn::Item) {}
}

/// Names that stand for values in an expression.
#[derive(Default)]
struct Mentioned {
    paths: BTreeSet<String>,
}

impl Mentioned {
    fn bound(&self, e: &syn::ExprClosure) -> BTreeSet<String> {
        let mut names = PatternNames::default();
        e.inputs.iter().for_each(|p| names.visit_pat(p));
        names.names.iter().map(|i| i.to_string()).collect()
    }
}

impl<'ast> Visit<'ast> for Mentioned {
    fn visit_expr_path(&mut self, e: &'ast syn::ExprPath) {
        self.paths.extend(e.path.get_ident().map(|i| i.to_string()));
    }
    fn visit_macro(&mut self, m: &'ast syn::Macro) {
        self.paths.extend(scan::mentions(&m.tokens.to_string()));
    }
}

/// Lets the cell's thread wait where the cell itself says `.await`, and ends the cell where it says `return`.
pub(super) struct Awaits<'a> {
    pub base: usize,
    pub edits: &'a mut Vec<Splice>,
    pub returns: &'a mut Vec<Range<usize>>,
}

impl Awaits<'_> {
    fn around(&mut self, e: &syn::Expr, (before, after): (&str, &str)) {
        let range = bytes(e.span(), self.base);
        self.edits.push(Splice::insert(range.start, before).tagged(Tag::Program));
        self.visit_expr(e);
        self.edits.push(Splice::insert(range.end, after).tagged(Tag::Program));
    }
}

enum Ends<'a> {
    Well,
    WithError(&'a syn::Expr),
    WithResult,
}

/// What a `return` at the top of a cell returns.
fn ends_with(value: &syn::Expr) -> Ends<'_> {
    let called = |e: &syn::Expr, name: &str| matches!(e, syn::Expr::Path(p) if p.path.segments.last().is_some_and(|s| s.ident == name));
    match value {
        syn::Expr::Paren(inner) => ends_with(&inner.expr),
        syn::Expr::Call(call) if called(&call.func, "Ok") => Ends::Well,
        syn::Expr::Call(call) if called(&call.func, "Err") && call.args.len() == 1 => match &call.args[0] {
            // It decides by itself what it becomes.
            syn::Expr::MethodCall(m) if m.method == "into" => Ends::Well,
            syn::Expr::Call(from) if called(&from.func, "from") => Ends::Well,
            error => Ends::WithError(error),
        },
        // Of a type of its own: what is made of branches takes the cell's.
        syn::Expr::Await(_)
        | syn::Expr::Call(_)
        | syn::Expr::Field(_)
        | syn::Expr::Macro(_)
        | syn::Expr::MethodCall(_)
        | syn::Expr::Path(_) => Ends::WithResult,
        _ => Ends::Well,
    }
}

impl<'ast> Visit<'ast> for Awaits<'_> {
    fn visit_expr_await(&mut self, e: &'ast syn::ExprAwait) {
        let inner = bytes(e.base.span(), self.base);
        let whole = bytes(e.span(), self.base);
        self.edits.push(Splice::insert(inner.start, "xlazy_rt::block_on(").tagged(Tag::Await));
        self.visit_expr(&e.base);
        self.edits.push(Splice::replace(inner.end..whole.end, ")").tagged(Tag::Await));
    }
    fn visit_expr_return(&mut self, e: &'ast syn::ExprReturn) {
        self.returns.push(bytes(e.span(), self.base));
        match &e.expr {
            // Whatever the error is, it becomes what a `?` makes of it.
            Some(value) => match ends_with(value) {
                Ends::Well => self.visit_expr(value),
                Ends::WithError(error) => self.around(error, ("::core::convert::From::from(", ")")),
                Ends::WithResult => self.around(
                    value,
                    ("::core::result::Result::map_err(", ", |xlazy_error| ::core::convert::From::from(xlazy_error))"),
                ),
            },
            None => {
                let end = bytes(e.return_token.span, self.base).end;
                self.edits.push(Splice::insert(end, " ::core::result::Result::Ok(())").tagged(Tag::Program));
            }
        }
    }
    fn visit_expr_async(&mut self, _: &'ast syn::ExprAsync) {}
    fn visit_expr_closure(&mut self, e: &'ast syn::ExprClosure) {
        // What a closure returns is its own.
        if e.asyncness.is_none() {
            let (edits, returns) = (self.edits.len(), self.returns.len());
            syn::visit::visit_expr_closure(self, e);
            self.returns.truncate(returns);
            let inside = self.edits.split_off(edits);
            self.edits.extend(inside.into_iter().filter(|e| e.tag == Tag::Await));
        }
    }
    fn visit_item(&mut self, _: &'ast syn::Item) {}
}
