//! Modules made of modules.
use super::module::{Module, Parts, at_caller};
use crate::tensor::Tensor;

/// Modules one after the other (`torch.nn.Sequential`): a tuple of up to twelve, or a vector of boxed ones.
///
/// ```
/// use xlazy::prelude::*;
/// let model = nn::Sequential::new((nn::Linear::new(4, 8), nn::ReLU, nn::Linear::new(8, 2)));
/// assert_eq!(model.forward(&Tensor::ones([3, 4])).shape(), [3, 2]);
/// assert_eq!(model.named_parameters()[2].0, "2.weight");
/// ```
pub struct Sequential {
    layers: Vec<Box<dyn Module>>,
}

impl Sequential {
    pub fn new(layers: impl Layers) -> Sequential {
        Sequential { layers: layers.boxed() }
    }

    /// Adds a module at the end (`torch.nn.Sequential.append`).
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

impl Layers for Vec<Box<dyn Module>> {
    fn boxed(self) -> Vec<Box<dyn Module>> {
        self
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

/// All dimensions but the first joined into one (`torch.nn.Flatten`): [n, ...] to [n, elements].
#[derive(Clone, Copy, Debug, Default)]
pub struct Flatten;

impl Module for Flatten {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        x.flatten_dims(1, -1)
    }
}
