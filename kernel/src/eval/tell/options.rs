//! What torch's constructors take by name, and how that is written here.
use crate::eval::text::scan::tokens;
use crate::eval::toolchain::diagnostic::Diagnostic;

/// Torch's name, and an expression that has it; a test compiles them all. Where one name has several, the one whose words are
/// those of the user's line is told.
pub(super) const OPTIONS: &[(&str, &str)] = &[
    ("bias", "nn::Linear::new(4, 5).bias(false)"),
    ("bias", "nn::Conv2d::new(4, 5, 3).bias(false)"),
    ("bias", "nn::LSTM::with(4, 5, nn::RNNOptions { bias: false, ..Default::default() })"),
    ("bias", "nn::GRU::with(4, 5, nn::RNNOptions { bias: false, ..Default::default() })"),
    ("stride", "nn::Conv2d::new(4, 5, 3).stride(2)"),
    ("stride", "nn::MaxPool2d::new(2).stride(1)"),
    ("stride", "x.max_pool2d(2, MaxPoolOptions { stride: 1.into(), ..Default::default() })"),
    ("padding", "nn::Conv2d::new(4, 5, 3).padding(1)"),
    ("padding", "nn::MaxPool2d::new(2).padding(1)"),
    ("padding", "x.max_pool2d(2, MaxPoolOptions { padding: 1.into(), ..Default::default() })"),
    ("dilation", "nn::Conv2d::new(4, 5, 3).dilation(2)"),
    ("groups", "nn::Conv2d::with(4, 4, 3, ConvOptions { groups: 2, ..Default::default() })"),
    ("padding_mode", "nn::Conv2d::new(4, 5, 3).padding_mode(PadMode::Reflect)"),
    ("ceil_mode", "nn::MaxPool2d::new(2).ceil_mode(true)"),
    ("momentum", "optim::SGD::new(p, 0.1).momentum(0.9)"),
    ("nesterov", "optim::SGD::new(p, 0.1).momentum(0.9).nesterov(true)"),
    ("dampening", "optim::SGD::new(p, 0.1).momentum(0.9).dampening(0.1)"),
    ("weight_decay", "optim::AdamW::new(p, 0.1).weight_decay(0.01)"),
    ("weight_decay", "optim::Adam::new(p, 0.1).weight_decay(0.01)"),
    ("weight_decay", "optim::SGD::new(p, 0.1).weight_decay(0.01)"),
    ("weight_decay", "optim::RMSprop::new(p, 0.1).weight_decay(0.01)"),
    ("betas", "optim::AdamW::new(p, 0.1).betas((0.9, 0.95))"),
    ("betas", "optim::Adam::new(p, 0.1).betas((0.9, 0.95))"),
    ("eps", "optim::AdamW::new(p, 0.1).eps(1e-6)"),
    ("eps", "optim::Adam::new(p, 0.1).eps(1e-6)"),
    ("lr", "optim::AdamW::new(p, 0.1)"),
    ("lr", "optim::Adam::new(p, 0.1)"),
    ("lr", "optim::SGD::new(p, 0.1)"),
    ("alpha", "optim::RMSprop::new(p, 0.1).alpha(0.9)"),
    ("maximize", "optim::SGD::new(p, 0.1).maximize(true)"),
    ("fused", "optim::AdamW::new(p, 0.1)"),
    ("foreach", "optim::AdamW::new(p, 0.1)"),
    ("patience", "optim::ReduceLROnPlateau::new().patience(3)"),
    ("factor", "optim::ReduceLROnPlateau::new().factor(0.5)"),
    ("label_smoothing", "nn::CrossEntropyLoss::new().label_smoothing(0.1)"),
    ("label_smoothing", "x.cross_entropy(&t, CrossEntropyOptions { label_smoothing: 0.1, ..Default::default() })"),
    ("ignore_index", "nn::CrossEntropyLoss::new().ignore_index(-1)"),
    ("ignore_index", "x.cross_entropy(&t, CrossEntropyOptions { ignore_index: -1, ..Default::default() })"),
    ("reduction", "nn::CrossEntropyLoss::new().reduction(Reduction::Sum)"),
    ("reduction", "x.mse_loss(&y, Reduction::Sum)"),
    ("reduction", "x.cross_entropy(&t, CrossEntropyOptions { reduction: Reduction::Sum, ..Default::default() })"),
    ("reduction", "x.nll_loss(&t, CrossEntropyOptions { reduction: Reduction::Sum, ..Default::default() })"),
    ("batch_first", "nn::LSTM::with(4, 5, nn::RNNOptions { batch_first: true, ..Default::default() })"),
    ("batch_first", "nn::GRU::with(4, 5, nn::RNNOptions { batch_first: true, ..Default::default() })"),
    ("num_layers", "nn::LSTM::with(4, 5, nn::RNNOptions { num_layers: 2, ..Default::default() })"),
    ("num_layers", "nn::GRU::with(4, 5, nn::RNNOptions { num_layers: 2, ..Default::default() })"),
    ("bidirectional", "nn::LSTM::with(4, 5, nn::RNNOptions { bidirectional: true, ..Default::default() })"),
    ("bidirectional", "nn::GRU::with(4, 5, nn::RNNOptions { bidirectional: true, ..Default::default() })"),
    ("dropout", "nn::LSTM::with(4, 5, nn::RNNOptions { dropout: 0.1, ..Default::default() })"),
    ("dropout", "nn::GRU::with(4, 5, nn::RNNOptions { dropout: 0.1, ..Default::default() })"),
    ("shuffle", "data::DataLoader::new(d, 16).shuffle(true)"),
    ("num_workers", "data::DataLoader::new(d, 16).workers(2)"),
    ("drop_last", "data::DataLoader::new(d, 16).drop_last(true)"),
    ("prefetch_factor", "data::DataLoader::new(d, 16).workers(2).prefetch(4)"),
    (
        "batch_sampler",
        "data::DataLoader::new(d, 16).batch_sampler(data::BucketBatchSampler { lengths: v.iter().map(|n| *n as usize).collect(), buckets: vec![8, 16], batch_size: 16, drop_last: false })",
    ),
    ("sampler", "data::DataLoader::new(d, 16).sampler(data::WeightedRandomSampler::new(vec![1.0, 2.0], 2, true))"),
    ("dtype", "Tensor::zeros([2, 3]).to(F64)"),
    ("device", "Tensor::zeros([2, 3]).to(\"cpu:0\")"),
    ("requires_grad", "Tensor::zeros([2, 3]).requires_grad_(true)"),
    ("amsgrad", "optim::AdamW::new(p, 0.1).amsgrad(true)"),
    ("amsgrad", "optim::Adam::new(p, 0.1).amsgrad(true)"),
];

