//! Code for each of eight devices of the CPU plugin: every collective over groups of all kinds and elements of every dtype, and
//! its gradients; what is refused.
mod support;
mod table;

use std::sync::MutexGuard;
use support::refusal;
use table::{K, number};
use xlazy::prelude::*;
use xlazy::spmd::{And, Groups, Sum};

fn alone() -> MutexGuard<'static, ()> {
    support::alone_on(8)
}

const N: usize = 8;

fn mesh() -> Mesh {
    Mesh::new(&[("a", 2), ("b", 4)])
}

fn groups() -> Vec<Vec<Vec<usize>>> {
    vec![
        vec![(0..N).collect()],
        vec![vec![0, 1, 2, 3], vec![4, 5, 6, 7]],
        pairs(),
        (0..N).map(|d| vec![d]).collect(),
        uneven(),
    ]
}

fn pairs() -> Vec<Vec<usize>> {
    vec![vec![0, 4], vec![5, 1], vec![2, 6], vec![3, 7]]
}

fn uneven() -> Vec<Vec<usize>> {
    vec![vec![0, 1, 2], vec![3], vec![7, 6, 5, 4]]
}

fn ramp() -> Tensor {
    tensor((0..N * K).map(|i| number(i / K, i % K) as f32).collect::<Vec<_>>())
}

/// Runs the same on every device; what that gives lies one behind the other.
fn each(x: &Tensor, f: impl FnOnce(&Tensor) -> Tensor) -> Vec<f32> {
    let split: &[Option<&str>] = &[Some("a+b")];
    spmd::manual(&mesh(), &[split], &[split], |x: Tensor| f(&x), x).to_vec()
}

/// Programs of so many collectives take seconds to compile: all dtypes go over all groups in the long tests, and else over pairs
/// and groups of several sizes.
fn of_all_dtypes(groups: &[Vec<usize>]) -> bool {
    groups == pairs() || groups == uneven() || std::env::var_os("XLAZY_ROUNDS").is_some()
}

#[test]
fn what_devices_tell_one_another_is_what_their_groups_have() {
    let _alone = alone();
    for groups in groups() {
        let dtypes: &[DType] = if of_all_dtypes(&groups) { &DType::ALL } else { &table::KINDS };
        table::check(&mesh(), "a+b", &groups, dtypes);
    }
}

#[test]
fn gradients_flow_through_what_devices_exchange() {
    let _alone = alone();
    for groups in groups().into_iter().filter(|groups| of_all_dtypes(groups)) {
        table::check_gradients(&mesh(), "a+b", &groups, &DType::ALL);
    }
}

#[test]
fn collectives_take_other_dimensions_scales_and_axes() {
    let _alone = alone();
    let x = tensor((0..32).collect::<Vec<i64>>()).reshape([8, 2, 2]);
    let split: &[Option<&str>] = &[Some("a+b"), None, None];
    let y = spmd::manual(
        &mesh(),
        &[split],
        &[split],
        |x: Tensor| spmd::all_to_all(&x, 1, 2, [[0, 1], [2, 3], [4, 5], [6, 7]]),
        &x,
    );
    assert_eq!(y.shape().to_vec(), [8, 1, 4]);
    // Of the devices 0 and 1 the second rows.
    assert_eq!(y.i(1).to_vec::<i64>(), [2, 3, 6, 7]);
    let sum = |of: std::ops::Range<usize>, k: usize| of.map(|d| number(d, k) as f32).sum::<f32>();
    let half = each(&ramp(), |x| spmd::reduce_scatter(Sum, x, 0.5, 0, "b"));
    assert_eq!(half[..4], [sum(0..4, 0), sum(0..4, 1), sum(0..4, 2), sum(0..4, 3)].map(|s| s / 2.0));
    let mean = each(&ramp(), |x| spmd::all_reduce(Sum, &[x], 0.125, ()).remove(0));
    assert_eq!(mean[0], sum(0..8, 0) / 8.0);
}

