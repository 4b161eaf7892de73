//! Types whose values a checkpoint keeps without further ado: tensors, numbers, text, and std's collections of them.
use super::tree::Tree;
use crate::tensor::Tensor;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::path::PathBuf;
use std::time::Duration;
use xlazy_core::ty::{DType, Element, Shape, Type};

type Result<T> = std::result::Result<T, String>;

/// Where values are saved: entries by name, numbers as bytes. It gives the name that an entry got, another one where that was
/// taken.
pub trait Sink {
    fn entry(&mut self, name: &str, ty: Type, bytes: Vec<u8>) -> Result<String>;
    fn tensor(&mut self, name: &str, tensor: &Tensor) -> Result<String>;
}

/// Where they are loaded from.
pub trait Source {
    fn entry(&self, name: &str) -> Result<(&Type, &[u8])>;
    fn tensor(&self, name: &str) -> Result<Tensor>;
}

/// A type that checkpoints keep. `at` names the place: the variable, and where in it.
pub trait Savable: Sized {
    fn save(&self, to: &mut dyn Sink, at: &str) -> Result<Tree>;
    fn load(tree: &Tree, from: &dyn Source) -> Result<Self>;

    /// Several of them: numbers make an array.
    #[doc(hidden)]
    fn save_all(items: &[Self], to: &mut dyn Sink, at: &str) -> Result<Tree> {
        let items = items.iter().enumerate().map(|(i, v)| v.save(to, &format!("{at}.{i}")));
        items.collect::<Result<_>>().map(Tree::List)
    }

    #[doc(hidden)]
    fn load_all(tree: &Tree, from: &dyn Source) -> Result<Vec<Self>> {
        match tree {
            Tree::List(items) => items.iter().map(|t| Self::load(t, from)).collect(),
            other => unfit(other, "a list"),
        }
    }
}

fn unfit<T>(tree: &Tree, wanted: &str) -> Result<T> {
    let json = tree.json().to_string();
    let short: String = json.chars().take(60).collect();
    Err(format!("the file has {short} where its type wants {wanted}"))
}

fn array_of<E: Element>(items: impl ExactSizeIterator<Item = E>, to: &mut dyn Sink, at: &str) -> Result<Tree> {
    let ty = Type::new(E::DTYPE, Shape::new(&[items.len()]));
    let mut bytes = Vec::with_capacity(ty.bytes());
    items.for_each(|v| v.write(&mut bytes));
    Ok(Tree::Array(to.entry(at, ty, bytes)?))
}

fn elements<E: Element>(entry: &str, from: &dyn Source) -> Result<Vec<E>> {
    let (ty, bytes) = from.entry(entry)?;
    if ty.dtype != E::DTYPE {
        return Err(format!("the file has {} where its type wants {}", ty.dtype, E::DTYPE));
    }
    Ok(bytes.chunks_exact(E::DTYPE.size()).map(E::read).collect())
}

/// Whole numbers. `$dtype` is what an array of them is kept as; wider ones than any dtype stay in the tree.
macro_rules! ints {
    ($($t:ty as $e:ty),*) => {$(
        impl Savable for $t {
            fn save(&self, _: &mut dyn Sink, _: &str) -> Result<Tree> {
                let n = i128::try_from(*self);
                Ok(n.map(Tree::Int).unwrap_or_else(|_| Tree::Text(self.to_string())))
            }
            fn load(tree: &Tree, _: &dyn Source) -> Result<$t> {
                let n = match tree {
                    Tree::Int(n) => <$t>::try_from(*n).ok(),
                    Tree::Text(s) => s.parse().ok(),
                    _ => None,
                };
                n.map_or_else(|| unfit(tree, stringify!($t)), Ok)
            }
            fn save_all(items: &[$t], to: &mut dyn Sink, at: &str) -> Result<Tree> {
                match items.iter().map(|v| <$e>::try_from(*v).ok()).collect::<Option<Vec<$e>>>() {
                    Some(same) => array_of(same.into_iter(), to, at),
                    None => items.iter().map(|v| v.save(to, at)).collect::<Result<_>>().map(Tree::List),
                }
            }
            fn load_all(tree: &Tree, from: &dyn Source) -> Result<Vec<$t>> {
                match tree {
                    Tree::Array(entry) => {
                        let wide = elements::<$e>(entry, from)?;
                        let narrow = wide.into_iter().map(|v| <$t>::try_from(v).ok()).collect::<Option<_>>();
                        narrow.ok_or_else(|| format!("`{entry}` has numbers that are no {}", stringify!($t)))
                    }
                    Tree::List(items) => items.iter().map(|t| <$t>::load(t, from)).collect(),
                    other => unfit(other, "an array of numbers"),
                }
            }
        }
    )*};
}
ints!(i8 as i8, i16 as i64, i32 as i32, i64 as i64, i128 as i64, isize as i64);
ints!(u8 as u8, u16 as i64, u32 as i64, u64 as i64, u128 as i64, usize as i64);

