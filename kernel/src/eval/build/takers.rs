//! Functions that take their arguments away, as rustc has said before.
use crate::eval::generate::code::Plan;
use crate::eval::parse::parsed::Parsed;
use std::collections::BTreeSet;

/// Functions that took their argument away when it was given to them last, and which argument. rustc says so when a cell
/// would keep the variable, and that costs a second compile, which the next cell need not pay for.
#[derive(Default)]
pub struct Takers(BTreeSet<(String, usize)>);

impl Takers {
    /// Plans not to keep what the cell gives to them. The types may be others this time: the cell asks rustc to refuse
    /// where a variable would still be there.
    pub fn guess(&self, parsed: &Parsed, plan: &mut Plan) {
        let taken = parsed.given.iter().filter(|g| self.0.contains(&g.by)).map(|g| g.name.clone());
        plan.guessed.extend(taken);
        plan.spent.extend(plan.guessed.iter().cloned());
    }

    /// What a compile that succeeded shows.
    pub fn remember(&mut self, parsed: &Parsed, plan: &Plan) {
        for given in &parsed.given {
            match plan.spent.contains(&given.name) {
                true => self.0.insert(given.by.clone()),
                false => self.0.remove(&given.by),
            };
        }
    }
}
