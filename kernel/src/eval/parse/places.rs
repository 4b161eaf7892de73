//! Where a cell's statements name its variables: those that it declares at its top, and those of earlier cells. What a variable
//! is in generated code may then be something else than a local of its name.
use super::functions::Function;
use super::open::Open;
use std::ops::Range;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Places {
    pub variables: Vec<Variable>,
    pub mentions: Vec<Mention>,
    pub assignments: Vec<Assignment>,
}

/// A variable. Two of one name are two variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    pub name: String,
    /// Where the `let` ends that declares it; none for what an earlier cell made, which may be no variable at all.
    pub declared: Option<usize>,
    /// Where that `let` begins.
    pub begins: Option<usize>,
    /// Mentioned where it must stay what it is: in a macro that nobody has taken apart, or declared in one.
    pub odd: bool,
    /// It is `Copy` by the looks of it: a number, `true`, a character.
    pub plain: bool,
    /// The arguments of the closure that it is declared as, as `Binding` has them.
    pub closure: Option<Vec<String>>,
    /// What its `let` mentions it borrows: it is a closure without `move`, or a reference to a part of that.
    pub borrows: bool,
    /// It is assigned a closure, which is of a type of its own.
    pub closure_later: bool,
    /// Declared without `mut`.
    pub fixed: bool,
    /// It is declared with its value.
    pub has_value: bool,
    /// It is not, and gets one later: `let x;`
    pub deferred: Option<Deferred>,
    /// Where it is last changed, as far as that can be seen: assigned, or borrowed to be changed.
    pub changed: Option<usize>,
    /// Where format strings name it.
    pub in_text: Vec<usize>,
    /// Its `let` leaves its type open, and does nothing else.
    pub open: Option<Open>,
    /// It is collected, and what it is collected into is said behind its `let`: nothing that is `Copy`.
    pub collected: bool,
    /// It is mentioned besides.
    pub mentioned: bool,
    /// Values without a name that its `let` borrows.
    pub temporaries: Vec<Range<usize>>,
    /// Functions that its `let` hands over by their paths.
    pub functions: Vec<Function>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Mention {
    pub variable: usize,
    pub range: Range<usize>,
    pub kind: Mentioned,
    /// The field that it is the value of, as in `Point { x }`.
    pub field: bool,
    /// A closure or future takes it along; then the range is the closure's.
    pub captured: bool,
    /// In the arguments of a macro that nobody has taken apart.
    pub in_macro: bool,
    /// A format string names it, in a closure: where it is handed to the macro as an argument.
    pub argument: Option<usize>,
    /// It is mentioned once more, and not assigned: if it is moved here, that is for rustc to tell.
    pub again: bool,
    /// In a closure, which may borrow only.
    pub in_closure: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mentioned {
    Place,
    /// Its value is taken, and it is not mentioned any more, or assigned then.
    Last,
    /// Its value is taken, alone, in the making of its next one: an assignment by its number.
    For(usize),
}

/// A `let` without a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deferred {
    /// The type that it says, and where.
    pub typed: Option<(usize, String)>,
}

/// `x = value`
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    pub variable: usize,
    pub whole: Range<usize>,
    pub value: Range<usize>,
    /// Where its name stands in a pattern: `(x, y) = value`.
    pub leaf: Option<Leaf>,
    /// The mention before it.
    pub after: Option<usize>,
    /// It happens once, or after something that may move the variable each time.
    pub follows: bool,
    /// It stands for the `let` of a variable that was moved away.
    pub declares: bool,
}

/// A name in a pattern that is assigned to.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    pub range: Range<usize>,
    /// It stands for the field of its name, too.
    pub field: bool,
}

impl Assignment {
    pub fn new(variable: usize, whole: Range<usize>, value: Range<usize>, leaf: Option<Leaf>) -> Assignment {
        let (after, follows, declares) = Default::default();
        Assignment { variable, whole, value, leaf, after, follows, declares }
    }
}

impl Places {
    /// The last variable of that name that the cell declares.
    pub fn declared(&self, name: &str) -> Option<usize> {
        self.variables.iter().rposition(|v| v.name == name && v.declared.is_some())
    }