macro_rules! arrays {
    ($($t:ty: |$v:ident| $save:expr, $tree:pat => $load:expr, $wanted:literal;)*) => {$(
        impl Savable for $t {
            fn save(&self, _: &mut dyn Sink, _: &str) -> Result<Tree> {
                let $v = *self;
                Ok($save)
            }
            fn load(tree: &Tree, _: &dyn Source) -> Result<$t> {
                match tree {
                    $tree => Ok($load),
                    Tree::Int(n) => Ok(*n as $t),
                    other => unfit(other, $wanted),
                }
            }
            fn save_all(items: &[$t], to: &mut dyn Sink, at: &str) -> Result<Tree> {
                array_of(items.iter().copied(), to, at)
            }
            fn load_all(tree: &Tree, from: &dyn Source) -> Result<Vec<$t>> {
                match tree {
                    Tree::Array(entry) => elements(entry, from),
                    other => unfit(other, "an array"),
                }
            }
        }
    )*};
}
arrays! {
    f64: |v| Tree::Float(v), Tree::Float(v) => *v, "a number";
    f32: |v| Tree::Float(f64::from(v)), Tree::Float(v) => *v as f32, "a number";
}

impl Savable for bool {
    fn save(&self, _: &mut dyn Sink, _: &str) -> Result<Tree> {
        Ok(Tree::Bool(*self))
    }
    fn load(tree: &Tree, _: &dyn Source) -> Result<bool> {
        match tree {
            Tree::Bool(b) => Ok(*b),
            other => unfit(other, "a bool"),
        }
    }
    fn save_all(items: &[bool], to: &mut dyn Sink, at: &str) -> Result<Tree> {
        array_of(items.iter().copied(), to, at)
    }
    fn load_all(tree: &Tree, from: &dyn Source) -> Result<Vec<bool>> {
        match tree {
            Tree::Array(entry) => elements(entry, from),
            other => unfit(other, "an array"),
        }
    }
}

/// Types that are told as another that is kept.
macro_rules! through {
    ($($t:ty as $as:ty: |$v:ident| $save:expr, |$w:ident| $load:expr;)*) => {$(
        impl Savable for $t {
            fn save(&self, to: &mut dyn Sink, at: &str) -> Result<Tree> {
                let $v = self;
                <$as>::save(&$save, to, at)
            }
            fn load(tree: &Tree, from: &dyn Source) -> Result<$t> {
                let $w = <$as>::load(tree, from)?;
                $load
            }
        }
    )*};
}
through! {
    char as String: |v| v.to_string(), |s| s.parse().map_err(|_| format!("`{s}` is no character"));
    // A constant text of a cell lives as long as the session, and so does this.
    &'static str as String: |v| (*v).to_owned(), |s| Ok(Box::leak(s.into_boxed_str()));
    PathBuf as String: |v| v.to_str().ok_or("the path is no UTF-8")?.to_owned(), |s| Ok(PathBuf::from(s));
    Duration as (u64, u32): |v| (v.as_secs(), v.subsec_nanos()), |v| match v.1 {
        nanos @ 0..1_000_000_000 => Ok(Duration::new(v.0, nanos)),
        nanos => Err(format!("a second has no {nanos} nanoseconds")),
    };
}

impl Savable for String {
    fn save(&self, _: &mut dyn Sink, _: &str) -> Result<Tree> {
        Ok(Tree::Text(self.clone()))
    }
    fn load(tree: &Tree, _: &dyn Source) -> Result<String> {
        match tree {
            Tree::Text(s) => Ok(s.clone()),
            other => unfit(other, "text"),
        }
    }
}

