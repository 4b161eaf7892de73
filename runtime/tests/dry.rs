//! Dry mode: keys, cache, donations, healing and explanations are as they always are, and nothing is compiled or run.
use std::sync::{Mutex, MutexGuard, PoisonError};
use xlazy::insight::{Class, compilations, events, forget, healed};
use xlazy::prelude::*;
use xlazy_core::device::{go_dry, read_as};

/// One test at a time, each from the start.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    go_dry(2);
    sync();
    forget();
    read_as(0.0);
    guard
}

#[test]
fn misses_are_explained_and_hits_are_hits() {
    let _alone = alone();
    let w = Tensor::ones([8]);
    sync();
    let step = |rows: usize| {
        let y = (Tensor::from_vec(vec![1f32; rows * 8], [rows, 8]) * &w).tanh().sum();
        sync();
        y
    };
    let made = line!() - 4;
    let before = compilations().len();
    [4, 4, 2, 2, 4].into_iter().for_each(|rows| drop(step(rows)));
    let all = compilations();
    assert_eq!(all.len(), before + 2);
    let why = all.last().and_then(|c| c.why.as_ref()).expect("an explanation");
    assert_eq!((why.class, why.at.line()), (Class::Shape, made));
}

#[test]
fn buffers_are_donated_and_attributes_healed() {
    let _alone = alone();
    let x = Tensor::randn([100]);
    sync();
    for start in [0, 1, 2, 3] {
        drop(x.narrow(0, start, 10).sum());
        let _y = x.narrow(0, start, 10).sum();
        sync();
    }
    assert_eq!(healed().iter().map(|h| h.op).collect::<Vec<_>>(), ["slice"]);
    let state = Tensor::zeros([4]);
    sync();
    no_grad(|| state.add_(1.0));
    sync();
    assert_eq!(events().last().map(|e| e.donated), Some(1));
}

#[test]
fn reads_give_what_the_test_says() {
    let _alone = alone();
    let x = Tensor::ones([2]).sum();
    assert_eq!(x.item(), 0.0);
    read_as(3.0);
    assert_eq!((x.item(), Tensor::ones([2]).to_vec::<f32>()), (3.0, vec![3.0; 2]));
    assert_eq!(tensor([1i64, 2]).to_vec::<i64>(), [3, 3]);
}

#[test]
fn there_are_as_many_devices_as_are_asked_for() {
    let _alone = alone();
    assert_eq!(xlazy::devices(), ["cpu:0", "cpu:1"]);
    let y = Tensor::from_vec(vec![1f32; 2], [2]).to("cpu:1") * 2.0;
    sync();
    assert_eq!((y.device().as_str(), events().last().map(|e| e.device)), ("cpu:1", Some("cpu:1")));
}
