//! How a cell's source is generated: what is known of it beforehand, and what rustc's answers have taught.
use super::declared::OpenLet;
use crate::eval::parse::checks::FnValue;
use crate::eval::parse::places::Places;
use crate::eval::text::lifetimes::objects;
use crate::eval::text::source::Splice;
use crate::eval::text::types::with_paths;
use crate::eval::text::untrusted::{data_type, identifier};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A variable of an earlier cell that this one mentions.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    pub name: String,
    pub written_type: String,
    /// Its type was compiled again from the same definition since it was stored.
    pub adopt: bool,
    /// Of a type that is a handle for sure: no dispatch is needed, which the compiler would have to do.
    pub handle: bool,
    /// It was declared without `mut`.
    pub fixed: bool,
    /// Something borrows it that lives on: it is a reference.
    pub lent: bool,
    /// What borrows it, for as long as no cell mentions it.
    pub views: Option<Views>,
    /// What it borrows so itself, and whether to change that.
    pub of: BTreeMap<String, bool>,
    /// It does, and the cell has it as any variable.
    pub whole: bool,
    /// Its type may be decided here.
    pub open: Option<OpenLet>,
    /// The source of the cell that has decided it.
    pub made_in: Option<String>,
}

/// As types are written.
const BOX: &str = "::std::boxed::Box<";

impl Loaded {
    /// It borrows another one until that is mentioned.
    pub fn is_view(&self) -> bool {
        !self.of.is_empty()
    }

    /// Its type but for the loan that it is itself, and for what functions borrow while they run.
    fn lent_type(&self) -> String {
        let ty = self.written_type.replace("&'_ mut ", "&'_ ").replace("&'_ (dyn ", "(").replace("&'_ dyn ", "");
        let ty = ty.replace("&'_ ", "").replace(" + '_", "");
        let ty = ty.strip_prefix("::core::option::Option<").unwrap_or(&ty);
        ty.strip_prefix("&mut ").or(ty.strip_prefix('&')).unwrap_or(ty).to_owned()
    }

    /// It does, and cells may change it or take it apart, or what it refers to borrows itself, or something borrows it.
    fn needs_proof(&self) -> bool {
        let refers = || self.written_type.starts_with('&') && self.lent_type().contains(['&', '\'']);
        let part_or_box = ["::core::option::Option<", BOX].iter().any(|path| self.written_type.starts_with(path));
        self.views.is_some() || !self.fixed || part_or_box || refers()
    }

    /// It does, and is of a type that would give what it borrows to whoever calls it, for good: what functions take and give, and what
    /// traits say of an object, have lifetimes that nothing can shorten.
    pub fn gives_away(&self) -> bool {
        self.is_view() && self.cannot_be_shortened()
    }

    fn cannot_be_shortened(&self) -> bool {
        let lent = self.lent_type();
        let has_lifetimes = |ty: &str| ty.contains(['&', '\'']) || ty.contains("dyn ");
        let by_an_object = || objects(&lent).into_iter().any(|at| has_lifetimes(&lent[at.start + "dyn".len()..at.end]));
        by_an_object() || lent.contains("fn(") && has_lifetimes(&lent)
    }

    /// It borrows nothing so far, and is of a type that may.
    pub fn may_be_filled(&self) -> bool {
        let waits = self.open.as_ref().is_some_and(|open| open.pending && open.closure.is_none());
        let borrows = waits || self.written_type.contains(['&', '\'']);
        borrows && !self.whole && !self.is_view() && !self.lent && self.is_named() && !self.cannot_be_shortened()
    }

    /// Closures have no type that could be written.
    fn is_named(&self) -> bool {
        let part = self.written_type.strip_prefix("::core::option::Option<").unwrap_or(&self.written_type);
        !part.strip_prefix(BOX).is_some_and(|of| of.starts_with("dyn "))
    }

    /// What borrows and needs a proof is had as any variable is, once it is proven that what it borrows stays with it; and with it all
    /// else that borrows, which may be put into it. So is what the cell fills.
    pub fn are_whole(all: &mut [Loaded], filled: &BTreeSet<String>) {
        let is_filled = |l: &Loaded| filled.contains(&l.name) && l.may_be_filled();
        let named = |l: &Loaded| l.is_view() && l.is_named();
        let any = all.iter().any(|l| named(l) && l.needs_proof() || is_filled(l));
        all.iter_mut().for_each(|l| l.whole = any && named(l) || is_filled(l));
    }

    /// What borrows it until it is mentioned.
    pub fn lent_to(&self) -> &[String] {
        self.views.as_ref().map_or(&[], |views| &views.names)
    }

    pub fn is_lent_to(&self, name: &str) -> bool {
        self.lent_to().iter().any(|view| view == name)
    }
}

