module {
  tt.func public @forward(%qkv: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %groups: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %seed: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<$float> {tt.divisibility = 16 : i32}, %log_sums: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %length = arith.constant $length : i32
    %heads = arith.constant $heads : i32
    %scale = arith.constant $scale : f32
    %threshold = arith.constant $threshold : i32
    %factor = arith.constant $factor : f32
    %cst = arith.constant dense<0.000000e+00> : tensor<64xf32>
    %c0_i32 = arith.constant 0 : i32
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<64x32x$float>
    %c96_i32 = arith.constant 96 : i32
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<64x32xf32>
    %cst_2 = arith.constant dense<0xFF800000> : tensor<64x64xf32>
    %cst_3 = arith.constant dense<-1.000000e+09> : tensor<64x64xf32>
    %cst_4 = arith.constant dense<0> : tensor<64xi32>
    %cst_5 = arith.constant 1.44269502 : f32
    %cst_6 = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %cst_7 = arith.constant dense<0xFF800000> : tensor<64xf32>
    %c2_i64 = arith.constant 2 : i64
    %c64_i32 = arith.constant 64 : i32
    %c32_i32 = arith.constant 32 : i32
    %0 = tt.get_program_id x : i32
    %1 = tt.get_program_id y : i32
    %2 = tt.get_program_id z : i32
    %3 = arith.extsi %2 : i32 to i64
    %4 = arith.muli %heads, %c32_i32 : i32
    %5 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %6 = arith.muli %0, %c64_i32 : i32
    %7 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %8 = tt.splat %6 : i32 -> tensor<64xi32>
    %9 = arith.addi %8, %7 : tensor<64xi32>
    %10 = tt.expand_dims %9 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %11 = tt.splat %length : i32 -> tensor<64x1xi32>
    %12 = arith.cmpi slt, %10, %11 : tensor<64x1xi32>
    %13 = arith.extsi %length : i32 to i64
    %14 = arith.muli %3, %13 : i64
    %15 = arith.muli %heads, %c96_i32 : i32
    %16 = arith.extsi %15 : i32 to i64
    %17 = arith.muli %14, %16 : i64
    %18 = tt.addptr %qkv, %17 : !tt.ptr<$float>, i64
    %19 = arith.muli %1, %c32_i32 : i32
    %20 = tt.addptr %18, %19 : !tt.ptr<$float>, i32
    %21 = arith.muli %3, %c2_i64 : i64
    %22 = arith.muli %21, %13 : i64
    %23 = tt.addptr %groups, %22 : !tt.ptr<i32>, i64
    %24 = tt.splat %15 : i32 -> tensor<64x1xi32>
    %25 = arith.muli %10, %24 : tensor<64x1xi32>
    %26 = tt.splat %20 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
    %27 = tt.addptr %26, %25 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
    %28 = tt.expand_dims %5 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %29 = tt.broadcast %27 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x32x!tt.ptr<$float>>
    %30 = tt.broadcast %28 : tensor<1x32xi32> -> tensor<64x32xi32>
    %31 = tt.addptr %29, %30 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %32 = tt.broadcast %12 : tensor<64x1xi1> -> tensor<64x32xi1>
    %33 = tt.load %31, %32, %cst_0 : tensor<64x32x!tt.ptr<$float>>
    %34:3 = scf.for %arg10 = %c0_i32 to %length step %c64_i32 iter_args(%arg11 = %cst_7, %arg12 = %cst, %arg13 = %cst_1) -> (tensor<64xf32>, tensor<64xf32>, tensor<64x32xf32>)  : i32 {
      %62 = tt.splat %arg10 : i32 -> tensor<64xi32>
      %63 = arith.addi %62, %7 : tensor<64xi32>
      %64 = tt.expand_dims %63 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %65 = arith.muli %64, %24 : tensor<64x1xi32>
      %66 = tt.broadcast %65 : tensor<64x1xi32> -> tensor<64x32xi32>
      %67 = arith.addi %66, %30 : tensor<64x32xi32>
      %68 = arith.cmpi slt, %64, %11 : tensor<64x1xi32>
      %69 = tt.addptr %20, %4 : !tt.ptr<$float>, i32
      %70 = tt.splat %69 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
      %71 = tt.addptr %70, %67 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
      %72 = tt.broadcast %68 : tensor<64x1xi1> -> tensor<64x32xi1>
      %73 = tt.load %71, %72, %cst_0 : tensor<64x32x!tt.ptr<$float>>
      %74 = arith.muli %heads, %c64_i32 : i32
      %75 = tt.addptr %20, %74 : !tt.ptr<$float>, i32
      %76 = tt.splat %75 : !tt.ptr<$float> -> tensor<64x32x!tt.ptr<$float>>
      %77 = tt.addptr %76, %67 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
      %78 = tt.load %77, %72, %cst_0 : tensor<64x32x!tt.ptr<$float>>
      %79 = tt.trans %73 {order = array<i32: 1, 0>} : tensor<64x32x$float> -> tensor<32x64x$float>
      %80 = tt.dot %33, %79, %cst_6, inputPrecision = tf32 : tensor<64x32x$float> * tensor<32x64x$float> -> tensor<64x64xf32>
      %81 = arith.mulf %scale, %cst_5 : f32
      %82 = tt.splat %81 : f32 -> tensor<64x64xf32>
      %83 = arith.mulf %80, %82 : tensor<64x64xf32>
      %84 = tt.splat %length : i32 -> tensor<64xi32>
      %85 = arith.cmpi slt, %9, %84 : tensor<64xi32>
      %86 = tt.splat %23 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %87 = tt.addptr %86, %9 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %88 = tt.load %87, %85, %cst_4 : tensor<64x!tt.ptr<i32>>
      %89 = arith.cmpi slt, %63, %84 : tensor<64xi32>
      %90 = tt.addptr %23, %length : !tt.ptr<i32>, i32
      %91 = tt.splat %90 : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
      %92 = tt.addptr %91, %63 : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
      %93 = tt.load %92, %89, %cst_4 : tensor<64x!tt.ptr<i32>>
      %94 = tt.expand_dims %88 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %95 = tt.expand_dims %93 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
      %96 = tt.broadcast %94 : tensor<64x1xi32> -> tensor<64x64xi32>
      %97 = tt.broadcast %95 : tensor<1x64xi32> -> tensor<64x64xi32>
      %98 = arith.cmpi eq, %96, %97 : tensor<64x64xi32>
      %99 = arith.select %98, %cst_6, %cst_3 : tensor<64x64xi1>, tensor<64x64xf32>
      %100 = arith.addf %83, %99 : tensor<64x64xf32>
      %101 = tt.expand_dims %89 {axis = 0 : i32} : tensor<64xi1> -> tensor<1x64xi1>
      %102 = tt.broadcast %101 : tensor<1x64xi1> -> tensor<64x64xi1>
      %103 = arith.select %102, %100, %cst_2 : tensor<64x64xi1>, tensor<64x64xf32>
      %104 = "tt.reduce"(%103) <{axis = 1 : i32}> ({
      ^bb0(%arg14: f32, %arg15: f32):
        %120 = arith.maxnumf %arg14, %arg15 : f32
        tt.reduce.return %120 : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %105 = arith.maxnumf %arg11, %104 : tensor<64xf32>
      %106 = tt.expand_dims %105 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %107 = tt.broadcast %106 : tensor<64x1xf32> -> tensor<64x64xf32>
      %108 = arith.subf %103, %107 : tensor<64x64xf32>
      %109 = math.exp2 %108 : tensor<64x64xf32>
      %110 = arith.subf %arg11, %105 : tensor<64xf32>
      %111 = math.exp2 %110 : tensor<64xf32>
      %112 = arith.mulf %arg12, %111 : tensor<64xf32>
      %113 = "tt.reduce"(%109) <{axis = 1 : i32}> ({
      ^bb0(%arg14: f32, %arg15: f32):
        %120 = arith.addf %arg14, %arg15 : f32
        tt.reduce.return %120 : f32
      }) : (tensor<64x64xf32>) -> tensor<64xf32>
      %114 = arith.addf %112, %113 : tensor<64xf32>
      %115 = tt.expand_dims %111 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
      %116 = tt.broadcast %115 : tensor<64x1xf32> -> tensor<64x32xf32>
      %117 = arith.mulf %arg13, %116 : tensor<64x32xf32>
      %118 = arith.truncf %109 : tensor<64x64xf32> to tensor<64x64x$float>
      %119 = tt.dot %118, %78, %117, inputPrecision = tf32 : tensor<64x64x$float> * tensor<64x32x$float> -> tensor<64x32xf32>
      scf.yield %105, %114, %119 : tensor<64xf32>, tensor<64xf32>, tensor<64x32xf32>
    }
    %35 = tt.expand_dims %34#1 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
    %36 = tt.broadcast %35 : tensor<64x1xf32> -> tensor<64x32xf32>
    %37 = arith.divf %34#2, %36 : tensor<64x32xf32>
    %38 = arith.extsi %4 : i32 to i64
    %39 = arith.muli %14, %38 : i64
    %40 = arith.extsi %19 : i32 to i64
    %41 = arith.addi %39, %40 : i64
    %42 = tt.addptr %out, %41 : !tt.ptr<$float>, i64
    %43 = tt.splat %4 : i32 -> tensor<64x1xi32>
    %44 = arith.muli %10, %43 : tensor<64x1xi32>
    %45 = tt.splat %42 : !tt.ptr<$float> -> tensor<64x1x!tt.ptr<$float>>
    %46 = tt.addptr %45, %44 : tensor<64x1x!tt.ptr<$float>>, tensor<64x1xi32>
    %47 = tt.broadcast %46 : tensor<64x1x!tt.ptr<$float>> -> tensor<64x32x!tt.ptr<$float>>
    %48 = tt.addptr %47, %30 : tensor<64x32x!tt.ptr<$float>>, tensor<64x32xi32>
    %49 = arith.truncf %37 : tensor<64x32xf32> to tensor<64x32x$float>
    tt.store %48, %49, %32 : tensor<64x32x!tt.ptr<$float>>
    %50 = arith.extsi %heads : i32 to i64
    %51 = arith.muli %3, %50 : i64
    %52 = arith.extsi %1 : i32 to i64
    %53 = arith.addi %51, %52 : i64
    %54 = arith.muli %53, %13 : i64
    %55 = tt.addptr %log_sums, %54 : !tt.ptr<f32>, i64
    %56 = tt.splat %55 : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %57 = tt.addptr %56, %9 : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %58 = math.log2 %34#1 : tensor<64xf32>
    %59 = arith.addf %34#0, %58 : tensor<64xf32>
    %60 = tt.splat %length : i32 -> tensor<64xi32>
    %61 = arith.cmpi slt, %9, %60 : tensor<64xi32>
    tt.store %57, %59, %61 : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
