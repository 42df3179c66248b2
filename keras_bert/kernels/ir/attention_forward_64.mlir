module {
  tt.func public @forward(%qkv: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %groups: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %seed: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %log_sums: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %length = arith.constant $length : i32
    %heads = arith.constant $heads : i32
    %scale = arith.constant $scale : f32
    %threshold = arith.constant $threshold : i32
    %factor = arith.constant $factor : f32
    %cst = arith.constant dense<0.000000e+00> : tensor<64xf32>
    %c128_i32 = arith.constant 128 : i32
    %c0_i32 = arith.constant 0 : i32
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<64x64x$float>
    %c192_i32 = arith.constant 192 : i32
    %cst_1 = arith.constant dense<0xFF800000> : tensor<64x64xf32>
    %cst_2 = arith.constant dense<-1.000000e+09> : tensor<64x64xf32>
    %cst_3 = arith.constant dense<0> : tensor<64xi32>
    %cst_4 = arith.constant 1.44269502 : f32
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %cst_6 = arith.constant dense<0xFF800000> : tensor<64xf32>
    %c2_i64 = arith.constant 2 : i64
    %c64_i32 = arith.constant 64 : i32
    %0 = tt.get_program_id x : i32
    %1 = tt.get_program_id y : i32
    %2 = tt.get_program_id z : i32
    %3 = arith.extsi %2 : i32 to i64
    %4 = arith.muli %heads, %c64_i32 : i32
    %5 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %6 = arith.muli %0, %c64_i32 : i32
    %7 = tt.splat %6 : i32 -> tensor<64xi32>
    %8 = arith.addi %7, %5 : tensor<64xi32>
    %9 = tt.expand_dims %8 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %10 = tt.splat %length : i32 -> tensor<64x1xi32>
    %11 = arith.cmpi slt, %9, %10 : tensor<64x1xi32>
    %12 = arith.extsi %length : i32 to i64
    %13 = arith.muli %3, %12 : i64
    %14 = arith.muli %heads, %c192_i32 : i32
    %15 = arith.extsi %14 : i32 to i64
    %16 = arith.muli %13, %15 : i64
    %17 = tt.addptr %qkv, %16 : !tt.ptr<$float>, i64
    %18 = arith.muli %1, %c64_i32 : i32
    %19 = tt.addptr %17, %18 : !tt.ptr<$float>, i32
    %20 = arith.muli %3, %c2_i64 : i64
    %21 = arith.muli %20, %12 : i64
    %22 = tt.addptr %groups, %21 : !tt.ptr<i32>, i64
    %23 = tt.splat %14 : i32 -> tensor<64x1xi32>
    %24 = arith.muli %9, %23 : tensor<64x1xi32>
    %25 = tt.splat %19 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
    %26 = tt.addptr %25, %24 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
    %27 = tt.expand_dims %5 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %28 = tt.broadcast %26 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x64x!tt.ptr<$float>>
    %29 = tt.broadcast %27 : tensor<1x64xi32> -> tensor<64x64xi32>
    %30 = tt.addptr %28, %29 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %31 = tt.broadcast %11 : tensor<64x1xi1> -> tensor<64x64xi1>
    %32 = tt.load %30, %31, %cst_0 : tensor<64x64x!tt.ptr<$float>>
    %33:3 = scf.for %arg10 = %c0_i32 to %length step %c64_i32 iter_args(%arg11 = %cst_6, %arg12 = %cst, %arg13 = %cst_5) -> (tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>)  : i32 {
      %61 = tt.splat %arg10 : i32 -> tensor<64xi32>
      %62 = arith.addi %61, %5 : tensor<64xi32>
      %63 = tt.expand_dims %62 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %64 = arith.muli %63, %23 : tensor<64x1xi32>
      %65 = tt.broadcast %64 : tensor<64x1xi32> -> tensor<64x64xi32>
      %66 = arith.addi %65, %29 : tensor<64x64xi32>
      %67 = arith.cmpi slt, %63, %10 : tensor<64x1xi32>
      %68 = tt.addptr %19, %4 : !tt.ptr<$float>, i32
      %69 = tt.splat %68 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
      %70 = tt.addptr %69, %66 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
      %71 = tt.broadcast %67 : tensor<64x1xi1> -> tensor<64x64xi1>
      %72 = tt.load %70, %71, %cst_0 : tensor<64x64x!tt.ptr<$float>>
      %73 = arith.muli %heads, %c128_i32 : i32
      %74 = tt.addptr %19, %73 : !tt.ptr<$float>, i32
      %75 = tt.splat %74 : !tt.ptr<$float> -> tensor<64x64x!tt.ptr<$float>>
      %76 = tt.addptr %75, %66 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
      %77 = tt.load %76, %71, %cst_0 : tensor<64x64x!tt.ptr<$float>>
      %78 = tt.trans %72 {order = array<i32: 1, 0>} : tensor<64x64x$float> -> tensor<64x64x$float>
      %79 = tt.dot %32, %78, %cst_5, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      %80 = arith.mulf %scale, %cst_4 : f32
      %81 = tt.splat %80 : f32 -> tensor<64x64xf32>
      %82 = arith.mulf %79, %81 : tensor<64x64xf32>
      %83 = tt.splat %length : i32 -> tensor<64xi32>
      %84 = arith.cmpi slt, %8, %83 : tensor<64xi32>
      %85 = tt.splat %22 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %86 = tt.addptr %85, %8 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %87 = tt.load %86, %84, %cst_3 : tensor<64x!tt.ptr<i32>>
      %88 = arith.cmpi slt, %62, %83 : tensor<64xi32>
      %89 = tt.addptr %22, %length : !tt.ptr<i32>, i32
      %90 = tt.splat %89 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %91 = tt.addptr %90, %62 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %92 = tt.load %91, %88, %cst_3 : tensor<64x!tt.ptr<i32>>
      %93 = tt.expand_dims %87 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %94 = tt.expand_dims %92 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %95 = tt.broadcast %93 : tensor<64x1xi32> -> tensor<64x64xi32>
      %96 = tt.broadcast %94 : tensor<1x64xi32> -> tensor<64x64xi32>
      %97 = arith.cmpi eq, %95, %96 : tensor<64x64xi32>
      %98 = arith.select %97, %cst_5, %cst_2 : tensor<64x64xi1>, tensor<64x64xf32>
      %99 = arith.addf %82, %98 : tensor<64x64xf32>
      %100 = tt.expand_dims %88 {axis = 0 : i32} : tensor<64xi1> -> tensor<1x64xi1>
      %101 = tt.broadcast %100 : tensor<1x64xi1> -> tensor<64x64xi1>
      %102 = arith.select %101, %99, %cst_1 : tensor<64x64xi1>, tensor<64x64xf32>
      %103 = "tt.reduce"(%102) <{axis = 1 : i32}> ({
      ^bb0(%arg14: f32, %arg15: f32):
        %119 = arith.maxnumf %arg14, %arg15 : f32
        tt.reduce.return %119 : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %104 = arith.maxnumf %arg11, %103 : tensor<64xf32>
      %105 = tt.expand_dims %104 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %106 = tt.broadcast %105 : tensor<64x1xf32> -> tensor<64x64xf32>
      %107 = arith.subf %102, %106 : tensor<64x64xf32>
      %108 = math.exp2 %107 : tensor<64x64xf32>
      %109 = arith.subf %arg11, %104 : tensor<64xf32>
      %110 = math.exp2 %109 : tensor<64xf32>
      %111 = arith.mulf %arg12, %110 : tensor<64xf32>
      %112 = "tt.reduce"(%108) <{axis = 1 : i32}> ({
      ^bb0(%arg14: f32, %arg15: f32):
        %119 = arith.addf %arg14, %arg15 : f32
        tt.reduce.return %119 : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %113 = arith.addf %111, %112 : tensor<64xf32>
      %114 = tt.expand_dims %110 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %115 = tt.broadcast %114 : tensor<64x1xf32> -> tensor<64x64xf32>
      %116 = arith.mulf %arg13, %115 : tensor<64x64xf32>
      %117 = arith.truncf %108 : tensor<64x64xf32> to tensor<64x64x$float>
      %118 = tt.dot %117, %77, %116, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x64x$float> -> tensor<64x64xf32>
      scf.yield %104, %113, %118 : tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>
    }
    %34 = tt.expand_dims %33#1 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    %35 = tt.broadcast %34 : tensor<64x1xf32> -> tensor<64x64xf32>
    %36 = arith.divf %33#2, %35 : tensor<64x64xf32>
    %37 = arith.extsi %4 : i32 to i64
    %38 = arith.muli %13, %37 : i64
    %39 = arith.extsi %18 : i32 to i64
    %40 = arith.addi %38, %39 : i64
    %41 = tt.addptr %out, %40 : !tt.ptr<$float>, i64
    %42 = tt.splat %4 : i32 -> tensor<64x1xi32>
    %43 = arith.muli %9, %42 : tensor<64x1xi32>
    %44 = tt.splat %41 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
    %45 = tt.addptr %44, %43 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
    %46 = tt.broadcast %45 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x64x!tt.ptr<$float>>
    %47 = tt.addptr %46, %29 : tensor<64x64x!tt.ptr<$float>>, tensor<64x64xi32>
    %48 = arith.truncf %36 : tensor<64x64xf32> to tensor<64x64x$float>
    tt.store %47, %48, %31 : tensor<64x64x!tt.ptr<$float>>
    %49 = arith.extsi %heads : i32 to i64
    %50 = arith.muli %3, %49 : i64
    %51 = arith.extsi %1 : i32 to i64
    %52 = arith.addi %50, %51 : i64
    %53 = arith.muli %52, %12 : i64
    %54 = tt.addptr %log_sums, %53 : !tt.ptr<f32>, i64
    %55 = tt.splat %54 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %56 = tt.addptr %55, %8 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %57 = math.log2 %33#1 : tensor<64xf32>
    %58 = arith.addf %33#0, %57 : tensor<64xf32>
    %59 = tt.splat %length : i32 -> tensor<64xi32>
    %60 = arith.cmpi slt, %8, %59 : tensor<64xi32>
    tt.store %56, %58, %60 : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