/// What borrows a variable that cells have back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Views {
    pub names: Vec<String>,
    /// Any of them may change it.
    pub change: bool,
}

/// To which variable another is lent, and at the beginning of which statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loan {
    pub to: usize,
    pub at: usize,
    /// To be changed.
    pub changes: bool,
}

/// What was learned from rustc's answer to an earlier try.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Variables that the cell moves: they cannot be put back.
    pub moved: BTreeSet<String>,
    /// Handles of `moved` that the cell changes before: what the store has of them is no longer what they are.
    pub mutated: BTreeSet<String>,
    /// Variables that the cell both declares and moves: there is nothing to store.
    pub spent: BTreeSet<String>,
    /// No variable is held, and no mention changed: what rustc says is about the cell as it is written.
    pub plain: bool,
    /// By their numbers in `Places`: variables that stay in the cell's code, those that borrow, those of earlier cells that
    /// move, and those whose type is not known when they are declared.
    pub inside: BTreeSet<usize>,
    pub borrows: BTreeSet<usize>,
    pub framed: BTreeSet<usize>,
    pub values: BTreeSet<usize>,
    /// Mentions that are not what they looked like, and assignments to what was moved.
    pub forms: BTreeMap<usize, Form>,
    pub again: BTreeSet<usize>,
    /// Variables that a later cell declares, since nothing here says of what type they are.
    pub pending: BTreeSet<usize>,
    /// Variables of earlier cells whose type is decided here, by another than was taken for want of any.
    pub open: BTreeSet<String>,
    /// Variables whose numbers are others here than the earlier cell has made them, where nothing says their type.
    pub converted: BTreeSet<String>,
    /// What is mentioned in macros that nobody has taken apart stays as it is written.
    pub as_written: bool,
    /// Variables that are lent for good.
    pub lends: BTreeMap<usize, Loan>,
    /// Copies would be counted (`Rc::strong_count`): what is borrowed is lent for a time, if that will do.
    pub counted: bool,
    /// Variables that borrow others until those are mentioned again, and where the statements begin that declare them; and those that
    /// they borrow.
    pub views: BTreeMap<usize, usize>,
    pub away: BTreeMap<usize, Vec<Loan>>,
    /// What may be lent so, once the cell has been built without: then nothing else in it has that for longer.
    pub unproven: BTreeMap<usize, Vec<Loan>>,
    /// What was lent beside others to what does not borrow it.
    pub unlent: BTreeSet<usize>,
    /// What is lent for good beside that.
    pub beside: BTreeMap<usize, Loan>,
    pub proven: bool,
    /// What borrows, and what it borrows, are what they would be in one function: that it compiles so is what is asked.
    pub tied: bool,
    /// Where tensors are moved out of what they are a part of, which keeps them.
    pub another_name: BTreeSet<usize>,
    /// Of those that borrow, to which something was lent in vain; and which would live on if what they borrow was `Clone`.
    pub in_vain: BTreeSet<usize>,
    /// Variables that cannot be lent for good: there is no copy of them.
    pub single: BTreeSet<usize>,
    /// Variables of earlier cells that are to live on with what they borrow here, and do not.
    pub filled: BTreeSet<usize>,
    pub not_clone: BTreeSet<usize>,
    /// Variables whose `let`s borrow what has no name: it stays in memory for good.
    pub leaks: BTreeSet<usize>,
    /// Variables whose `let`s have pointers to the functions that they hand over.
    pub functions: BTreeSet<usize>,
    /// Variables that are lent and of which this cell takes a copy, to change or to move it.
    pub copied: BTreeSet<String>,
    /// How far a closure's trait had to be weakened: 0 `Fn`, 1 `FnMut`, 2 `FnOnce`. By the variable's number, and by the name of what
    /// is stored behind the cell's code.
    pub closures: BTreeMap<usize, usize>,
    pub kept: BTreeMap<String, usize>,
    /// An error type has `Debug` alone.
    pub debug_errors: bool,
    /// The last expression's type is known only if it need not be shown.
    pub unshown: bool,
    /// The last expression is a `Result` of an error type that nothing decides: somebody's `main` ended in it.
    pub ends: bool,
    /// A macro returns an error: what the body returns is of that error's type.
    pub inferred: bool,
    /// There is an `.await` inside a macro: all of the cell is one future then.
    pub asynchronous: bool,
    /// `use`s of earlier cells that no longer resolve.
    pub dropped_uses: BTreeSet<String>,
    /// Paths that are private where `type_name` says they are, and where they are public.
    pub paths: BTreeMap<String, String>,
    /// Functions of the runtime that are wrapped where they are values.
    pub wrapped: BTreeSet<String>,
    /// What the prelude has and a glob of the notebook's brings, too: it is the notebook's, by this path.
    pub named: BTreeSet<String>,
    /// `display` and its like are the runtime's, whatever a glob may bring.
    pub shows: bool,
    /// It is linked to every group that is in force, and not to those alone that it seems to need.
    pub all_groups: bool,
    pub opt_level: u8,
    /// It is text of an earlier edition.
    pub older: bool,
    /// A macro looks for a `Cargo.toml` that names the crates.
    pub manifest: bool,
}