impl Savable for Tensor {
    fn save(&self, to: &mut dyn Sink, at: &str) -> Result<Tree> {
        let entry = to.tensor(at, self)?;
        Ok(Tree::Tensor { entry, requires_grad: self.requires_grad() })
    }
    fn load(tree: &Tree, from: &dyn Source) -> Result<Tensor> {
        match tree {
            Tree::Tensor { entry, requires_grad } => {
                let tensor = from.tensor(entry)?;
                if *requires_grad && !tensor.dtype().is_differentiable() {
                    return Err(format!(
                        "a tensor of {} has no gradient, and the file says that it has",
                        tensor.dtype()
                    ));
                }
                Ok(if *requires_grad { tensor.requires_grad_(true) } else { tensor })
            }
            other => unfit(other, "a tensor"),
        }
    }
}

impl Savable for DType {
    fn save(&self, _: &mut dyn Sink, _: &str) -> Result<Tree> {
        Ok(Tree::Text(self.name().into()))
    }
    fn load(tree: &Tree, _: &dyn Source) -> Result<DType> {
        let known = DType::ALL.into_iter().find(|d| *tree == Tree::Text(d.name().into()));
        known.map_or_else(|| unfit(tree, "a dtype"), Ok)
    }
}

impl<T: Savable> Savable for Option<T> {
    fn save(&self, to: &mut dyn Sink, at: &str) -> Result<Tree> {
        // A list of none or one: an option of an option stays apart.
        let some = self.iter().map(|v| v.save(to, at));
        some.collect::<Result<_>>().map(Tree::List)
    }
    fn load(tree: &Tree, from: &dyn Source) -> Result<Option<T>> {
        match tree {
            Tree::List(items) if items.len() < 2 => items.first().map(|t| T::load(t, from)).transpose(),
            other => unfit(other, "an option"),
        }
    }
}

impl<T: Savable> Savable for Box<T> {
    fn save(&self, to: &mut dyn Sink, at: &str) -> Result<Tree> {
        (**self).save(to, at)
    }
    fn load(tree: &Tree, from: &dyn Source) -> Result<Box<T>> {
        T::load(tree, from).map(Box::new)
    }
}

impl<T: Savable> Savable for Vec<T> {
    fn save(&self, to: &mut dyn Sink, at: &str) -> Result<Tree> {
        T::save_all(self, to, at)
    }
    fn load(tree: &Tree, from: &dyn Source) -> Result<Vec<T>> {
        T::load_all(tree, from)
    }
}

impl<T: Savable, const N: usize> Savable for [T; N] {
    fn save(&self, to: &mut dyn Sink, at: &str) -> Result<Tree> {
        T::save_all(self, to, at)
    }
    fn load(tree: &Tree, from: &dyn Source) -> Result<[T; N]> {
        let items = T::load_all(tree, from)?;
        let found = items.len();
        items.try_into().map_err(|_| format!("the file has {found} items where its type wants {N}"))
    }
}

macro_rules! collections {
    ($($name:ident [$($bound:path),*])*) => {$(
        impl<T: Savable $(+ $bound)*> Savable for $name<T> {
            fn save(&self, to: &mut dyn Sink, at: &str) -> Result<Tree> {
                let items = self.iter().enumerate().map(|(i, v)| v.save(to, &format!("{at}.{i}")));
                items.collect::<Result<_>>().map(Tree::List)
            }
            fn load(tree: &Tree, from: &dyn Source) -> Result<$name<T>> {
                match tree {
                    Tree::List(items) => items.iter().map(|t| T::load(t, from)).collect(),
                    other => unfit(other, "a list"),
                }
            }
        }
    )*};
}
collections!(VecDeque[] HashSet[Eq, Hash] BTreeSet[Ord]);

macro_rules! maps {
    ($($name:ident [$($bound:path),*])*) => {$(
        impl<K: Savable $(+ $bound)*, V: Savable> Savable for $name<K, V> {
            fn save(&self, to: &mut dyn Sink, at: &str) -> Result<Tree> {
                let mut out = Vec::with_capacity(self.len());
                for (i, (k, v)) in self.iter().enumerate() {
                    let key = k.save(to, &format!("{at}.key{i}"))?;
                    let word = match &key {
                        Tree::Text(s) => s.clone(),
                        Tree::Int(n) => n.to_string(),
                        _ => i.to_string(),
                    };
                    let value = v.save(to, &format!("{at}.{word}"))?;
                    out.push((key, value));
                }
                Ok(Tree::Map(out))
            }
            fn load(tree: &Tree, from: &dyn Source) -> Result<$name<K, V>> {
                match tree {
                    Tree::Map(items) => items.iter().map(|(k, v)| Ok((K::load(k, from)?, V::load(v, from)?))).collect(),
                    other => unfit(other, "a map"),
                }
            }
        }
    )*};
}
maps!(HashMap[Eq, Hash] BTreeMap[Ord]);