    /// The variable of that name that earlier cells made, if this one mentions it.
    pub fn earlier(&self, name: &str) -> Option<usize> {
        self.variables.iter().position(|v| v.name == name && v.declared.is_none())
    }

    /// What is declared by the same `let`.
    pub fn beside<'a>(&'a self, open: &'a Open) -> impl Iterator<Item = (usize, &'a Variable)> {
        let same = move |v: &Variable| v.open.as_ref().is_some_and(|o| o.whole == open.whole);
        self.variables.iter().enumerate().filter(move |(_, v)| same(v))
    }

    /// What has to be declared together with that: its own `let`, those of which it is a clone, and what is a clone of them.
    pub fn together(&self, open: &Open) -> Option<Vec<usize>> {
        let opens = || self.variables.iter().filter_map(|v| v.open.as_ref());
        let mut lets = vec![&open.whole];
        while let Some(more) = opens().find_map(|o| {
            let (own, mut of) = (lets.contains(&&o.whole), o.after.iter());
            let joins = |other: &Open| lets.contains(&&other.whole) && other.joins.iter().any(|j| o.joins.contains(j));
            match own {
                true => of.find(|of| !lets.contains(of)),
                false => (of.any(|of| lets.contains(&of)) || opens().any(joins)).then_some(&o.whole),
            }
        }) {
            lets.push(more);
        }
        if !lets.iter().all(|whole| opens().any(|o| o.whole == **whole)) {
            return None;
        }
        let of = |(_, v): &(usize, &Variable)| v.open.as_ref().is_some_and(|o| lets.contains(&&o.whole));
        Some(self.variables.iter().enumerate().filter(of).map(|(n, _)| n).collect())
    }

    /// Whether a variable is mentioned there as what another one is a clone of, whose `let` runs together with its own.
    pub fn clones(&self, variable: usize, at: usize) -> bool {
        let v = &self.variables[variable];
        let own = |o: &Open| v.open.as_ref().is_some_and(|own| o.after.contains(&own.whole));
        let earlier = |o: &Open| v.declared.is_none() && o.joins.contains(&v.name);
        let mut opens = self.variables.iter().filter_map(|v| v.open.as_ref());
        opens.any(|o| o.whole.contains(&at) && (own(o) || earlier(o)))
    }

    /// Whether it is a clone or has one, which shares what it holds.
    pub fn has_clones(&self, open: &Open) -> bool {
        let mut opens = self.variables.iter().filter_map(|v| v.open.as_ref());
        !open.after.is_empty() || !open.joins.is_empty() || opens.any(|o| o.after.contains(&open.whole))
    }

    /// Where variables are mentioned, in whatever way.
    pub fn named(&self) -> impl Iterator<Item = (usize, usize)> {
        let in_text = |(n, v): (usize, &Variable)| v.in_text.iter().map(move |at| (n, *at)).collect::<Vec<_>>();
        let mentioned = self.mentions.iter().map(|m| (m.variable, m.range.start));
        mentioned.chain(self.variables.iter().enumerate().flat_map(in_text))
    }

    pub fn mentions_of(&self, variable: usize) -> impl Iterator<Item = &Mention> {
        self.mentions.iter().filter(move |m| m.variable == variable)
    }
}

impl Mention {
    /// Its value is taken, or a closure takes it along.
    pub fn takes(&self) -> bool {
        self.captured || self.kind != Mentioned::Place
    }
}

impl Variable {
    pub fn named(name: &str) -> Variable {
        let (declared, begins, odd, plain, closure, closure_later, fixed, has_value) = Default::default();
        let (name, changed, deferred, open, collected, mentioned) = (name.to_owned(), None, None, None, false, false);
        let (temporaries, functions, borrows) = Default::default();
        Variable {
            name,
            declared,
            begins,
            odd,
            plain,
            closure,
            borrows,
            closure_later,
            fixed,
            has_value,
            deferred,
            changed,
            in_text: Vec::new(),
            open,
            collected,
            mentioned,
            temporaries,
            functions,
        }
    }
}