/// What is whole on every device gets the sum of what flows to it on each; a whole result is one, not eight.
#[test]
fn what_devices_have_together_is_counted_once() {
    let _alone = alone();
    let (x, w, c) = (
        tensor((0..8).map(f64::from).collect::<Vec<_>>()),
        tensor([2.0f64]).requires_grad_(true),
        tensor(3.0f64).requires_grad_(true),
    );
    let split: &[Option<&str>] = &[Some("a+b")];
    let outside = c.clone();
    let (total, parts) = spmd::manual(
        &mesh(),
        &[split, &[None]],
        &[&[], split],
        |(x, w): (Tensor, Tensor)| {
            let y = &x * &w * &outside;
            (spmd::all_reduce(Sum, &[&y.sum()], 1.0, Groups::All).remove(0), y)
        },
        &(x.clone(), w.clone()),
    );
    assert_eq!((total.item(), parts.to_vec::<f64>()[7]), (168.0, 42.0));
    (total + parts.sum()).backward();
    assert_eq!((w.grad().unwrap().item(), c.grad().unwrap().item()), (168.0, 112.0));
    let ids = spmd::manual(
        &mesh(),
        &[],
        &[split, split],
        |()| (spmd::axis_index("a").reshape([1]), spmd::axis_index("b").reshape([1])),
        &(),
    );
    assert_eq!(ids.0.to_vec::<i64>(), [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(ids.1.to_vec::<i64>(), [0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn what_is_wrong_is_said_by_name() {
    let _alone = alone();
    let x = ramp();
    let said = |f: &dyn Fn(&Tensor) -> Tensor| refusal(|| each(&x, f));
    let e = refusal(|| spmd::all_reduce(Sum, &[&x], 1.0, ()));
    assert!(e.contains("call it in `spmd::manual(&mesh, …)`"), "{e}");
    let e = said(&|x| spmd::all_gather(x, 0, vec![vec![0, 1], vec![2, 3]]));
    assert!(e.contains("no group has device 4"), "{e}");
    let e = said(&|x| spmd::all_gather(x, 0, vec![vec![0, 1, 1]]));
    assert!(e.contains("device 1 more than once"), "{e}");
    let e = said(&|x| spmd::all_gather(x, 0, vec![vec![0, 8]]));
    assert!(e.contains("device 8, and mesh(a=2, b=4) has the devices 0 to 7"), "{e}");
    let e = said(&|x| spmd::all_gather(x, 0, uneven()));
    assert!(e.contains("groups of [3, 1, 4] devices"), "{e}");
    let e = said(&|x| spmd::all_reduce(And, &[x], 1.0, ()).remove(0));
    assert!(e.contains("And is of bool and integers"), "{e}");
    let e = said(&|x| spmd::all_to_all(&x.i(1..), 0, 0, ()));
    assert!(e.contains("dimension 0 of size 7 does not split evenly over a group of 8 devices"), "{e}");
    let e = said(&|x| spmd::collective_permute(x, &[(0, 1), (0, 2)]));
    assert!(e.contains("a device sends once at most"), "{e}");
    let e = said(&|x| spmd::broadcast(x, 8, ()));
    assert!(e.contains("has no place 8"), "{e}");
    let e = said(&|x| x.mark_sharding(&mesh(), &[Some("a")]));
    assert!(e.contains("mark what comes out"), "{e}");
    let e = refusal(|| spmd::manual(&mesh(), &[&[Some("a+b")]], &[], |x: Tensor| x, &tensor([1.0, 2.0])));
    assert!(e.contains("operand 1: dimension 0 of size 2 does not split evenly in 8 parts"), "{e}");
    let e = refusal(|| spmd::manual(&mesh(), &[&[None]], &[], |x: Tensor| x, &tensor([1.0, 2.0])));
    assert!(e.contains("the closure gives 1 tensors, and there are 0 specs"), "{e}");
    let e = refusal(|| {
        spmd::manual(&mesh(), &[&[None]], &[&[None]], |x: Tensor| tensor([x.sum().item()]), &tensor([1.0, 2.0]))
    });
    assert!(e.contains("recorded once"), "{e}");
}
