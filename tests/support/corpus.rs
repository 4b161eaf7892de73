//! What the fuzzer has found to be worth keeping (`fuzz/corpus`): tests give it to what the fuzz targets call, whole and damaged.
use std::path::Path;

const ROUNDS: usize = 50;

/// The kept inputs of a target, and dice that fall the same in every run.
fn kept(target: &str) -> (Vec<Vec<u8>>, fastrand::Rng) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let files = std::fs::read_dir(folder).expect("a corpus").map(|f| f.expect("a file").path());
    let mut files: Vec<_> = files.collect();
    files.sort_unstable();
    assert!(!files.is_empty(), "nothing is kept of {target}");
    let all = files.iter().map(|f| std::fs::read(f).expect("an input")).collect();
    (all, fastrand::Rng::with_seed(0x2545_f491_4f6c_dd1d))
}

/// Runs every kept input of a target: whole, cut short or with a byte wrong, and with more and more bytes wrong.
pub fn damaged(target: &str, run: fn(&[u8])) {
    let (all, mut dice) = kept(target);
    for good in &all {
        run(good);
        let mut worse = good.clone();
        for _ in 0..ROUNDS {
            let (mut bytes, at) = (good.clone(), dice.usize(..good.len().max(1)));
            match dice.bool() {
                true => bytes.truncate(at),
                false => bytes.iter_mut().skip(at).take(1).for_each(|b| *b = dice.u8(..)),
            }
            run(&bytes);
            let at = dice.usize(..good.len().max(1));
            worse.iter_mut().skip(at).take(1).for_each(|b| *b = dice.u8(..));
            run(&worse);
        }
    }
}

/// Runs every kept input of a target that is text, and pieces of them put together anew.
#[allow(dead_code)]
pub fn joined(target: &str, run: fn(&str)) {
    let (all, mut dice) = kept(target);
    let all: Vec<String> = all.into_iter().filter_map(|bytes| String::from_utf8(bytes).ok()).collect();
    assert!(all.len() > 10, "{} texts are kept of {target}", all.len());
    all.iter().for_each(|text| run(text));
    for _ in 0..2_000 {
        let mut piece = || {
            let text: Vec<char> = all[dice.usize(..all.len())].chars().collect();
            let from = dice.usize(..=text.len());
            let to = dice.usize(from..=text.len().min(from + 60));
            text[from..to].iter().collect::<String>()
        };
        run(&[piece(), piece(), piece()].concat());
    }
}
