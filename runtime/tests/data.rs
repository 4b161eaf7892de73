//! Loaders: what comes is what was asked for, whoever makes it, and nothing hangs whatever goes wrong.
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{Seeded, alone, compiles, refusal};
use xlazy::data::{Array, BatchSampler, Dataset, Failure, Sampler};
use xlazy::prelude::*;

/// Numbers, one a sample, with something drawn beside each.
struct Numbers {
    n: usize,
    made: Arc<AtomicUsize>,
    fails: Option<usize>,
    panics: Option<usize>,
}

fn numbers(n: usize) -> Numbers {
    Numbers { n, made: Arc::default(), fails: None, panics: None }
}

impl Dataset<2> for Numbers {
    fn len(&self) -> usize {
        self.n
    }
    fn get(&self, i: usize) -> Result<[Array; 2], Failure> {
        self.made.fetch_add(1, Ordering::SeqCst);
        if self.fails == Some(i) {
            let _: i32 = "seven".parse()?;
        }
        assert_ne!(self.panics, Some(i), "it is this one");
        Ok([(i as i64).into(), data::uniform().into()])
    }
}

type Seen = Vec<(Vec<i64>, Vec<f64>)>;

fn epoch(loader: &data::DataLoader<2>) -> Seen {
    loader.iter().map(|[x, u]| (x.to_vec::<i64>(), u.to_vec::<f64>())).collect()
}

#[test]
fn workers_change_nothing_but_who_does_it() {
    let _alone = alone();
    let mut r = Seeded(11);
    for round in 0..10 {
        let (n, size) = (r.below(23), 1 + r.below(6));
        let options = data::DataLoaderOptions {
            shuffle: r.below(2) == 0,
            seed: r.next(),
            drop_last: r.below(2) == 0,
            bucket_last: r.below(3) == 0,
            ..Default::default()
        };
        let alone = data::DataLoader::with(numbers(n), size, options);
        let with = data::DataLoader::with(numbers(n), size, options).workers(1 + r.below(4)).prefetch(r.below(5));
        for _ in 0..2 {
            let (a, b) = (epoch(&alone), epoch(&with));
            assert_eq!(a, b, "round {round}");
            assert_eq!(a.len(), alone.len());
            let mut all: Vec<i64> = a.iter().flat_map(|b| &b.0).copied().collect();
            all.sort_unstable();
            let left = if options.drop_last { n % size } else { 0 };
            all.dedup();
            assert_eq!(all.len(), n - left, "each once");
        }
        let drawn = |s: &Seen| s.iter().flat_map(|b| b.1.iter().map(|u| u.to_bits())).collect::<Vec<_>>();
        if n > size {
            assert_ne!(drawn(&epoch(&alone)), drawn(&epoch(&alone)), "epochs draw anew");
        }
    }
}

#[test]
fn parts_of_any_dataset_have_each_sample_once() {
    let _alone = alone();
    let mut r = Seeded(5);
    for _ in 0..8 {
        let (n, seed) = (1 + r.below(20), r.next());
        let cut = r.below(n + 1);
        let tensors = data::TensorDataset::new([&Tensor::arange(0, n as i64, 1), &Tensor::zeros([n as i64]).to(F64)]);
        let in_order = |part: data::DataLoader<2>| epoch(&part).into_iter().flat_map(|(x, _)| x).collect::<Vec<_>>();
        let of_tensors = data::random_split(&tensors, [cut, n - cut], seed);
        let of_samples = data::random_split(numbers(n), [cut, n - cut], seed);
        let of_samples = of_samples.map(|part| in_order(data::DataLoader::new(part, 3).workers(1)));
        assert_eq!(of_samples, of_tensors.map(|part| in_order(data::DataLoader::new(part, 3))));
        let mut all = of_samples.concat();
        all.sort();
        assert_eq!(all, (0..n as i64).collect::<Vec<_>>());
    }
    assert!(refusal(|| drop(data::random_split(numbers(3), [1, 1], 0))).contains("must add up to the 3 samples"));
}

