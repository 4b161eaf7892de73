//! Programs drawn at random, warm, with one known mutation (or two): the explanation must name that class, that line, and all
//! that differs. Nothing is compiled or run (dry mode), so that thousands take a minute. `XLAZY_ROUNDS` sets how many programs
//! are drawn, `XLAZY_SEED` where they begin, `XLAZY_ONLY` which kinds of mutation; `XLAZY_SHOW=1` prints, for each kind, the
//! shortest program of which something wrong was said, `XLAZY_SHOW=2` all of them.
#[path = "../support/mod.rs"]
mod support;

mod act;
mod copies;
mod draw;
mod judge;
mod layout;
mod loaders;
mod mutate;
mod places;
mod program;
mod rates;
mod world;

#[test]
fn one_mutation_is_named_with_its_line_and_all_that_differs() {
    rates::one();
}

#[test]
fn a_mutation_of_a_copy_is_named_as_one_of_the_text_itself() {
    rates::copied();
}

#[test]
fn the_texts_of_both_programs_tell_the_same() {
    rates::texts();
}

#[test]
fn what_is_left_of_an_epoch_is_told_from_another_loaders_batches() {
    loaders::told_apart();
}

#[test]
fn of_two_mutations_both_are_told() {
    rates::two();
}
