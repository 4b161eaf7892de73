//! StableHLO programs to compile for TPUs, each with what must come of it.

pub enum Expect {
    Fits,
    TooLarge,
    /// With these words.
    Refused(&'static str),
}

pub struct Program {
    pub name: &'static str,
    /// Parameters and results of `main`, and its body; a whole module where the parameters are empty.
    parameters: &'static str,
    results: &'static str,
    body: &'static str,
    pub partitions: u64,
    pub expect: Expect,
}

impl Program {
    pub fn text(&self) -> String {
        if self.parameters.is_empty() {
            return self.body.to_owned();
        }
        let split = if self.partitions > 1 { "attributes {mhlo.num_partitions = 4 : i32} " } else { "" };
        format!(
            "module @test {split}{{\n  func.func public @main({}) -> ({}) {{\n{}\n  }}\n}}\n",
            self.parameters, self.results, self.body
        )
    }
}

const fn fits(name: &'static str, parameters: &'static str, results: &'static str, body: &'static str) -> Program {
    Program { name, parameters, results, body, partitions: 1, expect: Expect::Fits }
}

pub const PROGRAMS: &[Program] = &[
    fits(
        "matmul f32",
        "%a: tensor<1024x1024xf32>, %b: tensor<1024x1024xf32>",
        "tensor<1024x1024xf32>",
        "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
         return %0 : tensor<1024x1024xf32>",
    ),
    fits(
        "matmul bf16",
        "%a: tensor<1024x1024xbf16>, %b: tensor<1024x1024xbf16>",
        "tensor<1024x1024xbf16>",
        "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>
         return %0 : tensor<1024x1024xbf16>",
    ),
    fits(
        "matmul s8",
        "%a: tensor<1024x1024xi8>, %b: tensor<1024x1024xi8>",
        "tensor<1024x1024xi32>",
        "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<1024x1024xi8>, tensor<1024x1024xi8>) -> tensor<1024x1024xi32>
         return %0 : tensor<1024x1024xi32>",
    ),
    fits(
        "matmul beside the tile",
        "%a: tensor<1000x130xf32>, %b: tensor<130x7xf32>",
        "tensor<1000x7xf32>",
        "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<1000x130xf32>, tensor<130x7xf32>) -> tensor<1000x7xf32>
         return %0 : tensor<1000x7xf32>",
    ),
    fits(
        "batched matmul",
        "%a: tensor<8x256x128xbf16>, %b: tensor<8x128x256xbf16>",
        "tensor<8x256x256xf32>",
        "%0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x256x128xbf16>, tensor<8x128x256xbf16>) -> tensor<8x256x256xf32>
         return %0 : tensor<8x256x256xf32>",
    ),
    fits(
        "conv",
        "%x: tensor<8x32x32x64xbf16>, %w: tensor<3x3x64x128xbf16>",
        "tensor<8x32x32x128xbf16>",
        "%0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<8x32x32x64xbf16>, tensor<3x3x64x128xbf16>) -> tensor<8x32x32x128xbf16>
         return %0 : tensor<8x32x32x128xbf16>",
    ),
    fits(
        "attention",
        "%q: tensor<4x128x64xf32>, %k: tensor<4x128x64xf32>, %v: tensor<4x128x64xf32>",
        "tensor<4x128x64xf32>",
        "%s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x128x64xf32>, tensor<4x128x64xf32>) -> tensor<4x128x128xf32>
         %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
         %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<4x128x128xf32>, tensor<f32>) -> tensor<4x128xf32>
         %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<4x128xf32>) -> tensor<4x128x128xf32>
         %d = stablehlo.subtract %s, %mb : tensor<4x128x128xf32>
         %e = stablehlo.exponential %d : tensor<4x128x128xf32>
         %zero = stablehlo.constant dense<0.0> : tensor<f32>
         %n = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<4x128x128xf32>, tensor<f32>) -> tensor<4x128xf32>
         %nb = stablehlo.broadcast_in_dim %n, dims = [0, 1] : (tensor<4x128xf32>) -> tensor<4x128x128xf32>
         %p = stablehlo.divide %e, %nb : tensor<4x128x128xf32>
         %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x128x128xf32>, tensor<4x128x64xf32>) -> tensor<4x128x64xf32>
         return %o : tensor<4x128x64xf32>",
    ),
    fits(
        "elementwise",
        "%x: tensor<4096x1024xf32>",
        "tensor<4096x1024xf32>",
        "%0 = stablehlo.tanh %x : tensor<4096x1024xf32>
         %1 = stablehlo.multiply %0, %x : tensor<4096x1024xf32>
         return %1 : tensor<4096x1024xf32>",
    ),
    fits(
        "reduce",
        "%x: tensor<4096x1024xf32>",
        "tensor<4096xf32>",
        "%zero = stablehlo.constant dense<0.0> : tensor<f32>
         %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4096x1024xf32>, tensor<f32>) -> tensor<4096xf32>
         return %0 : tensor<4096xf32>",
    ),
    fits(
        "transpose",
        "%x: tensor<512x1024xf32>",
        "tensor<1024x512xf32>",
        "%0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<512x1024xf32>) -> tensor<1024x512xf32>
         return %0 : tensor<1024x512xf32>",
    ),
    fits(
        "sort",
        "%x: tensor<128x1024xf32>",
        "tensor<128x1024xf32>",
        "%0 = \"stablehlo.sort\"(%x) ({
         ^bb0(%a: tensor<f32>, %b: tensor<f32>):
           %c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
           stablehlo.return %c : tensor<i1>
         }) {dimension = 1 : i64} : (tensor<128x1024xf32>) -> tensor<128x1024xf32>
         return %0 : tensor<128x1024xf32>",
    ),
    fits(
        "embedding",
        "%table: tensor<32000x256xf32>, %ids: tensor<128xi32>",
        "tensor<128x256xf32>",
        "%i = stablehlo.reshape %ids : (tensor<128xi32>) -> tensor<128x1xi32>
         %0 = \"stablehlo.gather\"(%table, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 256>} : (tensor<32000x256xf32>, tensor<128x1xi32>) -> tensor<128x256xf32>
         return %0 : tensor<128x256xf32>",
    ),
    fits(
        "random",
        "%key: tensor<2xui64>",
        "tensor<1024x256xui32>",
        "%0:2 = \"stablehlo.rng_bit_generator\"(%key) {rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<1024x256xui32>)
         return %0#1 : tensor<1024x256xui32>",
    ),
    fits(
        "pooling",
        "%x: tensor<8x32x32x64xf32>",
        "tensor<8x16x16x64xf32>",
        "%low = stablehlo.constant dense<0xFF800000> : tensor<f32>
         %0 = \"stablehlo.reduce_window\"(%x, %low) ({
         ^bb0(%a: tensor<f32>, %b: tensor<f32>):
           %c = stablehlo.maximum %a, %b : tensor<f32>
           stablehlo.return %c : tensor<f32>
         }) {window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>} : (tensor<8x32x32x64xf32>, tensor<f32>) -> tensor<8x16x16x64xf32>
         return %0 : tensor<8x16x16x64xf32>",
    ),
    fits(
        "while",
        "%x: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>",
        "tensor<1024x1024xf32>",
        "%c0 = stablehlo.constant dense<0> : tensor<i32>
         %r:3 = stablehlo.while(%i = %c0, %a = %x, %b = %w) : tensor<i32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>
         cond {
           %n = stablehlo.constant dense<10> : tensor<i32>
           %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
           stablehlo.return %p : tensor<i1>
         } do {
           %one = stablehlo.constant dense<1> : tensor<i32>
           %j = stablehlo.add %i, %one : tensor<i32>
           %m = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
           %t = stablehlo.tanh %m : tensor<1024x1024xf32>
           stablehlo.return %j, %t, %b : tensor<i32>, tensor<1024x1024xf32>, tensor<1024x1024xf32>
         }
         return %r#1 : tensor<1024x1024xf32>",
    ),
    fits(
        "training step",
        "%x: tensor<64x784xf32>, %w: tensor<784x128xf32>, %y: tensor<64x128xf32>",
        "tensor<784x128xf32>",
        "%p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x784xf32>, tensor<784x128xf32>) -> tensor<64x128xf32>
         %d = stablehlo.subtract %p, %y : tensor<64x128xf32>
         %g = stablehlo.dot_general %x, %d, contracting_dims = [0] x [0] : (tensor<64x784xf32>, tensor<64x128xf32>) -> tensor<784x128xf32>
         %lr = stablehlo.constant dense<0.01> : tensor<784x128xf32>
         %s = stablehlo.multiply %g, %lr : tensor<784x128xf32>
         %n = stablehlo.subtract %w, %s : tensor<784x128xf32>
         return %n : tensor<784x128xf32>",
    ),
    Program {
        name: "four partitions",
        parameters: "%a: tensor<1024x1024xf32> {mhlo.sharding = \"{devices=[4,1]<=[4]}\"}, %b: tensor<1024x1024xf32> {mhlo.sharding = \"{devices=[4,1]<=[4]}\"}",
        results: "tensor<1024x1024xf32> {mhlo.sharding = \"{devices=[4,1]<=[4]}\"}",
        body: "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
         return %0 : tensor<1024x1024xf32>",
        partitions: 4,
        expect: Expect::Fits,
    },
    Program {
        name: "too large",
        parameters: "%a: tensor<262144x65536xf32>, %b: tensor<65536x65536xf32>",
        results: "tensor<262144x65536xf32>",
        body: "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<262144x65536xf32>, tensor<65536x65536xf32>) -> tensor<262144x65536xf32> loc(\"matmul\"(\"big.py\":3:1))
         %1 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0] : (tensor<262144x65536xf32>, tensor<65536x65536xf32>) -> tensor<262144x65536xf32> loc(\"matmul\"(\"big.py\":4:1))
         return %1 : tensor<262144x65536xf32>",
        partitions: 1,
        expect: Expect::TooLarge,
    },
    Program {
        name: "malformed",
        parameters: "",
        results: "",
        body: "module @m { func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> { %0 = stablehlo.no_such_op %a : tensor<4xf32> return %0 : tensor<4xf32> } }",
        partitions: 1,
        expect: Expect::Refused("no_such_op"),
    },
    Program {
        name: "types that do not fit",
        parameters: "%a: tensor<4xf32>, %b: tensor<5xf32>",
        results: "tensor<4xf32>",
        body: "%0 = \"stablehlo.add\"(%a, %b) : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
         return %0 : tensor<4xf32>",
        partitions: 1,
        expect: Expect::Refused("refused the program"),
    },
    Program {
        name: "dynamic",
        parameters: "%a: tensor<?x128xf32>",
        results: "tensor<?x128xf32>",
        body: "return %a : tensor<?x128xf32>",
        partitions: 1,
        expect: Expect::Refused("tensor<?x128xf32>"),
    },
];
