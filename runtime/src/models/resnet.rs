//! ResNet, wide ResNet and ResNeXt, as torchvision has them.
use crate::ConvOptions;
use crate::nn::module::at_caller;
use crate::nn::{BatchNorm2d, Conv2d, Linear, MaxPool2d, Module, Parts, Published, Sequential, init};
use crate::tensor::Tensor;

/// What kind of ResNet: torchvision's arguments, and how wide its first stage is.
#[derive(Clone, Debug)]
pub struct ResNetConfig {
    /// Blocks in each of the four stages.
    pub layers: [usize; 4],
    /// Blocks of three convolutions, the last of which makes four times as many channels, in place of blocks of two.
    pub bottleneck: bool,
    pub num_classes: usize,
    pub in_channels: usize,
    /// Channels of the first stage; each has twice as many as the one before.
    pub planes: usize,
    pub groups: usize,
    /// Of 64, how wide the inner convolution of a bottleneck is.
    pub width_per_group: usize,
}

impl Default for ResNetConfig {
    /// ResNet-50.
    fn default() -> ResNetConfig {
        ResNetConfig {
            layers: [3, 4, 6, 3],
            bottleneck: true,
            num_classes: 1000,
            in_channels: 3,
            planes: 64,
            groups: 1,
            width_per_group: 64,
        }
    }
}

fn conv(from: usize, to: usize, size: i64, stride: i64, groups: usize) -> Conv2d {
    let padding = (size / 2).into();
    let options = ConvOptions { stride: stride.into(), padding, groups, ..Default::default() };
    let mut layer = Conv2d::without_bias(from, to, size, options);
    // He's, by what goes out, before a relu
    let fan_out = to as f64 * (size * size) as f64;
    layer.weight = init::normal(layer.weight.shape(), (2.0 / fan_out).sqrt());
    layer
}

static SIZES: &[(&str, &[&str])] = &[
    ("conv1.weight", &["planes", "in_channels"]),
    ("fc.weight", &["num_classes", "planes"]),
    ("fc.bias", &["num_classes"]),
    ("layer*.conv2.weight", &["width_per_group", "groups"]),
    ("layer*.conv1.weight", &["width_per_group", "planes"]),
    ("layer*.downsample.*", &["planes", "planes"]),
    ("bn1.*", &["planes"]),
];

/// Convolutions with a norm each, added to what they are given.
struct Block {
    convs: Vec<(Conv2d, BatchNorm2d)>,
    downsample: Option<Sequential>,
}

impl Block {
    fn new(c: &ResNetConfig, from: usize, planes: usize, stride: i64) -> Block {
        let width = planes * c.width_per_group / 64 * c.groups;
        let sizes = match c.bottleneck {
            true => vec![(from, width, 1, 1, 1), (width, width, 3, stride, c.groups), (width, planes * 4, 1, 1, 1)],
            false => vec![(from, planes, 3, stride, 1), (planes, planes, 3, 1, 1)],
        };
        let out = sizes[sizes.len() - 1].1;
        let with_norm = |(from, to, size, stride, groups)| (conv(from, to, size, stride, groups), BatchNorm2d::new(to));
        let down = stride != 1 || from != out;
        Block {
            convs: sizes.into_iter().map(with_norm).collect(),
            downsample: down.then(|| Sequential::new((conv(from, out, 1, stride, 1), BatchNorm2d::new(out)))),
        }
    }
}

impl Module for Block {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        let last = self.convs.len() - 1;
        let y = self.convs.iter().enumerate().fold(x.clone(), |x, (i, (conv, norm))| {
            let y = norm.forward(&conv.forward(&x));
            if i == last { y } else { y.relu() }
        });
        let shortcut = self.downsample.as_ref().map_or(x.clone(), |down| down.forward(x));
        (y + shortcut).relu()
    }

    fn parts(&self, p: &mut Parts) {
        for (i, (conv, norm)) in self.convs.iter().enumerate() {
            p.add(&format!("conv{}", i + 1), conv);
            p.add(&format!("bn{}", i + 1), norm);
        }
        p.add("downsample", &self.downsample);
    }
}

