//! Modules made of modules.
use super::module::{Module, Parts, at_caller};
use crate::tensor::{Tensor, refuse};
use std::ops::Index;

/// Modules one after the other (`torch.nn.Sequential`): a tuple of up to twelve, a vector, or `()` for none yet.
///
/// ```
/// use xlazy::prelude::*;
/// let model = nn::Sequential::new((nn::Linear::new(4, 8), nn::ReLU, nn::Linear::new(8, 2)));
/// assert_eq!(model.forward(&Tensor::ones([3, 4])).shape(), [3, 2]);
/// assert_eq!(model.named_parameters()[2].0, "2.weight");
/// let deep: nn::Sequential = (0..6).map(|_| nn::Linear::new(4, 4)).collect();
/// assert_eq!(deep.len(), 6);
/// let sizes: Vec<usize> = (&model).into_iter().map(|layer| layer.parameters().len()).collect();
/// assert_eq!(sizes, [2, 0, 2]);
/// ```
pub struct Sequential {
    layers: Vec<Box<dyn Module>>,
}

impl Sequential {
    pub fn new(layers: impl Layers) -> Sequential {
        Sequential { layers: layers.boxed() }
    }

    /// Adds a module at the end (`torch.nn.Sequential.append`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let mut layers = nn::Sequential::new((nn::Linear::new(4, 8),));
    /// layers.push(nn::ReLU);
    /// assert_eq!(layers.len(), 2);
    /// ```
    pub fn push(&mut self, layer: impl Module + 'static) {
        self.layers.push(Box::new(layer));
    }

    pub fn len(&self) -> usize {
        self.layers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    pub fn get(&self, index: usize) -> Option<&dyn Module> {
        self.layers.get(index).map(|m| &**m)
    }

    /// The modules one by one.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Module> {
        self.layers.iter().map(|m| &**m)
    }
}

/// `model[0]`.
impl Index<usize> for Sequential {
    type Output = dyn Module;
    #[track_caller]
    fn index(&self, index: usize) -> &(dyn Module + 'static) {
        at(&self.layers, index)
    }
}

#[track_caller]
fn at(layers: &[Box<dyn Module>], index: usize) -> &(dyn Module + 'static) {
    match layers.get(index) {
        Some(layer) => &**layer,
        None => refuse("[]", &[], format!("there is no module {index}: there are {}", layers.len())),
    }
}

/// Modules by number, of which none follows another by itself (`torch.nn.ModuleList`). A vector of modules of one type is a part
/// of a module as well, and calls what its type has.
///
/// ```
/// use xlazy::prelude::*;
/// let layers = nn::ModuleList::new((nn::Linear::new(4, 4), nn::ReLU));
/// let y = layers.iter().fold(Tensor::ones([2, 4]), |x, layer| layer.forward(&x));
/// assert_eq!((y.shape(), layers[0].parameters().len()), (Shape::new(&[2, 4]), 2));
/// ```
pub struct ModuleList {
    layers: Vec<Box<dyn Module>>,
}

impl ModuleList {
    pub fn new(layers: impl Layers) -> ModuleList {
        ModuleList { layers: layers.boxed() }
    }

    /// Adds a module at the end (`torch.nn.ModuleList.append`).
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let mut layers = nn::ModuleList::new((nn::Linear::new(4, 8),));
    /// layers.push(nn::ReLU);
    /// assert_eq!(layers.len(), 2);
    /// let y = (&layers).into_iter().fold(Tensor::ones([1, 4]), |x, layer| layer.forward(&x));
    /// assert_eq!(y.shape(), [1, 8]);
    /// ```
    pub fn push(&mut self, layer: impl Module + 'static) {
        self.layers.push(Box::new(layer));
    }

    pub fn len(&self) -> usize {
        self.layers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// The modules one by one.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Module> {
        self.layers.iter().map(|m| &**m)
    }
}

macro_rules! one_by_one {
    ($($list:ident)*) => {$(
        /// `for layer in &layers`.
        impl<'a> IntoIterator for &'a $list {
            type Item = &'a dyn Module;
            type IntoIter = Box<dyn Iterator<Item = &'a dyn Module> + 'a>;
            fn into_iter(self) -> Self::IntoIter {
                Box::new(self.iter())
            }
        }
    )*};
}
one_by_one!(Sequential ModuleList);

/// `list[0]`.
impl Index<usize> for ModuleList {
    type Output = dyn Module;
    #[track_caller]
    fn index(&self, index: usize) -> &(dyn Module + 'static) {
        at(&self.layers, index)
    }
}

