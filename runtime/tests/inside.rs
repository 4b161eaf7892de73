//! What is computed aside is what the run computed, whatever the program; and nothing else hears of it.
use xlazy::insight::{compilations, events};
use xlazy::prelude::*;
use xlazy_core::run::{Gone, last_runs, set_keeping};

/// The same numbers in every run (xorshift).
fn drawn(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |n| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % n as u64) as usize
    }
}

/// Another op on some of these, all 3 × 3.
fn grow(all: &[Tensor], below: &mut impl FnMut(usize) -> usize) -> Tensor {
    let (a, b) = (&all[below(all.len())], &all[below(all.len())]);
    match below(9) {
        0 => a + b,
        1 => a * 0.5,
        2 => a.matmul(b),
        3 => a.tanh(),
        4 => a.t() - b,
        5 => a.softmax(-1),
        6 => where_(&a.gt(b), a, b.sin()),
        7 => a.narrow(0, 0, 1) + b,
        _ => a.sum_dim(0, true) * 0.1 + b,
    }
}

// One test: they share the session's graph and the log.
#[test]
fn any_result_of_any_program_is_computed_again_aside() {
    let mut below = drawn(0x2545_f491_4f6c_dd1d);
    for round in 0..3 {
        set_keeping(round % 2 == 1);
        let values: Vec<f32> = (0..9).map(|i| (i as f32 - 4.0) * 0.25 + round as f32 * 0.1).collect();
        let mut all = vec![Tensor::from_vec(values, [3, 3])];
        sync();
        for _ in 0..12 {
            all.push(grow(&all, &mut below));
        }
        sync();
        let run = last_runs().remove(0);
        let before = (events().len(), compilations().len());
        let pending = &all[3] * 2.0;
        let wanted: Vec<u32> = (0..run.lines.len() as u32).filter(|_| below(3) > 0).collect();
        assert_eq!(run.gone(&wanted), []);
        let again = run.again(&wanted).unwrap();
        // A result that is still there is the same one, to the last bits that fusions may change.
        let held: Vec<Vec<f32>> = all.iter().map(|t| t.to_vec::<f32>()).collect();
        let mut found = 0;
        for data in &again {
            if data.ty.to_string() == "f32[3,3]" {
                let bytes = xlazy_core::device::download(data).unwrap();
                let now: Vec<f32> = bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
                let same =
                    |was: &&Vec<f32>| was.iter().zip(&now).all(|(a, b)| (a - b).abs() <= 1e-4 * a.abs().max(1.0));
                found += usize::from(held.iter().any(|was| same(&was)));
            }
        }
        assert!(found > 0, "round {round}");
        assert_eq!((events().len(), compilations().len()), before, "nobody hears of it");
        assert_eq!(pending.to_vec::<f32>().len(), 9, "what is pending is still to be run");
    }
    what_a_step_donates_is_gone_unless_it_is_kept();
}

fn what_a_step_donates_is_gone_unless_it_is_kept() {
    set_keeping(false);
    let mut w = Tensor::ones([64]) * 3.0;
    sync();
    let mut step = || {
        w = &w * 0.5 + 1.0;
        sync();
    };
    step();
    step();
    let programs = compilations().len();
    let run = last_runs().into_iter().find(|r| r.barrier).unwrap();
    let last = run.lines.len() as u32 - 1;
    assert_eq!(run.gone(&[last]).iter().map(|g| g.1).collect::<Vec<_>>(), [Gone::Donated]);
    assert!(run.again(&[last]).is_err());
    set_keeping(true);
    for _ in 0..3 {
        step();
    }
    let run = last_runs().into_iter().find(|r| r.barrier).unwrap();
    let kept = xlazy_core::device::download(&run.again(&[last]).unwrap()[0]).unwrap();
    assert_eq!(compilations().len(), programs, "the step's program stays the same");
    set_keeping(false);
    let first = f32::from_le_bytes(kept[..4].try_into().unwrap());
    // 3, 2.5, 2.25, 2.125, 2.0625, 2.03125
    assert_eq!(first, 2.03125);
}
