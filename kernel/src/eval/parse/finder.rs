//! Finds the places where variables are named, and what happens to them there.
use super::arguments;
use super::functions::functions;
use super::open::{Kind, Means, assigned, collects, opens, untyped};
use super::places::{Assignment, Deferred, Leaf, Mention, Mentioned, Places, Variable};
use super::syntax::{
    PatternNames, apart, assigns, bound, bytes, closure, closure_arguments, expressions, ident, is_plain, names_of,
    takes, written,
};
use super::temporaries::{refers, temporaries};
use crate::eval::text::scan;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::Visit;
use syn::{Block, Expr, Local, Member, Pat, Stmt};

mod in_text;

/// What happens to a variable, in the order of the text.
struct Happening {
    variable: usize,
    at: usize,
    /// The loops and closures around, and the block.
    inside: Vec<usize>,
    block: usize,
    in_closure: bool,
    what: What,
}

enum What {
    /// Whether the value is taken, and in the making of which assignment.
    Mention {
        taken: bool,
        making: Option<usize>,
        field: bool,
        captured: bool,
        in_macro: bool,
        argument: Option<usize>,
        end: usize,
    },
    Assignment {
        number: usize,
    },
    /// In a format string, where it is what it is.
    Named,
}

/// Walks over a cell's statements.
struct Finder<'m> {
    /// Whether a macro is the notebook's own and may take names for something else than values.
    takes_names: &'m dyn Fn(&str) -> bool,
    text: &'m str,
    base: usize,
    out: Places,
    happened: Vec<Happening>,
    /// Names by what they mean, innermost last; none for what the cell's blocks, closures and patterns declare.
    scopes: Vec<BTreeMap<String, Option<usize>>>,
    inside: Vec<usize>,
    block: usize,
    blocks: usize,
    closures: usize,
    /// What is being made: assignments by their numbers, several of one pattern.
    making: Vec<usize>,
    /// Within a closure that takes along what it mentions: that.
    capture: Option<BTreeSet<usize>>,
}

/// With the variables of the cell that each statement's macro declares or mentions, and the macros that may take names for
/// something else than values.
pub fn places(
    statements: &[Stmt],
    text: &str,
    base: usize,
    by_macros: &[Vec<String>],
    takes_names: &dyn Fn(&str) -> bool,
) -> Places {
    let mut finder = Finder::new(text, base, takes_names);
    for (i, statement) in statements.iter().enumerate() {
        finder.top(statement);
        for name in by_macros.get(i).into_iter().flatten() {
            finder.declared_by_macro(name, statement);
        }
    }
    finder.finish()
}

