//! Variables that are held in boxes outside of the cell's code, so that they are there however it ends: what stands for their
//! mentions. A variable whose mentions cannot be changed stays in the code as it is.
use super::kept::{Along, along, kept};
use super::plan::{Form, Loaded, Loan, Plan};
use crate::eval::parse::functions::Closure;
use crate::eval::parse::parsed::Parsed;
use crate::eval::parse::places::{Assignment, Mention, Mentioned, Variable};
use crate::eval::text::lifetimes::{with_lifetime, with_loans};
use crate::eval::text::source::{Splice, Tag};
use std::collections::BTreeMap;

pub struct Held<'a> {
    parsed: &'a Parsed,
    loaded: &'a [Loaded],
    plan: &'a Plan,
}

/// The runtime's handles that are `Copy`, as their types are written.
const COPY: &[&str] = &[
    "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128", "usize", "f32", "f64", "bool",
    "char", "&str",
];

impl<'a> Held<'a> {
    pub fn new(parsed: &'a Parsed, loaded: &'a [Loaded], plan: &'a Plan) -> Held<'a> {
        Held { parsed, loaded, plan }
    }

    pub fn variables(&self) -> impl Iterator<Item = (usize, &'a Variable)> {
        self.parsed.places.variables.iter().enumerate()
    }

    /// What is loaded for a variable of an earlier cell.
    pub fn loaded(&self, v: &Variable) -> Option<&'a Loaded> {
        // What is tied stands in the code as it is written.
        let tied = |l: &Loaded| self.plan.tied && (l.is_view() || l.whole || l.views.is_some());
        self.loaded.iter().find(|l| v.declared.is_none() && l.name == v.name && !self.joined(&v.name) && !tied(l))
    }

    /// An earlier cell has left its type open, and this one does so, too, of a clone of it: both wait.
    pub fn joined(&self, name: &str) -> bool {
        let open = |n: &usize| self.parsed.places.variables[*n].open.as_ref();
        self.plan.pending.iter().filter_map(open).any(|o| o.joins.iter().any(|j| j == name))
    }

    /// Whether it may be held at all.
    pub fn can_hold(&self, number: usize) -> bool {
        let v = &self.parsed.places.variables[number];
        let out = self.plan.plain || self.plan.inside.contains(&number) || self.plan.borrows.contains(&number);
        let out = out || self.is_view(number);
        let deferred = || v.deferred.is_some() && self.parsed.places.assignments.iter().any(|a| a.variable == number);
        let own = || (v.has_value || deferred()) && !v.closure_later && self.visible(number, v);
        let stays = |l: &Loaded| is_copy(l) && !self.plan.framed.contains(&number) && self.back_at(number).is_none();
        let earlier = |l: &Loaded| {
            !stays(l) && !self.refers(v) && l.open.as_ref().is_none_or(|o| !o.pending || o.names.len() == 1)
        };
        let may = || if v.declared.is_some() { own() } else { self.loaded(v).is_some_and(earlier) };
        let as_written = || self.plan.as_written && self.parsed.places.mentions_of(number).any(|m| m.in_macro);
        let must_stay = out || v.odd || v.fixed && v.changed.is_some() || as_written();
        !must_stay && may()
    }

    /// Whether it is held. A variable of an earlier cell is where it may be moved, if a copy of it will not do.
    pub fn holds(&self, number: usize) -> bool {
        let v = &self.parsed.places.variables[number];
        let moves = || self.parsed.places.mentions_of(number).any(Mention::takes);
        self.can_hold(number)
            && (v.declared.is_some()
                || self.plan.framed.contains(&number)
                || self.back_at(number).is_some()
                || moves() && !self.copies(v))
    }

    /// It has a box of its own, as a variable that is held, or that borrows another one.
    pub fn is_framed(&self, number: usize) -> bool {
        self.holds(number) || self.is_view(number)
    }

    /// It borrows another variable until that is mentioned again: the cell has it as a loan for the time that it runs.
    pub fn is_view(&self, number: usize) -> bool {
        self.loaded(&self.parsed.places.variables[number]).is_some_and(|l| l.is_view() && !l.whole)
    }

