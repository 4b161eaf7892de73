//! What is done to pictures gives the pixels that torchvision gives with PIL.
use serde_json::Value;
use std::collections::BTreeSet;
use xlazy::data::{Array, DataLoader, Dataset, Failure, Picture};

fn bytes(v: &Value) -> Vec<u8> {
    v.as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as u8).collect()
}

#[test]
fn pixels_are_torchvisions() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/torch/pictures.json");
    let spec: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let size = |name: &str| spec[name].as_u64().unwrap() as usize;
    let p = Picture::new(size("width"), size("height"), 3, bytes(&spec["pixels"]));
    let mut calls = BTreeSet::new();
    for case in spec["cases"].as_array().unwrap() {
        let number = |i: usize| case["given"][i].as_f64().unwrap();
        let got = match case["call"].as_str().unwrap() {
            "vertical_flip" => p.vertical_flip(),
            "grayscale" => p.grayscale(number(0) as usize),
            "pad" => p.pad(number(0) as usize, number(1) as u8),
            "adjust_brightness" => p.adjust_brightness(number(0)),
            "adjust_contrast" => p.adjust_contrast(number(0)),
            "adjust_saturation" => p.adjust_saturation(number(0)),
            "adjust_hue" => p.adjust_hue(number(0)),
            "rotate" => p.rotate(number(0)),
            other => panic!("{other} is not called here"),
        };
        assert_eq!(got.pixels(), bytes(&case["pixels"]), "{} {}", case["call"], case["given"]);
        calls.insert(case["call"].as_str().unwrap());
    }
    assert_eq!(calls.len(), 8);
}

/// A picture whose pixels all differ.
fn picture() -> Picture {
    Picture::new(8, 6, 3, (0..144).collect())
}

/// One picture, so many times, as a transform makes it.
struct Drawn(fn(Picture) -> Array);

impl Dataset<1> for Drawn {
    fn len(&self) -> usize {
        64
    }
    fn get(&self, _: usize) -> Result<[Array; 1], Failure> {
        Ok([(self.0)(picture())])
    }
}

/// How many different pictures are drawn, and whether a second loader draws the same.
fn drawn(transform: fn(Picture) -> Array) -> usize {
    let epoch = || {
        let loader = DataLoader::new(Drawn(transform), 64);
        let [x] = loader.iter().next().unwrap();
        let all = x.flatten().to_vec::<f32>();
        all.chunks(all.len() / 64).map(|p| p.iter().map(|v| v.to_bits()).collect()).collect::<Vec<Vec<u32>>>()
    };
    let first = epoch();
    assert_eq!(first, epoch(), "the same seed");
    first.into_iter().collect::<BTreeSet<_>>().len()
}

#[test]
fn what_is_drawn_follows_from_the_seed_and_differs() {
    assert_eq!(drawn(|p| p.random_vertical_flip(0.5).to_tensor()), 2);
    assert_eq!(drawn(|p| p.random_vertical_flip(0.0).to_tensor()), 1);
    assert_eq!(drawn(|p| p.random_grayscale(0.5).to_tensor()), 2);
    assert!(drawn(|p| p.random_rotation(40.0).to_tensor()) > 8);
    assert!(drawn(|p| p.color_jitter(0.4, 0.4, 0.4, 0.1).to_tensor()) > 32);
    assert_eq!(drawn(|p| p.color_jitter(0.0, 0.0, 0.0, 0.0).to_tensor()), 1);
    assert!(drawn(|p| p.to_tensor().random_erasing(0.9, 0.02..=0.33, 0.3..=3.3, 0.0)) > 8);
    assert_eq!(drawn(|p| p.to_tensor().random_erasing(0.0, 0.02..=0.33, 0.3..=3.3, 0.0)), 1);
}

#[test]
fn a_rectangle_is_erased_in_all_channels() {
    let whole = picture().to_tensor().to_vec::<f32>();
    let erased = picture().to_tensor().random_erasing(1.0, 0.2..=0.3, 0.5..=2.0, -1.0).to_vec::<f32>();
    let places: Vec<usize> = (0..48).filter(|i| erased[*i] == -1.0).collect();
    let (rows, columns): (BTreeSet<usize>, BTreeSet<usize>) = places.iter().map(|i| (i / 8, i % 8)).unzip();
    assert_eq!(places.len(), rows.len() * columns.len());
    // 20 to 30 % of 48 pixels, with sides of whole pixels
    assert!((6..=20).contains(&places.len()), "{places:?}");
    for (i, (v, before)) in erased.iter().zip(&whole).enumerate() {
        assert_eq!(*v, if places.contains(&(i % 48)) { -1.0 } else { *before });
    }
}

#[test]
fn what_no_picture_has_is_refused() {
    let refused = |f: fn()| *std::panic::catch_unwind(f).unwrap_err().downcast::<String>().unwrap();
    assert!(refused(|| drop(picture().grayscale(2))).contains("2 output channels: there may be 1 or 3"));
    assert!(refused(|| drop(picture().adjust_hue(0.6))).contains("0.6 is not between -0.5 and 0.5"));
    let flat = || drop(Array::new(vec![1f32, 2.0], [2]).random_erasing(1.0, 0.1..=0.2, 0.5..=2.0, 0.0));
    assert!(refused(flat).contains("takes channels, height and width, and not [2]"));
}