impl<'m> Finder<'m> {
    fn new(text: &'m str, base: usize, takes_names: &'m dyn Fn(&str) -> bool) -> Finder<'m> {
        let (out, happened, inside, block, blocks, closures, making, capture) = Default::default();
        let scopes = vec![BTreeMap::new()];
        Finder { takes_names, text, base, out, happened, scopes, inside, block, blocks, closures, making, capture }
    }

    fn declared_by_macro(&mut self, name: &str, statement: &Stmt) {
        self.declare(name, bytes(statement.span(), self.base).end, Variable { odd: true, ..Variable::named(name) });
    }

    fn top(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Local(local) => {
                self.init(local);
                let PatternNames { names, immutable, .. } = bound(local);
                let init = local.init.as_ref();
                let simple = matches!(&local.pat, Pat::Ident(p) if p.by_ref.is_none())
                    || matches!(&local.pat, Pat::Type(t) if matches!(&*t.pat, Pat::Ident(p) if p.by_ref.is_none()));
                let plain = simple && init.is_some_and(|i| is_plain(&i.expr));
                let whole = bytes(statement.span(), self.base);
                let (begins, end) = (Some(whole.start), whole.end);
                let collected = simple && untyped(local).is_some_and(collects);
                let opens = opens(local, &whole, &names, self.base, &|name| self.means(name), &|name| self.like(name));
                let immutable: Vec<usize> = immutable.iter().map(|s| bytes(*s, self.base).start).collect();
                let typed = match &local.pat {
                    Pat::Type(t) if simple => Some(written(&t.ty, self.text, self.base)),
                    _ => None,
                };
                let borrows = closure(local).is_some_and(|c| c.capture.is_none()) || refers(local);
                let deferred = (init.is_none() && (typed.is_some() || !matches!(local.pat, Pat::Type(_))))
                    .then_some(Deferred { typed });
                for (ident, open) in names.into_iter().zip(opens) {
                    let (has_value, closure) = (init.is_some(), closure_arguments(local, self.text, self.base));
                    let fixed = immutable.contains(&bytes(ident.span(), self.base).start);
                    let name = ident.to_string();
                    let (temporaries, functions) = (temporaries(local, self.base), functions(local, self.base));
                    let known = Variable { temporaries, functions, borrows, ..Variable::named(&name) };
                    let deferred = deferred.clone();
                    let variable =
                        Variable { begins, plain, closure, fixed, has_value, deferred, open, collected, ..known };
                    self.declare(&name, end, variable);
                }
            }
            Stmt::Item(_) => {}
            other => self.visit_stmt(other),
        }
    }

    /// What a name means in the value of a `let`.
    fn means(&self, name: &str) -> Means {
        let Some(v) = self.own(name) else { return Means::Earlier };
        if let Some(made) = v.open.as_ref().filter(|o| o.kind == Kind::Made) {
            return Means::Made(made.whole.clone());
        }
        let open = v.open.as_ref().filter(|o| v.fixed && o.kind <= Kind::Data && o.heads.is_empty());
        let Some(open) = open else { return Means::Other };
        Means::Number(open.of.iter().cloned().chain([open.whole.clone()]).collect(), open.earlier.clone())
    }

    /// A value as that of a variable, and what it mentions of earlier cells.
    fn like(&self, name: &str) -> Option<(String, Vec<String>)> {
        if self.scopes[1..].iter().any(|scope| scope.contains_key(name)) {
            return None;
        }
        let Some(v) = self.own(name) else { return Some((name.to_owned(), vec![name.to_owned()])) };
        let open = v.open.as_ref()?;
        Some((open.like.clone()?, open.earlier.clone()))
    }

    /// A variable that the cell has declared.
    fn own(&self, name: &str) -> Option<&Variable> {
        let number = (*self.scopes[0].get(name)?)?;
        Some(&self.out.variables[number]).filter(|v| v.declared.is_some())
    }

    fn declare(&mut self, name: &str, end: usize, variable: Variable) {
        self.out.variables.push(Variable { declared: Some(end), ..variable });
        let number = self.out.variables.len() - 1;
        self.scopes[0].insert(name.to_owned(), Some(number));
    }

    fn init(&mut self, local: &Local) {
        let Some(init) = &local.init else { return };
        let wild = matches!(&local.pat, Pat::Wild(_));
        let pattern = match &local.pat {
            Pat::Type(t) => &*t.pat,
            p => p,
        };
        let by_ref = matches!(pattern, Pat::Ident(p) if p.by_ref.is_some());
        // What a pattern takes of it, rustc says.
        let all = matches!(pattern, Pat::Ident(_)) && !by_ref && !wild;
        if all {
            self.value(&init.expr)
        } else {
            self.visit_expr(&init.expr)
        }
        if let Some((_, diverge)) = &init.diverge {
            self.visit_expr(diverge);
        }
    }

    /// The variable of that name, where it is not one of a block's own.
    fn variable(&mut self, name: &str) -> Option<usize> {
        if name.starts_with(char::is_uppercase) || name == "self" {
            return None;
        }
        for scope in self.scopes.iter().rev() {
            if let Some(meaning) = scope.get(name) {
                return *meaning;
            }
        }
        self.out.variables.push(Variable::named(name));
        let number = self.out.variables.len() - 1;
        self.scopes[0].insert(name.to_owned(), Some(number));
        Some(number)
    }

    fn happens(&mut self, variable: usize, at: usize, what: What) {
        let (inside, block, in_closure) = (self.inside.clone(), self.block, self.closures > 0);
        self.happened.push(Happening { variable, at, inside, block, in_closure, what });
    }

    fn mention(&mut self, ident: &syn::Ident, taken: bool, field: bool) {
        self.mentioned(ident, taken, field, false)
    }

    fn mentioned(&mut self, ident: &syn::Ident, taken: bool, field: bool, in_macro: bool) {
        let Some(variable) = self.variable(&ident.to_string()) else { return };
        if let Some(captured) = &mut self.capture {
            captured.insert(variable);
            return;
        }
        let range = bytes(ident.span(), self.base);
        let of = |m: &usize| self.out.assignments[*m].variable == variable;
        let (making, captured, argument) = (self.making.iter().copied().find(of), false, None);
        let end = range.end;
        self.happens(variable, range.start, What::Mention { taken, making, field, captured, in_macro, argument, end });
    }

    /// An expression whose value is taken.
    fn value(&mut self, e: &Expr) {
        match e {
            Expr::Paren(p) => self.value(&p.expr),
            e => match ident(e) {
                Some(ident) => self.mention(ident, true, false),
                None => self.visit_expr(e),
            },
        }
    }

    fn scope(&mut self, names: Vec<String>, visit: impl FnOnce(&mut Self)) {
        self.scopes.push(names.into_iter().map(|n| (n, None)).collect());
        visit(self);
        self.scopes.pop();
    }

    /// What need not run, or not once.
    fn round(&mut self, span: proc_macro2::Span, visit: impl FnOnce(&mut Self)) {
        self.inside.push(bytes(span, self.base).start);
        let making = std::mem::take(&mut self.making);
        visit(self);
        self.making = making;
        self.inside.pop();
    }

    fn closure(&mut self, span: proc_macro2::Span, visit: impl FnOnce(&mut Self)) {
        self.closures += 1;
        self.round(span, visit);
        self.closures -= 1;
    }

    fn bind(&mut self, pat: &Pat) {
        let names = names_of(pat);
        if let Some(scope) = self.scopes.last_mut() {
            scope.extend(names.into_iter().map(|n| (n, None)));
        }
    }

    fn captured(&mut self, range: Range<usize>, visit: impl FnOnce(&mut Self)) {
        let outermost = self.capture.is_none();
        let captured = self.capture.take().unwrap_or_default();
        self.capture = Some(captured);
        visit(self);
        if outermost {
            for variable in self.capture.take().unwrap_or_default() {
                let (taken, making, field, captured, in_macro, argument) = (true, None, false, true, false, None);
                let (at, end) = (range.start, range.end);
                self.happens(variable, at, What::Mention { taken, making, field, captured, in_macro, argument, end });
            }
        }
    }

    /// What is named in the arguments of a macro that nobody takes apart is its value, unless the words around it say otherwise.
    fn unknown(&mut self, name: &str, m: &syn::Macro) {
        let named = arguments::named(name, &m.tokens).filter(|_| !(self.takes_names)(name));
        let Some(named) = named else { return self.odd(&m.tokens.to_string()) };
        named.others.iter().for_each(|ident| self.odd(&ident.to_string()));
        named.values.iter().for_each(|ident| self.mentioned(ident, false, false, true));
        // Those of others may take nothing but a text.
        let is_of_std = name.starts_with("assert") || name.starts_with("debug_assert");
        let handed = if is_of_std { self.handed(name, m) } else { Vec::new() };
        named.texts.iter().for_each(|text| self.named_in(text, &handed));
    }

    /// What is named where it may be anything stays what it is.
    fn odd(&mut self, tokens: &str) {
        for name in scan::mentions(tokens) {
            if let Some(variable) = self.variable(&name) {
                self.out.variables[variable].mentioned = true;
                self.out.variables[variable].odd = true;
            }
        }
    }

    fn finish(mut self) -> Places {
        // As the text has it: an assignment comes behind its value.
        self.happened.sort_by_key(|h| h.at);
        let mut last: BTreeMap<usize, usize> = BTreeMap::new();
        for h in &self.happened {
            self.out.variables[h.variable].mentioned |= !self.out.clones(h.variable, h.at);
            let next = self.happened.iter().find(|n| n.variable == h.variable && n.at > h.at);
            let again = |h: &Happening| {
                let assigned = |n: &&Happening| matches!(n.what, What::Assignment { .. }) && n.variable == h.variable;
                self.happened.iter().any(|n| assigned(&n) && n.inside.starts_with(&h.inside))
            };
            match h.what {
                What::Named => {}
                What::Mention { taken, making, field, captured, in_macro, argument, end } => {
                    let alone = |number: usize| {
                        let value = &self.out.assignments[number].value;
                        let inside = self.happened.iter().filter(|n| n.variable == h.variable && value.contains(&n.at));
                        inside.count() == 1
                    };
                    let assigned = next.filter(|n| matches!(n.what, What::Assignment { .. }));
                    let ends = match (next, assigned) {
                        (None, _) => h.inside.is_empty() || again(h),
                        (_, Some(next)) => h.inside.is_empty() && next.inside.is_empty() && next.block == h.block,
                        _ => false,
                    };
                    let kind = match making {
                        Some(number) if taken && alone(number) => Mentioned::For(number),
                        None if taken && ends && !h.in_closure => Mentioned::Last,
                        _ => Mentioned::Place,
                    };
                    let (again, in_closure) = (next.is_some() && assigned.is_none(), h.in_closure);
                    let range = h.at..end;
                    last.insert(h.variable, self.out.mentions.len());
                    let variable = h.variable;
                    self.out.mentions.push(Mention {
                        variable,
                        range,
                        kind,
                        field,
                        captured,
                        in_macro,
                        argument,
                        again,
                        in_closure,
                    });
                }
                What::Assignment { number } => {
                    let before = |b: &&Happening| {
                        b.variable == h.variable
                            && b.at < h.at
                            && b.block == h.block
                            && b.inside == h.inside
                            && matches!(b.what, What::Mention { taken: true, .. })
                    };
                    let follows = h.inside.is_empty() || self.happened.iter().any(|b| before(&b));
                    self.out.assignments[number].follows = follows;
                    self.out.assignments[number].after = last.get(&h.variable).copied();
                }
            }
        }
        self.out
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_expr(&mut self, e: &'ast Expr) {
        if let Some(ident) = ident(e) {
            return self.mention(ident, false, false);
        }
        syn::visit::visit_expr(self, e);
    }
    fn visit_local(&mut self, l: &'ast Local) {
        self.init(l);
        self.bind(&l.pat);
    }
    fn visit_block(&mut self, b: &'ast Block) {
        self.blocks += 1;
        let block = std::mem::replace(&mut self.block, self.blocks);
        let items = b.stmts.iter().filter_map(|s| match s {
            Stmt::Item(syn::Item::Fn(f)) => Some(f.sig.ident.to_string()),
            _ => None,
        });
        self.scope(items.collect(), |f| b.stmts.iter().for_each(|s| f.visit_stmt(s)));
        self.block = block;
    }
    fn visit_item(&mut self, _: &'ast syn::Item) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_pat(&mut self, _: &'ast Pat) {}

    fn visit_expr_closure(&mut self, e: &'ast syn::ExprClosure) {
        let names = e.inputs.iter().flat_map(names_of).collect();
        let body = |f: &mut Self| f.scope(names, |f| f.closure(e.span(), |f| f.visit_expr(&e.body)));
        match e.capture {
            Some(_) => self.captured(bytes(e.span(), self.base), body),
            None => body(self),
        }
    }
    fn visit_expr_async(&mut self, e: &'ast syn::ExprAsync) {
        let body = |f: &mut Self| f.closure(e.span(), |f| f.visit_block(&e.block));
        match e.capture {
            Some(_) => self.captured(bytes(e.span(), self.base), body),
            None => body(self),
        }
    }
    fn visit_expr_for_loop(&mut self, e: &'ast syn::ExprForLoop) {
        self.value(&e.expr);
        self.scope(names_of(&e.pat), |f| f.round(e.span(), |f| f.visit_block(&e.body)));
    }
    fn visit_expr_while(&mut self, e: &'ast syn::ExprWhile) {
        self.scope(Vec::new(), |f| {
            f.round(e.span(), |f| {
                f.visit_expr(&e.cond);
                f.visit_block(&e.body);
            });
        });
    }
    fn visit_expr_loop(&mut self, e: &'ast syn::ExprLoop) {
        self.round(e.span(), |f| f.visit_block(&e.body));
    }
    fn visit_expr_if(&mut self, e: &'ast syn::ExprIf) {
        self.scope(Vec::new(), |f| {
            f.visit_expr(&e.cond);
            f.visit_block(&e.then_branch);
        });
        if let Some((_, otherwise)) = &e.else_branch {
            self.visit_expr(otherwise);
        }
    }
    fn visit_expr_let(&mut self, e: &'ast syn::ExprLet) {
        self.visit_expr(&e.expr);
        self.bind(&e.pat);
    }
    fn visit_arm(&mut self, a: &'ast syn::Arm) {
        self.scope(names_of(&a.pat), |f| {
            if let Some((_, guard)) = &a.guard {
                f.visit_expr(guard);
            }
            f.value(&a.body);
        });
    }
    fn visit_expr_call(&mut self, e: &'ast syn::ExprCall) {
        self.visit_expr(&e.func);
        e.args.iter().for_each(|a| self.value(a));
    }
    fn visit_expr_method_call(&mut self, e: &'ast syn::ExprMethodCall) {
        if takes(e) {
            self.value(&e.receiver)
        } else {
            self.visit_expr(&e.receiver)
        }
        e.args.iter().for_each(|a| self.value(a));
    }
    fn visit_expr_binary(&mut self, e: &'ast syn::ExprBinary) {
        use syn::BinOp::{Add, Div, Mul, Rem, Sub};
        if matches!(e.op, Add(_) | Sub(_) | Mul(_) | Div(_) | Rem(_)) {
            self.value(&e.left);
            self.value(&e.right);
        } else {
            if assigns(&e.op) {
                self.changes(&e.left, false);
            }
            syn::visit::visit_expr_binary(self, e);
        }
    }
    fn visit_expr_reference(&mut self, e: &'ast syn::ExprReference) {
        if e.mutability.is_some() {
            self.changes(&e.expr, false);
        }
        self.visit_expr(&e.expr);
    }
    fn visit_expr_assign(&mut self, e: &'ast syn::ExprAssign) {
        self.changes(&e.left, true);
        if self.capture.is_some() {
            return syn::visit::visit_expr_assign(self, e);
        }
        let (whole, value) = (bytes(e.span(), self.base), bytes(e.right.span(), self.base));
        let before = self.out.assignments.len();
        match ident(&e.left).and_then(|i| self.variable(&i.to_string())) {
            Some(variable) => {
                self.out.variables[variable].closure_later |= matches!(&*e.right, Expr::Closure(_));
                self.out.assignments.push(Assignment::new(variable, whole, value.clone(), None));
            }
            None => {
                let leaves = self.leaves(&e.left);
                self.out.assignments.extend(
                    leaves
                        .into_iter()
                        .map(|(variable, leaf)| Assignment::new(variable, whole.clone(), value.clone(), Some(leaf))),
                );
            }
        }
        let numbers: Vec<usize> = (before..self.out.assignments.len()).collect();
        self.open(e, &numbers);
        let making = std::mem::replace(&mut self.making, numbers.clone());
        self.value(&e.right);
        self.making = making;
        for number in numbers {
            // Behind the mentions in its value.
            self.happens(self.out.assignments[number].variable, value.end, What::Assignment { number });
        }
    }
    fn visit_field_value(&mut self, v: &'ast syn::FieldValue) {
        match (&v.member, &v.colon_token) {
            (Member::Named(name), None) => self.mention(name, true, true),
            _ => self.value(&v.expr),
        }
    }
    fn visit_expr_tuple(&mut self, e: &'ast syn::ExprTuple) {
        e.elems.iter().for_each(|a| self.value(a));
    }
    fn visit_expr_array(&mut self, e: &'ast syn::ExprArray) {
        e.elems.iter().for_each(|a| self.value(a));
    }
    fn visit_macro(&mut self, m: &'ast syn::Macro) {
        let name = m.path.segments.last().map(|s| s.ident.to_string()).unwrap_or_default();
        if name == "stringify" {
            return;
        }
        let Some(arguments) = expressions(&name, m) else { return self.unknown(&name, m) };
        let handed = self.handed(&name, m);
        for (argument, taken) in &arguments {
            self.named(argument, &handed);
            match argument {
                // `println!("{n}", n = x)`
                Expr::Assign(a) if !taken => self.visit_expr(&a.right),
                e if *taken => self.value(e),
                e => self.visit_expr(e),
            }
        }
    }
}