    /// The cell mentions a variable that was lent to be changed, and what borrows it, and has no way to end the latter where the former
    /// is mentioned. Then it is compiled for what rustc says of them, and is not run.
    pub fn is_tied(&self) -> bool {
        if self.plan.tied {
            return true;
        }
        let between = |n: usize| self.back_at(n).is_some() && self.is_framed(n);
        let had_back = |l: &Loaded| !self.plan.plain && self.parsed.places.earlier(&l.name).is_some_and(between);
        self.loaded.iter().filter(|l| self.ends_others(l)).any(|l| !had_back(l))
    }

    /// The cell mentions it, and what borrows it, which ends there.
    fn ends_others(&self, l: &Loaded) -> bool {
        self.loaded.iter().any(|view| l.is_lent_to(&view.name)) && !self.is_reference(l)
    }

    /// Ties a variable to what it borrows; `load` is what fetches it, where it is not tied yet. That it may be had so is for rustc to say:
    /// what could be put into what it borrows stays of the type that it is.
    pub fn tied(&self, view: &Loaded, load: Option<String>) -> String {
        let name = &view.name;
        let first = load.is_some();
        let load = load.unwrap_or_default();
        if self.plan.made(view).is_some() {
            return load;
        }
        if first && !looks_only(view) && !view.whole {
            return format!("{load} let {name} = xlazy_rt::tied(xlazy_loan, {name});");
        }
        let (mutable, ty) = (if view.fixed { "" } else { "mut " }, self.plan.written_type(view));
        let short = match view.of.len() {
            1 => with_loans(&ty, "'f"),
            // What is borrowed may borrow itself.
            _ => with_lifetime(&ty, "'f"),
        };
        let was = if first { with_lifetime(&ty, "'static") } else { short.clone() };
        format!(
            "{load} let {mutable}{name} = {{ fn xlazy_tied<'f>(_: xlazy_rt::Loan<'f>, view: {was}) -> {short} {{ view }} \
             xlazy_tied(xlazy_loan, {name}) }};"
        )
    }

    /// Where a variable is had back that was lent to what the cell mentions before: in front of the statement that mentions it first.
    pub fn back_at(&self, number: usize) -> Option<usize> {
        let places = &self.parsed.places;
        self.loaded(&places.variables[number]).filter(|l| self.ends_others(l))?;
        let named = places.named().filter(|(n, _)| *n == number).map(|(_, at)| at);
        let assigned = places.assignments.iter().filter(|a| a.variable == number).map(|a| a.whole.start);
        self.parsed.statement(named.chain(assigned).min()?)
    }

    /// What ends where such a variable is had back.
    pub fn ended(&self, l: &Loaded) -> String {
        // What borrows several ends where the first of them is had back: of those in one statement that is the last variable.
        let first = |view: &String| {
            let back = |(n, v): (usize, &Variable)| {
                let of = self.loaded(v).filter(|of| of.is_lent_to(view))?;
                Some((self.back_at(n)?, std::cmp::Reverse(n), of))
            };
            self.variables().filter_map(back).min_by_key(|(at, n, _)| (*at, *n)).is_some_and(|(.., of)| of == l)
        };
        let ends = |(n, v): (usize, &Variable)| {
            let name = &v.name;
            let here = l.is_lent_to(name) && self.loaded(v).is_some() && first(name);
            let until = if self.is_view(n) { format!(" xlazy_rt::ended(xlazy_until_{n});") } else { String::new() };
            here.then(|| format!(" xlazy_f.inside({n}, \"{name}\", true);{until}"))
        };
        self.variables().filter_map(ends).collect()
    }

    /// A copy of it may be moved in its place.
    pub fn copies(&self, v: &Variable) -> bool {
        let handle = |l: &Loaded| l.handle && !is_copy(l) && !self.plan.is_made_anew(l);
        v.changed.is_none() && self.loaded(v).is_some_and(handle)
    }

    /// It is a reference to what an earlier cell has lent. A cell that moves or changes it takes a copy.
    pub fn refers(&self, v: &Variable) -> bool {
        self.loaded(v).is_some_and(|l| self.is_reference(l))
    }

    pub fn is_reference(&self, l: &Loaded) -> bool {
        let places = &self.parsed.places;
        let looks = |n: usize| {
            let v = &places.variables[n];
            let stays = |m: &Mention| m.takes() || m.in_macro && self.plan.as_written;
            v.changed.is_none() && !v.odd && !places.mentions_of(n).any(stays)
        };
        let looked_at = || places.earlier(&l.name).is_some_and(looks);
        let lent = l.lent || l.views.as_ref().is_some_and(|views| !views.change && !views.names.is_empty());
        let tied = self.plan.tied && l.views.is_some();
        let own = self.plan.copied.contains(&l.name) || self.plan.converted.contains(&l.name);
        let own = own || self.plan.plain || tied;
        lent && !own && looked_at()
    }