/// What many functions take, so that what is called need not be among them.
const EVERYWHERE: &[&str] = &["dtype", "device", "requires_grad", "reduction"];

pub(super) fn is_option(name: &str) -> bool {
    // A learning rate is an argument here.
    name != "lr" && OPTIONS.iter().any(|(of, _)| *of == name)
}

/// What a loader is not told by name here.
pub(super) fn in_words(name: &str) -> Option<&'static str> {
    Some(match name {
        "collate_fn" => {
            "samples become a batch by the dataset's own `fn collate(&self, samples: Vec<[data::Array; N]>) -> Result<[data::Array; N], \
             data::Failure>`, which stacks them where there is none; docs/data.md has one that pads texts"
        }
        "generator" => "orders and what is drawn follow from `data::DataLoader::new(d, 16).seed(0)`",
        "worker_init_fn" => {
            "leave `worker_init_fn` out: what workers draw follows from the loader's `.seed(0)`, however many there are"
        }
        _ => return None,
    })
}

/// Whether it is a method of what `target` makes.
pub(super) fn method_of(name: &str, target: &str) -> bool {
    let (made, called) = (format!("{target}::new("), format!(").{name}("));
    OPTIONS.iter().any(|(of, code)| *of == name && code.starts_with(&made) && code.contains(&called))
}

/// What a line with an option by its name is told.
pub(super) fn told(name: &str, line: &str) -> Option<String> {
    let there: Vec<&str> = tokens(line).iter().map(|t| &line[t.range.clone()]).collect();
    let alike = |code: &str| tokens(code).iter().filter(|t| there.contains(&&code[t.range.clone()])).count();
    // What is called has to be told of, or something beside it: `make_grid(x, padding=2)` is none of these.
    let related = |code: &str| {
        let word = |t: &str| {
            t.len() > 1 && t != name && t.starts_with(char::is_alphabetic) && !matches!(t, "new" | "with" | "let")
        };
        tokens(code).iter().map(|t| &code[t.range.clone()]).any(|t| word(t) && there.contains(&t))
    };
    let of_name = OPTIONS.iter().filter(|(of, code)| *of == name && (related(code) || EVERYWHERE.contains(of)));
    // The first of equals.
    let (_, code) = of_name.rev().max_by_key(|(_, code)| alike(code))?;
    let what =
        if code.contains(name) { "an option is written like this" } else { "what it is here is written like this" };
    Some(format!("arguments have no names; {what}: `{code}`"))
}

/// The struct of options that an argument of another type stands for.
pub(super) fn wanted(error: &Diagnostic) -> Option<&str> {
    let label = error.spans.iter().find(|s| s.primary)?.label.as_deref()?;
    let wanted = label.strip_prefix("expected `")?.split('`').next()?;
    (wanted.len() > "Options".len() && wanted.ends_with("Options")).then_some(wanted)
}
