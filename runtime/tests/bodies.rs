//! What is told of bodies of loops: how they differ, and where their ops are from.
mod support;

use support::alone;
use xlazy::prelude::*;
use xlazy::{insight, show};

#[test]
fn bodies_that_differ_in_results_in_number_or_within_are_told_apart() {
    let _alone = alone();
    let x = Tensor::ones([4, 2]);
    // How the body ends: 0 and 1 give the same ops in another order, 2 has one more, 3 and 4 differ in a loop within.
    let run = |how: usize| {
        let body = |row: Tensor| {
            let (a, b) = (row.sin(), row.cos());
            match how {
                0 => (a, b),
                1 => (b, a),
                2 => (a, b.exp()),
                3 => (a, fori_loop(0, 2, |_, x: Tensor| x.tan(), &b)),
                _ => (a, fori_loop(0, 2, |_, x: Tensor| x.tanh(), &b)),
            }
        };
        let y = map(body, &x);
        sync();
        drop(y);
    };
    let last = || insight::compilations().last().expect("it compiled").text();
    (0..2).for_each(run);
    let said = last();
    assert!(said.contains("the results of the body of scan"), "{said}");
    assert!(said.contains("(sin f32[2], cos f32[2])") && said.contains("(cos f32[2], sin f32[2])"), "{said}");
    run(0);
    run(2);
    let said = last();
    assert!(said.contains("op in the body of scan") && said.contains("exp → f32[2]"), "{said}");
    (3..5).for_each(run);
    let said = last();
    assert!(said.contains("tan → f32[2]") && said.contains("tanh → f32[2]"), "{said}");
}

#[test]
fn the_ir_shows_the_ops_of_bodies_with_their_lines() {
    let _alone = alone();
    let w = Tensor::ones([2]);
    let first = line!();
    let body = |row: Tensor| {
        let a = row.sin();
        a + &w
    };
    let y = map(body, &Tensor::ones([3, 2]));
    let ir = show::ir(&y, false).plain().to_string();
    let line =
        |op: &str| ir.lines().find(|l| l.contains('|') && l.contains(op)).unwrap_or_else(|| panic!("{op}: {ir}"));
    assert!(line("sin(").contains(&format!("bodies.rs:{}", first + 2)), "{ir}");
    assert!(line("add(").contains(&format!("bodies.rs:{}", first + 3)) && line("add(").contains("outside 0"), "{ir}");
}