    /// It is a reference for as long as the cell runs.
    pub fn looks(&self, l: &Loaded) -> bool {
        l.views.is_some() && self.is_reference(l)
    }

    /// What is borrowed of it may be put into what is there longer than the cell, or is declared for longer.
    pub fn looks_for_longer(&self, l: &Loaded) -> bool {
        let lent = || self.parsed.places.earlier(&l.name).is_some_and(|n| self.plan.away.contains_key(&n));
        lent() || self.loaded.iter().any(|view| view.whole && l.is_lent_to(&view.name))
    }

    /// All that is borrowed, until it is mentioned, by what a variable may have come to hold: what stands in one statement with it, or with
    /// what does so.
    pub fn in_play(&self, number: usize) -> BTreeMap<String, bool> {
        let (places, group) = (&self.parsed.places, self.parsed.beside(number));
        let loaded = |n: &usize| self.loaded(&places.variables[*n]);
        let mut all: BTreeMap<String, bool> = BTreeMap::new();
        let mut add = |name: &String, changes: bool| *all.entry(name.clone()).or_default() |= changes;
        for l in group.iter().filter_map(loaded) {
            l.of.iter().for_each(|(of, changes)| add(of, *changes));
            if l.views.is_some() && self.looks(l) {
                add(&l.name, false);
            }
        }
        let own = |n: &usize| loaded(n).is_none_or(|l| !l.is_view());
        for n in group.iter().filter(|n| **n != number && own(n)) {
            let changes = self.plan.away.get(n).map(|loans| loans.iter().any(|l| l.changes));
            changes.into_iter().for_each(|changes| add(&places.variables[*n].name, changes));
        }
        all
    }

    /// Whether a variable can be lent from a place on: what comes behind it only looks at it.
    pub fn can_lend(&self, number: usize, from: usize) -> bool {
        let (places, v) = (&self.parsed.places, &self.parsed.places.variables[number]);
        if v.closure.is_some() && self.plan.closures.contains_key(&number) {
            return false;
        }
        let own = |l: &Loaded| !self.is_reference(l) && !l.is_view() && !self.plan.is_made_anew(l);
        let framed = v.declared.is_none() && self.loaded(v).is_some_and(own);
        let taken = |m: &Mention| m.range.start >= from && m.takes();
        let assigned = places.assignments.iter().any(|a| a.variable == number && a.whole.end > from && !a.declares);
        let changed = assigned || v.changed.is_some_and(|at| at >= from);
        (framed && !v.odd || self.holds(number)) && !changed && !places.mentions_of(number).any(taken)
    }

    /// What lends variables, before the statements that borrow them.
    pub fn loans(&self) -> Vec<Splice> {
        let loan = |(&n, loan): (&usize, &Loan)| {
            let v = &self.parsed.places.variables[n];
            let (name, at) = (&v.name, loan.at);
            let whole = whole(n, v);
            let text = match v.collected {
                _ if let Some(arguments) = &v.closure => {
                    let keep = kept(name, Some(arguments), self.level(n), Along::Lent);
                    format!(" let {name} = xlazy_f.lend_closure({n}, {whole}, |{name}| {{{keep}}});")
                }
                true => format!(" let {name} = xlazy_f.lend({n}, {whole});"),
                false if self.plan.counted => format!(" let {name} = &*{whole};"),
                false => {
                    format!(
                        " let {name} = (&&&xlazy_rt::Of::value(&*{name})).lend(xlazy_f, xlazy_of_{n}, {n}, {whole});"
                    )
                }
            };
            Splice::insert(at, text).tagged(Tag::Lend(n))
        };
        // What others look at stays where it is.
        let stays = |l: &Loaded| self.looks(l) || looks_only(l) || l.whole;
        let moves = |n: usize| !self.loaded(&self.parsed.places.variables[n]).is_some_and(stays);
        let away = |(&n, loans): (&usize, &Vec<Loan>)| {
            let loan = loans.first()?;
            let v = &self.parsed.places.variables[n];
            let name = &v.name;
            let lent = match self.is_view(n) {
                true => format!("xlazy_f.lend_view({n}, {name})"),
                false => format!(
                    "(&&&xlazy_rt::Of::value(&*{name})).lend_for_a_time(xlazy_f, {n}, {}, {})",
                    whole(n, v),
                    loan.changes
                ),
            };
            let lent = if loan.changes { lent } else { format!("&*{lent}") };
            let text = format!(" let {name} = {lent};");
            Some(Splice::insert(loan.at, text).tagged(Tag::Lend(n)))
        };
        let away = self.plan.away.iter().filter(|(n, _)| moves(**n)).filter_map(away);
        self.plan.lends.iter().map(loan).chain(away).filter(|_| !self.plan.plain).collect()
    }