macro_rules! tuples {
    ($(($($t:ident $i:tt),*))*) => {$(
        impl<$($t: Savable),*> Savable for ($($t,)*) {
            #[allow(unused_variables)]
            fn save(&self, to: &mut dyn Sink, at: &str) -> Result<Tree> {
                Ok(Tree::List(vec![$(self.$i.save(to, &format!("{at}.{}", $i))?),*]))
            }
            #[allow(unused_variables)]
            fn load(tree: &Tree, from: &dyn Source) -> Result<Self> {
                const LEN: usize = [$($i as usize),*].len();
                match tree {
                    Tree::List(items) if items.len() == LEN => Ok(($($t::load(&items[$i], from)?,)*)),
                    other => unfit(other, "a tuple"),
                }
            }
        }
    )*};
}
tuples! {
    (A 0) (A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3) (A 0, B 1, C 2, D 3, E 4) (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6) (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}

impl Savable for () {
    fn save(&self, _: &mut dyn Sink, _: &str) -> Result<Tree> {
        Ok(Tree::Null)
    }
    fn load(_: &Tree, _: &dyn Source) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::safetensors::{self, Part};
    use fastrand::Rng;

    fn tree(dice: &mut Rng, depth: usize) -> Tree {
        let ints = [0, -1, 255, 256, 4_000_000_000, i128::MAX, i128::MIN, 1 << 70];
        let texts = ["", "a", "ab", "é", "340282366920938463463374607431768211456", "-0", "\0", "f32"];
        let floats = [0.5, -0.0, f64::NAN, f64::INFINITY, 1e300];
        let entries = ["bytes", "longs", "flags", "none"];
        match dice.usize(..if depth == 0 { 7 } else { 9 }) {
            0 => Tree::Null,
            1 => Tree::Bool(true),
            2 => Tree::Int(ints[dice.usize(..ints.len())]),
            3 => Tree::Float(floats[dice.usize(..floats.len())]),
            4 => Tree::Text(texts[dice.usize(..texts.len())].into()),
            5 => Tree::Array(entries[dice.usize(..entries.len())].into()),
            6 => Tree::Module(vec![("w".into(), "bytes".into())]),
            7 => Tree::List((0..dice.usize(..4)).map(|_| tree(dice, depth - 1)).collect()),
            _ => Tree::Map((0..dice.usize(..3)).map(|_| (tree(dice, depth - 1), tree(dice, depth - 1))).collect()),
        }
    }

    #[test]
    fn no_tree_ends_whoever_makes_a_value_of_it() {
        let path = std::env::temp_dir().join(format!("xlazy-trees-{}.safetensors", std::process::id()));
        let part = |name: &str, dtype, n: usize, bytes: Vec<u8>| Part {
            name: name.into(),
            ty: Type::new(dtype, Shape::new(&[n])),
            bytes,
        };
        let parts = [
            part("bytes", DType::U8, 3, vec![1, 2, 255]),
            part("longs", DType::I64, 1, vec![255; 8]),
            part("flags", DType::Bool, 2, vec![0, 1]),
        ];
        let bytes = parts.iter().map(|p| (p.name.as_str(), p.bytes.as_slice()));
        let hash = super::super::hash("[]", bytes);
        safetensors::write(&path, None, &[("xlazy.variables", "[]"), ("xlazy.hash", &hash)], &parts).unwrap();
        let loader = super::super::Loader::read(path.to_str().unwrap()).unwrap();
        std::fs::remove_file(path).unwrap();
        let (mut dice, mut made) = (Rng::with_seed(0x2545_f491_4f6c_dd1d), 0);
        for _ in 0..10_000 {
            let tree = tree(&mut dice, 3);
            macro_rules! load {
                ($($t:ty),* $(,)?) => {
                    $(made += usize::from(<$t>::load(&tree, &loader).is_ok());)*
                };
            }
            load![
                u8,
                i128,
                u128,
                f32,
                bool,
                char,
                String,
                PathBuf,
                Duration,
                DType,
                Vec<u8>,
                Vec<u16>,
                Vec<bool>,
                Vec<Vec<i64>>,
                [u8; 3],
                Option<Option<char>>,
                Box<(u8, String)>,
                HashMap<String, Vec<i64>>,
                BTreeSet<i8>,
                VecDeque<f64>,
                (),
            ];
        }
        assert!(made > 5_000, "{made}");
    }
}
