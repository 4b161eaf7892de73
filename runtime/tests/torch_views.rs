//! Writes through views, indices and masks do what PyTorch does: programs that `scripts/torch_views.py` has drawn, with what
//! PyTorch made of them and what it refused. `XLAZY_TORCH_VIEWS=FILE` runs those of another file.
mod support;

use serde_json::Value as Json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use support::alone;
use xlazy::prelude::*;

fn view(act: &Json, x: &Tensor) -> Tensor {
    let n = numbers(act);
    match act["view"].as_str().unwrap() {
        "select" => x.select(n[0], n[1]),
        "narrow" => x.narrow(n[0], n[1], n[2]),
        "slice" => x.slice(n[0], n[1], n[2], n[3]),
        "expand" => x.expand(n),
        "unfold" => x.unfold(n[0], n[1] as usize, n[2] as usize),
        "chunk" => x.chunk(n[0] as usize, n[1])[n[2] as usize].clone(),
        "split" => x.split(n[0] as usize, n[1])[n[2] as usize].clone(),
        "at" => x.i((At::Ellipsis, n[0] % x.size(-1) as i64)),
        "transpose" => x.transpose(n[0], n[1]),
        "permute" => x.permute(n),
        "diagonal" => x.diagonal(0, n[0], n[1]),
        "movedim" => x.movedim(vec![n[0]], vec![n[1]]),
        "squeeze" => x.squeeze_dim(n[0]),
        "unsqueeze" => x.unsqueeze(n[0]),
        "flatten" => x.flatten(),
        "detach" => x.detach(),
        other => panic!("{other}"),
    }
}

/// What is written to the places of an index: numbers that count up from `v`.
fn rows(x: &Tensor, dim: i64, at: &[i64], v: i64) -> Tensor {
    let mut shape = x.shape().to_vec();
    shape[dim as usize] = at.len();
    let count = shape.iter().product::<usize>() as i64;
    (Tensor::arange(0, count, 1).double() + v).reshape(shape)
}

/// Positions along a dimension, spread over all others.
fn within(x: &Tensor, dim: i64, at: &[i64]) -> Tensor {
    let mut shape = x.shape().to_vec();
    shape[dim as usize] = at.len();
    let mut flat = vec![1i64; shape.len()];
    flat[dim as usize] = -1;
    tensor(at.to_vec()).reshape(flat).expand(shape)
}

fn write(act: &Json, x: &Tensor, y: &Tensor) {
    let n = numbers(act);
    let v = |i: usize| n[i] as f64;
    match act["write"].as_str().unwrap() {
        "add" => x.add_(n[0]),
        "mul" => x.mul_(n[0]),
        "fill" => x.fill_(n[0]),
        "zero" => x.zero_(),
        "neg" => x.neg_(),
        "clamp" => x.clamp_(n[0], n[1]),
        "masked_fill" => x.masked_fill_(&x.gt(n[0]), n[1]),
        "set_mask" => x.set(x.lt(n[0]), v(1)),
        "copy_sum" => x.copy_(y.sum().clamp(-50, 50)),
        "sub_sum" => x.sub_(y.sum().clamp(-50, 50)),
        "copy" => x.copy_(y),
        "unsqueeze_" => x.unsqueeze_(n[0]),
        "transpose_" => x.transpose_(n[0], n[1]),
        "swapaxes_" => x.swapaxes_(n[0], n[1]),
        "squeeze_" => x.squeeze_dim_(n[0]),
        "t_" => x.t_(),
        "lt" => x.lt_(n[0]),
        "eq" => x.eq_(n[0]),
        "fill_diagonal" => x.fill_diagonal_(n[0], false),
        "tril" => x.tril_(n[0]),
        "cumsum" => x.cumsum_(n[0]),
        "index_fill" => x.index_fill_(n[0], &tensor(n[2..].to_vec()), n[1]),
        "index_add" => x.index_add_(n[0], &tensor(n[2..].to_vec()), &rows(x, n[0], &n[2..], n[1])),
        "index_copy" => x.index_copy_(n[0], &tensor(n[2..].to_vec()), &rows(x, n[0], &n[2..], n[1])),
        "scatter" => x.scatter_(n[0], &within(x, n[0], &n[2..]), rows(x, n[0], &n[2..], n[1])),
        "scatter_add" => x.scatter_add_(n[0], &within(x, n[0], &n[2..]), rows(x, n[0], &n[2..], n[1])),
        "index_put" => x.index_put_(&[Some(&tensor(n[1..].to_vec()))], v(0), true),
        "set_slice" if x.dim() == 1 => x.set(n[0]..n[1], v(2)),
        "set_slice" => x.set((At::Ellipsis, n[0]..n[1]), v(2)),
        "set_two" => x.set((n[0], At::Ellipsis, n[1]), v(2)),
        "set_index" => x.set(tensor(n[1..].to_vec()), v(0)),
        other => panic!("{other}"),
    };
}