impl Finder<'_> {
    /// Variables to which an assignment to a pattern gives values. What is assigned to besides (`v[i]`) is mentioned; where
    /// that mentions one of the variables, it matters which comes first, and they are places all alike.
    fn leaves(&mut self, pattern: &Expr) -> Vec<(usize, Leaf)> {
        let (mut named, mut others) = (Vec::new(), Vec::new());
        apart(pattern, false, &mut named, &mut others);
        let mut own = Vec::new();
        for (ident, field) in &named {
            let (name, range) = (ident.to_string(), bytes(ident.span(), self.base));
            own.extend(self.variable(&name).map(|variable| (variable, Leaf { range, field: *field })));
        }
        let before = self.happened.len();
        others.iter().for_each(|e| self.visit_expr(e));
        if self.happened[before..].iter().any(|h| own.iter().any(|(variable, _)| *variable == h.variable)) {
            own.clear();
            named.into_iter().for_each(|(ident, field)| self.mention(ident, false, field));
        }
        own
    }

    /// A variable whose `let` says neither value nor type is open if all that it is assigned leaves that open.
    fn open(&mut self, e: &syn::ExprAssign, numbers: &[usize]) {
        let all = assigned(e, self.base, &|name| self.like(name));
        for number in numbers {
            let variable = self.out.assignments[*number].variable;
            let v = &self.out.variables[variable];
            if v.deferred.as_ref().is_none_or(|d| d.typed.is_some()) {
                continue;
            }
            let open = all.iter().find(|(name, _)| *name == v.name).map(|(_, open)| open.clone());
            let first = self.out.assignments.iter().filter(|a| a.variable == variable).count() == 1;
            let v = &mut self.out.variables[variable];
            v.open = if first { open } else { v.open.take().filter(|_| open.is_some()) };
        }
    }

    /// What changes a variable, or a part of it; what is `assigned` as a whole may get its first value there.
    fn changes(&mut self, whole: &Expr, assigned: bool) {
        let mut place = whole;
        loop {
            place = match place {
                Expr::Field(f) => &f.base,
                Expr::Index(i) => &i.expr,
                Expr::Paren(p) => &p.expr,
                Expr::Tuple(t) => return t.elems.iter().for_each(|e| self.changes(e, assigned)),
                Expr::Array(a) => return a.elems.iter().for_each(|e| self.changes(e, assigned)),
                Expr::Call(c) => return c.args.iter().for_each(|e| self.changes(e, assigned)),
                Expr::Struct(s) => return s.fields.iter().for_each(|f| self.changes(&f.expr, assigned)),
                _ => break,
            }
        }
        if let Some(variable) = ident(place).and_then(|i| self.variable(&i.to_string())) {
            let at = bytes(place.span(), self.base).start;
            let v = &mut self.out.variables[variable];
            if !(assigned && v.deferred.is_some() && v.fixed && ident(whole).is_some()) {
                v.changed = v.changed.max(Some(at));
            }
        }
    }
}

#[cfg(test)]
mod tests;