#[test]
fn what_goes_wrong_with_a_sample_names_it() {
    let _alone = alone();
    for workers in [0, 1, 3] {
        let loader = data::DataLoader::new(Numbers { fails: Some(7), ..numbers(20) }, 4).workers(workers);
        let mut batches = loader.iter();
        assert_eq!(batches.next().unwrap()[0].to_vec::<i64>(), [0, 1, 2, 3]);
        let said = refusal(|| batches.next());
        assert!(said.contains("sample 7: invalid digit found in string"), "{workers}: {said}");
        assert_eq!(refusal(|| batches.next()), said, "it can be asked for again");
    }
    let loader = data::DataLoader::new(Numbers { panics: Some(5), ..numbers(20) }, 4).workers(2);
    let said = refusal(|| epoch(&loader));
    assert!(said.contains("sample 5: ") && said.contains("it is this one"), "{said}");
    struct Uneven;
    impl Dataset<1> for Uneven {
        fn len(&self) -> usize {
            4
        }
        fn get(&self, i: usize) -> Result<[Array; 1], Failure> {
            Ok([vec![0f32; 1 + i % 2].into()])
        }
    }
    let said = refusal(|| data::DataLoader::new(Uneven, 4).workers(1).iter().next());
    assert!(said.contains("the first is f32[1], number 2 of it is f32[2]"), "{said}");
    struct Tensors;
    impl Dataset<1> for Tensors {
        fn len(&self) -> usize {
            2
        }
        fn batch(&self, indices: &[usize]) -> [Tensor; 1] {
            [Tensor::ones([indices.len()])]
        }
    }
    assert_eq!(data::DataLoader::new(Tensors, 2).iter().count(), 1);
    let said = refusal(|| data::DataLoader::new(Tensors, 2).workers(1).iter().next());
    assert!(said.contains("has no `get`"), "{said}");
}

#[test]
fn a_loader_that_is_dropped_half_way_ends_its_workers() {
    let _alone = alone();
    let dataset = numbers(1000);
    let (made, held) = (dataset.made.clone(), Arc::new(dataset));
    let loader = data::DataLoader::new(held.clone(), 2).workers(3).prefetch(4);
    let mut batches = loader.iter();
    assert_eq!(batches.next().unwrap()[0].to_vec::<i64>(), [0, 1]);
    drop(batches);
    drop(loader);
    // The threads have a handle each until they end.
    while Arc::strong_count(&held) > 1 {
        std::thread::yield_now();
    }
    assert!(made.load(Ordering::SeqCst) <= 2 * (1 + 4 + 3), "no more is made ahead than was asked for");
}

#[test]
fn an_uneven_last_batch_is_dropped_kept_or_bucketed() {
    let _alone = alone();
    let w = Tensor::from_vec(vec![0.5f32], [1]).requires_grad_(true);
    let mut opt = optim::SGD::new(vec![w.clone()], 0.01);
    let mut run = |loader: data::DataLoader<2>| {
        let loader = data::MpDeviceLoader::new(loader);
        let mut left = vec![];
        let programs = compiles(|| {
            for [x, _] in &loader {
                left.push(x.size(0));
                opt.zero_grad();
                ((x.float() * 0.1) * &w).square().mean().backward();
                opt.step();
            }
        });
        (left, programs)
    };
    run(data::DataLoader::new(numbers(12), 3)); // what a first step compiles
    assert_eq!(run(data::DataLoader::new(numbers(8), 3)), (vec![3, 3, 2], 1));
    assert_eq!(run(data::DataLoader::new(numbers(8), 3).drop_last(true)), (vec![3, 3], 0));
    assert_eq!(run(data::DataLoader::new(numbers(8), 3).bucket_last(true)), (vec![3, 3, 2], 1), "one for all three");
    assert_eq!(run(data::DataLoader::new(numbers(11), 3).bucket_last(true)), (vec![3, 3, 3, 2], 0));
}

#[test]
fn samplers_draw_what_they_say() {
    let _alone = alone();
    let weights: Vec<f64> = vec![1.0, 0.0, 3.0];
    let drawn = data::WeightedRandomSampler::new(weights.clone(), 8000, true).indices(3, 5);
    let count = |k: usize| drawn.iter().filter(|i| **i == k).count();
    assert!(count(1) == 0 && (count(2) as f64 / 8000.0 - 0.75).abs() < 0.02, "{} {}", count(0), count(2));
    let mut first = [0; 3];
    (0..3000).for_each(|s| first[data::WeightedRandomSampler::new(weights.clone(), 1, false).indices(3, s)[0]] += 1);
    assert!(first[1] == 0 && (first[2] as f64 / 3000.0 - 0.75).abs() < 0.04, "{first:?}");
    let more = data::RandomSampler { replacement: false, num_samples: Some(7) }.indices(3, 1);
    assert_eq!((0..3).map(|k| more[..6].iter().filter(|i| **i == k).count()).collect::<Vec<_>>(), [2, 2, 2]);
    let some = data::SubsetRandomSampler(vec![4, 9, 2]);
    let loader = data::DataLoader::new(numbers(10), 2).sampler(some);
    let mut seen: Vec<i64> = epoch(&loader).into_iter().flat_map(|b| b.0).collect();
    seen.sort_unstable();
    assert_eq!((seen, loader.len()), (vec![2, 4, 9], 2));
    let mut r = Seeded(2);
    let lengths: Vec<usize> = (0..37).map(|_| 1 + r.below(40)).collect();
    let by_length =
        data::BucketBatchSampler { lengths: lengths.clone(), buckets: vec![16, 8], batch_size: 4, drop_last: false };
    let bucket = |i: usize| [8, 16].iter().filter(|b| lengths[i] > **b).count();
    let batches = by_length.batches(37, 3);
    assert!(batches.iter().all(|b| b.len() <= 4 && b.iter().all(|i| bucket(*i) == bucket(b[0]))));
    let mut all: Vec<usize> = batches.concat();
    all.sort_unstable();
    assert_eq!(all, (0..37).collect::<Vec<_>>());
    assert_ne!(batches, by_length.batches(37, 4));
    let said = refusal(|| epoch(&data::DataLoader::new(numbers(3), 2).sampler(data::SubsetRandomSampler(vec![3]))));
    assert!(said.contains("the sampler names sample 3, and the dataset has 3"), "{said}");
}