/// A residual network for pictures [n, 3, height, width] (torchvision's `ResNet`).
///
/// ```
/// use xlazy::prelude::*;
/// use xlazy::models::{ResNet, ResNetConfig};
/// let config = ResNetConfig { layers: [1, 1, 1, 1], planes: 4, num_classes: 10, ..Default::default() };
/// let model = ResNet::new(&config);
/// assert_eq!(model.forward(&Tensor::ones([2, 3, 32, 32])).shape(), [2, 10]);
/// assert_eq!(model.named_parameters()[3].0, "layer1.0.conv1.weight");
/// ```
pub struct ResNet {
    conv1: Conv2d,
    bn1: BatchNorm2d,
    maxpool: MaxPool2d,
    stages: [Vec<Block>; 4],
    fc: Linear,
}

impl ResNet {
    #[track_caller]
    pub fn new(c: &ResNetConfig) -> ResNet {
        at_caller(|| {
            let mut from = c.planes;
            let stages = [0, 1, 2, 3].map(|stage: usize| {
                let (planes, stride) = (c.planes << stage, if stage == 0 { 1 } else { 2 });
                let block = |i| {
                    let block = Block::new(c, from, planes, if i == 0 { stride } else { 1 });
                    from = if c.bottleneck { planes * 4 } else { planes };
                    block
                };
                (0..c.layers[stage]).map(block).collect()
            });
            let mut conv1 = conv(c.in_channels, c.planes, 7, 2, 1);
            conv1.options.padding = 3.into();
            ResNet {
                conv1,
                bn1: BatchNorm2d::new(c.planes),
                maxpool: MaxPool2d::new(3).stride(2).padding(1),
                stages,
                fc: Linear::new(from, c.num_classes),
            }
        })
    }

    /// What the last stage gives, [n, channels, height / 32, width / 32].
    #[track_caller]
    pub fn features(&self, x: &Tensor) -> Tensor {
        at_caller(|| {
            let x = self.maxpool.forward(&self.bn1.forward(&self.conv1.forward(x)).relu());
            self.stages.iter().flatten().fold(x, |x, block| block.forward(&x))
        })
    }

    #[track_caller]
    fn run(&self, x: &Tensor) -> Tensor {
        at_caller(|| self.fc.forward(&self.features(x).mean_dim([2, 3], false)))
    }
}

impl Module for ResNet {
    #[inline]
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Tensor {
        self.run(x)
    }

    fn published(&self) -> Published {
        Published { sizes: SIZES, ..Default::default() }
    }

    fn parts(&self, p: &mut Parts) {
        p.add("conv1", &self.conv1);
        p.add("bn1", &self.bn1);
        self.stages.iter().enumerate().for_each(|(i, stage)| p.add(&format!("layer{}", i + 1), stage));
        p.add("fc", &self.fc);
    }
}

macro_rules! kinds {
    ($($name:ident $title:literal: $layers:expr, $bottleneck:expr, $groups:expr, $width:expr;)*) => {$(
        #[doc = concat!($title, ", with torchvision's initial values.")]
        #[track_caller]
        pub fn $name(num_classes: usize) -> ResNet {
            let (layers, bottleneck, groups, width_per_group) = ($layers, $bottleneck, $groups, $width);
            ResNet::new(&ResNetConfig { layers, bottleneck, groups, width_per_group, num_classes, ..Default::default() })
        }
    )*};
}

kinds! {
    resnet18 "ResNet-18": [2, 2, 2, 2], false, 1, 64;
    resnet34 "ResNet-34": [3, 4, 6, 3], false, 1, 64;
    resnet50 "ResNet-50": [3, 4, 6, 3], true, 1, 64;
    resnet101 "ResNet-101": [3, 4, 23, 3], true, 1, 64;
    resnet152 "ResNet-152": [3, 8, 36, 3], true, 1, 64;
    wide_resnet50_2 "The ResNet-50 of twice the width": [3, 4, 6, 3], true, 1, 128;
    wide_resnet101_2 "The ResNet-101 of twice the width": [3, 4, 23, 3], true, 1, 128;
    resnext50_32x4d "ResNeXt-50 of 32 groups": [3, 4, 6, 3], true, 32, 4;
    resnext101_32x8d "ResNeXt-101 of 32 groups": [3, 4, 23, 3], true, 32, 8;
}