fn numbers(act: &Json) -> Vec<i64> {
    act["numbers"].as_array().unwrap().iter().map(|n| n.as_i64().unwrap()).collect()
}

/// All tensors of a program at its end.
fn done(acts: &[Json]) -> Vec<Tensor> {
    let start = |shape: &[usize]| {
        let count = shape.iter().product::<usize>() as i64;
        (Tensor::arange(0, count, 1).remainder(7) - 3).double().reshape(shape).copy()
    };
    let mut tensors: Vec<Tensor> = [&[3, 4][..], &[2, 3, 2], &[6]].map(start).to_vec();
    for (k, act) in acts.iter().enumerate() {
        let tensor = |name: &str| tensors[act[name].as_u64().unwrap() as usize].clone();
        if act.get("view").is_some() {
            let made = view(act, &tensor("of"));
            assert_eq!(made.shape().to_vec(), shape(act), "act {k}, {act}");
            tensors.push(made);
            continue;
        }
        let said = catch_unwind(AssertUnwindSafe(|| write(act, &tensor("to"), &tensor("from"))));
        match (said, act.get("refused")) {
            (Ok(()), None) | (Err(_), Some(_)) => {}
            (Ok(()), Some(why)) => panic!("act {k}, {act} is not refused; torch: {why}"),
            (Err(e), None) => panic!("act {k}, {act} is refused: {:?}", e.downcast_ref::<String>()),
        }
    }
    tensors
}

fn shape(act: &Json) -> Vec<usize> {
    act["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect()
}

#[test]
fn programs_that_torch_has_run_give_what_torch_gave() {
    let _alone = alone();
    let text = match std::env::var("XLAZY_TORCH_VIEWS") {
        Ok(file) => std::fs::read_to_string(file).expect("a file of programs"),
        _ => include_str!("torch/views.json").to_owned(),
    };
    let programs: Vec<Json> = serde_json::from_str(&text).unwrap();
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let ran: Vec<_> =
        programs.iter().map(|p| catch_unwind(AssertUnwindSafe(|| done(p["acts"].as_array().unwrap())))).collect();
    std::panic::set_hook(hook);
    let mut wrong = vec![];
    // what several programs left pending is run as one
    sync();
    for (n, (program, ran)) in programs.iter().zip(ran).enumerate() {
        match ran {
            Err(e) => wrong.push(format!("program {n}: {}", e.downcast_ref::<String>().expect("a sentence"))),
            Ok(tensors) => {
                for (k, (ours, theirs)) in tensors.iter().zip(program["values"].as_array().unwrap()).enumerate() {
                    let theirs: Vec<f64> = theirs.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
                    let ours = ours.to_vec::<f64>();
                    if ours != theirs {
                        wrong.push(format!("program {n}, tensor {k}: {ours:?}, torch {theirs:?}"));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