#[test]
fn datasets_are_made_of_datasets() {
    let _alone = alone();
    let part = |n: usize| -> Box<dyn Dataset<2>> { Box::new(numbers(n)) };
    let all = data::ConcatDataset::new(vec![part(3), part(0), part(2)]);
    let odd = data::Subset::new(all, vec![4, 0, 3]);
    for workers in [0, 2] {
        let loader = data::DataLoader::new(
            data::Subset::new(data::ConcatDataset::new(vec![part(3), part(2)]), vec![4, 0, 3]),
            3,
        );
        assert_eq!(epoch(&loader.workers(workers))[0].0, [1, 0, 0]);
    }
    assert_eq!(odd.len(), 3);
    let said = refusal(|| data::Subset::new(numbers(2), vec![2]));
    assert!(said.contains("there is no sample 2 among 2"), "{said}");
    let rows = data::TensorDataset::new([&Tensor::arange(0, 6, 1), &Tensor::arange(0, 6, 1).double()]);
    let plain = epoch(&data::DataLoader::new(rows.clone(), 4));
    assert_eq!(plain, epoch(&data::DataLoader::new(rows, 4).workers(2)));
}

#[test]
fn a_folder_of_pictures_is_a_dataset() {
    let _alone = alone();
    let root = std::env::temp_dir().join(format!("xlazy-pictures-{}", std::process::id()));
    let write = |path: &str, pixels: &[u8]| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, [b"P6 2 1 255\n", pixels].concat()).unwrap();
    };
    write("cat/a.ppm", &[255, 0, 0, 0, 0, 0]);
    write("dog/deep/b.ppm", &[0, 255, 0, 0, 0, 255]);
    write("dog/.hidden", &[0; 6]);
    let folder = data::ImageFolder::new(&root).unwrap();
    assert_eq!((folder.classes(), folder.samples().len()), (&["cat".to_owned(), "dog".to_owned()][..], 2));
    let folder = folder.transform(|p| p.to_tensor().normalize(&[0.0; 3], &[0.5; 3]));
    let loader = data::DataLoader::new(folder, 2).workers(1);
    let [x, y] = loader.iter().next().unwrap();
    assert_eq!((x.shape(), y.to_vec::<i64>()), (Shape::new(&[2, 3, 1, 2]), vec![0, 1]));
    assert_eq!(x.select(0, 1).flatten().to_vec::<f32>(), [0.0, 0.0, 2.0, 0.0, 0.0, 2.0]);
    std::fs::write(root.join("dog/z.jpg"), [0xff, 0xd8, 0xff]).unwrap();
    let folder = data::ImageFolder::new(&root).unwrap();
    let said = refusal(|| data::DataLoader::new(folder, 3).workers(2).iter().next());
    assert!(said.contains("sample 2: cannot read") && said.contains("z.jpg: a JPEG"), "{said}");
    let read = data::ImageFolder::new(&root).unwrap().decoder(|_| Ok(data::Picture::new(1, 1, 3, vec![1, 2, 3])));
    assert_eq!(data::DataLoader::new(read, 3).iter().next().unwrap()[0].shape(), [3, 3, 1, 1]);
    std::fs::remove_dir_all(&root).unwrap();
    assert!(data::ImageFolder::new(&root).is_err());
}

#[test]
fn tensors_that_are_read_together_are_one_program() {
    let _alone = alone();
    sync();
    let labels = Tensor::randint(0, 10, [20]);
    let images = Tensor::rand([20, 4]) + labels.view([20, 1]) * 0.1;
    let mut read = None;
    assert_eq!(compiles(|| read = Some(data::TensorDataset::new([&images, &labels]))), 1);
    assert_eq!(read.unwrap().tensors()[1].to_vec::<i64>(), labels.to_vec::<i64>());
    let x = &images * 2.0;
    let state = [("x".to_owned(), x.clone()), ("y".to_owned(), x.exp()), ("z".to_owned(), x.sum())];
    let path = std::env::temp_dir().join(format!("xlazy-together-{}.safetensors", std::process::id()));
    assert_eq!(compiles(|| nn::save(&path, &state).unwrap()), 1);
    let back = nn::load(&path).unwrap();
    assert_eq!(back.iter().find(|(n, _)| n == "x").unwrap().1.to_vec::<f32>(), x.to_vec::<f32>());
    std::fs::remove_file(path).unwrap();
}