    /// What stands around values without a name that stay in memory.
    fn leaks(&self) -> impl Iterator<Item = [Splice; 2]> {
        let all = self.plan.leaks.iter().flat_map(|n| self.parsed.places.variables[*n].temporaries.iter());
        all.map(|of| [Splice::insert(of.start, "(*xlazy_rt::leaked("), Splice::insert(of.end, "))")])
    }

    /// What stands around functions that are handed over.
    fn pointers(&self) -> impl Iterator<Item = [Splice; 2]> {
        let here = self.plan.functions.difference(&self.plan.pending);
        let all = here.flat_map(|n| self.parsed.places.variables[*n].functions.iter().map(|f| (f.at.start, (*n, f))));
        // Variables of one pattern have one `let`.
        all.collect::<BTreeMap<_, _>>().into_values().map(|(n, f)| {
            let around = |before, after| [Splice::insert(f.at.start, before), Splice::insert(f.at.end, after)];
            let Some(Closure { wanted, .. }) = &f.closure else {
                return match &f.signature {
                    Some(ty) => [Splice::insert(f.at.start, "("), Splice::insert(f.at.end, format!(" as {ty})"))],
                    None => around("xlazy_rt::pointer(".to_owned(), ")"),
                };
            };
            // As a `let` it tells the closure what it is called with.
            let object =
                format!("{{ let xlazy_f: ::std::boxed::Box<dyn ::core::ops::{wanted}> = ::std::boxed::Box::new(");
            around(object, "); xlazy_f }").map(|splice| splice.tagged(Tag::Boxed(n)))
        })
    }

    /// The last variable of that name that the cell declares is held.
    pub fn keeps(&self, name: &str) -> bool {
        self.parsed.places.declared(name).is_some_and(|number| self.holds(number))
    }

    /// It borrows: it ends with the cell.
    pub fn borrows(&self, name: &str) -> bool {
        self.parsed.places.declared(name).is_some_and(|number| self.plan.borrows.contains(&number))
    }

    /// How far a closure's trait is weakened.
    fn level(&self, number: usize) -> usize {
        self.plan.closures.get(&number).copied().unwrap_or(0)
    }

    fn visible(&self, number: usize, v: &Variable) -> bool {
        self.parsed.bindings.iter().any(|b| b.name == v.name) && !self.plan.pending.contains(&number)
    }

    /// A later cell declares it.
    pub fn waits(&self, name: &str) -> bool {
        self.parsed.places.declared(name).is_some_and(|number| self.plan.pending.contains(&number))
    }

