#loc = loc(unknown)
#loc1 = loc("x")
module @jit_rounds attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x8xf32> loc("x")) -> (tensor<4x8xf32> {jax.result_info = "result"}) {
    %c = stablehlo.constant dense<0> : tensor<i32> loc(#loc19)
    %c_0 = stablehlo.constant dense<0> : tensor<i32> loc(#loc22)
    %0:3 = stablehlo.while(%iterArg = %c_0, %iterArg_1 = %c, %iterArg_2 = %arg0) : tensor<i32>, tensor<i32>, tensor<4x8xf32>
    cond {
      %c_3 = stablehlo.constant dense<3> : tensor<i32> loc(#loc25)
      %1 = stablehlo.compare LT, %iterArg, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> loc(#loc26)
      stablehlo.return %1 : tensor<i1> loc(#loc25)
    } do {
      %1:2 = func.call @closed_call(%iterArg_1, %iterArg_2) : (tensor<i32>, tensor<4x8xf32>) -> (tensor<i32>, tensor<4x8xf32>) loc(#loc27)
      %c_3 = stablehlo.constant dense<1> : tensor<i32> loc(#loc25)
      %2 = stablehlo.add %iterArg, %c_3 : tensor<i32> loc(#loc28)
      stablehlo.return %2, %1#0, %1#1 : tensor<i32>, tensor<i32>, tensor<4x8xf32> loc(#loc25)
    } loc(#loc25)
    return %0#2 : tensor<4x8xf32> loc(#loc19)
  } loc(#loc)
  func.func private @closed_call(%arg0: tensor<i32> loc(unknown), %arg1: tensor<4x8xf32> loc(unknown)) -> (tensor<i32>, tensor<4x8xf32>) {
    %c = stablehlo.constant dense<1> : tensor<i32> loc(#loc)
    %0 = stablehlo.add %arg0, %c : tensor<i32> loc(#loc5)
    %1 = stablehlo.sine %arg1 : tensor<4x8xf32> loc(#loc16)
    %2 = stablehlo.convert %arg0 : (tensor<i32>) -> tensor<f32> loc(#loc17)
    %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<4x8xf32> loc(#loc18)
    %4 = stablehlo.add %1, %3 : tensor<4x8xf32> loc(#loc18)
    return %0, %4 : tensor<i32>, tensor<4x8xf32> loc(#loc)
  } loc(#loc21)
} loc(#loc)
#loc2 = loc("model.py":41:14 to :105)
#loc3 = loc("model.py":55:0 to :29)
#loc4 = loc("model.py":37:11 to :66)
#loc5 = loc("add")
#loc6 = loc("model.py":37:48 to :58)
#loc7 =