#loc1 = loc("x")
module @jit_power attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<2x8xf32> loc("x")) -> (tensor<2x8xf32> {jax.result_info = "result"}) {
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<2x8xf32> loc(#loc7)
    return %0 : tensor<2x8xf32> loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc2 = loc("/home/me/train.py":23:11 to :23)
#loc3 = loc("/home/me/train.py":32:4 to :15)
#loc4 = loc("power"(#loc2))
#loc5 = loc("<module>"(#loc3))
#loc6 = loc(callsite(#loc4 at #loc5))
#loc7 = loc("jit(power)/integer_pow"(#loc6))