impl Module for ModuleList {
    fn parts(&self, p: &mut Parts) {
        self.layers.iter().enumerate().for_each(|(i, layer)| p.add(&i.to_string(), &**layer));
    }
}

/// Modules by name, in the order in which they came (`torch.nn.ModuleDict`).
///
/// ```
/// use xlazy::prelude::*;
/// let mut heads = nn::ModuleDict::default();
/// heads.insert("size", nn::Linear::new(4, 1));
/// heads.insert("kind", nn::Linear::new(4, 3));
/// assert_eq!(heads["kind"].forward(&Tensor::ones([2, 4])).shape(), [2, 3]);
/// assert_eq!(heads.named_parameters()[0].0, "size.weight");
/// ```
#[derive(Default)]
pub struct ModuleDict {
    modules: Vec<(String, Box<dyn Module>)>,
}

impl ModuleDict {
    /// Adds a module, in the place of one that has the name.
    pub fn insert(&mut self, name: &str, module: impl Module + 'static) {
        let module: Box<dyn Module> = Box::new(module);
        match self.modules.iter_mut().find(|(n, _)| n == name) {
            Some((_, old)) => *old = module,
            None => self.modules.push((name.to_owned(), module)),
        }
    }

    pub fn get(&self, name: &str) -> Option<&(dyn Module + 'static)> {
        self.modules.iter().find(|(n, _)| n == name).map(|(_, m)| &**m)
    }

    /// The names and modules one by one.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &dyn Module)> {
        self.modules.iter().map(|(n, m)| (n.as_str(), &**m))
    }
}

/// `dict["name"]`.
impl Index<&str> for ModuleDict {
    type Output = dyn Module;
    #[track_caller]
    fn index(&self, name: &str) -> &(dyn Module + 'static) {
        match self.get(name) {
            Some(module) => module,
            None => {
                let names: Vec<&str> = self.iter().map(|(n, _)| n).collect();
                refuse("[]", &[], format!("there is no module `{name}`: there are {names:?}"))
            }
        }
    }
}

impl Module for ModuleDict {
    fn parts(&self, p: &mut Parts) {
        self.modules.iter().for_each(|(name, module)| p.add(name, &**module));
    }
}

impl Module for Sequential {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.run(x)
    }

    fn parts(&self, p: &mut Parts) {
        for (i, layer) in self.layers.iter().enumerate() {
            p.add(&i.to_string(), &**layer);
        }
    }
}

impl Sequential {
    #[track_caller]
    fn run(&self, x: &Tensor) -> Tensor {
        // Calls through `dyn` lose the caller's line.
        at_caller(|| self.layers.iter().fold(x.clone(), |x, layer| layer.forward(&x)))
    }
}

/// What [`Sequential::new`] takes.
pub trait Layers {
    #[doc(hidden)]
    fn boxed(self) -> Vec<Box<dyn Module>>;
}

/// Boxed ones, too.
impl<M: Module + 'static> Layers for Vec<M> {
    fn boxed(self) -> Vec<Box<dyn Module>> {
        self.into_iter().map(|m| Box::new(m) as Box<dyn Module>).collect()
    }
}

/// `(0..6).map(|_| Block::new()).collect::<nn::Sequential>()`.
impl<M: Module + 'static> FromIterator<M> for Sequential {
    fn from_iter<I: IntoIterator<Item = M>>(layers: I) -> Sequential {
        Sequential::new(layers.into_iter().collect::<Vec<M>>())
    }
}

impl<M: Module + 'static> FromIterator<M> for ModuleList {
    fn from_iter<I: IntoIterator<Item = M>>(layers: I) -> ModuleList {
        ModuleList::new(layers.into_iter().collect::<Vec<M>>())
    }
}

/// None yet.
impl Layers for () {
    fn boxed(self) -> Vec<Box<dyn Module>> {
        vec![]
    }
}

macro_rules! tuples {
    ($first:ident $($rest:ident)*) => {
        impl<$first: Module + 'static, $($rest: Module + 'static),*> Layers for ($first, $($rest,)*) {
            #[allow(non_snake_case)]
            fn boxed(self) -> Vec<Box<dyn Module>> {
                let ($first, $($rest,)*) = self;
                vec![Box::new($first), $(Box::new($rest)),*]
            }
        }
        tuples!($($rest)*);
    };
    () => {};
}
tuples!(A B C D E F G H I J K L);
