//! Instances of generic functions that cells call most, of the library's and of the standard library's: a cell links to what is
//! compiled here, where rustc would compile it again while somebody waits. rustc shares the instances of a crate at some levels of
//! optimisation only, which is why `Cargo.toml` names this crate's. Nobody calls these functions: what they mention is there.
use super::rt::{
    GiveMove, HoldHandle, HoldValue, Holds, KeepHandle, KeepMove, LoadHandle, LoadMove, Of, Show, ShowDebug, ShowRich,
    To,
};
use crate::data::{DataLoader, MpDeviceLoader, TensorDataset, random_split};
use crate::insight::Compilation;
use crate::nn::{self, Module};
use crate::{Tensor, optim};
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use xlazy_mime::Bundle;

/// A variable of that type, as cells load, hold and keep it.
pub trait Variable: Sized {
    fn variable(holds: Holds, value: Self) -> Self;
}

macro_rules! variables {
    ($($t:ty),* $(,)?) => { $(
        impl Variable for $t {
            fn variable(holds: Holds, value: $t) -> $t {
                let held: &mut $t = (&&&Of::value(&value)).hold(holds, 0, "", value);
                (&&&Of::<$t>::TYPE).keep("", (&Of::<$t>::TYPE).give(holds, 0, held));
                (&&&Of::<$t>::TYPE).load("", false)
            }
        }
    )* };
}
variables!(
    Tensor, Vec<Tensor>, [Tensor; 2], (Tensor, Tensor), Vec<(String, Tensor)>, Vec<f32>, Vec<f64>, Vec<i32>, Vec<i64>, Vec<usize>,
    Vec<String>, Vec<&'static str>, Vec<Vec<f32>>, Vec<Vec<f64>>, String, HashMap<String, i32>, HashMap<String, f64>,
    HashMap<String, usize>, BTreeMap<String, i32>, BTreeMap<String, f64>, BTreeMap<String, usize>, Vec<Compilation>, Bundle,
    nn::Linear, nn::Conv2d, nn::Embedding, nn::Sequential, optim::SGD, optim::Adam, optim::AdamW, DataLoader<1>, DataLoader<2>,
    TensorDataset<1>, TensorDataset<2>,
);

/// What lists of these are asked for.
pub trait Listed: Sized {
    fn listed(list: Vec<Self>, more: &[Self]) -> String;
}

macro_rules! lists {
    ($($t:ty),*) => { $(
        impl Listed for $t {
            fn listed(mut list: Vec<$t>, more: &[$t]) -> String {
                list.extend_from_slice(more);
                list.push(more[0].clone());
                let mut all: Vec<$t> = list.iter().cloned().collect();
                all.extend(Vec::<$t>::with_capacity(list.len()));
                all.extend(list.pop());
                black_box(all.clone().into_iter().next());
                format!("{all:?} {more:?}")
            }
        }
    )* };
}
lists!(f32, f64, i32, i64, usize, String, &'static str, Tensor);

macro_rules! maps {
    ($($name:ident $map:ident $value:ty;)*) => { $(
        pub fn $name(mut map: $map<String, $value>, key: &str) -> String {
            map.insert(key.to_owned(), <$value>::default());
            *map.entry(key.to_owned()).or_default() = <$value>::default();
            *map.entry(key.to_owned()).or_insert(1 as $value) += 1 as $value;
            black_box(map.get(key));
            for (key, value) in &map {
                black_box((key, value));
            }
            format!("{map:?} {:?} {}", map.keys().next(), map.contains_key(key))
        }
    )* };
}
maps! {
    counted HashMap i32; measured HashMap f64; placed HashMap usize; counted_in_order BTreeMap i32; measured_in_order BTreeMap f64;
    placed_in_order BTreeMap usize;
}

/// Batches of so many tensors each.
pub trait Batched {
    fn batched(&self) -> usize;
}

macro_rules! batches {
    ($($n:literal)*) => { $(
        impl Batched for [&Tensor; $n] {
            fn batched(&self) -> usize {
                let whole = TensorDataset::<$n>::new(*self);
                let loader = DataLoader::new(whole.subset(&[0]), 1).shuffle(true).seed(0).drop_last(true).workers(0).prefetch(0);
                for batch in &loader {
                    drop(batch);
                }
                let [some, others] = random_split(&whole, [0.5, 0.5], 0);
                let loader = MpDeviceLoader::new(DataLoader::new(some, 1));
                for (i, [first, ..]) in loader.iter().enumerate().take(DataLoader::new(others, i32::MAX as usize).len()) {
                    drop((i, first));
                }
                loader.len() + loader.samples() + whole.len() + whole.tensors().len()
            }
        }
    )* };
}
batches!(1 2 3 4 5);

macro_rules! made {
    ($($name:ident $element:ty: $size:ty;)*) => { $(
        #[track_caller]
        pub fn $name(values: Vec<$element>, size: $size) -> (Tensor, Vec<$element>) {
            let t = Tensor::from_vec(values, size);
            let all = t.to_vec();
            (t, all)
        }
    )* };
}
made! {
    from_1 f32: [usize; 1]; from_2 f32: [usize; 2]; from_3 f32: [usize; 3]; from_4 f32: [usize; 4];
    from_1i f32: [i32; 1]; from_2i f32: [i32; 2]; from_3i f32: [i32; 3]; from_4i f32: [i32; 4];
    of_1 i64: [usize; 1]; of_2 i64: [usize; 2]; of_1i i64: [i32; 1]; of_2i i64: [i32; 2]; wide_1 f64: [usize; 1]; wide_2i f64: [i32; 2];
}

macro_rules! shown {
    ($($name:ident $t:ty;)*) => { $(
        #[track_caller]
        pub fn $name(value: &$t) {
            (&&&&&Show(value)).show(To::Result);
        }
    )* };
}
shown! { tensor Tensor; bundle Bundle; tensors Vec<Tensor>; }

/// Modules as cells see them: by their type, and as one of many.
pub fn modules(linear: &nn::Linear, conv: &nn::Conv2d, x: &Tensor) -> usize {
    let all: [&dyn Module; 2] = [linear, conv];
    linear.parameters().len() + conv.parameters().len() + all.iter().map(|m| m.forward(x).numel()).sum::<usize>()
}