/// Behind the path of a trait of which only the methods are wanted.
pub const UNNAMED: &str = " as _";

impl Plan {
    /// The edits that an item's or a cell's functions as values need.
    pub(super) fn wrap(&self, values: &[FnValue]) -> impl Iterator<Item = Splice> {
        values.iter().filter(|v| self.wrapped.contains(&v.name)).flat_map(FnValue::wrapped)
    }

    /// The type as this plan writes it.
    pub fn written_type(&self, v: &Loaded) -> String {
        with_paths(&v.written_type, &self.paths)
    }

    /// How far the trait of what is stored by that name behind the cell's code is weakened, if it is a closure.
    pub fn level_of_kept(&self, name: &str, places: &Places) -> usize {
        let of_variable = || self.closures.get(&places.declared(name)?).copied();
        self.kept.get(name).copied().or_else(of_variable).unwrap_or(0)
    }

    /// The `let` that declares it here, if its type is to be decided here.
    pub fn made<'a>(&self, v: &'a Loaded) -> Option<&'a OpenLet> {
        v.open.as_ref().filter(|o| o.pending || self.open.contains(&v.name))
    }

    /// Some variable is of another type than it was.
    pub fn has_otherwise(&self) -> bool {
        !self.open.is_empty() || !self.converted.is_empty()
    }

    /// It is made once more here, or had as of another type.
    pub fn is_made_anew(&self, v: &Loaded) -> bool {
        self.made(v).is_some() || self.converted.contains(&v.name)
    }

    pub fn to_json(&self) -> Value {
        let loan = |n: usize, loan: &Loan| [n, loan.to, loan.at, loan.changes.into()];
        let lends: Vec<[usize; 4]> = self.lends.iter().map(|(n, l)| loan(*n, l)).collect();
        let away = self.away.iter().flat_map(|(n, all)| all.iter().map(|l| loan(*n, l)));
        let away: Vec<[usize; 4]> = away.collect();
        let forms: Vec<(usize, Option<usize>)> = self.forms.iter().map(|(n, form)| (*n, form.number())).collect();
        serde_json::json!({
            "as_written": self.as_written, "moved": self.moved, "mutated": self.mutated, "spent": self.spent, "plain": self.plain,
            "inside": self.inside, "borrows": self.borrows, "framed": self.framed, "values": self.values, "again": self.again,
            "lends": lends, "counted": self.counted, "converted": self.converted, "away": away, "views": self.views, "another_name": self.another_name, "not_clone": self.not_clone, "leaks": self.leaks, "functions": self.functions, "copied": self.copied, "pending": self.pending, "open": self.open,
            "forms": forms, "closures": self.closures, "kept": self.kept, "debug_errors": self.debug_errors,
            "asynchronous": self.asynchronous, "inferred": self.inferred, "unshown": self.unshown, "ends": self.ends,
            "dropped_uses": self.dropped_uses, "paths": self.paths, "wrapped": self.wrapped, "shows": self.shows, "named": self.named,
            "opt_level": self.opt_level, "older": self.older, "all_groups": self.all_groups,
        })
    }

    /// The cache is a file: what is not a name or a path, where it stands for one, makes it useless.
    pub fn from_json(json: &Value) -> Option<Plan> {
        let set = |key: &str| -> Option<BTreeSet<String>> {
            json.get(key)?.as_array()?.iter().map(|v| v.as_str().map(str::to_owned)).collect()
        };
        let names = |key: &str| set(key).filter(|all| all.iter().all(|name| identifier(name).is_some()));
        let numbers = |key: &str| -> Option<BTreeSet<usize>> {
            json.get(key)?.as_array()?.iter().map(|n| Some(n.as_u64()? as usize)).collect()
        };
        let pairs = |key: &str| -> Option<BTreeMap<usize, usize>> {
            let pair = |(number, of): (&String, &Value)| Some((number.parse().ok()?, of.as_u64()? as usize));
            json.get(key)?.as_object()?.iter().map(pair).collect()
        };
        let number = |all: &Value, n: usize| Some(all.get(n)?.as_u64()? as usize);
        let form = |pair: &Value| Some((number(pair, 0)?, Form::numbered(number(pair, 1)?)?));
        let loan = |all: &Value| {
            let changes = number(all, 3)? == 1;
            Some((number(all, 0)?, Loan { to: number(all, 1)?, at: number(all, 2)?, changes }))
        };
        let mut away: BTreeMap<usize, Vec<Loan>> = BTreeMap::new();
        for one in json.get("away")?.as_array()? {
            let (n, loan) = loan(one)?;
            away.entry(n).or_default().push(loan);
        }
        let path = |v: &Value| v.as_str().filter(|p| data_type(p).is_some()).map(str::to_owned);
        fn map<T>(json: &Value, key: &str, value: impl Fn(&Value) -> Option<T>) -> Option<BTreeMap<String, T>> {
            json.get(key)?.as_object()?.iter().map(|(n, v)| Some((n.clone(), value(v)?))).collect()
        }
        Some(Plan {
            moved: names("moved")?,
            mutated: names("mutated")?,
            spent: names("spent")?,
            plain: json.get("plain")?.as_bool()?,
            inside: numbers("inside")?,
            borrows: numbers("borrows")?,
            framed: numbers("framed")?,
            values: numbers("values")?,
            again: numbers("again")?,
            lends: json.get("lends")?.as_array()?.iter().map(loan).collect::<Option<_>>()?,
            converted: names("converted")?,
            counted: json.get("counted")?.as_bool()?,
            away,
            views: pairs("views")?,
            unlent: BTreeSet::new(),
            in_vain: BTreeSet::new(),
            single: BTreeSet::new(),
            filled: BTreeSet::new(),
            tied: false,
            manifest: false,
            unproven: BTreeMap::new(),
            beside: BTreeMap::new(),
            proven: true,
            another_name: numbers("another_name")?,
            not_clone: numbers("not_clone")?,
            leaks: numbers("leaks")?,
            functions: numbers("functions")?,
            copied: names("copied")?,
            pending: numbers("pending")?,
            open: names("open")?,
            forms: json.get("forms")?.as_array()?.iter().map(form).collect::<Option<_>>()?,
            closures: pairs("closures")?,
            kept: map(json, "kept", |v| Some(v.as_u64()? as usize))?,
            paths: map(json, "paths", path)?,
            opt_level: json.get("opt_level")?.as_u64()? as u8,
            debug_errors: json.get("debug_errors")?.as_bool()?,
            asynchronous: json.get("asynchronous")?.as_bool()?,
            inferred: json.get("inferred")?.as_bool()?,
            older: json.get("older")?.as_bool()?,
            all_groups: json.get("all_groups")?.as_bool()?,
            as_written: json.get("as_written")?.as_bool()?,
            unshown: json.get("unshown")?.as_bool()?,
            ends: json.get("ends")?.as_bool()?,
            dropped_uses: set("dropped_uses")?,
            wrapped: set("wrapped")?,
            shows: json.get("shows")?.as_bool()?,
            named: set("named")
                .filter(|all| all.iter().all(|path| data_type(path.trim_end_matches(UNNAMED)).is_some()))?,
        })
    }
}