    /// Those that do, and not what they shadow.
    pub fn waiting(&self) -> impl Iterator<Item = &'a Variable> {
        self.variables()
            .filter(|(n, v)| self.parsed.places.declared(&v.name) == Some(*n) && self.waits(&v.name))
            .map(|(_, v)| v)
    }

    /// Whether there is anything to hold, or to note.
    pub fn any(&self) -> bool {
        let looks = |n: usize| self.loaded(&self.parsed.places.variables[n]).is_some_and(|l| self.looks(l));
        let held = |n: usize| self.is_framed(n) || looks(n);
        self.variables().any(|(n, v)| v.declared.is_some() && self.visible(n, v) || held(n))
    }

    pub fn form(&self, number: usize) -> Option<Form> {
        let m = &self.parsed.places.mentions[number];
        let v = &self.parsed.places.variables[m.variable];
        let known = self.plan.forms.get(&number).copied();
        if self.holds(m.variable) {
            let guess = match m.kind {
                // Whether it is `Copy` is not known before its end.
                _ if v.closure.is_some() => Form::Place,
                Mentioned::For(_) | Mentioned::Last if v.collected => Form::Take,
                Mentioned::For(n) if !v.plain => Form::Give(Some(n)),
                Mentioned::Last if !v.plain && self.shows(m) => Form::Shown,
                Mentioned::Last if !v.plain => Form::Give(None),
                _ => Form::Place,
            };
            return Some(known.unwrap_or(guess));
        }
        if self.refers(v) || self.loaded(v).is_some_and(looks_only) {
            return Some(known.unwrap_or(Form::Place));
        }
        let moved = || m.takes().then_some(Form::Copied);
        if self.copies(v) && !self.plan.plain && !v.odd { known.or_else(moved) } else { None }
    }

    /// It is a part of what the cell shows.
    fn shows(&self, m: &Mention) -> bool {
        self.parsed.trailing.as_ref().is_some_and(|t| t.start <= m.range.start && m.range.end <= t.end)
    }

    fn text(&self, m: &Mention, form: Form) -> String {
        let (v, k) = (&self.parsed.places.variables[m.variable], m.variable);
        let name = &v.name;
        let whole = whole(k, v);
        match form {
            Form::Place if v.closure.is_some() => format!("((*{name}).0)"),
            Form::Take if v.closure.is_some() => format!("xlazy_f.take({k}, {whole}).0"),
            // As nobody writes it: a macro may say what it was given.
            Form::Place if m.in_macro => format!("((*{name}))"),
            Form::Place => format!("(*{name})"),
            Form::Give(None) => format!("(&&xlazy_rt::Of::value(&*{name})).give(xlazy_f, {k}, {whole})"),
            Form::Shown => format!("(&&&&xlazy_rt::Of::value(&*{name})).give(xlazy_f, {k}, {whole})"),
            Form::Give(Some(n)) => {
                format!("(&&xlazy_rt::Of::value(&*{name})).give_for(xlazy_f, {k}, {whole}, &mut xlazy_hole_{n})")
            }
            Form::Take => match self.loaded(v).filter(|l| looks_only(l)) {
                Some(l) if self.plan.away.contains_key(&k) => {
                    let ty = with_lifetime(&self.plan.written_type(l), "'static");
                    format!("xlazy_f.take_looked_at::<{ty}, _>({k}, {name})")
                }
                Some(_) => format!("xlazy_taken_{k}(xlazy_f, {name})"),
                None => format!("xlazy_f.take({k}, {whole})"),
            },
            Form::Copied => format!("::core::clone::Clone::clone(&{name})"),
        }
    }

    /// How an assignment finds a place for its value.
    pub fn assigned(&self, number: usize) -> Assigned {
        let places = &self.parsed.places;
        let a = &places.assignments[number];
        let (before, v) = (a.after.and_then(|m| self.form(m)), &places.variables[a.variable]);
        let again = self.plan.again.contains(&number);
        let first = || places.assignments.iter().position(|other| other.variable == a.variable) == Some(number);
        match before {
            Some(Form::Give(Some(n))) if n == number => Assigned::Hole,
            _ if v.deferred.is_some() && (v.fixed || again || first()) => Assigned::First,
            Some(Form::Give(_) | Form::Shown | Form::Take) => Assigned::Again,
            _ if again => Assigned::Again,
            _ => Assigned::Place,
        }
    }

    /// What stands around the value of an assignment, before all of it and behind.
    fn around(&self, n: usize) -> [String; 3] {
        let k = self.parsed.places.assignments[n].variable;
        let v = &self.parsed.places.variables[k];
        match self.assigned(n) {
            Assigned::Place => ["*".to_owned(), String::new(), String::new()],
            Assigned::Again => [String::new(), format!("xlazy_f.again({k}, "), ")".to_owned()],
            Assigned::Hole => [
                String::new(),
                format!("{{ let mut xlazy_hole_{n} = xlazy_rt::Hole::new(); let xlazy_value = "),
                format!("; xlazy_hole_{n}.fill(xlazy_f, {k}, xlazy_value) }}"),
            ],
            Assigned::First => {
                let ty = v.deferred.as_ref().and_then(|d| d.typed.as_ref()).map(|(_, ty)| format!(": {ty}"));
                let held = self.held(k, "xlazy_value");
                let after = match v.fixed {
                    true => format!("; {whole} = {held}; &*{whole} }}", whole = whole(k, v)),
                    false => format!("; {held} }}"),
                };
                [String::new(), format!("{{ let xlazy_value{} = ", ty.unwrap_or_default()), after]
            }
        }
    }

    /// The edits that the mentions need, around those that are there.
    pub fn edits(&self, there: Vec<Splice>) -> Vec<Splice> {
        let places = &self.parsed.places;
        // What is there begins blocks, and assignments stand behind that.
        let (mut first, mut next, mut last) = (Vec::new(), Vec::new(), Vec::new());
        for (n, a) in places.assignments.iter().enumerate().filter(|(_, a)| self.holds(a.variable) && !a.declares) {
            let tag = || match self.assigned(n) {
                Assigned::First => Tag::Hold(a.variable),
                _ => Tag::Assignment(n),
            };
            let [whole, before, after] = self.around(n);
            let Some(leaf) = &a.leaf else {
                next.push(Splice::insert(a.whole.start, whole).tagged(Tag::Assignment(n)));
                first.push(Splice::insert(a.value.start, before).tagged(tag()));
                last.push(Splice::insert(a.value.end, after).tagged(tag()));
                continue;
            };
            let name = &places.variables[a.variable].name;
            let field = if leaf.field { format!("{name}: ") } else { String::new() };
            if let Assigned::Place = self.assigned(n) {
                first.push(Splice::replace(leaf.range.clone(), format!("{field}(*{name})")).tagged(tag()));
                continue;
            }
            // As rustc takes it apart: a place for each value, and then they are assigned.
            let beside = |(o, other): &(usize, &Assignment)| {
                other.whole == a.whole && self.holds(other.variable) && !matches!(self.assigned(*o), Assigned::Place)
            };
            let all: Vec<usize> = places.assignments.iter().enumerate().filter(beside).map(|(o, _)| o).collect();
            let begin = if all.first() == Some(&n) { "{" } else { "" };
            let (semicolon, end) =
                (if all.first() == Some(&n) { ";" } else { "" }, if all.last() == Some(&n) { " }" } else { "" });
            let value = format!("xlazy_to_{n}");
            let (hole, assign) = match self.assigned(n) {
                Assigned::Hole => (
                    format!(" let mut xlazy_hole_{n} = xlazy_rt::Hole::new();"),
                    format!("{name} = xlazy_hole_{n}.fill(xlazy_f, {}, {value});", a.variable),
                ),
                _ => (String::new(), format!("{name} = {before}{value}{after};")),
            };
            next.push(Splice::insert(a.whole.start, format!("{begin} let {value};{hole}")).tagged(tag()));
            first.push(Splice::replace(leaf.range.clone(), format!("{field}{value}")).tagged(tag()));
            last.push(Splice::insert(a.whole.end, format!("{semicolon} {assign}{end}")).tagged(tag()));
        }
        let mut all = first;
        all.extend(there);
        all.extend(next);
        for (i, m) in places.mentions.iter().enumerate() {
            let Some(form) = self.form(i) else { continue };
            let (v, text) = (&places.variables[m.variable], self.text(m, form));
            let name = &v.name;
            if let Some(at) = m.argument {
                all.push(Splice::insert(at, format!(", {name} = {text}")).tagged(Tag::Mention(i)));
            } else if m.captured {
                let mutable = if v.fixed { "" } else { "mut " };
                let before = format!("{{ let {mutable}{name} = {text}; ");
                all.push(Splice::insert(m.range.start, before).tagged(Tag::Mention(i)));
                last.insert(0, Splice::insert(m.range.end, " }"));
            } else {
                let text = if m.field { format!("{name}: {text}") } else { text };
                all.push(Splice::replace(m.range.clone(), text).tagged(Tag::Mention(i)));
            }
        }
        for [before, after] in self.leaks().chain(self.pointers()) {
            all.insert(0, before);
            last.push(after);
        }
        all.extend(last);
        all.sort_by_key(|e| e.range.start);
        all
    }

    /// What follows each `let`.
    pub fn lets(&self) -> Vec<Splice> {
        let own = |(n, v): (usize, &Variable)| {
            let at = v.declared.filter(|_| self.visible(n, v))?;
            Some(Splice::insert(at, self.hold(n)).tagged(Tag::Hold(n)))
        };
        let typed = |(n, v): (usize, &Variable)| {
            let at = v.deferred.as_ref().filter(|_| self.holds(n))?.typed.as_ref()?.0;
            Some(Splice::insert(at, if v.fixed { "&" } else { "&mut " }).tagged(Tag::Hold(n)))
        };
        self.variables().filter_map(typed).chain(self.variables().filter_map(own)).collect()
    }

    /// Puts a variable into its box, or notes that it is not in one.
    pub fn hold(&self, n: usize) -> String {
        let v = &self.parsed.places.variables[n];
        let name = &v.name;
        let until = format!(" let xlazy_until_{n} = xlazy_rt::Until;");
        if let Some(l) = self.loaded(v).filter(|l| looks_only(l)) {
            let looked_at = format!("xlazy_f.looked_at(&xlazy_until_{n}, {n}, \"{name}\", {name})");
            if self.plan.away.contains_key(&n) {
                return format!("{until} let {name} = {looked_at};");
            }
            let ty = |lifetime: &str| with_lifetime(&self.plan.written_type(l), lifetime);
            let (lasting, short) = (ty("'static"), ty("'f"));
            return format!(
                "{until} fn xlazy_looks_{n}<'f>(at: xlazy_rt::LookedAt<'f, {lasting}>) -> xlazy_rt::LookedAt<'f, {short}> {{ at }} \
                 fn xlazy_taken_{n}<'f>(f: xlazy_rt::Holds<'_>, at: xlazy_rt::LookedAt<'f, {short}>) -> {short} \
                 {{ f.take_looked_at::<{lasting}, _>({n}, at) }} \
                 let {name} = xlazy_looks_{n}({looked_at});"
            );
        }
        if self.is_view(n) {
            let mutable = if v.fixed { "" } else { "mut " };
            return format!("{until} let {mutable}{name} = xlazy_f.view(&xlazy_until_{n}, {n}, \"{name}\", {name});");
        }
        if !self.holds(n) {
            return format!(" xlazy_f.inside({n}, \"{name}\", {});", self.plan.borrows.contains(&n));
        }
        if v.deferred.is_some() {
            let whole = if v.fixed { format!(" let {};", whole(n, v)) } else { String::new() };
            return format!(" xlazy_f.unset({n}, \"{name}\");{whole}");
        }
        let held = self.held(n, name);
        match v.fixed {
            // It may be moved, and must not be changed.
            true => {
                let whole = whole(n, v);
                // What borrows to change is no less fixed for that.
                let borrows = self.plan.views.contains_key(&n) || self.loaded(v).is_some_and(|l| l.whole);
                let lent = if borrows { "&mut *" } else { "&*" };
                format!(" let {whole} = {held}; let {name} = {lent}{whole};")
            }
            false => format!(" let mut {name} = {held};"),
        }
    }

    /// What puts a value into a box.
    fn held(&self, n: usize, value: &str) -> String {
        let v = &self.parsed.places.variables[n];
        let name = &v.name;
        if let Some(arguments) = &v.closure {
            let keep = kept(name, Some(arguments), self.level(n), along(v));
            return format!("xlazy_f.closure({n}, \"{name}\", {value}, |{name}| {{{keep}}})");
        }
        match v.collected || self.plan.values.contains(&n) {
            true => format!("xlazy_f.value({n}, \"{name}\", {value})"),
            false => format!("(&&&xlazy_rt::Of::value(&{value})).hold(xlazy_f, {n}, \"{name}\", {value})"),
        }
    }
}

/// What says in rustc's words that a variable could not be lent for good: there is no copy of it, or it is a tensor.
pub const SINGLE: &str = "xlazy_single_";
pub const TENSOR: &str = "xlazy_tensor_";

pub enum Assigned {
    Place,
    /// It was moved before, if it can be.
    Again,
    /// It moves in the making of what it is assigned.
    Hole,
    /// It has none yet: `let x;` is before.
    First,
}

/// The loan itself of what is held: what is declared without `mut` is seen through another name.
fn whole(number: usize, v: &Variable) -> String {
    if v.fixed { format!("xlazy_held_{number}") } else { v.name.clone() }
}

/// A variable that borrows another one and is of a type that the runtime cannot shorten: later cells look at it, or take it.
pub fn looks_only(l: &Loaded) -> bool {
    let ty = l.written_type.strip_prefix("::core::option::Option<").unwrap_or(&l.written_type);
    l.is_view() && !l.whole && !ty.starts_with('&') && !ty.split('<').next().is_some_and(|path| path.ends_with("::Box"))
}

fn is_copy(l: &Loaded) -> bool {
    COPY.contains(&&*l.written_type)
}