/// What stands for a mention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Form {
    Place,
    /// Moves it away if its type is not `Copy`; for an assignment, by its number.
    Give(Option<usize>),
    /// As that, in what the cell shows: a tensor stays under its name, as one of an earlier cell does.
    Shown,
    Take,
    /// A clone, of what is cheap to clone.
    Copied,
}

impl Form {
    /// What rustc's answers may make of a mention, as the cache keeps it.
    const LEARNED: [Form; 3] = [Form::Place, Form::Take, Form::Copied];

    pub fn number(self) -> Option<usize> {
        Form::LEARNED.iter().position(|f| *f == self)
    }

    pub fn numbered(number: usize) -> Option<Form> {
        Form::LEARNED.get(number).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_comes_back_from_the_cache_and_no_code_with_it() {
        let names = |n: &str| BTreeSet::from([n.to_owned()]);
        let paths = |p: &str| BTreeMap::from([("::a::b::C".to_owned(), p.to_owned())]);
        let good = Plan {
            mutated: names("r#type"),
            spent: names("x"),
            paths: paths("::a::C"),
            proven: true,
            ..Plan::default()
        };
        assert_eq!(Plan::from_json(&good.to_json()), Some(good.clone()));
        let evil = "x\"); evil(); (\"";
        for bad in [
            Plan { moved: names(evil), ..good.clone() },
            Plan { mutated: names(evil), ..good.clone() },
            Plan { spent: names(evil), ..good.clone() },
            Plan { paths: paths("evil!()"), ..good },
        ] {
            assert_eq!(Plan::from_json(&bad.to_json()), None, "{bad:?}");
        }
    }
}
